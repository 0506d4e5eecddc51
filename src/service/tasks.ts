/** The use cases of tasks. Each write uses the Transact it is given, so that the caller can add to the commit. */
import { balance, isAvailable } from "../domain/balancer.ts";
import type { Change } from "../domain/change.ts";
import { accept } from "../domain/decision.ts";
import { BALANCE_ROUND_MAX, PULL_ANSWER_MAX_BYTES, SWEEP_BATCH } from "../domain/limits.ts";
import type { Node, Task, TaskResult, TaskStatus } from "../domain/model.ts";
import {
  type Completion,
  type TaskDraft,
  assignTo,
  complete,
  create,
  remove,
  release,
  requeue,
  revoke,
  take,
} from "../domain/task.ts";
import type { Clock } from "../lib/clock.ts";
import type { NewId } from "../lib/ids.ts";
import { candidatesFor, openTasks } from "../store/sql/balancer.ts";
import { deletedNode, nodeById, nodesById } from "../store/sql/nodes.ts";
import { NOTHING } from "../store/sql/query.ts";
import {
  type TaskTotals,
  claimableSizes,
  strandedTasks,
  taskById,
  taskSizes,
  taskTotals,
  tasksById,
  tasksBySeq,
  tasksOfDeleted,
  unfinishedFirstBySeq,
  unfinishedFirstSizes,
  waitingFor,
} from "../store/sql/tasks.ts";
import type { Store, Transact } from "../store/store.ts";
import { type Assignment, BalancerRounds } from "./balancer-rounds.ts";
import { knownNode } from "./known-node.ts";
import { ListPages, type Page, type PageRequest, type Rows, loadRows, upToBytes } from "./list-pages.ts";
import { TopNodes } from "./top-nodes.ts";

/** Why a deleted node's tasks were released. */
export const NODE_DELETED = "the node was deleted";

/** The outcome of one item of a batch: `code` says why it was rejected; null when it was assigned. */
export type BatchItem = Assignment & { readonly code: string | null };
export type BalanceReport = { readonly assignments: readonly Assignment[]; readonly pending: number };
export type TaskStats = { readonly totals: TaskTotals; readonly top: readonly Node[] };

export class TaskService {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #newId: NewId;
  readonly #rounds: BalancerRounds;
  readonly #top: TopNodes;
  readonly #pages: ListPages;

  constructor(store: Store, clock: Clock, newId: NewId) {
    this.#store = store;
    this.#clock = clock;
    this.#newId = newId;
    this.#rounds = new BalancerRounds(store, clock);
    this.#top = new TopNodes(store);
    this.#pages = new ListPages(store);
  }

  create(transact: Transact, draft: TaskDraft): Promise<Task> {
    const taskId = this.#newId();
    const now = this.#clock.now();
    if (!draft.balanced) return transact({}, () => create(draft, taskId, [], now));
    return transact({ candidates: candidatesFor(draft.taskType, null) }, ({ candidates }) =>
      create(draft, taskId, candidates, now),
    );
  }

  take(transact: Transact, by: "claim" | "assign", { taskId, nodeId }: Assignment): Promise<Task> {
    const now = this.#clock.now();
    return transact({ task: taskById(taskId), node: nodeById(nodeId) }, ({ task, node }) =>
      take(task, node, { taskId, nodeId, by }, now),
    );
  }

  async complete(
    transact: Transact,
    asked: Assignment & { result: TaskResult; claimOnComplete: boolean },
  ): Promise<Completion> {
    const now = this.#clock.now();
    const { taskId, nodeId } = asked;
    const entryId = this.#newId();
    const load = { task: taskById(taskId), node: nodeById(nodeId) };
    const done = await transact(load, ({ task, node }) => complete(task, node, { ...asked, entryId }, now));
    if (done.madeRoom) await this.fillIfPossible(nodeId);
    return done;
  }

  async revoke(
    transact: Transact,
    asked: { taskId: string; nodeId: string | null; reason: string | null },
  ): Promise<Task> {
    const now = this.#clock.now();
    // The candidates depend on the task, so the task is read first. The rule checks both again.
    const before = await this.#store.read(taskById(asked.taskId));
    const candidates = candidatesFor(before?.taskType ?? "", before?.assignedNode ?? null);
    const target = asked.nodeId === null ? NOTHING : nodeById(asked.nodeId);
    const revoked = await transact({ task: taskById(asked.taskId), target, candidates }, (rows) =>
      revoke(rows.task, rows.target, rows.candidates, asked, now),
    );
    if (before?.assignedNode) await this.fillIfPossible(before.assignedNode);
    return revoked;
  }

  async remove(transact: Transact, taskId: string): Promise<Task> {
    const now = this.#clock.now();
    const task = await transact({ task: taskById(taskId) }, ({ task }) => remove(task, taskId, now));
    if (task.status === "assigned" && task.assignedNode !== null)
      await this.fillIfPossible(task.assignedNode);
    return task;
  }

  /** Assigns a list of tasks in order and in one commit; a rejected item does not affect the others. */
  assignAll(transact: Transact, asked: readonly Assignment[]): Promise<readonly BatchItem[]> {
    const now = this.#clock.now();
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
        const taken = take(tasks.get(taskId) ?? null, nodes.get(nodeId) ?? null, item, now);
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
      tellsEarlierChanges: assignments.length > 0,
    }));
  }

  /**
   * Assigns open tasks to a node that has room. The caller's own write is already on disk, so a failure here is not
   * reported: the balancer's next round assigns the tasks.
   */
  async fillIfPossible(nodeId: string): Promise<void> {
    await this.#fill(nodeId).catch(() => {});
  }

  async #fill(nodeId: string): Promise<void> {
    const node = await this.#store.read(nodeById(nodeId));
    if (!node || !isAvailable(node)) return;
    // The balancer's next round assigns the rest of a very long backlog.
    for (let given = 0; given < BALANCE_ROUND_MAX; given += SWEEP_BATCH) {
      const now = this.#clock.now();
      const load = { node: nodeById(nodeId), waiting: waitingFor(node, SWEEP_BATCH) };
      const count = await this.#store.transact(load, ({ node: current, waiting }) => {
        const found = current ? balance(waiting, [current], now) : [];
        const changes = found.flatMap((item) => assignTo(item.task, item.nodeId, "balancer", now).changes);
        return accept(found.length, changes);
      });
      if (count < SWEEP_BATCH) return;
    }
  }

  /** Makes the tasks of offline nodes open again, in bounded steps. Returns how many. */
  async requeueStranded(signal: AbortSignal): Promise<number> {
    let total = 0;
    while (!signal.aborted) {
      const now = this.#clock.now();
      const load = { tasks: strandedTasks(SWEEP_BATCH) };
      const moved = await this.#store.transact(load, ({ tasks }) => requeue(tasks, now));
      total += moved;
      if (moved < SWEEP_BATCH) break;
    }
    return total;
  }

  /** Makes the tasks of deleted nodes open again, in bounded steps. Returns how many. */
  async releaseDeleted(signal?: AbortSignal): Promise<number> {
    let total = 0;
    while (!signal?.aborted && (await this.#store.read(tasksOfDeleted(1))).length > 0) {
      const now = this.#clock.now();
      const load = { tasks: tasksOfDeleted(SWEEP_BATCH) };
      total += await this.#store.transact(load, ({ tasks }) => release(tasks, NODE_DELETED, now));
    }
    return total;
  }

  /** After the deletion of a node: opens its remaining tasks and runs the balancer. If it fails, periodic work does it. */
  async giveOnIfPossible(): Promise<void> {
    try {
      await this.releaseDeleted();
      await this.#rounds.run(true);
    } catch {
      // Not reported: the deletion itself is on disk.
    }
  }

  /**
   * One page of the tasks in any of `statuses` (of one node, if given), newest first.
   * @param unfinishedFirst the first page begins with the unfinished tasks, newest first
   */
  list(
    statuses: readonly TaskStatus[],
    nodeId: string | null,
    page: PageRequest,
    unfinishedFirst = false,
  ): Promise<Page<Task>> {
    return this.#pages.load(page, async (read) => {
      const node =
        nodeId === null ? null : ((await read(nodeById(nodeId))) ?? (await read(deletedNode(nodeId))));
      if (nodeId !== null && node === null) return null;
      const totals = node ? totalsOf(node) : await read(taskTotals());
      return {
        total: statuses.reduce((sum, status) => sum + totals[status], 0),
        sizes: (slice) =>
          unfinishedFirst
            ? unfinishedFirstSizes(statuses, nodeId, slice.limit)
            : taskSizes(statuses, nodeId, slice),
        rowsBySeq: unfinishedFirst ? unfinishedFirstBySeq : tasksBySeq,
      };
    });
  }

  /** The open tasks that a node could claim, best first, as many as one answer carries. @throws {Rejection} node_not_found */
  async claimable(nodeId: string, limit: number): Promise<Rows<Task>> {
    const { capabilities } = await knownNode(this.#store, nodeId);
    const sizes = await this.#store.read(claimableSizes(capabilities, limit));
    // A task may have been claimed before its part is loaded: openTasks() omits it.
    return loadRows(upToBytes(sizes, PULL_ANSWER_MAX_BYTES), openTasks, (query) => this.#store.read(query));
  }

  async stats(): Promise<TaskStats> {
    const totals = await this.#store.read(taskTotals());
    return { totals, top: await this.#top.read() };
  }
}

/** `open` is 0, because an open task has no node. */
function totalsOf({ tasksAssigned, tasksCompleted }: Node): TaskTotals {
  return { open: 0, assigned: tasksAssigned, completed: tasksCompleted };
}
