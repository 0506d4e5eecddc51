/** The use cases of tasks. Each write uses the Transact it is given, so that the caller can add to the commit. */
import { type Candidate, balance, isAvailable } from "../domain/balancer.ts";
import { isClosed, lanesOpenTo } from "../domain/gate.ts";
import type { Change } from "../domain/change.ts";
import {
  type Also,
  type Decision,
  type Rejected,
  type Undecided,
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
import {
  type Created,
  type NamedRows,
  type Sent,
  createSent,
  createWith,
  reservedFor,
} from "../domain/task/creation.ts";
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
  type KnownUsage,
  type KnownReport,
  type SumName,
  dayOf,
  toMicroUsd,
} from "../domain/task/facet/spending.ts";
import { assert, must } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import type { NewId } from "../lib/ids.ts";
import { BACKLOG_START, backlogAfter, candidatesIfBalanced, openTasks } from "../store/sql/balancer.ts";
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
import { type Committed, type Loaded, type Store, type Transact, transactAlso } from "../store/store.ts";
import { type Assignment, BalancerRounds } from "./balancer-rounds.ts";
import { KnownLanes } from "./known-lanes.ts";
import { getNode } from "./known-node.ts";
import { loadRows, Rows, upToBytes } from "./list-pages.ts";
import { ReviewService } from "./reviews.ts";
import { TASK_SUMMARIES, TaskLists, WHOLE_TASKS } from "./task-lists.ts";
import { TopNodes } from "./top-nodes.ts";
import { updateSomeDependents, upToDependencies } from "./dependencies.ts";
import { FollowUps } from "./follow-ups.ts";
import { endGroups } from "./groups.ts";
import { applyRule } from "./step.ts";
import { UseCases } from "./use-cases.ts";

export const NODE_DELETED = "the node was deleted";

/** `code`: why it was rejected. */
export type BatchItem = Assignment & { readonly code: string | null };
export type BalanceReport = { readonly assignments: readonly Assignment[]; readonly pending: number };
type TaskStats = { readonly totals: TaskTotals; readonly top: readonly Node[] };

export type References = {
  readonly dependsOn: readonly string[];
  readonly fileIds: readonly string[];
};

/** There are no such tasks or files, or the files belong to a task. */
export class UnusableReferences extends Error {
  override readonly name = "UnusableReferences";
  readonly references: References;

  constructor(references: References) {
    super(`A task cannot name ${[...references.dependsOn, ...references.fileIds].join(", ")}.`);
    this.references = references;
  }
}

/** Besides its draft. `boundTo`: the node of the caller's key. */
export type Creation = {
  readonly fileIds: readonly string[];
  readonly boundTo: string | null;
  /** Left out: a new one. */
  readonly taskId?: string | undefined;
};

/** The first of those that it waits for. */
export type WaitingTask = { readonly task: Task; readonly waitsFor: readonly string[] };

/** `dependents`: how many were opened again, and how many are left. */
export type RetryOutcome = {
  readonly task: Task;
  readonly dependents: { readonly opened: number; readonly left: number } | null;
};

type Reported = { readonly reports: readonly KnownReport[] | null; readonly sums: readonly SumName[] | null };

export class TaskService extends UseCases {
  readonly #newId: NewId;
  readonly #paysOwn: boolean;
  readonly #reportMaxMicro: number;
  readonly #rounds: BalancerRounds;
  readonly #top: TopNodes;
  readonly reviews: ReviewService;
  readonly followUps: FollowUps;
  readonly lists: TaskLists<Task>;
  readonly summaries: TaskLists<TaskSummary>;
  readonly knownLanes: KnownLanes;

  /**
   * `knownLanes`: for all use cases of this hub that hand out. `reportMaxUsd`: what counts of the reports for a task
   * that come with a key bound to a node.
   */
  constructor(
    store: Store,
    clock: Clock,
    newId: NewId,
    {
      knownLanes = new KnownLanes(false),
      paysOwn = true,
      reportMaxUsd = REPORT_MAX_DEFAULT_USD,
    }: { readonly knownLanes?: KnownLanes; readonly paysOwn?: boolean; readonly reportMaxUsd?: number } = {},
  ) {
    super(store, clock);
    this.#reportMaxMicro = toMicroUsd(reportMaxUsd);
    this.#paysOwn = paysOwn;
    this.knownLanes = knownLanes;
    this.#newId = newId;
    this.#rounds = new BalancerRounds(store, clock, this.knownLanes);
    this.#top = new TopNodes(store);
    this.lists = new TaskLists(store, WHOLE_TASKS);
    this.summaries = this.lists.of(TASK_SUMMARIES);
    this.reviews = new ReviewService(store, clock, newId, {
      candidates: (task) => candidatesIfBalanced(task, null),
      at: (gate) => this.#at(gate),
      follow: () => this.followUps.updateDependents(),
    });
    this.followUps = new FollowUps(store, {
      updateDependents: async () => (await updateSomeDependents(store, () => this.#at())).moved,
      endGroups: async () => (await endGroups(store, clock)).moved,
      checkFamilies: () => this.reviews.checkFamilies(),
      balance: () => this.#rounds.run(true),
    });
  }

  async unusable({ dependsOn, fileIds }: References): Promise<References> {
    const [dependencies, files] = await Promise.all([
      this.store.read(dependenciesById(dependsOn)),
      this.store.read(filesById(fileIds)),
    ]);
    return unusableOf({ dependsOn, fileIds }, dependencies, files);
  }

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
    const isPlain = !isSpecial(laneOf(draft, this.knownLanes.isFair)) && reviewerOf(draft) === null;
    if (isPlain && !balanced && dependsOn.length === 0 && fileIds.length === 0 && !unique)
      return transact({}, () => create(draft, taskId, [], this.#at()));
    const load = {
      ...ofNewTask(draft, asked, this.knownLanes.isFair, this.clock.now()),
      gate: balanced ? this.gate() : NO_ROW,
    };
    const { answer: created, also: unusable } = await transactAlso(transact, load, (loaded) =>
      this.#decideNew(draft, asked, loaded, (rows) =>
        createWith(draft, taskId, rows, boundTo, this.#at(loaded.gate)),
      ),
    );
    if (!created) throw new UnusableReferences(must(unusable, "only these leave a creation undecided"));
    return created;
  }

  /**
   * A refusal is not stored for a repeat, because the node may be online again by then.
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
    const { boundTo } = asked;
    const { nodeId } = sent;
    const isGift = nodeId !== null && boundTo !== null && boundTo !== nodeId;
    const receiver = isGift ? await this.store.read(nodeById(nodeId)) : null;
    const draft = isGift ? reservedFor(sentDraft, nodeId, receiver) : sentDraft;
    const load = {
      ...ofNewTask(draft, asked, this.knownLanes.isFair, this.clock.now()),
      node: nodeId === null ? NO_ROW : nodeById(nodeId),
      gifts: isGift ? giftsOf(boundTo, draft, receiver, this.knownLanes.isFair) : NO_ROW,
      gate: this.gate(),
    };
    const { answer: created, also: unusable } = await transactAlso(
      transact,
      load,
      ({ node, gifts, ...loaded }) =>
        this.#decideNew(draft, asked, loaded, (rows) => {
          const at = this.#at(loaded.gate);
          const decision = createSent(draft, { ...sent, gifts }, taskId, { ...rows, node }, boundTo, at);
          return decision.kind === "rejected" ? { ...decision, isStored: false } : decision;
        }),
    );
    if (!created) throw new UnusableReferences(must(unusable, "only these leave a creation undecided"));
    return created;
  }

  /**
   * `decide`: what becomes of a new task, unless another has its unique key, or it may not be there. What refuses it here
   * may be over soon, and is not stored for a repeat.
   */
  #decideNew(
    draft: TaskDraft,
    { fileIds }: Creation,
    loaded: Loaded<ReturnType<typeof ofNewTask>>,
    decide: (rows: NamedRows) => Decision<Created>,
  ): (Decision<Created> | Undecided) & Partial<Also<References>> {
    const holder = loaded.ofKey && holderOfKey(loaded.ofKey, this.#at());
    if (holder) return { ...accept<Created>({ ...holder, deduplicated: true }), isStored: true };
    const reviewer = reviewerOf(draft);
    const refused =
      reviewer !== null && !loaded.reviewer ? nodeNotFound(reviewer) : tooManyLanes(loaded, draft);
    if (refused) return { ...refused, isStored: false };
    const { candidates, dependencies, files } = loaded;
    const unusable = unusableOf({ dependsOn: draft.dependsOn, fileIds }, dependencies, files);
    return unusable.dependsOn.length + unusable.fileIds.length > 0
      ? also(UNDECIDED, unusable)
      : decide({ candidates: candidates.best, dependencies, files });
  }

  take(
    transact: Transact<Task>,
    by: "claim" | "assign",
    { taskId, nodeId }: Assignment,
  ): Promise<Committed<Task>> {
    const load = { task: taskById(taskId), node: nodeById(nodeId), gate: this.gate() };
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
        this.#knownUsage(rows),
      );
    // Only a repeat needs the entry that paid the task.
    const first = await transact(load, (rows) =>
      rows.task && rows.task.paidSeq !== null ? UNDECIDED : decide(null, rows),
    );
    const done =
      first ??
      (await transact({ ...load, paid: entryOfTask(taskId) }, ({ paid, ...rows }) => decide(paid, rows)));
    if (done.hasDependents) await this.followUps.updateDependents();
    if (done.madeRoom) await this.fillIfPossible(nodeId);
    return done;
  }

  release(
    transact: Transact<Task>,
    asked: ReturnRequest & { reason: string | null },
  ): Promise<Committed<Task>> {
    return this.#endHold(transact, asked, asked.nodeId, ({ task, node, candidates, gate, ...rows }) =>
      release(task, node, candidates, asked, this.#at(gate), this.#knownUsage(rows)),
    );
  }

  fail(
    transact: Transact<Task>,
    asked: ReturnRequest & { error: string; kind?: "failed" | "stalled"; retry: boolean },
  ): Promise<Committed<Task>> {
    return this.#endHold(transact, asked, null, ({ task, node, candidates, gate, ...rows }) =>
      fail(task, node, candidates, asked, this.#at(gate), this.#knownUsage(rows)),
    );
  }

  async extend(
    transact: Transact<Task>,
    asked: CheckpointRequest & { note: string | null },
  ): Promise<Committed<Task>> {
    const load = { task: taskById(asked.taskId), node: nodeById(asked.nodeId), ...this.#ofUsage(asked) };
    const after = await transact(load, ({ task, node, gate, ...rows }) =>
      extend(task, node, asked, this.#at(gate), this.#knownUsage(rows)),
    );
    if (after.status !== "failed") return after;
    await this.followUps.ofFailed(after);
    await this.fillIfPossible(asked.nodeId);
    return after;
  }

  /** Nothing if it reports none. */
  #ofUsage(asked: UsageRequest) {
    const isAny = (asked.usage ?? []).length > 0;
    return { ...this.#ofReports(asked), gate: isAny ? this.gate() : NO_ROW };
  }

  /** The names of the sums matter only for a key that is bound to a node. */
  #ofReports(asked: UsageRequest) {
    const isLimited = asked.isBound === true && (asked.usage ?? []).length > 0;
    return {
      reports: knownReports(asked),
      sums: isLimited ? sumNamesOf(asked.nodeId, dayOf(this.clock.now())) : NO_ROW,
    };
  }

  #knownUsage({ reports, sums }: Reported): KnownUsage | null {
    const bound = sums && { sums, maxMicro: this.#reportMaxMicro };
    return reports && { reports, bound };
  }

  /** Others may get the task, and the node another one. `notNode` is no candidate. */
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
    const before = await this.store.read(taskById(taskId));
    const load = {
      task: taskById(taskId),
      node: nodeById(nodeId),
      candidates: candidatesIfBalanced(before, notNode),
      ...this.#ofReports(asked),
      gate: this.gate(),
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
    const before = await this.store.read(taskById(asked.taskId));
    const target = asked.nodeId === null ? NO_ROW : nodeById(asked.nodeId);
    for (let from = before?.assignedNode ?? null; ;) {
      const holder = from;
      const candidates = candidatesIfBalanced(before, holder);
      const load = { task: taskById(asked.taskId), target, candidates, gate: this.gate() };
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
    const before = await this.store.read(taskById(asked.taskId));
    const { limitKey } = asked.patch;
    const isOtherKey = before !== null && limitKey !== undefined && limitKey !== before.limitKey;
    const load = {
      task: taskById(asked.taskId),
      candidates: candidatesIfBalanced(before, null),
      gate: this.gate(),
      ...ofLane(isOtherKey ? laneOf({ ...before, limitKey }, this.knownLanes.isFair) : null, before),
    };
    return transact(load, ({ task, candidates, gate, ...lanes }) => {
      const updated = update(task, candidates.best, asked, this.#at(gate));
      return updated.kind === "rejected" ? updated : (tooManyLanes(lanes, before) ?? updated);
    });
  }

  async retry(transact: Transact<RetryOutcome>, asked: RetryRequest): Promise<Committed<RetryOutcome>> {
    // What it depends on never changes, so it is read first.
    const before = await this.store.read(taskById(asked.taskId));
    const dependsOn = before?.dependsOn ?? [];
    const load = {
      task: taskById(asked.taskId),
      dependencies: dependenciesById(dependsOn),
      candidates: candidatesIfBalanced(before, null),
      gate: this.gate(),
    };
    const retried = await transact(load, ({ task, dependencies, candidates, gate }) => {
      const decision = retry(task, dependencies, candidates.best, asked, this.#at(gate));
      if (decision.kind === "rejected") return decision;
      return accept<RetryOutcome>({ task: decision.answer, dependents: null }, decision.changes);
    });
    await this.followUps.ofFailed(retried.task);
    return retried;
  }

  /** With what failed only because of the task: the oldest, as many as one transaction holds. */
  async retryWithDependents(
    transact: Transact<RetryOutcome>,
    asked: RetryRequest,
  ): Promise<Committed<RetryOutcome>> {
    const at = this.#at();
    const { taskId, boundTo } = asked;
    for (;;) {
      const before = await this.store.read(taskById(taskId));
      const [own] = await this.store.read(dependenciesById([taskId]));
      const which = { brokenBy: own?.brokenBy ?? taskId, after: before?.seq ?? 0, creatorNode: boundTo };
      const dependents = brokenTasks(which, RETRIED_DEPENDENTS_MAX);
      const expected = upToDependencies(await this.store.read(dependents));
      // What a task depends on never changes, so it is read first.
      const needed = [...new Set([before, ...expected].flatMap((task) => task?.dependsOn ?? []))];
      const load = {
        task: taskById(taskId),
        broken: dependents,
        count: brokenCount(which, DEPENDENTS_COUNTED_MAX),
        dependencies: dependenciesById(needed),
        candidates: candidatesIfBalanced(before, null),
        gate: this.gate(),
      };
      const loadedIds = new Set(needed);
      const outcome = await transact(load, ({ task, broken, count, dependencies, candidates, gate }) => {
        const dependents = upToDependencies(broken);
        if (dependents.some(({ dependsOn }) => dependsOn.some((id) => !loadedIds.has(id)))) return UNDECIDED;
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

  /** From one snapshot. @throws {Rejection} task_not_found */
  async withUnmet(task: Task): Promise<WaitingTask> {
    if (task.unmet === 0) return { task, waitsFor: [] };
    const { taskId } = task;
    return this.store.readTogether(async (read) => {
      const now = await read(taskById(taskId));
      if (!now) throw new Rejection(taskNotFound(taskId));
      return { task: now, waitsFor: now.unmet === 0 ? [] : await read(unmetOf(taskId, UNMET_SHOWN_MAX)) };
    });
  }

  async remove(transact: Transact<Task>, taskId: string): Promise<Committed<Task>> {
    const entryId = this.#newId();
    const load = { task: taskById(taskId) };
    const first = await transact(load, ({ task }) =>
      task && isInReview(task) ? UNDECIDED : remove(task, taskId, this.clock.now()),
    );
    // The ledger is needed only for what is held of a reward.
    const task =
      first ??
      (await transact({ ...load, head: ledgerHead() }, ({ task, head }) =>
        remove(task, taskId, this.clock.now(), { entryId, head }),
      ));
    if (task.hasDependents) await this.followUps.updateDependents();
    if (task.status === "assigned" && task.assignedNode !== null)
      await this.fillIfPossible(task.assignedNode);
    return task;
  }

  /** In order and in one commit; a rejected item does not affect the others. */
  assignAll(
    transact: Transact<readonly BatchItem[]>,
    asked: readonly Assignment[],
  ): Promise<Committed<readonly BatchItem[]>> {
    const load = {
      tasks: tasksById([...new Set(asked.map((item) => item.taskId))]),
      nodes: nodesById([...new Set(asked.map((item) => item.nodeId))]),
      gate: this.gate(),
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

  /** batch-assign of variant B: a caller that gets BALANCE_ROUND_MAX tasks should call again. */
  async runBalancer(transact: Transact<BalanceReport>): Promise<Committed<BalanceReport>> {
    const { assignments } = await this.#rounds.run(false);
    return transact({ totals: taskTotals() }, ({ totals }) => ({
      ...accept({ assignments, pending: totals.open }),
      isStored: assignments.length > 0,
    }));
  }

  /**
   * The caller's own write is already on disk, so a failure here is not reported: the balancer's next round assigns the
   * tasks.
   */
  fillIfPossible(nodeId: string): Promise<void> {
    return this.followUps.together(`fill ${nodeId}`, () => this.#fill(nodeId));
  }

  async #fill(nodeId: string): Promise<void> {
    let node = await this.store.read(nodeById(nodeId));
    // The balancer's next round assigns the rest of a very long backlog.
    for (let given = 0, looks = 1; given < BALANCE_ROUND_MAX && node && isAvailable(node); looks++) {
      const choice = this.knownLanes.choose(node, null, Infinity);
      const { closed, lookedUp } = choice;
      const { turnOf } = this.knownLanes;
      const mine = { turnOf, onlyBalanced: true, limit: SWEEP_BATCH, notRevokedFrom: nodeId, butFor: nodeId };
      const load = {
        node: nodeById(nodeId),
        waiting: waitingFor(node, SWEEP_BATCH),
        special: bestOfLanes(node.autoAssign ? lookedUp : [], closed, mine),
        lanes: readyLanes(),
        gate: this.gate(),
      };
      const mayLookAgain = looks <= LANES_REREADS;
      const { transact } = this.store;
      const { answer: filled, also: current } = await transactAlso(transact, load, (rows) => {
        const { node: current, waiting, special, lanes, gate } = rows;
        this.knownLanes.learn(gate, lanes);
        if (current && mayLookAgain && this.knownLanes.hasOpened(current, null, choice))
          return also(UNDECIDED, current);
        const at = this.#at(gate);
        const mayHave = (task: Task): boolean =>
          !isClosed(gate.closed, task, nodeId) && !isExcluded(task, nodeId);
        const best = this.knownLanes.sorted([...waiting, ...special]);
        const found = current ? balance(best.filter(mayHave), [current], at.now, gate) : [];
        const changes = found.flatMap((item) => assignTo(item.task, item.nodeId, "balancer", at).changes);
        for (const { task } of found) this.knownLanes.served(task);
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

  /** At most SWEEP_BATCH. Returns how many there were. */
  requeueSome(): Promise<number> {
    return applyRule(
      this.store,
      () => this.#at(),
      () => strandedTasks(SWEEP_BATCH),
      requeue,
    );
  }

  /** At most SWEEP_BATCH. Returns how many there were. */
  async releaseSomeOfDeleted(): Promise<number> {
    if ((await this.store.read(tasksOfDeleted(1))).length === 0) return 0;
    const rule = (tasks: readonly Task[], at: Moment) => releaseAll(tasks, NODE_DELETED, at);
    return applyRule(
      this.store,
      () => this.#at(),
      () => tasksOfDeleted(SWEEP_BATCH),
      rule,
    );
  }

  /** Until the node holds fewer than a last step can free. Returns how many there were. */
  async releaseMost(nodeId: string, reason: string): Promise<number> {
    const held = () => tasksHeld(nodeId, SWEEP_BATCH);
    let released = 0;
    while ((await this.store.read(held())).length === SWEEP_BATCH) {
      const step = await this.store.transact({ tasks: held() }, ({ tasks }) =>
        releaseAll(tasks, reason, this.#at()),
      );
      released += step.length;
    }
    return released;
  }

  /** Read when a transaction is decided: on PostgreSQL it may have waited long for the write lock. */
  #at(gate: Gate | null = null): Moment {
    return { now: this.clock.now(), steady: this.clock.steady(), gate, isFair: this.knownLanes.isFair };
  }

  /** Opens its remaining tasks and runs the balancer. If it fails, periodic work does it. */
  async releaseDeletedIfPossible(): Promise<void> {
    try {
      while ((await this.releaseSomeOfDeleted()) >= SWEEP_BATCH);
      await this.#rounds.run(true);
    } catch {
      // Not reported: the deletion itself is on disk.
    }
  }

  /** Best first, as many as one answer carries. @throws {Rejection} node_not_found */
  async claimable(nodeId: string, limit: number): Promise<Rows<Task>> {
    const node = await getNode(this.store, nodeId);
    if (node.draining) return new Rows([]);
    const special = await this.#bestOfSpecial(node, limit);
    const sizes = await this.store.read(claimableSizes(node.capabilities, limit, nodeId, special));
    // A task may have been claimed before its part is loaded: openTasks() omits it.
    return loadRows(upToBytes(sizes, PULL_ANSWER_MAX_BYTES), openTasks, (query) => this.store.read(query));
  }

  /** Of those that are open to the node. */
  async #bestOfSpecial(node: Node, limit: number): Promise<readonly number[]> {
    const lanes = await this.store.read(readyLanes());
    if (lanes.size === 0) return [];
    const { closed } = await this.store.read(this.gate());
    const names = lanesOpenTo(node, null, closed, lanes.values()).special.map(({ name }) => name);
    const best: Position[] = [];
    for (let at = 0; at < names.length; at += BACKLOG_TYPES_TOGETHER) {
      const some = names.slice(at, at + BACKLOG_TYPES_TOGETHER);
      best.push(...(await this.store.read(backlogAfter(BACKLOG_START, some, false, limit))));
      best.sort((a, b) => a.priority - b.priority || a.seq - b.seq).splice(limit);
    }
    return best.map(({ seq }) => seq);
  }

  async stats(): Promise<TaskStats> {
    const totals = await this.store.read(taskTotals());
    return { totals, top: await this.#top.read() };
  }
}

/** A task after `nodeId` has got another: it gets no second copy of one. */
function withoutCopies(task: Task, got: Task, nodeId: string): Task {
  const isCopy = got.child?.as === "copy" && task.child?.of === got.child.of && task.taskId !== got.taskId;
  return isCopy ? { ...task, notNodes: [...task.notNodes, nodeId] } : task;
}

const NO_FILES: Creation = { fileIds: [], boundTo: null };

function reviewerOf({ reviewTerms }: TaskDraft): string | null {
  return reviewTerms?.by.startsWith("node:") ? reviewTerms.by.slice("node:".length) : null;
}

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

/** In all lanes from which the node of the task takes. */
function giftsOf(giver: string, draft: TaskDraft, node: Node | null, isFair: boolean) {
  const types = new Set([draft.taskType, "", ...(node?.capabilities ?? [])]);
  const lanes = [...types].map((taskType) => laneOf({ ...draft, taskType }, isFair));
  assert(lanes.every(isSpecial), "a task that only one node may have requires the word of the node");
  return readyInLanes(lanes, giver, GIFTS_OF_GIVER_MAX);
}

/** Whether it may have one more task; null: the task stays in its lane. */
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

function boundCreator(creator: Creator | null): string | null {
  return creator?.creatorVerified ? creator.creatorNode : null;
}

function tooManyLanes(
  { otherLanes, otherLanesOfNode }: Loaded<ReturnType<typeof ofLane>>,
  creator: Creator | null,
): Rejected | null {
  const counts = { all: otherLanes ?? 0, ofNode: otherLanesOfNode ?? 0 };
  return refusesMore(HUB_LIMITS.lanes, counts, boundCreator(creator));
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
