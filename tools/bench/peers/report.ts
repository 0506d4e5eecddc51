// The table of the peers as Markdown, ready for docs/benchmarks.md. It must not measure; it rounds and lays out.
import type { Machine } from "../machine.ts";
import { renderMachine, renderTable, renderTroubles, whole } from "../markdown.ts";
import type { PeerRow, Peers } from "./peers.ts";

export function renderPeers(machine: Machine, peers: Peers): string {
  const header = [
    "System",
    "Callers",
    "Prompt",
    "Cycles/s",
    "p50 / p99 ms",
    "CPU µs",
    "Client cores",
    "Ratio",
    "Goal",
  ];
  const parts = [renderMachine(machine), renderTable(header, peers.rows.map(cells), 3), renderNotes(peers)];
  parts.push(...renderTroubles(peers.missing, peers.rows));
  return parts.join("\n\n");
}

function cells({
  name,
  load,
  work,
  cyclesPerSecond,
  p50Ms,
  p99Ms,
  cpuUs,
  clientCpu,
  ratio,
  goal,
}: PeerRow): string[] {
  const times = ratio.toFixed(1);
  return [
    shortName(name),
    load,
    work,
    whole(cyclesPerSecond),
    `${p50Ms.toFixed(1)} / ${p99Ms.toFixed(1)}`,
    cpuUs === null ? "" : cpuUs.toFixed(0),
    clientCpu.toFixed(2),
    goal !== null && ratio < goal ? `**${times}**` : times,
    goal === null ? "" : String(goal),
  ];
}

/** Without its settings, which the notes name. */
function shortName(name: string): string {
  return name.startsWith("luxhub") ? name : (name.split(",")[0] ?? name);
}

function renderNotes({ connections, seconds, rounds, rows }: Peers): string {
  const cycles = new Map(rows.map(({ name, cycle }) => [name, cycle]));
  return [
    "The ratio is luxhub's cycles per second divided by those of the system with the same prompt. Two rows differ: batches of 32 are divided by",
    "BullMQ pipelined, and batches of 100 by luxhub's single requests. A cycle is:\n",
    ...[...cycles].map(([name, cycle]) => `- ${name}: ${cycle}`),
    "",
    `Medians of ${rounds} rounds of ${seconds} s. The systems take turns, with their data on the same disk. There are ${connections}`,
    "workers (fewer with batches), each with one request at a time. Latency is per request. CPU is the server's processor time per cycle, in µs.",
    "The load client shares the cores with the server. All systems except bunqueue flush to disk before they respond to a",
    "write: bunqueue with `durable: true` writes each job at once, but with SQLite's `synchronous=NORMAL`, which does not",
    "wait for the disk. With a prompt of 4 or 16 kB the result has 2 kB (beanstalkd keeps no result).",
  ].join("\n");
}
