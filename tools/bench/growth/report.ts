// The growth table as Markdown, ready for docs/benchmarks.md. It must not measure; it rounds and lays out.
import { renderMachine, renderTable, whole } from "../markdown.ts";
import type { Machine } from "../machine.ts";
import type { Growth, GrowthSide, StoreSize } from "./growth.ts";
import type { Operation } from "./job.ts";

/** A request may take this much longer in the large store. */
export const GOAL = 2;

const TITLES: Readonly<Record<Operation, string>> = {
  create: "task/create",
  claim: "task/claim",
  complete: "task/complete",
  pull: "task/pull, 10 tasks",
  list: "task/list, first page",
  stats: "task/stats",
  receive: "message/receive, 1 message",
  heartbeat: "node/heartbeat",
};

export function renderGrowth(machine: Machine, growth: Growth): string {
  const header = [
    "Request",
    ...["small", "large"].flatMap((store) => [`req/s ${store}`, "p50 / p99 ms", "CPU µs"]),
    "Ratio",
  ];
  const rows = growth.rows.map(({ operation, small, large, ratio }) => [
    TITLES[operation],
    ...cells(small),
    ...cells(large),
    ratio > GOAL ? `**${ratio.toFixed(2)}**` : ratio.toFixed(2),
  ]);
  return [renderMachine(machine), renderTable(header, rows), renderNotes(growth)].join("\n\n");
}

function renderNotes({
  small,
  large,
  largeBytes,
  fillSeconds,
  requests,
  rounds,
  connections,
}: Growth): string {
  return [
    `The small store holds ${describe(small)}.`,
    `The large store holds ${describe(large)} (${(largeBytes / 2 ** 30).toFixed(1)} GiB).`,
    "Both stores have the events and the ledger too. 96 % of the tasks are completed, 2 % open and 2 % assigned; 2 % of the",
    `messages are unread. Medians of ${rounds} rounds of ${whole(requests)} requests of each kind over ${connections} connections. The two hubs take`,
    "turns, and the requests use all nodes. The ratio is the throughput of the small store divided by the throughput of the",
    "large store; the goal is at most 2.",
    `The large store was filled in ${fillSeconds.toFixed(0)} s.`,
  ].join("\n");
}

function describe({ tasks, nodes }: StoreSize): string {
  return `${whole(tasks)} tasks, ${whole(nodes)} nodes and ${whole(tasks)} messages`;
}

function cells({ requestsPerSecond, p50Ms, p99Ms, cpuUs }: GrowthSide): string[] {
  return [
    whole(requestsPerSecond),
    `${p50Ms.toFixed(1)} / ${p99Ms.toFixed(1)}`,
    cpuUs === null ? "" : cpuUs.toFixed(0),
  ];
}
