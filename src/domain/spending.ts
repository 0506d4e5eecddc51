/**
 * What work costs: the usage that workers report (tokens, dollars), and its sums.
 *
 * A worker reports its usage with extend, complete, fail and release. A report is a row that is only added, unique by
 * task, epoch and `seq`: a repeat counts once, and the first one counts. In the same commit it is added to what its
 * task has spent, and to the sums of its day: of the hub, of the node, of the task's creator, type and group, and of
 * the model. The sums stay when the task is deleted.
 *
 * Costs are whole millionths of a dollar. A cost that the worker does not know is unknown, not zero: every sum counts
 * the reports without one.
 */
import { DAY_MS } from "../lib/clock.ts";
import type { Change } from "./change.ts";
import { type Rejected, reject } from "./decision.ts";
import { MICRO_PER_USD, USAGE_OF_TASK_MAX } from "./limits.ts";
import type { Moment, Spending, SumScope, Task, UsageReport } from "./model.ts";

export const NOTHING_SPENT: Spending = {
  reports: 0,
  unpriced: 0,
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  costMicro: 0,
};

export function plus(a: Spending, b: Spending): Spending {
  return {
    reports: a.reports + b.reports,
    unpriced: a.unpriced + b.unpriced,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    costMicro: a.costMicro + b.costMicro,
  };
}

function spendingOf(reports: readonly UsageReport[]): Spending {
  return reports.reduce(
    (sum, { inputTokens, outputTokens, cachedTokens, costMicro }) =>
      plus(sum, {
        reports: 1,
        unpriced: Number(costMicro === null),
        inputTokens,
        outputTokens,
        cachedTokens,
        costMicro: costMicro ?? 0,
      }),
    NOTHING_SPENT,
  );
}

/** The UTC day of a time, counted from 1970-01-01. */
export function dayOf(epochMs: number): number {
  return Math.floor(epochMs / DAY_MS);
}

/** Dollars to millionths, rounded to the nearest. */
export function toMicroUsd(usd: number): number {
  return Math.round(usd * MICRO_PER_USD);
}

export function toUsd(micro: number): number {
  return micro / MICRO_PER_USD;
}

/** The known costs of a sum; null: every report was without one. */
export function costOf({ reports, unpriced, costMicro }: Spending): number | null {
  return reports === unpriced ? null : costMicro;
}

/** A report that is stored. */
export type KnownReport = { readonly epoch: number; readonly seq: number };

/** A task after usage was reported, and the changes that store the reports. */
export type Spent = { readonly held: Task; readonly saved: readonly Change[] };

/**
 * Adds what the holder of a task reports. `known`: the reports of its attempt that are stored already, at least those
 * with these numbers; null: it reports none.
 */
export function spend(
  task: Task,
  nodeId: string,
  usage: readonly UsageReport[],
  known: readonly KnownReport[] | null,
  at: Moment,
): Spent | Rejected {
  if (usage.length === 0) return { held: task, saved: [] };
  const { taskId, epoch } = task;
  const seen = new Set((known ?? []).flatMap((report) => (report.epoch === epoch ? [report.seq] : [])));
  const reports = usage.filter(({ seq }) => !seen.has(seq) && seen.add(seq));
  if (reports.length === 0) return { held: task, saved: [] };
  const all = (task.spent?.reports ?? 0) + reports.length;
  if (all > USAGE_OF_TASK_MAX) {
    const detail = `Task ${taskId} has ${task.spent?.reports ?? 0} usage reports, and ${USAGE_OF_TASK_MAX} are the most. Send this again without usage; add more steps up in one report the next time.`;
    return reject("usage_limit", detail);
  }
  const held: Task = { ...task, spent: plus(task.spent ?? NOTHING_SPENT, spendingOf(reports)) };
  return {
    held,
    saved: [
      { kind: "usage.reported", taskId, epoch, nodeId, at: at.now, reports },
      ...sumsOf(task, nodeId, reports, at),
    ],
  };
}

/** The group for which the costs of a task count: its own, or that of the task for which the hub created it. */
export function payingGroup({ group, child }: Pick<Task, "group" | "child">): string | null {
  return group ?? child?.group ?? null;
}

function sumsOf(task: Task, nodeId: string, reports: readonly UsageReport[], at: Moment): readonly Change[] {
  const all = spendingOf(reports);
  const day = dayOf(at.now);
  const sum = (scope: SumScope, value: string, spending = all): Change => ({
    kind: "spending.summed",
    scope,
    value,
    day,
    ...spending,
  });
  const group = payingGroup(task);
  const models = Map.groupBy(reports, ({ model }) => model);
  return [
    sum("hub", ""),
    sum("node", nodeId),
    sum("creator", task.creatorNode ?? ""),
    sum("type", task.taskType),
    ...(group === null ? [] : [sum("group", group)]),
    ...[...models].map(([model, own]) => sum("model", model, spendingOf(own))),
  ];
}

/** What a task may still spend; null: it has no `maxCostMicro`. */
export function budgetLeft({ maxCostMicro, spent }: Pick<Task, "maxCostMicro" | "spent">): number | null {
  return maxCostMicro === null ? null : Math.max(0, maxCostMicro - (spent?.costMicro ?? 0));
}

/** Whether a task has cost more than it may. */
export function isOverspent({ maxCostMicro, spent }: Pick<Task, "maxCostMicro" | "spent">): boolean {
  return maxCostMicro !== null && spent !== null && spent.costMicro > maxCostMicro;
}

export function overspentMessage({ maxCostMicro, spent }: Pick<Task, "maxCostMicro" | "spent">): string {
  return `It has cost ${toUsd(spent?.costMicro ?? 0)} USD, and its max_cost_usd is ${toUsd(maxCostMicro ?? 0)}.`;
}
