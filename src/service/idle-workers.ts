/**
 * The idle workers of this hub: blocked task/next calls, woken first come, first served, each only for work that it
 * could take.
 *
 * A worker joins, reads the store, sleeps, is woken, reads again, leaves. It keeps its place in the order of arrival until
 * it leaves. An offer (domain/task.ts offersOf) wakes one: an open task the first sleeper that takes its type, a gift the
 * first sleeper of its node. A worker that found its node full sleeps parked: only a gift, or room in its node, wakes it.
 * The order is that of the wake-ups: a worker that has just joined reads at once, and may take the task for which an
 * earlier one was woken. That one keeps its place, and is the first for the next task.
 *
 * Invariant: while a worker sleeps that could take some open tasks of a type, as many workers that were woken for that
 * type are on their way to the store (and the same for the gifts of a node). For
 *   - an offer wakes a sleeper or, if none could take it, makes those that are awake read again before they sleep;
 *   - who is woken reads; who takes something else, cannot take any, or leaves, passes its wake-up on;
 *   - who finds nothing drops it: then nothing it could take was there, and what came since has a wake-up of its own.
 * Room in a full node wakes its parked workers one after the other, until one finds the node full again.
 *
 * A worker stands in a sorted array for each type that it takes, only while it sleeps. With 1,000 sleepers of one type a
 * wake-up and the way back to sleep cost some microseconds.
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

/** Why a worker was woken; it passes that on unless it takes what it was woken for. */
type WakeUp = Offer | { readonly kind: "room" };

/** What a worker took. */
export type Taken = { readonly task: Task; readonly from: TakenFrom };

/** After these events the workers of the node read the store again: which tasks they may take has changed. */
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
  /** All that have joined, by node, in order of arrival. */
  readonly #nodes = new Map<string, Set<IdleWorker>>();
  readonly #awake = new Set<IdleWorker>();
  /** Those that sleep and are not parked: by the types that they take, and those that take every type. */
  readonly #byType = new Map<string, Sleepers>();
  readonly #anyType = new Sleepers();
  readonly #slices = new Slices(WAKE_UPS_TOGETHER);
  #arrivals = 0;
  #drained = false;

  /** A call of task/next begins. Join first, then read the store: so no wake-up falls in between. */
  join(nodeId: string): IdleWorker {
    const worker = new IdleWorker(this, nodeId, ++this.#arrivals);
    const workers = this.#nodes.get(nodeId) ?? new Set();
    this.#nodes.set(nodeId, workers.add(worker));
    this.#awake.add(worker);
    return worker;
  }

  /** The nodes registered through `variant` that have a waiting call. */
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

  /** A commit listener: wakes for the offers of a transaction, and for what happened to nodes. */
  notify(changes: readonly Notified[]): void {
    if (this.#nodes.size === 0) return; // who joins later reads what is committed
    for (const change of changes) {
      if (change.kind === "work.missed")
        this.#forAll((worker) => this.#slices.run(() => this.#rouse(worker)));
      else if (change.kind === "work.offered") this.#offer(change.offer, change.count);
      else if (change.kind === "event.logged" && change.event.nodeId !== null)
        this.#heard(change.event.kind, change.event.nodeId);
    }
    for (const offer of offersOf(changes)) this.#offer(offer, 1);
  }

  #offer(offer: Offer, count: number): void {
    for (let i = 0; i < count; i++) this.#slices.run(() => this.wakeFor(offer));
  }

  #heard(kind: EventKind, nodeId: string): void {
    const workers = this.#nodes.get(nodeId);
    if (!workers) return;
    if (MAKE_ROOM.has(kind)) return this.#roomMade(workers);
    if (kind === "node.left") for (const worker of workers) worker.hasLeft = true;
    if (kind === "node.left" || NODE_CHANGES.has(kind)) for (const worker of workers) this.#rouse(worker);
  }

  /** Wakes one worker for an offer, or for room in the node of a worker that was woken for it. */
  wakeFor(wakeUp: WakeUp, nodeId = ""): void {
    if (wakeUp.kind === "room") return this.#roomMade(this.#nodes.get(nodeId) ?? new Set());
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

  #roomMade(workers: ReadonlySet<IdleWorker>): void {
    for (const worker of workers) worker.roomMade = true;
    for (const worker of workers) if (worker.isParked) return worker.wake({ kind: "room" });
  }

  /** Makes a worker read, whether it sleeps or not. */
  #rouse(worker: IdleWorker): void {
    if (worker.endSleep) worker.wake(null);
    else worker.mustReadAgain = true;
  }

  #forAll(step: (worker: IdleWorker) => void): void {
    for (const workers of this.#nodes.values()) for (const worker of workers) step(worker);
  }

  /** Of IdleWorker: it falls asleep. */
  slept(worker: IdleWorker): void {
    this.#awake.delete(worker);
    if (worker.isParked) return;
    if (worker.types === null) this.#anyType.add(worker);
    for (const type of worker.types ?? []) {
      let sleepers = this.#byType.get(type);
      if (!sleepers) this.#byType.set(type, (sleepers = new Sleepers()));
      sleepers.add(worker);
    }
  }

  /** Of IdleWorker: its sleep ends. */
  woke(worker: IdleWorker): void {
    this.#awake.add(worker);
    if (worker.isParked) return;
    if (worker.types === null) this.#anyType.delete(worker);
    for (const type of worker.types ?? []) {
      const sleepers = this.#byType.get(type);
      sleepers?.delete(worker);
      if (sleepers?.first === undefined) this.#byType.delete(type);
    }
  }

  /** Of IdleWorker. */
  left(worker: IdleWorker): void {
    this.#awake.delete(worker);
    const workers = this.#nodes.get(worker.nodeId);
    workers?.delete(worker);
    if (workers?.size === 0) this.#nodes.delete(worker.nodeId);
  }
}

/** One blocked call. */
export class IdleWorker {
  readonly nodeId: string;
  readonly arrival: number;
  readonly #all: IdleWorkers;
  /** The types of open tasks that it takes; null is every type. */
  types: readonly string[] | null = [];
  /** That of its node, once it has read it. */
  variant: JoinedThrough | null = null;
  /** Set while it sleeps. */
  endSleep: ((outcome: Outcome) => void) | undefined;
  /** It sleeps, and found its node full before. */
  isParked = false;
  /** An offer came since it began to read, and no sleeper could take it. */
  mustReadAgain = false;
  /** Its node has got room since it began to read. */
  roomMade = false;
  /** Its node has left: the call is over. */
  hasLeft = false;
  /** What it was woken for, and has not looked for yet. */
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

  /** It is about to read the store. */
  reads(types: readonly string[] | null, variant: JoinedThrough | null): void {
    this.types = types;
    this.variant = variant;
    this.mustReadAgain = false;
    this.roomMade = false;
  }

  /**
   * It has found nothing, or (`isFull`) no room in its node: sleeps until it is woken, the end of `remainingMs`, an abort
   * of `signal`, or the drain. Returns "woken" at once if it must read again.
   */
  sleep(isFull: boolean, remainingMs: number, signal: AbortSignal): Promise<Outcome> {
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
      this.isParked = isFull;
      this.endSleep = (outcome) => {
        this.endSleep = undefined;
        this.#all.woke(this);
        this.isParked = false;
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        resolve(outcome);
      };
      this.#all.slept(this);
    });
    if (isFull && unused?.kind === "open") this.#all.wakeFor(unused);
    return sleeping;
  }

  /** Only while it sleeps. */
  wake(wakeUp: WakeUp | null): void {
    this.#wakeUp = wakeUp;
    this.endSleep?.("woken");
  }

  /** The call is over. Passes its wake-up on, unless it took what it was woken for. Idempotent. */
  leave(taken: Taken | null): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.endSleep?.("aborted");
    this.#all.left(this);
    if (this.#wakeUp && !isWhat(this.#wakeUp, taken)) this.#all.wakeFor(this.#wakeUp, this.nodeId);
  }
}

/** Whether a worker took what it was woken for. Room may be for more than one task. */
function isWhat(wakeUp: WakeUp, taken: Taken | null): boolean {
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
    else this.#workers.splice(this.#placeOf(worker), 0, worker);
  }

  delete(worker: IdleWorker): void {
    const place = this.#placeOf(worker);
    if (this.#workers[place] === worker) this.#workers.splice(place, 1);
  }

  /** How many of them arrived before it. */
  #placeOf({ arrival }: IdleWorker): number {
    let [low, high] = [0, this.#workers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#workers[middle]?.arrival ?? 0) < arrival) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
