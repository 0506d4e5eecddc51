// The table of the PostgreSQL bench as Markdown, ready for docs/benchmarks.md. It must not measure; it lays out.
import type { Machine } from "../machine.ts";
import { renderMachine, renderTable, renderTroubles, whole } from "../markdown.ts";
import type { PostgresReport, PostgresRow } from "./postgres.ts";

export function renderPostgres(machine: Machine, report: PostgresReport): string {
  const header = ["System", "Callers", "Prompt", "Cycles/s", "p50 / p99 ms", "Ratio", "Goal"];
  const parts = [
    `${renderMachine(machine)}\nPostgreSQL on the same disk: ${report.server.join(", ")}.`,
    renderTable(header, report.rows.map(cells), 3),
    renderNotes(report),
  ];
  parts.push(...renderTroubles(report.missing, report.rows));
  return parts.join("\n\n");
}

function cells({ name, load, work, cyclesPerSecond, p50Ms, p99Ms, ratio, goal }: PostgresRow): string[] {
  const times = ratio.toFixed(1);
  return [
    name,
    load,
    work,
    whole(cyclesPerSecond),
    `${p50Ms.toFixed(1)} / ${p99Ms.toFixed(1)}`,
    goal !== null && ratio < goal ? `**${times}**` : times,
    goal === null ? "" : String(goal),
  ];
}

function renderNotes({ seconds, rounds, hub, rows }: PostgresReport): string {
  const cycles = new Map(rows.map(({ name, cycle }) => [name, cycle]));
  return [
    "The ratio is luxhub's cycles per second divided by those of the system; batches are divided by batches. A cycle is:\n",
    ...[...cycles].map(([name, cycle]) => `- ${name}: ${cycle}`),
    "",
    `Medians of ${rounds} rounds of ${seconds} s. The systems take turns on one server, each with its own database. The hubs are`,
    `two processes (\`${hub}\`), each with half of the callers. A cycle of the hubs is three HTTP requests, which the hub`,
    "authenticates, checks, and writes with the ledger, the totals of the node and the events. A library runs in the load",
    "client's process under Bun, with 10 connections (pg-boss) or 64 (graphile-worker), the fastest choice here. pg-boss",
    "stores the job and the result. graphile-worker deletes completed jobs, and keeps no result. Latency is per call",
    "(graphile-worker: per cycle). With a prompt of 4 or 16 kB the result has 2 kB. The load clients share the cores with the server.",
  ].join("\n");
}
