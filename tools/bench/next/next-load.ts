// The workers of the dispatches, in a process of their own: each is one raw socket and one node, with one request
// outstanding. Invariant: each task is handed out once, or the round fails. It ends with its parent.
import { serveJobs, within } from "../job-server.ts";
import { TASK, registerRequest } from "../scenarios.ts";
import { type Answer, Connection, encodeRequest } from "../wire.ts";
import { type Dispatches, NextJob } from "./next-job.ts";

const LIMIT_MS = 60_000;
/** Sockets that connect at the same time. */
const OPENED_TOGETHER = 50;
/** Tasks that one request creates. */
const BATCH = 100;
/** Created tasks that no worker has yet; more are not created before. */
const AHEAD = 500;
/** Of a pull: the more, the fewer workers choose the same task. */
const PULLED = 50;
const WAIT_SECONDS = 60;
/** Until the hub has all requests of workers that are to wait. */
const SETTLE_MS = 300;
const OK = 200;
const CONFLICT = 409;
const ID_MARK = Buffer.from('"task_id":"');
const ID_LENGTH = 36;
const TASK_ID = /"task_id":"([^"]+)"/g;
const NOTHING: Dispatches = { dispatches: 0, tookMs: 0, p50Ms: 0, p99Ms: 0, conflicts: 0, clientCpu: 0 };

type Worker = { readonly connection: Connection; readonly nodeId: string; readonly next: Buffer };

class Round {
  readonly #job: NextJob;
  readonly #workers: Worker[] = [];
  readonly #free: Worker[] = [];
  #ids: string[] = [];
  readonly #createdAtMs = new Map<string, number>();
  readonly #handedOut = new Set<string>();
  readonly #latenciesMs: number[] = [];
  readonly #done = Promise.withResolvers<void>();
  #created = 0;
  #asked = 0;
  #conflicts = 0;
  #resumeCreating: (() => void) | null = null;

  constructor(job: NextJob) {
    this.#job = job;
    this.#done.promise.catch(() => {}); // awaited in run()
  }

  async prepare(): Promise<void> {
    const { port, secret, workers, tasks, way, tasksCome } = this.#job;
    for (let at = 0; at < workers; at += OPENED_TOGETHER) {
      const some = Array.from({ length: Math.min(OPENED_TOGETHER, workers - at) }, (_, i) => at + i);
      await Promise.all(
        some.map(async (index) => {
          const nodeId = `bench-${String(index).padStart(4, "0")}`;
          const connection = await Connection.open(port);
          const { status } = await connection.exchange(registerRequest(secret, nodeId));
          if (status !== OK) throw new Error(`register: ${status}`);
          const wait = tasksCome ? WAIT_SECONDS : 0;
          this.#workers.push({
            connection,
            nodeId,
            next: this.#post("task/next", { node_id: nodeId, wait }),
          });
        }),
      );
    }
    if (!tasksCome) for (let left = tasks; left > 0; left -= BATCH) await this.#create(Math.min(left, BATCH));
    for (const worker of this.#workers) worker.connection.onFail = this.#done.reject;
    if (tasksCome && way === "next") {
      for (const worker of this.#workers) this.#next(worker);
      await Bun.sleep(SETTLE_MS);
    }
    Bun.gc(true);
  }

  async run(): Promise<Dispatches> {
    const { tasks, way, tasksCome } = this.#job;
    const cpuBefore = process.cpuUsage();
    const startMs = performance.now();
    if (way === "pull") for (const worker of this.#workers) this.#pull(worker, startMs);
    else if (way === "claim") for (const worker of this.#workers) this.#claimNext(worker);
    else if (!tasksCome) for (const worker of this.#workers) this.#next(worker);
    if (tasksCome) await this.#createAll();
    await this.#done.promise;
    const tookMs = performance.now() - startMs;
    const { user, system } = process.cpuUsage(cpuBefore);
    const sorted = this.#latenciesMs.toSorted((a, b) => a - b);
    const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
    return {
      dispatches: tasks,
      tookMs,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      conflicts: this.#conflicts,
      clientCpu: (user + system) / 1_000 / tookMs,
    };
  }

  close(): void {
    for (const { connection } of this.#workers) connection.close();
  }

  async #createAll(): Promise<void> {
    const { tasks } = this.#job;
    while (this.#created < tasks) {
      await this.#create(Math.min(tasks - this.#created, BATCH));
      for (let worker = this.#free.pop(); worker; worker = this.#free.pop()) {
        if (this.#ids.length === 0) {
          this.#free.push(worker);
          break;
        }
        this.#claimNext(worker);
      }
      if (this.#created - this.#handedOut.size > AHEAD)
        await new Promise<void>((resolve) => (this.#resumeCreating = resolve));
    }
  }

  /** By fetch: the answer comes in chunks, which wire.ts does not read. */
  async #create(count: number): Promise<void> {
    const { port, secret, way } = this.#job;
    const requests = new Array(count).fill({ path: "task/create", body: TASK });
    const headers = { "X-Matrix-Secret": secret, "Content-Type": "application/json" };
    const body = JSON.stringify({ requests });
    const sentAtMs = performance.now();
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/batch`, { method: "POST", headers, body });
    const ids = idsIn(await answer.text());
    if (ids.length !== count) throw new Error(`create: ${answer.status}, ${ids.length} of ${count} created`);
    this.#created += count;
    for (const id of ids) this.#createdAtMs.set(id, sentAtMs);
    if (way === "claim") this.#ids.push(...ids);
  }

  #next(worker: Worker): void {
    const { tasks, tasksCome } = this.#job;
    if (!tasksCome && this.#asked++ >= tasks) return;
    const sentAtMs = performance.now();
    worker.connection.onAnswer = (answer) => {
      if (this.#got(answer, sentAtMs)) this.#next(worker);
    };
    worker.connection.send(worker.next);
  }

  /** Claims the next id that the worker is told, or lets it wait for one. */
  #claimNext(worker: Worker): void {
    const taskId = this.#ids.pop();
    if (taskId === undefined) {
      this.#free.push(worker);
      return;
    }
    const sentAtMs = performance.now();
    worker.connection.onAnswer = (answer) => {
      if (this.#got(answer, sentAtMs)) this.#claimNext(worker);
    };
    worker.connection.send(this.#post("task/claim", { task_id: taskId, node_id: worker.nodeId }));
  }

  /** Asks what there is; the workers have all the same answer, so each claims what it finds by chance. */
  #pull(worker: Worker, sinceMs: number): void {
    const { secret } = this.#job;
    const path = `/api/v1/task/pull?node_id=${worker.nodeId}&limit=${PULLED}`;
    worker.connection.onAnswer = ({ status, bytes, bodyStart }) => {
      if (status !== OK) return this.#fail(`pull: ${status}`);
      this.#claimOneOf(worker, idsIn(bytes.toString("latin1", bodyStart)), sinceMs);
    };
    worker.connection.send(encodeRequest("GET", path, secret, null));
  }

  #claimOneOf(worker: Worker, ids: string[], sinceMs: number): void {
    const [taskId] = ids.splice(Math.floor(Math.random() * ids.length), 1);
    if (taskId === undefined) {
      if (this.#handedOut.size < this.#job.tasks) this.#pull(worker, sinceMs);
      return;
    }
    worker.connection.onAnswer = (answer) => {
      if (answer.status === CONFLICT) {
        this.#conflicts++;
        this.#claimOneOf(worker, ids, sinceMs);
      } else if (this.#got(answer, sinceMs)) this.#pull(worker, performance.now());
    };
    worker.connection.send(this.#post("task/claim", { task_id: taskId, node_id: worker.nodeId }));
  }

  /** Counts a dispatch. False: the round is over. */
  #got({ status, bytes, bodyStart }: Answer, sentAtMs: number): boolean {
    const at = bytes.indexOf(ID_MARK, bodyStart) + ID_MARK.length;
    const taskId = bytes.toString("latin1", at, at + ID_LENGTH);
    const createdAtMs = this.#createdAtMs.get(taskId);
    if (status !== OK || at < bodyStart + ID_MARK.length || this.#handedOut.has(taskId)) {
      this.#fail(`${status} ${bytes.toString("utf8", bodyStart, bodyStart + 300)}`);
      return false;
    }
    this.#handedOut.add(taskId);
    // A dispatch may overtake the answer of the request that created the task.
    const sinceMs = this.#job.tasksCome ? (createdAtMs ?? sentAtMs) : sentAtMs;
    this.#latenciesMs.push(performance.now() - sinceMs);
    if (this.#created - this.#handedOut.size <= AHEAD / 2) this.#resumeCreating?.();
    if (this.#handedOut.size < this.#job.tasks) return true;
    this.#done.resolve();
    return false;
  }

  #fail(reason: string): void {
    this.#done.reject(new Error(reason));
  }

  #post(path: string, body: object): Buffer {
    return encodeRequest("POST", `/api/v1/${path}`, this.#job.secret, JSON.stringify(body));
  }
}

/** An answer may have the id of a task twice. */
function idsIn(text: string): string[] {
  return [...new Set(Array.from(text.matchAll(TASK_ID), ([, id = ""]) => id))];
}

let prepared: Round | null = null;

async function work(job: NextJob): Promise<Dispatches> {
  if (job.step === "prepare") {
    prepared = new Round(job);
    await within(LIMIT_MS, "preparing", prepared.prepare());
    return NOTHING;
  }
  if (prepared === null) throw new Error("nothing is prepared");
  try {
    return await within(LIMIT_MS, "the last dispatches", prepared.run());
  } finally {
    prepared.close();
    prepared = null;
  }
}

serveJobs((job) => work(NextJob.parse(job)));
