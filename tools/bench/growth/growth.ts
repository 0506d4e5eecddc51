// `bun run bench --growth`: does a request take longer in a large store? Two hubs run at the same time, one on a store
// of a thousand tasks and messages, one on a store of a million, and are measured alternately, phase by phase.
// Invariant: both get the same requests, from every node of the fleet; and each round ends with as many tasks as it
// began with, so that the small store stays small.
import { join } from "node:path";
import { keepChild, makeDirectory } from "../children.ts";
import { type LoadClient, startLoadClient } from "../load-client.ts";
import { readCpuMs } from "../machine.ts";
import { median } from "../median.ts";
import { ADMIN_KEY, type RunningServer, SECRET, startHubOn } from "../server-under-test.ts";
import { OPERATIONS, type Operation, Phase, type PhaseJob } from "./job.ts";

export type StoreSize = { readonly tasks: number; readonly nodes: number };

export type GrowthPlan = {
  readonly small: StoreSize;
  readonly large: StoreSize;
  readonly requests: number;
  readonly rounds: number;
  readonly connections: number;
  /** How the hub is run, without `serve`. */
  readonly hub: readonly string[];
  readonly dataRoot: string;
};

export const SMALL: StoreSize = { tasks: 1_000, nodes: 10 };
export const LARGE: StoreSize = { tasks: 1_000_000, nodes: 10_000 };
/** A round lets every node of the large fleet beat once, so that none goes offline. */
export const REQUESTS = 10_000;
export const GROWTH_LIMIT_MS = 900_000;

export type GrowthSide = {
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  /** Processor time of the hub, microseconds a request; null where the kernel does not tell. */
  cpuUs: number | null;
};

export type GrowthRow = {
  operation: Operation;
  small: GrowthSide;
  large: GrowthSide;
  /** Time a request, large over small: the ratio of the medians of requests a second. */
  ratio: number;
};

export type Growth = {
  small: StoreSize;
  large: StoreSize;
  largeBytes: number;
  fillSeconds: number;
  requests: number;
  rounds: number;
  connections: number;
  rows: GrowthRow[];
};

type Subject = {
  readonly hub: RunningServer;
  readonly nodes: number;
  readonly rounds: Map<Operation, Round[]>;
};
type Round = Phase & { readonly cpuUs: number | null };
type Client = LoadClient<PhaseJob, Phase>;

/** Fills both stores, starts both hubs and measures them in turns. Rejects when a request fails. */
export async function measureGrowth(plan: GrowthPlan, progress: (line: string) => void): Promise<Growth> {
  const { small, large, requests, rounds, connections, dataRoot } = plan;
  const data = { small: makeDirectory(dataRoot), large: makeDirectory(dataRoot) };
  progress(`filling a store with ${large.tasks} tasks ...`);
  const startMs = performance.now();
  await fillStore(data.large, large);
  const fillSeconds = (performance.now() - startMs) / 1_000;
  const largeBytes = Bun.file(join(data.large, "luxhub.db")).size;
  progress(`filled in ${fillSeconds.toFixed(0)} s: ${(largeBytes / 2 ** 20).toFixed(0)} MiB`);
  await fillStore(data.small, small);
  const rows = await measureStores(plan, data, progress);
  return { small, large, largeBytes, fillSeconds, requests, rounds, connections, rows };
}

export async function measureStores(
  plan: GrowthPlan,
  data: { readonly small: string; readonly large: string },
  progress: (line: string) => void,
): Promise<GrowthRow[]> {
  const client: Client = startLoadClient([process.execPath, join(import.meta.dir, "load.ts")], Phase);
  const start = async (directory: string, { nodes }: StoreSize): Promise<Subject> => ({
    hub: await startHubOn(plan.hub, directory),
    nodes,
    rounds: new Map(),
  });
  const subjects = [await start(data.small, plan.small), await start(data.large, plan.large)];
  try {
    for (let round = 0; round <= plan.rounds; round++) {
      progress(round === 0 ? "warming up ..." : `round ${round} of ${plan.rounds} ...`);
      for (const subject of subjects) await measureRound(client, plan, subject, round > 0);
    }
    return OPERATIONS.map((operation) => toRow(operation, subjects));
  } finally {
    await Promise.all([client.stop(), ...subjects.map(({ hub }) => hub.stop())]);
  }
}

export async function fillStore(data: string, { tasks, nodes }: StoreSize): Promise<void> {
  const command = [process.execPath, join(import.meta.dir, "fill.ts"), data, String(tasks), String(nodes)];
  const filler = keepChild(Bun.spawn(command, { stdin: "ignore", stdout: "inherit", stderr: "inherit" }));
  if ((await filler.exited) !== 0) throw new Error("the store was not filled");
}

/** One phase of each kind, in order; `counts` is false for a warm-up. */
async function measureRound(
  client: Client,
  plan: GrowthPlan,
  subject: Subject,
  counts: boolean,
): Promise<void> {
  const { hub, nodes, rounds } = subject;
  const run = async (operation: PhaseJob["operation"]): Promise<Round> => {
    const before = readCpuMs(hub.pid);
    const phase = await client.run({
      port: hub.port,
      secret: SECRET,
      adminKey: ADMIN_KEY,
      operation,
      connections: plan.connections,
      count: plan.requests,
      nodes,
    });
    const after = readCpuMs(hub.pid);
    if (phase.failures > 0)
      throw new Error(`${operation}: ${phase.failures} failures, first: ${phase.failure}`);
    const cpuUs = before === null || after === null ? null : ((after - before) * 1_000) / plan.requests;
    return { ...phase, cpuUs };
  };
  for (const operation of OPERATIONS) {
    if (operation === "receive") await run("send");
    const round = await run(operation);
    if (counts) rounds.set(operation, [...(rounds.get(operation) ?? []), round]);
  }
  await run("delete");
}

function toRow(operation: Operation, subjects: readonly Subject[]): GrowthRow {
  const [small, large] = subjects.map(({ rounds }) => summarise(rounds.get(operation) ?? []));
  if (small === undefined || large === undefined) throw new Error("two hubs were to be measured");
  return { operation, small, large, ratio: small.requestsPerSecond / large.requestsPerSecond };
}

function summarise(rounds: readonly Round[]): GrowthSide {
  const of = (pick: (round: Round) => number): number => median(rounds.map(pick));
  const cpuUs = rounds.flatMap((round) => round.cpuUs ?? []);
  return {
    requestsPerSecond: of((round) => round.requestsPerSecond),
    p50Ms: of((round) => round.p50Ms),
    p99Ms: of((round) => round.p99Ms),
    cpuUs: cpuUs.length === 0 ? null : median(cpuUs),
  };
}
