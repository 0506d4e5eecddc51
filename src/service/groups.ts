/** The use cases of groups of tasks (domain/task/facet/group.ts), and the chore that notices their end. */
import { accept, also, Rejection, UNDECIDED } from "../domain/decision.ts";
import {
  type Group,
  checkGroups,
  type GroupCounts,
  groupNotFound,
  ownedGroup,
  unfinishedIn,
} from "../domain/task/facet/group.ts";
import {
  DEPENDENTS_COUNTED_MAX,
  GROUP_FAILURES_SHOWN,
  GROUP_STEP_TASKS,
  GROUPS_CHECKED,
} from "../domain/limits.ts";
import type {} from "../domain/model.ts";
import { type GroupRequest, cancelGroup, retryGroup } from "../domain/task/creator.ts";
import { must } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import {
  countOfGroup,
  groupFailures,
  groupPage,
  groupTotals,
  tasksOfGroup,
  touchedGroups,
  unfinishedOfGroup,
} from "../store/sql/groups.ts";
import { nodeById } from "../store/sql/nodes.ts";
import { NO_ROW } from "../store/sql/query.ts";
import { spentBy } from "../store/sql/spending.ts";
import { dependenciesById } from "../store/sql/tasks.ts";
import { type Committed, type Store, type Transact, transactAlso } from "../store/store.ts";
import type { Feed } from "./feed.ts";
import { upToDependencies } from "./dependencies.ts";
import type { FollowUps } from "./follow-ups.ts";
import type { StepResult } from "./step.ts";
import { pageOfFound } from "./scan.ts";
import { UseCases } from "./use-cases.ts";

/** `left`: for the next step. */
export type GroupStep = {
  readonly group: string;
  readonly changed: number;
  readonly left: number;
  /** Null: there is none. */
  readonly next: number | null;
};

export type GroupPage = {
  readonly groups: readonly GroupCounts[];
  readonly next: string | null;
};

/** Of which a task has ended. */
export async function endGroups(store: Store, clock: Clock): Promise<StepResult> {
  const moved = await store.transact({ touched: touchedGroups(GROUPS_CHECKED) }, ({ touched }) =>
    accept(touched.length, checkGroups(touched, clock.now())),
  );
  return { moved, isMore: moved >= GROUPS_CHECKED };
}

const ALL_DAYS = { since: 0, until: Number.MAX_SAFE_INTEGER };

export class GroupService extends UseCases {
  readonly #feed: Feed;
  readonly #followUps: FollowUps;

  constructor(store: Store, clock: Clock, feed: Feed, followUps: FollowUps) {
    super(store, clock);
    this.#feed = feed;
    this.#followUps = followUps;
  }

  /** With a bound key that of its node, or if there is none, the hub's. */
  async named(name: string, boundTo: string | null): Promise<string> {
    const owned = ownedGroup(name, boundTo);
    return owned === name || (await this.store.read(groupTotals(owned))) ? owned : name;
  }

  /** @throws {Rejection} group_not_found */
  async get(name: string): Promise<Group> {
    const group = await this.store.readTogether(async (read): Promise<Group | null> => {
      const totals = await read(groupTotals(name));
      if (totals === null) return null;
      const shown = Math.min(totals.failed, GROUP_FAILURES_SHOWN);
      const failures = shown > 0 ? await read(groupFailures(name, shown)) : [];
      const spent = await read(spentBy("group", name, ALL_DAYS));
      return { name, totals, failures, spent: spent.reports === 0 ? null : spent };
    });
    if (group === null) throw new Rejection(groupNotFound(name));
    return group;
  }

  async list(prefix: string, after: string, limit: number): Promise<GroupPage> {
    const found = await this.store.read(groupPage(prefix, after, limit + 1));
    const { rows: groups, next } = pageOfFound(found, limit, ({ name }) => name);
    return { groups, next };
  }

  /** Once no task is unfinished, or when the wait is over. @throws {Rejection} group_not_found */
  async end(name: string, waitMs: number, signal: AbortSignal): Promise<Group> {
    const find = async (): Promise<Group | null> => {
      const group = await this.get(name);
      return unfinishedIn(group.totals) === 0 ? group : null;
    };
    return (await this.#feed.untilGroupEnds(name, find, waitMs, signal)) ?? this.get(name);
  }

  /** As many as one transaction holds, the newest first. */
  async cancel(
    transact: Transact<GroupStep>,
    asked: GroupRequest & { readonly nodeId: string | null; readonly reason: string | null },
  ): Promise<Committed<GroupStep>> {
    const { group, boundTo: creatorNode, nodeId } = asked;
    const load = {
      found: groupTotals(group),
      tasks: unfinishedOfGroup({ group, creatorNode }, GROUP_STEP_TASKS),
      open: countOfGroup({ group, status: "open", creatorNode }, 0, DEPENDENTS_COUNTED_MAX),
      assigned: countOfGroup({ group, status: "assigned", creatorNode }, 0, DEPENDENTS_COUNTED_MAX),
      node: nodeId === null ? NO_ROW : nodeById(nodeId),
    };
    const step = await transact(load, ({ found, tasks, open, assigned, node }) => {
      if (!found) return groupNotFound(group);
      const cancelled = cancelGroup(tasks, node, asked, this.at());
      if (cancelled.kind === "rejected") return cancelled;
      const changed = tasks.length;
      return accept<GroupStep>(
        { group, changed, left: open + assigned - changed, next: null },
        cancelled.changes,
      );
    });
    if (step.changed > 0) await this.#followUps.ofMany();
    return step;
  }

  /** Oldest first: looks at as many tasks after `after` as one transaction holds. */
  async retry(
    transact: Transact<GroupStep>,
    { group, boundTo: creatorNode, after }: GroupRequest & { readonly after: number },
  ): Promise<Committed<GroupStep>> {
    const which = { group, status: "failed", creatorNode } as const;
    const failed = tasksOfGroup(which, after, GROUP_STEP_TASKS);
    /** What a task depends on never changes, so it is read first; and what only the transaction sees. */
    const needed = new Set<string>();
    for (const { dependsOn } of upToDependencies(await this.store.read(failed)))
      for (const taskId of dependsOn) needed.add(taskId);
    for (;;) {
      const load = {
        found: groupTotals(group),
        failed,
        count: countOfGroup(which, after, DEPENDENTS_COUNTED_MAX),
        dependencies: dependenciesById([...needed]),
      };
      const { answer: step, also: lacking } = await transactAlso(transact, load, (rows) => {
        const { found, failed, count, dependencies } = rows;
        if (!found) return groupNotFound(group);
        const tasks = upToDependencies(failed);
        const unread = tasks.flatMap(({ dependsOn }) => dependsOn).filter((taskId) => !needed.has(taskId));
        if (unread.length > 0) return also(UNDECIDED, unread);
        const { answer: opened, changes } = retryGroup(tasks, dependencies, this.at());
        const left = count - tasks.length;
        const next = left > 0 ? must(tasks.at(-1), "a step looks at a task").seq : null;
        return accept<GroupStep>({ group, changed: opened.length, left, next }, changes);
      });
      for (const taskId of lacking ?? []) needed.add(taskId);
      if (!step) continue;
      if (step.changed > 0) await this.#followUps.ofMany();
      return step;
    }
  }
}
