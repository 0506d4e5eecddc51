/**
 * What the hub does without being asked: ends leases, brings messages back, balances, forgets what is old.
 * Every chore may run at any time and any number of times: what it does follows from the stored rows and the clock.
 */
import type { Change } from "../domain/change.ts";
import { accept } from "../domain/decision.ts";
import * as limit from "../domain/limits.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { oldAnswers, oldBroadcasts, oldEvents, oldMessages } from "../store/old-rows.ts";
import type { Query, Store } from "../store/store.ts";
import { VARIANTS } from "../variant/variants.ts";
import type { KeyRing } from "./keys.ts";
import { MemoryKeeper } from "./memory.ts";
import type { MessageService } from "./messages.ts";
import type { NodeService } from "./nodes.ts";
import type { Chore } from "./sweeper.ts";
import type { TaskService } from "./tasks.ts";

export type ChoreParts = {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: KeyRing;
  readonly nodes: NodeService;
  readonly tasks: TaskService;
  readonly messages: MessageService;
  /** Whether the tasks of a node that goes offline go back to the pool. */
  readonly requeueOffline: boolean;
  /** How long messages and events are kept. */
  readonly retainMs: number;
};

export function choresOf(parts: ChoreParts): readonly Chore[] {
  const { messages, keys } = parts;
  const clock = new ClockWatch(parts);
  const memory = new MemoryKeeper(parts.clock);
  const everySweep = 0;
  return [
    { name: "clock", everyMs: everySweep, run: () => clock.check() },
    { name: "keys", everyMs: everySweep, run: () => keys.refresh() },
    { name: "nodes", everyMs: everySweep, run: (signal) => expireNodes(parts, signal) },
    {
      name: "messages",
      everyMs: everySweep,
      run: (signal) => untilFewer(signal, () => messages.expireSome()),
    },
    { name: "balance", everyMs: limit.BALANCE_EVERY_MS, run: (signal) => balance(parts, signal) },
    { name: "memory", everyMs: limit.MEMORY_EVERY_MS, run: async () => memory.look() },
    { name: "prune", everyMs: limit.PRUNE_EVERY_MS, run: (signal) => prune(parts, signal) },
  ];
}

/**
 * All that runs on leases starts anew: for when the hub, or the machine, was away. Its absence is not counted against
 * its nodes, nor against who has a message to confirm.
 */
export async function renewLeases({ store, clock }: Pick<ChoreParts, "store" | "clock">): Promise<void> {
  const steady = clock.steady();
  const nodes = Object.values(VARIANTS).map(({ name, offlineAfterMs }): Change => ({
    kind: "node.leases.renewed",
    variant: name,
    leaseUntil: steady + offlineAfterMs,
  }));
  const mail: Change = { kind: "delivery.leases.renewed", leaseUntil: steady + limit.ACK_LEASE_MS };
  await store.transact({}, () => accept(null, [...nodes, mail]));
}

/** Takes back what a stop in the middle of a sweep may have left behind, and gives out what waits. */
export async function settle(parts: ChoreParts): Promise<void> {
  const { signal } = new AbortController();
  if (parts.requeueOffline) await parts.tasks.requeueStranded(signal);
  await balance(parts, signal);
}

/** Notices that the wall clock jumped, or that the machine slept: the two clocks moved apart since the last look. */
class ClockWatch {
  readonly #parts: ChoreParts;
  #apart: number;

  constructor(parts: ChoreParts) {
    this.#parts = parts;
    this.#apart = this.#now();
  }

  async check(): Promise<void> {
    const movedMs = this.#now() - this.#apart;
    this.#apart += movedMs;
    if (Math.abs(movedMs) < limit.CLOCK_JUMP_MS) return;
    this.#parts.log.warn("the clock jumped or the machine slept: all leases start anew", {
      moved_ms: movedMs,
    });
    await renewLeases(this.#parts);
  }

  #now(): number {
    return this.#parts.clock.now() - this.#parts.clock.steady();
  }
}

async function expireNodes({ nodes, tasks, requeueOffline }: ChoreParts, signal: AbortSignal): Promise<void> {
  await untilFewer(signal, () => nodes.expireSome());
  // Asked every time, not only after somebody expired: what once failed half-way is made up for.
  if (requeueOffline && (await tasks.requeueStranded(signal)) > 0) await tasks.balanceAll(true, signal);
}

/** Gives out what a lost moment may have left open. In the usual case there is nothing. */
async function balance({ tasks }: ChoreParts, signal: AbortSignal): Promise<void> {
  await tasks.balanceAll(true, signal);
}

/** Forgets messages and events past their time, and stored answers past theirs. */
async function prune({ store, clock, retainMs }: ChoreParts, signal: AbortSignal): Promise<void> {
  const limits = { before: clock.now() - retainMs, limit: limit.SWEEP_BATCH };
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
  const answers = { ...limits, before: clock.now() - limit.IDEMPOTENCY_RETAIN_MS };
  await remove({ store, signal }, oldAnswers(answers), [{ kind: "answers.pruned", ...answers }]);
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
