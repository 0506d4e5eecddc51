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

/** What a call knows before its transaction. */
type KnownOfSearch = {
  /** As it was read last; null: there is no such node. */
  readonly node: Node | null;
  /** Whether the call has been a heartbeat of its node. */
  readonly isBeaten: boolean;
  /** The node may have none of the best tasks (all are excluded, or rest): the next load leaves out what it may not have. */
  readonly leavesOutExcluded: boolean;
  /** How many special lanes the next load looks up, if more are open. */
  readonly lookUps: number;
};

/** What one transaction loads, besides the tasks that the node holds. */
export type Wanted = {
  readonly node: Node | null;
  /** The types of plain lanes; null: every type. */
  readonly types: readonly string[] | null;
  readonly special: readonly Lane[];
  /** Whether other special lanes are open, so that the best tasks of these are loaded for everybody, too (heads). */
  readonly isPart: boolean;
  readonly closed: Closed | null;
  /** Whether to leave out the tasks that the node may not have (Task.notNodes), or that rest. */
  readonly leavesOutExcluded: boolean;
  /** What is not offered to the node; null: everything is. */
  readonly resting: Resting | null;
};

/** The rows of the transaction. */
export type Candidates = {
  readonly node: Node | null;
  /** The best task that the node has started; null also when the call does not resume. */
  readonly started: Task | null;
  readonly gifts: Task | null;
  readonly open: ReadyTasks;
  readonly special: readonly Task[];
  /** The best ready task of each lane that was looked up, whichever node may have it; null: all open lanes were. */
  readonly heads: ReadonlyMap<string, Position> | null;
  /** What the balancer gives to a node that comes back online with this call. */
  readonly waiting: readonly Task[];
  readonly lanes: Lanes;
  readonly gate: Gate;
};

const NOTHING_CHOSEN = { closed: null, lookedUp: [], isPart: false } as const;

/** The store of a search. `N`: what a committed decision resolves with. */
export type TaskSource<N extends Next> = {
  readonly readNode: () => Promise<Node | null>;
  /** The types of ready tasks in plain lanes, without these; null: there are too many to name. */
  readonly typesBut: (closed: ReadonlySet<string>) => Promise<readonly string[] | null>;
  /** One transaction, which may decide several times. Resolves with undefined when undecided. */
  readonly handOut: (
    wanted: Wanted,
    decide: (rows: Candidates) => Looked,
  ) => Promise<{ readonly answer: N | undefined; readonly also?: Learnt | undefined }>;
};

/** A decision with what it has learnt. */
export type Looked = (Decision<Next> | Undecided) & Also<Learnt>;

/** What was known when the rows of a transaction were chosen. */
type Look = {
  readonly known: KnownOfSearch;
  /** null: there is no such node. */
  readonly choice: Choice | null;
  readonly mayLookAgain: boolean;
};

/** What a decision has learnt for the next look of its call. */
type Learnt = {
  readonly known: KnownOfSearch;
  /** The node may take from other lanes than those in which the call looked, and the call has looked often enough. */
  readonly isStale: boolean;
};

type SearchParts<N extends Next> = {
  readonly nodeId: string;
  /** Limits the open tasks; null: every type that the node takes. */
  readonly taskTypes: readonly string[] | null;
  /** How long what the node gave back is not offered to it; 0: not at all. */
  readonly restMs?: number;
  readonly signal: AbortSignal;
  /** null: the call does not wait. */
  readonly worker: IdleWorker | null;
  readonly knownLanes: KnownLanes;
  readonly clock: Pick<Clock, "now" | "steady">;
  readonly source: TaskSource<N>;
  /** How many special lanes it looks up at first. */
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

  /** Takes the best task for the node. Resolves with null when there is none now, or the call is over. */
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

  /** Resolves with undefined when the call must look again, or is over. */
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
      this.#known = { ...after, node: after.node && backOnline(after.node), isBeaten: true, lookUps };
      worker?.endRead(next, learnt?.isStale);
    }
    return next;
  }

  /**
   * Picks the best task and hands it out. Undecided, so that nothing is written, when the call is over, or must look
   * again. Only for lanes and resources `mayLookAgain` bounds that: both may change all the time, while a node stops
   * changing, the next load leaves out what the node may not have, and there is an end of lanes to look up.
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
    const isShortOfOther = node !== null && foundNothing(decision) && haveResourcesChanged(node, before.node);
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

  /** Whether an open lane that was not looked up may have a better task than what the node gets. */
  #mayHaveBetter(decision: Decision<Next>, choice: Choice | null): boolean {
    if (choice === null || decision.kind === "rejected") return false;
    const taken = takenFromOpen(decision);
    const wantsTask = taken !== null || (foundNothing(decision) && !decision.answer.draining);
    return wantsTask && this.#parts.knownLanes.mayHaveBetter(choice, taken);
  }
}

function backOnline(node: Node): Node {
  return node.online ? node : { ...node, online: true };
}

/** The open task that a node gets; null: it gets none, or one that it held already. */
function takenFromOpen(decision: Decision<Next>): Task | null {
  if (decision.kind === "rejected" || decision.answer.task === null) return null;
  return decision.answer.from === "open" ? decision.answer.task : null;
}

/** Whether there was room for a task, but none for the node. */
function foundNothing(decision: Decision<Next>): boolean {
  return decision.kind === "accepted" && decision.answer.task === null && !decision.answer.isFull;
}

/** Whether other lanes may be open to the node: it uses other resources than when they were chosen. */
function haveResourcesChanged(node: Node, before: Node | null): boolean {
  return !Bun.deepEquals(node.used, before?.used);
}

/** Whether what was loaded for a node, as it was known, no longer serves it. */
function hasNodeChanged(node: Node | null, before: Node | null): boolean {
  if (node === null) return false;
  if (before === null || !isAsAble(node, before)) return true;
  return !node.online && (before.online || node.autoAssign !== before.autoAssign);
}
