/**
 * A worker: registers a node, takes tasks with task/next, runs the handler for each, and reports its result or error.
 * Sends heartbeats, extends leases, follows the events of its node, and survives restarts of the hub. Must not: know
 * what a task is about.
 *
 * A task belongs to the worker while the hub accepts its epoch (fencing token). When the hub refuses it, because the
 * epoch is old or the task was ended or taken away, the task is lost: its handler's signal aborts, and the result is
 * dropped. An event of the node that may mean a loss makes the worker ask the hub at once.
 */
import {
  type CallOptions,
  LuxHubError,
  isTemporary,
  linkedController,
  now,
  sleep,
  sleepUnlessAborted,
} from "./http.ts";
import type { AnswerOf, Call, RequestOf } from "./call.ts";
import type { StreamItem, StreamOptions } from "./events.ts";
import type {
  Context,
  EventKind,
  Failure,
  FileRecord,
  Lease,
  Lesson,
  Question,
  Task,
  TaskInput,
  Variant,
} from "./types.ts";
import { OutputSender } from "./output.ts";
import { fitted, resultOf } from "./result.ts";
import { TimeLimit } from "./time-limit.ts";
import type { FileContent, UploadFields } from "./upload.ts";

/**
 * Does one task and returns its result: an object with `problem`, `improvement`, `lesson` or `output`, in which the rest
 * is filled in, or any other JSON, which is the `output`. If it throws, the attempt has failed; the hub retries the task,
 * except after a FatalError.
 */
export type Handler<V extends Variant = "A"> = (task: Task<V>, context: TaskContext<V>) => unknown;

export type TaskContext<V extends Variant = "A"> = {
  /**
   * Aborts when the result is no longer wanted: the task was taken away, its time is over, or the worker gives it back.
   */
  readonly signal: AbortSignal;
  /** The fencing token of this attempt. */
  readonly epoch: number;
  /** Extends the lease, and records a progress note. The worker also extends the lease periodically. */
  readonly extend: (note?: string) => Promise<void>;
  /** The tasks on which it depends, in that order, with their whole results and files. */
  readonly inputs: readonly TaskInput<V>[];
  /** What the last worker of the task has saved for this one; undefined: nothing. */
  readonly checkpoint: unknown;
  /** The last attempts that failed, oldest first. */
  readonly failures: readonly Failure[];
  /** What the last completed tasks of its type have taught, newest first. */
  readonly lessons: readonly Lesson[];
  /**
   * Adds to the output of this attempt, which people can read while it runs. Sent every second, and before the result.
   * Never waits: while the hub is too slow or away, what exceeds 256 KiB is dropped, oldest first.
   */
  readonly output: (text: string) => void;
  /** The questions of earlier attempts with their answers, oldest first. */
  readonly answers: readonly Question[];
  /**
   * Asks a person, or another agent, and waits for the answer: any JSON, or null when there was none in time. While the
   * question is open, the time limits of the task and of the handler do not run; afterwards both begin again in full. A
   * question that an earlier attempt asked in the same words is not asked again. With `park` the task goes back to the
   * hub until the answer is there, and the handler ends: the next attempt asks again, and gets the answer at once.
   */
  readonly ask: (question: string, options?: AskOptions) => Promise<unknown>;
  /** Saves any JSON of at most 64 KiB for the next attempt, if this one does not finish. Extends the lease. */
  readonly saveCheckpoint: (data: unknown) => Promise<void>;
  /**
   * Reports what steps of the work have used: each model call once. Do not repeat it: what cannot be sent now is sent
   * with the next request about the task. Returns the dollars that the task may still cost; null if it has no limit, or
   * the hub cannot be reached. A task that has cost too much is lost.
   */
  readonly reportUsage: (
    used: Used | readonly Used[],
    /** `later`: with the next request about the task, so that a result that is there is not lost to its limit. */
    options?: { readonly later?: boolean },
  ) => Promise<number | null>;
};

export type AskOptions = {
  /** Answers to choose from; others are possible too. */
  readonly choices?: readonly string[] | undefined;
  /** The JSON Schema of the answer; the hub shows it. */
  readonly schema?: Readonly<Record<string, unknown>> | undefined;
  /** How long the question waits, in seconds; by default a day. */
  readonly within?: number | undefined;
  readonly park?: boolean | undefined;
};
/** What one step of the work has used; the worker numbers the steps. */
export type Used = Omit<UsageReport, "seq">;
type UsageReport = NonNullable<RequestOf<"task/extend">["usage"]>[number];

/** Thrown by a handler if no worker can do the task: the task fails permanently, without a retry. */
export class FatalError extends Error {
  override readonly name = "FatalError";
}

/**
 * Thrown by a handler if the fault is the worker's and not the task's, such as a login that has expired: the task goes
 * back to the hub, the attempt does not count, and the worker pauses, each time for longer. After OUTAGES_MAX in a row
 * the worker drains its node, so that a person looks.
 */
export class WorkerOutage extends Error {
  override readonly name = "WorkerOutage";
  /** Whether the limit key of the task rests as long as the worker: its provider wants fewer requests. */
  readonly isRateLimit: boolean;

  constructor(message: string, { isRateLimit = false }: { readonly isRateLimit?: boolean } = {}) {
    super(message);
    this.isRateLimit = isRateLimit;
  }
}

export type WorkerOptions<V extends Variant = "A"> = {
  /** The display name of the node; by default its id. */
  readonly name?: string | undefined;
  readonly capabilities?: RequestOf<"node/register">["capabilities"];
  /** What the node has, as amounts by name: tasks may require some of it. */
  readonly resources?: RequestOf<"node/register">["resources"];
  /** Takes only open tasks of these types. */
  readonly taskTypes?: readonly string[] | undefined;
  /** With `capabilities`: also takes open tasks without a type. */
  readonly untyped?: boolean | undefined;
  /** How many tasks it does at once; by default 1. */
  readonly concurrency?: number | undefined;
  /** Stops the worker in order: it takes no more tasks, finishes those it has, and leaves the hub. */
  readonly signal?: AbortSignal | undefined;
  /** Stops it now: it aborts its handlers, gives their tasks back, and leaves the hub. */
  readonly release?: AbortSignal | undefined;
  /**
   * How long a handler may take, in milliseconds; then its signal aborts and the attempt fails. By default the
   * `max_run_s` of its task, if it has one; null: without a limit of the worker's own.
   */
  readonly timeoutMs?: number | null | undefined;
  /**
   * How long a handler may take to end after its signal, in milliseconds; then the worker goes on while it still runs. By
   * default 10,000.
   */
  readonly graceMs?: number | undefined;
  /** Called with each event of the worker, for a log. */
  readonly onEvent?: ((event: WorkerEvent<V>) => void) | undefined;
};

export type WorkerEvent<V extends Variant = "A"> =
  | { readonly kind: "registered"; readonly nodeId: string }
  | { readonly kind: "started"; readonly task: Task<V>; readonly epoch: number }
  | { readonly kind: "completed"; readonly task: Task<V>; readonly luxPaid: number }
  | { readonly kind: "failed"; readonly task: Task<V>; readonly error: unknown }
  | { readonly kind: "released"; readonly task: Task<V> }
  /** After an outage: the worker takes no task for so long, or until a person ends the draining of its node. */
  | {
      readonly kind: "resting";
      readonly error: unknown;
      readonly forMs: number;
      readonly isDraining: boolean;
    }
  /** A question of its handler gave the task back until there is an answer. */
  | { readonly kind: "parked"; readonly task: Task<V> }
  /** The task was taken away; the error is the hub's refusal. */
  | { readonly kind: "lost"; readonly task: Task<V>; readonly error: LuxHubError }
  /** A fault that the worker survives. */
  | { readonly kind: "fault"; readonly error: unknown }
  | { readonly kind: "left"; readonly nodeId: string };

/**
 * Runs a worker until a signal stops it.
 * @throws {LuxHubError} when the hub refuses the worker, for a wrong secret for example
 */
export function runWorker<V extends Variant>(
  hub: WorkersHub<V>,
  nodeId: string,
  handler: Handler<V>,
  options: WorkerOptions<V>,
): Promise<void> {
  return new Worker(hub, nodeId, handler, options).run();
}

/** The methods of the client that a worker needs. */
export type WorkersHub<V extends Variant> = {
  readonly call: Call<V>;
  readonly stream: (nodeId: string, options: StreamOptions) => AsyncGenerator<StreamItem, void, undefined>;
  readonly upload: (content: FileContent, fields: UploadFields, options: CallOptions) => Promise<FileRecord>;
};

/** The worker waits for an unavailable hub, however long. */
const FOREVER = { forMs: Number.POSITIVE_INFINITY };
const WAIT_S = 300;
/** The pause after a fault, and after an answer that came at once and without a task. */
const PAUSE_MS = 1_000;
const GRACE_MS = 10_000;
/** How long a worker that ends now tries to tell the hub. */
const LAST_WORD_MS = 2_000;
/** The pauses after outages: 1, 2, 4 … 10 minutes. */
const REST_FIRST_MS = 60_000;
const REST_MAX_MS = 600_000;
/** So many outages in a row drain the node. */
const OUTAGES_MAX = 6;
const REASON_MAX_CHARS = 500;
/** How long a refused event stream is asked for in quick succession. */
const STREAM_RETRY_MS = 10_000;
/** How often a worker whose event stream is refused asks for lost tasks, and for the stream. */
const NO_STREAM_MS = 30_000;
/** The longest that a question waits for its answer. */
const QUESTION_MAX_S = 604_800;
/** Timers of JavaScript cannot wait longer: the hub alone enforces a longer limit. */
const TIMER_MAX_MS = 2 ** 31 - 1;
/** The events after which a task may no longer be its holder's. */
const MAY_BE_LOST: ReadonlySet<string> = new Set<EventKind>([
  "task.attempt_failed",
  "task.completed",
  "task.deleted",
  "task.failed",
  "task.released",
  "task.requeued",
  "task.revoked",
  "task.timed_out",
]);
/**
 * How long a task must look like another worker's before we believe it: the answer that hands it to us may be on its
 * way.
 */
const SUCCESSOR_MS = 2_000;
const ERROR_MAX_CHARS = 4_000;
/** Inputs of a task in one response. */
const INPUTS_TOGETHER = 100;
/** Usage reports in one request. */
const USAGE_TOGETHER = 20;
/** The codes with which the hub refuses the usage of a request. */
const WRONG_USAGE: readonly string[] = ["invalid_request", "usage_limit"];
/** The codes with which the hub refuses a task that is no longer this worker's. */
const LOST: readonly string[] = [
  "stale_lease",
  "not_assigned_to_node",
  "task_not_assigned",
  "task_completed",
  "task_failed",
  "task_not_found",
];

/** What task/next has handed out. */
type Given<V extends Variant> = {
  readonly task: Task<V>;
  readonly lease: Lease;
  readonly context?: Context<V> | undefined;
};

type Job<V extends Variant> = {
  readonly task: Task<V>;
  readonly context: Context<V>;
  readonly epoch: number;
  /** Aborts when the result is no longer wanted. */
  readonly abort: AbortController;
  /** Aborts when the outcome has been reported, or can no longer be. */
  readonly end: AbortController;
  /** Usage that has not reached the hub yet, oldest first. */
  unsent: readonly UsageReport[];
  /** Dollars that the task may still cost, as the hub said last; null: it has no limit. */
  budgetLeft: number | null;
  /** How many steps have reported usage. */
  steps: number;
  /** The handler has ended, and its outcome is being reported. */
  isEnding: boolean;
  lost: LuxHubError | null;
  /** The handler took too long. */
  timedOut: Error | null;
  readonly output: OutputSender;
  /** A question gives the task back. */
  isParked: boolean;
};

class Worker<V extends Variant> {
  readonly #call: Call<V>;
  readonly #stream: WorkersHub<V>["stream"];
  readonly #upload: WorkersHub<V>["upload"];
  readonly #nodeId: string;
  readonly #handler: Handler<V>;
  readonly #options: WorkerOptions<V>;
  readonly #concurrency: number;
  readonly #graceMs: number;
  /** Aborts when the worker must take no more tasks. */
  readonly #stop: AbortController;
  /** Aborts when nothing more may be reported about the tasks. */
  readonly #end = new AbortController();
  readonly #jobs = new Set<Job<V>>();
  /** Ends the wait of #jobEnd(). */
  #wake = (): void => {};
  /** How many outages there were since a handler has last done something, and until when the worker rests. */
  #outages = 0;
  #restsUntil = 0;
  /** The refusal of the hub that ends the worker. */
  #refusal: LuxHubError | null = null;

  constructor(
    { call, stream, upload }: WorkersHub<V>,
    nodeId: string,
    handler: Handler<V>,
    options: WorkerOptions<V>,
  ) {
    this.#call = call;
    this.#stream = stream;
    this.#upload = upload;
    this.#nodeId = nodeId;
    this.#handler = handler;
    this.#options = options;
    this.#concurrency = options.concurrency ?? 1;
    this.#graceMs = options.graceMs ?? GRACE_MS;
    this.#stop = linkedController(options.signal);
    this.#stop.signal.addEventListener("abort", () => this.#wake());
  }

  async run(): Promise<void> {
    const { release } = this.#options;
    const onRelease = (): void => this.#release(release?.reason);
    release?.addEventListener("abort", onRelease, { signal: this.#end.signal });
    if (release?.aborted) onRelease();
    const heartbeats = new AbortController();
    try {
      const beating = this.#sendHeartbeats(await this.#register(), heartbeats.signal);
      void this.#followEvents(await this.#lastEventId(), heartbeats.signal);
      await this.#takeTasks();
      if (this.#jobs.size > 0 && this.#refusal === null) await this.#giveBackRest();
      while (this.#jobs.size > 0) await this.#jobEnd();
      heartbeats.abort();
      await beating;
      if (this.#refusal === null) await this.#leave(); // after a refusal another worker may run for the node
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    } finally {
      heartbeats.abort();
      this.#stop.abort();
      this.#end.abort();
    }
    if (this.#refusal !== null) throw this.#refusal;
  }

  #release(reason: unknown): void {
    this.#stop.abort();
    for (const { abort } of this.#jobs) abort.abort(reason);
  }

  /** Aborts the controller a moment after the worker was told to end now. */
  #hurry(controller: AbortController): void {
    const { release } = this.#options;
    const { signal } = controller;
    const end = (): void => void sleepUnlessAborted(LAST_WORD_MS, signal).then(() => controller.abort());
    if (release?.aborted) end();
    else release?.addEventListener("abort", end, { signal });
  }

  // ---- The node

  /** Returns the interval of the heartbeats in milliseconds. */
  async #register(): Promise<number> {
    const { name = this.#nodeId, capabilities, resources } = this.#options;
    const { heartbeat_interval } = await this.#call(
      "node/register",
      {
        node_id: this.#nodeId,
        name,
        capabilities,
        resources,
        max_tasks: this.#concurrency,
        auto_assign: false,
      },
      { signal: this.#stop.signal, retry: FOREVER },
    );
    this.#emit({ kind: "registered", nodeId: this.#nodeId });
    return heartbeat_interval * 1_000;
  }

  /** Keeps the node online while no task/next waits. */
  async #sendHeartbeats(everyMs: number, signal: AbortSignal): Promise<void> {
    while (await sleepUnlessAborted(everyMs, signal)) {
      try {
        const { tasks_assigned } = await this.#call(
          "node/heartbeat",
          { node_id: this.#nodeId },
          { signal, retry: { forMs: everyMs } },
        );
        // The hub took the node for dead meanwhile, or somebody took a task from it.
        if (tasks_assigned < this.#jobs.size) await this.#findLost();
      } catch (error) {
        if (!signal.aborted) await this.#survive(error);
      }
    }
  }

  /** Where the stream of events begins: before the first task. Undefined if the hub does not say. */
  async #lastEventId(): Promise<number | undefined> {
    try {
      return (await this.#call("events", { limit: 1 }, { signal: this.#stop.signal, retry: FOREVER })).cursor;
    } catch {
      return undefined; // the stream begins a moment later
    }
  }

  /**
   * Follows the events of the node, so that a task that is cancelled or taken away is lost at once. If the hub refuses
   * the stream, asks for lost tasks now and then. Never rejects.
   */
  async #followEvents(lastEventId: number | undefined, signal: AbortSignal): Promise<void> {
    let isRefused = false;
    for (let last = lastEventId; !signal.aborted;) {
      try {
        const options = { signal, lastEventId: last, retry: { forMs: STREAM_RETRY_MS } };
        for await (const { id, event, data } of this.#stream(this.#nodeId, options)) {
          last = id;
          isRefused = false;
          if (event === "gap") await this.#findLost();
          else if (event !== "message" && MAY_BE_LOST.has(event))
            for (const job of this.#jobs) if (job.task.task_id === data.task_id) void this.#check(job);
        }
      } catch (error) {
        if (signal.aborted) return;
        if (!isRefused) this.#emit({ kind: "fault", error });
        isRefused = true;
      }
      if (await sleepUnlessAborted(NO_STREAM_MS, signal)) await this.#findLost();
    }
  }

  /** Reports a failure only as an event: without heartbeats the node soon goes offline anyway. */
  async #leave(): Promise<void> {
    const over = linkedController(this.#end.signal);
    this.#hurry(over);
    try {
      const options = { signal: over.signal, retry: { forMs: GRACE_MS } };
      await this.#call("node/leave", { node_id: this.#nodeId }, options);
      this.#emit({ kind: "left", nodeId: this.#nodeId });
    } catch (error) {
      this.#emit({ kind: "fault", error });
    } finally {
      over.abort();
    }
  }

  /** Handles a fault of a call in a loop: registers the node again, ends a worker that the hub refuses, or pauses. */
  async #survive(fault: unknown): Promise<void> {
    if (fault instanceof LuxHubError && fault.code === "node_not_found") {
      try {
        await this.#register();
        return;
      } catch (error) {
        fault = error;
      }
    }
    if (this.#stop.signal.aborted) return;
    this.#emit({ kind: "fault", error: fault });
    if (fault instanceof LuxHubError && fault.status < 500 && fault.status !== 409 && !isTemporary(fault)) {
      this.#refusal = fault;
      this.#stop.abort();
    }
    await sleepUnlessAborted(PAUSE_MS, this.#stop.signal);
  }

  // ---- Its tasks

  async #takeTasks(): Promise<void> {
    const { signal } = this.#stop;
    await this.#resume();
    while (!signal.aborted) {
      if (this.#jobs.size >= this.#concurrency) {
        await this.#jobEnd();
        continue;
      }
      if (now() < this.#restsUntil) {
        await sleepUnlessAborted(this.#restsUntil - now(), signal);
        continue;
      }
      const askedAt = now();
      const taken = await this.#next({ wait: WAIT_S, task_types: this.#taskTypes() });
      if (signal.aborted) return;
      if (isGiven(taken)) this.#start(taken);
      else if (now() - askedAt < PAUSE_MS) await sleepUnlessAborted(PAUSE_MS, signal); // the node drains, or the hub stops
    }
  }

  /** The types of open tasks that it takes: an untyped task matches none of them. Undefined: all. */
  #taskTypes(): readonly string[] | undefined {
    const { taskTypes, untyped = false, capabilities = [] } = this.#options;
    if (taskTypes !== undefined || untyped) return taskTypes;
    const words = typeof capabilities === "string" ? capabilities.split(",") : capabilities;
    const types = words.map((word) => word.trim()).filter((word) => word !== "");
    return types.length === 0 ? undefined : types;
  }

  /**
   * Resumes the tasks that the node had started before this worker. The hub hands them out in a circle and counts each
   * time as a restart of the task, so each is asked for once.
   */
  async #resume(): Promise<void> {
    const started = await this.#countStarted();
    const found = new Map<string, Given<V>>();
    for (let asked = 0; asked < Math.min(started, this.#concurrency); asked++) {
      const given = await this.#next({ resume: true });
      if (!isGiven(given)) break;
      const { task_id } = given.task;
      const isKnown = found.has(task_id); // another one ended meanwhile
      found.set(task_id, given);
      if (isKnown) break;
    }
    if (this.#stop.signal.aborted) return;
    for (const given of found.values()) this.#start(given);
    if (started > this.#concurrency) await this.#giveBackRest();
  }

  /** How many tasks the node has started: all, or more than this worker runs at once. 0 after a fault. */
  async #countStarted(): Promise<number> {
    const { signal } = this.#stop;
    let started = 0;
    try {
      for (let cursor: string | undefined; started <= this.#concurrency;) {
        const held = { node_id: this.#nodeId, status: "assigned", per_page: 50, cursor } as const;
        const page = await this.#call("task/list", held, { signal, retry: FOREVER });
        started += page.tasks.filter((task) => task.started_at !== null).length;
        if (page.next_cursor === null) break;
        cursor = page.next_cursor;
      }
      return started;
    } catch (error) {
      if (!signal.aborted) await this.#survive(error);
      return 0;
    }
  }

  /** Releases the tasks that the node holds and this worker does not run, because its jobs may take long. */
  async #giveBackRest(): Promise<void> {
    const own = new Set([...this.#jobs].map(({ task }) => task.task_id));
    const over = linkedController(this.#end.signal);
    this.#hurry(over);
    const options = { signal: over.signal };
    try {
      for (let cursor: string | undefined; ;) {
        const held = { node_id: this.#nodeId, status: "assigned", per_page: 50, cursor } as const;
        const { tasks, next_cursor } = await this.#call("task/list", held, options);
        for (const { task_id } of tasks) if (!own.has(task_id)) await this.#giveBackOther(task_id, options);
        if (next_cursor === null) return;
        cursor = next_cursor;
      }
    } catch (error) {
      this.#emit({ kind: "fault", error });
    } finally {
      over.abort();
    }
  }

  /** What an earlier worker of the node did may be done only now, so that the task is no longer the node's. */
  async #giveBackOther(task_id: string, options: CallOptions): Promise<void> {
    try {
      await this.#call("task/release", { task_id, node_id: this.#nodeId }, options);
    } catch (error) {
      if (!isLoss(error)) throw error;
    }
  }

  /** Calls task/next; null when that failed. */
  async #next(asked: Omit<RequestOf<"task/next">, "node_id">): Promise<AnswerOf<"task/next", V> | null> {
    const { signal } = this.#stop;
    try {
      // Repeated without end with one Idempotency-Key, so that no task is lost whose dispatch did not reach us.
      return await this.#call("task/next", { node_id: this.#nodeId, ...asked }, { signal, retry: FOREVER });
    } catch (error) {
      if (!signal.aborted) await this.#survive(error);
      return null;
    }
  }

  #start({ task, lease: { epoch }, context = {} }: Given<V>): void {
    const end = linkedController(this.#end.signal);
    const job: Job<V> = {
      task,
      context,
      epoch,
      abort: new AbortController(),
      end,
      unsent: [],
      budgetLeft: null,
      steps: 0,
      isEnding: false,
      lost: null,
      timedOut: null,
      output: this.#outputOf({ task, epoch }, end.signal),
      isParked: false,
    };
    for (const before of this.#jobs)
      if (before.task.task_id === task.task_id) this.#lose(before, handedOutAgain()); // the hub had taken it away
    this.#jobs.add(job);
    this.#emit({ kind: "started", task, epoch });
    void this.#extendLease(job);
    void this.#work(job).finally(() => {
      this.#jobs.delete(job);
      job.output.stop();
      job.end.abort();
      this.#wake();
    });
  }

  #outputOf(held: Pick<Job<V>, "task" | "epoch">, signal: AbortSignal): OutputSender {
    return new OutputSender(async (offset, data) => {
      const piece = { ...this.#holder(held), offset, data };
      const { next_offset } = await this.#call("task/output", piece, { signal, retry: { forMs: 0 } });
      return next_offset;
    }, signal);
  }

  /** Resolves when a job ends, or when the worker must stop. */
  #jobEnd(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  /** Runs the handler and reports its outcome. Never rejects. */
  async #work(job: Job<V>): Promise<void> {
    const outcome = await this.#handle(job);
    job.isEnding = true;
    const { task, lost, timedOut } = job;
    this.#hurry(job.end);
    try {
      if (job.isParked) return this.#emit({ kind: "parked", task });
      if (lost !== null) return await this.#afterLoss(job, lost);
      // A task that is given back is another worker's as soon as it can be.
      if (timedOut !== null || outcome.isDone || !job.abort.signal.aborted) await job.output.end();
      if (timedOut !== null) await this.#fail(job, timedOut);
      else if (outcome.isDone) await this.#complete(job, outcome.result);
      else if (job.abort.signal.aborted) await this.#giveBack(job);
      else if (outcome.error instanceof WorkerOutage) await this.#rest(job, outcome.error);
      else await this.#fail(job, outcome.error);
    } catch (error) {
      this.#emit(isLoss(error) ? { kind: "lost", task, error } : { kind: "fault", error });
      if (isLoss(error)) await this.#afterLoss(job, error);
    }
  }

  async #afterLoss(job: Job<V>, error: LuxHubError): Promise<void> {
    if (error.code === "stale_lease") await this.#findSuccessor(job);
  }

  /**
   * Ends this worker when the hub handed the task to another worker of the same node, because only the newest may
   * continue. Never rejects.
   */
  async #findSuccessor(job: Job<V>): Promise<void> {
    const { task_id } = job.task;
    const isOurs = (): boolean =>
      [...this.#jobs].some((other) => other !== job && other.task.task_id === task_id);
    const isAnothers = async (): Promise<boolean> => {
      const options = { signal: job.end.signal, retry: FOREVER };
      const { task } = await this.#call("task/{task_id}", { task_id }, options);
      const isHeld = task.status !== "completed" && task.status !== "failed" && task.started_at !== null;
      return isHeld && task.assigned_node === this.#nodeId && !isOurs();
    };
    try {
      if (!(await isAnothers())) return;
      await sleep(SUCCESSOR_MS, job.end.signal);
      if (!(await isAnothers())) return;
    } catch {
      return; // the task was deleted, or this worker ends
    }
    this.#refusal ??= superseded(this.#nodeId);
    this.#stop.abort();
    await this.#findLost(job);
  }

  /** How long the handler may take; null: without a limit of the worker's own. */
  #timeoutOf({ max_run_s }: Task<V>): number | null {
    const { timeoutMs = max_run_s === null ? null : max_run_s * 1_000 } = this.#options;
    return timeoutMs !== null && timeoutMs <= TIMER_MAX_MS ? timeoutMs : null;
  }

  /** Runs the handler. It counts as failed if it takes too long, or does not end in time after its signal. */
  #handle(job: Job<V>): Promise<Outcome> {
    const { task, epoch, abort } = job;
    const { checkpoint, failures = [], answers = [], lessons = [] } = job.context;
    const unused = [...answers];
    const { signal } = abort;
    const send = async (fields: Extension): Promise<void> => {
      const refusal = await this.#extend(job, fields);
      if (refusal !== null) throw refusal;
    };
    const context: Omit<TaskContext<V>, "inputs"> = {
      signal,
      epoch,
      extend: (note) => send({ note }),
      checkpoint: checkpoint?.data,
      failures,
      lessons,
      answers,
      ask: async (question, asked = {}) => {
        const known = unused.findIndex((one) => one.state !== "open" && isSameQuestion(one, question, asked));
        if (known !== -1) return unused.splice(known, 1)[0]?.answer;
        const { choices, schema, within, park } = asked;
        limit.pause();
        try {
          return await this.#ask(job, { question, choices, schema, within_s: within, park });
        } finally {
          limit.resume();
        }
      },
      saveCheckpoint: (data) => send({ checkpoint: data }),
      output: (text) => job.output.write(text),
      reportUsage: (used, { later = false } = {}) => this.#reportUsage(job, used, later),
    };
    const timeoutMs = this.#timeoutOf(task);
    const limit = new TimeLimit(timeoutMs, () => {
      if (signal.aborted) return;
      job.timedOut = new DOMException(
        `The handler timed out after ${(timeoutMs ?? 0) / 1_000} s.`,
        "TimeoutError",
      );
      abort.abort(job.timedOut);
    });
    return new Promise((resolve) => {
      const ended = new AbortController();
      const end = (outcome: Outcome): void => {
        ended.abort();
        limit.end();
        resolve(outcome);
      };
      const onAbort = async (): Promise<void> => {
        if (await sleepUnlessAborted(this.#graceMs, ended.signal))
          end({ isDone: false, error: signal.reason });
      };
      signal.addEventListener("abort", () => void onAbort(), { signal: ended.signal });
      limit.resume();
      Promise.resolve()
        .then(async () => this.#handler(task, { ...context, inputs: await this.#inputsOf(job) }))
        .then(
          (result) => end({ isDone: true, result }),
          (error: unknown) => end({ isDone: false, error }),
        );
    });
  }

  /** The inputs of a task, whole: what had no room in its context is read page by page. */
  async #inputsOf({
    task: { task_id },
    context,
    abort: { signal },
  }: Job<V>): Promise<readonly TaskInput<V>[]> {
    const given = context.inputs ?? [];
    const from = given.findIndex(({ omitted }) => omitted === true);
    if (from === -1) return given;
    const inputs = given.slice(0, from);
    for (let cursor: string | null = String(from); cursor !== null;) {
      const options = { signal, retry: FOREVER };
      const page: AnswerOf<"task/{task_id}/inputs", V> = await this.#call(
        "task/{task_id}/inputs",
        { task_id, cursor, limit: INPUTS_TOGETHER },
        options,
      );
      inputs.push(...page.inputs);
      cursor = page.next_cursor;
    }
    return inputs;
  }

  /** Returns the answer; null: there was none in time. Rejects when the task is lost or parked. */
  async #ask(job: Job<V>, fields: Omit<RequestOf<"task/ask">, keyof Holder | "wait">): Promise<unknown> {
    const { signal } = job.abort;
    signal.throwIfAborted();
    const park = fields.park === true;
    if (park) {
      // The task is no longer this worker's after that: what is not sent now is lost.
      for (await this.#reportUsage(job, [], false); job.unsent.length > 0;) {
        await sleep(PAUSE_MS, signal);
        await this.#reportUsage(job, [], false);
      }
      await job.output.end();
    }
    job.isParked = park; // at once: the event that the task was released may be faster than the response
    try {
      const asked = { ...this.#holder(job), ...fields, wait: park ? 0 : QUESTION_MAX_S };
      const { question } = await this.#call("task/ask", asked, { signal, retry: FOREVER });
      if (!park) return question.answer;
    } catch (error) {
      job.isParked = false;
      if (isLoss(error)) this.#lose(job, error);
      throw error;
    }
    job.abort.abort(new DOMException("The task is parked until its question is answered.", "AbortError"));
    throw signal.reason;
  }

  async #complete(job: Job<V>, given: unknown): Promise<void> {
    const { task } = job;
    const metadata = { task_id: task.task_id, node: this.#nodeId };
    const options = { signal: job.end.signal, retry: FOREVER };
    this.#outages = 0;
    try {
      const result = await fitted(
        resultOf(given, task.title),
        async (content, name, type) =>
          (await this.#upload(content, { name, type, metadata }, options)).file_id,
      );
      const { lux_paid } = await this.#conclude(job, (usage, options) =>
        this.#call("task/complete", { ...this.#holder(job), result, usage }, options),
      );
      this.#emit({ kind: "completed", task, luxPaid: lux_paid });
    } catch (error) {
      if (isLoss(error) || job.end.signal.aborted) throw error;
      await this.#fail(job, error); // the hub refuses this result
    }
  }

  async #fail(job: Job<V>, cause: unknown): Promise<void> {
    const retry = !(cause instanceof FatalError);
    const error = textOf(cause).slice(0, ERROR_MAX_CHARS).toWellFormed();
    this.#outages = 0;
    await this.#conclude(job, (usage, options) =>
      this.#call("task/fail", { ...this.#holder(job), error, retry, usage }, options),
    );
    this.#emit({ kind: "failed", task: job.task, error: cause });
  }

  async #giveBack(
    job: Job<V>,
    fields: Pick<RequestOf<"task/release">, "reason" | "hold_s"> = {},
  ): Promise<void> {
    await this.#conclude(job, (usage, options) =>
      this.#call("task/release", { ...this.#holder(job), ...fields, usage }, options),
    );
    this.#emit({ kind: "released", task: job.task });
  }

  /** Gives a task back after an outage, and pauses. Jobs that run at the same time meet the same outage. */
  async #rest(job: Job<V>, error: WorkerOutage): Promise<void> {
    const isFirst = now() >= this.#restsUntil;
    if (isFirst) this.#outages++;
    const isDraining = this.#outages >= OUTAGES_MAX;
    const forMs = Math.min(REST_MAX_MS, REST_FIRST_MS * 2 ** (this.#outages - 1));
    if (isFirst) {
      this.#restsUntil = now() + forMs;
      this.#emit({ kind: "resting", error, forMs, isDraining });
      if (isDraining) await this.#drain(job.end.signal);
    }
    const hasKey = (job.task.limit_key ?? job.task.task_type) !== null;
    const reason = textOf(error).slice(0, REASON_MAX_CHARS).toWellFormed();
    if (!error.isRateLimit || !hasKey) return this.#giveBack(job, { reason });
    try {
      await this.#giveBack(job, { reason, hold_s: forMs / 1_000 });
    } catch (refusal) {
      if (isLoss(refusal) || job.end.signal.aborted) throw refusal;
      this.#emit({ kind: "fault", error: refusal }); // the key may not be held, and the task must go back
      await this.#giveBack(job, { reason });
    }
  }

  async #drain(signal: AbortSignal): Promise<void> {
    try {
      await this.#call("node/drain", { node_id: this.#nodeId, drain: true }, { signal });
      this.#restsUntil = now(); // until a person ends the draining
    } catch (error) {
      this.#emit({ kind: "fault", error });
    }
  }

  /** Reports the outcome of a job with the usage that is not sent yet; without it if the hub refuses that. */
  async #conclude<T>(
    job: Job<V>,
    report: (usage: UsageReport[] | undefined, options: CallOptions) => Promise<T>,
  ): Promise<T> {
    const usage = await this.#lastUsage(job);
    try {
      return await this.#insist(job, (options) => report(usage, options));
    } catch (error) {
      if (usage === undefined || !isWrongUsage(error)) throw error;
      this.#emit({ kind: "fault", error });
      return this.#insist(job, (options) => report(undefined, options));
    }
  }

  /** Sends usage until the rest fits into one request, and returns the rest. */
  async #lastUsage(job: Job<V>): Promise<UsageReport[] | undefined> {
    while (job.unsent.length > USAGE_TOGETHER) {
      const usage = job.unsent.slice(0, USAGE_TOGETHER);
      try {
        await this.#insist(job, (options) =>
          this.#call("task/extend", { ...this.#holder(job), usage }, options),
        );
      } catch (error) {
        if (!isWrongUsage(error)) throw error;
        this.#emit({ kind: "fault", error });
      }
      job.unsent = job.unsent.slice(USAGE_TOGETHER);
    }
    return job.unsent.length === 0 ? undefined : [...job.unsent];
  }

  /** Reports an outcome, however long the hub is unavailable or its disk full. */
  async #insist<T>({ end: { signal } }: Job<V>, report: (options: CallOptions) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await report({ signal, retry: FOREVER });
      } catch (error) {
        if (!(error instanceof LuxHubError) || error.status < 500) throw error;
        this.#emit({ kind: "fault", error });
        await sleep(PAUSE_MS, signal);
      }
    }
  }

  #holder({ task, epoch }: Pick<Job<V>, "task" | "epoch">): Holder {
    return { task_id: task.task_id, node_id: this.#nodeId, epoch };
  }

  // ---- Leases

  async #extendLease(job: Job<V>): Promise<void> {
    const { timeout_s } = job.task;
    if (timeout_s === null) return;
    const { signal } = job.end;
    while (job.lost === null && (await sleepUnlessAborted((timeout_s * 1_000) / 3, signal)))
      await this.#check(job);
  }

  /** Finds the jobs whose task is no longer this worker's. */
  async #findLost(except: Job<V> | null = null): Promise<void> {
    await Promise.all([...this.#jobs].map((job) => (job === except ? null : this.#check(job))));
  }

  async #check(job: Job<V>): Promise<void> {
    if (job.isEnding || job.isParked || job.lost !== null) return;
    const refusal = await this.#extend(job);
    // A refusal of the task is its loss, or the outcome was faster.
    const isFault = refusal !== null && !isLoss(refusal);
    if (isFault && job.lost === null && !job.end.signal.aborted)
      this.#emit({ kind: "fault", error: refusal });
  }

  /** Extends the lease of a job, and aborts the job if its task is lost. Returns the error, or null. */
  async #extend(job: Job<V>, fields: Extension = {}): Promise<unknown> {
    try {
      const options = { signal: job.end.signal };
      const answer = await this.#call("task/extend", { ...this.#holder(job), ...fields }, options);
      if (answer.status === "failed") throw spentTooMuch(answer.task.failure?.message ?? null);
      job.budgetLeft = answer.budget_left_usd;
      return null;
    } catch (error) {
      if (isLoss(error)) this.#lose(job, error);
      return error;
    }
  }

  /** Sends usage, and what could not be sent before. Rejects only if the hub refuses it. */
  async #reportUsage(job: Job<V>, used: Used | readonly Used[], isLater: boolean): Promise<number | null> {
    const reports = [used].flat().map((step) => ({ ...step, seq: ++job.steps }));
    job.unsent = [...job.unsent, ...reports];
    if (isLater) return job.budgetLeft;
    while (job.unsent.length > 0) {
      const usage = job.unsent.slice(0, USAGE_TOGETHER);
      const refusal = await this.#extend(job, { usage });
      const isRefused = isLoss(refusal) || isWrongUsage(refusal);
      if (refusal !== null && !isRefused) return null; // it is sent later
      // A call at the same time may have sent some of it, too.
      const sent = new Set(usage.map(({ seq }) => seq));
      job.unsent = job.unsent.filter(({ seq }) => !sent.has(seq));
      if (isRefused) throw refusal;
    }
    return job.budgetLeft;
  }

  #lose(job: Job<V>, error: LuxHubError): void {
    // Once it ends, the report of the outcome will be refused. A parked one is no longer held.
    if (job.isEnding || job.isParked || job.lost !== null) return;
    job.lost = error;
    job.output.stop();
    job.abort.abort(error);
    this.#emit({ kind: "lost", task: job.task, error });
  }

  #emit(event: WorkerEvent<V>): void {
    this.#options.onEvent?.(event);
  }
}

/** The words of an earlier question: a repeat of it is not asked again. */
function isSameQuestion(known: Question, question: string, { choices = [], schema }: AskOptions): boolean {
  const isSame = known.question === question && known.choices.join("\n") === choices.join("\n");
  return isSame && JSON.stringify(known.schema) === JSON.stringify(schema ?? null);
}

type Extension = Pick<RequestOf<"task/extend">, "note" | "checkpoint" | "usage">;

type Holder = { readonly task_id: string; readonly node_id: string; readonly epoch: number };

type Outcome =
  { readonly isDone: true; readonly result: unknown } | { readonly isDone: false; readonly error: unknown };

function isGiven<V extends Variant>(
  answer: AnswerOf<"task/next", V> | null,
): answer is Given<V> & typeof answer {
  return answer !== null && answer.task !== null && answer.lease !== null;
}

function handedOutAgain(): LuxHubError {
  const detail = "The task was taken from this worker, which then got it again.";
  return new LuxHubError({ status: 409, code: "stale_lease", detail });
}

/** This code is not one of the hub's, which cannot distinguish two workers of one node. */
function superseded(nodeId: string): LuxHubError {
  const detail = `Another worker runs for node ${nodeId} and has taken over its tasks. Only one worker may run for a node: give each an id of its own.`;
  return new LuxHubError({ status: 409, code: "node_taken_over", detail });
}

/** The message of an error, as the hub takes it. */
function textOf(error: unknown): string {
  const text = (error instanceof Error ? error.message : String(error)).toWellFormed().replaceAll("\0", "");
  return text.trim() === "" ? "The handler failed." : text;
}

function spentTooMuch(message: string | null): LuxHubError {
  return new LuxHubError({ status: 409, code: "task_failed", detail: message ?? "The task has failed." });
}

function isWrongUsage(error: unknown): boolean {
  return error instanceof LuxHubError && WRONG_USAGE.includes(error.code);
}

/** Whether the hub refuses a task because it is no longer this worker's. */
function isLoss(error: unknown): error is LuxHubError {
  return error instanceof LuxHubError && LOST.includes(error.code);
}
