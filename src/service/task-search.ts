/**
 * How one call of task/next looks for a task. A look loads tasks only from the lanes that are open to the node, which are
 * chosen before its transaction (KnownLanes.choose) for the node and the gate as this hub knows them. The transaction loads
 * both again, and decides. When what was loaded does not serve the node as it is now, the call looks again.
 *
 * The store is behind TaskSource. NextService implements it; test/service/idle-workers.test.ts runs this same loop on
 * another one, with calls, commits and hang-ups in random order.
 *
 * Must not: read or write but through the TaskSource.
 */
import { type Also, type Decision, type Undecided, UNDECIDED, also } from "../domain/decision.ts";
import { closedTypes } from "../domain/gate.ts";
import { type Position, type Lane, isAsAble } from "../domain/lane.ts";
import { LANES_LOOKED_UP, LANES_REREADS } from "../domain/limits.ts";
import type { Closed, Gate, Node, Task } from "../domain/model.ts";
import { nextAsHeartbeat } from "../domain/node.ts";
import type { Next } from "../domain/task/next.ts";
import { type Resting, isExcluded, isResting } from "../domain/task/facet/exclusion.ts";
import type { Clock } from "../lib/clock.ts";
import type { Lanes } from "../store/sql/lanes.ts";
import type { ReadyTasks } from "../store/sql/ready-tasks.ts";
import { INTERVALS } from "../variant/by-name.ts";
import { type IdleWorker, NOTHING_AWAITED } from "./idle-workers.ts";
import type { Choice, KnownLanes } from "./known-lanes.ts";

type KnownOfSearch = {
  /** null: there is no such node. */
  readonly node: Node | null;
  /** Of its node. */
  readonly isBeaten: boolean;
  /** All of the best tasks are excluded, or rest. */
  readonly leavesOutExcluded: boolean;
  /** If more are open. */
  readonly lookUps: number;
};

/** Besides the tasks that the node holds. */
export type Wanted = {
  readonly node: Node | null;
  /** null: every type. */
  readonly types: readonly string[] | null;
  readonly special: readonly Lane[];
  /** Then the best tasks of the other open special lanes are loaded for everybody (heads). */
  readonly isPart: boolean;
  readonly closed: Closed | null;
  /** Task.notNodes, and what rests. */
  readonly leavesOutExcluded: boolean;
  readonly resting: Resting | null;
};

export type Candidates = {
  readonly node: Node | null;
  /** null also when the call does not resume. */
  readonly started: Task | null;
  readonly gifts: Task | null;
  readonly open: ReadyTasks;
  readonly special: readonly Task[];
  /** Whichever node may have it; null: all open lanes were looked up. */
  readonly heads: ReadonlyMap<string, Position> | null;
  /** To a node that comes back online with this call. */
  readonly waiting: readonly Task[];
  readonly lanes: Lanes;
  readonly gate: Gate;
};

const NOTHING_CHOSEN = { closed: null, lookedUp: [], isPart: false } as const;

/** `N`: what a committed decision resolves with. */
export type TaskSource<N extends Next> = {
  readonly readNode: () => Promise<Node | null>;
  /** Without `closed`; null: there are too many to name. */
  readonly typesBut: (closed: ReadonlySet<string>) => Promise<readonly string[] | null>;
  /** It may decide several times. Undefined: undecided. */
  readonly handOut: (
    wanted: Wanted,
    decide: (rows: Candidates) => Looked,
  ) => Promise<{ readonly answer: N | undefined; readonly also?: Learnt | undefined }>;
};

export type Looked = (Decision<Next> | Undecided) & Also<Learnt>;

type Look = {
  readonly known: KnownOfSearch;
  /** null: there is no such node. */
  readonly choice: Choice | null;
  readonly mayLookAgain: boolean;
};

type Learnt = {
  readonly known: KnownOfSearch;
  /** The node may take from other lanes by now, and the call has looked often enough. */
  readonly isStale: boolean;
};

type SearchParts<N extends Next> = {
  readonly nodeId: string;
  /** null: every type that the node takes. */
  readonly taskTypes: readonly string[] | null;
  readonly restMs?: number;
  readonly signal: AbortSignal;
  /** null: the call does not wait. */
  readonly worker: IdleWorker | null;
  readonly knownLanes: KnownLanes;
  readonly clock: Pick<Clock, "now" | "steady">;
  readonly source: TaskSource<N>;
  readonly lookUps?: number;
};

export class TaskSearch<N extends Next> {
  readonly #parts: Required<SearchParts<N>>;
  readonly #rereads: number;
  /** null: before the first look. */
  #known: KnownOfSearch | null = null;

  /** @param rereads how often it looks again because other lanes are open; tests give fewer */
  constructor(parts: SearchParts<N>, rereads = LANES_REREADS) {
    this.#parts = { lookUps: LANES_LOOKED_UP, restMs: 0, ...parts };
    this.#rereads = rereads;
  }

  /** Null: there is none now, or the call is over. */
  async take(): Promise<N | null> {
    const { source, lookUps } = this.#parts;
    this.#known ??= { node: await source.readNode(), isBeaten: false, leavesOutExcluded: false, lookUps };
    for (let looks = 1; !this.#isOver;) {
      const before = this.#known;
      const found = await this.#look(before, looks <= this.#rereads);
      if (this.#known.lookUps <= before.lookUps) looks++; // to look more up comes to an end by itself
      if (found) return found.task || found.draining ? found : null;
    }
    return null;
  }

  get #isOver(): boolean {
    const { signal, worker } = this.#parts;
    return signal.aborted || (worker?.isEnded ?? false);
  }

  /** Undefined: the call must look again, or is over. */
  async #look(known: KnownOfSearch, mayLookAgain: boolean): Promise<N | undefined> {
    const { taskTypes, source, worker, knownLanes, lookUps } = this.#parts;
    const { node, leavesOutExcluded } = known;
    const choice = node && knownLanes.choose(node, taskTypes, known.lookUps);
    worker?.beginRead(node?.variant ?? null, node ? knownLanes.awaitedBy(node, taskTypes) : NOTHING_AWAITED);
    const { closed, lookedUp: special, isPart } = choice ?? NOTHING_CHOSEN;
    let types = choice ? choice.open.types : [];
    const closedPlain = types === null && closed !== null ? closedTypes(closed) : null;
    // Not awaited without need: the transaction may then join the commit that woke the worker.
    if (closedPlain?.size) types = await source.typesBut(closedPlain);
    const resting = this.#resting();
    const wanted: Wanted = { node, types, special, isPart, closed, leavesOutExcluded, resting };
    const look: Look = { known, choice, mayLookAgain };
    const { answer: next, also: learnt } = await source.handOut(wanted, (rows) => this.#decide(rows, look));
    const after = learnt?.known ?? known; // nothing is decided for a call that is over
    this.#known = after;
    if (next) {
      // The rows of the transaction are those before its heartbeat.
      this.#known = {
        ...after,
        node: after.node && { ...after.node, online: true },
        isBeaten: true,
        lookUps,
      };
      worker?.endRead(next, learnt?.isStale);
    }
    return next;
  }

  /**
   * Undecided, so that nothing is written, when the call is over, or must look again. Only for lanes and resources
   * `mayLookAgain` bounds that: both may change all the time, while a node stops changing, the next load leaves out
   * what the node may not have, and there is an end of lanes to look up.
   */
  #decide(rows: Candidates, look: Look): Looked {
    const { nodeId, knownLanes, clock } = this.#parts;
    const { node, open, gate } = rows;
    const { choice, known: before } = look;
    knownLanes.learn(gate, rows.lanes);
    if (choice && rows.heads) knownLanes.learnHeads(choice, rows.heads);
    const resting = this.#resting();
    const mayHave = (task: Task): boolean =>
      !isExcluded(task, nodeId) && (resting === null || !isResting(task, resting));
    const leavesOutExcluded = open.tasks.length > 0 && !open.tasks.some(mayHave);
    const known: KnownOfSearch = { ...before, node, leavesOutExcluded };
    const hasLaneOpened = this.#hasLaneOpened(node, choice);
    const again = also(UNDECIDED, { known, isStale: hasLaneOpened });
    if (this.#isOver || hasNodeChanged(node, before.node)) return again;
    if (hasLaneOpened && look.mayLookAgain) return again;
    if (leavesOutExcluded && !open.isAll) return again; // others may be behind these

    const leaseMs = node ? INTERVALS[node.variant].offlineAfterMs : 0;
    const beat = { now: clock.now(), steady: clock.steady(), gate, leaseMs };
    // Those of plain lanes are in order as they were loaded.
    const loaded =
      rows.special.length === 0 ? open.tasks : knownLanes.sorted([...open.tasks, ...rows.special]);
    const offered = resting === null ? loaded : loaded.filter(mayHave);
    const decision = nextAsHeartbeat(node, nodeId, { ...rows, open: offered }, beat, before.isBeaten);

    if (this.#mayHaveBetter(decision, choice))
      return also(UNDECIDED, { known: { ...known, lookUps: 2 * before.lookUps }, isStale: hasLaneOpened });
    const isShortOfOther =
      node !== null && foundNothing(decision) && !Bun.deepEquals(node.used, before.node?.used);
    if (isShortOfOther && look.mayLookAgain) return again;
    const taken = takenFromOpen(decision);
    if (taken) knownLanes.served(taken); // a hint: that a decision made twice counts two turns does no harm
    return also(decision, { known, isStale: hasLaneOpened || isShortOfOther });
  }

  #resting(): Resting | null {
    const { nodeId, restMs, clock } = this.#parts;
    return restMs === 0 ? null : { nodeId, since: clock.now() - restMs };
  }

  #hasLaneOpened(node: Node | null, choice: Choice | null): boolean {
    const { taskTypes, knownLanes } = this.#parts;
    return node !== null && choice !== null && knownLanes.hasOpened(node, taskTypes, choice);
  }

  /** Than what the node gets. */
  #mayHaveBetter(decision: Decision<Next>, choice: Choice | null): boolean {
    if (choice === null || decision.kind === "rejected") return false;
    const taken = takenFromOpen(decision);
    const wantsTask = taken !== null || (foundNothing(decision) && !decision.answer.draining);
    return wantsTask && this.#parts.knownLanes.mayHaveBetter(choice, taken);
  }
}

/** Null: the node gets none, or one that it held already. */
function takenFromOpen(decision: Decision<Next>): Task | null {
  if (decision.kind === "rejected" || decision.answer.task === null) return null;
  return decision.answer.from === "open" ? decision.answer.task : null;
}

/** There was room for a task. */
function foundNothing(decision: Decision<Next>): boolean {
  return decision.kind === "accepted" && decision.answer.task === null && !decision.answer.isFull;
}

/** What was loaded for the node no longer serves it. */
function hasNodeChanged(node: Node | null, before: Node | null): boolean {
  if (node === null) return false;
  if (before === null || !isAsAble(node, before)) return true;
  return !node.online && (before.online || node.autoAssign !== before.autoAssign);
}
