/**
 * Budgets: what work may cost in a day, a month (UTC) or in all: that of the hub, or of one node, creator, type or
 * group.
 *
 * While a budget with `onLimit: "pause"` is used up, nothing that it is about is handed out: every dispatch looks at the
 * gate, which is loaded in its own transaction from the sums of usage (spending.ts), so that no counter can leak.
 * Reports of usage log an event at 80 % and at the limit, once in a period.
 */
import { DAY_MS } from "../lib/clock.ts";
import type { Change } from "./change.ts";
import { type Decision, accept, reject } from "./decision.ts";
import type { EventKind } from "./event.ts";
import { BUDGET_WARNING_AT } from "./limits.ts";
import type { Budget, BudgetKey, BudgetState, Gate, Spending } from "./model.ts";
import { HUB_LIMITS, refusesMore } from "./shares.ts";
import { toUsd } from "./task/facet/spending.ts";

export function periodOf(per: Budget["per"], day: number): number {
  if (per === "day") return day;
  if (per === "total") return 0;
  const date = new Date(day * DAY_MS);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1) / DAY_MS;
}

/** 1 is all of it. A budget of 0 is always used up. */
export function usedOf({ costMicro, tokens, spent }: BudgetState): number {
  const share = (used: number, limit: number | null): number =>
    limit === null ? 0 : limit === 0 ? 1 : used / limit;
  return Math.max(share(spent.costMicro, costMicro), share(spent.inputTokens + spent.outputTokens, tokens));
}

export const isUsedUp = (state: BudgetState): boolean => usedOf(state) >= 1;

export function nameOf({ scope, value, per }: BudgetKey): string {
  return `${scope === "hub" ? "the hub" : `${scope} ${value || "(none)"}`} per ${per}`;
}

/** Once in a period. */
export function announcements(gate: Gate, now: number): readonly Change[] {
  return gate.budgets.flatMap((state) => {
    const period = periodOf(state.per, gate.day);
    const used = usedOf(state);
    const isNew = (announcedIn: number | null): boolean => announcedIn === null || announcedIn < period;
    const exceeds = used >= 1 && isNew(state.exceededIn);
    const warns = used >= BUDGET_WARNING_AT && used < 1 && isNew(state.warnedIn) && isNew(state.exceededIn);
    if (!exceeds && !warns) return [];
    const { spent: _, ...budget } = state;
    const announced: Budget = exceeds ? { ...budget, exceededIn: period } : { ...budget, warnedIn: period };
    const kind = exceeds ? "budget.exceeded" : "budget.warning";
    return [{ kind: "budget.saved", budget: announced }, budgetEvent(kind, state, now)] satisfies Change[];
  });
}

/** Of budgets whose usage has become less. */
export function silenced(gate: Gate): readonly Change[] {
  return gate.budgets.flatMap((state): readonly Change[] => {
    const { spent: _, ...budget } = state;
    const used = usedOf(state);
    const warnedIn = used < BUDGET_WARNING_AT ? null : budget.warnedIn;
    const exceededIn = used < 1 ? null : budget.exceededIn;
    const isSame = warnedIn === budget.warnedIn && exceededIn === budget.exceededIn;
    return isSame ? [] : [{ kind: "budget.saved", budget: { ...budget, warnedIn, exceededIn } }];
  });
}

function budgetEvent(kind: EventKind, state: BudgetState, now: number): Change {
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
  return { kind: "event.logged", event: { kind, at: now, nodeId: null, taskId: null, data } };
}

// ---- Requests of the administrator

/** A replaced budget may log its events again in this period. */
export function setBudget(
  gate: Gate,
  terms: Omit<Budget, "warnedIn" | "exceededIn">,
  spent: Spending,
  now: number,
): Decision<BudgetState> {
  const others = gate.budgets.filter((state) => !isSameKey(state, terms));
  const otherCount = others.length === gate.budgets.length ? others.length : 0;
  const full = refusesMore(HUB_LIMITS.budgets, { all: otherCount, ofNode: 0 }, null);
  if (full) return full;
  const budget: Budget = { ...terms, warnedIn: null, exceededIn: null };
  const state: BudgetState = { ...budget, spent };
  const announced = announcements({ ...gate, budgets: [state] }, now);
  return accept(state, [
    { kind: "budget.saved", budget },
    budgetEvent("budget.set", state, now),
    ...announced,
  ]);
}

export function deleteBudget(gate: Gate, key: BudgetKey, now: number): Decision<BudgetState> {
  const state = gate.budgets.find((known) => isSameKey(known, key));
  if (!state) {
    const detail = `There is no budget of ${nameOf(key)}. GET /api/v1/budget/list shows the budgets.`;
    return reject("budget_not_found", detail);
  }
  return accept(state, [{ kind: "budget.deleted", key }, budgetEvent("budget.deleted", state, now)]);
}

function isSameKey(a: BudgetKey, b: BudgetKey): boolean {
  return a.scope === b.scope && a.value === b.value && a.per === b.per;
}
