/**
 * The use case of task/next: a worker asks for its next task (task-search.ts), and waits for one (idle-workers.ts).
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
import { also, Rejection } from "../domain/decision.ts";
import { typesFor } from "../domain/lane.ts";
import { LANES_LOOKED_UP, NOT_TAKEN_MAX, OPEN_TYPES_MAX, SWEEP_BATCH } from "../domain/limits.ts";
import type { JoinedThrough, Node, Task } from "../domain/model.ts";
import { type Next, type TakenFrom, returnGift } from "../domain/task/next.ts";
import type { Clock } from "../lib/clock.ts";
import { backlogTypes } from "../store/sql/balancer.ts";
import { headsOf, readyLanes } from "../store/sql/lanes.ts";
import { nodeById } from "../store/sql/nodes.ts";
import { NO_ROW, NO_ROWS } from "../store/sql/query.ts";
import { bestGift, firstStarted, firstUnacknowledged, taskById } from "../store/sql/tasks.ts";
import { bestOfLanes, bestReady, waitingFor } from "../store/sql/ready-tasks.ts";
import {
  type Answer,
  type Committed,
  type Store,
  type Transact,
  transactAlso,
  uncommitted,
} from "../store/store.ts";
import type { TakerPatience, Takes } from "./blocked-calls.ts";
import type { IdleWorkers } from "./idle-workers.ts";
import type { KnownLanes } from "./known-lanes.ts";
import type { NodeService } from "./nodes.ts";
import { type Candidates, type Looked, type TaskSource, type Wanted, TaskSearch } from "./task-search.ts";
import type { TaskService } from "./tasks.ts";
import { UseCases } from "./use-cases.ts";

const CALLER_GONE = "the caller hung up";

type NextRequest = {
  readonly nodeId: string;
  /** Null is every type that the node takes. */
  readonly taskTypes: readonly string[] | null;
  /** How long the node is not offered what it gave back. */
  readonly restMs: number;
  /** First what the node has started and not finished. */
  readonly resume: boolean;
  /** Many requests of one node: they load together. */
  readonly inBatch: boolean;
};

/** `task` null: none in time; `draining`: the node gets no new tasks. */
export type NextAnswer = Pick<Next, "task" | "draining">;

export class NextService extends UseCases {
  readonly #nodes: NodeService;
  readonly #tasks: TaskService;
  readonly #idle: IdleWorkers;
  readonly #takes: Takes;
  readonly #knownLanes: KnownLanes;
  /** By the node's id. */
  readonly #reading = new Map<string, Promise<Node | null>>();

  constructor(
    store: Store,
    clock: Clock,
    nodes: NodeService,
    tasks: TaskService,
    idle: IdleWorkers,
    takes: Takes,
  ) {
    super(store, clock);
    this.#takes = takes;
    this.#nodes = nodes;
    this.#tasks = tasks;
    this.#knownLanes = tasks.knownLanes;
    this.#idle = idle;
  }

  /**
   * Without a wait it joins no queue, and usually is one transaction, as a batch needs it.
   * @throws {Rejection} node_not_found, also when the node is deleted meanwhile
   * @throws {WaitAborted} when the caller is gone before anything was taken permanently
   */
  async next(
    transact: Transact<NextAnswer>,
    request: NextRequest,
    patience: TakerPatience,
  ): Promise<Answer<NextAnswer>> {
    const { nodeId, taskTypes, restMs, inBatch } = request;
    const { signal } = patience;
    const worker = patience.waitMs > 0 ? this.#idle.join(nodeId) : null;
    const search = new TaskSearch({
      nodeId,
      taskTypes,
      restMs,
      signal,
      worker,
      knownLanes: this.#knownLanes,
      clock: this.clock,
      source: this.#sourceOf(transact, request),
      // Of many requests that choose the same few lanes most would have to choose again, and the batch with them.
      lookUps: inBatch ? Infinity : LANES_LOOKED_UP,
    });
    const next = await this.#takes.untilTaken(worker, () => search.take(), patience);
    if (!next) return uncommitted<NextAnswer>({ task: null, draining: false });
    if (next.task === null) return next;
    const { task, from } = next;
    return this.#takes.deliver(next, patience, () => this.#putBack(nodeId, task, from));
  }

  /**
   * The task that a node has started first, and about which it has sent no note since: its dispatch may not have arrived.
   * For callers that must not be handed a second task while they do not know of the first.
   */
  unacknowledged(nodeId: string): Promise<Task | null> {
    return this.store.read(firstUnacknowledged(nodeId));
  }

  /**
   * When it asks for `taskTypes` (null: all that it takes), in alphabetical order, NOT_TAKEN_MAX at most; "" is no
   * type.
   */
  async notTaken(
    node: Pick<Node, "capabilities">,
    requestedTypes: readonly string[] | null,
  ): Promise<readonly string[]> {
    const taken = typesFor(node, requestedTypes);
    if (taken === null) return [];
    const [balanced, others, untyped, lanes] = await Promise.all([
      this.store.read(backlogTypes(true, "", NOT_TAKEN_MAX + taken.length)),
      this.store.read(backlogTypes(false, "", NOT_TAKEN_MAX + taken.length)),
      this.store.read(bestReady([""])),
      this.store.read(readyLanes()),
    ]);
    const special = lanes.values().map(({ taskType }) => taskType);
    const types = new Set([...(untyped.tasks.length > 0 ? [""] : []), ...balanced, ...others, ...special]);
    return [...types]
      .filter((type) => !taken.includes(type))
      .toSorted()
      .slice(0, NOT_TAKEN_MAX);
  }

  /** The node as it may be: the transaction checks it. The requests of a batch read it together. */
  #readNode({ nodeId, inBatch }: NextRequest): Promise<Node | null> {
    if (!inBatch) return this.store.read(nodeById(nodeId));
    let reading = this.#reading.get(nodeId);
    if (!reading) {
      reading = this.store.read(nodeById(nodeId)).finally(() => this.#reading.delete(nodeId));
      this.#reading.set(nodeId, reading);
    }
    return reading;
  }

  #sourceOf(transact: Transact<NextAnswer>, request: NextRequest): TaskSource<Committed<Next>> {
    return {
      readNode: () => this.#readNode(request),
      typesBut: (closed) => this.#typesBut(closed),
      handOut: (wanted, decide) => this.#handOut(transact, request, wanted, decide),
    };
  }

  /**
   * The types of ready tasks in plain lanes. Each costs one lookup, however many tasks it has. Reads so many of
   * each list that a list which is cut off leaves, together with "", more than OPEN_TYPES_MAX open types: then null.
   */
  async #typesBut(closed: ReadonlySet<string>): Promise<readonly string[] | null> {
    await Promise.resolve(); // a listener of decisions may have woken the worker, and must not read
    const limit = OPEN_TYPES_MAX + closed.size;
    const [balanced, others] = await Promise.all([
      this.store.read(backlogTypes(true, "", limit)),
      this.store.read(backlogTypes(false, "", limit)),
    ]);
    const open = new Set(["", ...balanced, ...others]).difference(closed);
    return open.size > OPEN_TYPES_MAX ? null : [...open];
  }

  /** With what follows a dispatch. */
  async #handOut(
    transact: Transact<NextAnswer>,
    request: NextRequest,
    wanted: Wanted,
    decide: (rows: Candidates) => Looked,
  ) {
    const comesBack = wanted.node !== null && !wanted.node.online;
    const load = this.#loadFor(request, wanted);
    const { answer, also: learnt } = await transactAlso(transact, load, (rows) => {
      // What waits in special lanes is not loaded, and is left to the balancer.
      const waiting = rows.lanes.size === 0 ? rows.waiting : [];
      const isMore = comesBack && (rows.lanes.size > 0 || waiting.length === SWEEP_BATCH);
      const looked = decide({ ...rows, waiting });
      return also(looked, { ...looked.also, hasMoreWaiting: isMore });
    });
    if (!answer) return { answer, also: learnt };
    // Neither rejects: the task is handed out, and the periodic work does what they could not.
    if (answer.ended) await this.#tasks.followUps.ofFailed(answer.ended);
    if (learnt?.hasMoreWaiting) await this.#tasks.fillIfPossible(request.nodeId);
    return { answer, also: learnt };
  }

  #loadFor(
    { nodeId, resume, inBatch }: NextRequest,
    { node, types, special, isPart, closed, leavesOutExcluded, resting }: Wanted,
  ) {
    return {
      node: nodeById(nodeId),
      started: resume ? firstStarted(nodeId) : NO_ROW,
      gifts: bestGift(nodeId),
      open: bestReady(types, inBatch, closed, leavesOutExcluded ? { butFor: nodeId, resting } : {}),
      // `butFor`: of a lane only the best task is loaded; one that the node may not have would hide those behind it.
      special: bestOfLanes(special, closed, { turnOf: this.#knownLanes.turnOf, butFor: nodeId, resting }),
      heads: isPart ? headsOf(special.map(({ name }) => name)) : NO_ROW,
      lanes: readyLanes(),
      waiting: node && !node.online ? waitingFor(node, SWEEP_BATCH) : NO_ROWS,
      gate: this.gate(),
    };
  }

  beatWaiting(variant: JoinedThrough): Promise<void> {
    return this.#nodes.beatTogether(this.#idle.nodesOf(variant));
  }

  /** A new day of budgets, the end of a hold, a rate. Wakes all waiting calls. Returns whether it is so. */
  openByTime(): boolean {
    const hasOpened = this.#knownLanes.hasOpenedByTime(this.clock.now());
    if (hasOpened) this.#idle.wakeAll();
    return hasOpened;
  }

  /** To where it was: open, or a gift of the node. What the node had started before stays started. */
  async #putBack(nodeId: string, { taskId, epoch }: Task, from: TakenFrom): Promise<void> {
    const holder = { taskId, nodeId, epoch };
    const { transact } = this.store;
    if (from === "gifts")
      await transact({ task: taskById(taskId) }, ({ task }) => returnGift(task, holder, this.at()));
    if (from !== "open") return;
    try {
      await this.#tasks.release(transact, { ...holder, reason: CALLER_GONE });
    } catch (error) {
      if (!(error instanceof Rejection)) throw error; // else it was taken back meanwhile
    }
  }
}
