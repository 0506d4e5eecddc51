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
import { typesFor } from "../domain/balancer.ts";
import { isSameClosed } from "../domain/budget.ts";
import { Rejection, UNDECIDED } from "../domain/decision.ts";
import { NOT_TAKEN_MAX, OPEN_TYPES_MAX, SWEEP_BATCH } from "../domain/limits.ts";
import type { Gate, JoinedThrough, Moment, Node, Task } from "../domain/model.ts";
import { nextTask } from "../domain/node.ts";
import { dayOf } from "../domain/spending.ts";
import { type Next, type TakenFrom, isExcluded as mayNotHave, returnGift } from "../domain/task.ts";
import type { Clock } from "../lib/clock.ts";
import { backlogTypes } from "../store/sql/balancer.ts";
import { gateOn } from "../store/sql/budgets.ts";
import { nodeById } from "../store/sql/nodes.ts";
import { NO_ROW } from "../store/sql/query.ts";
import {
  bestGift,
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

/** The node as it was read last, the types of open tasks that it is asked for, and whether this call was its heartbeat. */
type Known = {
  readonly node: Node | null;
  readonly types: readonly string[] | null;
  readonly isBeaten: boolean;
  /** The best tasks for all nodes are such as this one may not have. */
  readonly isExcluded: boolean;
};

/** `found`: undefined when the node is not as it was known; `current`: the node as it is. */
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
  /** The budgets as a transaction of this hub loaded them last. The next one checks them. */
  #gate: Gate | null = null;
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
    this.#idle = idle;
  }

  /**
   * Without a wait it is one transaction, as a batch needs it, and joins no queue.
   * @throws {Rejection} node_not_found, also when the node is deleted meanwhile
   * @throws {WaitAborted} when the caller is gone before anything was taken for good
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
      if (node === undefined)
        node = await (asked.inBatch ? this.#readTogether(nodeId) : this.#store.read(nodeById(nodeId)));
      while (!signal.aborted && !worker?.isEnded) {
        const taken = node ? this.#openTypes(node, typesFor(node, asked.taskTypes)) : [];
        worker?.beginRead(taken, node?.variant ?? null);
        const types = taken ?? (await this.#openBacklogTypes());
        const known = { node, types, isBeaten, isExcluded };
        const { found, current, ...seen } = await this.#handOut(transact, asked, known, signal);
        ({ isExcluded } = seen);
        node = current;
        if (!found) continue; // the node has changed, or the caller is gone
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
   * The task that a node has started first, and about which it has sent no note since: its hand-out may not have arrived.
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
    const [balanced, others, untyped] = await Promise.all([
      this.#store.read(backlogTypes(true, "", NOT_TAKEN_MAX + taken.length)),
      this.#store.read(backlogTypes(false, "", NOT_TAKEN_MAX + taken.length)),
      this.#store.read(bestReady([""])),
    ]);
    const types = new Set([...(untyped.tasks.length > 0 ? [""] : []), ...balanced, ...others]);
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

  /** The types of a node without those that a budget keeps back, as this hub knows the budgets. */
  #openTypes({ nodeId }: Node, types: readonly string[] | null): readonly string[] | null {
    const closed = this.#gate?.closed ?? null;
    if (closed === null) return types;
    if (closed.hub || closed.nodes.has(nodeId)) return [];
    return types === null ? null : types.filter((type) => !closed.types.has(type));
  }

  /**
   * For a node that takes every type, while a budget keeps some back: the others in the backlog. Each costs one lookup,
   * however many tasks it has. Null is every type.
   */
  async #openBacklogTypes(): Promise<readonly string[] | null> {
    const closed = this.#gate?.closed?.types;
    if (closed === undefined || closed.size === 0) return null;
    const limit = OPEN_TYPES_MAX + closed.size;
    const [balanced, others] = await Promise.all([
      this.#store.read(backlogTypes(true, "", limit)),
      this.#store.read(backlogTypes(false, "", limit)),
    ]);
    const open = new Set(["", ...balanced, ...others]).difference(closed);
    return open.size > OPEN_TYPES_MAX ? null : [...open];
  }

  /** Nothing is found and nothing written when the node is not as it was known, or the caller is gone. */
  async #handOut(
    transact: Transact<NextAnswer>,
    { nodeId, resume, inBatch }: NextAsked,
    known: Known,
    signal: AbortSignal,
  ): Promise<HandOut> {
    const comesBack = known.node !== null && !known.node.online;
    const load = {
      node: nodeById(nodeId),
      started: resume ? firstStarted(nodeId) : NO_ROW,
      gifts: bestGift(nodeId),
      open: bestReady(known.types, inBatch, this.#gate?.closed ?? null, known.isExcluded ? nodeId : null),
      waiting: known.node && comesBack ? waitingFor(known.node, SWEEP_BATCH) : NO_ROW,
      gate: gateOn(dayOf(this.#clock.now())),
    };
    const before = this.#gate?.closed ?? null;
    let current = known.node;
    let isFilled = true;
    let isExcluded = false;
    const found = await transact(load, ({ node, waiting, started, gifts, open, gate }) => {
      this.#gate = gate;
      if (!isSameClosed(gate.closed, before)) return UNDECIDED; // other tasks may be handed out
      current = node;
      isFilled = waiting?.length !== SWEEP_BATCH;
      if (signal.aborted || (node && !isSame(node, known.node))) return UNDECIDED;
      isExcluded = open.tasks.length > 0 && open.tasks.every((task) => mayNotHave(task, nodeId));
      if (isExcluded && !open.isAll) return UNDECIDED; // there may be others behind them
      const at: Moment = { now: this.#clock.now(), steady: this.#clock.steady(), gate };
      const beat = { ...at, leaseMs: node ? leaseOf(node) : 0 };
      const rows = { started, gifts, open: open.tasks, waiting: waiting ?? [] };
      return nextTask(node, nodeId, rows, beat, known.isBeaten);
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
   * When a day has begun, and there are budgets: wakes all waiting calls, because there may be tasks that were kept back.
   * Returns whether it is so.
   */
  turnDay(): boolean {
    const gate = this.#gate;
    const day = dayOf(this.#clock.now());
    if (gate === null || gate.day === day || gate.budgets.length === 0) return false;
    this.#gate = { ...gate, day }; // once; the next transaction loads it
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

/** Whether what was loaded for a node as it was known serves it still. */
function isSame(node: Node, before: Node | null): boolean {
  if (!before || node.capabilities.join() !== before.capabilities.join()) return false;
  return node.online || (!before.online && node.autoAssign === before.autoAssign);
}
