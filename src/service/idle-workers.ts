/**
 * The idle workers (blocked consumers) of this hub: waiting task/next calls, woken in order of arrival, each only for
 * work that it can take. They wait in waiters.ts; this file says in which queues, and which change wakes which queue.
 *
 *   queue                announces                        who sleeps there
 *   gifts of a node      a task assigned to the node      its calls
 *   room of a node       the node holds one task less     its calls that found the node full
 *   resources of a node  the node holds one task less     its calls that found too little left of a resource
 *   open of a lane       an open task (see offersOf)      the calls that take from the lane and found room in their node
 *   open                 an open task of any plain lane   the same for calls that take every type
 *   key                  a task of a limit key has ended  the calls that found the key closed; else those in `open`, and in
 *                                                         the plain lane of that name
 *
 * A worker joins, reads the store and, if there is no task for it, sleeps. Its position in each queue is its arrival, also
 * in one that it enters again. It sleeps only in queues whose tasks its last read looked for: a call that found its node
 * full sleeps for gifts, room and resources, not for open tasks (IdleWorker.#sleepsIn); one that found a lane closed, or is
 * short of a resource for it, does not stand in its queue, so that the wake-up for a task of the lane goes to others.
 *
 * Only wake-ups are in order: a worker that has just joined reads at once, and may take the task for which an earlier
 * worker was woken. The earlier one keeps its position, and is woken first for the next task.
 *
 * A wake-up for a task ends when the worker takes a task of that queue. A wake-up for room does not, because the node may
 * have more room: when the worker leaves, or falls asleep while the node has room, the wake-up passes to the next one,
 * until a worker finds the node full.
 *
 * An ended task of the node wakes all calls that are short of a resource: who finds one resource used up cannot say that
 * another one is.
 *
 * All workers read again: for a copy of a quorum or the task of a review, which not every node may have; for a special
 * lane that is new to this hub, so that they join its queue; when the gate opens (OPENS_GATE, or by time); and after
 * `work.missed`, because notifications of other hubs may be lost.
 *
 * Must not: touch the store but to listen, hold data, or be trusted for correctness. A lost wake-up costs time only.
 */
import type { Notified, Offer } from "../domain/change.ts";
import { type EventKind, MAKES_ROOM } from "../domain/event.ts";
import { isSpecial, laneNameOf, limitKeyOf } from "../domain/lane.ts";
import { WAKE_UPS_TOGETHER } from "../domain/limits.ts";
import type { JoinedThrough, Task } from "../domain/model.ts";
import { type TakenFrom, offersOf } from "../domain/task/next.ts";
import { SECOND_MS } from "../lib/clock.ts";
import type { Store } from "../store/store.ts";
import type { KnownLanes } from "./known-lanes.ts";
import { type Announcement, type Outcome, type Waiter, Waiters } from "./waiters.ts";

/** What a read for a worker found. */
export type Found =
  { readonly task: Task; readonly from: TakenFrom } | { readonly task: null; readonly isFull: boolean };

const giftsOf = (nodeId: string): string => `gifts ${nodeId}`;
const roomOf = (nodeId: string): string => `room ${nodeId}`;
const resourcesOf = (nodeId: string): string => `resources ${nodeId}`;
const openOf = (lane: string): string => `open ${lane}`;
const freedOf = (key: string): string => `key ${key}`;
const OPEN = "open";

/** After these events the workers of the node read again, because the tasks that they may take have changed. */
const NODE_CHANGES: ReadonlySet<EventKind> = new Set([
  "node.updated",
  "node.draining",
  "node.offline",
  "node.deleted",
]);
/** After these events tasks may be handed out that the gate has kept back. */
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
  readonly #known: Pick<KnownLanes, "announce">;

  constructor(store: Pick<Store, "onDecision" | "onCommit">, known: Pick<KnownLanes, "announce">) {
    this.#known = known;
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

  /** Makes all workers read again: time has opened something. */
  wakeAll(): void {
    this.#waiters.wakeAllOfEach();
  }

  /** Ends every sleep with "drained", now and from now on. */
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
    if (this.#areForAll(offers)) return this.#waiters.wakeAllOfEach();
    for (const [at, offer] of offers.entries()) this.#wakeFor(offer, at >= WAKE_UPS_TOGETHER);
  }

  /** The commit listener: wakes workers for the changes of their nodes, and for the offers of other hubs. */
  notify(changes: readonly Notified[]): void {
    if (this.#workers.size === 0) return;
    for (const change of changes) {
      if (change.kind === "work.missed") this.#waiters.wakeAllOfEach();
      else if (change.kind === "work.offered") {
        if (this.#areForAll([change.offer])) this.#waiters.wakeAllOfEach();
        else for (let left = change.count; left > 0; left--) this.#wakeFor(change.offer, true);
      } else if (change.kind === "event.logged" && OPENS_GATE.has(change.event.kind))
        this.#waiters.wakeAllOfEach();
      else if (change.kind === "event.logged" && change.event.nodeId !== null)
        this.#onEvent(change.event.kind, change.event.nodeId);
    }
  }

  /** Whether all workers must read again, which serves all of these offers. Announces each special lane. */
  #areForAll(offers: readonly Offer[]): boolean {
    const forAll = offers.filter(
      (offer) =>
        offer.kind === "some" ||
        (offer.kind === "open" && isSpecial(offer.lane) && this.#known.announce(offer.lane)),
    );
    return forAll.length > 0;
  }

  #wakeFor(offer: Offer, isLater: boolean): void {
    if (offer.kind === "some") return; // #areForAll() has woken all
    const announcement = announcementOf(offer);
    if (isLater) this.#waiters.wakeOneLater(announcement);
    else this.#waiters.wakeOne(announcement);
  }

  #onEvent(kind: EventKind, nodeId: string): void {
    if (MAKES_ROOM.has(kind)) {
      this.#waiters.wakeOne({ key: roomOf(nodeId) });
      this.#waiters.wakeAll(resourcesOf(nodeId));
    } else if (kind === "node.left") this.#waiters.end(giftsOf(nodeId));
    else if (NODE_CHANGES.has(kind)) this.#waiters.wakeAll(giftsOf(nodeId));
  }
}

/**
 * The queues whose sleepers may take what is offered. Calls that take every type take from each plain lane. They sleep in
 * `open` also while a type is closed: a task of the type wakes one of them, which does not find it, and the wake-up is used
 * up, so perhaps no call ever waits for the key. Hence `elseKeys`: a freed key also wakes who sleeps in `open`, or in the
 * plain lane of that name.
 */
function announcementOf(offer: Exclude<Offer, { readonly kind: "some" }>): Announcement {
  if (offer.kind === "gift") return { key: giftsOf(offer.nodeId) };
  if (offer.kind === "key") return { key: freedOf(offer.key), elseKeys: [OPEN, openOf(offer.key)] };
  return { key: openOf(offer.lane), orKey: isSpecial(offer.lane) ? null : OPEN };
}

/** What a worker waits for, in lanes that are open to its node now, and otherwise. */
export type Awaited = {
  /** The types of plain lanes from which it takes; null: every type. */
  readonly types: readonly string[] | null;
  readonly special: readonly { readonly name: string }[];
  /** Whether it could take from more lanes if its node used less. */
  readonly isShort: boolean;
  /** The limit keys that are closed. */
  readonly keys: Iterable<string>;
};

/** Of a node that is not registered. */
export const NOTHING_AWAITED: Awaited = { types: [], special: [], isShort: false, keys: [] };

/** How soon a worker reads again whose last read was stale. */
export const STALE_MS = SECOND_MS;

/** One blocked call of task/next. */
export class IdleWorker {
  readonly nodeId: string;
  /** The variant through which its node joined; null until it has read the node. */
  variant: JoinedThrough | null = null;
  readonly #gifts: string;
  readonly #room: string;
  readonly #resources: string;
  readonly #waiter: Waiter;
  readonly #workers: Set<IdleWorker>;
  /** Whether the last read found the node full. */
  #isFull = false;
  /** Whether the last read may have missed a task (see endRead). */
  #isStale = false;

  constructor(nodeId: string, waiters: Waiters, workers: Set<IdleWorker>) {
    this.nodeId = nodeId;
    this.#gifts = giftsOf(nodeId);
    this.#room = roomOf(nodeId);
    this.#resources = resourcesOf(nodeId);
    this.#waiter = waiters.join(this.#gifts, this.#room);
    this.#workers = workers;
  }

  /** Must precede each read of the store. `variant`: of its node. */
  beginRead(variant: JoinedThrough | null, { types, special, isShort, keys }: Awaited): void {
    this.variant = variant;
    const open = types === null ? [OPEN] : types.map(openOf);
    const lanes = [...open, ...special.map(({ name }) => openOf(name))];
    const resources = isShort ? [this.#resources] : [];
    // What changes most comes last, because the waiter enters all queues again from the first other one on.
    this.#waiter.standIn([this.#gifts, this.#room, ...lanes, ...resources, ...Array.from(keys, freedOf)]);
  }

  /**
   * What the read found. Uses up what the worker carries, if the task is of the queue that announced it.
   * @param isStale other lanes are open to the node by now than those in which the read looked. What the worker carries, or
   *   has missed while it read, may be there: another worker looks at once, if one sleeps there, and this one after STALE_MS
   */
  endRead(found: Found, isStale = false): void {
    this.#isStale = isStale;
    if (isStale) this.#waiter.passOn();
    if (found.task === null) this.#isFull = found.isFull;
    else if (found.from === "open") {
      this.#waiter.markServed(openOf(laneNameOf(found.task)));
      this.#waiter.markServed(freedOf(limitKeyOf(found.task)));
    } else if (found.from === "gifts") this.#waiter.markServed(this.#gifts);
    // "started": the node held the task already, so it used no wake-up.
  }

  /** Sleeps after a read that found no task: as Waiter.wait(). */
  async wait(remainingMs: number, signal: AbortSignal, onWake?: () => void): Promise<Outcome> {
    const isCut = this.#isStale && remainingMs > STALE_MS;
    const ms = isCut ? STALE_MS : remainingMs;
    const outcome = await this.#waiter.wait(ms, signal, onWake, (key) => this.#sleepsIn(key));
    return isCut && outcome === "timeout" ? "woken" : outcome;
  }

  /**
   * Whether the last read would have found what this queue announces: then a wake-up that the worker carries ends here. A
   * wrong true uses up a wake-up that another call needs; after a wrong false this call is not woken from the queue. `open`
   * is true although the read left out closed types: who does not know of their keys is found when a key is freed
   * (announcementOf).
   */
  #sleepsIn(key: string): boolean {
    if (key === this.#gifts || key === this.#resources) return true;
    return key === this.#room ? this.#isFull : !this.#isFull;
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
