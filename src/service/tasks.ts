/** The use cases of tasks. Each write uses the Transact it is given, so that the caller can add to the commit. */
import { balance, isAvailable } from "../domain/balancer.ts";
import type { Change } from "../domain/change.ts";
import {
  type Accepted,
  type Decision,
  type Rejected,
  Rejection,
  UNDECIDED,
  accept,
} from "../domain/decision.ts";
import { BALANCE_ROUND_MAX, PULL_ANSWER_MAX_BYTES, SWEEP_BATCH } from "../domain/limits.ts";
import type { Moment, Node, Task, TaskResult } from "../domain/model.ts";
import {
  type Completion,
  type CreatorRequest,
  type HolderRequest,
  type Sent,
  type TaskDraft,
  assignTo,
  cancel,
  complete,
  create,
  createSent,
  expire,
  extend,
  fail,
  makeReady,
  release,
  releaseAll,
  remove,
  requeue,
  retry,
  revoke,
  settle,
  take,
  timeOut,
} from "../domain/task.ts";
import type { Clock } from "../lib/clock.ts";
import type { NewId } from "../lib/ids.ts";
import { candidatesFor, openTasks } from "../store/sql/balancer.ts";
import { nodeById, nodesById } from "../store/sql/nodes.ts";
import { NO_ROW } from "../store/sql/query.ts";
import {
  type TaskTotals,
  claimableSizes,
  dependenciesById,
  dueTasks,
  expiredTasks,
  firstDependents,
  firstSettlement,
  strandedTasks,
  taskById,
  taskTotals,
  taskWork,
  tasksById,
  tasksHeld,
  tasksOfDeleted,
  timedOutTasks,
  waitingFor,
} from "../store/sql/tasks.ts";
import type { Query, Store, Transact } from "../store/store.ts";
import { type Assignment, BalancerRounds } from "./balancer-rounds.ts";
import { getNode } from "./known-node.ts";
import { Rows, loadRows, upToBytes } from "./list-pages.ts";
import { TaskLists } from "./task-lists.ts";
import { TopNodes } from "./top-nodes.ts";

/** Why a deleted node's tasks were released. */
export const NODE_DELETED = "the node was deleted";

/** The outcome of one item of a batch: `code` says why it was rejected; null when it was assigned. */
export type BatchItem = Assignment & { readonly code: string | null };
export type BalanceReport = { readonly assignments: readonly Assignment[]; readonly pending: number };
/** How many tasks a step of the periodic work changed, and whether there may be more to do. */
export type StepResult = { readonly moved: number; readonly isMore: boolean };
type Rule = (tasks: readonly Task[], at: Moment) => Accepted<readonly Task[]>;
export type TaskStats = { readonly totals: TaskTotals; readonly top: readonly Node[] };

/** No tasks have these ids. */
export class UnknownTasks extends Error {
  override readonly name = "UnknownTasks";
  readonly taskIds: readonly string[];

  constructor(taskIds: readonly string[]) {
    super(`There are no tasks ${taskIds.join(", ")}.`);
    this.taskIds = taskIds;
  }
}

export class TaskService {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #newId: NewId;
  readonly #rounds: BalancerRounds;
  readonly #top: TopNodes;
  /** Steps that follow a commit and have not begun. */
  readonly #following = new Map<string, Promise<void>>();
  readonly lists: TaskLists;

  constructor(store: Store, clock: Clock, newId: NewId) {
    this.#store = store;
    this.#clock = clock;
    this.#newId = newId;
    this.#rounds = new BalancerRounds(store, clock);
    this.#top = new TopNodes(store);
    this.lists = new TaskLists(store);
  }

  /** Returns the ids that name no task. */
  async unknown(taskIds: readonly string[]): Promise<readonly string[]> {
    return without(taskIds, await this.#store.read(dependenciesById(taskIds)));
  }

  /** @throws {UnknownTasks} when it depends on tasks that there are not */
  async create(transact: Transact, draft: TaskDraft): Promise<Task> {
    const taskId = this.#newId();
    const at = this.#at();
    const { balanced, taskType, dependsOn } = draft;
    if (!balanced && dependsOn.length === 0) return transact({}, () => create(draft, taskId, [], at));
    const load = {
      candidates: balanced ? candidatesFor(taskType, null) : NO_ROW,
      dependencies: dependsOn.length > 0 ? dependenciesById(dependsOn) : NO_ROW,
    };
    let unknown: readonly string[] = [];
    const created = await transact(load, ({ candidates, dependencies }) => {
      unknown = without(dependsOn, dependencies ?? []);
      if (unknown.length > 0) return UNDECIDED;
      return create(draft, taskId, candidates ?? [], at, dependencies ?? []);
    });
    if (!created) throw new UnknownTasks(unknown);
    return created;
  }

  /**
   * As create(). A refusal is not stored for a repeat, because the node may be online again by then.
   * @throws {UnknownTasks}
   * @throws {Rejection} when the node that it is sent to does not take it
   */
  async createSent(transact: Transact, draft: TaskDraft, sent: Sent): Promise<Task> {
    const taskId = this.#newId();
    const at = this.#at();
    const { balanced, taskType, dependsOn } = draft;
    const load = {
      candidates: balanced ? candidatesFor(taskType, null) : NO_ROW,
      dependencies: dependsOn.length > 0 ? dependenciesById(dependsOn) : NO_ROW,
      node: sent.nodeId === null ? NO_ROW : nodeById(sent.nodeId),
    };
    let unknown: readonly string[] = [];
    const outcome = await transact(load, ({ candidates, dependencies, node }) => {
      unknown = without(dependsOn, dependencies ?? []);
      if (unknown.length > 0) return UNDECIDED;
      const rows = { candidates: candidates ?? [], dependencies: dependencies ?? [], node };
      const decision = createSent(draft, sent, taskId, rows, at);
      if (decision.kind === "rejected") return { ...accept<Task | Rejected>(decision), isStored: false };
      return accept<Task | Rejected>(decision.answer, decision.changes);
    });
    if (!outcome) throw new UnknownTasks(unknown);
    if ("kind" in outcome) throw new Rejection(outcome);
    return outcome;
  }

  take(transact: Transact, by: "claim" | "assign", { taskId, nodeId }: Assignment): Promise<Task> {
    const at = this.#at();
    return transact({ task: taskById(taskId), node: nodeById(nodeId) }, ({ task, node }) =>
      take(task, node, { taskId, nodeId, by }, at),
    );
  }

  async complete(
    transact: Transact,
    asked: HolderRequest & { result: TaskResult; claimOnComplete: boolean },
  ): Promise<Completion> {
    const at = this.#at();
    const { taskId, nodeId } = asked;
    const entryId = this.#newId();
    const load = { task: taskById(taskId), node: nodeById(nodeId) };
    const done = await transact(load, ({ task, node }) => complete(task, node, { ...asked, entryId }, at));
    if (done.hasDependents) await this.#settleIfPossible();
    if (done.madeRoom) await this.fillIfPossible(nodeId);
    return done;
  }

  release(transact: Transact, asked: HolderRequest & { reason: string | null }): Promise<Task> {
    const at = this.#at();
    return this.#endHold(transact, asked, asked.nodeId, ({ task, node, candidates }) =>
      release(task, node, candidates, asked, at),
    );
  }

  fail(transact: Transact, asked: HolderRequest & { error: string; retry: boolean }): Promise<Task> {
    const at = this.#at();
    return this.#endHold(transact, asked, null, ({ task, node, candidates }) =>
      fail(task, node, candidates, asked, at),
    );
  }

  extend(transact: Transact, asked: HolderRequest & { note: string | null }): Promise<Task> {
    const at = this.#at();
    const load = { task: taskById(asked.taskId), node: nodeById(asked.nodeId) };
    return transact(load, ({ task, node }) => extend(task, node, asked, at));
  }

  /**
   * Takes a task from its node. Then others may get the task, and the node may get another one. `notNode` is no
   * candidate.
   */
  async #endHold(
    transact: Transact,
    { taskId, nodeId }: Assignment,
    notNode: string | null,
    decide: (rows: { task: Task | null; node: Node | null; candidates: readonly Node[] }) => Decision<Task>,
  ): Promise<Task> {
    // The candidates depend on the task, so it is read first; the rule checks both again.
    const before = await this.#store.read(taskById(taskId));
    const load = {
      task: taskById(taskId),
      node: nodeById(nodeId),
      candidates: candidatesIfBalanced(before, notNode),
    };
    const after = await transact(load, ({ candidates, ...rows }) =>
      decide({ ...rows, candidates: candidates ?? [] }),
    );
    await this.#settleAfter(after);
    await this.fillIfPossible(nodeId);
    return after;
  }

  async revoke(
    transact: Transact,
    asked: { taskId: string; nodeId: string | null; reason: string | null },
  ): Promise<Task> {
    const at = this.#at();
    // The candidates depend on the task's type, which never changes, and on its node, which the transaction checks.
    const before = await this.#store.read(taskById(asked.taskId));
    const target = asked.nodeId === null ? NO_ROW : nodeById(asked.nodeId);
    for (let from = before?.assignedNode ?? null; ;) {
      const candidates = candidatesIfBalanced(before, from);
      const load = { task: taskById(asked.taskId), target, candidates };
      const revoked = await transact(load, (rows) => {
        const holder = rows.task?.assignedNode ?? null;
        if (holder === from) return revoke(rows.task, rows.target, rows.candidates ?? [], asked, at);
        from = holder;
        return UNDECIDED;
      });
      if (!revoked) continue;
      if (from !== null) await this.fillIfPossible(from);
      return revoked;
    }
  }

  async cancel(
    transact: Transact,
    asked: CreatorRequest & { nodeId: string | null; reason: string | null },
  ): Promise<Task> {
    const at = this.#at();
    const node = asked.nodeId === null ? NO_ROW : nodeById(asked.nodeId);
    let from: string | null = null;
    const cancelled = await transact({ task: taskById(asked.taskId), node }, (rows) => {
      from = rows.task?.assignedNode ?? null;
      return cancel(rows.task, rows.node, asked, at);
    });
    await this.#settleAfter(cancelled);
    if (from !== null) await this.fillIfPossible(from);
    return cancelled;
  }

  async retry(transact: Transact, asked: CreatorRequest): Promise<Task> {
    const at = this.#at();
    // What it depends on never changes, so it is read first.
    const before = await this.#store.read(taskById(asked.taskId));
    const dependsOn = before?.dependsOn ?? [];
    const load = {
      task: taskById(asked.taskId),
      dependencies: dependsOn.length > 0 ? dependenciesById(dependsOn) : NO_ROW,
      candidates: candidatesIfBalanced(before, null),
    };
    const retried = await transact(load, ({ task, dependencies, candidates }) =>
      retry(task, dependencies ?? [], candidates ?? [], asked, at),
    );
    await this.#settleAfter(retried);
    return retried;
  }

  async remove(transact: Transact, taskId: string): Promise<Task> {
    const now = this.#clock.now();
    const task = await transact({ task: taskById(taskId) }, ({ task }) => remove(task, taskId, now));
    if (task.hasDependents) await this.#settleIfPossible();
    if (task.status === "assigned" && task.assignedNode !== null)
      await this.fillIfPossible(task.assignedNode);
    return task;
  }

  /** Assigns a list of tasks in order and in one commit; a rejected item does not affect the others. */
  assignAll(transact: Transact, asked: readonly Assignment[]): Promise<readonly BatchItem[]> {
    const at = this.#at();
    const load = {
      tasks: tasksById([...new Set(asked.map((item) => item.taskId))]),
      nodes: nodesById([...new Set(asked.map((item) => item.nodeId))]),
    };
    return transact(load, (rows) => {
      const tasks = new Map(rows.tasks.map((task) => [task.taskId, task]));
      const nodes = new Map(rows.nodes.map((node) => [node.nodeId, node]));
      const changes: Change[] = [];
      const items = asked.map(({ taskId, nodeId }): BatchItem => {
        const item = { taskId, nodeId, by: "assign" } as const;
        const taken = take(tasks.get(taskId) ?? null, nodes.get(nodeId) ?? null, item, at);
        if (taken.kind === "rejected") return { taskId, nodeId, code: taken.code };
        tasks.set(taskId, taken.answer); // later items see the effect of earlier ones
        changes.push(...taken.changes);
        return { taskId, nodeId, code: null };
      });
      return accept(items, changes);
    });
  }

  /** batch-assign of variant B: at most BALANCE_ROUND_MAX tasks; a caller that gets that many should call again. */
  async runBalancer(transact: Transact): Promise<BalanceReport> {
    const { assignments } = await this.#rounds.run(false);
    return transact({ totals: taskTotals() }, ({ totals }) => ({
      ...accept({ assignments, pending: totals.open }),
      isStored: assignments.length > 0,
    }));
  }

  /**
   * Assigns open tasks to a node that has room. The caller's own write is already on disk, so a failure here is not
   * reported: the balancer's next round assigns the tasks.
   */
  fillIfPossible(nodeId: string): Promise<void> {
    return this.#together(`fill ${nodeId}`, () => this.#fill(nodeId));
  }

  /**
   * Runs a step once for all callers that ask before it begins (single-flight), such as the requests of one batch after
   * its commit. A failure is not reported.
   */
  #together(name: string, step: () => Promise<void>): Promise<void> {
    let following = this.#following.get(name);
    if (!following) {
      following = Promise.resolve()
        .then(() => {
          this.#following.delete(name);
          return step();
        })
        .catch(() => {});
      this.#following.set(name, following);
    }
    return following;
  }

  async #fill(nodeId: string): Promise<void> {
    const node = await this.#store.read(nodeById(nodeId));
    if (!node || !isAvailable(node)) return;
    // The balancer's next round assigns the rest of a very long backlog.
    for (let given = 0; given < BALANCE_ROUND_MAX; given += SWEEP_BATCH) {
      const at = this.#at();
      const load = { node: nodeById(nodeId), waiting: waitingFor(node, SWEEP_BATCH) };
      const count = await this.#store.transact(load, ({ node: current, waiting }) => {
        const found = current ? balance(waiting, [current], at.now) : [];
        const changes = found.flatMap((item) => assignTo(item.task, item.nodeId, "balancer", at).changes);
        return accept(found.length, changes);
      });
      if (count < SWEEP_BATCH) return;
    }
  }

  /** Makes at most SWEEP_BATCH tasks of offline nodes open again. Returns how many there were. */
  requeueSome(): Promise<number> {
    return this.#apply(() => strandedTasks(SWEEP_BATCH), requeue);
  }

  /** The same for tasks of deleted nodes. */
  async releaseSomeOfDeleted(): Promise<number> {
    if ((await this.#store.read(tasksOfDeleted(1))).length === 0) return 0;
    const rule = (tasks: readonly Task[], at: Moment) => releaseAll(tasks, NODE_DELETED, at);
    return this.#apply(() => tasksOfDeleted(SWEEP_BATCH), rule);
  }

  /** Makes tasks of a node open again, until it holds fewer than a last step can free. Returns how many there were. */
  async releaseMost(nodeId: string, reason: string): Promise<number> {
    const held = () => tasksHeld(nodeId, SWEEP_BATCH);
    let released = 0;
    while ((await this.#store.read(held())).length === SWEEP_BATCH) {
      const at = this.#at();
      const step = await this.#store.transact({ tasks: held() }, ({ tasks }) =>
        releaseAll(tasks, reason, at),
      );
      released += step.length;
    }
    return released;
  }

  /**
   * The steps of the periodic work that find something to do now: they expire tasks, take back those whose lease has run
   * out, update those whose dependencies have ended, and make those ready whose time has come. Each handles about
   * SWEEP_BATCH tasks.
   */
  async dueSteps(): Promise<readonly (() => Promise<StepResult>)[]> {
    const { now, steady } = this.#at();
    const work = await this.#store.read(taskWork(now, steady));
    const step = (queryAt: (at: Moment) => Query<readonly Task[]>, rule: Rule) => async () => {
      const moved = await this.#apply(queryAt, rule);
      return { moved, isMore: moved >= SWEEP_BATCH };
    };
    const steps: (() => Promise<StepResult>)[] = [];
    if (work.expired) steps.push(step((at) => expiredTasks(at.now, SWEEP_BATCH), expire));
    if (work.timedOut) steps.push(step((at) => timedOutTasks(at.steady, SWEEP_BATCH), timeOut));
    // After the steps that end tasks, because others may depend on those.
    if (work.settled || steps.length > 0) steps.push(() => this.#settleSome());
    if (work.due) steps.push(step((at) => dueTasks(at.now, SWEEP_BATCH), makeReady));
    return steps;
  }

  /** Applies a rule to the tasks of a query. Returns how many there were. */
  async #apply(queryAt: (at: Moment) => Query<readonly Task[]>, rule: Rule): Promise<number> {
    const at = this.#at();
    const moved = await this.#store.transact({ tasks: queryAt(at) }, ({ tasks }) => rule(tasks, at));
    return moved.length;
  }

  /** Updates about SWEEP_BATCH tasks whose dependencies have ended: the dependents of at most SWEEP_BATCH tasks. */
  async #settleSome(): Promise<StepResult> {
    let moved = 0;
    for (let ended = 0; ended < SWEEP_BATCH && moved < SWEEP_BATCH; ended++) {
      const at = this.#at();
      const load = { settlement: firstSettlement(), tasks: firstDependents(SWEEP_BATCH) };
      const updated = await this.#store.transact(load, ({ settlement, tasks }) => {
        if (!settlement) return accept(null);
        const { taskId, outcome } = settlement;
        const { changes } = settle(tasks, taskId, outcome, at);
        if (tasks.length === SWEEP_BATCH) return accept(tasks.length, changes);
        return accept(tasks.length, [...changes, { kind: "settlement.removed", taskId }]);
      });
      if (updated === null) return { moved, isMore: false };
      moved += updated;
    }
    return { moved, isMore: true };
  }

  async #settleAfter(task: Task): Promise<void> {
    if (task.hasDependents && task.status === "failed") await this.#settleIfPossible();
  }

  /** The end of the task is on disk, so a failure here is not reported: the periodic work does the same, and the rest. */
  #settleIfPossible(): Promise<void> {
    return this.#together("settle", async () => {
      if ((await this.#settleSome()).moved > 0) await this.#rounds.run(true);
    });
  }

  #at(): Moment {
    return { now: this.#clock.now(), steady: this.#clock.steady() };
  }

  /** After the deletion of a node: opens its remaining tasks and runs the balancer. If it fails, periodic work does it. */
  async releaseDeletedIfPossible(): Promise<void> {
    try {
      while ((await this.releaseSomeOfDeleted()) >= SWEEP_BATCH);
      await this.#rounds.run(true);
    } catch {
      // Not reported: the deletion itself is on disk.
    }
  }

  /** The open tasks that a node could claim, best first, as many as one answer carries. @throws {Rejection} node_not_found */
  async claimable(nodeId: string, limit: number): Promise<Rows<Task>> {
    const { capabilities, draining } = await getNode(this.#store, nodeId);
    if (draining) return new Rows([]);
    const sizes = await this.#store.read(claimableSizes(capabilities, limit));
    // A task may have been claimed before its part is loaded: openTasks() omits it.
    return loadRows(upToBytes(sizes, PULL_ANSWER_MAX_BYTES), openTasks, (query) => this.#store.read(query));
  }

  async stats(): Promise<TaskStats> {
    const totals = await this.#store.read(taskTotals());
    return { totals, top: await this.#top.read() };
  }
}

/** The candidates for a task, whose type and `balanced` never change; nothing for one that the balancer may not assign. */
function candidatesIfBalanced(task: Task | null, notNode: string | null): Query<readonly Node[] | null> {
  return task?.balanced ? candidatesFor(task.taskType, notNode) : NO_ROW;
}

/** Those of `taskIds` that are none of `tasks`. */
function without(taskIds: readonly string[], tasks: readonly Pick<Task, "taskId">[]): readonly string[] {
  const known = new Set(tasks.map(({ taskId }) => taskId));
  return taskIds.filter((taskId) => !known.has(taskId));
}
