/** The reads of what work has cost (domain/spending.ts), in the SQL that SQLite 3.35+ and PostgreSQL 15+ share. */
import type { Spending, SumScope } from "../../domain/model.ts";
import { type KnownReport, NOTHING_SPENT } from "../../domain/spending.ts";
import type { UsageRequest } from "../../domain/task.ts";
import type { Query, Row } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { NO_ROW, count, many, padded, placeholders, query } from "./query.ts";

/** Which of a request's usage reports are stored already; null for a request without reports. */
export function knownReports({ taskId, usage = [] }: UsageRequest): Query<readonly KnownReport[] | null> {
  if (usage.length === 0) return NO_ROW;
  const seqs = padded(usage.map(({ seq }) => seq));
  const sql = `
    SELECT epoch, seq FROM usage_reports
    WHERE task_id = $1 AND epoch = (SELECT epoch FROM tasks WHERE task_id = $1) AND seq IN (${placeholders(seqs, 2)})`;
  const toKnown = (row: Row): KnownReport => ({ epoch: Number(row["epoch"]), seq: Number(row["seq"]) });
  return many(sql, [taskId, ...seqs], toKnown, [keyOf.task(taskId), keyOf.reports(taskId)]);
}

/** Days, both included. */
export type Days = { readonly since: number; readonly until: number };

/** What a sum is of: a name, or a day. */
export type SummedRow = { readonly name: string; readonly spending: Spending };

const SUM_COLUMNS = [
  "reports",
  "unpriced",
  "input_tokens",
  "output_tokens",
  "cached_tokens",
  "cost_micro",
] as const;

/** The columns of toSpending(): the sums over rows of usage_sums under this name. */
export const SUMS = (table: string): string =>
  SUM_COLUMNS.map((column) => `CAST(coalesce(sum(${table}.${column}), 0) AS BIGINT) AS ${column}`).join(", ");

const OWN_SUMS = SUMS("usage_sums");

export function toSpending(row: Row): Spending {
  return {
    reports: Number(row["reports"]),
    unpriced: Number(row["unpriced"]),
    inputTokens: Number(row["input_tokens"]),
    outputTokens: Number(row["output_tokens"]),
    cachedTokens: Number(row["cached_tokens"]),
    costMicro: Number(row["cost_micro"]),
  };
}

const toSummed = (row: Row): SummedRow => ({ name: String(row["name"]), spending: toSpending(row) });

/** A page of the sums by name, the most expensive first. */
export function sumsByName(
  scope: SumScope,
  { since, until }: Days,
  limit: number,
  offset: number,
): Query<readonly SummedRow[]> {
  const sql = `
    SELECT value AS name, ${OWN_SUMS} FROM usage_sums WHERE scope = $1 AND day BETWEEN $2 AND $3
    GROUP BY value ORDER BY sum(cost_micro) DESC, sum(input_tokens) + sum(output_tokens) DESC, value
    LIMIT $4 OFFSET $5`;
  return many(sql, [scope, since, until, limit, offset], toSummed, ["usage_sums"]);
}

export function namesSummed(scope: SumScope, { since, until }: Days): Query<number> {
  const sql = `SELECT count(DISTINCT value) AS n FROM usage_sums WHERE scope = $1 AND day BETWEEN $2 AND $3`;
  return count(sql, [scope, since, until], ["usage_sums"]);
}

/** A page of the days on which something was reported, newest first. */
export function sumsByDay(
  { since, until }: Days,
  limit: number,
  offset: number,
): Query<readonly SummedRow[]> {
  const sql = `
    SELECT day AS name, ${OWN_SUMS} FROM usage_sums WHERE scope = 'hub' AND value = '' AND day BETWEEN $1 AND $2
    GROUP BY day ORDER BY day DESC LIMIT $3 OFFSET $4`;
  return many(sql, [since, until, limit, offset], toSummed, ["usage_sums"]);
}

export function daysSummed({ since, until }: Days): Query<number> {
  const sql = `SELECT count(*) AS n FROM usage_sums WHERE scope = 'hub' AND value = '' AND day BETWEEN $1 AND $2`;
  return count(sql, [since, until], ["usage_sums"]);
}

/** What was spent under one name on some days. */
export function spentBy(scope: SumScope, value: string, { since, until }: Days): Query<Spending> {
  const sql = `
    SELECT ${OWN_SUMS} FROM usage_sums WHERE scope = $1 AND value = $2 AND day BETWEEN $3 AND $4`;
  const shape: Query<Spending>["shape"] = ([row]) => (row ? toSpending(row) : NOTHING_SPENT);
  return query(sql, [scope, value, since, until], shape, ["usage_sums"]);
}
