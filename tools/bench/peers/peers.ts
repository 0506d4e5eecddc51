// `bun run bench --peers`: compares the cycle of a task with the cycle of a job in other queues, in the same run, on the
// same disk. Invariant: all run at the same time and are measured alternately, each by a load client in a process of its
// own; a queue that cannot be installed, started or measured becomes one line, and the others are measured.
import { makeDirectory } from "../children.ts";
import type { Measurement } from "../job.ts";
import { readCpuMs } from "../machine.ts";
import { median } from "../median.ts";
import type { Options } from "../options.ts";
import { type Work } from "../scenarios.ts";
import { beanstalkdPeer } from "./beanstalkd.ts";
import { bullmqPeer } from "./bullmq.ts";
import { bunqueuePeer, luxhubBatchPeer, luxhubPeer } from "./http-peers.ts";
import { type Program, QUEUES, findProgram, findRedis, installPackages } from "./install.ts";
import type { Against, Peer, RunningPeer } from "./peer.ts";

const WARM_UP_MS = 1_000;
const WORKER_PROCESSES = 4;
export const PEERS_LIMIT_MS = 480_000;

export type PeerRow = {
  name: string;
  cycle: string;
  load: string;
  work: Work;
  cyclesPerSecond: number;
  /** Of one request, not of a cycle. */
  p50Ms: number;
  p99Ms: number;
  /** Processor time of the server, microseconds a cycle; null where the kernel does not tell. */
  cpuUs: number | null;
  /** The load client's use of a core: near 1, the client is the limit, not the server. */
  clientCpu: number;
  /**
   * luxhub's cycles a second over this one's, or of its batches over those of what they are measured against; and the
   * goal.
   */
  ratio: number;
  goal: number | null;
  failures: number;
  failure: string | null;
};

export type Peers = {
  connections: number;
  seconds: number;
  rounds: number;
  rows: PeerRow[];
  missing: string[];
};

type Round = Measurement & { readonly cpuUs: number | null };
/** A row to be. Those of one peer share what runs. */
type Subject = {
  readonly peer: Peer;
  readonly work: Work;
  readonly running: RunningPeer;
  readonly rounds: Round[];
};

/** Installs, starts and measures. Rejects only when luxhub itself cannot be measured. */
export async function measurePeers(options: Options, progress: (line: string) => void): Promise<Peers> {
  const [connections = 1] = options.connections;
  const missing: string[] = [];
  const miss = (name: string, error: unknown): null => {
    missing.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    progress(`${missing.at(-1)}`);
    return null;
  };
  progress("installing the other queues ...");
  const peers = [
    luxhubPeer(options.hub),
    luxhubPeer(options.hub, WORKER_PROCESSES),
    luxhubBatchPeer(options.hub, {
      batch: 32,
      singles: connections,
      goal: 2,
      against: ({ name, load }) => name.startsWith("BullMQ") && load === "shared, pipelined",
    }),
    luxhubBatchPeer(options.hub, {
      batch: 100,
      singles: connections,
      goal: 2.5,
      against: ({ name, load }) => name === "luxhub" && !load.includes("processes"),
    }),
    ...(await findPeers(makeDirectory(), miss)),
  ];
  const subjects: Subject[] = [];
  for (const peer of peers) {
    const running = await peer
      .start(connections, options.dataRoot)
      .catch((error: unknown) => miss(peer.name, error));
    if (running !== null) subjects.push(...peer.works.map((work) => ({ peer, work, running, rounds: [] })));
  }
  const broken = new Set<RunningPeer>();
  for (let round = 0; round <= options.rounds; round++) {
    for (const subject of subjects.filter((each) => !broken.has(each.running))) {
      try {
        const found = await measureRound(subject, round === 0 ? WARM_UP_MS : options.seconds * 1_000);
        const { peer, work } = subject;
        progress(`${peer.name}, ${peer.load}, ${work}: ${found.cyclesPerSecond.toFixed(0)} cycles/s`);
        if (round > 0) subject.rounds.push(found);
      } catch (error) {
        broken.add(subject.running);
        miss(subject.peer.name, error);
      }
    }
  }
  await Promise.all(Array.from(new Set(subjects.map(({ running }) => running)), (running) => running.stop()));
  const measured = subjects.filter((each) => !broken.has(each.running));
  const all = measured.map(toRow);
  const [own] = all;
  if (own === undefined || own.name !== peers[0]?.name) throw new Error("luxhub itself was not measured");
  const rows = all.map((row, at) => {
    const against = measured[at]?.peer.against;
    const inProcesses = ({ load }: { load: string }): boolean => load.includes("processes");
    const isOwn: Against = (each) => each.name === own.name && inProcesses(each) === inProcesses(row);
    const isOther = against ?? isOwn;
    const other = all.find((each) => each.work === row.work && isOther(each))?.cyclesPerSecond ?? Number.NaN;
    return { ...row, ratio: against ? row.cyclesPerSecond / other : other / row.cyclesPerSecond };
  });
  return { connections, seconds: options.seconds, rounds: options.rounds, rows, missing };
}

async function findPeers(folder: string, miss: (name: string, error: unknown) => null): Promise<Peer[]> {
  const peers: Peer[] = [];
  const installed = await installPackages(folder, QUEUES).then(
    () => true,
    (error: unknown) => miss("bunqueue and BullMQ", error) ?? false,
  );
  if (installed) {
    peers.push(bunqueuePeer(folder, QUEUES.bunqueue, "HTTP"), bunqueuePeer(folder, QUEUES.bunqueue, "TCP"));
    const redis = await findRedis(folder).catch((error: unknown): Program | null =>
      miss("BullMQ on Redis", error),
    );
    if (redis !== null) {
      peers.push(
        bullmqPeer(folder, QUEUES.bullmq, redis, false),
        bullmqPeer(folder, QUEUES.bullmq, redis, true),
        bullmqPeer(folder, QUEUES.bullmq, redis, false, WORKER_PROCESSES),
      );
    }
  }
  const beanstalkd = await findProgram("beanstalkd", ["beanstalkd"], folder, "-v").catch(
    (error: unknown): Program | null => miss("beanstalkd", error),
  );
  if (beanstalkd !== null) peers.push(beanstalkdPeer(beanstalkd));
  return peers;
}

async function measureRound({ running, work }: Subject, windowMs: number): Promise<Round> {
  const before = readCpuMs(running.pid);
  const measurement = await running.run(windowMs, work);
  const after = readCpuMs(running.pid);
  const cpuUs =
    before === null || after === null ? null : ((after - before) * 1_000) / measurement.cyclesInAll;
  return { ...measurement, cpuUs };
}

function toRow({ peer, work, rounds }: Subject): Omit<PeerRow, "ratio"> {
  const of = (pick: (round: Round) => number): number => median(rounds.map(pick));
  const cpuUs = rounds.flatMap((round) => round.cpuUs ?? []);
  return {
    name: peer.name,
    cycle: peer.cycle,
    load: peer.load,
    work,
    cyclesPerSecond: of((round) => round.cyclesPerSecond),
    p50Ms: of((round) => round.p50Ms),
    p99Ms: of((round) => round.p99Ms),
    cpuUs: cpuUs.length === 0 ? null : median(cpuUs),
    clientCpu: of((round) => round.clientCpu),
    goal: peer.goal,
    failures: rounds.reduce((sum, round) => sum + round.failures, 0),
    failure: rounds.find((round) => round.failure !== null)?.failure ?? null,
  };
}
