/**
 * What the hub does without being asked: ends leases, brings messages back, balances, forgets what is old.
 * Every chore may run at any time and any number of times: what it does follows from the stored rows and the clock.
 */
import type { Blobs } from "../blobs/blobs.ts";
import type { Change } from "../domain/change.ts";
import { accept } from "../domain/decision.ts";
import * as limit from "../domain/limits.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { oldAnswers, oldBroadcasts, oldEvents, oldMessages } from "../store/sql/retention.ts";
import { lastEventId } from "../store/sql/events.ts";
import type { Query, Store } from "../store/store.ts";
import { VARIANTS } from "../variant/by-name.ts";
import type { FileService } from "./files.ts";
import type { KeyRing } from "./keys.ts";
import { MemoryKeeper } from "./memory-saver.ts";
import type { MessageService } from "./messages.ts";
import type { NodeService } from "./nodes.ts";
import type { Chore } from "./scheduler.ts";
import type { TaskService } from "./tasks.ts";

export type ChoreParts = {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: KeyRing;
  readonly nodes: NodeService;
  readonly tasks: TaskService;
  readonly messages: MessageService;
  readonly files: FileService;
  /** Whether the tasks of a node that goes offline go back to the pool. */
  readonly requeueOffline: boolean;
  /** How long messages and events are kept. */
  readonly retainMs: number;
};

export function choresOf(parts: ChoreParts): readonly Chore[] {
  const { store, blobs, keys, messages, log } = parts;
  const clock = new ClockWatch(parts);
  const database = new WriteWatch("database", store, log, () => renewLeases(parts));
  const files = new WriteWatch("files", blobs, log, () => blobs.probe());
  const memory = new MemoryKeeper(parts.clock);
  const rounds = new BalanceRounds(parts);
  const everySweep = 0;
  /** What writes waits until it can, and until the leases that nobody could renew meanwhile have started anew. */
  const writing = (name: string, everyMs: number, run: Chore["run"]): Chore => ({
    name,
    everyMs,
    run: async (signal, lateMs) => (database.isWell ? run(signal, lateMs) : undefined),
  });
  return [
    { name: "database", everyMs: everySweep, ofEveryHub: true, run: () => database.check() },
    { name: "files", everyMs: everySweep, ofEveryHub: true, run: () => files.check() },
    { name: "keys", everyMs: everySweep, ofEveryHub: true, run: () => keys.refresh() },
    writing("clock", everySweep, (_, lateMs) => clock.check(lateMs)),
    writing("nodes", everySweep, (signal) => expireNodes(parts, rounds, signal)),
    // What a hub owes only that hub knows.
    { ...writing("owed", everySweep, () => messages.putBackOwed()), ofEveryHub: true },
    writing("messages", everySweep, (signal) => untilFewer(signal, () => messages.expireSome())),
    writing("balance", everySweep, (signal) => rounds.runIfDue(signal)),
    { name: "memory", everyMs: limit.MEMORY_EVERY_MS, ofEveryHub: true, run: async () => memory.look() },
    writing("prune", limit.PRUNE_EVERY_MS, (signal) => prune(parts, clock, signal)),
    { name: "orphans", everyMs: limit.ORPHANS_EVERY_MS, run: () => sweepOrphans(parts) },
  ];
}

/**
 * All that runs on leases starts anew: for when the hub, or the machine, was away, or could not write what it was told.
 * That is not counted against its nodes, nor against who has a message to confirm.
 */
export async function renewLeases({ store, clock }: Pick<ChoreParts, "store" | "clock">): Promise<void> {
  const steady = clock.steady();
  const nodes = Object.values(VARIANTS).map(({ name, offlineAfterMs }): Change => ({
    kind: "node.leases.renewed",
    variant: name,
    leaseUntil: steady + offlineAfterMs,
  }));
  const mail: Change = { kind: "delivery.leases.renewed", leaseUntil: steady + limit.ACK_LEASE_MS };
  await store.transact({}, () => accept(null, [PROBE, ...nodes, mail]));
}

/** Changes nothing, but is written: that it could be shows that the disk takes writes. */
const PROBE: Change = { kind: "tasks.tallied", open: 0, assigned: 0, completed: 0 };

/**
 * Notices that the wall clock jumped or the machine slept (the two clocks moved apart since the last look), or that the
 * process stood still. A jump is no age: what is kept for a time is kept for that time as the hub lived it.
 */
class ClockWatch {
  readonly #parts: ChoreParts;
  #apart: number;
  /** Steady clock: until then what looks old may only look so. */
  #pausedUntil: number;

  constructor(parts: ChoreParts) {
    this.#parts = parts;
    this.#apart = this.#now();
    this.#pausedUntil = parts.clock.steady();
  }

  async check(lateMs: number): Promise<void> {
    const movedMs = this.#now() - this.#apart;
    this.#apart += movedMs;
    const jumped = Math.abs(movedMs) >= limit.CLOCK_JUMP_MS;
    if (jumped) await this.#settleJump(movedMs);
    if (!jumped && lateMs < limit.CLOCK_JUMP_MS) return;
    const what = jumped ? "the clock jumped or the machine slept" : "the hub stood still";
    const fields = jumped ? { moved_ms: movedMs } : { late_ms: Math.round(lateMs) };
    this.#parts.log.warn(`${what}: all leases start anew`, fields);
    await renewLeases(this.#parts);
  }

  /** Whether messages and events cannot be told by their dates to be past their time. */
  get pausesPruning(): boolean {
    return this.#parts.clock.steady() < this.#pausedUntil;
  }

  async #settleJump(movedMs: number): Promise<void> {
    const { store, clock, retainMs } = this.#parts;
    // For as long as the jump was, and no longer than what is young now takes to grow old. A jump back takes off from it.
    const steady = clock.steady();
    const paused = Math.max(this.#pausedUntil, steady) - steady + movedMs;
    this.#pausedUntil = steady + Math.min(Math.max(paused, 0), retainMs);
    const before = clock.now() - movedMs;
    const after = before - limit.IDEMPOTENCY_RETAIN_MS;
    await store.transact({}, () => accept(null, [{ kind: "answers.shifted", after, upTo: before, movedMs }]));
  }

  #now(): number {
    return this.#parts.clock.now() - this.#parts.clock.steady();
  }
}

/**
 * Notices that the database or the files refuse writes (a full disk, most often), says so in the log, and tries again in
 * each sweep until they take them: nobody has to restart the hub, or to write first.
 */
class WriteWatch {
  readonly #name: string;
  readonly #place: { readonly writable: boolean };
  readonly #log: Log;
  readonly #attempt: () => Promise<void>;
  #refused = false;

  constructor(name: string, place: { readonly writable: boolean }, log: Log, attempt: () => Promise<void>) {
    this.#name = name;
    this.#place = place;
    this.#log = log;
    this.#attempt = attempt;
  }

  /** Whether writes are taken, and the attempt has succeeded since they were refused. */
  get isWell(): boolean {
    return this.#place.writable && !this.#refused;
  }

  async check(): Promise<void> {
    if (this.isWell) return;
    const first = !this.#refused;
    this.#refused = true;
    try {
      await this.#attempt();
      this.#refused = false;
      this.#log.warn(`the ${this.#name} can be written again`);
    } catch (error) {
      const cause = error instanceof Error ? `${error.message} ${String(error.cause ?? "")}`.trim() : error;
      if (first) this.#log.error(`the ${this.#name} cannot be written`, { cause: String(cause) });
    }
  }
}

async function expireNodes(
  { nodes, tasks, requeueOffline }: ChoreParts,
  rounds: BalanceRounds,
  signal: AbortSignal,
): Promise<void> {
  await untilFewer(signal, () => nodes.expireSome());
  // Asked every time, not only after somebody expired: what a stop left half-way is made up for.
  if (requeueOffline && (await tasks.requeueStranded(signal)) > 0) await rounds.run(signal);
}

/**
 * Gives out what a lost moment may have left open: at the first sweep, and then every BALANCE_EVERY_MS. A round that has
 * more to give than one may goes on in the next sweep, so that the other chores have their turns.
 */
class BalanceRounds {
  readonly #parts: Pick<ChoreParts, "store" | "clock" | "tasks">;
  /** Steady clock. */
  #dueAt = 0;
  /** The end of the log at the beginning of a round that left nothing to give: until something happens there is none. */
  #settledAt = -1;

  constructor(parts: Pick<ChoreParts, "store" | "clock" | "tasks">) {
    this.#parts = parts;
  }

  async runIfDue(signal: AbortSignal): Promise<void> {
    if (this.#parts.clock.steady() < this.#dueAt) return;
    const newest = await this.#parts.store.read(lastEventId());
    if (newest !== this.#settledAt) return this.run(signal);
    this.#dueAt = this.#parts.clock.steady() + limit.BALANCE_EVERY_MS;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { store, clock, tasks } = this.#parts;
    const newest = await store.read(lastEventId());
    const { isCutShort } = await tasks.balance(true, signal);
    this.#settledAt = isCutShort || signal.aborted ? -1 : newest;
    this.#dueAt = isCutShort ? 0 : clock.steady() + limit.BALANCE_EVERY_MS;
  }
}

/** Forgets messages and events past their time, and stored answers past theirs. */
async function prune(parts: ChoreParts, watch: ClockWatch, signal: AbortSignal): Promise<void> {
  const { store, clock, retainMs } = parts;
  const now = clock.now();
  const limits = { before: now - retainMs, limit: limit.SWEEP_BATCH, now };
  const answers = { before: now - limit.IDEMPOTENCY_RETAIN_MS, limit: limit.SWEEP_BATCH };
  await remove({ store, signal }, oldAnswers(answers), [{ kind: "answers.pruned", ...answers }]);
  if (watch.pausesPruning) return;
  // Deliveries first: they are found through their messages.
  await remove({ store, signal }, oldBroadcasts(limits), [
    { kind: "deliveries.pruned", broadcast: true, ...limits },
  ]);
  await remove({ store, signal }, oldMessages(limits), [
    { kind: "deliveries.pruned", broadcast: false, ...limits },
    { kind: "deliveries.pruned", broadcast: true, ...limits },
    { kind: "messages.pruned", ...limits },
  ]);
  await remove({ store, signal }, oldEvents(limits), [{ kind: "events.pruned", ...limits }]);
}

async function sweepOrphans({ files, log }: ChoreParts): Promise<void> {
  const removed = await files.sweepShelf();
  if (removed > 0) log.info("removed the bytes of files that have no record", { removed });
}

type Removal = { readonly store: Store; readonly signal: AbortSignal };

function remove({ store, signal }: Removal, old: Query<number>, changes: readonly Change[]): Promise<void> {
  return untilFewer(signal, () =>
    store.transact({ old }, (rows) => accept(rows.old, rows.old === 0 ? [] : changes)),
  );
}

/** Repeats a bounded step until it finds less than it could take, or the hub ends. */
async function untilFewer(signal: AbortSignal, step: () => Promise<number>): Promise<void> {
  while (!signal.aborted && (await step()) >= limit.SWEEP_BATCH);
}
