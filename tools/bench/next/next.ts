// `bun run bench --only next`: compares task/next with task/claim, in turns, with the same tasks, workers and hub. There
// are two cases: the tasks wait for the workers, or the workers wait for the tasks.
import { join } from "node:path";
import { startLoadClient } from "../load-client.ts";
import { readCpuMs } from "../machine.ts";
import { median } from "../median.ts";
import type { Options } from "../options.ts";
import { SECRET, startHub } from "../server-under-test.ts";
import { Dispatches, type NextJob } from "./next-job.ts";

const WORKERS = 1_000;
const TASKS = 10_000;
/** A worker without task/next loses most of its claims, which takes long. */
export const TASKS_PULLED = 200;

type Subject = Pick<NextJob, "way" | "tasksCome"> & { readonly name: string; readonly tasks: number };

const SUBJECTS: readonly Subject[] = [
  { name: "task/claim of a known id", way: "claim", tasksCome: false, tasks: TASKS },
  { name: "task/pull, then task/claim", way: "pull", tasksCome: false, tasks: TASKS_PULLED },
  { name: "task/next", way: "next", tasksCome: false, tasks: TASKS },
  { name: "task/claim of a known id", way: "claim", tasksCome: true, tasks: TASKS },
  { name: "task/next", way: "next", tasksCome: true, tasks: TASKS },
];

export type NextRow = {
  name: string;
  tasksCome: boolean;
  dispatchesPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  /** Processor time of the hub, microseconds a dispatch; null where the kernel does not tell. */
  cpuUs: number | null;
  /** Claims that came too late, for each dispatch. */
  conflicts: number;
  /** Its dispatches a second over those of claims in the same case, the median of the rounds' ratios. */
  ratio: number;
};
export type NextReport = { workers: number; tasks: number; rounds: number; rows: NextRow[] };

type Found = Dispatches & { readonly cpuUs: number | null; readonly rate: number };

export async function measureNext({ hub: command, dataRoot, rounds }: Options): Promise<NextReport> {
  const hub = await startHub(command, dataRoot);
  const source = join(import.meta.dir, "next-load.ts");
  const client = startLoadClient<NextJob, Dispatches>([process.execPath, source], Dispatches);
  try {
    const found = SUBJECTS.map(() => new Array<Found>());
    for (let round = 0; round <= rounds; round++) {
      for (const [at, { way, tasksCome, tasks, name }] of SUBJECTS.entries()) {
        const job = { port: hub.port, secret: SECRET, workers: WORKERS, tasks, way, tasksCome } as const;
        await client.run({ ...job, step: "prepare" });
        const before = readCpuMs(hub.pid);
        const one = await client.run({ ...job, step: "run" });
        const after = readCpuMs(hub.pid);
        const cpuUs = before === null || after === null ? null : ((after - before) * 1_000) / one.dispatches;
        const rate = (one.dispatches * 1_000) / one.tookMs;
        console.error(
          `${name}${tasksCome ? ", tasks come" : ""}: ${rate.toFixed(0)}/s, ${cpuUs?.toFixed(0)} µs, client ${one.clientCpu.toFixed(2)}`,
        );
        if (round > 0) found[at]?.push({ ...one, cpuUs, rate });
      }
    }
    const claims = (tasksCome: boolean): readonly Found[] =>
      found[SUBJECTS.findIndex((one) => one.way === "claim" && one.tasksCome === tasksCome)] ?? [];
    const rows = SUBJECTS.map(({ name, tasksCome }, at): NextRow => {
      const own = found[at] ?? [];
      const of = (pick: (one: Found, round: number) => number): number => median(own.map(pick));
      const cpuUs = own.flatMap((one) => one.cpuUs ?? []);
      return {
        name,
        tasksCome,
        dispatchesPerSecond: of(({ rate }) => rate),
        p50Ms: of(({ p50Ms }) => p50Ms),
        p99Ms: of(({ p99Ms }) => p99Ms),
        cpuUs: cpuUs.length === 0 ? null : median(cpuUs),
        conflicts: of(({ conflicts, dispatches }) => conflicts / dispatches),
        ratio: of(({ rate }, round) => rate / (claims(tasksCome)[round]?.rate ?? Number.NaN)),
      };
    });
    return { workers: WORKERS, tasks: TASKS, rounds, rows };
  } finally {
    await Promise.all([client.stop(), hub.stop()]);
  }
}
