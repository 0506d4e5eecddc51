/**
 * Facet: the usage that workers report (tokens, dollars), and its sums: what work costs.
 *
 * A worker reports its usage with extend, complete, fail and release. A report is a row that is only added, unique by
 * task, epoch and `seq`: a repeat counts once, and the first one counts. In the same commit it is added to what its
 * task has spent, and to the sums of its day: of the hub, of the node, of the task's creator, type and group, and of
 * the model. The sums stay when the task is deleted. Each node has the same sums of its own reports, so that an
 * administrator can take back what a node has reported on a day.
 *
 * A key that is bound to a node may be somebody else's: of what it reports, so many names and dollars count
 * (SUMS_OF_NODE_MAX, `maxMicro`), so that it can neither fill the disk nor use up the budgets of all.
 *
 * Costs are whole millionths of a dollar. A cost that the worker does not know is unknown, not zero: every sum counts
 * the reports without one.
 */
import { must } from "../../../lib/assert.ts";
import { DAY_MS } from "../../../lib/clock.ts";
import type { Change } from "../../change.ts";
import { type Decision, type Rejected, accept, reject } from "../../decision.ts";
import { KEPT_SUM_BYTES, MICRO_PER_USD, SUMS_OF_NODE_MAX, USAGE_OF_TASK_MAX } from "../../limits.ts";
import type { Moment, Spending, SumKey, Task, UsageReport } from "../../model.ts";
import type { Facet } from "./facet.ts";

export const spending: Facet = {
  name: "spending",
  ended({ taskId, spent }, after) {
    return after !== null || spent === null ? null : { changes: [{ kind: "usage.removed", taskId }] };
  },
};

export const NOTHING_SPENT: Spending = {
  reports: 0,
  unpriced: 0,
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  costMicro: 0,
};

/** @param sign -1 takes `b` off `a` */
export function plus(a: Spending, b: Spending, sign: 1 | -1 = 1): Spending {
  return {
    reports: a.reports + sign * b.reports,
    unpriced: a.unpriced + sign * b.unpriced,
    inputTokens: a.inputTokens + sign * b.inputTokens,
    outputTokens: a.outputTokens + sign * b.outputTokens,
    cachedTokens: a.cachedTokens + sign * b.cachedTokens,
    costMicro: a.costMicro + sign * b.costMicro,
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

/** From 1970-01-01. */
export function dayOf(epochMs: number): number {
  return Math.floor(epochMs / DAY_MS);
}

export function toMicroUsd(usd: number): number {
  return Math.round(usd * MICRO_PER_USD);
}

export function toUsd(micro: number): number {
  return micro / MICRO_PER_USD;
}

/** Null: every report was without a cost. */
export function costOf({ reports, unpriced, costMicro }: Spending): number | null {
  return reports === unpriced ? null : costMicro;
}

export type KnownReport = { readonly epoch: number; readonly seq: number };

export type SumName = Pick<SumKey, "scope" | "value">;

/**
 * At least those reports of the attempt that have the same numbers. `bound`: for a key that is bound to a node: its
 * sums today, and the dollars that count for a task.
 */
export type KnownUsage = {
  readonly reports: readonly KnownReport[];
  readonly bound: { readonly sums: readonly SumName[]; readonly maxMicro: number } | null;
};

export type Spent = { readonly held: Task; readonly saved: readonly Change[] };

export function spend(
  task: Task,
  nodeId: string,
  usage: readonly UsageReport[],
  known: KnownUsage | null,
  at: Moment,
): Spent | Rejected {
  if (usage.length === 0) return { held: task, saved: [] };
  const { taskId, epoch } = task;
  const seen = new Set(
    (known?.reports ?? []).flatMap((report) => (report.epoch === epoch ? [report.seq] : [])),
  );
  const reports = usage.filter(({ seq }) => !seen.has(seq) && seen.add(seq));
  if (reports.length === 0) return { held: task, saved: [] };
  const before = task.spent ?? NOTHING_SPENT;
  if (before.reports + reports.length > USAGE_OF_TASK_MAX) {
    const detail = `Task ${taskId} has ${before.reports} usage reports, and ${USAGE_OF_TASK_MAX} are the most. Send this again without usage; add more steps up in one report the next time.`;
    return reject("usage_limit", detail);
  }
  const reported = spendingOf(reports);
  const held: Task = { ...task, spent: plus(before, reported) };
  const counted = known?.bound ? countedOf(task, reports, known.bound.maxMicro) : reports;
  const beyondMicro = reported.costMicro - spendingOf(counted).costMicro;
  return {
    held,
    saved: [
      { kind: "usage.reported", taskId, epoch, nodeId, at: at.now, reports },
      ...sumsOf(task, nodeId, counted, known?.bound?.sums ?? null, at),
      ...(beyondMicro > 0 ? [capped(held, nodeId, reported.costMicro, beyondMicro, at.now)] : []),
    ],
  };
}

/** At most what somebody else allows a task to cost; never more than `maxMicro` if its creator could say anything. */
function countedOf(task: Task, reports: readonly UsageReport[], maxMicro: number): readonly UsageReport[] {
  const { maxCostMicro, creatorVerified, spent } = task;
  const most = creatorVerified ? Math.min(maxCostMicro ?? maxMicro, maxMicro) : (maxCostMicro ?? maxMicro);
  let leftMicro = Math.max(0, most - (spent ?? NOTHING_SPENT).costMicro);
  return reports.map((report) => {
    if (report.costMicro === null) return report;
    const costMicro = Math.min(report.costMicro, leftMicro);
    leftMicro -= costMicro;
    return { ...report, costMicro };
  });
}

function capped({ taskId }: Task, nodeId: string, micro: number, beyondMicro: number, at: number): Change {
  const data = { cost_usd: toUsd(micro), counted_usd: toUsd(micro - beyondMicro) };
  return { kind: "event.logged", event: { kind: "usage.capped", at, nodeId, taskId, data } };
}

/** Its own, or that of the task for which the hub created it. */
export function payingGroup({ group, child }: Pick<Task, "group" | "child">): string | null {
  return group ?? child?.group ?? null;
}

/** @param known null: names are not limited */
function sumsOf(
  task: Task,
  nodeId: string,
  reports: readonly UsageReport[],
  known: readonly SumName[] | null,
  at: Moment,
): readonly Change[] {
  const day = dayOf(at.now);
  const names = known && new SumNames(known);
  const changes: Change[] = [];
  const sum = (name: SumName, spending: Spending): void => {
    const { scope } = name;
    const value = names?.mayHave(name, at) !== false ? name.value : OTHER;
    const key = { scope, value, day, ...spending };
    changes.push({ kind: "spending.summed", ...key });
    if (scope === "hub") return;
    const isNew = names?.add(key) ?? false;
    const textBytes = Buffer.byteLength(nodeId) + 2 * Buffer.byteLength(value);
    changes.push({ kind: "node.summed", nodeId, keptBytes: isNew ? KEPT_SUM_BYTES + textBytes : 0, ...key });
  };
  const total = spendingOf(reports);
  const group = payingGroup(task);
  sum({ scope: "hub", value: "" }, total);
  sum({ scope: "node", value: nodeId }, total);
  sum({ scope: "creator", value: task.creatorNode ?? "" }, total);
  sum({ scope: "type", value: task.taskType }, total);
  if (group !== null) sum({ scope: "group", value: group }, total);
  for (const [model, reportsOfModel] of Map.groupBy(reports, ({ model }) => model))
    sum({ scope: "model", value: model }, spendingOf(reportsOfModel));
  return changes;
}

class SumNames {
  readonly #values = new Map<string, Set<string>>();

  constructor(known: readonly SumName[]) {
    for (const name of known) this.add(name);
  }

  /** Whether the name is new. */
  add({ scope, value }: SumName): boolean {
    const values = this.#values.get(scope) ?? new Set();
    this.#values.set(scope, values);
    return values.size < values.add(value).size;
  }

  /** The name is known, the node has few others, or a budget is about it. */
  mayHave({ scope, value }: SumName, { gate }: Moment): boolean {
    const values = this.#values.get(scope);
    if (values === undefined || values.size < SUMS_OF_NODE_MAX || values.has(value)) return true;
    return gate?.budgets.some((budget) => budget.scope === scope && budget.value === value) === true;
  }
}

/** For a node with too many names. */
const OTHER = "other";

// ---- Voiding

/** ---- Voiding */
export type NodeSum = SumName & { readonly spending: Spending; readonly keptBytes: number };

export type VoidRequest = { readonly nodeId: string; readonly day: number; readonly reason: string | null };

export type Voided = { readonly nodeId: string; readonly day: number; readonly spending: Spending };

/** And so off the budgets. */
export function voidUsage(
  sums: readonly NodeSum[],
  { nodeId, day, reason }: VoidRequest,
  at: number,
): Decision<Voided> {
  const nodeSum = sums.find(({ scope }) => scope === "node");
  if (!nodeSum) {
    const detail = `Node ${nodeId} has reported no usage on ${isoDay(day)}, or that was voided before. GET /api/v1/usage?by=node shows who has reported what.`;
    return reject("usage_not_found", detail);
  }
  const { spending } = nodeSum;
  const less = ({ scope, value }: SumName, voided: Spending): Change => ({
    kind: "spending.summed",
    ...{ scope, value, day, ...plus(NOTHING_SPENT, voided, -1) },
  });
  const bytes = sums.reduce((sum, { keptBytes }) => sum - keptBytes, 0);
  const changes: Change[] = [
    less({ scope: "hub", value: "" }, spending),
    ...sums.map((sum) => less(sum, sum.spending)),
    { kind: "spending.summed", scope: "voided", value: "", day, ...spending },
    { kind: "node.sums.removed", nodeId, day },
    ...(bytes === 0 ? [] : [{ kind: "usage.tallied", nodeId, tasks: 0, bytes } as const]),
  ];
  const { reports, inputTokens, outputTokens } = spending;
  const data = {
    ...{ day: isoDay(day), reports, cost_usd: toUsd(spending.costMicro), reason },
    ...{ input_tokens: inputTokens, output_tokens: outputTokens },
  };
  const event: Change = {
    kind: "event.logged",
    event: { kind: "usage.voided", at, nodeId, taskId: null, data },
  };
  return accept({ nodeId, day, spending }, [...changes, event]);
}

function isoDay(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** Null: the task has no `maxCostMicro`. */
export function budgetLeft({ maxCostMicro, spent }: Pick<Task, "maxCostMicro" | "spent">): number | null {
  return maxCostMicro === null ? null : Math.max(0, maxCostMicro - (spent ?? NOTHING_SPENT).costMicro);
}

export function isOverspent({ maxCostMicro, spent }: Pick<Task, "maxCostMicro" | "spent">): boolean {
  return maxCostMicro !== null && spent !== null && spent.costMicro > maxCostMicro;
}

export function overspentMessage({ maxCostMicro, spent }: Pick<Task, "maxCostMicro" | "spent">): string {
  const { costMicro } = must(spent, "what has cost too much has reports");
  return `It has cost ${toUsd(costMicro)} USD, and its max_cost_usd is ${toUsd(must(maxCostMicro, "a budget is set"))}.`;
}
