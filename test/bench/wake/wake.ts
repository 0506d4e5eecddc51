// `bun run bench --only wake`: how long a send takes to wake a blocked receive, beside LPUSH and BLPOP of Redis, in turns.
// Both store the message and its taking durably before they answer: Redis with `appendfsync always`, on the same disk.
import { join } from "node:path";
import { makeDirectory } from "../children.ts";
import { startLoadClient } from "../load-client.ts";
import { readCpuMs } from "../machine.ts";
import { median } from "../median.ts";
import type { Options } from "../options.ts";
import { startRedis } from "../peers/bullmq.ts";
import { findRedis } from "../peers/install.ts";
import { SECRET, startHub } from "../server-under-test.ts";
import { type WakeJob, Wakes } from "./wake-job.ts";

type Load = Pick<WakeJob, "pairs" | "messages" | "pauseMs">;
/** So many pairs at once, and the messages of each in a round; 64 pairs send some 1,000 a second, which both can do. */
const LOADS: readonly Load[] = [
  { pairs: 1, messages: 200, pauseMs: 10 },
  { pairs: 64, messages: 50, pauseMs: 64 },
];

/** Before the first round: until the hub's JavaScript is compiled. */
const WARM_UP = { pairs: 64, messages: 300, pauseMs: 1 };

/** Medians over the rounds. */
export type WakeSide = { p50Ms: number; p99Ms: number; cpuUs: number | null };
/** `ratio`: of the p50, the median of the rounds' ratios. */
export type WakeRow = { pairs: number; hub: WakeSide; redis: WakeSide; ratio: number };
export type WakeReport = { redis: string; rounds: number; rows: WakeRow[] };

/** Starts a hub and a Redis, and measures them in turns. @throws when there is no Redis */
export async function measureWakes({ hub: command, dataRoot, rounds }: Options): Promise<WakeReport> {
  const program = await findRedis(makeDirectory());
  const hub = await startHub(command, dataRoot);
  const redis = await startRedis(program, dataRoot);
  const source = join(import.meta.dir, "wake-load.ts");
  const client = startLoadClient<WakeJob, Wakes>([process.execPath, source], Wakes);
  try {
    const measure = async (server: WakeJob["server"], load: Load): Promise<WakeSide> => {
      const { port, pid } = server === "luxhub" ? hub : redis;
      const before = readCpuMs(pid);
      const { p50Ms, p99Ms } = await client.run({ server, port, secret: SECRET, ...load });
      const after = readCpuMs(pid);
      const sent = load.pairs * load.messages;
      return {
        p50Ms,
        p99Ms,
        cpuUs: before === null || after === null ? null : ((after - before) * 1_000) / sent,
      };
    };
    await measure("luxhub", WARM_UP);
    await measure("redis", WARM_UP);
    const found = LOADS.map(() => new Array<{ hub: WakeSide; redis: WakeSide }>());
    for (let round = 0; round < rounds; round++) {
      for (const [at, load] of LOADS.entries()) {
        const one = { hub: await measure("luxhub", load), redis: await measure("redis", load) };
        console.error(
          `${load.pairs} pairs: hub ${one.hub.p50Ms.toFixed(2)} ms, Redis ${one.redis.p50Ms.toFixed(2)} ms`,
        );
        found[at]?.push(one);
      }
    }
    const rows = LOADS.map(({ pairs }, at): WakeRow => {
      const own = found[at] ?? [];
      return {
        pairs,
        hub: medians(own.map((one) => one.hub)),
        redis: medians(own.map((one) => one.redis)),
        ratio: median(own.map((one) => one.hub.p50Ms / one.redis.p50Ms)),
      };
    });
    return { redis: program.version, rounds, rows };
  } finally {
    await Promise.all([client.stop(), hub.stop(), redis.stop()]);
  }
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
