/**
 * The idle workers (blocked consumers) of this hub: waiting task/next calls, woken in order of arrival, each only for
 * work that it can take.
 *
 * A worker joins, reads the store, sleeps, is woken, reads again, and leaves. It keeps its position in the order of
 * arrival. An offer (offersOf in domain/task.ts) wakes one worker: an open task wakes the first sleeper that takes its
 * type, a gift the first sleeper of its node. A worker whose node is full waits for room: only a gift, or room in its
 * node, wakes it. Only wake-ups are in order: a worker that has just joined reads at once, and may take the task for
 * which an earlier worker was woken. The earlier one keeps its position, and is woken first for the next task.
 *
 * Invariant: while a worker sleeps that could take open tasks of a type, as many workers as there are such tasks have
 * been woken for that type and are about to read the store (the same holds for the gifts of a node). This follows from
 * three rules:
 *   - an offer wakes a sleeper or, if no sleeper can take it, makes the awake workers read again before they sleep;
 *   - a woken worker reads. If it takes another task, has no room, or leaves, it passes its wake-up on to the next one;
 *   - a woken worker that finds nothing drops its wake-up: nothing was there, and a later task has its own wake-up.
 * Room in a full node wakes the workers that wait for it one after the other, until one finds the node full again: one
 * that takes a task, leaves, or finds none of its types passes the room on.
 *
 * While it sleeps, a worker is in a sorted array for each type that it takes. With 1,000 sleepers of one type, a
 * wake-up and the next sleep cost a few microseconds.
 *
 * Must not: touch the store, hold data, or be trusted for correctness. A lost wake-up costs time only.
 */
import type { Notified, Offer } from "../domain/change.ts";
import type { EventKind } from "../domain/event.ts";
import { WAKE_UPS_TOGETHER } from "../domain/limits.ts";
import type { JoinedThrough, Task } from "../domain/model.ts";
import { type TakenFrom, offersOf } from "../domain/task.ts";
import { Slices } from "../lib/slices.ts";
import { MAX_TIMER_MS, type Outcome } from "./wait-queue.ts";

/** Why a worker was woken. It passes this on unless it takes a task of this kind. */
type WakeUp = Offer | { readonly kind: "room" };

export type Taken = { readonly task: Task; readonly from: TakenFrom };

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

export class IdleWorkers {
  /** All workers that have joined, by node, in order of arrival. */
  readonly #nodes = new Map<string, Set<IdleWorker>>();
  readonly #awake = new Set<IdleWorker>();
  /** The sleepers that do not wait for room: by the types that they take, and those that take every type. */
  readonly #byType = new Map<string, Sleepers>();
  readonly #anyType = new Sleepers();
  readonly #slices = new Slices(WAKE_UPS_TOGETHER);
  #arrivals = 0;
  #drained = false;

  /** Adds a call of task/next. Must precede the read of the store, so that no wake-up is lost in between. */
  join(nodeId: string): IdleWorker {
    const worker = new IdleWorker(this, nodeId, ++this.#arrivals);
    const workers = this.#nodes.get(nodeId) ?? new Set();
    this.#nodes.set(nodeId, workers.add(worker));
    this.#awake.add(worker);
    return worker;
  }

  /** Returns the nodes registered through `variant` that have a waiting call. */
  nodesOf(variant: JoinedThrough): readonly string[] {
    const nodeIds: string[] = [];
    for (const [nodeId, [first]] of this.#nodes) if (first?.variant === variant) nodeIds.push(nodeId);
    return nodeIds;
  }

  /** Ends every sleep with "drained", now and from now on. */
  drain(): void {
    this.#drained = true;
    this.#forAll((worker) => worker.endSleep?.("drained"));
  }

  get isDrained(): boolean {
    return this.#drained;
  }

  /**
   * The decision listener: wakes workers for the offers of a transaction, the first of them at once. On SQLite their reads
   * share its commit.
   */
  decided(changes: readonly Notified[]): void {
    if (this.#nodes.size === 0) return; // a worker that joins later reads what is committed
    for (const [at, offer] of offersOf(changes).entries())
      if (at < WAKE_UPS_TOGETHER) this.wakeFor(offer);
      else this.#offer(offer, 1);
  }

  /** The commit listener: wakes workers for the changes of their nodes, and for the offers of other hubs. */
  notify(changes: readonly Notified[]): void {
    if (this.#nodes.size === 0) return;
    for (const change of changes) {
      if (change.kind === "work.missed")
        this.#forAll((worker) => this.#slices.run(() => this.#makeRead(worker)));
      else if (change.kind === "work.offered") this.#offer(change.offer, change.count);
      else if (change.kind === "event.logged" && change.event.nodeId !== null)
        this.#onEvent(change.event.kind, change.event.nodeId);
    }
  }

  #offer(offer: Offer, count: number): void {
    for (let i = 0; i < count; i++) this.#slices.run(() => this.wakeFor(offer));
  }

  #onEvent(kind: EventKind, nodeId: string): void {
    const workers = this.#nodes.get(nodeId);
    if (!workers) return;
    if (MAKE_ROOM.has(kind)) return this.#onRoom(workers);
    if (kind === "node.left") for (const worker of workers) worker.hasLeft = true;
    if (kind === "node.left" || NODE_CHANGES.has(kind)) for (const worker of workers) this.#makeRead(worker);
  }

  /** Wakes one worker: for an offer, or for room in the node `nodeId`. */
  wakeFor(wakeUp: WakeUp, nodeId = ""): void {
    if (wakeUp.kind === "room") return this.#onRoom(this.#nodes.get(nodeId) ?? new Set());
    if (wakeUp.kind === "gift") return this.#wakeForGift(wakeUp);
    const ofType = this.#byType.get(wakeUp.taskType)?.first;
    const ofAny = this.#anyType.first;
    const isOfTypeFirst = ofType && (!ofAny || ofType.arrival < ofAny.arrival);
    const first = isOfTypeFirst ? ofType : ofAny;
    if (first) return first.wake(wakeUp);
    for (const worker of this.#awake) if (worker.takes(wakeUp.taskType)) worker.mustReadAgain = true;
  }

  #wakeForGift(offer: Offer & { readonly kind: "gift" }): void {
    const workers = this.#nodes.get(offer.nodeId) ?? new Set();
    for (const worker of workers) if (worker.endSleep) return worker.wake(offer);
    for (const worker of workers) worker.mustReadAgain = true;
  }

  #onRoom(workers: ReadonlySet<IdleWorker>): void {
    for (const worker of workers) worker.roomMade = true;
    for (const worker of workers) if (worker.waitsForRoom) return worker.wake({ kind: "room" });
  }

  /** Makes a worker read again: wakes it if it sleeps. */
  #makeRead(worker: IdleWorker): void {
    if (worker.endSleep) worker.wake(null);
    else worker.mustReadAgain = true;
  }

  #forAll(step: (worker: IdleWorker) => void): void {
    for (const workers of this.#nodes.values()) for (const worker of workers) step(worker);
  }

  onSleep(worker: IdleWorker): void {
    this.#awake.delete(worker);
    if (worker.waitsForRoom) return;
    if (worker.types === null) this.#anyType.add(worker);
    for (const type of worker.types ?? []) {
      let sleepers = this.#byType.get(type);
      if (!sleepers) this.#byType.set(type, (sleepers = new Sleepers()));
      sleepers.add(worker);
    }
  }

  onWake(worker: IdleWorker): void {
    this.#awake.add(worker);
    if (worker.waitsForRoom) return;
    if (worker.types === null) this.#anyType.delete(worker);
    for (const type of worker.types ?? []) {
      const sleepers = this.#byType.get(type);
      sleepers?.delete(worker);
      if (sleepers?.first === undefined) this.#byType.delete(type);
    }
  }

  onLeave(worker: IdleWorker): void {
    this.#awake.delete(worker);
    const workers = this.#nodes.get(worker.nodeId);
    workers?.delete(worker);
    if (workers?.size === 0) this.#nodes.delete(worker.nodeId);
  }
}

/** One blocked call of task/next. */
export class IdleWorker {
  readonly nodeId: string;
  readonly arrival: number;
  readonly #all: IdleWorkers;
  /** The types of open tasks that it takes; null: every type. */
  types: readonly string[] | null = [];
  /** The variant through which its node joined; null until it has read the node. */
  variant: JoinedThrough | null = null;
  /** Set while it sleeps. */
  endSleep: ((outcome: Outcome) => void) | undefined;
  waitsForRoom = false;
  /** Whether an offer that no sleeper could take came since it began to read. */
  mustReadAgain = false;
  /** Whether its node got room since it began to read. */
  roomMade = false;
  /** Whether its node has left, which ends the call. */
  hasLeft = false;
  /** The wake-up that it has neither used nor passed on. */
  #wakeUp: WakeUp | null = null;
  #isGone = false;

  constructor(all: IdleWorkers, nodeId: string, arrival: number) {
    this.#all = all;
    this.nodeId = nodeId;
    this.arrival = arrival;
  }

  takes(type: string): boolean {
    return this.types === null || this.types.includes(type);
  }

  /** Must precede each read of the store. */
  beginRead(types: readonly string[] | null, variant: JoinedThrough | null): void {
    this.types = types;
    this.variant = variant;
    this.mustReadAgain = false;
    this.roomMade = false;
  }

  /**
   * Sleeps after a read that found no task or, with `isFull`, no room in its node: until a wake-up, the end of
   * `remainingMs`, an abort of `signal`, or the drain. Returns "woken" at once if it must read again.
   * @param onWake called at once by a wake-up, which the worker hears of later
   */
  sleep(isFull: boolean, remainingMs: number, signal: AbortSignal, onWake?: () => void): Promise<Outcome> {
    if (this.#all.isDrained) return Promise.resolve("drained");
    if (this.#isGone || signal.aborted) return Promise.resolve("aborted");
    if (!(remainingMs > 0)) return Promise.resolve("timeout");
    if (this.hasLeft || this.mustReadAgain || (isFull && this.roomMade)) return Promise.resolve("woken");
    const unused = this.#wakeUp;
    this.#wakeUp = null;
    const sleeping = new Promise<Outcome>((resolve) => {
      const onAbort = () => this.endSleep?.("aborted");
      const timer = setTimeout(() => this.endSleep?.("timeout"), Math.min(remainingMs, MAX_TIMER_MS));
      signal.addEventListener("abort", onAbort);
      this.waitsForRoom = isFull;
      this.endSleep = (outcome) => {
        this.endSleep = undefined;
        this.#all.onWake(this);
        this.waitsForRoom = false;
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        if (outcome === "woken") onWake?.();
        resolve(outcome);
      };
      this.#all.onSleep(this);
    });
    // Room that it does not need may suffice for a call of its node that takes other types.
    if (unused && unused.kind === (isFull ? "open" : "room")) this.#all.wakeFor(unused, this.nodeId);
    return sleeping;
  }

  /** Ends its sleep. */
  wake(wakeUp: WakeUp | null): void {
    this.#wakeUp = wakeUp;
    this.endSleep?.("woken");
  }

  /** Ends the call. Passes its wake-up on, unless it took a task of the kind that it was woken for. Idempotent. */
  leave(taken: Taken | null): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.endSleep?.("aborted");
    this.#all.onLeave(this);
    if (this.#wakeUp && !isTaken(this.#wakeUp, taken)) this.#all.wakeFor(this.#wakeUp, this.nodeId);
  }
}

/**
 * Whether a worker took a task of the kind that it was woken for. Never true of room, which may suffice for more tasks.
 */
function isTaken(wakeUp: WakeUp, taken: Taken | null): boolean {
  if (wakeUp.kind === "open") return taken?.from === "open" && taken.task.taskType === wakeUp.taskType;
  return wakeUp.kind === "gift" && taken?.from === "gifts";
}

/** Sleeping workers, in order of arrival. */
class Sleepers {
  readonly #workers: IdleWorker[] = [];

  get first(): IdleWorker | undefined {
    return this.#workers[0];
  }

  add(worker: IdleWorker): void {
    const last = this.#workers.at(-1);
    if (!last || last.arrival < worker.arrival) this.#workers.push(worker);
    else this.#workers.splice(this.#indexOf(worker), 0, worker);
  }

  delete(worker: IdleWorker): void {
    const index = this.#indexOf(worker);
    if (this.#workers[index] === worker) this.#workers.splice(index, 1);
  }

  #indexOf({ arrival }: IdleWorker): number {
    let [low, high] = [0, this.#workers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#workers[middle]?.arrival ?? 0) < arrival) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
