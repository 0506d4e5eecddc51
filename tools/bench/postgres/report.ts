// The table of the PostgreSQL bench as Markdown, ready for docs/benchmarks.md. It must not measure; it lays out.
import type { Machine } from "../machine.ts";
import { renderMachine, renderTable, renderTroubles, whole } from "../markdown.ts";
import type { PostgresReport, PostgresRow } from "./postgres.ts";

/** Renders the table; a ratio under its goal stands out. */
export function renderPostgres(machine: Machine, report: PostgresReport): string {
  const header = ["System", "Load", "Lives/s", "p50 / p99 ms", "Ratio", "Goal"];
  const parts = [
    `${renderMachine(machine)}\nPostgreSQL on the same disk: ${report.server.join(", ")}.`,
    renderTable(header, report.rows.map(cells), 2),
    renderNotes(report),
  ];
  parts.push(...renderTroubles(report.missing, report.rows));
  return parts.join("\n\n");
}

function cells({ name, load, cyclesPerSecond, p50Ms, p99Ms, ratio, goal }: PostgresRow): string[] {
  const times = ratio.toFixed(1);
  return [
    name,
    load,
    whole(cyclesPerSecond),
    `${p50Ms.toFixed(1)} / ${p99Ms.toFixed(1)}`,
    goal !== null && ratio < goal ? `**${times}**` : times,
    goal === null ? "" : String(goal),
  ];
}

function renderNotes({ seconds, rounds, hub, rows }: PostgresReport): string {
  const lives = new Map(rows.map(({ name, cycle }) => [name, cycle]));
  return [
    "The ratio is luxhub's lives a second to the system's, in batches to those in batches. A life is:\n",
    ...[...lives].map(([name, cycle]) => `- ${name}: ${cycle}`),
    "",
    `Medians of ${rounds} rounds of ${seconds} s, all in turns on one server, each in a database of its own. The hubs are two`,
    `processes (\`${hub}\`), half of the callers at each; a life there is three requests over HTTP, each of which is`,
    "authenticated, checked and written with the ledger, the totals of its node and the events. A library runs in its",
    "load client's process under Bun, on 10 connections (pg-boss) or 64 (graphile-worker), which are its fastest here.",
    "pg-boss stores job and result; graphile-worker deletes what is complete, and keeps no result. Latency is per call,",
    "of graphile-worker per life. The load clients share the cores.",
  ].join("\n");
}
