/** The reads of budgets (domain/budget.ts), in the SQL that SQLite 3.35+ and PostgreSQL 15+ share. */
import { gateAfter, gateOf, periodOf } from "../../domain/budget.ts";
import type { BudgetState, Gate } from "../../domain/model.ts";
import type { Query, Row } from "../store.ts";
import { query } from "./query.ts";
import { SUMS, toSpending } from "./spending.ts";

const BUDGETS = `
  SELECT b.scope, b.value, b.per, b.cost_micro AS limit_micro, b.tokens, b.on_limit, b.warned_in, b.exceeded_in, ${SUMS("s")}
  FROM budgets b LEFT JOIN usage_sums s ON s.scope = b.scope AND s.value = b.value AND s.day <= $1
    AND s.day >= CASE b.per WHEN 'day' THEN $1 WHEN 'month' THEN $2 ELSE 0 END
  GROUP BY b.scope, b.value, b.per, b.cost_micro, b.tokens, b.on_limit, b.warned_in, b.exceeded_in
  ORDER BY b.scope, b.value, b.per`;

/** All budgets, and what of them is spent on a day. While there are none, no engine reads for it. */
export function gateOn(day: number): Query<Gate> {
  const shape: Query<Gate>["shape"] = (rows) => gateOf(day, rows.map(toState));
  return {
    ...query(BUDGETS, [day, periodOf("month", day)], shape, ["budgets", "usage_sums"]),
    patch: (gate, change) => (change.kind === "spending.summed" ? gateAfter(gate, change) : undefined),
    cached: { as: "gate", id: String(day) },
    needs: "budgets",
  };
}

function toState(row: Row): BudgetState {
  const maybe = (value: Row[string] | undefined): number | null => (value == null ? null : Number(value));
  return {
    scope: String(row["scope"]) as BudgetState["scope"],
    value: String(row["value"]),
    per: String(row["per"]) as BudgetState["per"],
    costMicro: maybe(row["limit_micro"]),
    tokens: maybe(row["tokens"]),
    onLimit: String(row["on_limit"]) as BudgetState["onLimit"],
    warnedIn: maybe(row["warned_in"]),
    exceededIn: maybe(row["exceeded_in"]),
    spent: toSpending(row),
  };
}
