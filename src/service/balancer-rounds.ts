/**
 * The balancer's rounds: a round assigns the backlog (the open tasks), best first, in bounded steps of one commit each.
 * Requests are served between two steps. The rule is domain/balancer.ts; each step applies it to the rows in its commit.
 *
 * A round first reads the lanes in the backlog and which of them an available node takes, then only tasks of those lanes.
 * So tasks that no node takes cost little: 500 of them with 10,000 nodes of 64 capabilities each take 0.2 s of CPU, at
 * most 12 ms at a time, and 200,000 of them before 1,000 that fit take no step.
 */
import { type Candidate, balance, untaken } from "../domain/balancer.ts";
import { isClosed, isLaneClosed } from "../domain/gate.ts";
import { type Lane, isSpecial, plainLane, type Position } from "../domain/lane.ts";
import { accept } from "../domain/decision.ts";
import {
  BACKLOG_TYPES_PART,
  BACKLOG_TYPES_TOGETHER,
  BALANCE_EVERY_MS,
  BALANCE_ROUND_MAX,
  BALANCE_TYPES_MAX,
  NODES_PART,
  SWEEP_BATCH,
} from "../domain/limits.ts";
import type { Closed } from "../domain/model.ts";
import { assignTo } from "../domain/task/core.ts";
import { comesFirst } from "../domain/task/order.ts";
import type { Clock } from "../lib/clock.ts";
import { nextTick } from "../lib/event-loop.ts";
import { pagesOf } from "../lib/pages.ts";
import {
  availableAfter,
  availableNodes,
  BACKLOG_START,
  backlogAfter,
  backlogTypes,
  isBacklogEmpty,
  openTasks,
} from "../store/sql/balancer.ts";
import { type Lanes, readyLanes } from "../store/sql/lanes.ts";
import { lastEventId } from "../store/sql/events.ts";
import { CapabilityLists } from "../store/sql/rows.ts";
import { bestOfLanes } from "../store/sql/ready-tasks.ts";
import type { Store } from "../store/store.ts";
import { KnownLanes } from "./known-lanes.ts";
import type { ChoreEnd } from "./scheduler.ts";
import { UseCases } from "./use-cases.ts";

export type Assignment = { readonly taskId: string; readonly nodeId: string };

/** `isCutShort`: it ended before the backlog's end. */
export type Round = { readonly assignments: readonly Assignment[]; readonly isCutShort: boolean };

/** `exhausted`: no available node takes from these lanes any longer. */
type RoundPart = { readonly assignments: readonly Assignment[]; readonly exhausted: ReadonlySet<string> };

export class BalancerRounds extends UseCases {
  readonly #knownLanes: KnownLanes;

  constructor(store: Store, clock: Clock, knownLanes = new KnownLanes(false)) {
    super(store, clock);
    this.#knownLanes = knownLanes;
  }

  /** `onlyBalanced`: only what the balancer may assign unasked. Ends after a step when `signal` is aborted. */
  async run(onlyBalanced: boolean, signal?: AbortSignal): Promise<Round> {
    const assignments: Assignment[] = [];
    // The usual case, which reads no node.
    if (await this.store.read(isBacklogEmpty(onlyBalanced))) return { assignments, isCutShort: false };
    const lists = new CapabilityLists();
    const { closed } = await this.store.read(this.gate());
    if (closed?.hub) return { assignments, isCutShort: false };
    const special = await this.store.read(readyLanes());
    for await (const waiting of this.#waitingLanes(onlyBalanced, special)) {
      const open = [...waiting.values()].filter((lane) => !closed || !isLaneClosed(closed, lane));
      const taken = await this.#takenLanes(open, lists);
      // Tasks from before the hub was fair are assigned first, by age.
      const isInTurn = ({ name }: Lane): boolean => this.#knownLanes.isFair && isSpecial(name);
      const byAge = new Set(taken.filter((lane) => !isInTurn(lane)).map(({ name }) => name));
      for (let after = BACKLOG_START; ;) {
        const limit = Math.min(SWEEP_BATCH, BALANCE_ROUND_MAX - assignments.length);
        if (limit === 0) return { assignments, isCutShort: true };
        const best = await this.#bestOf([...byAge], onlyBalanced, after, limit);
        const last = best.at(-1);
        if (!last) break;
        const step = await this.#give(best, lists);
        assignments.push(...step.assignments);
        for (const name of step.exhausted) byAge.delete(name);
        if (best.length < limit) break;
        after = last; // skips the unassigned tasks: their only takers are the nodes they were revoked from
        if (signal?.aborted && assignments.length > 0) return { assignments, isCutShort: true }; // it got on
      }
      for (let lanes = taken.filter(isInTurn); lanes.length > 0;) {
        const limit = Math.min(SWEEP_BATCH, BALANCE_ROUND_MAX - assignments.length);
        if (limit === 0) return { assignments, isCutShort: true };
        const step = await this.#giveInTurn(lanes, closed, onlyBalanced, limit, lists);
        assignments.push(...step.assignments);
        if (step.assignments.length === 0) break;
        lanes = lanes.filter(({ name }) => !step.exhausted.has(name));
        if (signal?.aborted) return { assignments, isCutShort: true };
      }
    }
    return { assignments, isCutShort: false };
  }

  /** On a fair hub: the best task of each lane, those first whose creator waits longest. */
  async #giveInTurn(
    lanes: readonly Lane[],
    closed: Closed | null,
    onlyBalanced: boolean,
    limit: number,
    lists: CapabilityLists,
  ): Promise<RoundPart> {
    const { turnOf } = this.#knownLanes;
    const best = await this.store.read(bestOfLanes(lanes, closed, { turnOf, onlyBalanced, limit }));
    return this.#give(best, lists);
  }

  /** With the lane without a type, in maps of BALANCE_TYPES_MAX. Each map is assigned best first. */
  async *#waitingLanes(onlyBalanced: boolean, special: Lanes): AsyncGenerator<ReadonlyMap<string, Lane>> {
    let lanes = new Map<string, Lane>(special).set("", plainLane(""));
    for (const balanced of onlyBalanced ? [true] : [true, false])
      for await (const types of this.#typesInPages(balanced)) {
        for (const type of types) lanes.set(type, plainLane(type));
        if (lanes.size < BALANCE_TYPES_MAX) continue;
        yield lanes;
        lanes = new Map();
      }
    if (lanes.size > 0) yield lanes;
  }

  #typesInPages(balanced: boolean): AsyncGenerator<readonly string[]> {
    return pagesOf<string>(BACKLOG_TYPES_PART, (last) =>
      this.store.read(backlogTypes(balanced, last ?? "", BACKLOG_TYPES_PART)),
    );
  }

  /** Reads the nodes a page at a time, until each lane has a taker. */
  async #takenLanes(lanes: readonly Lane[], lists: CapabilityLists): Promise<readonly Lane[]> {
    let others: readonly Lane[] = lanes;
    const pages = pagesOf<Candidate>(NODES_PART, (last) =>
      this.store.read(availableAfter(last?.nodeId ?? "", NODES_PART, lists)),
    );
    for await (const nodes of pages) {
      others = untaken(others, nodes);
      if (others.length === 0) break;
    }
    const names = new Set(others.map(({ name }) => name));
    return lanes.filter(({ name }) => !names.has(name));
  }

  /** Reads BACKLOG_TYPES_TOGETHER lanes at a time and merges. */
  async #bestOf(
    lanes: readonly string[],
    onlyBalanced: boolean,
    after: Position,
    limit: number,
  ): Promise<readonly Position[]> {
    let best: readonly Position[] = [];
    for (let start = 0; start < lanes.length; start += BACKLOG_TYPES_TOGETHER) {
      const together = lanes.slice(start, start + BACKLOG_TYPES_TOGETHER);
      const places = await this.store.read(backlogAfter(after, together, onlyBalanced, limit));
      best = [...best, ...places].toSorted((a, b) => (comesFirst(a, b) ? -1 : 1)).slice(0, limit);
      await nextTick();
    }
    return best;
  }

  /** Without what has been claimed meanwhile. */
  #give(places: readonly Position[], lists: CapabilityLists): Promise<RoundPart> {
    const load = {
      waiting: openTasks(places.map(({ seq }) => seq)),
      available: availableNodes(lists),
      gate: this.gate(),
    };
    return this.store.transact(load, ({ waiting, available, gate }) => {
      const { closed } = gate;
      const at = { now: this.clock.now(), steady: this.clock.steady(), gate };
      const open = closed ? waiting.filter((task) => !isClosed(closed, task, null)) : waiting;
      const tasks = this.#knownLanes.isFair ? this.#knownLanes.sorted(open) : open;
      const nodes = closed ? available.filter(({ nodeId }) => !closed.nodes.has(nodeId)) : available;
      const given = balance(tasks, nodes, at.now, gate);
      const unassigned = new Set(tasks);
      for (const { task } of given) unassigned.delete(task);
      for (const { task } of given) this.#knownLanes.served(task);
      const exhausted = [...unassigned].filter(
        ({ revokedFrom, notNodes, child }) => revokedFrom === null && notNodes.length === 0 && !child,
      );
      return accept(
        {
          assignments: given.map(({ task, nodeId }): Assignment => ({ taskId: task.taskId, nodeId })),
          exhausted: new Set(exhausted.map(({ lane }) => lane)),
        },
        given.flatMap(({ task, nodeId }) => assignTo(task, nodeId, "balancer", at).changes),
      );
    });
  }
}

/**
 * The periodic round, for tasks that other chores opened or a failed step left open: at the first sweep, then every
 * BALANCE_EVERY_MS and when a chore asks for it. A round that was cut short continues after the other chores have run.
 */
export class PeriodicBalancer extends UseCases {
  readonly #rounds: BalancerRounds;
  #dueAt = 0;
  /** Without a newer event a round has nothing to do. */
  #settledAt = -1;

  constructor(store: Store, clock: Clock, knownLanes = new KnownLanes(false)) {
    super(store, clock);
    this.#rounds = new BalancerRounds(store, clock, knownLanes);
  }

  wake(): void {
    this.#settledAt = -1;
    this.#dueAt = 0;
  }

  async runIfDue(signal: AbortSignal): Promise<ChoreEnd> {
    if (this.clock.steady() < this.#dueAt) return;
    const newest = await this.store.read(lastEventId());
    this.#dueAt = this.clock.steady() + BALANCE_EVERY_MS;
    if (newest === this.#settledAt) return;
    this.#settledAt = newest;
    let isCutShort = true;
    try {
      ({ isCutShort } = await this.#rounds.run(true, signal));
    } finally {
      if (isCutShort) this.wake();
    }
    if (isCutShort) return "cut short";
  }
}
