/** The reads and writes of the gate (domain/gate.ts). */
import { periodOf } from "../../domain/budget.ts";
import { gateAfter, gateAt } from "../../domain/gate.ts";
import type { BudgetState, Gate, Hold, LimitState, Pause } from "../../domain/model.ts";
import { dayOf } from "../../domain/task/facet/spending.ts";
import type { Change } from "../../domain/change.ts";
import type { Query, Row } from "../store.ts";
import { one } from "./query.ts";
import { SUMS, toSpending } from "./spending.ts";
import { keyOf } from "./conflict-keys.ts";
import { BUDGETS, LIMITS, PAUSES } from "./tables.ts";
import type { Writes } from "./write.ts";
import { customStatement, drop, insert, remove, save, text, whole } from "./write-statement.ts";
import { soundBudget, soundLimit } from "../../domain/sound.ts";

/** The three kinds of rows have the same columns, most of them NULL. The budgets come first: they say the types. */
const GATE = `
  SELECT 'budget' AS what, b.scope, b.value, b.per, b.cost_micro AS limit_micro, b.tokens, b.on_limit, b.warned_in,
    b.exceeded_in, ${SUMS("s")}, CAST(NULL AS TEXT) AS reason, CAST(NULL AS BIGINT) AS at, CAST(NULL AS BIGINT) AS running,
    CAST(NULL AS BIGINT) AS per_minute, CAST(NULL AS BIGINT) AS held_until, CAST(NULL AS BIGINT) AS in_use,
    CAST(NULL AS TEXT) AS uses, CAST(NULL AS TEXT) AS held_by, CAST(NULL AS BIGINT) AS held_at
  FROM budgets b LEFT JOIN usage_sums s ON s.scope = b.scope AND s.value = b.value AND s.day <= $1
    AND s.day >= CASE b.per WHEN 'day' THEN $1 WHEN 'month' THEN $2 ELSE 0 END
  GROUP BY b.scope, b.value, b.per, b.cost_micro, b.tokens, b.on_limit, b.warned_in, b.exceeded_in
  UNION ALL
  SELECT 'pause', scope, value, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, reason, at,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM pauses
  UNION ALL
  SELECT 'limit', 'limit_key', limit_key, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, running, per_minute, held_until,
    CASE WHEN running IS NULL THEN 0 ELSE (
      SELECT count(*) FROM tasks WHERE status = 'assigned' AND counts_for = limits.limit_key) END,
    CASE WHEN per_minute IS NULL THEN NULL ELSE (
      SELECT string_agg(second || ':' || uses, ',') FROM limit_uses u WHERE u.limit_key = limits.limit_key) END, held_by,
    held_at
  FROM limits
  ORDER BY what, scope, value, per`;

/** What all gates of one day share. Every dispatch needs one, so it is made once a day. */
let today: { readonly params: readonly number[]; readonly id: string } = { params: [], id: "" };

/** All budgets, pauses and limits, and what of them is used. While there are none, no engine reads for it. */
export function gateOn(now: number): Query<Gate> {
  const day = dayOf(now);
  if (today.params[0] !== day) today = { params: [day, periodOf("month", day)], id: String(day) };
  const shape: Query<Gate>["shape"] = (rows) => {
    const of = (what: string): readonly Row[] => rows.filter((row) => row["what"] === what);
    const budgets = of("budget").map(toBudget);
    return gateAt({ day, budgets, pauses: of("pause").map(toPause), limits: of("limit").map(toLimit) }, now);
  };
  return {
    sql: GATE,
    params: today.params,
    shape,
    reads: GATE_READS,
    patch: (gate, change) => patchGate(gate, change, now),
    cached: { as: "gate", id: today.id },
    needs: "gate",
  };
}

const GATE_READS = ["budgets", "usage_sums", "pauses", "limits", "limit_uses", "tasks"] as const;
const OF_TASKS: ReadonlySet<Change["kind"]> = new Set([
  "task.created",
  "task.moved",
  "task.edited",
  "task.deleted",
]);

/** Undefined: it must be loaded again. */
function patchGate(gate: Gate, change: Change, now: number): Gate | undefined {
  if (change.kind === "spending.summed") return gateAfter(gate, change, now);
  if (change.kind === "task.created" && change.task.countsFor === null) return gate;
  const isOfTask = OF_TASKS.has(change.kind) || "taskId" in change;
  return isOfTask && gate.limits.every(({ running }) => running === null) ? gate : undefined;
}

const maybe = (value: Row[string] | undefined): number | null => (value == null ? null : Number(value));

function toBudget(row: Row): BudgetState {
  return soundBudget({
    scope: String(row["scope"]) as BudgetState["scope"],
    value: String(row["value"]),
    per: String(row["per"]) as BudgetState["per"],
    costMicro: maybe(row["limit_micro"]),
    tokens: maybe(row["tokens"]),
    onLimit: String(row["on_limit"]) as BudgetState["onLimit"],
    warnedIn: maybe(row["warned_in"]),
    exceededIn: maybe(row["exceeded_in"]),
    spent: toSpending(row),
  });
}

const toPause: (row: Row) => Pause = PAUSES.reader();

/** A hold of an older hub has no beginning. */
function toHold({ held_at, held_until, held_by }: Row): Hold | null {
  if (held_until == null) return null;
  return {
    at: Number(held_at ?? 0),
    until: Number(held_until),
    by: held_by == null ? null : String(held_by),
  };
}

function toLimit(row: Row): LimitState {
  const uses = row["uses"] == null ? [] : String(row["uses"]).split(",");
  return soundLimit({
    key: String(row["value"]),
    running: maybe(row["running"]),
    perMinute: maybe(row["per_minute"]),
    hold: toHold(row),
    inUse: Number(row["in_use"]),
    uses: uses.map((use) => {
      const [second, count] = use.split(":");
      return { second: Number(second), count: Number(count) };
    }),
  });
}

/** null: it has none. */
export function hasTaskOfKey(nodeId: string, key: string): Query<true | null> {
  const sql = `
    SELECT 1 AS held FROM tasks
    WHERE assigned_node = $1 AND status = 'assigned' AND coalesce(limit_key, task_type) = $2 LIMIT 1`;
  return one(sql, [nodeId, key], () => true, ["tasks"]);
}

export const GATE_WRITES = {
  "pause.saved": {
    cache: (rows) => rows.clearGate(),
    row: ({ pause }) => keyOf.pause(pause),
    statement: save(PAUSES, ({ pause }) => pause),
  },
  "pause.deleted": {
    cache: (rows) => rows.clearGate(),
    frees: true,
    row: ({ key }) => keyOf.pause(key),
    statement: remove(
      "pauses",
      PAUSES.set(({ key }) => key, "scope", "value"),
    ),
  },
  "limit.saved": {
    cache: (rows) => rows.clearGate(),
    row: ({ limit }) => keyOf.limit(limit.key),
    statement: save(LIMITS, ({ limit }) => limit),
  },
  "limit.deleted": {
    cache: (rows) => rows.clearGate(),
    frees: true,
    row: ({ key }) => keyOf.limit(key),
    statement: drop(LIMITS, ["limit_key"]),
  },
  "limit.used": {
    row: ({ key, second }) => keyOf.limitUses(key, second),
    statement: insert(
      "limit_uses",
      { limit_key: text(({ key }) => key), second: whole(({ second }) => second), uses: "1" },
      ` ON CONFLICT (limit_key, second) DO UPDATE SET uses = limit_uses.uses + 1`,
    ),
  },
  "limit.uses.removed": {
    frees: true,
    isSweep: true,
    statement: customStatement("limit_uses", `DELETE FROM limit_uses WHERE limit_key = $1 AND second < $2`, [
      text(({ key }) => key),
      whole(({ before }) => before),
    ]),
  },
  "tasks.counted": {
    cache: (rows) => rows.clearTasks(),
    isSweep: true,
    statement: customStatement(
      "tasks",
      `UPDATE tasks SET counts_for = $1 WHERE status = 'assigned' AND coalesce(limit_key, task_type) = $1`,
      [text(({ key }) => key)],
    ),
  },
  "budget.saved": {
    cache: (rows) => rows.clearGate(),
    row: ({ budget }) => keyOf.budget(budget),
    statement: save(BUDGETS, ({ budget }) => budget),
  },
  "budget.deleted": {
    cache: (rows) => rows.clearGate(),
    row: ({ key }) => keyOf.budget(key),
    statement: remove(
      "budgets",
      BUDGETS.set(({ key }) => key, "scope", "value", "per"),
    ),
  },
} satisfies Partial<Writes>;
