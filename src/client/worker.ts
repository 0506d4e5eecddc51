/**
 * A worker: registers a node, takes tasks with task/next, runs the handler for each (handler-run.ts), and reports its
 * outcome (outcome-report.ts). Sends heartbeats, extends leases, follows the events of its node, and survives restarts of
 * the hub. An event that may mean the loss of a task makes it ask the hub at once (held-task.ts). Must not: know what a
 * task is about.
 */
import type { AnswerOf, Call, RequestOf } from "./call.ts";
import type { StreamItem, StreamOptions } from "./events.ts";
import { type Handler, WorkerOutage, type WorkerEvent } from "./handler.ts";
import { type Outcome, runHandler } from "./handler-run.ts";
import { FOREVER, type Given, HeldTask, type HolderOf, PAUSE_MS, isLoss } from "./held-task.ts";
import {
  type CallOptions,
  LuxHubError,
  isTemporary,
  linkedController,
  now,
  sleep,
  sleepUnlessAborted,
  timeOfDayAfter,
} from "./http.ts";
import { OutcomeReport, type Reporting, textOf } from "./outcome-report.ts";
import type { EventKind, Task, Variant } from "./types.ts";

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
  readonly upload: Reporting<V>["upload"];
};

const WAIT_S = 300;
const GRACE_MS = 10_000;
/** A worker that ends now tries to tell the hub. */
const LAST_WORD_MS = 2_000;
/** 1, 2, 4 … 30 minutes. */
const REST_FIRST_MS = 60_000;
const REST_MAX_MS = 1_800_000;
const REASON_MAX_CHARS = 500;
/** The name of a node, and in it the reason why its worker rests. */
const NAME_MAX_CHARS = 200;
const SHOWN_REASON_MAX_CHARS = 60;
/** While a refused event stream is asked for in quick succession. */
const STREAM_RETRY_MS = 10_000;
/** How often a worker whose event stream is refused asks for lost tasks, and for the stream. */
const NO_STREAM_MS = 30_000;
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
/** How many runs that are over the worker remembers: a copy that takes over may lack their ends. */
const OVER_MAX = 1_000;
/** The answer that hands the task to us may be on its way. */
const SUCCESSOR_MS = 2_000;

class Worker<V extends Variant> {
  readonly #call: Call<V>;
  readonly #stream: WorkersHub<V>["stream"];
  readonly #parts: HolderOf<V> & Reporting<V>;
  readonly #nodeId: string;
  readonly #handler: Handler<V>;
  readonly #options: WorkerOptions<V>;
  readonly #concurrency: number;
  readonly #graceMs: number;
  readonly #stop: AbortController;
  readonly #end = new AbortController();
  readonly #held = new Set<HeldTask<V>>();
  /** When each task began that the worker no longer does, by its id; the latest last. */
  readonly #over = new Map<string, string | null>();
  /** Tasks that may have been lost since the last task/next began: its response may still hand one of them out. */
  readonly #lostEarly = new Set<string>();
  #wake = (): void => {};
  /** Since a handler has last done something. */
  #outages = 0;
  #restsUntil = 0;
  /** In the name of the node. */
  #shownRest = "";
  #refusal: LuxHubError | null = null;

  constructor(
    { call, stream, upload }: WorkersHub<V>,
    nodeId: string,
    handler: Handler<V>,
    options: WorkerOptions<V>,
  ) {
    this.#call = call;
    this.#stream = stream;
    this.#nodeId = nodeId;
    this.#parts = {
      call,
      upload,
      nodeId,
      emit: (event) => this.#emit(event),
    };
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
      const heartbeatMs = await this.#register();
      this.#emit({ kind: "registered", nodeId: this.#nodeId });
      const beating = this.#sendHeartbeats(heartbeatMs, heartbeats.signal);
      void this.#followEvents(await this.#lastEventId(), heartbeats.signal);
      await this.#takeTasks();
      if (this.#held.size > 0 && this.#refusal === null) await this.#giveBackRest();
      while (this.#held.size > 0) await this.#taskEnd();
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
    for (const held of this.#held) held.abort.abort(reason);
  }

  /** A moment after the worker was told to end now. */
  #hurry(controller: AbortController): void {
    const { release } = this.#options;
    const { signal } = controller;
    const end = (): void => void sleepUnlessAborted(LAST_WORD_MS, signal).then(() => controller.abort());
    if (release?.aborted) end();
    else release?.addEventListener("abort", end, { signal });
  }

  // ---- The node

  async #register(): Promise<number> {
    const { name = this.#nodeId, capabilities, resources } = this.#options;
    const { heartbeat_interval } = await this.#call(
      "node/register",
      {
        node_id: this.#nodeId,
        name: `${name.slice(0, NAME_MAX_CHARS - this.#shownRest.length)}${this.#shownRest}`,
        capabilities,
        resources,
        max_tasks: this.#concurrency,
        auto_assign: false,
      },
      { signal: this.#stop.signal, retry: FOREVER },
    );
    return heartbeat_interval * 1_000;
  }

  /** The name of the node says that the worker rests, wherever nodes are shown; "": it does not. Never rejects. */
  async #showRest(text: string): Promise<void> {
    if (text === this.#shownRest) return;
    this.#shownRest = text;
    try {
      await this.#register();
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#emit({ kind: "fault", error });
    }
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
        if (tasks_assigned < this.#held.size) await this.#findLost();
        if (tasks_assigned > this.#held.size && this.#over.size > 0) await this.#giveBackOver(signal);
      } catch (error) {
        if (!signal.aborted) await this.#survive(error);
      }
    }
  }

  /** Before the first task. Undefined if the hub does not say. */
  async #lastEventId(): Promise<number | undefined> {
    try {
      return (await this.#call("events", { limit: 1 }, { signal: this.#stop.signal, retry: FOREVER })).cursor;
    } catch {
      return undefined; // the stream begins a moment later
    }
  }

  /**
   * So that a task that is taken away is lost at once. If the hub refuses the stream, asks for lost tasks now and then.
   * Never rejects.
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
          else if (event !== "message" && MAY_BE_LOST.has(event)) {
            if (data.task_id !== null) this.#lostEarly.add(data.task_id);
            for (const held of this.#held) if (held.task.task_id === data.task_id) void held.check();
          }
        }
      } catch (error) {
        if (signal.aborted) return;
        if (!isRefused) this.#emit({ kind: "fault", error });
        isRefused = true;
      }
      if (await sleepUnlessAborted(NO_STREAM_MS, signal)) await this.#findLost();
    }
  }

  /** Only an event tells of a failure: without heartbeats the node soon goes offline anyway. */
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

  /** Registers the node again, ends a worker that the hub refuses, or pauses. */
  async #survive(fault: unknown): Promise<void> {
    if (fault instanceof LuxHubError && fault.code === "node_not_found") {
      try {
        await this.#register();
        this.#emit({ kind: "registered", nodeId: this.#nodeId });
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
      if (this.#held.size >= this.#concurrency) {
        await this.#taskEnd();
        continue;
      }
      if (now() < this.#restsUntil) {
        if (await sleepUnlessAborted(this.#restsUntil - now(), signal)) await this.#showRest("");
        continue;
      }
      const askedAt = now();
      this.#lostEarly.clear();
      const taken = await this.#next({ wait: WAIT_S, task_types: this.#taskTypes() });
      if (signal.aborted) return;
      if (isGiven(taken)) this.#start(taken);
      else if (now() - askedAt < PAUSE_MS) await sleepUnlessAborted(PAUSE_MS, signal); // the node drains, or the hub stops
    }
  }

  /** An untyped task matches none of them. Undefined: all. */
  #taskTypes(): readonly string[] | undefined {
    const { taskTypes, untyped = false, capabilities = [] } = this.#options;
    if (taskTypes !== undefined || untyped) return taskTypes;
    const words = typeof capabilities === "string" ? capabilities.split(",") : capabilities;
    const types = words.map((word) => word.trim()).filter((word) => word !== "");
    return types.length === 0 ? undefined : types;
  }

  /**
   * Resumes what the node had started before this worker. The hub hands these tasks out in a circle and counts each
   * time as a restart, so each is asked for once.
   */
  async #resume(): Promise<void> {
    const started = await this.#countStarted();
    const resumed = new Map<string, Given<V>>();
    for (let i = 0; i < Math.min(started, this.#concurrency); i++) {
      const given = await this.#next({ resume: true });
      if (!isGiven(given)) break;
      const { task_id } = given.task;
      const isKnown = resumed.has(task_id); // another one ended meanwhile
      resumed.set(task_id, given);
      if (isKnown) break;
    }
    if (this.#stop.signal.aborted) return;
    for (const given of resumed.values()) this.#start(given);
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

  /** They may take long. */
  async #giveBackRest(): Promise<void> {
    const running = new Set([...this.#held].map(({ task }) => task.task_id));
    const over = linkedController(this.#end.signal);
    this.#hurry(over);
    try {
      await this.#giveBackThose(({ task_id }) => !running.has(task_id), { signal: over.signal });
    } catch (error) {
      this.#emit({ kind: "fault", error });
    } finally {
      over.abort();
    }
  }

  /** The tasks that the hub takes for running, though this worker has reported their end to a hub that is no more. */
  #giveBackOver(signal: AbortSignal): Promise<void> {
    return this.#giveBackThose(
      ({ task_id, started_at }) => started_at !== null && this.#over.get(task_id) === started_at,
      { signal },
    );
  }

  async #giveBackThose(isGivenBack: (task: Task<V>) => boolean, options: CallOptions): Promise<void> {
    for (let cursor: string | undefined; ;) {
      const held = { node_id: this.#nodeId, status: "assigned", per_page: 50, cursor } as const;
      const { tasks, next_cursor } = await this.#call("task/list", held, options);
      for (const task of tasks) if (isGivenBack(task)) await this.#giveBackOther(task.task_id, options);
      if (next_cursor === null) return;
      cursor = next_cursor;
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

  /** Null when the call failed. */
  async #next(request: Omit<RequestOf<"task/next">, "node_id">): Promise<AnswerOf<"task/next", V> | null> {
    const { signal } = this.#stop;
    try {
      // Repeated without end with one Idempotency-Key, so that no task is lost whose dispatch did not reach us.
      return await this.#call("task/next", { node_id: this.#nodeId, ...request }, { signal, retry: FOREVER });
    } catch (error) {
      if (!signal.aborted) await this.#survive(error);
      return null;
    }
  }

  #start(given: Given<V>): void {
    const { task } = given;
    for (const before of this.#held) if (before.task.task_id === task.task_id) before.lose(handedOutAgain()); // the hub had taken it away
    const held = new HeldTask<V>(this.#parts, given, linkedController(this.#end.signal));
    this.#held.add(held);
    this.#over.delete(task.task_id);
    this.#emit({ kind: "started", task, epoch: held.epoch });
    void held.keepLease();
    if (this.#lostEarly.has(task.task_id)) void held.check();
    void this.#work(held).finally(() => {
      this.#held.delete(held);
      this.#remember(task);
      held.output.stop();
      held.end.abort();
      this.#wake();
    });
  }

  #remember({ task_id, started_at }: Task<V>): void {
    if ([...this.#held].some(({ task }) => task.task_id === task_id)) return; // the hub has handed it out to us again
    this.#over.set(task_id, started_at);
    const [oldest] = this.#over.size > OVER_MAX ? this.#over.keys() : [];
    if (oldest !== undefined) this.#over.delete(oldest);
  }

  #taskEnd(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  /** Runs the handler and reports its outcome. Never rejects. */
  async #work(held: HeldTask<V>): Promise<void> {
    const { task } = held;
    const limits = { timeoutMs: this.#timeoutOf(task), graceMs: this.#graceMs };
    const outcome = await runHandler(held, this.#handler, limits);
    const mode = held.endHandler();
    this.#hurry(held.end);
    if (mode.kind === "parked") return this.#emit({ kind: "parked", task });
    if (mode.kind === "lost") return this.#afterLoss(held, mode.refusal);
    try {
      await this.#report(held, outcome);
    } catch (error) {
      this.#emit(isLoss(error) ? { kind: "lost", task, error } : { kind: "fault", error });
      if (isLoss(error)) await this.#afterLoss(held, error);
    }
  }

  async #report(held: HeldTask<V>, outcome: Outcome): Promise<void> {
    const report = new OutcomeReport(held, this.#parts);
    // A task that is given back is another worker's as soon as it can be.
    if (outcome.kind !== "aborted") await held.output.end();
    const isOutage = outcome.kind === "failed" && outcome.error instanceof WorkerOutage;
    if (outcome.kind !== "aborted" && !isOutage) this.#outages = 0;
    if (outcome.kind === "done") await report.complete(outcome.result);
    else if (outcome.kind === "aborted") await report.giveBack();
    else if (outcome.error instanceof WorkerOutage) await this.#rest(held, report, outcome.error);
    else await report.fail(outcome.error);
  }

  async #afterLoss(held: HeldTask<V>, { code }: LuxHubError): Promise<void> {
    if (code === "stale_lease") await this.#findSuccessor(held);
  }

  /** Only the newest worker of a node may continue. Never rejects. */
  async #findSuccessor(held: HeldTask<V>): Promise<void> {
    const { task_id } = held.task;
    const isOurs = (): boolean =>
      [...this.#held].some((other) => other !== held && other.task.task_id === task_id);
    const isAnothers = async (): Promise<boolean> => {
      const options = { signal: held.end.signal, retry: FOREVER };
      const { task } = await this.#call("task/{task_id}", { task_id }, options);
      const isHeld = task.status !== "completed" && task.status !== "failed" && task.started_at !== null;
      return isHeld && task.assigned_node === this.#nodeId && !isOurs();
    };
    try {
      if (!(await isAnothers())) return;
      await sleep(SUCCESSOR_MS, held.end.signal);
      if (!(await isAnothers())) return;
    } catch {
      return; // the task was deleted, or this worker ends
    }
    this.#refusal ??= superseded(this.#nodeId);
    this.#stop.abort();
    await this.#findLost(held);
  }

  /** Null: without a limit of the worker's own. */
  #timeoutOf({ max_run_s }: Task<V>): number | null {
    const { timeoutMs = max_run_s === null ? null : max_run_s * 1_000 } = this.#options;
    return timeoutMs !== null && timeoutMs <= TIMER_MAX_MS ? timeoutMs : null;
  }

  /** Tasks that run at the same time meet the same outage. */
  async #rest(held: HeldTask<V>, report: OutcomeReport<V>, error: WorkerOutage): Promise<void> {
    const isFirst = now() >= this.#restsUntil;
    if (isFirst) this.#outages++;
    const reason = textOf(error).slice(0, REASON_MAX_CHARS).toWellFormed();
    const forMs = Math.min(REST_MAX_MS, REST_FIRST_MS * 2 ** (this.#outages - 1));
    if (isFirst) {
      this.#restsUntil = now() + forMs;
      this.#emit({ kind: "resting", error, forMs });
      const shown = reason.replaceAll(/\s+/g, " ").slice(0, SHOWN_REASON_MAX_CHARS).toWellFormed();
      void this.#showRest(` (rests until ${timeOfDayAfter(forMs)} UTC: ${shown})`);
    }
    const hasKey = (held.task.limit_key ?? held.task.task_type) !== null;
    if (!error.isRateLimit || !hasKey) return report.giveBack({ reason });
    try {
      await report.giveBack({ reason, hold_s: forMs / 1_000 });
    } catch (refusal) {
      if (report.isFinal(refusal)) throw refusal;
      this.#emit({ kind: "fault", error: refusal }); // the key may not be held, and the task must go back
      await report.giveBack({ reason });
    }
  }

  async #findLost(except: HeldTask<V> | null = null): Promise<void> {
    await Promise.all([...this.#held].map((held) => (held === except ? null : held.check())));
  }

  #emit(event: WorkerEvent<V>): void {
    this.#options.onEvent?.(event);
  }
}

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
