/**
 * The idle workers (blocked consumers) of this hub: waiting task/next calls. They wait in waiters.ts. This file says in
 * which queues they stand (QUEUE_OF), and which change wakes which queue (announcementOf, IdleWorkers).
 *
 * A worker joins, reads the store and, if there is no task for it, sleeps: only in the queues whose tasks its read looked
 * for (IdleWorker.#sleepsIn). A worker that found a lane closed, or its node short of a resource for it, does not stand in
 * the lane's queue, so that the wake-up for a task of the lane goes to others.
 *
 * Only wake-ups are in order of arrival: a worker that has just joined reads at once, and may take the task for which an
 * earlier worker was woken. The earlier one keeps its position, and is woken first for the next task.
 *
 * Must not: touch the store but to listen, hold data, or be trusted for correctness. A lost wake-up costs time only.
 */
import type { Notified, Offer } from "../domain/change.ts";
import { type EventKind, MAKES_ROOM } from "../domain/event.ts";
import { isSpecial, limitKeyOf } from "../domain/lane.ts";
import { WAKE_UPS_TOGETHER } from "../domain/limits.ts";
import type { JoinedThrough, Task } from "../domain/model.ts";
import { type TakenFrom, offersOf } from "../domain/task/next.ts";
import { assert, broken } from "../lib/assert.ts";
import { SECOND_MS } from "../lib/clock.ts";
import type { Store } from "../store/store.ts";
import type { KnownLanes } from "./known-lanes.ts";
import { type Announcement, type Outcome, type Waiter, Waiters } from "./waiters.ts";

export type Found =
  { readonly task: Task; readonly from: TakenFrom } | { readonly task: null; readonly isFull: boolean };

/** The queues, by what they announce. */
const QUEUE_OF = {
  /** A task that was assigned to the node. All calls of the node stand there. */
  gifts: (nodeId: string): string => `gifts ${nodeId}`,
  /** The node holds one task less. All its calls stand there; those sleep there that found it full. */
  room: (nodeId: string): string => `room ${nodeId}`,
  /** As room; the calls that found too little left of a resource. All are woken: none knows which resource was freed. */
  resources: (nodeId: string): string => `resources ${nodeId}`,
  /** An open task of the lane. The calls that take from the lane. */
  lane: (name: string): string => `open ${name}`,
  /** A task under the limit key has ended. The calls that found the key closed. */
  key: (key: string): string => `key ${key}`,
} as const;
/** An open task of any plain lane. The calls that take every type. */
const EVERY_TYPE = "open";

/** After these events the workers of the node read again, because the tasks that they may take have changed. */
const NODE_CHANGES: ReadonlySet<EventKind> = new Set([
  "node.updated",
  "node.draining",
  "node.offline",
  "node.deleted",
]);
/** After these events all workers read again: tasks may be handed out that the gate has kept back. */
const OPENS_GATE: ReadonlySet<EventKind> = new Set([
  "budget.set",
  "budget.deleted",
  "hub.resumed",
  "limit.set",
  "limit.deleted",
]);

export class IdleWorkers {
  readonly #waiters = new Waiters();
  readonly #workers = new Set<IdleWorker>();
  readonly #knownLanes: Pick<KnownLanes, "announce">;

  constructor(store: Pick<Store, "onDecision" | "onCommit">, knownLanes: Pick<KnownLanes, "announce">) {
    this.#knownLanes = knownLanes;
    store.onDecision((changes) => this.decided(changes));
    store.onCommit((changes) => this.notify(changes));
  }

  /** Must precede the read of the store, so that no wake-up is lost in between. */
  join(nodeId: string): IdleWorker {
    const worker = new IdleWorker(nodeId, this.#waiters, this.#workers);
    this.#workers.add(worker);
    return worker;
  }

  nodesOf(variant: JoinedThrough): readonly string[] {
    const nodeIds = new Set<string>();
    for (const worker of this.#workers) if (worker.variant === variant) nodeIds.add(worker.nodeId);
    return [...nodeIds];
  }

  /** Something has opened, or a wake-up was lost. */
  wakeAll(): void {
    this.#waiters.wakeAllOfEach();
  }

  /** Now and from now on. */
  drain(): void {
    this.#waiters.drain();
  }

  /**
   * The decision listener: wakes workers for the offers of one part of a transaction. On SQLite the reads of the first
   * WAKE_UPS_TOGETHER share its commit. The others, and all that wakeAll wakes, read after it.
   */
  decided(changes: readonly Notified[]): void {
    if (this.#workers.size === 0) return; // a worker that joins later reads what is committed
    const offers = offersOf(changes);
    if (this.#announceAll(offers)) return this.wakeAll();
    for (const [i, offer] of offers.entries()) this.#wakeFor(offer, i >= WAKE_UPS_TOGETHER);
  }

  /** For the changes of their nodes, and for the offers of other hubs. */
  notify(changes: readonly Notified[]): void {
    if (this.#workers.size === 0) return;
    for (const change of changes)
      if (change.kind === "work.missed") this.wakeAll();
      else if (change.kind === "work.offered") this.#onOffersElsewhere(change.offer, change.count);
      else if (change.kind === "event.logged") this.#onEvent(change.event.kind, change.event.nodeId);
  }

  #onOffersElsewhere(offer: Offer, count: number): void {
    if (this.#announceAll([offer])) return this.wakeAll();
    for (let i = 0; i < count; i++) this.#wakeFor(offer, true);
  }

  #onEvent(kind: EventKind, nodeId: string | null): void {
    if (OPENS_GATE.has(kind)) this.wakeAll();
    if (nodeId === null) return;
    if (MAKES_ROOM.has(kind)) {
      this.#waiters.wakeOne({ key: QUEUE_OF.room(nodeId) });
      this.#waiters.wakeAll(QUEUE_OF.resources(nodeId));
    }
    if (kind === "node.left") this.#waiters.end(QUEUE_OF.gifts(nodeId));
    if (NODE_CHANGES.has(kind)) this.#waiters.wakeAll(QUEUE_OF.gifts(nodeId));
  }

  /**
   * Announces the lane of each. Whether all workers must read again, which serves all of them: not every node may have the
   * task, or not every worker stands in the queue of the lane.
   */
  #announceAll(offers: readonly Offer[]): boolean {
    let isForAll = false;
    for (const offer of offers) {
      if (offer.kind === "some") isForAll = true;
      else if (offer.kind === "open" && this.#knownLanes.announce(offer.lane)) isForAll = true;
    }
    return isForAll;
  }

  #wakeFor(offer: Offer, isLater: boolean): void {
    const announcement = announcementOf(offer);
    if (isLater) this.#waiters.wakeOneLater(announcement);
    else this.#waiters.wakeOne(announcement);
  }
}

/**
 * A freed key also wakes the sleepers in EVERY_TYPE and in the plain lane of that name, because such a call perhaps
 * never met the key: a task that was offered while the key was closed woke one of them, and the others sleep on.
 */
function announcementOf(offer: Offer): Announcement {
  switch (offer.kind) {
    case "gift":
      return { key: QUEUE_OF.gifts(offer.nodeId) };
    case "key":
      return { key: QUEUE_OF.key(offer.key), elseKeys: [EVERY_TYPE, QUEUE_OF.lane(offer.key)] };
    case "open":
      return { key: QUEUE_OF.lane(offer.lane), orKey: isSpecial(offer.lane) ? null : EVERY_TYPE };
    case "some":
      throw broken("an offer for all workers wakes all");
  }
}

export type Awaited = {
  /** Null: every type. */
  readonly types: readonly string[] | null;
  readonly special: readonly { readonly name: string }[];
  /** It could take from more lanes if its node used less. */
  readonly isShort: boolean;
  readonly keys: Iterable<string>;
};

/** Of a node that is not registered. */
export const NOTHING_AWAITED: Awaited = { types: [], special: [], isShort: false, keys: [] };

/** How soon a worker reads again whose last read was stale. */
export const STALE_MS = SECOND_MS;

type Mode =
  | { readonly kind: "joined" }
  | { readonly kind: "reading" }
  /** `isFull`: the node had no room. `isStale`: the read may have missed a task (see endRead). */
  | { readonly kind: "found nothing"; readonly isFull: boolean; readonly isStale: boolean }
  | { readonly kind: "found a task" };

export class IdleWorker {
  readonly nodeId: string;
  /** The variant through which its node joined; null until it has read the node. */
  variant: JoinedThrough | null = null;
  readonly #gifts: string;
  readonly #room: string;
  readonly #resources: string;
  readonly #waiter: Waiter;
  readonly #workers: Set<IdleWorker>;
  #mode: Mode = { kind: "joined" };

  constructor(nodeId: string, waiters: Waiters, workers: Set<IdleWorker>) {
    this.nodeId = nodeId;
    this.#gifts = QUEUE_OF.gifts(nodeId);
    this.#room = QUEUE_OF.room(nodeId);
    this.#resources = QUEUE_OF.resources(nodeId);
    this.#waiter = waiters.join(this.#gifts, this.#room);
    this.#workers = workers;
  }

  /** Must precede each read of the store. `variant`: of its node. */
  beginRead(variant: JoinedThrough | null, { types, special, isShort, keys }: Awaited): void {
    this.variant = variant;
    const plain = types === null ? [EVERY_TYPE] : types.map(QUEUE_OF.lane);
    const lanes = [...plain, ...special.map(({ name }) => QUEUE_OF.lane(name))];
    const resources = isShort ? [this.#resources] : [];
    // What changes most comes last, because the waiter enters all queues again from the first other one on.
    this.#waiter.standIn([
      this.#gifts,
      this.#room,
      ...lanes,
      ...resources,
      ...Array.from(keys, QUEUE_OF.key),
    ]);
    this.#mode = { kind: "reading" };
  }

  /**
   * What the read found. Uses up what the worker carries, if the task is of the queue that announced it. A wake-up for room
   * is never used up by a task, because the node may have more room: it passes on until a worker finds the node full.
   * @param isStale other lanes are open to the node by now than those in which the read looked. What the worker carries, or
   *   has missed while it read, may be there: another worker looks at once, if one sleeps there, and this one after STALE_MS
   */
  endRead(found: Found, isStale = false): void {
    assert(this.#mode.kind === "reading", "a read begins before it ends");
    if (isStale) this.#waiter.passOn();
    if (found.task === null) {
      this.#mode = { kind: "found nothing", isFull: found.isFull, isStale };
      return;
    }
    this.#mode = { kind: "found a task" };
    if (found.from === "open") {
      this.#waiter.markServed(QUEUE_OF.lane(found.task.lane));
      this.#waiter.markServed(QUEUE_OF.key(limitKeyOf(found.task)));
    } else if (found.from === "gifts") this.#waiter.markServed(this.#gifts);
    // "started": the node held the task already, so it used no wake-up.
  }

  /** As Waiter.wait(), after a read that found no task. */
  async wait(remainingMs: number, signal: AbortSignal, onWake?: () => void): Promise<Outcome> {
    if (this.isEnded || signal.aborted) return this.#waiter.wait(remainingMs, signal);
    const mode = this.#mode;
    assert(mode.kind === "found nothing", "a worker sleeps after a read that found no task");
    const isCut = mode.isStale && remainingMs > STALE_MS;
    const ms = isCut ? STALE_MS : remainingMs;
    const outcome = await this.#waiter.wait(ms, signal, onWake, (key) => this.#sleepsIn(key, mode.isFull));
    return isCut && outcome === "timeout" ? "woken" : outcome;
  }

  /**
   * Whether the last read would have found what this queue announces: then a wake-up that the worker carries ends here. A
   * wrong true uses up a wake-up that another call needs; after a wrong false this call is not woken from the queue. True
   * for EVERY_TYPE even if closed types were left out: announcementOf() wakes those calls when a key is freed.
   */
  #sleepsIn(key: string, isFull: boolean): boolean {
    if (key === this.#gifts || key === this.#resources) return true;
    return key === this.#room ? isFull : !isFull;
  }

  /** The call must not ask again. */
  get isEnded(): boolean {
    return this.#waiter.isEnded;
  }

  /** Passes the unused wake-up on. Idempotent. */
  leave(): void {
    this.#workers.delete(this);
    this.#waiter.leave();
  }
}
