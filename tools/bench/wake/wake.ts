// `bun run bench --only wake`: how long a send takes to wake a blocked receive, in turns with a baseline. One hub is
// compared with LPUSH and BLPOP of Redis with `appendfsync always`; two hubs on a PostgreSQL, the send at one and the
// receive at the other, with INSERT, NOTIFY and DELETE on that server. All systems flush the message and its delivery to
// the same disk before they respond.
import { join } from "node:path";
import { POSTGRES_MISSING, PostgresServer } from "../../../test/support/postgres.ts";
import { makeDirectory } from "../children.ts";
import { type LoadClient, startLoadClient } from "../load-client.ts";
import { readCpuMs } from "../machine.ts";
import { median } from "../median.ts";
import type { Options } from "../options.ts";
import { startBeanstalkd } from "../peers/beanstalkd.ts";
import { startRedis } from "../peers/bullmq.ts";
import { findProgram, findRedis } from "../peers/install.ts";
import { POSTGRES_SETTINGS } from "../postgres/postgres.ts";
import { newDatabase, openHubs } from "../postgres/subjects.ts";
import { SECRET, startHub } from "../server-under-test.ts";
import { type WakeJob, type WakeServer, Wakes } from "./wake-job.ts";

type Load = Omit<WakeJob, "server">;
/** So many pairs at once, and the messages of each in a round; 64 pairs send some 1,000 a second, which all can do. */
const LOADS: readonly Load[] = [
  { pairs: 1, messages: 200, pauseMs: 10, delayS: 0 },
  { pairs: 64, messages: 50, pauseMs: 64, delayS: 0 },
];
/** Of tasks also with a delay. */
const TASK_LOADS: readonly Load[] = [
  ...LOADS,
  { pairs: 1, messages: 5, pauseMs: 10, delayS: 1 },
  { pairs: 64, messages: 3, pauseMs: 64, delayS: 1 },
];

/** Before the first round: until the hub's JavaScript is compiled. */
const WARM_UP = { pairs: 64, messages: 300, pauseMs: 1, delayS: 0 };

/** What the pairs talk to, and the processes whose processor time counts; none: it is not told. */
type Contender = { readonly server: WakeServer; readonly pids: readonly number[] };
type Contest = {
  readonly name: string;
  readonly other: string;
  readonly loads: readonly Load[];
  readonly contenders: readonly [hub: Contender, other: Contender];
  stop(): Promise<unknown>;
};

export type WakeSide = { p50Ms: number; p99Ms: number; cpuUs: number | null };
/** `ratio`: of the p50, the median of the rounds' ratios. */
export type WakeRow = {
  name: string;
  other: string;
  pairs: number;
  sides: readonly [hub: WakeSide, other: WakeSide];
  ratio: number;
};
export type WakeReport = { rounds: number; rows: WakeRow[]; missing: string[] };

export async function measureWakes(options: Options): Promise<WakeReport> {
  const source = join(import.meta.dir, "wake-load.ts");
  const client = startLoadClient<WakeJob, Wakes>([process.execPath, source], Wakes);
  const rows: WakeRow[] = [];
  const missing: string[] = [];
  try {
    for (const start of [startWithRedis, startWithBeanstalkd, startWithPostgres]) {
      const contest = await start(options).catch((error: unknown) => {
        missing.push(error instanceof Error ? error.message : String(error));
        return null;
      });
      if (contest) rows.push(...(await measure(contest, client, options.rounds).finally(contest.stop)));
    }
  } finally {
    await client.stop();
  }
  return { rounds: options.rounds, rows, missing };
}

async function startWithRedis({ hub: command, dataRoot }: Options): Promise<Contest> {
  const program = await findRedis(makeDirectory());
  const [hub, redis] = await Promise.all([startHub(command, dataRoot), startRedis(program, dataRoot)]);
  const { port } = hub;
  return {
    name: "one hub",
    other: `Redis ${program.version}`,
    loads: LOADS,
    contenders: [
      {
        server: { kind: "luxhub", what: "message", sendPort: port, receivePort: port, secret: SECRET },
        pids: [hub.pid],
      },
      { server: { kind: "redis", port: redis.port }, pids: [redis.pid] },
    ],
    stop: () => Promise.all([hub.stop(), redis.stop()]),
  };
}

async function startWithBeanstalkd({ hub: command, dataRoot }: Options): Promise<Contest> {
  const program = await findProgram("beanstalkd", ["beanstalkd"], makeDirectory(), "-v");
  const [hub, beanstalkd] = await Promise.all([
    startHub(command, dataRoot),
    startBeanstalkd(program, dataRoot),
  ]);
  const { port } = hub;
  const server = { kind: "luxhub", what: "task", sendPort: port, receivePort: port, secret: SECRET } as const;
  return {
    name: "task/create to task/next",
    other: `beanstalkd ${program.version}`,
    loads: TASK_LOADS,
    contenders: [
      { server, pids: [hub.pid] },
      { server: { kind: "beanstalkd", port: beanstalkd.port }, pids: [beanstalkd.pid] },
    ],
    stop: () => Promise.all([hub.stop(), beanstalkd.stop()]),
  };
}

async function startWithPostgres({ hub, dataRoot }: Options): Promise<Contest> {
  if (POSTGRES_MISSING !== null) throw new Error(POSTGRES_MISSING);
  const server = await PostgresServer.start(dataRoot, POSTGRES_SETTINGS);
  const { ports, pids, stop } = await openHubs({ server: server.url, hub, dataRoot });
  const [sendPort = 0, receivePort = 0] = ports;
  const { url } = await newDatabase(server.url); // goes with its server
  return {
    name: "two hubs on PostgreSQL",
    other: "PostgreSQL",
    loads: LOADS,
    contenders: [
      { server: { kind: "luxhub", what: "message", sendPort, receivePort, secret: SECRET }, pids },
      { server: { kind: "postgres", url }, pids: [] },
    ],
    stop: () => stop().then(() => server.remove()),
  };
}

async function measure(
  { name, other, loads, contenders }: Contest,
  client: LoadClient<WakeJob, Wakes>,
  rounds: number,
): Promise<WakeRow[]> {
  const side = async ({ server, pids }: Contender, load: Load): Promise<WakeSide> => {
    const before = cpuOf(pids);
    const { p50Ms, p99Ms } = await client.run({ server, ...load });
    const usedMs = cpuOf(pids) - before;
    const isKnown = pids.length > 0 && !Number.isNaN(usedMs);
    return { p50Ms, p99Ms, cpuUs: isKnown ? (usedMs * 1_000) / (load.pairs * load.messages) : null };
  };
  const [hub, rival] = contenders;
  for (const contender of contenders) await side(contender, WARM_UP);
  const found = loads.map(() => new Array<readonly [WakeSide, WakeSide]>());
  for (let round = 0; round < rounds; round++) {
    for (const [at, load] of loads.entries()) {
      const sides = [await side(hub, load), await side(rival, load)] as const;
      const told = sides.map(({ p50Ms }) => p50Ms.toFixed(2));
      console.error(`${name}, ${load.pairs} pairs: ${told[0]} ms, ${other} ${told[1]} ms`);
      found[at]?.push(sides);
    }
  }
  return loads.map(({ pairs, delayS }, at) => {
    const own = found[at] ?? [];
    const sides = [medians(own.map(([of]) => of)), medians(own.map(([, of]) => of))] as const;
    const ratio = median(own.map(([one, two]) => one.p50Ms / two.p50Ms));
    return { name: delayS > 0 ? `${name}, delay of ${delayS} s` : name, other, pairs, sides, ratio };
  });
}

/** NaN when one cannot be read. */
function cpuOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + (readCpuMs(pid) ?? Number.NaN), 0);
}

function medians(sides: readonly WakeSide[]): WakeSide {
  const of = (pick: (side: WakeSide) => number): number => median(sides.map(pick));
  const cpuUs = sides.flatMap((side) => side.cpuUs ?? []);
  return {
    p50Ms: of(({ p50Ms }) => p50Ms),
    p99Ms: of(({ p99Ms }) => p99Ms),
    cpuUs: cpuUs.length === 0 ? null : median(cpuUs),
  };
}
