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
import { dayOf } from "../domain/spending.ts";
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

/** The node as it was read last, the lanes that are open to it, and whether this call was its heartbeat. */
type Known = {
  readonly node: Node | null;
  /** null: there is no such node. */
  readonly seen: Seen | null;
  /** The types of plain lanes; null: every type. */
  readonly types: readonly string[] | null;
  readonly isBeaten: boolean;
  /** This node may have none of the tasks that were loaded: the next read leaves such tasks out. */
  readonly isExcluded: boolean;
  /** Whether the call may ask again when more lanes are open than it knew. */
  readonly mayAskAgain: boolean;
};

const NO_LANES: OpenLanes = { types: [], special: [], short: [], closed: [] };
const NOTHING_SEEN = { open: NO_LANES, closed: null } as const;

/** `found`: undefined when the call must ask again. `current`: the node as the transaction loaded it, before it decided. */
type HandOut = {
  readonly found?: Committed<Next> | undefined;
  readonly current: Node | null;
} & Pick<Known, "isExcluded">;

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
   * Without a wait it is one transaction, as a batch needs it, and joins no queue.
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
    let node: Node | null | undefined;
    let isBeaten = false;
    let isExcluded = false;
    const take = async (): Promise<Committed<Next> | null> => {
      let asks = 0;
      if (node === undefined)
        node = await (asked.inBatch ? this.#readTogether(nodeId) : this.#store.read(nodeById(nodeId)));
      while (!signal.aborted && !worker?.isEnded) {
        const seen = node && this.#known.openTo(node, asked.taskTypes);
        const open = seen?.open ?? NO_LANES;
        if (worker) {
          const awaited = node ? this.#known.awaitedBy(node, asked.taskTypes) : NO_LANES;
          worker.beginRead(open.types, node?.variant ?? null, awaited, seen?.closed?.keys);
        }
        const closed = seen?.closed && closedTypes(seen.closed);
        const known = {
          node,
          seen,
          // Not awaited without need: the hand-out may then join the commit that woke the worker.
          types: open.types ?? (closed?.size ? await this.#otherTypes(closed) : null),
          isBeaten,
          isExcluded,
          mayAskAgain: asks++ < LANES_REREADS,
        };
        const { found, ...after } = await this.#handOut(transact, asked, known, signal);
        ({ isExcluded, current: node } = after);
        if (!found) continue; // the node or the lanes have changed, or the caller is gone
        if (node && !node.online) node = { ...node, online: true }; // what was loaded was before it came back
        isBeaten = true;
        worker?.endRead(found);
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

  /** The node as it may be: the transaction checks it. */
  #readTogether(nodeId: string): Promise<Node | null> {
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
   * Nothing is found and nothing written when the caller is gone, or must ask again: the node, what it has left or its open
   * lanes have changed, or it may have none of the tasks that were loaded.
   */
  async #handOut(
    transact: Transact<NextAnswer>,
    asked: NextAsked,
    known: Known,
    signal: AbortSignal,
  ): Promise<HandOut> {
    const { nodeId, resume, inBatch } = asked;
    const comesBack = known.node !== null && !known.node.online;
    const { open: lanesOpen, closed } = known.seen ?? NOTHING_SEEN;
    const load = {
      node: nodeById(nodeId),
      started: resume ? firstStarted(nodeId) : NO_ROW,
      gifts: bestGift(nodeId),
      open: bestReady(known.types, inBatch, closed, known.isExcluded ? nodeId : null),
      special: bestOfLanes(this.#known.inTurn(lanesOpen.special), closed, { butFor: nodeId }),
      lanes: readyLanes(),
      waiting: known.node && comesBack ? waitingFor(known.node, SWEEP_BATCH) : NO_ROW,
      gate: gateOn(this.#clock.now()),
    };
    let current = known.node;
    let isFilled = true;
    let isExcluded = false;
    const found = await transact(load, ({ node, waiting, started, gifts, open, special, lanes, gate }) => {
      this.#known.learn(gate, lanes);
      current = node;
      isFilled = waiting?.length !== SWEEP_BATCH && (!comesBack || lanes.size === 0);
      if (signal.aborted || (node && !isSame(node, known.node))) return UNDECIDED;
      if (node && known.seen && known.mayAskAgain)
        if (this.#known.hasOpened(node, asked.taskTypes, known.seen)) return UNDECIDED;
      isExcluded = open.tasks.length > 0 && open.tasks.every((task) => mayNotHave(task, nodeId));
      if (isExcluded && !open.isAll) return UNDECIDED; // there may be others behind them
      const at: Moment = { now: this.#clock.now(), steady: this.#clock.steady(), gate };
      const beat = { ...at, leaseMs: node ? leaseOf(node) : 0 };
      const rows = {
        started,
        gifts,
        open: open.tasks,
        special: this.#known.sorted(special ?? []),
        waiting: lanes.size === 0 ? (waiting ?? []) : [],
      };
      const decision = nextTask(node, nodeId, rows, beat, known.isBeaten);
      if (node && known.mayAskAgain && isEmpty(decision) && hasOtherLeft(node, known.node)) return UNDECIDED;
      if (decision.kind === "accepted" && decision.answer.task && decision.answer.from === "open")
        this.#known.served(decision.answer.task);
      return decision;
    });
    if (found?.ended) await this.#tasks.settleAfter(found.ended);
    if (found && !isFilled) await this.#tasks.fillIfPossible(nodeId); // the rest of a long backlog
    return { found, current, isExcluded };
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
    const { gate } = this.#known;
    if (gate === null) return false;
    const now = this.#clock.now();
    const isNewDay = gate.day !== dayOf(now) && gate.budgets.length > 0;
    const isOver = gate.opensAt !== null && gate.opensAt <= now;
    if (!isNewDay && !isOver) return false;
    this.#known.gate = { ...gate, day: dayOf(now), opensAt: null }; // once; the next transaction loads it
    this.#idle.wakeAll();
    return true;
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

/** Whether there was room for a task, but none for the node. */
function isEmpty(decision: Decision<Next>): boolean {
  return decision.kind === "accepted" && decision.answer.task === null && !decision.answer.isFull;
}

/** Whether a node has other resources left than when its open lanes were found, so that they must be found again. */
function hasOtherLeft(node: Node, before: Node | null): boolean {
  return !Bun.deepEquals(node.used, before?.used);
}

/** Whether what was loaded for a node as it was known serves it still. */
function isSame(node: Node, before: Node | null): boolean {
  if (!before || !isAsAble(node, before)) return false;
  return node.online || (!before.online && node.autoAssign === before.autoAssign);
}
