/** The reads, writes and facts of what work has cost (domain/task/facet/spending.ts). */
import type { Spending, SumScope, UsageReport } from "../../domain/model.ts";
import {
  type KnownReport,
  type NodeSum,
  type SumName,
  NOTHING_SPENT,
} from "../../domain/task/facet/spending.ts";
import type { UsageRequest } from "../../domain/task/request.ts";
import type { Query, Row } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { count, many, NO_ROW, padded, placeholders, query } from "./query.ts";
import { customStatement, whole } from "./write-statement.ts";
import { soundSpending } from "../../domain/sound.ts";
import { plus } from "../../domain/task/facet/spending.ts";
import { NODE_SUMS, USAGE_REPORTS, USAGE_SUMS } from "./tables.ts";
import { type Of, type Writes, leave } from "./write.ts";
import { type Statement, drop, tally, text } from "./write-statement.ts";
import { type Fact, SHOWN } from "./fact.ts";

/** Null for a request without reports. */
export function knownReports({ taskId, usage = [] }: UsageRequest): Query<readonly KnownReport[] | null> {
  if (usage.length === 0) return NO_ROW;
  const seqs = padded(usage.map(({ seq }) => seq));
  const sql = `
    SELECT epoch, seq FROM usage_reports
    WHERE task_id = $1 AND epoch = (SELECT epoch FROM tasks WHERE task_id = $1) AND seq IN (${placeholders(seqs, 2)})`;
  const toKnown = (row: Row): KnownReport => ({ epoch: Number(row["epoch"]), seq: Number(row["seq"]) });
  return many(sql, [taskId, ...seqs], toKnown, [keyOf.task(taskId), keyOf.reports(taskId)]);
}

/** SUMS_OF_NODE_MAX of each scope, and those with a budget. */
export function sumNamesOf(nodeId: string, day: number): Query<readonly SumName[]> {
  const sql = `SELECT scope, value FROM node_sums WHERE day = $1 AND node_id = $2`;
  return many(sql, [day, nodeId], toSumName, [keyOf.nodeSums(nodeId, day)]);
}

export function nodeSumsOf(nodeId: string, day: number): Query<readonly NodeSum[]> {
  const sql = `SELECT * FROM node_sums WHERE day = $1 AND node_id = $2`;
  const toSum = (row: Row): NodeSum => ({
    ...toSumName(row),
    spending: toSpending(row),
    keptBytes: Number(row["kept_bytes"]),
  });
  return many(sql, [day, nodeId], toSum, [keyOf.nodeSums(nodeId, day)]);
}

function toSumName(row: Row): SumName {
  return { scope: String(row["scope"]) as SumScope, value: String(row["value"]) };
}

export type Days = { readonly since: number; readonly until: number };

export type SummedRow = { readonly name: string; readonly spending: Spending };

export const SUM_COLUMNS = [
  "reports",
  "unpriced",
  "input_tokens",
  "output_tokens",
  "cached_tokens",
  "cost_micro",
] as const;

/** Of rows of usage_sums under this name. */
export const SUMS = (table: string): string =>
  SUM_COLUMNS.map((column) => `CAST(coalesce(sum(${table}.${column}), 0) AS BIGINT) AS ${column}`).join(", ");

const OWN_SUMS = SUMS("usage_sums");

export const toSpending: (row: Row) => Spending = USAGE_SUMS.reader(...SUM_COLUMNS).to(soundSpending);

const toSummed = (row: Row): SummedRow => ({ name: String(row["name"]), spending: toSpending(row) });

/** The most expensive first. */
export function sumsByName(
  scope: SumScope,
  { since, until }: Days,
  limit: number,
  offset: number,
): Query<readonly SummedRow[]> {
  const sql = `
    SELECT value AS name, ${OWN_SUMS} FROM usage_sums WHERE scope = $1 AND day BETWEEN $2 AND $3 AND reports > 0
    GROUP BY value ORDER BY sum(cost_micro) DESC, sum(input_tokens) + sum(output_tokens) DESC, value
    LIMIT $4 OFFSET $5`;
  return many(sql, [scope, since, until, limit, offset], toSummed, ["usage_sums"]);
}

export function namesSummed(scope: SumScope, { since, until }: Days): Query<number> {
  const sql = `SELECT count(DISTINCT value) AS n FROM usage_sums
    WHERE scope = $1 AND day BETWEEN $2 AND $3 AND reports > 0`;
  return count(sql, [scope, since, until], ["usage_sums"]);
}

/** Newest first. */
export function sumsByDay(
  { since, until }: Days,
  limit: number,
  offset: number,
): Query<readonly SummedRow[]> {
  const sql = `
    SELECT day AS name, ${OWN_SUMS} FROM usage_sums WHERE scope = 'hub' AND value = '' AND day BETWEEN $1 AND $2 AND reports > 0
    GROUP BY day ORDER BY day DESC LIMIT $3 OFFSET $4`;
  return many(sql, [since, until, limit, offset], toSummed, ["usage_sums"]);
}

export function daysSummed({ since, until }: Days): Query<number> {
  const sql = `SELECT count(*) AS n FROM usage_sums
    WHERE scope = 'hub' AND value = '' AND day BETWEEN $1 AND $2 AND reports > 0`;
  return count(sql, [since, until], ["usage_sums"]);
}

export function spentBy(scope: SumScope, value: string, { since, until }: Days): Query<Spending> {
  const sql = `
    SELECT ${OWN_SUMS} FROM usage_sums WHERE scope = $1 AND value = $2 AND day BETWEEN $3 AND $4`;
  const shape: Query<Spending>["shape"] = ([row]) => (row ? toSpending(row) : NOTHING_SPENT);
  return query(sql, [scope, value, since, until], shape, ["usage_sums"]);
}

// ---- Retention (service/retention.ts)

type OldSums = { readonly before: number; readonly limit: number };
const LIMITS = [whole(({ before }: OldSums) => before), whole(({ limit }: OldSums) => limit)];
const OLD_OF_NODES = `SELECT day, node_id, scope, value FROM node_sums WHERE day < $1 ORDER BY day, node_id, scope, value LIMIT $2`;
/** After those of the nodes. What a budget of all time counts stays, and the sums of the hub, which are one row a day. */
const OLD_OF_ALL = `
  SELECT scope, value, day FROM usage_sums s WHERE day < $1 AND day < coalesce((SELECT min(day) FROM node_sums), $1)
    AND scope NOT IN ('hub', 'voided') AND NOT EXISTS (
    SELECT 1 FROM budgets b WHERE b.per = 'total' AND b.scope = s.scope AND b.value = s.value)
  ORDER BY scope, value, day LIMIT $2`;

export function oldSums({ before, limit }: OldSums): Query<number> {
  const sql = `SELECT max(n) AS n FROM (
    SELECT count(*) AS n FROM (${OLD_OF_NODES}) AS of_nodes UNION ALL SELECT count(*) FROM (${OLD_OF_ALL}) AS of_all) AS old`;
  return count(sql, [before, limit], ["node_sums", "usage_sums", "budgets"]);
}

export const REFUND_SUMS = customStatement<OldSums, "quota_usage">(
  "quota_usage",
  `UPDATE quota_usage SET bytes = quota_usage.bytes - freed.bytes FROM (
    SELECT node_id, CAST(sum(kept_bytes) AS BIGINT) AS bytes FROM node_sums
    WHERE kept_bytes > 0 AND (day, node_id, scope, value) IN (${OLD_OF_NODES}) GROUP BY node_id) AS freed
    WHERE quota_usage.node_id = freed.node_id`,
  LIMITS,
);
export const PRUNE_NODE_SUMS = customStatement<OldSums, "node_sums">(
  "node_sums",
  `DELETE FROM node_sums WHERE (day, node_id, scope, value) IN (${OLD_OF_NODES})`,
  LIMITS,
);
export const PRUNE_SUMS = customStatement<OldSums, "usage_sums">(
  "usage_sums",
  `DELETE FROM usage_sums WHERE (scope, value, day) IN (${OLD_OF_ALL})`,
  LIMITS,
);

const REPORT_FIELDS = {
  seq: "seq",
  model: "model",
  input_tokens: "inputTokens",
  output_tokens: "outputTokens",
  cached_tokens: "cachedTokens",
  cost_micro: "costMicro",
} as const satisfies Readonly<Record<string, keyof UsageReport>>;
/** `place` makes the four values of all reports, `field` one of each report. */
const addReports = (place: string, field: (name: keyof UsageReport) => string, from: string): string => `
  INSERT INTO usage_reports (task_id, epoch, node_id, at, ${Object.keys(REPORT_FIELDS).join(", ")})
  SELECT ${[1, 2, 3, 4].map((n) => `${place}${n}`).join(", ")}, ${Object.values(REPORT_FIELDS).map(field).join(", ")}
  FROM ${from}`;
/** One statement for all reports of a request, a JSON array. Differs because each engine reads JSON in its own way. */
const ADD_REPORTS: Statement<Of<"usage.reported">, "usage_reports"> = {
  ...customStatement(
    "usage_reports",
    addReports("$", (name) => `value ->> '${name}'`, "json_each($5)"),
    [
      text(({ taskId }) => taskId),
      whole(({ epoch }) => epoch),
      text(({ nodeId }) => nodeId),
      whole(({ at }) => at),
      text(({ reports }) => JSON.stringify(reports)),
    ],
  ),
  bulk: (rows) => {
    const field = (name: keyof UsageReport): string =>
      name === "model" ? `r.value ->> '${name}'` : `CAST(r.value ->> '${name}' AS BIGINT)`;
    return addReports("p.a", field, `${rows}, json_array_elements(p.a5::json) AS r (value)`);
  },
};

export const SPENDING_WRITES = {
  "usage.reported": { row: ({ taskId }) => keyOf.reports(taskId), statement: ADD_REPORTS },
  "usage.removed": {
    row: ({ taskId }) => keyOf.reports(taskId),
    statement: drop(USAGE_REPORTS, ["task_id"]),
  },
  "spending.summed": {
    cache: (rows, change) => rows.patchSpending(change),
    row: ({ scope, value, day }) => keyOf.spending(scope, value, day),
    statement: tally(USAGE_SUMS, (change) => change),
    sum: (earlier, later) => ({ ...later, ...plus(earlier, later) }),
  },
  "node.summed": {
    row: ({ nodeId, scope, value, day }) => keyOf.nodeSum(nodeId, scope, value, day),
    keys: ({ nodeId, day }) => [keyOf.nodeSums(nodeId, day)],
    statement: tally(NODE_SUMS, (change) => change),
    sum: (earlier, later) => ({
      ...later,
      ...plus(earlier, later),
      keptBytes: earlier.keptBytes + later.keptBytes,
    }),
  },
  "node.sums.removed": {
    frees: true,
    isSweep: true,
    keys: ({ nodeId, day }) => [keyOf.nodeSums(nodeId, day)],
    statement: drop(NODE_SUMS, ["node_id", "day"]),
  },
  "sums.refunded": { cache: (rows) => rows.clearUsage(), isSweep: true, statement: REFUND_SUMS },
  "node.sums.pruned": { isSweep: true, frees: true, statement: PRUNE_NODE_SUMS },
  "sums.pruned": { cache: leave, isSweep: true, frees: true, statement: PRUNE_SUMS },
} satisfies Partial<Writes>;

export const SPENDING_FACTS: readonly Fact[] = [
  {
    name: "spending",
    holds:
      "what a task has spent is the sum of its usage reports, and every sum of a day has all of that day",
    sql: `
      SELECT 'task ' || t.task_id || ' has not spent what its usage reports say' FROM task_rows t
      LEFT JOIN (
        SELECT task_id, count(*) AS n, sum(cost_micro IS NULL) AS unpriced, sum(coalesce(cost_micro, 0)) AS cost,
          sum(input_tokens) AS input, sum(output_tokens) AS output, sum(cached_tokens) AS cached
        FROM usage_reports GROUP BY task_id) r ON r.task_id = t.task_id
      WHERE (t.spent IS NULL) <> (r.n IS NULL)
        OR (t.spent ->> '$.reports') <> r.n OR (t.spent ->> '$.unpriced') <> r.unpriced
        OR (t.spent ->> '$.costMicro') <> r.cost OR (t.spent ->> '$.inputTokens') <> r.input
        OR (t.spent ->> '$.outputTokens') <> r.output OR (t.spent ->> '$.cachedTokens') <> r.cached
      UNION ALL
      SELECT 'usage was reported of task ' || task_id || ', which there is not' FROM usage_reports
      WHERE task_id NOT IN (SELECT task_id FROM task_rows)
      UNION ALL
      SELECT 'on day ' || day || ' the sums of the nodes, creators, types and models are not that of the hub' FROM (
        SELECT day, scope, sum(reports) AS n, sum(unpriced) AS unpriced, sum(cost_micro) AS cost,
          sum(input_tokens) AS input, sum(output_tokens) AS output, sum(cached_tokens) AS cached
        FROM usage_sums WHERE scope IN ('hub', 'node', 'creator', 'type', 'model')
          AND day >= (SELECT min(day) FROM node_sums)
        GROUP BY day, scope)
      GROUP BY day HAVING count(*) <> 5 OR min(n) <> max(n) OR min(unpriced) <> max(unpriced)
        OR min(cost) <> max(cost) OR min(input) <> max(input) OR min(output) <> max(output)
        OR min(cached) <> max(cached)
      UNION ALL
      SELECT 'day ' || n.day || ', ' || n.scope || ' ' || n.value || ': the nodes have more than the sum of all' FROM (
        SELECT day, scope, value, sum(reports) AS n, sum(cost_micro) AS cost FROM node_sums GROUP BY day, scope, value) n
      LEFT JOIN usage_sums s ON s.scope = n.scope AND s.value = n.value AND s.day = n.day
      WHERE s.reports IS NULL OR s.reports < n.n OR s.cost_micro < n.cost
      LIMIT ${SHOWN}`,
  },
];
