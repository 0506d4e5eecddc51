// The load client for task cycles by POST batch: each worker repeatedly creates, claims and completes a batch of tasks
// for a node of its own, with one call outstanding. Invariant: a cycle counts when its completion returned 200.
import { z } from "zod";
import { serveJobs, within } from "../job-server.ts";
import type { Measurement } from "../job.ts";
import { RESULT, TASK } from "../scenarios.ts";
import { Tally } from "../tally.ts";

export const BatchJob = z.object({
  /** Of the hubs: the workers are spread over them. */
  ports: z.array(z.int()).min(1),
  secret: z.string(),
  workers: z.int().positive(),
  batch: z.int().positive(),
  takes: z.enum(["claim", "next"]),
  windowMs: z.number().positive(),
});
export type BatchJob = z.infer<typeof BatchJob>;

const DRAIN_MS = 10_000;
/** Once in each answer: that of a creation also has the id outside the task. */
const TASK_ID = /"task":\{"task_id":"([^"]+)"/g;
const DONE = /\{"status":200,/g;

class Worker {
  readonly #job: BatchJob;
  readonly #tally: Tally;
  readonly #hub: string;
  readonly #node: string;
  readonly #creates: string;
  readonly #nexts: string;
  readonly #result = JSON.stringify(RESULT);

  constructor(job: BatchJob, index: number, tally: Tally) {
    this.#job = job;
    this.#tally = tally;
    this.#hub = `http://127.0.0.1:${job.ports[index % job.ports.length]}/api/v1`;
    this.#node = `bench-batch-${index}`;
    const create = `{"path":"task/create","body":${JSON.stringify(TASK)}}`;
    const next = `{"path":"task/next","body":{"node_id":"${this.#node}"}}`;
    this.#creates = batchOf(new Array<string>(job.batch).fill(create));
    this.#nexts = batchOf(new Array<string>(job.batch).fill(next));
  }

  async register(): Promise<void> {
    const { status } = await this.#post(
      "node/register",
      JSON.stringify({ node_id: this.#node, name: "Bench" }),
    );
    if (status !== 200) throw new Error(`register: ${status}`);
  }

  async run(untilMs: number): Promise<void> {
    while (performance.now() <= untilMs) {
      const created = await this.#call(this.#creates, untilMs);
      const isNext = this.#job.takes === "next";
      const { text } = isNext ? await this.#call(this.#nexts, untilMs) : created;
      const ids = Array.from(text.matchAll(TASK_ID), ([, id]) => id);
      const node = this.#node;
      if (!isNext) {
        const body = (id?: string) => `{"task_id":"${id}","node_id":"${node}"}`;
        await this.#call(batchOf(ids.map((id) => `{"path":"task/claim","body":${body(id)}}`)), untilMs);
      }
      const body = (id?: string) => `{"task_id":"${id}","node_id":"${node}","result":${this.#result}}`;
      const completes = ids.map((id) => `{"path":"task/complete","body":${body(id)}}`);
      const { done } = await this.#call(batchOf(completes), untilMs);
      this.#tally.cyclesInAll += done;
      if (performance.now() <= untilMs) this.#tally.cycles += done;
    }
  }

  /** The answer's text, and how many of its requests were answered with 200: the whole batch, or it counts as a failure. */
  async #call(body: string, untilMs: number): Promise<{ text: string; done: number }> {
    const sentAtMs = performance.now();
    const { status, text } = await this.#post("batch", body);
    const now = performance.now();
    if (now <= untilMs) this.#tally.answered(now - sentAtMs);
    const done = status === 200 ? (text.match(DONE)?.length ?? 0) : 0;
    if (done !== this.#job.batch) this.#tally.failed(`${done} done: ${status} ${text.slice(0, 300)}`);
    return { text, done };
  }

  async #post(path: string, body: string): Promise<{ status: number; text: string }> {
    const headers = { "X-Matrix-Secret": this.#job.secret, "Content-Type": "application/json" };
    const answer = await fetch(`${this.#hub}/${path}`, { method: "POST", headers, body });
    return { status: answer.status, text: await answer.text() };
  }
}

function batchOf(requests: readonly string[]): string {
  return `{"requests":[${requests.join()}]}`;
}

async function measure(message: unknown): Promise<Measurement> {
  const job = BatchJob.parse(message);
  const tally = new Tally();
  const workers = Array.from({ length: job.workers }, (_, index) => new Worker(job, index, tally));
  await within(DRAIN_MS, "registering", Promise.all(workers.map((worker) => worker.register())));
  Bun.gc(true);
  return tally.measure(job.windowMs, (untilMs) => {
    const runs = workers.map((worker) => worker.run(untilMs));
    return within(job.windowMs + DRAIN_MS, "the last answers", Promise.all(runs));
  });
}

serveJobs(measure);
