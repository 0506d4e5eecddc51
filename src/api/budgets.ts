/** The endpoints of budgets: budget/*. */
import * as z from "zod/mini";
import { isUsedUp, periodOf, usedOf } from "../domain/budget.ts";
import { BUDGET_WARNING_AT } from "../domain/limits.ts";
import {
  BUDGET_PERIODS,
  BUDGET_SCOPES,
  type BudgetKey,
  type BudgetState,
  ON_LIMIT,
} from "../domain/model.ts";
import { toUsd } from "../domain/task/facet/spending.ts";
import { type FieldError, invalidRequest } from "../http/problem.ts";
import type { DatedBudget } from "../service/budgets.ts";
import { type Endpoint, readEndpoint, writeEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { dayText, encodePage, encodeSpending, pageSchema, spendingSchema } from "./response-schemas.ts";
import { about, flag, maybeNumber, maybeString, optional } from "./about.ts";

export const budgetSchema = () =>
  z.strictObject({
    scope: z.enum(BUDGET_SCOPES),
    value: z.nullable(z.string()),
    per: z.enum(BUDGET_PERIODS),
    cost_usd: maybeNumber("Dollars; null: any."),
    tokens: z.nullable(z.int()),
    on_limit: z.enum(ON_LIMIT),
    state: about(
      z.enum(["open", "warning", "exceeded"]),
      "`warning` from 80 % on, `exceeded` when the budget is used up.",
    ),
    paused: flag("Whether the budget keeps tasks back now."),
    since: maybeString("The first day of the current period; null if the period is all time."),
    spent: about(
      spendingSchema(),
      "What was spent in the current period. A report without a cost adds no dollars: `without_cost` counts such reports.",
    ),
  });

function encodeBudget(state: BudgetState, day: number) {
  const { scope, value, per, costMicro, tokens, onLimit, spent } = state;
  const isFull = isUsedUp(state);
  return {
    scope,
    value: value === "" ? null : value,
    per,
    cost_usd: costMicro === null ? null : toUsd(costMicro),
    tokens,
    on_limit: onLimit,
    state: isFull ? "exceeded" : usedOf(state) >= BUDGET_WARNING_AT ? "warning" : "open",
    paused: isFull && onLimit === "pause",
    since: per === "total" ? null : dayText(periodOf(per, day)),
    spent: encodeSpending(spent),
  };
}

const keyFields = () => ({
  scope: field.word(BUDGET_SCOPES),
  value: z.optional(field.budgetValue()),
  per: field.word(BUDGET_PERIODS),
});

type KeyFields = z.infer<z.ZodMiniObject<ReturnType<typeof keyFields>>>;

/** The budget of a creator or a type without a value is that of the tasks without one. @throws {Problem} 400 */
function keyOf({ scope, value = "", per }: KeyFields, faults: readonly FieldError[] = []): BudgetKey {
  const errors = [...faults];
  if (scope === "hub" && value !== "")
    errors.push({ path: "value", message: "must not be sent with the scope hub" });
  if (scope === "node" && value === "") errors.push({ path: "value", message: "must be a node_id" });
  if (scope === "group" && value === "") errors.push({ path: "value", message: "must be a group" });
  if (errors.length > 0) throw invalidRequest(errors);
  return { scope, value, per };
}

const BUDGET_ANSWER = {
  answer: () => z.strictObject({ budget: budgetSchema() }),
  encode: ({ budget, day }: DatedBudget) => ({ budget: encodeBudget(budget, day) }),
} as const;

const set = writeEndpoint({
  ...BUDGET_ANSWER,
  path: "/api/v1/budget/set",
  auth: "admin",
  summary: "Sets a budget: what work may cost in a day, in a month or in total",
  rejections: ["budgets_limit"],
  input: () =>
    z.object({
      ...keyFields(),
      cost_usd: optional(field.costLimit(), "Dollars; left out: any."),
      tokens: z.optional(field.tokenLimit()),
      on_limit: z._default(field.word(ON_LIMIT), "pause"),
    }),
  handle: (
    { services, transact },
    { cost_usd: costMicro = null, tokens = null, on_limit: onLimit, ...key },
  ) => {
    const isUnlimited = costMicro === null && tokens === null;
    const message = "must be sent, or tokens, or both";
    return services.budgets.set(transact, {
      ...keyOf(key, isUnlimited ? [{ path: "cost_usd", message }] : []),
      costMicro,
      tokens,
      onLimit,
    });
  },
});

const list = readEndpoint({
  path: "/api/v1/budget/list",
  auth: "admin",
  summary: "All budgets, each with what has been spent",
  input: () => z.object(field.paging()),
  answer: () =>
    z.strictObject({
      budgets: about(z.array(budgetSchema()), "All budgets, by scope and value."),
      ...pageSchema(),
    }),
  handle: ({ services, variant }, paging) =>
    services.budgets.list(field.pageRequest(paging, variant.unpaged)),
  encode: (page) => encodePage("budgets", page, ({ budget, day }) => encodeBudget(budget, day)),
});

const remove = writeEndpoint({
  ...BUDGET_ANSWER,
  path: "/api/v1/budget/delete",
  auth: "admin",
  summary: "Deletes a budget",
  rejections: ["budget_not_found"],
  input: () => z.object(keyFields()),
  handle: ({ services, transact }, key) => services.budgets.delete(transact, keyOf(key)),
});

export const BUDGET_ENDPOINTS: readonly Endpoint[] = [set, list, remove];
