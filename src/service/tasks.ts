/** The use cases of tasks. Each write uses the Transact it is given, so that the caller can add to the commit. */
import { type Candidate, balance, isAvailable } from "../domain/balancer.ts";
import { isClosed, lanesOpenTo } from "../domain/gate.ts";
import type { Change } from "../domain/change.ts";
import {
  type Accepted,
  type Decision,
  type Rejected,
  accept,
  also,
  nodeNotFound,
  Rejection,
  taskNotFound,
  UNDECIDED,
} from "../domain/decision.ts";
import { isFree } from "../domain/file.ts";
import { ownerOf } from "../domain/task/facet/group.ts";
import {
  BACKLOG_TYPES_TOGETHER,
  BALANCE_ROUND_MAX,
  DEPENDENTS_COUNTED_MAX,
  GIFTS_OF_GIVER_MAX,
  LANES_REREADS,
  PULL_ANSWER_MAX_BYTES,
  REPORT_MAX_DEFAULT_USD,
  RETRIED_DEPENDENTS_MAX,
  SWEEP_BATCH,
  UNMET_SHOWN_MAX,
} from "../domain/limits.ts";
import { isSpecial, laneOf, type Position } from "../domain/lane.ts";
import type { FileRecord, Gate, LedgerEntry, Moment, Node, Task, TaskSummary } from "../domain/model.ts";
import type { Completion } from "../domain/task/facet/reward.ts";
import type {
  CheckpointRequest,
  CompleteRequest,
  CreatorRequest,
  ReturnRequest,
  UsageRequest,
} from "../domain/task/request.ts";
import { type Created, type Sent, createSent, createWith, reservedFor } from "../domain/task/creation.ts";
import { type RetryRequest, type UpdateRequest, cancel, retry, update } from "../domain/task/creator.ts";
import type { Dependency } from "../domain/task/facet/dependencies.ts";
import type { TaskDraft } from "../domain/task/new-task.ts";
import {
  assignTo,
  complete,
  create,
  extend,
  fail,
  release,
  remove,
  revoke,
  take,
} from "../domain/task/core.ts";
import { releaseAll, requeue } from "../domain/task/chores.ts";
import { holderOfKey } from "../domain/task/facet/unique.ts";
import { isExcluded } from "../domain/task/facet/exclusion.ts";
import { isInReview } from "../domain/task/state.ts";
import { retryWithDependents } from "../domain/task/dependents.ts";
import { HUB_LIMITS, refusesMore } from "../domain/shares.ts";
import {
  type Known,
  type KnownReport,
  type SumName,
  dayOf,
  toMicroUsd,
} from "../domain/task/facet/spending.ts";
import { assert, must } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import type { NewId } from "../lib/ids.ts";
import { BACKLOG_START, backlogAfter, candidatesIfBalanced, openTasks } from "../store/sql/balancer.ts";
import { gateOn } from "../store/sql/gate.ts";
import { otherLanes, readyInLanes, readyLanes } from "../store/sql/lanes.ts";
import { filesById } from "../store/sql/files.ts";
import { entryOfTask, ledgerHead } from "../store/sql/lux.ts";
import { nodeById, nodesById } from "../store/sql/nodes.ts";
import { NO_ROW } from "../store/sql/query.ts";
import { knownReports, sumNamesOf } from "../store/sql/spending.ts";
import {
  type TaskTotals,
  brokenCount,
  brokenTasks,
  dependenciesById,
  strandedTasks,
  taskById,
  tasksById,
  tasksByUniqueKey,
  tasksHeld,
  tasksOfDeleted,
  taskTotals,
  unmetOf,
} from "../store/sql/tasks.ts";
import { bestOfLanes, claimableSizes, waitingFor } from "../store/sql/ready-tasks.ts";
import {
  type Committed,
  type Loaded,
  type Query,
  type Store,
  type Transact,
  transactAlso,
} from "../store/store.ts";
import { type Assignment, BalancerRounds } from "./balancer-rounds.ts";
import { KnownLanes } from "./known-lanes.ts";
import { getNode } from "./known-node.ts";
import { loadRows, Rows, upToBytes } from "./list-pages.ts";
import { ReviewService } from "./reviews.ts";
import { TASK_SUMMARIES, TaskLists, WHOLE_TASKS } from "./task-lists.ts";
import { TopNodes } from "./top-nodes.ts";
import { settleSome, upToDependencies } from "./dependencies.ts";
import { FollowUps } from "./follow-ups.ts";
import { endGroups } from "./groups.ts";
import { applyRule } from "./step.ts";

/** Why a deleted node's tasks were released. */
export const NODE_DELETED = "the node was deleted";

/** The outcome of one item of a batch: `code` says why it was rejected; null when it was assigned. */
export type BatchItem = Assignment & { readonly code: string | null };
export type BalanceReport = { readonly assignments: readonly Assignment[]; readonly pending: number };
/** The counts of all tasks, and the nodes that have earned the most. */
export type TaskStats = { readonly totals: TaskTotals; readonly top: readonly Node[] };

/** The tasks and files that a new task names. */
export type References = {
  readonly dependsOn: readonly string[];
  readonly fileIds: readonly string[];
};

/** A new task names tasks that there are not, or files that there are not or that belong to a task. */
export class UnusableReferences extends Error {
  override readonly name = "UnusableReferences";
  readonly references: References;

  constructor(references: References) {
    super(`A task cannot name ${[...references.dependsOn, ...references.fileIds].join(", ")}.`);
    this.references = references;
  }
}

/** The request of a new task, besides its draft. `boundTo`: the node to which the caller's key is bound. */
export type Creation = {
  readonly fileIds: readonly string[];
  readonly boundTo: string | null;
  /** The id of the task; left out: a new one. */
  readonly taskId?: string | undefined;
};

/** A task, and the first of those that it waits for. */
export type WaitingTask = { readonly task: Task; readonly waitsFor: readonly string[] };

/** The outcome of a retry; `dependents` if it was asked for: how many were opened again, and how many are left. */
export type RetryOutcome = {
  readonly task: Task;
  readonly dependents: { readonly opened: number; readonly left: number } | null;
};

/** What is loaded for reports of usage. */
type Reported = { readonly reports: readonly KnownReport[] | null; readonly sums: readonly SumName[] | null };

export class TaskService {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #newId: NewId;
  readonly #paysOwn: boolean;
  readonly #reportMaxMicro: number;
  readonly #rounds: BalancerRounds;
  readonly #top: TopNodes;
  readonly reviews: ReviewService;
  readonly followUps: FollowUps;
  readonly lists: TaskLists<Task>;
  /** The lists of tasks without their long texts. */
  readonly summaries: TaskLists<TaskSummary>;
  /** For all use cases of this hub that hand out. */
  readonly known: KnownLanes;

  /**
   * `known`: for all use cases of this hub that hand out. `paysOwn`: a node or a key is paid for a task of its own.
   * `reportMaxUsd`: what counts of the reports for a task that come with a key bound to a node.
   */
  constructor(
    store: Store,
    clock: Clock,
    newId: NewId,
    {
      known = new KnownLanes(false),
      paysOwn = true,
      reportMaxUsd = REPORT_MAX_DEFAULT_USD,
    }: { readonly known?: KnownLanes; readonly paysOwn?: boolean; readonly reportMaxUsd?: number } = {},
  ) {
    this.#reportMaxMicro = toMicroUsd(reportMaxUsd);
    this.#paysOwn = paysOwn;
    this.known = known;
    this.#store = store;
    this.#clock = clock;
    this.#newId = newId;
    this.#rounds = new BalancerRounds(store, clock, this.known);
    this.#top = new TopNodes(store);
    this.lists = new TaskLists(store, WHOLE_TASKS);
    this.summaries = this.lists.of(TASK_SUMMARIES);
    this.reviews = new ReviewService(store, clock, newId, {
      candidates: (task) => candidatesIfBalanced(task, null),
      at: (gate) => this.#at(gate),
      follow: () => this.followUps.settle(),
    });
    this.followUps = new FollowUps(store, {
      settle: async () => (await settleSome(store, () => this.#at())).moved,
      endGroups: async () => (await endGroups(store, clock)).moved,
      checkFamilies: () => this.reviews.checkFamilies(),
      balance: () => this.#rounds.run(true),
    });
  }

  /** Returns those that a new task cannot name. */
  async unusable({ dependsOn, fileIds }: References): Promise<References> {
    const [dependencies, files] = await Promise.all([
      this.#store.read(dependenciesById(dependsOn)),
      this.#store.read(filesById(fileIds)),
    ]);
    return unusableOf({ dependsOn, fileIds }, dependencies, files);
  }

  /** An id for a task that is created later. */
  newTaskId(): string {
    return this.#newId();
  }

  /** @throws {UnusableReferences} */
  async create(
    transact: Transact<Created>,
    draft: TaskDraft,
    asked: Creation = NO_FILES,
  ): Promise<Committed<Created>> {
    const taskId = asked.taskId ?? this.#newId();
    const { balanced, dependsOn, unique } = draft;
    const { boundTo, fileIds } = asked;
    const reviewer = reviewerOf(draft);
    const isPlain = !isSpecial(laneOf(draft, this.known.isFair)) && reviewer === null;
    if (isPlain && !balanced && dependsOn.length === 0 && fileIds.length === 0 && !unique)
      return transact({}, () => create(draft, taskId, [], this.#at()));
    const load = {
      ...ofNewTask(draft, asked, this.known.isFair, this.#clock.now()),
      gate: balanced ? this.#gate() : NO_ROW,
    };
    const { answer: created, also: unusable } = await transactAlso(transact, load, (loaded) => {
      const duplicate = this.#duplicateOf(loaded.ofKey);
      if (duplicate) return duplicate;
      if (reviewer !== null && !loaded.reviewer) return nodeNotFound(reviewer);
      const crowded = tooManyLanes(loaded, draft);
      if (crowded) return crowded;
      const rows = rowsOf(loaded);
      const unusable = unusableOf({ dependsOn, fileIds }, rows.dependencies, rows.files);
      if (isAny(unusable)) return also(UNDECIDED, unusable);
      return createWith(draft, taskId, rows, boundTo, this.#at(loaded.gate));
    });
    if (!created) throw new UnusableReferences(must(unusable, "only these leave a creation undecided"));
    return created;
  }

  /**
   * As create(). A refusal is not stored for a repeat, because the node may be online again by then.
   * @throws {UnusableReferences}
   * @throws {Rejection} when the node that it is sent to does not take it
   */
  async createSent(
    transact: Transact<Created>,
    sentDraft: TaskDraft,
    asked: Creation,
    sent: Sent,
  ): Promise<Committed<Created>> {
    const taskId = asked.taskId ?? this.#newId();
    const { dependsOn } = sentDraft;
    const { boundTo, fileIds } = asked;
    const { nodeId } = sent;
    const isGift = nodeId !== null && boundTo !== null && boundTo !== nodeId;
    const known = isGift ? await this.#store.read(nodeById(nodeId)) : null;
    const draft = isGift ? reservedFor(sentDraft, nodeId, known) : sentDraft;
    const load = {
      ...ofNewTask(draft, asked, this.known.isFair, this.#clock.now()),
      node: nodeId === null ? NO_ROW : nodeById(nodeId),
      gifts: isGift ? giftsOf(boundTo, draft, known, this.known.isFair) : NO_ROW,
      gate: this.#gate(),
    };
    const sending = await transactAlso(transact, load, ({ node, gifts, ...loaded }) => {
      const duplicate = this.#duplicateOf(loaded.ofKey);
      if (duplicate) return duplicate;
      const reviewer = reviewerOf(draft);
      if (reviewer !== null && !loaded.reviewer) return nodeNotFound(reviewer);
      const crowded = tooManyLanes(loaded, draft);
      if (crowded) return { ...crowded, isStored: false };
      const rows = { ...rowsOf(loaded), node };
      const unusable = unusableOf({ dependsOn, fileIds }, rows.dependencies, rows.files);
      if (isAny(unusable)) return also(UNDECIDED, unusable);
      const decision = createSent(draft, { ...sent, gifts }, taskId, rows, boundTo, this.#at(loaded.gate));
      return decision.kind === "rejected" ? { ...decision, isStored: false } : decision;
    });
    if (sending.answer) return sending.answer;
    throw new UnusableReferences(must(sending.also, "only these leave a creation undecided"));
  }

  /** The answer to a create whose unique key another task has. */
  #duplicateOf(ofKey: readonly Task[] | null): Accepted<Created> | null {
    const holder = ofKey && holderOfKey(ofKey, this.#at());
    return holder && { ...accept<Created>({ ...holder, deduplicated: true }), isStored: true };
  }

  take(
    transact: Transact<Task>,
    by: "claim" | "assign",
    { taskId, nodeId }: Assignment,
  ): Promise<Committed<Task>> {
    const load = { task: taskById(taskId), node: nodeById(nodeId), gate: this.#gate() };
    return transact(load, ({ task, node, gate }) => take(task, node, { taskId, nodeId, by }, this.#at(gate)));
  }

  async complete(transact: Transact<Completion>, request: CompleteRequest): Promise<Committed<Completion>> {
    const completion = { ...request, paysOwn: this.#paysOwn };
    const { taskId, nodeId } = completion;
    const entryId = this.#newId();
    const load = {
      task: taskById(taskId),
      node: nodeById(nodeId),
      head: ledgerHead(),
      ...this.#ofUsage(completion),
    };
    const decide = (paid: LedgerEntry | null, rows: Loaded<typeof load>): Decision<Completion> =>
      complete(
        rows.task,
        rows.node,
        { ...completion, entryId, head: rows.head, paid },
        this.#at(rows.gate),
        this.#known(rows),
      );
    // Only a repeat needs the entry that paid the task.
    const first = await transact(load, (rows) =>
      rows.task && rows.task.paidSeq !== null ? UNDECIDED : decide(null, rows),
    );
    const done =
      first ??
      (await transact({ ...load, paid: entryOfTask(taskId) }, ({ paid, ...rows }) => decide(paid, rows)));
    if (done.hasDependents) await this.followUps.settle();
    if (done.madeRoom) await this.fillIfPossible(nodeId);
    return done;
  }

  release(
    transact: Transact<Task>,
    asked: ReturnRequest & { reason: string | null },
  ): Promise<Committed<Task>> {
    return this.#endHold(transact, asked, asked.nodeId, ({ task, node, candidates, gate, ...rows }) =>
      release(task, node, candidates, asked, this.#at(gate), this.#known(rows)),
    );
  }

  fail(
    transact: Transact<Task>,
    asked: ReturnRequest & { error: string; kind?: "failed" | "stalled"; retry: boolean },
  ): Promise<Committed<Task>> {
    return this.#endHold(transact, asked, null, ({ task, node, candidates, gate, ...rows }) =>
      fail(task, node, candidates, asked, this.#at(gate), this.#known(rows)),
    );
  }

  async extend(
    transact: Transact<Task>,
    asked: CheckpointRequest & { note: string | null },
  ): Promise<Committed<Task>> {
    const load = { task: taskById(asked.taskId), node: nodeById(asked.nodeId), ...this.#ofUsage(asked) };
    const after = await transact(load, ({ task, node, gate, ...rows }) =>
      extend(task, node, asked, this.#at(gate), this.#known(rows)),
    );
    if (after.status !== "failed") return after;
    await this.followUps.ofFailed(after);
    await this.fillIfPossible(asked.nodeId);
    return after;
  }

  /** What is loaded for the usage that a request reports; nothing if it reports none. */
  #ofUsage(asked: UsageRequest) {
    const isAny = (asked.usage ?? []).length > 0;
    return { ...this.#ofReports(asked), gate: isAny ? this.#gate() : NO_ROW };
  }

  /** The names of the sums matter only for a key that is bound to a node. */
  #ofReports(asked: UsageRequest) {
    const isLimited = asked.isBound === true && (asked.usage ?? []).length > 0;
    return {
      reports: knownReports(asked),
      sums: isLimited ? sumNamesOf(asked.nodeId, dayOf(this.#clock.now())) : NO_ROW,
    };
  }

  #known({ reports, sums }: Reported): Known | null {
    const bound = sums && { sums, maxMicro: this.#reportMaxMicro };
    return reports && { reports, bound };
  }

  /**
   * Takes a task from its node. Then others may get the task, and the node may get another one. `notNode` is no
   * candidate.
   */
  async #endHold(
    transact: Transact<Task>,
    asked: UsageRequest,
    notNode: string | null,
    decide: (
      rows: Reported & {
        task: Task | null;
        node: Node | null;
        candidates: readonly Candidate[];
        gate: Gate;
      },
    ) => Decision<Task>,
  ): Promise<Committed<Task>> {
    const { taskId, nodeId } = asked;
    // The candidates depend on the task, so it is read first; the rule checks both again.
    const before = await this.#store.read(taskById(taskId));
    const load = {
      task: taskById(taskId),
      node: nodeById(nodeId),
      candidates: candidatesIfBalanced(before, notNode),
      ...this.#ofReports(asked),
      gate: this.#gate(),
    };
    const after = await transact(load, ({ candidates, ...rows }) =>
      decide({ ...rows, candidates: candidates.best }),
    );
    await this.followUps.ofFailed(after);
    await this.fillIfPossible(nodeId);
    return after;
  }

  async revoke(
    transact: Transact<Task>,
    asked: { taskId: string; nodeId: string | null; reason: string | null },
  ): Promise<Committed<Task>> {
    // The candidates depend on the task's type, which never changes, and on its node, which the transaction checks.
    const before = await this.#store.read(taskById(asked.taskId));
    const target = asked.nodeId === null ? NO_ROW : nodeById(asked.nodeId);
    for (let from = before?.assignedNode ?? null; ;) {
      const holder = from;
      const candidates = candidatesIfBalanced(before, holder);
      const load = { task: taskById(asked.taskId), target, candidates, gate: this.#gate() };
      const { answer: revoked, also: other = null } = await transactAlso(transact, load, (rows) => {
        const assignedNode = rows.task?.assignedNode ?? null;
        if (assignedNode !== holder) return also(UNDECIDED, assignedNode);
        return revoke(rows.task, rows.target, rows.candidates.best, asked, this.#at(rows.gate));
      });
      if (revoked && holder !== null) await this.fillIfPossible(holder);
      if (revoked) return revoked;
      from = other;
    }
  }

  async cancel(
    transact: Transact<Task>,
    asked: CreatorRequest & { nodeId: string | null; reason: string | null },
  ): Promise<Committed<Task>> {
    const node = asked.nodeId === null ? NO_ROW : nodeById(asked.nodeId);
    const load = { task: taskById(asked.taskId), node };
    const { answer: cancelled, also: holder = null } = await transactAlso(transact, load, (rows) =>
      also(cancel(rows.task, rows.node, asked, this.#at()), rows.task?.assignedNode ?? null),
    );
    await this.followUps.ofFailed(cancelled);
    if (holder !== null) await this.fillIfPossible(holder);
    return cancelled;
  }

  async update(transact: Transact<Task>, asked: UpdateRequest): Promise<Committed<Task>> {
    // Its type, what it requires, its creator and whether it is balanced never change, so it is read first.
    const before = await this.#store.read(taskById(asked.taskId));
    const { limitKey } = asked.patch;
    const isOtherKey = before !== null && limitKey !== undefined && limitKey !== before.limitKey;
    const load = {
      task: taskById(asked.taskId),
      candidates: candidatesIfBalanced(before, null),
      gate: this.#gate(),
      ...ofLane(isOtherKey ? laneOf({ ...before, limitKey }, this.known.isFair) : null, before),
    };
    return transact(load, ({ task, candidates, gate, ...lanes }) => {
      const updated = update(task, candidates.best, asked, this.#at(gate));
      return updated.kind === "rejected" ? updated : (tooManyLanes(lanes, before) ?? updated);
    });
  }

  async retry(transact: Transact<RetryOutcome>, asked: RetryRequest): Promise<Committed<RetryOutcome>> {
    // What it depends on never changes, so it is read first.
    const before = await this.#store.read(taskById(asked.taskId));
    const dependsOn = before?.dependsOn ?? [];
    const load = {
      task: taskById(asked.taskId),
      dependencies: dependenciesById(dependsOn),
      candidates: candidatesIfBalanced(before, null),
      gate: this.#gate(),
    };
    const retried = await transact(load, ({ task, dependencies, candidates, gate }) => {
      const decision = retry(task, dependencies, candidates.best, asked, this.#at(gate));
      if (decision.kind === "rejected") return decision;
      return accept<RetryOutcome>({ task: decision.answer, dependents: null }, decision.changes);
    });
    await this.followUps.ofFailed(retried.task);
    return retried;
  }

  /** As retry(), and opens again what failed only because of the task: the oldest, as many as one transaction holds. */
  async retryWithDependents(
    transact: Transact<RetryOutcome>,
    asked: RetryRequest,
  ): Promise<Committed<RetryOutcome>> {
    const at = this.#at();
    const { taskId, boundTo } = asked;
    for (;;) {
      const before = await this.#store.read(taskById(taskId));
      const [own] = await this.#store.read(dependenciesById([taskId]));
      const which = { brokenBy: own?.brokenBy ?? taskId, after: before?.seq ?? 0, creatorNode: boundTo };
      const dependents = brokenTasks(which, RETRIED_DEPENDENTS_MAX);
      const expected = upToDependencies(await this.#store.read(dependents));
      // What a task depends on never changes, so it is read first.
      const needed = [...new Set([before, ...expected].flatMap((task) => task?.dependsOn ?? []))];
      const load = {
        task: taskById(taskId),
        broken: dependents,
        count: brokenCount(which, DEPENDENTS_COUNTED_MAX),
        dependencies: dependenciesById(needed),
        candidates: candidatesIfBalanced(before, null),
        gate: this.#gate(),
      };
      const known = new Set(needed);
      const outcome = await transact(load, ({ task, broken, count, dependencies, candidates, gate }) => {
        const dependents = upToDependencies(broken);
        if (dependents.some(({ dependsOn }) => dependsOn.some((id) => !known.has(id)))) return UNDECIDED;
        const rows = [dependents, dependencies, candidates.best] as const;
        const retried = retryWithDependents(task, ...rows, asked, { ...at, gate });
        if (retried.kind === "rejected") return retried;
        const { task: after, opened } = retried.answer;
        const left = after.status === "failed" ? count : count - dependents.length;
        return accept<RetryOutcome>({ task: after, dependents: { opened, left } }, retried.changes);
      });
      if (!outcome) continue;
      await this.followUps.ofFailed(outcome.task);
      if (outcome.dependents !== null && outcome.dependents.opened > 0) await this.followUps.balance();
      return outcome;
    }
  }

  /** Adds what the task waits for, from one snapshot. @throws {Rejection} task_not_found */
  async withUnmet(task: Task): Promise<WaitingTask> {
    if (task.unmet === 0) return { task, waitsFor: [] };
    const { taskId } = task;
    return this.#store.readTogether(async (read) => {
      const now = await read(taskById(taskId));
      if (!now) throw new Rejection(taskNotFound(taskId));
      return { task: now, waitsFor: now.unmet === 0 ? [] : await read(unmetOf(taskId, UNMET_SHOWN_MAX)) };
    });
  }

  async remove(transact: Transact<Task>, taskId: string): Promise<Committed<Task>> {
    const entryId = this.#newId();
    const load = { task: taskById(taskId) };
    const first = await transact(load, ({ task }) =>
      task && isInReview(task) ? UNDECIDED : remove(task, taskId, this.#clock.now()),
    );
    // The ledger is needed only for what is held of a reward.
    const task =
      first ??
      (await transact({ ...load, head: ledgerHead() }, ({ task, head }) =>
        remove(task, taskId, this.#clock.now(), { entryId, head }),
      ));
    if (task.hasDependents) await this.followUps.settle();
    if (task.status === "assigned" && task.assignedNode !== null)
      await this.fillIfPossible(task.assignedNode);
    return task;
  }

  /** Assigns a list of tasks in order and in one commit; a rejected item does not affect the others. */
  assignAll(
    transact: Transact<readonly BatchItem[]>,
    asked: readonly Assignment[],
  ): Promise<Committed<readonly BatchItem[]>> {
    const load = {
      tasks: tasksById([...new Set(asked.map((item) => item.taskId))]),
      nodes: nodesById([...new Set(asked.map((item) => item.nodeId))]),
      gate: this.#gate(),
    };
    return transact(load, (rows) => {
      const tasks = new Map(rows.tasks.map((task) => [task.taskId, task]));
      const nodes = new Map(rows.nodes.map((node) => [node.nodeId, node]));
      const changes: Change[] = [];
      const at = this.#at(rows.gate);
      const items = asked.map(({ taskId, nodeId }): BatchItem => {
        const item = { taskId, nodeId, by: "assign" } as const;
        const taken = take(tasks.get(taskId) ?? null, nodes.get(nodeId) ?? null, item, at);
        if (taken.kind === "rejected") return { taskId, nodeId, code: taken.code };
        // Later items see the effect of earlier ones.
        tasks.set(taskId, taken.answer);
        for (const other of tasks.values())
          tasks.set(other.taskId, withoutCopies(other, taken.answer, nodeId));
        changes.push(...taken.changes);
        return { taskId, nodeId, code: null };
      });
      return accept(items, changes);
    });
  }

  /** batch-assign of variant B: at most BALANCE_ROUND_MAX tasks; a caller that gets that many should call again. */
  async runBalancer(transact: Transact<BalanceReport>): Promise<Committed<BalanceReport>> {
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
    return this.followUps.together(`fill ${nodeId}`, () => this.#fill(nodeId));
  }

  async #fill(nodeId: string): Promise<void> {
    let node = await this.#store.read(nodeById(nodeId));
    // The balancer's next round assigns the rest of a very long backlog.
    for (let given = 0, looks = 1; given < BALANCE_ROUND_MAX && node && isAvailable(node); looks++) {
      const choice = this.known.choose(node, null, Infinity);
      const { closed, lookedUp } = choice;
      const { turnOf } = this.known;
      const mine = { turnOf, onlyBalanced: true, limit: SWEEP_BATCH, notRevokedFrom: nodeId, butFor: nodeId };
      const load = {
        node: nodeById(nodeId),
        waiting: waitingFor(node, SWEEP_BATCH),
        special: bestOfLanes(node.autoAssign ? lookedUp : [], closed, mine),
        lanes: readyLanes(),
        gate: this.#gate(),
      };
      const mayLookAgain = looks <= LANES_REREADS;
      const { transact } = this.#store;
      const { answer: filled, also: current } = await transactAlso(transact, load, (rows) => {
        const { node: current, waiting, special, lanes, gate } = rows;
        this.known.learn(gate, lanes);
        if (current && mayLookAgain && this.known.hasOpened(current, null, choice))
          return also(UNDECIDED, current);
        const at = this.#at(gate);
        const mayHave = (task: Task): boolean =>
          !isClosed(gate.closed, task, nodeId) && !isExcluded(task, nodeId);
        const best = this.known.sorted([...waiting, ...special]);
        const found = current ? balance(best.filter(mayHave), [current], at.now, gate) : [];
        const changes = found.flatMap((item) => assignTo(item.task, item.nodeId, "balancer", at).changes);
        for (const { task } of found) this.known.served(task);
        // Of a special lane only the best task was loaded.
        const isMore = found.length >= SWEEP_BATCH || found.some(({ task }) => isSpecial(task.lane));
        return also(accept({ count: found.length, isMore }, changes), current);
      });
      node = current ?? null;
      if (!filled) continue;
      given += filled.count;
      if (!filled.isMore) return;
    }
  }

  /** Makes at most SWEEP_BATCH tasks of offline nodes open again. Returns how many there were. */
  requeueSome(): Promise<number> {
    return applyRule(
      this.#store,
      () => this.#at(),
      () => strandedTasks(SWEEP_BATCH),
      requeue,
    );
  }

  /** Makes at most SWEEP_BATCH tasks of deleted nodes open again. Returns how many there were. */
  async releaseSomeOfDeleted(): Promise<number> {
    if ((await this.#store.read(tasksOfDeleted(1))).length === 0) return 0;
    const rule = (tasks: readonly Task[], at: Moment) => releaseAll(tasks, NODE_DELETED, at);
    return applyRule(
      this.#store,
      () => this.#at(),
      () => tasksOfDeleted(SWEEP_BATCH),
      rule,
    );
  }

  /** Makes tasks of a node open again, until it holds fewer than a last step can free. Returns how many there were. */
  async releaseMost(nodeId: string, reason: string): Promise<number> {
    const held = () => tasksHeld(nodeId, SWEEP_BATCH);
    let released = 0;
    while ((await this.#store.read(held())).length === SWEEP_BATCH) {
      const step = await this.#store.transact({ tasks: held() }, ({ tasks }) =>
        releaseAll(tasks, reason, this.#at()),
      );
      released += step.length;
    }
    return released;
  }

  /** Read when a transaction is decided: on PostgreSQL it may have waited long for the write lock. */
  #at(gate: Gate | null = null): Moment {
    return { now: this.#clock.now(), steady: this.#clock.steady(), gate, isFair: this.known.isFair };
  }

  /** The budgets of today: every transaction that hands out a task, or stores usage, loads them. */
  #gate(): Query<Gate> {
    return gateOn(this.#clock.now());
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

  /**
   * The open tasks that a node could claim, best first, as many as one answer carries. @throws {Rejection}
   * node_not_found
   */
  async claimable(nodeId: string, limit: number): Promise<Rows<Task>> {
    const node = await getNode(this.#store, nodeId);
    if (node.draining) return new Rows([]);
    const special = await this.#bestOfSpecial(node, limit);
    const sizes = await this.#store.read(claimableSizes(node.capabilities, limit, nodeId, special));
    // A task may have been claimed before its part is loaded: openTasks() omits it.
    return loadRows(upToBytes(sizes, PULL_ANSWER_MAX_BYTES), openTasks, (query) => this.#store.read(query));
  }

  /** The numbers of the best ready tasks in the special lanes that are open to a node. */
  async #bestOfSpecial(node: Node, limit: number): Promise<readonly number[]> {
    const lanes = await this.#store.read(readyLanes());
    if (lanes.size === 0) return [];
    const { closed } = await this.#store.read(this.#gate());
    const names = lanesOpenTo(node, null, closed, lanes.values()).special.map(({ name }) => name);
    const best: Position[] = [];
    for (let at = 0; at < names.length; at += BACKLOG_TYPES_TOGETHER) {
      const some = names.slice(at, at + BACKLOG_TYPES_TOGETHER);
      best.push(...(await this.#store.read(backlogAfter(BACKLOG_START, some, false, limit))));
      best.sort((a, b) => a.priority - b.priority || a.seq - b.seq).splice(limit);
    }
    return best.map(({ seq }) => seq);
  }

  async stats(): Promise<TaskStats> {
    const totals = await this.#store.read(taskTotals());
    return { totals, top: await this.#top.read() };
  }
}

/** A task after `nodeId` has got another: it gets no second copy of one. */
function withoutCopies(task: Task, got: Task, nodeId: string): Task {
  const isCopy = got.child?.as === "copy" && task.child?.of === got.child.of && task.taskId !== got.taskId;
  return isCopy ? { ...task, notNodes: [...task.notNodes, nodeId] } : task;
}

const NO_FILES: Creation = { fileIds: [], boundTo: null };

/** The node that reviews the results of a new task, if the task names one. */
function reviewerOf({ reviewTerms }: TaskDraft): string | null {
  return reviewTerms?.by.startsWith("node:") ? reviewTerms.by.slice("node:".length) : null;
}

/** The rows that decide about a new task. */
function ofNewTask(draft: TaskDraft, { fileIds }: Creation, isFair: boolean, now: number) {
  const { dependsOn, unique } = draft;
  const reviewer = reviewerOf(draft);
  return {
    reviewer: reviewer === null ? NO_ROW : nodeById(reviewer),
    ...ofLane(laneOf(draft, isFair), draft),
    ofKey: unique ? tasksByUniqueKey(unique.key, ownerOf(draft), now) : NO_ROW,
    candidates: candidatesIfBalanced(draft, null),
    dependencies: dependenciesById(dependsOn),
    files: filesById(fileIds),
  };
}

/** How many tasks the keys of a node have sent to the node for which a task is, in all lanes from which that node takes. */
function giftsOf(giver: string, draft: TaskDraft, node: Node | null, isFair: boolean) {
  const types = new Set([draft.taskType, "", ...(node?.capabilities ?? [])]);
  const lanes = [...types].map((taskType) => laneOf({ ...draft, taskType }, isFair));
  assert(lanes.every(isSpecial), "a task that only one node may have requires the word of the node");
  return readyInLanes(lanes, giver, GIFTS_OF_GIVER_MAX);
}

/** The rows that decide whether a lane may have one more task; null: the task stays in its lane. */
function ofLane(lane: string | null, creator: Creator | null) {
  const { all, ofNode } = HUB_LIMITS.lanes;
  const nodeId = boundCreator(creator);
  const isCounted = lane !== null && isSpecial(lane);
  return {
    otherLanes: isCounted ? otherLanes(lane, all) : NO_ROW,
    otherLanesOfNode: isCounted && nodeId !== null ? otherLanes(lane, ofNode, nodeId) : NO_ROW,
  };
}

type Creator = Pick<Task, "creatorNode" | "creatorVerified">;

/** The node to which the key of the creator of a task is bound. */
function boundCreator(creator: Creator | null): string | null {
  return creator?.creatorVerified ? creator.creatorNode : null;
}

type LoadedRows = Omit<
  Loaded<ReturnType<typeof ofNewTask>>,
  "ofKey" | "reviewer" | keyof ReturnType<typeof ofLane>
>;

/** The refusal of a task in a lane that there is not, when there are too many. */
function tooManyLanes(
  { otherLanes, otherLanesOfNode }: Loaded<ReturnType<typeof ofLane>>,
  creator: Creator | null,
): Rejected | null {
  const counts = { all: otherLanes ?? 0, ofNode: otherLanesOfNode ?? 0 };
  return refusesMore(HUB_LIMITS.lanes, counts, boundCreator(creator));
}

function rowsOf({ candidates, dependencies, files }: LoadedRows) {
  return { candidates: candidates.best, dependencies: dependencies, files };
}

function unusableOf(
  { dependsOn, fileIds }: References,
  dependencies: readonly Dependency[],
  files: readonly FileRecord[],
): References {
  const tasks = new Set(dependencies.map(({ taskId }) => taskId));
  const free = new Set(files.filter(isFree).map(({ fileId }) => fileId));
  return {
    dependsOn: dependsOn.filter((taskId) => !tasks.has(taskId)),
    fileIds: fileIds.filter((fileId) => !free.has(fileId)),
  };
}

function isAny({ dependsOn, fileIds }: References): boolean {
  return dependsOn.length > 0 || fileIds.length > 0;
}
