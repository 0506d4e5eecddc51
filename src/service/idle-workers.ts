/**
 * The idle workers (blocked consumers) of this hub: waiting task/next calls, woken in order of arrival, each only for
 * work that it can take. They wait in waiters.ts; this file says in which queues, and which change wakes which queue.
 *
 *   queue            announces                          who sleeps there
 *   gifts of a node  a task assigned to the node        its calls
 *   room of a node   the node holds one task less       its calls that found the node full
 *   open of a type   an open task (see offersOf)        the calls that take the type and found room in their node
 *   open             an open task of any type           the same for calls that take every type
 *
 * Only wake-ups are in order: a worker that has just joined reads at once, and may take the task for which an earlier
 * worker was woken. The earlier one keeps its position, and is woken first for the next task. A wake-up for room is not
 * used up by taking a task, because the node may have more room: when the worker leaves, the wake-up passes to the next
 * one, until a worker finds the node full. After `work.missed` (notifications of other hubs may be lost) all read again.
 *
 * Must not: touch the store but to listen, hold data, or be trusted for correctness. A lost wake-up costs time only.
 */
import type { Notified, Offer } from "../domain/change.ts";
import type { EventKind } from "../domain/event.ts";
import { WAKE_UPS_TOGETHER } from "../domain/limits.ts";
import type { JoinedThrough, Task } from "../domain/model.ts";
import { type TakenFrom, offersOf } from "../domain/task.ts";
import type { Store } from "../store/store.ts";
import { type Outcome, type Waiter, Waiters } from "./waiters.ts";

/** What a read for a worker found. */
export type Found =
  { readonly task: Task; readonly from: TakenFrom } | { readonly task: null; readonly isFull: boolean };

const giftsOf = (nodeId: string): string => `gifts ${nodeId}`;
const roomOf = (nodeId: string): string => `room ${nodeId}`;
const openOf = (type: string): string => `open ${type}`;
const OPEN = "open";

/** After these events the workers of the node read again, because the tasks that they may take have changed. */
const NODE_CHANGES: ReadonlySet<EventKind> = new Set([
  "node.updated",
  "node.draining",
  "node.offline",
  "node.deleted",
]);
/** After these events the node holds one task less. */
const MAKE_ROOM: ReadonlySet<EventKind> = new Set([
  "task.completed",
  "task.released",
  "task.revoked",
  "task.requeued",
  "task.attempt_failed",
  "task.timed_out",
  "task.failed",
  "task.deleted",
]);

/** After these events tasks may be handed out that a budget has kept back. */
const OPENS_BUDGETS: ReadonlySet<EventKind> = new Set(["budget.set", "budget.deleted"]);

export class IdleWorkers {
  readonly #waiters = new Waiters();
  readonly #workers = new Set<IdleWorker>();

  constructor(store: Pick<Store, "onDecision" | "onCommit">) {
    store.onDecision((changes) => this.decided(changes));
    store.onCommit((changes) => this.notify(changes));
  }

  /** Adds a call of task/next. Must precede the read of the store, so that no wake-up is lost in between. */
  join(nodeId: string): IdleWorker {
    const worker = new IdleWorker(nodeId, this.#waiters, this.#workers);
    this.#workers.add(worker);
    return worker;
  }

  /** Returns the nodes registered through `variant` that have a waiting call. */
  nodesOf(variant: JoinedThrough): readonly string[] {
    const nodeIds = new Set<string>();
    for (const worker of this.#workers) if (worker.variant === variant) nodeIds.add(worker.nodeId);
    return [...nodeIds];
  }

  /** Makes all workers read again: a new day has begun, and with it a new period of budgets. */
  wakeAll(): void {
    this.#waiters.wakeAllOfEach();
  }

  /** Ends every sleep with "drained", now and from now on. */
  drain(): void {
    this.#waiters.drain();
  }

  /**
   * The decision listener: wakes workers for the offers of a transaction, the first of them at once. On SQLite their reads
   * share its commit.
   */
  decided(changes: readonly Notified[]): void {
    if (this.#workers.size === 0) return; // a worker that joins later reads what is committed
    for (const [at, offer] of offersOf(changes).entries()) this.#wakeFor(offer, at >= WAKE_UPS_TOGETHER);
  }

  /** The commit listener: wakes workers for the changes of their nodes, and for the offers of other hubs. */
  notify(changes: readonly Notified[]): void {
    if (this.#workers.size === 0) return;
    for (const change of changes) {
      if (change.kind === "work.missed") this.#waiters.wakeAllOfEach();
      else if (change.kind === "work.offered")
        for (let left = change.count; left > 0; left--) this.#wakeFor(change.offer, true);
      else if (change.kind === "event.logged" && OPENS_BUDGETS.has(change.event.kind))
        this.#waiters.wakeAllOfEach();
      else if (change.kind === "event.logged" && change.event.nodeId !== null)
        this.#onEvent(change.event.kind, change.event.nodeId);
    }
  }

  #wakeFor(offer: Offer, isLater: boolean): void {
    const isGift = offer.kind === "gift";
    const [key, orKey] = isGift ? [giftsOf(offer.nodeId), null] : [openOf(offer.taskType), OPEN];
    if (isLater) this.#waiters.wakeOneLater(key, orKey);
    else this.#waiters.wakeOne(key, orKey);
  }

  #onEvent(kind: EventKind, nodeId: string): void {
    if (MAKE_ROOM.has(kind)) this.#waiters.wakeOne(roomOf(nodeId));
    else if (kind === "node.left") this.#waiters.end(giftsOf(nodeId));
    else if (NODE_CHANGES.has(kind)) this.#waiters.wakeAll(giftsOf(nodeId));
  }
}

/** One blocked call of task/next. */
export class IdleWorker {
  readonly nodeId: string;
  /** The variant through which its node joined; null until it has read the node. */
  variant: JoinedThrough | null = null;
  readonly #gifts: string;
  readonly #room: string;
  readonly #waiter: Waiter;
  readonly #workers: Set<IdleWorker>;
  /** Whether the last read found the node full. */
  #isFull = false;

  constructor(nodeId: string, waiters: Waiters, workers: Set<IdleWorker>) {
    this.nodeId = nodeId;
    this.#gifts = giftsOf(nodeId);
    this.#room = roomOf(nodeId);
    this.#waiter = waiters.join(this.#gifts, this.#room);
    this.#workers = workers;
  }

  /**
   * Must precede each read of the store.
   * @param types the types of open tasks that it takes; null: every type
   */
  beginRead(types: readonly string[] | null, variant: JoinedThrough | null): void {
    this.variant = variant;
    const open = types === null ? [OPEN] : types.map(openOf);
    this.#waiter.standIn([this.#gifts, this.#room, ...open]);
  }

  endRead(found: Found): void {
    if (found.task === null) this.#isFull = found.isFull;
    else if (found.from === "open") this.#waiter.markServed(openOf(found.task.taskType));
    else if (found.from === "gifts") this.#waiter.markServed(this.#gifts);
    // "started": the node held the task already, so it used no wake-up.
  }

  /** Sleeps after a read that found no task: as Waiter.wait(). */
  wait(remainingMs: number, signal: AbortSignal, onWake?: () => void): Promise<Outcome> {
    // Full: gifts and room; otherwise gifts and open tasks.
    const isEmpty = (key: string): boolean =>
      key === this.#gifts || (this.#isFull ? key === this.#room : key !== this.#room);
    return this.#waiter.wait(remainingMs, signal, onWake, isEmpty);
  }

  /** Whether its node has left, or the hub drains: the call must not ask again. */
  get isEnded(): boolean {
    return this.#waiter.isEnded;
  }

  /** Passes the wake-up on that it has not used. Idempotent. */
  leave(): void {
    this.#workers.delete(this);
    this.#waiter.leave();
  }
}
