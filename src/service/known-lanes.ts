/**
 * The gate and the special lanes as a transaction of this hub loaded them last. They decide what is loaded for a node
 * (choose), so they must be known before its transaction, which loads them again (learn) and compares (hasOpened).
 *
 * Must not: be trusted for a decision before learn(), nor after its group, which may be rolled back.
 */
import { type OpenLanes, isSameClosed, lanesOpenTo } from "../domain/gate.ts";
import {
  type Able,
  type Position,
  type Lane,
  type ReadyLane,
  NO_HEAD,
  isAsAble,
  isSpecial,
} from "../domain/lane.ts";
import { LANES_EMPTY_AWAITED, LANES_MAX } from "../domain/limits.ts";
import type { Closed, Gate, Node, Task } from "../domain/model.ts";
import { dayOf } from "../domain/task/facet/spending.ts";
import { type TurnOf, compareOffers } from "../domain/task/order.ts";
import type { Lanes } from "../store/sql/lanes.ts";

/** With what was known when they were chosen. */
export type Choice = {
  readonly node: Able;
  readonly closed: Closed | null;
  readonly lanes: Lanes;
  readonly open: OpenLanes<ReadyLane>;
  /** Those that may have the best tasks. */
  readonly lookedUp: readonly ReadyLane[];
  /** Then the load must also say what is best in the other special lanes. */
  readonly isPart: boolean;
};

export class KnownLanes {
  gate: Gate | null = null;
  lanes: Lanes = new Map();
  readonly isFair: boolean;
  /** Workers wait for the next ready task of these. */
  readonly #met = new Map<string, { readonly lane: Lane; isAnnounced: boolean }>();
  /** By creator, "" for none, in the order of the turns. */
  readonly #turns = new Map<string, number>();
  #turn = 0;
  /** The wall clock at the last hasOpenedByTime(). */
  #lookedAt = 0;

  constructor(isFair: boolean) {
    this.isFair = isFair;
  }

  get closed(): Closed | null {
    return this.gate?.closed ?? null;
  }

  /** A new day of budgets, the end of a hold or of a rate. Once for each. A clock that was set back ends holds. */
  hasOpenedByTime(now: number): boolean {
    const isSetBack = now < this.#lookedAt;
    this.#lookedAt = now;
    if (this.gate === null) return false;
    const { day, budgets, opensAt } = this.gate;
    const isNewDay = day !== dayOf(now) && budgets.length > 0;
    const isOver = opensAt !== null && (opensAt <= now || isSetBack);
    if (isNewDay || isOver) this.gate = { ...this.gate, day: dayOf(now), opensAt: null }; // the next transaction loads it
    return isNewDay || isOver;
  }

  /**
   * `types` null: every type that the node takes. `lookUps`: so many open special lanes are looked up, or all if they
   * are hardly more.
   */
  choose(node: Node, types: readonly string[] | null, lookUps: number): Choice {
    const { closed, lanes } = this;
    const open = lanesOpenTo(node, types, closed, lanes.values());
    const isPart = open.special.length > 2 * lookUps;
    const lookedUp = isPart ? this.#best(open.special, lookUps) : open.special;
    return { node, closed, lanes, open, lookedUp, isPart };
  }

  /** Within a decision. */
  learn(gate: Gate, lanes: Lanes): void {
    this.gate = gate;
    if (lanes === this.lanes) return; // the query's cache returns the same map until a lane is new (patchLanes)
    this.lanes = lanes;
    for (const [name, lane] of lanes)
      if (!this.#met.has(name)) this.#met.set(name, { lane, isAnnounced: false });
    // A worker that waits stands in the queue of each: those of lanes that nobody uses any more must not add up.
    if (this.#met.size <= 2 * lanes.size + LANES_EMPTY_AWAITED) return;
    for (const name of this.#met.keys()) if (!lanes.has(name)) this.#met.delete(name); // each is announced again
  }

  /** With lanes without a task. `keys`: all closed ones, because a lane that this hub has not met may have any. */
  awaitedBy(node: Node, types: readonly string[] | null): OpenLanes & { readonly keys: Iterable<string> } {
    const met = this.#met.values().map(({ lane }) => lane);
    return { ...lanesOpenTo(node, types, this.closed, met), keys: this.closed?.keys ?? [] };
  }

  /**
   * Returns true until all workers have had a chance to join the queue of a special lane: before a transaction has met
   * the lane, and once after it.
   */
  announce(name: string): boolean {
    if (!isSpecial(name)) return false;
    const met = this.#met.get(name);
    if (met === undefined) return true;
    if (met.isAnnounced) return false;
    met.isAnnounced = true; // who reads from now on stands in its queue
    return true;
  }

  /** Or other keys closed, or a resource is short that was not. */
  hasOpened(node: Node, types: readonly string[] | null, chosen: Choice): boolean {
    if (!isSameClosed(this.closed, chosen.closed)) return true;
    if (this.lanes.size === 0) return false;
    const before = chosen.open;
    // The usual case: no lane is new, and the node had enough for each.
    if (this.lanes === chosen.lanes && !before.isShort && isAsAble(node, chosen.node)) return false;
    const names = new Set(before.special.map(({ name }) => name));
    const open = lanesOpenTo(node, types, this.closed, this.lanes.values());
    return (open.isShort && !before.isShort) || open.special.some(({ name }) => !names.has(name));
  }

  #best(lanes: readonly ReadyLane[], count: number): readonly ReadyLane[] {
    const { turnOf } = this;
    const best: ReadyLane[] = [];
    for (const lane of lanes) {
      if (lane.head === NO_HEAD) continue;
      const last = best[count - 1];
      if (last !== undefined && compareOffers(lane, lane.head, last, last.head, turnOf) >= 0) continue;
      const before = best.findLastIndex(
        (other) => compareOffers(other, other.head, lane, lane.head, turnOf) <= 0,
      );
      best.splice(before + 1, 0, lane);
      if (best.length > count) best.pop();
    }
    return best;
  }

  /** Within a decision, after learn(): what is best in the lanes that its transaction has looked up. */
  learnHeads({ lookedUp }: Choice, heads: ReadonlyMap<string, Position>): void {
    for (const { name } of lookedUp) {
      const lane = this.lanes.get(name);
      if (lane) lane.head = heads.get(name) ?? NO_HEAD;
    }
  }

  /** `found` null: there is none. */
  mayHaveBetter({ lanes, open, lookedUp, isPart }: Choice, found: Task | null): boolean {
    if (!isPart) return false;
    const names = new Set(lookedUp.map(({ name }) => name));
    return open.special.some((chosen) => {
      const lane = this.lanes === lanes ? chosen : this.lanes.get(chosen.name);
      if (lane === undefined || lane.head === NO_HEAD) return false;
      const isBehind = found !== null && compareOffers(found, found, lane, lane.head, this.turnOf) <= 0;
      return !isBehind && !names.has(lane.name);
    });
  }

  readonly turnOf: TurnOf = ({ creatorNode }) =>
    this.isFair ? (this.#turns.get(creatorNode ?? "") ?? 0) : 0;

  /** Others may have had their turn since the tasks were loaded. */
  sorted(tasks: readonly Task[]): readonly Task[] {
    if (tasks.length < 2) return tasks;
    return tasks.toSorted((a, b) => compareOffers(a, a, b, b, this.turnOf));
  }

  served({ creatorNode }: Pick<Task, "creatorNode">): void {
    if (!this.isFair) return;
    const creator = creatorNode ?? "";
    this.#turns.delete(creator); // so that the map stays in the order of the turns
    const [longestAgo] = this.#turns.keys();
    // The one that is forgotten counts as never served, so it stays first.
    if (this.#turns.size >= LANES_MAX && longestAgo !== undefined) this.#turns.delete(longestAgo);
    this.#turns.set(creator, ++this.#turn);
  }
}
