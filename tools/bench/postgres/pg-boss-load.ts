// The load client for pg-boss: each worker repeatedly sends, fetches and completes, with one call outstanding; a call
// carries one job or a batch. The library is loaded from the folder in the job, so its types are written here.
import { createRequire } from "node:module";
import { join } from "node:path";
import { serveJobs } from "../job-server.ts";
import type { Measurement } from "../job.ts";
import { resultOf, taskOf } from "../scenarios.ts";
import { Tally } from "../tally.ts";
import { LibraryJob } from "./library-job.ts";

type Fetched = { readonly id: string };
type Boss = {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  createQueue(name: string): Promise<void>;
  send(name: string, data: object): Promise<string | null>;
  insert(name: string, jobs: readonly object[]): Promise<unknown>;
  fetch(name: string, options: { batchSize: number }): Promise<readonly Fetched[]>;
  complete(name: string, id: string | readonly string[], data: object): Promise<unknown>;
};
type Options = { connectionString: string; max: number };
type PgBoss = { readonly PgBoss: new (options: Options) => Boss };

const QUEUE = "bench";
/** Kept from job to job, with its connections. */
let opened: Promise<Boss> | null = null;

async function open({ folder, url, pool }: LibraryJob): Promise<Boss> {
  const load = createRequire(join(folder, "package.json"));
  // The checked boundary to a library that this project does not have.
  const { PgBoss } = (await import(load.resolve("pg-boss"))) as PgBoss;
  const boss = new PgBoss({ connectionString: url, max: pool });
  boss.on("error", (error) => console.error(`pg-boss: ${error.message}`));
  await boss.start();
  await boss.createQueue(QUEUE);
  return boss;
}

async function repeat(
  boss: Boss,
  { batch, work }: Pick<LibraryJob, "batch" | "work">,
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
  const jobs = Array.from({ length: batch }, () => ({ data: task }));
  while (performance.now() <= untilMs) {
    await timed(batch === 1 ? boss.send(QUEUE, task) : boss.insert(QUEUE, jobs));
    // A worker may find fewer than it sent, when others were quicker: then it takes what the next has sent.
    for (let left = batch; left > 0;) {
      const fetched = await timed(boss.fetch(QUEUE, { batchSize: left }));
      const ids = fetched.map(({ id }) => id);
      const [only] = ids;
      if (only === undefined) continue;
      await timed(boss.complete(QUEUE, batch === 1 ? only : ids, result));
      left -= ids.length;
      tally.cyclesInAll += ids.length;
      if (performance.now() <= untilMs) tally.cycles += ids.length;
    }
  }
}

async function measure(message: unknown): Promise<Measurement> {
  const job = LibraryJob.parse(message);
  opened ??= open(job);
  const boss = await opened;
  const tally = new Tally();
  return tally.measure(job.windowMs, (untilMs) =>
    Promise.all(Array.from({ length: job.workers }, () => repeat(boss, job, untilMs, tally))),
  );
}

serveJobs(measure);
