/**
 * The use case of task/next: a worker asks for its next task, and waits for one (idle-workers.ts).
 *
 * One commit picks the task and hands it out. A caller who hangs up meanwhile loses none: the task is put back
 * (blocked-calls.ts). The call is a heartbeat of its node, all the time that it waits; the heartbeats of all that wait
 * are written together. A heartbeat younger than a second is not repeated.
 *
 * A task whose answer was lost on the way stays with its node, until the node asks with resume, the task's timeout is
 * over, or the node goes offline.
 *
 * Must not: answer with a task before its commit.
 */
import { type OpenLanes, closedTypes } from "../domain/gate.ts";
import { isAsAble, typesFor } from "../domain/lane.ts";
import { type Decision, Rejection, UNDECIDED } from "../domain/decision.ts";
import { LANES_REREADS, NOT_TAKEN_MAX, OPEN_TYPES_MAX, SWEEP_BATCH } from "../domain/limits.ts";
import type { JoinedThrough, Moment, Node, Task } from "../domain/model.ts";
import { nextTask } from "../domain/node.ts";
import { type Next, type TakenFrom, isExcluded as mayNotHave, returnGift } from "../domain/task.ts";
import type { Clock } from "../lib/clock.ts";
import { backlogTypes } from "../store/sql/balancer.ts";
import { gateOn, readyLanes } from "../store/sql/gate.ts";
import { nodeById } from "../store/sql/nodes.ts";
import { NO_ROW } from "../store/sql/query.ts";
import {
  bestGift,
  bestOfLanes,
  bestReady,
  firstStarted,
  firstUnacknowledged,
  taskById,
  waitingFor,
} from "../store/sql/tasks.ts";
import { type Answer, type Committed, type Store, type Transact, uncommitted } from "../store/store.ts";
import { INTERVALS } from "../variant/by-name.ts";
import type { TakerPatience, Takes } from "./blocked-calls.ts";
import type { IdleWorkers } from "./idle-workers.ts";
import type { KnownLanes, Seen } from "./known-lanes.ts";
import type { NodeService } from "./nodes.ts";
import type { TaskService } from "./tasks.ts";

const CALLER_GONE = "the caller hung up";

export type NextAsked = {
  readonly nodeId: string;
  /** Limits the open tasks; null is every type that the node takes. */
  readonly taskTypes: readonly string[] | null;
  /** First what the node has started and not finished. */
  readonly resume: boolean;
  /** One request of many, which may all be of one node: they load together. */
  readonly inBatch: boolean;
};

/** What a call knows when it asks. A transaction reads all of this again, because it may have changed. */
type Known = {
  /** null: there is no such node. */
  readonly node: Node | null;
  /** Whether the call has been a heartbeat of its node. */
  readonly isBeaten: boolean;
  /** The node may have none of the best tasks, as copies of its own quorum: the read leaves out what it may not have. */
  readonly isExcluded: boolean;
};

/** What a call looks for, chosen for what it knows. */
type Search = Known & {
  /** The lanes that are open to the node. null: there is no such node. */
  readonly seen: Seen | null;
  /** The types of plain lanes; null: every type. */
  readonly types: readonly string[] | null;
  /** Whether the call asks again when it finds that other lanes are open to the node. */
  readonly mayLookAgain: boolean;
};

const NO_LANES: OpenLanes = { types: [], special: [], short: [], closed: [] };

/** `found`: undefined when the call must ask again. `known`: what it knows then. */
type HandOut = {
  readonly found: Committed<Next> | undefined;
  readonly known: Known;
  /** Other lanes are open to the node than those in which the search looked, and the call has asked often enough. */
  readonly isStale: boolean;
};

/** `task` is null if there was none in time; `draining`: the node gets no new tasks. */
export type NextAnswer = Pick<Next, "task" | "draining">;

export class NextService {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #nodes: NodeService;
  readonly #tasks: TaskService;
  readonly #idle: IdleWorkers;
  readonly #takes: Takes;
  readonly #known: KnownLanes;
  /** Reads of nodes that many requests of one batch share, by the node's id. */
  readonly #reading = new Map<string, Promise<Node | null>>();

  constructor(
    store: Store,
    clock: Clock,
    nodes: NodeService,
    tasks: TaskService,
    idle: IdleWorkers,
    takes: Takes,
  ) {
    this.#takes = takes;
    this.#store = store;
    this.#clock = clock;
    this.#nodes = nodes;
    this.#tasks = tasks;
    this.#known = tasks.known;
    this.#idle = idle;
  }

  /**
   * Without a wait it joins no queue, and usually is one transaction, as a batch needs it.
   * @throws {Rejection} node_not_found, also when the node is deleted meanwhile
   * @throws {WaitAborted} when the caller is gone before anything was taken permanently
   */
  async next(
    transact: Transact<NextAnswer>,
    asked: NextAsked,
    patience: TakerPatience,
  ): Promise<Answer<NextAnswer>> {
    const { nodeId } = asked;
    const { signal } = patience;
    const worker = patience.waitMs > 0 ? this.#idle.join(nodeId) : null;
    let known: Known | null = null;
    const take = async (): Promise<Committed<Next> | null> => {
      known ??= { node: await this.#readNode(asked), isBeaten: false, isExcluded: false };
      for (let asks = 1; !signal.aborted && !worker?.isEnded; asks++) {
        const { node }: Known = known;
        const seen = node && this.#known.openTo(node, asked.taskTypes);
        const { types } = seen?.open ?? NO_LANES;
        if (worker) {
          const awaited = node ? this.#known.awaitedBy(node, asked.taskTypes) : NO_LANES;
          worker.beginRead(types, node?.variant ?? null, awaited, seen?.closed?.keys);
        }
        const closed = seen?.closed && closedTypes(seen.closed);
        const search: Search = {
          ...known,
          seen,
          // Not awaited without need: the hand-out may then join the commit that woke the worker.
          types: types ?? (closed?.size ? await this.#otherTypes(closed) : null),
          mayLookAgain: asks <= LANES_REREADS,
        };
        const handOut = await this.#handOut(transact, asked, search, signal);
        ({ known } = handOut);
        const { found, isStale } = handOut;
        if (!found) continue;
        worker?.endRead(found, isStale);
        return found.task || found.draining ? found : null;
      }
      return null;
    };
    const found = await this.#takes.untilTaken(worker, take, patience);
    if (!found) return uncommitted<NextAnswer>({ task: null, draining: false });
    if (found.task === null) return found;
    const { task, from } = found;
    return this.#takes.deliver(found, patience, () => this.#putBack(nodeId, task, from));
  }

  /**
   * The task that a node has started first, and about which it has sent no note since: its dispatch may not have arrived.
   * For callers that must not be handed a second task while they do not know of the first.
   */
  unacknowledged(nodeId: string): Promise<Task | null> {
    return this.#store.read(firstUnacknowledged(nodeId));
  }

  /**
   * The types of ready tasks that a node does not get when it asks for these types (null: all that it takes), in
   * alphabetical order, NOT_TAKEN_MAX at most; "" is no type.
   */
  async notTaken(
    node: Pick<Node, "capabilities">,
    asked: readonly string[] | null,
  ): Promise<readonly string[]> {
    const taken = typesFor(node, asked);
    if (taken === null) return [];
    const [balanced, others, untyped, lanes] = await Promise.all([
      this.#store.read(backlogTypes(true, "", NOT_TAKEN_MAX + taken.length)),
      this.#store.read(backlogTypes(false, "", NOT_TAKEN_MAX + taken.length)),
      this.#store.read(bestReady([""])),
      this.#store.read(readyLanes()),
    ]);
    const special = lanes.values().map(({ taskType }) => taskType);
    const types = new Set([...(untyped.tasks.length > 0 ? [""] : []), ...balanced, ...others, ...special]);
    return [...types]
      .filter((type) => !taken.includes(type))
      .toSorted()
      .slice(0, NOT_TAKEN_MAX);
  }

  /** The node as it may be: the transaction checks it. The requests of a batch read it together. */
  #readNode({ nodeId, inBatch }: NextAsked): Promise<Node | null> {
    if (!inBatch) return this.#store.read(nodeById(nodeId));
    let reading = this.#reading.get(nodeId);
    if (!reading) {
      reading = this.#store.read(nodeById(nodeId)).finally(() => this.#reading.delete(nodeId));
      this.#reading.set(nodeId, reading);
    }
    return reading;
  }

  /**
   * For a node that takes every type, while the gate keeps some back: the others in the backlog. Each costs one lookup,
   * however many tasks it has. Null is every type.
   */
  async #otherTypes(closed: ReadonlySet<string>): Promise<readonly string[] | null> {
    await Promise.resolve(); // a listener of decisions may have woken the worker, and must not read
    const limit = OPEN_TYPES_MAX + closed.size;
    const [balanced, others] = await Promise.all([
      this.#store.read(backlogTypes(true, "", limit)),
      this.#store.read(backlogTypes(false, "", limit)),
    ]);
    const open = new Set(["", ...balanced, ...others]).difference(closed);
    return open.size > OPEN_TYPES_MAX ? null : [...open];
  }

  /**
   * Loads what the search looks for, decides, and hands out the best task, in one transaction. Nothing is written when the
   * caller is gone, or when the call must ask again with what the transaction has learnt:
   *   - the node is not as the search knew it (isSame),
   *   - another lane is open to the node than those whose tasks were loaded (KnownLanes.hasOpened),
   *   - the node may have none of the tasks that were loaded, and others may be behind them,
   *   - there was no task, and the node has other resources left than when its open lanes were found.
   * The second and the fourth only while the search may look again, because lanes may open and close all the time. The first
   * ends when the node stops changing, and the third because the next search leaves such tasks out.
   */
  async #handOut(
    transact: Transact<NextAnswer>,
    asked: NextAsked,
    search: Search,
    signal: AbortSignal,
  ): Promise<HandOut> {
    const { nodeId, taskTypes } = asked;
    const { seen, mayLookAgain } = search;
    const comesBack = search.node !== null && !search.node.online;
    /** What the last decision saw: it may be made several times. */
    let last = { node: search.node, isExcluded: false, isStale: false, hasMoreWaiting: false };
    const found = await transact(this.#loadFor(asked, search), (rows) => {
      const { node, open, lanes, gate } = rows;
      this.#known.learn(gate, lanes);
      const isExcluded = open.tasks.length > 0 && open.tasks.every((task) => mayNotHave(task, nodeId));
      const hasOpened = node !== null && seen !== null && this.#known.hasOpened(node, taskTypes, seen);
      // What waits in special lanes is not loaded, and is left to the balancer.
      const waiting = lanes.size === 0 ? (rows.waiting ?? []) : [];
      const hasMoreWaiting = comesBack && (lanes.size > 0 || waiting.length === SWEEP_BATCH);
      last = { node, isExcluded, isStale: hasOpened, hasMoreWaiting };
      if (signal.aborted || (node && !isSame(node, search.node))) return UNDECIDED;
      if (hasOpened && mayLookAgain) return UNDECIDED;
      if (isExcluded && !open.isAll) return UNDECIDED;
      const at: Moment = { now: this.#clock.now(), steady: this.#clock.steady(), gate };
      const beat = { ...at, leaseMs: node ? leaseOf(node) : 0 };
      const { started, gifts } = rows;
      const special = this.#known.sorted(rows.special ?? []);
      const tasks = { started, gifts, open: open.tasks, special, waiting };
      const decision = nextTask(node, nodeId, tasks, beat, search.isBeaten);
      if (node && isEmpty(decision) && hasOtherLeft(node, search.node)) {
        if (mayLookAgain) return UNDECIDED;
        last.isStale = true;
      }
      if (decision.kind === "accepted" && decision.answer.task && decision.answer.from === "open")
        this.#known.served(decision.answer.task); // a hint: that a decision made twice counts two turns does no harm
      return decision;
    });
    const { node, isExcluded, isStale } = last;
    if (!found) return { found, known: { node, isBeaten: search.isBeaten, isExcluded }, isStale };
    // Neither rejects: the task is handed out, and the periodic work does what they could not.
    if (found.ended) await this.#tasks.settleAfter(found.ended);
    if (last.hasMoreWaiting) await this.#tasks.fillIfPossible(nodeId);
    // The rows of the transaction are those before its heartbeat.
    return { found, known: { node: node && backOnline(node), isBeaten: true, isExcluded }, isStale };
  }

  /** What one dispatch reads. `waiting`: what the balancer gives to a node that comes back online with this call. */
  #loadFor({ nodeId, resume, inBatch }: NextAsked, { node, seen, types, isExcluded }: Search) {
    const closed = seen?.closed ?? null;
    const { special } = seen?.open ?? NO_LANES;
    return {
      node: nodeById(nodeId),
      started: resume ? firstStarted(nodeId) : NO_ROW,
      gifts: bestGift(nodeId),
      open: bestReady(types, inBatch, closed, isExcluded ? nodeId : null),
      special: bestOfLanes(this.#known.inTurn(special), closed, { butFor: nodeId }),
      lanes: readyLanes(),
      waiting: node && !node.online ? waitingFor(node, SWEEP_BATCH) : NO_ROW,
      gate: gateOn(this.#clock.now()),
    };
  }

  /** Writes the heartbeats of the nodes registered through `variant` that have a waiting call. */
  beatWaiting(variant: JoinedThrough): Promise<void> {
    return this.#nodes.beatTogether(this.#idle.nodesOf(variant));
  }

  /**
   * When time has opened something of the gate (a new day of budgets, the end of a hold, a rate): wakes all waiting calls.
   * Returns whether it is so.
   */
  openByTime(): boolean {
    const hasOpened = this.#known.hasOpenedByTime(this.#clock.now());
    if (hasOpened) this.#idle.wakeAll();
    return hasOpened;
  }

  /** To where it was: open, or a gift of the node. What the node had started before stays started. */
  async #putBack(nodeId: string, { taskId, epoch }: Task, from: TakenFrom): Promise<void> {
    const asked = { taskId, nodeId, epoch };
    const { transact } = this.#store;
    if (from === "gifts") await transact({ task: taskById(taskId) }, ({ task }) => returnGift(task, asked));
    if (from !== "open") return;
    try {
      await this.#tasks.release(transact, { ...asked, reason: CALLER_GONE });
    } catch (error) {
      if (!(error instanceof Rejection)) throw error; // else it was taken back meanwhile
    }
  }
}

/** How long a node may be silent. */
function leaseOf({ variant }: Pick<Node, "variant">): number {
  return INTERVALS[variant].offlineAfterMs;
}

/** The node after its heartbeat. */
function backOnline(node: Node): Node {
  return node.online ? node : { ...node, online: true };
}

/** Whether there was room for a task, but none for the node. */
function isEmpty(decision: Decision<Next>): boolean {
  return decision.kind === "accepted" && decision.answer.task === null && !decision.answer.isFull;
}

/** Whether a node has other resources left than when its open lanes were found, so that they must be found again. */
function hasOtherLeft(node: Node, before: Node | null): boolean {
  return !Bun.deepEquals(node.used, before?.used);
}

/** Whether what was loaded for a node, as it was known, still serves it. */
function isSame(node: Node, before: Node | null): boolean {
  if (!before || !isAsAble(node, before)) return false;
  return node.online || (!before.online && node.autoAssign === before.autoAssign);
}
