// The load client for BullMQ: each worker repeatedly adds a job, takes the next one and completes it, with one call
// outstanding. The library is loaded from the folder in the job, so its types are written here.
import { createRequire } from "node:module";
import { join } from "node:path";
import { serveJobs } from "../job-server.ts";
import type { Measurement } from "../job.ts";
import { type Work, resultOf, taskOf } from "../scenarios.ts";
import { Tally } from "../tally.ts";
import { BullmqJob } from "./bullmq-job.ts";

type Options = Readonly<Record<string, unknown>>;
type Job = { moveToCompleted(result: object, token: string, fetchNext: boolean): Promise<unknown> };
type Queue = { add(name: string, data: object): Promise<unknown>; waitUntilReady(): Promise<unknown> };
type Taker = {
  getNextJob(token: string, options: Options): Promise<Job | undefined>;
  waitUntilReady(): Promise<unknown>;
};
type Bullmq = {
  readonly Queue: new (name: string, options: Options) => Queue;
  readonly Worker: new (name: string, processor: null, options: Options) => Taker;
};
type Ioredis = { readonly Redis: new (options: Options) => object };

/** One worker's own ends; they may share connections. */
type Worker = { readonly queue: Queue; readonly taker: Taker; readonly token: string };

const QUEUE = "bench";
/** Kept from job to job: the queue is the same, and 256 times three connections are not opened in a moment. */
let opened: Promise<readonly Worker[]> | null = null;

async function open(job: BullmqJob): Promise<readonly Worker[]> {
  const load = createRequire(join(job.folder, "package.json"));
  // The checked boundary to libraries that this project does not have.
  const { Queue, Worker } = load("bullmq") as Bullmq;
  const { Redis } = load("ioredis") as Ioredis;
  const ends = async (): Promise<Omit<Worker, "token">> => {
    const connection = new Redis({ host: "127.0.0.1", port: job.port, maxRetriesPerRequest: null });
    const queue = new Queue(QUEUE, { connection });
    // As fast as it goes: completed jobs are not kept, and nothing runs beside the calls that are measured.
    const taker = new Worker(QUEUE, null, {
      ...{ connection, autorun: false, skipStalledCheck: true, skipLockRenewal: true },
      removeOnComplete: { count: 0 },
    });
    await Promise.all([queue.waitUntilReady(), taker.waitUntilReady()]);
    return { queue, taker };
  };
  const count = job.ownConnections ? job.workers : 1;
  const all = await Promise.all(Array.from({ length: count }, ends));
  return Array.from({ length: job.workers }, (_, index) => {
    const own = all[index % count];
    if (own === undefined) throw new Error("no connection");
    return { ...own, token: `worker-${index}` };
  });
}

async function repeat(
  { queue, taker, token }: Worker,
  work: Work,
  untilMs: number,
  tally: Tally,
): Promise<void> {
  const [task, result] = [taskOf(work), resultOf(work)];
  const timed = async <T>(call: Promise<T>): Promise<T> => {
    const sentAtMs = performance.now();
    const answer = await call;
    const now = performance.now();
    if (now <= untilMs) tally.answered(now - sentAtMs);
    return answer;
  };
  while (performance.now() <= untilMs) {
    await timed(queue.add("task", task));
    const job = await timed(taker.getNextJob(token, { block: false }));
    if (job === undefined) {
      tally.failed("getNextJob: no job, though one was added");
      continue;
    }
    await timed(job.moveToCompleted(result, token, false));
    tally.cyclesInAll++;
    if (performance.now() <= untilMs) tally.cycles++;
  }
}

async function measure(message: unknown): Promise<Measurement> {
  const job = BullmqJob.parse(message);
  opened ??= open(job);
  const workers = await opened;
  const tally = new Tally();
  return tally.measure(job.windowMs, (untilMs) =>
    Promise.all(workers.map((worker) => repeat(worker, job.work, untilMs, tally))),
  );
}

serveJobs(measure);
