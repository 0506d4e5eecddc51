/**
 * Budgets: what work may cost in a day, a month or in all. A budget is about the hub, or about one node, creator, type
 * or group of tasks. Days and months are those of UTC.
 *
 * While a budget with `onLimit: "pause"` is used up, nothing that it is about is handed out: every hand-out looks at the
 * gate, which is loaded in its own transaction from the sums of usage (spending.ts). No counter can leak. What a node
 * holds already, it may finish. Reports of usage log an event at 80 % and at the limit, once in a period.
 */
import { DAY_MS } from "../lib/clock.ts";
import type { Change } from "./change.ts";
import { type Decision, type Rejected, accept, reject } from "./decision.ts";
import type { EventKind } from "./event.ts";
import { BUDGETS_MAX, BUDGET_WARNING_AT } from "./limits.ts";
import type {
  Budget,
  BudgetKey,
  BudgetState,
  Closed,
  Gate,
  Moment,
  Spending,
  SumKey,
  Task,
} from "./model.ts";
import { type Spent, plus, spend, toUsd } from "./spending.ts";

/** The first day of the period that a day is in. */
export function periodOf(per: Budget["per"], day: number): number {
  if (per === "day") return day;
  if (per === "total") return 0;
  const date = new Date(day * DAY_MS);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1) / DAY_MS;
}

/** How much of a budget is used: 1 is all of it. A budget of 0 is always used up. */
export function usedOf({ costMicro, tokens, spent }: BudgetState): number {
  const share = (used: number, limit: number | null): number =>
    limit === null ? 0 : limit === 0 ? 1 : used / limit;
  return Math.max(share(spent.costMicro, costMicro), share(spent.inputTokens + spent.outputTokens, tokens));
}

export const isUsedUp = (state: BudgetState): boolean => usedOf(state) >= 1;

export function gateOf(day: number, budgets: readonly BudgetState[]): Gate {
  const full = budgets.filter((state) => state.onLimit === "pause" && isUsedUp(state));
  return { day, budgets, closed: full.length === 0 ? null : closedBy(full) };
}

function closedBy(full: readonly BudgetState[]): Closed {
  const valuesOf = (scope: Budget["scope"]) =>
    new Set(full.flatMap((state) => (state.scope === scope ? [state.value] : [])));
  return {
    hub: full.some(({ scope }) => scope === "hub"),
    nodes: valuesOf("node"),
    creators: valuesOf("creator"),
    types: valuesOf("type"),
    groups: valuesOf("group"),
  };
}

/** Whether two gates keep the same from being handed out. */
export function isSameClosed(a: Closed | null, b: Closed | null): boolean {
  if (a === null || b === null) return a === b;
  const isEqual = (x: ReadonlySet<string>, y: ReadonlySet<string>): boolean =>
    x.size === y.size && [...x].every((value) => y.has(value));
  return (
    a.hub === b.hub &&
    isEqual(a.nodes, b.nodes) &&
    isEqual(a.creators, b.creators) &&
    isEqual(a.types, b.types) &&
    isEqual(a.groups, b.groups)
  );
}

/** What a budget can be about. */
export type Subject = Pick<Task, "creatorNode" | "taskType" | "group">;

/** Whether a budget keeps a task from being handed out to a node; `nodeId` null: to any node. */
export function isClosed(
  closed: Closed | null | undefined,
  { creatorNode, taskType, group }: Subject,
  nodeId: string | null,
): boolean {
  if (!closed) return false;
  if (closed.hub || closed.types.has(taskType) || closed.creators.has(creatorNode ?? "")) return true;
  if (group !== null && closed.groups.has(group)) return true;
  return nodeId !== null && closed.nodes.has(nodeId);
}

/** The used up budgets that keep a task from being handed out to a node: why it does not run. */
export function closedBudgets(
  { budgets }: Gate,
  task: Subject,
  nodeId: string | null,
): readonly BudgetState[] {
  const isAbout = ({ scope, value }: BudgetState): boolean => {
    if (scope === "hub") return true;
    if (scope === "node") return value === nodeId;
    if (scope === "group") return value === task.group;
    return value === (scope === "type" ? task.taskType : (task.creatorNode ?? ""));
  };
  return budgets.filter((state) => state.onLimit === "pause" && isUsedUp(state) && isAbout(state));
}

export function refusedByBudget(gate: Gate, task: Task, nodeId: string): Rejected {
  const names = closedBudgets(gate, task, nodeId).map(nameOf).join(", ");
  const detail = `Task ${task.taskId} is not handed out: the budget of ${names} is used up. Wait for its next period, or ask the administrator for a larger one.`;
  return reject("budget_exceeded", detail);
}

export function nameOf({ scope, value, per }: BudgetKey): string {
  return `${scope === "hub" ? "the hub" : `${scope} ${value || "(none)"}`} per ${per}`;
}

/** A gate after a sum of usage has grown. */
export function gateAfter(gate: Gate, sum: SumKey & Spending): Gate {
  const budgets = gate.budgets.map((state) => {
    const { scope, value, per, spent } = state;
    const isAbout = scope === sum.scope && value === sum.value;
    if (!isAbout || sum.day < periodOf(per, gate.day) || sum.day > gate.day) return state;
    return { ...state, spent: plus(spent, sum) };
  });
  return gateOf(gate.day, budgets);
}

/** As spend() (spending.ts), and says so when that uses up a budget. */
export function spendWithin(...[task, nodeId, usage, known, at]: Parameters<typeof spend>): Spent | Rejected {
  const spent = spend(task, nodeId, usage, known, at);
  if ("code" in spent) return spent;
  const { gate } = afterUsage(at, spent.saved);
  return gate ? { ...spent, saved: [...spent.saved, ...announcements(gate, at.now)] } : spent;
}

/** The moment after a request has reported usage: what it has used up is closed at once. */
export function afterUsage(at: Moment, saved: readonly Change[]): Moment {
  if (!at.gate || at.gate.budgets.length === 0) return at;
  let { gate } = at;
  for (const change of saved) if (change.kind === "spending.summed") gate = gateAfter(gate, change);
  return { ...at, gate };
}

/** The events of the budgets that have reached 80 % or their limit, and have not said so in their period. */
export function announcements(gate: Gate, at: number): readonly Change[] {
  return gate.budgets.flatMap((state) => {
    const period = periodOf(state.per, gate.day);
    const used = usedOf(state);
    const isNew = (said: number | null): boolean => said === null || said < period;
    const exceeds = used >= 1 && isNew(state.exceededIn);
    const warns = used >= BUDGET_WARNING_AT && used < 1 && isNew(state.warnedIn) && isNew(state.exceededIn);
    if (!exceeds && !warns) return [];
    const { spent: _, ...budget } = state;
    const said: Budget = exceeds ? { ...budget, exceededIn: period } : { ...budget, warnedIn: period };
    const kind = exceeds ? "budget.exceeded" : "budget.warning";
    return [{ kind: "budget.saved", budget: said }, budgetEvent(kind, state, at)] satisfies Change[];
  });
}

function budgetEvent(kind: EventKind, state: BudgetState, at: number): Change {
  const { scope, value, per, costMicro, tokens, onLimit, spent } = state;
  const data = {
    scope,
    value: value === "" ? null : value,
    per,
    on_limit: onLimit,
    ...(costMicro !== null && { limit_usd: toUsd(costMicro), cost_usd: toUsd(spent.costMicro) }),
    // Costs that are not known count for nothing: whoever reads this must know how many there are.
    ...(costMicro !== null && { without_cost: spent.unpriced }),
    ...(tokens !== null && { limit_tokens: tokens, tokens: spent.inputTokens + spent.outputTokens }),
  };
  return { kind: "event.logged", event: { kind, at, nodeId: null, taskId: null, data } };
}

// ---- Requests of the administrator

/** Sets a budget, or replaces it. What it has said in this period, it says again if it is reached again. */
export function setBudget(
  gate: Gate,
  asked: Omit<Budget, "warnedIn" | "exceededIn">,
  spent: Spending,
  at: number,
): Decision<BudgetState> {
  const others = gate.budgets.filter((state) => !isSameKey(state, asked));
  if (others.length >= BUDGETS_MAX && others.length === gate.budgets.length) {
    const detail = `There are ${BUDGETS_MAX} budgets, which is the most. Delete one that you do not need.`;
    return reject("budgets_limit", detail);
  }
  const budget: Budget = { ...asked, warnedIn: null, exceededIn: null };
  const state: BudgetState = { ...budget, spent };
  const said = announcements(gateOf(gate.day, [state]), at);
  return accept(state, [{ kind: "budget.saved", budget }, budgetEvent("budget.set", state, at), ...said]);
}

export function deleteBudget(gate: Gate, key: BudgetKey, at: number): Decision<BudgetState> {
  const state = gate.budgets.find((one) => isSameKey(one, key));
  if (!state) {
    const detail = `There is no budget of ${nameOf(key)}. GET /api/v1/budget/list shows the budgets.`;
    return reject("budget_not_found", detail);
  }
  return accept(state, [{ kind: "budget.deleted", key }, budgetEvent("budget.deleted", state, at)]);
}

function isSameKey(a: BudgetKey, b: BudgetKey): boolean {
  return a.scope === b.scope && a.value === b.value && a.per === b.per;
}
