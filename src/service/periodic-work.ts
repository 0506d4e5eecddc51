/**
 * The periodic work: the background jobs (chores) of the hub. choresOf() and keyChoresOf() list all of them, scheduler.ts
 * runs them.
 *
 *   database, files   notice a full disk, and notice when writes succeed again
 *   jumps             renews all leases after a clock jump or a sleep. On every hub: a leader that has not followed the
 *                     clock would take an earlier jump for a new one
 *   clock             the same after a standstill
 *   nodes             puts silent nodes offline (domain/node.ts expire) and makes their tasks open again (domain/task/core.ts
 *                     requeue)
 *   tasks             what task-chores.ts finds due: leases, start times, ended dependencies, questions, reviews, families,
 *                     groups
 *   heartbeats A, B   keeps nodes online for which a task/next waits (next.ts)
 *   schedules         creates the tasks of schedules that are due (schedules.ts)
 *   rewound           brings schedules back whose next time lies far ahead since the clock was set back (schedules.ts)
 *   put-backs         retries to put back messages and tasks whose receiver hung up (blocked-calls.ts)
 *   messages          visibility timeout: redelivers messages without an ACK, or parks them (domain/message.ts)
 *   broadcasts        removes unfinished broadcasts (domain/message.ts)
 *   balance           assigns open tasks that a failed step left behind (balancer-rounds.ts)
 *   stuck             says of ready tasks that no registered node could ever take them (stuck-tasks.ts)
 *   budgets           wakes the workers and the balancer when time opens something of the gate (next.ts)
 *   memory            collects garbage after work (memory-saver.ts)
 *   minutes           saves the numbers of the last minutes (minutes.ts)
 *   history           saves the sums of longer periods (history.ts), before `prune` removes old minutes
 *   prune             deletes messages, events and stored answers past their retention; logs undelivered messages
 *   leases            deletes advisory leases after their deadline (leases.ts)
 *   answers           deletes the oldest stored answers of a key, or of all keys, after a limit of bytes was lowered
 *   retention         deletes finished tasks and files after their retention (retention.ts)
 *   old nodes         deletes nodes that were offline for --retain-nodes and hold nothing (domain/node.ts retire)
 *   orphans           deletes the bytes of files that have no record (files.ts)
 *   uploads           removes unfinished uploads of a crashed hub, while other hubs run
 *   started           logs the event hub.started as soon as there is room, if the hub started on a full disk
 *   secrets           compares the secrets of the hubs on one database (same-secrets.ts)
 *   keys              reloads the keys, which another process may have changed, and ends the calls of keys that are no
 *                     longer valid (keys.ts)
 */
import type { Blobs } from "../blobs/blobs.ts";
import type { Change } from "../domain/change.ts";
import { accept } from "../domain/decision.ts";
import { expire } from "../domain/message.ts";
import { JOINED_THROUGH } from "../domain/model.ts";
import * as limit from "../domain/limits.ts";
import { type Clock, MINUTE_MS } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { oldMinutes } from "../store/sql/minutes.ts";
import { excessAnswers, oldAnswers, oldDeliveries, oldEvents, oldMessages } from "../store/sql/retention.ts";
import { type Query, type Store, StoreFull, StoreReadOnly } from "../store/store.ts";
import { INTERVALS } from "../variant/by-name.ts";
import { PeriodicBalancer } from "./balancer-rounds.ts";
import type { FileService } from "./files.ts";
import type { KeyRing } from "./keys.ts";
import type { LeaseService } from "./leases.ts";
import { MemorySaver } from "./memory-saver.ts";
import type { MessageService } from "./messages.ts";
import type { History } from "./history.ts";
import type { Minutes } from "./minutes.ts";
import type { NextService } from "./next.ts";
import type { Takes } from "./blocked-calls.ts";
import type { NodeService } from "./nodes.ts";
import type { Retention } from "./retention.ts";
import type { Chore, ChoreEnd } from "./scheduler.ts";
import type { ScheduleService } from "./schedules.ts";
import type { StuckTasks } from "./stuck-tasks.ts";
import { dueSteps } from "./task-chores.ts";
import type { TaskService } from "./tasks.ts";

export type ChoreParts = {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly log: Log;
  readonly nodes: NodeService;
  readonly tasks: TaskService;
  readonly schedules: ScheduleService;
  readonly next: NextService;
  readonly takes: Takes;
  readonly messages: MessageService;
  readonly files: FileService;
  readonly retention: Retention;
  readonly stuck: StuckTasks;
  readonly leases: LeaseService;
  readonly minutes: Minutes;
  readonly history: History;
  readonly noteStart: () => Promise<void>;
  /** Null where there are no other hubs. */
  readonly compareSecrets: (() => Promise<void>) | null;
  readonly requeueOffline: boolean;
  readonly retainMs: number;
  /** Null: for ever. */
  readonly retainNodesMs: number | null;
  readonly maxAnswersBytes: number;
};

export function choresOf(parts: ChoreParts): readonly Chore[] {
  const { store, blobs, leases, messages, minutes, history, next, takes, log, noteStart, compareSecrets } =
    parts;
  const clock = new ClockWatch(parts);
  const database = new WriteWatch("database", store, log, () => renewLeases(parts));
  const files = new WriteWatch("files", blobs, log, () => blobs.probe());
  const memory = new MemorySaver(parts.clock);
  const balancer = new PeriodicBalancer(parts.store, parts.clock, parts.tasks.knownLanes);
  const everySweep = 0;
  /** Skipped while writes fail, until they succeed and all leases have been renewed. */
  const writing = (name: string, everyMs: number, run: Chore["run"]): Chore => ({
    name,
    everyMs,
    run: async (signal, lateMs) => (database.isWritable ? run(signal, lateMs) : undefined),
  });
  /** It removes rows, which the store also does on a full disk: below --min-free it makes room. */
  const freeing = (name: string, everyMs: number, run: Chore["run"]): Chore => ({
    name,
    everyMs,
    run: async (signal, lateMs) => (database.isWritable || database.isFull ? run(signal, lateMs) : undefined),
  });
  return [
    { name: "database", everyMs: everySweep, onEveryHub: true, run: () => database.check() },
    { name: "files", everyMs: everySweep, onEveryHub: true, run: () => files.check() },
    { ...writing("jumps", everySweep, () => clock.check(() => 0)), onEveryHub: true },
    writing("clock", everySweep, (_, lateMs) => clock.check(lateMs)),
    // These precede the chore that ends leases.
    ...JOINED_THROUGH.map((name) => ({
      ...writing(`heartbeats ${name}`, INTERVALS[name].heartbeatIntervalMs / 3, () => next.beatWaiting(name)),
      onEveryHub: true,
    })),
    writing("nodes", everySweep, (signal, lateMs) =>
      expireNodes(parts, balancer, signal, () => clock.check(lateMs)),
    ),
    writing("tasks", everySweep, async (signal, lateMs) => {
      await clock.check(lateMs); // a standstill since the chore above ends no lease
      await runTasks(parts, balancer, signal);
    }),
    writing("schedules", everySweep, (signal) => fireSchedules(parts, signal)),
    writing("rewound", limit.SCHEDULES_REWIND_EVERY_MS, async () => {
      const schedules = await parts.schedules.rewindAll();
      if (schedules > 0) log.warn("the clock was set back: schedules begin again at its time", { schedules });
    }),
    // Each hub holds its failed put-backs in its own memory.
    { ...writing("put-backs", everySweep, () => takes.retryPutBacks()), onEveryHub: true },
    writing("messages", everySweep, (signal, lateMs) =>
      inTurns(signal, [
        async () => {
          await clock.check(lateMs); // a standstill since the last check must not end visibility timeouts
          return isFull(await messages.expireSome());
        },
      ]),
    ),
    writing("broadcasts", everySweep, (signal) => inTurns(signal, [() => messages.dropUnfinished()])),
    {
      name: "budgets",
      everyMs: everySweep,
      onEveryHub: true,
      run: async () => {
        if (next.openByTime()) balancer.wake();
      },
    },
    writing("balance", everySweep, (signal) => balancer.runIfDue(signal)),
    writing("stuck", limit.STUCK_LOOK_EVERY_MS, (signal) => parts.stuck.report(signal)),
    {
      name: "memory",
      everyMs: limit.MEMORY_EVERY_MS,
      onEveryHub: true,
      onCopies: true,
      run: async () => memory.adjust(),
    },
    { ...writing("minutes", limit.MINUTES_SAVE_EVERY_MS, () => minutes.save()), onEveryHub: true },
    writing("history", limit.PERIODS_SAVE_EVERY_MS, () => history.save()),
    freeing("prune", limit.PRUNE_EVERY_MS, (signal) => prune(parts, clock, signal)),
    freeing("leases", everySweep, async (_, lateMs) => {
      await clock.check(lateMs); // a standstill since the last check ends no lease
      await leases.prune();
    }),
    freeing("answers", limit.ANSWERS_EVICT_EVERY_MS, (signal) => evictAnswers(parts, signal)),
    freeing("retention", limit.RETENTION_EVERY_MS, async (signal) => {
      if (!clock.pausesPruning) return inTurns(signal, parts.retention.steps(clock.now()));
      return undefined;
    }),
    writing("old nodes", limit.PRUNE_EVERY_MS, (signal) => retireNodes(parts, clock, signal)),
    { name: "orphans", everyMs: limit.ORPHANS_EVERY_MS, onCopies: true, run: () => sweepOrphans(parts) },
    {
      name: "uploads",
      everyMs: limit.PRUNE_EVERY_MS,
      onEveryHub: true,
      onCopies: true,
      run: async () => void (await blobs.sweepUnfinished()),
    },
    { name: "started", everyMs: everySweep, onEveryHub: true, run: noteStart },
    ...(compareSecrets
      ? [
          {
            name: "secrets",
            everyMs: limit.SECRETS_COMPARE_EVERY_MS,
            onEveryHub: true,
            run: compareSecrets,
          },
        ]
      : []),
  ];
}

/** A long sweep must not delay a revocation. */
export function keyChoresOf(keys: KeyRing): readonly Chore[] {
  return [{ name: "keys", everyMs: 0, onEveryHub: true, run: () => keys.refresh() }];
}

/** Logs hub.started once: at the start or, on a full disk, as soon as there is room. */
export function startNote(store: Store, clock: Clock, software: string): () => Promise<void> {
  let startedAt: number | null = null;
  let isLogged = false;
  return async () => {
    startedAt ??= clock.now();
    if (isLogged || !store.writable) return;
    isLogged = true;
    const event = {
      kind: "hub.started",
      at: startedAt,
      nodeId: null,
      taskId: null,
      data: { software },
    } as const;
    await store
      .transact({}, () => accept(null, [{ kind: "event.logged", event }]))
      .catch((error: unknown) => {
        isLogged = false;
        ignoreRefused(error);
      });
  };
}

/** A hub on a full disk, or without the standby that it must have, serves reads. The periodic work retries the write. */
export function ignoreRefused(error: unknown): void {
  if (!(error instanceof StoreFull || error instanceof StoreReadOnly)) throw error;
}

/**
 * Needed after the hub or the machine stood still or could not write, because then no heartbeat or ACK could be
 * recorded. Abandons unfinished broadcasts, because their hub may be gone. If the wall clock was set back, backoffs and
 * questions begin again, so that they do not last until it is there again.
 */
export async function renewLeases({ store, clock }: Pick<ChoreParts, "store" | "clock">): Promise<void> {
  await store.transact({}, () => accept(null, renewalAt(clock)));
}

function renewalAt(clock: Clock): readonly Change[] {
  const steady = clock.steady();
  const nodes = JOINED_THROUGH.map((variant): Change => ({
    kind: "node.leases.renewed",
    variant,
    leaseUntil: steady + INTERVALS[variant].offlineAfterMs,
  }));
  const mail: Change = { kind: "delivery.leases.renewed", leaseUntil: steady + limit.ACK_LEASE_MS };
  const tasks: Change = { kind: "task.leases.renewed", steady };
  const now = clock.now();
  const advisory: Change = { kind: "leases.renewed", steady };
  return [
    PROBE,
    ...nodes,
    tasks,
    advisory,
    mail,
    { kind: "broadcasts.abandoned" },
    { kind: "backoffs.restarted", now },
    { kind: "questions.restarted", now },
  ];
}

/** A write that changes nothing: if it succeeds, the disk can be written. */
export const PROBE: Change = { kind: "tasks.tallied", open: 0, assigned: 0, completed: 0, failed: 0 };

/**
 * Notices that the wall clock jumped or the machine slept (the wall clock and the machine's steady clock moved apart),
 * or that the process stood still. It checks in each sweep, and again right before leases expire. Retention counts only
 * the time while the hub runs: a clock jump makes nothing older.
 */
class ClockWatch {
  readonly #parts: ChoreParts;
  /** At the last check. */
  #apart: number;
  /** 0 after the leases have been renewed. */
  #lateMs = 0;
  /** Steady clock: until then the age of a row by its date may be wrong. */
  #pausedUntil: number;

  constructor(parts: ChoreParts) {
    this.#parts = parts;
    this.#apart = this.#offset();
    this.#pausedUntil = parts.clock.steady();
  }

  async check(lateMs: () => number): Promise<void> {
    this.#lateMs = Math.max(this.#lateMs, lateMs());
    const movedMs = this.#offset() - this.#apart;
    const jumped = Math.abs(movedMs) >= limit.CLOCK_JUMP_MS;
    if (!jumped) this.#apart += movedMs;
    if (!jumped && this.#lateMs < limit.CLOCK_JUMP_MS) return void (this.#lateMs = 0);
    const { store, clock, log } = this.#parts;
    const before = clock.now() - movedMs;
    const after = before - limit.IDEMPOTENCY_RETAIN_MS;
    const shift: Change = { kind: "answers.shifted", after, upTo: before, movedMs };
    // Each hub shifts them after a jump ahead. After a jump back they only last longer.
    await store.transact({}, () =>
      accept(null, [...(jumped && movedMs > 0 ? [shift] : []), ...renewalAt(clock)]),
    );
    // After the commit: if that fails, the next check notices the jump or standstill again.
    if (jumped) this.#remember(movedMs);
    const what = jumped ? "the clock jumped or the machine slept" : "the hub stood still";
    const fields = jumped ? { moved_ms: movedMs } : { late_ms: Math.round(this.#lateMs) };
    this.#lateMs = 0;
    log.warn(`${what}: all leases are renewed`, fields);
  }

  /** For computing ages: a jump since the last check makes nothing older. */
  now(): number {
    const { clock } = this.#parts;
    return Math.min(clock.now(), clock.machine() + this.#apart);
  }

  /** The ages of messages and events, by their dates, may be wrong. */
  get pausesPruning(): boolean {
    return this.#parts.clock.steady() < this.#pausedUntil;
  }

  #remember(movedMs: number): void {
    const { clock, retainMs } = this.#parts;
    this.#apart += movedMs;
    // The pause is as long as the jump, at most the retention. A jump back shortens it.
    const steady = clock.steady();
    const paused = Math.max(this.#pausedUntil, steady) - steady + movedMs;
    this.#pausedUntil = steady + Math.min(Math.max(paused, 0), retainMs);
  }

  #offset(): number {
    return this.#parts.clock.now() - this.#parts.clock.machine();
  }
}

/**
 * After a refused write (usually a full disk) it tries a write in each sweep until one succeeds. So the hub recovers
 * without a restart and without a request.
 */
class WriteWatch {
  readonly #name: string;
  readonly #target: { readonly writable: boolean };
  readonly #log: Log;
  readonly #attempt: () => Promise<void>;
  #refused = false;
  #isFull = false;

  constructor(name: string, target: { readonly writable: boolean }, log: Log, attempt: () => Promise<void>) {
    this.#name = name;
    this.#target = target;
    this.#log = log;
    this.#attempt = attempt;
  }

  get isWritable(): boolean {
    return this.#target.writable && !this.#refused;
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  async check(): Promise<void> {
    if (this.isWritable) return;
    const first = !this.#refused;
    this.#refused = true;
    try {
      await this.#attempt();
      this.#refused = false;
      this.#isFull = false;
      this.#log.warn(`the ${this.#name} can be written again`);
    } catch (error) {
      this.#isFull = error instanceof StoreFull;
      const cause = error instanceof Error ? `${error.message} ${String(error.cause ?? "")}`.trim() : error;
      if (first) this.#log.error(`the ${this.#name} cannot be written`, { cause: String(cause) });
    }
  }
}

async function expireNodes(
  { nodes, tasks, requeueOffline }: ChoreParts,
  balancer: PeriodicBalancer,
  signal: AbortSignal,
  checkClock: () => Promise<void>,
): Promise<ChoreEnd> {
  const opening = async (step: Promise<number>): Promise<boolean> => {
    const opened = await step;
    if (opened > 0) balancer.wake();
    return isFull(opened);
  };
  return inTurns(signal, [
    async () => {
      await checkClock(); // a standstill since the last check must not end leases
      return isFull(await nodes.expireSome());
    },
    // Not only after a node has expired: the hub may have stopped in the middle of a requeue.
    async () => requeueOffline && opening(tasks.requeueSome()),
    () => opening(tasks.releaseSomeOfDeleted()),
  ]);
}

async function runTasks(
  { store, clock, tasks }: ChoreParts,
  balancer: PeriodicBalancer,
  signal: AbortSignal,
): Promise<ChoreEnd> {
  const steps = (await dueSteps(store, clock, tasks.reviews)).map((step) => async () => {
    const { moved, isMore } = await step();
    if (moved > 0) balancer.wake();
    return isMore;
  });
  return inTurns(signal, steps);
}

/** A schedule may be due again at once. */
function fireSchedules({ schedules }: ChoreParts, signal: AbortSignal): Promise<ChoreEnd> {
  return inTurns(signal, [async () => (await schedules.fireSome()) > 0]);
}

async function prune(parts: ChoreParts, watch: ClockWatch, signal: AbortSignal): Promise<ChoreEnd> {
  const { store, retainMs } = parts;
  const now = watch.now();
  const limits = { before: now - retainMs, limit: limit.SWEEP_BATCH, now };
  const answers = { before: now - limit.IDEMPOTENCY_RETAIN_MS, limit: limit.SWEEP_BATCH };
  // By the clock, not by the watch: the minutes that are shown are those of the clock.
  const shown = { last: parts.clock.now(), first: parts.clock.now() - (limit.MINUTES_KEPT + 1) * MINUTE_MS };
  const ofAnyAge = [
    remove(store, oldAnswers(answers), [{ kind: "answers.pruned", ...answers }]),
    remove(store, oldMinutes(shown), [{ kind: "minutes.pruned", ...shown }]),
  ];
  if (watch.pausesPruning) return inTurns(signal, ofAnyAge);
  const broadcasts = oldDeliveries(limits, true);
  const pruned: Change = { kind: "deliveries.pruned", broadcast: true, ...limits };
  const removeBroadcasts = async (): Promise<boolean> => {
    const found = await store.transact({ broadcasts }, (rows) =>
      accept(
        rows.broadcasts.length,
        rows.broadcasts.length === 0 ? [] : [...expire(rows.broadcasts, now), pruned],
      ),
    );
    return isFull(found);
  };
  const load = { old: oldMessages(limits), broadcasts, others: oldDeliveries(limits, false) };
  const removeMessages = async (): Promise<boolean> => {
    const found = await store.transact(load, ({ old, broadcasts, others }) => {
      if (old === 0) return accept(0);
      return accept(old, [
        ...expire([...others, ...broadcasts], now),
        { kind: "deliveries.pruned", broadcast: false, ...limits },
        pruned,
        { kind: "broadcasts.pruned", ...limits },
        { kind: "messages.refunded", ...limits },
        { kind: "messages.pruned", ...limits },
      ]);
    });
    return isFull(found);
  };
  return inTurns(signal, [
    ...ofAnyAge,
    // Deliveries before messages: the deliveries are found through their messages.
    async () => (await removeBroadcasts()) || removeMessages(),
    remove(store, oldEvents(limits), [
      { kind: "events.refunded", ...limits },
      { kind: "events.pruned", ...limits },
    ]),
  ]);
}

async function retireNodes(
  { nodes, retainNodesMs }: ChoreParts,
  watch: ClockWatch,
  signal: AbortSignal,
): Promise<ChoreEnd> {
  if (retainNodesMs === null || watch.pausesPruning) return undefined;
  return inTurns(signal, [() => nodes.retireSome(watch.now() - retainNodesMs)]);
}

/** After a limit was lowered: each commit keeps to it. */
function evictAnswers({ store, maxAnswersBytes }: ChoreParts, signal: AbortSignal): Promise<ChoreEnd> {
  const maxOfKey = limit.ANSWERS_OF_KEY_MAX_BYTES;
  const trim = (keyId: string | null, maxBytes: number): Promise<null> => {
    const sizes = { maxBytes, storedBytes: limit.ANSWERS_EVICT_STEP_BYTES / 2, scope: "" };
    return store.transact({}, () => accept(null, [{ kind: "answers.trimmed", keyId, ...sizes }]));
  };
  return inTurns(signal, [
    async () => {
      const { keyId, isTooMany } = await store.read(excessAnswers(maxOfKey, maxAnswersBytes));
      if (keyId !== null) await trim(keyId, maxOfKey);
      if (isTooMany) await trim(null, maxAnswersBytes);
      return keyId !== null || isTooMany;
    },
  ]);
}

async function sweepOrphans({ files, log }: ChoreParts): Promise<void> {
  const removed = await files.sweepShard();
  if (removed > 0) log.info("removed the bytes of files that have no record", { removed });
}

/** At most SWEEP_BATCH. */
function remove(store: Store, old: Query<number>, changes: readonly Change[]): ChoreStep {
  return async () =>
    isFull(await store.transact({ old }, (rows) => accept(rows.old, rows.old === 0 ? [] : changes)));
}

/** Resolves to whether there may be more to do. */
type ChoreStep = () => Promise<boolean>;

/** Then there may be more. */
function isFull(rows: number): boolean {
  return rows >= limit.SWEEP_BATCH;
}

/** At least once each, until none has more to do or the chore must stop. */
async function inTurns(signal: AbortSignal, steps: readonly ChoreStep[]): Promise<ChoreEnd> {
  for (let left = steps; left.length > 0;) {
    const more: ChoreStep[] = [];
    for (const step of left) if (await step()) more.push(step);
    if (more.length > 0 && signal.aborted) return "cut short";
    left = more;
  }
}
