// The load client for bunqueue over TCP, by its own library: each worker repeatedly adds a job, takes the next one and
// completes it, with one call outstanding. The library is loaded from the folder in the job, so its types are written
// here.
import { createRequire } from "node:module";
import { join } from "node:path";
import { serveJobs, within } from "../job-server.ts";
import type { Measurement } from "../job.ts";
import { resultOf, taskOf } from "../scenarios.ts";
import { Tally } from "../tally.ts";
import { BullmqJob } from "./bullmq-job.ts";

type Options = Readonly<Record<string, unknown>>;
type Queue = {
  add(name: string, data: object, options: Options): Promise<unknown>;
  moveJobToCompleted(id: string, result: object, token?: string): Promise<unknown>;
};
type ManualJob = { readonly id: string; readonly token?: string };
type Taker = { getNextJob(): Promise<ManualJob | undefined> };
type Bunqueue = {
  readonly Queue: new (name: string, options: Options) => Queue;
  readonly Worker: new (name: string, processor: () => Promise<null>, options: Options) => Taker;
};
type Ends = { readonly queue: Queue; readonly taker: Taker };

const QUEUE = "bench-tcp";
const DRAIN_MS = 10_000;
/** As fast as 4 or 32. */
const CONNECTIONS = 10;
/** Kept from job to job, with its connections. */
let opened: Promise<Ends> | null = null;

async function open({ folder, port }: BullmqJob): Promise<Ends> {
  const load = createRequire(join(folder, "package.json"));
  // The checked boundary to a library that this project does not have.
  const { Queue, Worker } = (await import(load.resolve("bunqueue/client"))) as Bunqueue;
  const connection = { host: "127.0.0.1", port, poolSize: CONNECTIONS };
  const taker = new Worker(QUEUE, () => Promise.resolve(null), { connection, autorun: false });
  return { queue: new Queue(QUEUE, { connection }), taker };
}

async function repeat({ queue, taker }: Ends, job: BullmqJob, untilMs: number, tally: Tally) {
  const [task, result] = [taskOf(job.work), resultOf(job.work)];
  const timed = async <T>(call: Promise<T>): Promise<T> => {
    const sentAtMs = performance.now();
    const answer = await call;
    const now = performance.now();
    if (now <= untilMs) tally.answered(now - sentAtMs);
    return answer;
  };
  while (performance.now() <= untilMs) {
    await timed(queue.add("task", task, { durable: true }));
    const taken = await timed(taker.getNextJob());
    if (taken === undefined) {
      tally.failed("getNextJob: no job, though one was added");
      continue;
    }
    await timed(queue.moveJobToCompleted(taken.id, result, taken.token));
    tally.cyclesInAll++;
    if (performance.now() <= untilMs) tally.cycles++;
  }
}

async function measure(message: unknown): Promise<Measurement> {
  const job = BullmqJob.parse(message);
  opened ??= open(job);
  const ends = await opened;
  const tally = new Tally();
  return tally.measure(job.windowMs, (untilMs) => {
    const runs = Array.from({ length: job.workers }, () => repeat(ends, job, untilMs, tally));
    return within(job.windowMs + DRAIN_MS, "the last answers", Promise.all(runs));
  });
}

serveJobs(measure);
