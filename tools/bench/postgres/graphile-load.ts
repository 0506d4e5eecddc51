// The load client for graphile-worker: each caller repeatedly adds a job and waits until a runner in the same process
// has completed it in the database. The library does not store the task's result. It is loaded from the folder in the
// job, so its types are written here.
import { EventEmitter } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { serveJobs } from "../job-server.ts";
import type { Measurement } from "../job.ts";
import { RESULT, type Work, taskOf } from "../scenarios.ts";
import { Tally } from "../tally.ts";
import { LibraryJob } from "./library-job.ts";

type Job = { readonly id: string };
type Runner = { readonly addJob: (identifier: string, payload: object) => Promise<Job> };
type Graphile = {
  readonly Logger: new (factory: () => () => void) => object;
  run(options: object): Promise<Runner>;
};
type Opened = { readonly runner: Runner; readonly completed: Completed };

const NAME = "bench";

/** Who waits for which job; a job may be completed before the answer to its adding is here. */
class Completed {
  readonly #early = new Set<string>();
  readonly #waiting = new Map<string, () => void>();

  tell(id: string): void {
    const resolve = this.#waiting.get(id);
    if (!resolve) this.#early.add(id);
    else if (this.#waiting.delete(id)) resolve();
  }

  of(id: string): Promise<void> {
    if (this.#early.delete(id)) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }
}

/** Kept from job to job, with its connections. */
let opened: Promise<Opened> | null = null;

async function open({ folder, url, pool, workers, batch }: LibraryJob): Promise<Opened> {
  const load = createRequire(join(folder, "package.json"));
  // The checked boundary to a library that this project does not have.
  const { Logger, run } = load("graphile-worker") as Graphile;
  const events = new EventEmitter();
  const completed = new Completed();
  events.on("job:complete", ({ job }: { job: Job }) => completed.tell(job.id));
  // As its documentation has it for much work: jobs are taken, and their ends told, many at a time.
  const inBatches = { localQueue: { size: workers + 1 }, completeJobBatchDelay: 0 };
  const one = { connectionString: url, concurrentJobs: workers, maxPoolSize: pool };
  const worker = { ...one, ...(batch > 1 && inBatches) };
  const runner = await run({
    preset: { worker: { ...worker, logger: new Logger(() => () => {}), events } },
    taskList: { [NAME]: () => Promise.resolve(void RESULT) },
  });
  return { runner, completed };
}

async function repeat(
  { runner, completed }: Opened,
  work: Work,
  untilMs: number,
  tally: Tally,
): Promise<void> {
  const task = taskOf(work);
  while (performance.now() <= untilMs) {
    const sentAtMs = performance.now();
    const { id } = await runner.addJob(NAME, task);
    await completed.of(id);
    const now = performance.now();
    tally.cyclesInAll++;
    if (now > untilMs) continue;
    tally.answered(now - sentAtMs);
    tally.cycles++;
  }
}

async function measure(message: unknown): Promise<Measurement> {
  const job = LibraryJob.parse(message);
  opened ??= open(job);
  const ends = await opened;
  const tally = new Tally();
  return tally.measure(job.windowMs, (untilMs) =>
    Promise.all(Array.from({ length: job.workers }, () => repeat(ends, job.work, untilMs, tally))),
  );
}

serveJobs(measure);
