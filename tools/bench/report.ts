// The report as Markdown, ready for docs/benchmarks.md. It must not measure or judge; it rounds and lays out.
import type { LogRow } from "./change-log.ts";
import type { Machine } from "./machine.ts";
import { renderMachine, renderTable, whole } from "./markdown.ts";
import type { IdleMemory } from "./memory.ts";
import { type NextReport, TASKS_PULLED } from "./next/next.ts";
import type { Row, Side } from "./rounds.ts";
import type { Start } from "./start.ts";
import type { StreamRow, StreamSide } from "./streams/streams.ts";
import type { WakeReport, WakeSide } from "./wake/wake.ts";

export type Report = {
  machine: Machine;
  seconds: number;
  rounds: number;
  rows: Row[];
  memory: IdleMemory[];
  starts: Start[];
  streams: StreamRow | null;
  next: NextReport | null;
  wakes: WakeReport | null;
  log: LogRow[];
};

export function renderMarkdown(report: Report): string {
  const parts = [renderMachine(report.machine)];
  if (report.rows.length > 0) parts.push(renderRows(report.rows), renderNotes(report));
  if (report.memory.length > 0) parts.push(renderMemory(report.memory));
  if (report.starts.length > 0) parts.push(renderStarts(report.starts));
  if (report.streams !== null) parts.push(renderStreams(report.streams));
  if (report.next !== null) parts.push(renderNext(report.next));
  if (report.wakes !== null) parts.push(renderWakes(report.wakes));
  if (report.log.length > 0) parts.push(renderLog(report.log));
  const failed = report.rows.filter((row) => row.failures > 0);
  for (const row of failed) {
    parts.push(`**${row.failures} failures** in ${row.scenario} at ${row.connections}: ${row.failure}`);
  }
  return parts.join("\n\n");
}

function renderNotes({ seconds, rounds }: Report): string {
  return [
    "A task cycle is create, claim, complete; a message is a send and a receive; a task list is the first page of 1,000",
    `tasks. Medians of ${rounds} rounds of ${seconds} s, in which the hub and the baseline take turns. Each caller is one connection and`,
    "one node, with one request at a time. The baseline is a `Bun.serve` that parses the same JSON bodies and echoes them,",
    "or sends the hub's task list from memory. The load client shares the cores with the server. Latency is per request.",
    "CPU is the server's processor time per request, in µs. The ratio is hub req/s divided by baseline req/s.",
  ].join("\n");
}

function renderRows(rows: readonly Row[]): string {
  const header = [
    "Scenario",
    "Callers",
    "Hub req/s",
    "Cycles/s",
    "p50 / p99 ms",
    "CPU µs",
    "Bare req/s",
    "p50 / p99 ms",
    "CPU µs",
    "Ratio",
  ];
  return renderTable(
    header,
    rows.map((row) => [
      row.title,
      String(row.connections),
      whole(row.hub.requestsPerSecond),
      row.stepsPerCycle > 1 ? whole(row.hub.cyclesPerSecond) : "",
      latency(row.hub),
      cpu(row.hub),
      whole(row.echo.requestsPerSecond),
      latency(row.echo),
      cpu(row.echo),
      `${(row.ratio * 100).toFixed(0)} %`,
    ]),
  );
}

function renderMemory(rows: readonly IdleMemory[]): string {
  return renderTable(
    ["Idle process, median of 3 starts", "RSS MiB", "Pss MiB", "CPU, % of a core"],
    rows.map(({ name, rssKib, pssKib, cpuShare }) => [
      name,
      mebibytes(rssKib),
      mebibytes(pssKib),
      (cpuShare * 100).toFixed(1),
    ]),
  );
}

function renderStarts(rows: readonly Start[]): string {
  return renderTable(
    ["From the first start to the first response, median of 9", "Hub ms", "Bare ms", "Ratio"],
    rows.map(({ form, hubMs, bareMs, ratio }) => [form, whole(hubMs), whole(bareMs), ratio.toFixed(1)]),
  );
}

function renderStreams({ streams, hub, bare, ratio }: StreamRow): string {
  const cells = (name: string, side: StreamSide): string[] => [
    name,
    whole(side.p50Ms),
    whole(side.p99Ms),
    whole(side.lastMs),
    side.cpuMs === null ? "" : whole(side.cpuMs),
  ];
  const header = [`A broadcast to ${whole(streams)} streams`, "p50 ms", "p99 ms", "Last ms", "CPU ms"];
  const rows = [cells("luxhub", hub), cells("bare `Bun.serve`", bare)];
  return `${renderTable(header, rows)}\n\nThe ratio of the p50 is ${ratio.toFixed(1)}.`;
}

function renderNext({ workers, tasks, rounds, rows }: NextReport): string {
  const header = ["Dispatch", "Case", "Dispatches/s", "p50 / p99 ms", "CPU µs", "Conflicts", "Ratio"];
  const cells = rows.map((row) => [
    row.name,
    row.tasksCome ? "workers wait" : "tasks wait",
    whole(row.dispatchesPerSecond),
    `${row.p50Ms.toFixed(1)} / ${row.p99Ms.toFixed(1)}`,
    row.cpuUs === null ? "" : whole(row.cpuUs),
    row.conflicts.toFixed(1),
    row.ratio.toFixed(2),
  ]);
  const notes = [
    `${whole(workers)} workers, each a connection and a node, and ${whole(tasks)} tasks per round (${whole(TASKS_PULLED)} for task/pull); medians of ${rounds} rounds, in which the ways`,
    "take turns at one hub. In the case _tasks wait_ all tasks exist before the first worker asks, and the latency is the time",
    "of a dispatch's requests. In the case _workers wait_ another caller creates tasks in batches of 100, at most 500 ahead;",
    "CPU includes these batches, and the latency is from the batch until a worker has the task. For _task/claim of a known id_",
    "the load client gives each worker an id without a request. A pull returns the best 50 tasks, and the worker claims a",
    "random task of the 50. Conflicts are failed claims per dispatch. The ratio is the median of the ratios to the dispatches",
    "per second of task/claim in each round of the same case.",
  ];
  return `${renderTable(header, cells, 2)}\n\n${notes.join("\n")}`;
}

function renderWakes({ rounds, rows, missing }: WakeReport): string {
  const header = ["luxhub", "Pairs", "p50 / p99 ms", "CPU µs", "Baseline", "p50 / p99 ms", "CPU µs", "Ratio"];
  const side = ({ p50Ms, p99Ms, cpuUs }: WakeSide): string[] => [
    `${p50Ms.toFixed(2)} / ${p99Ms.toFixed(2)}`,
    cpuUs === null ? "" : whole(cpuUs),
  ];
  const cells = rows.map(({ name, pairs, sides: [hub, rival], other, ratio }) => [
    name,
    String(pairs),
    ...side(hub),
    other,
    ...side(rival),
    ratio.toFixed(1),
  ]);
  const notes = [
    "A pair is a sender and a blocked receiver, each on its own connection. With one hub, message/send and message/receive",
    "are compared with LPUSH and BLPOP on a Redis with `appendfsync always`; task/create and a blocked task/next with put and",
    "reserve of beanstalkd (`-b DIR -f 0`). A delay is not counted: the time is how late the task comes. With two hubs, one hub gets the send and the other",
    "the receive. The baseline is the least that a mailbox on PostgreSQL needs: one statement inserts the message and notifies,",
    "and another deletes the message when the receiver is notified. All systems flush both steps to disk. A pair sends one",
    "message at a time, 5 to 15 ms after its receiver has begun to wait (64 pairs: 32 to 96 ms). A time is from the beginning of",
    `the send to the end of the receive's response; medians of ${rounds} rounds, in turns. CPU is the processor time of the hubs or`,
    "of Redis per message. The ratio compares the p50: the median of the rounds' ratios.",
    ...missing.map((reason) => `Not measured: ${reason}`),
  ];
  return `${renderTable(header, cells)}\n\n${notes.join("\n")}`;
}

function renderLog(rows: readonly LogRow[]): string {
  const header = [
    ...["Change log", "Callers", "Cycles/s", "p50 / p99 ms", "CPU µs"],
    ...["Bytes an entry", "Bytes a task", "Ratio"],
  ];
  const cells = rows.flatMap(({ connections, without, with: kept, bytesPerEntry, bytesPerTask, ratio }) => {
    const side = (name: string, side: Side): string[] => [
      name,
      String(connections),
      whole(side.cyclesPerSecond),
      latency(side),
      cpu(side),
    ];
    return [
      [...side("not kept", without), "", "", ""],
      [...side("kept", kept), whole(bytesPerEntry), whole(bytesPerTask), ratio?.toFixed(2) ?? ""],
    ];
  });
  const note = "The ratio is that of the CPU, kept by not kept: the median of the rounds.";
  return `${renderTable(header, cells)}\n\n${note}`;
}

function latency({ p50Ms, p99Ms }: Side): string {
  return `${p50Ms.toFixed(1)} / ${p99Ms.toFixed(1)}`;
}

function cpu({ cpuUs }: Side): string {
  return cpuUs === null ? "" : cpuUs.toFixed(0);
}

function mebibytes(kib: number): string {
  return (kib / 1_024).toFixed(1);
}
