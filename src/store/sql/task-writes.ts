/** How the rows of a task are written: its state, its specification, its result and its features. */
import { CLOCK_JUMP_MS } from "../../domain/limits.ts";
import { assert, must } from "../../lib/assert.ts";
import { type ConflictKey, keyOf } from "./conflict-keys.ts";
import type { Columns } from "./table.ts";
import { FEW_NAMES, PATCHED_NAMES } from "./few-terms.ts";
import { TASKS, TASK_FEATURES, TASK_RESULTS, TASK_SPECS } from "./tables.ts";
import { type Beside, type Of, type Writes, evict } from "./write.ts";
import {
  type Statement,
  added,
  customStatement,
  insert,
  remove,
  text,
  update,
  upsert,
  whole,
} from "./write-statement.ts";
import { type Fact, QUESTION_STATE, SHOWN } from "./fact.ts";

type OfTask = Pick<Of<"task.created">, "task">;
const taskOf = ({ task }: OfTask): OfTask["task"] => task;
const ofTask = ({ task }: OfTask): ConflictKey => keyOf.task(task.taskId);
const TASK_ID = TASKS.set(taskOf, "task_id");

const TASK_STATE = TASKS.set(
  taskOf,
  ...(["status", "assigned_node", "revoked_from", "attempts", "failures", "restarts", "counts_for"] as const),
  ...(["run_until", "lease_until", "epoch", "not_before", "expires_at", "unmet", "ready", "due_at"] as const),
  ...(["started_at", "progress", "failure", "failed_node", "updated_at"] as const),
);

const seqOfTask = (taskId: string): string => `(SELECT seq FROM tasks WHERE task_id = ${taskId})`;
const TASK_SEQ: Columns<OfTask> = { task_seq: text(({ task }) => task.taskId, seqOfTask) };
/** Of a task that was inserted just before. The statement for one row is SQLite's, which then knows the number. */
const NEW_TASK_SEQ: Columns<OfTask> = {
  task_seq: text(
    ({ task }) => task.taskId,
    (place) => (place.startsWith("$") ? "last_insert_rowid()" : seqOfTask(place)),
  ),
};
export const TASK_ID_SEQ: Columns<{ readonly taskId: string }> = {
  task_seq: text(({ taskId }) => taskId, seqOfTask),
};

/** What the indexes of features need of a task's state. */
const COPIED = ["status", "updated_at", "assigned_node"] as const;

/** The others have changes of their own. */
const FEATURE_STATE = TASK_FEATURES.set(
  taskOf,
  ...COPIED,
  ...(["earlier_failures", "checkpoint_bytes", "retain_until", "has_output", "questions", "spent"] as const),
  ...(["max_cost_micro", "kept_bytes", "lent_bytes"] as const),
);

function writeFeatures(columns: Columns<OfTask>): readonly Beside<OfTask & { readonly isFirst?: true }>[] {
  return [
    {
      when: ({ task, isFirst }) => task.hasFeatures && isFirst === true,
      statement: upsert("task_features", TASK_SEQ, columns),
    },
    // Three quarters of the steps of an upsert.
    {
      when: ({ task, isFirst }) => task.hasFeatures && isFirst === undefined,
      statement: update("task_features", TASK_SEQ, columns),
    },
  ];
}

/** They may be the first of the task. */
export function setFeature<C extends { readonly taskId: string }>(
  columns: Columns<C>,
): Statement<C, "tasks"> {
  const names = Object.keys(columns);
  const values = Object.values(columns).filter((value) => typeof value !== "string");
  const insertFrom = (from: string, place: string): string => `
    INSERT INTO task_features (task_seq, ${[...COPIED, ...names].join(", ")})
    SELECT seq, ${[...COPIED, ...names.map((_, i) => `${place}${i + 2}`)].join(", ")} FROM ${from}
    ON CONFLICT (task_seq) DO UPDATE SET ${names.map((name) => `${name} = excluded.${name}`).join(", ")}`;
  return {
    ...customStatement("task_features", insertFrom("tasks WHERE task_id = $1", "$"), [
      text<C>(({ taskId }) => taskId),
      ...values,
    ]),
    bulk: (rows) => insertFrom(`${rows} JOIN tasks ON tasks.task_id = p.a1 WHERE TRUE`, "p.a"),
  };
}

export const TASK_WRITES = {
  "task.created": {
    cache(rows, change, rowId) {
      assert(rowId > 0, "a new task is written at once");
      rows.writeTask({ ...change, task: { ...change.task, seq: rowId } });
    },
    row: ofTask,
    statement: insert("tasks", {
      ...TASK_ID,
      ...TASKS.set(
        taskOf,
        ...([
          "title",
          "task_type",
          "priority",
          "creator_node",
          "creator_verified",
          "lux_reward_micro",
        ] as const),
        ...(["balanced", "created_at", "timeout_ms", "max_run_ms", "limit_key", "lane"] as const),
      ),
      ...TASK_STATE,
    }),
    beside: [
      {
        statement: insert("task_specs", {
          ...NEW_TASK_SEQ,
          ...TASK_SPECS.set(taskOf, "max_attempts", "backoff_ms", "description", "depends_on"),
        }),
      },
      {
        when: ({ task }) => task.hasFeatures,
        statement: insert("task_features", {
          ...NEW_TASK_SEQ,
          ...TASK_FEATURES.set(
            taskOf,
            ...FEW_NAMES,
            ...(["creator_key", "schedule", "schedule_at"] as const),
            ...(["unique_key", "unique_until", "on_dependency"] as const),
          ),
          ...FEATURE_STATE,
        }),
      },
    ],
  },
  "task.moved": {
    cache: (rows, change) => rows.writeTask(change),
    row: ofTask,
    keys: ({ task }) => (task.assignedNode === null ? [] : [keyOf.held(task.assignedNode)]),
    statement: update("tasks", TASK_ID, {
      ...TASK_STATE,
      ...TASKS.set(taskOf, "result_verified", "paid_seq"),
    }),
    beside: [
      {
        when: ({ task }) => task.result !== null,
        statement: insert(
          "task_results",
          {
            ...TASK_SEQ,
            ...TASK_RESULTS.set(
              ({ task }: OfTask) => must(task.result, "a result is written of a task that has one"),
              ...(["problem", "improvement", "lesson", "result_extra"] as const),
            ),
          },
          " ON CONFLICT (task_seq) DO NOTHING",
        ),
      },
      ...writeFeatures(FEATURE_STATE),
    ],
  },
  "task.edited": {
    cache: evict,
    row: ofTask,
    statement: update(
      "tasks",
      TASK_ID,
      TASKS.set(taskOf, "title", "priority", "lux_reward_micro", "limit_key", "lane"),
    ),
    beside: [
      { statement: update("task_specs", TASK_SEQ, TASK_SPECS.set(taskOf, "description")) },
      ...writeFeatures({ ...FEATURE_STATE, ...TASK_FEATURES.set(taskOf, ...PATCHED_NAMES) }),
    ],
  },
  "task.deleted": {
    cache: evict,
    frees: true,
    row: ({ taskId }) => keyOf.task(taskId),
    statement: remove("tasks", { task_id: text(({ taskId }) => taskId) }),
    beside: (["task_specs", "task_results", "task_features"] as const).map((table) => ({
      isFirst: true,
      statement: remove(table, TASK_ID_SEQ),
    })),
  },
  "task.leased": {
    cache: evict,
    row: ({ taskId }) => keyOf.task(taskId),
    statement: setFeature(TASK_FEATURES.set((change) => change, "has_leases")),
  },
  "tasks.tallied": {
    statement: update(
      "task_totals",
      { one: "1" },
      {
        open: whole(({ open }) => open, added),
        assigned: whole(({ assigned }) => assigned, added),
        completed: whole(({ completed }) => completed, added),
        failed: whole(({ failed }) => failed, added),
      },
    ),
    sum: (earlier, later) => ({
      ...later,
      open: earlier.open + later.open,
      assigned: earlier.assigned + later.assigned,
      completed: earlier.completed + later.completed,
      failed: earlier.failed + later.failed,
    }),
  },
  "task.leases.renewed": {
    cache: evict,
    isSweep: true,
    statement: customStatement(
      "tasks",
      `UPDATE tasks SET run_until = $1 + max_run_ms, lease_until = $1 +
        CASE WHEN timeout_ms IS NULL OR max_run_ms < timeout_ms THEN max_run_ms ELSE timeout_ms END
        WHERE lease_until IS NOT NULL`,
      [whole(({ steady }) => steady)],
    ),
  },
  "backoffs.restarted": {
    cache: evict,
    isSweep: true,
    statement: customStatement(
      "tasks",
      `UPDATE tasks SET not_before = not_before - updated_at + $1, updated_at = $1,
          due_at = CASE WHEN expires_at < not_before - updated_at + $1 THEN expires_at ELSE not_before - updated_at + $1 END
        WHERE ready = 0 AND unmet = 0 AND attempts > 0 AND not_before > updated_at
          AND updated_at > $1 + ${CLOCK_JUMP_MS}`,
      [whole(({ now }) => now)],
    ),
    beside: [
      {
        statement: customStatement(
          "task_features",
          `UPDATE task_features SET updated_at = (SELECT t.updated_at FROM tasks t WHERE t.seq = task_seq)
            WHERE status = 'open' AND updated_at > $1`,
          [whole(({ now }) => now)],
        ),
      },
    ],
  },
} satisfies Partial<Writes>;

/** Later than any stored time. */
const NEVER = Number.MAX_SAFE_INTEGER;

const NOT_ASKING = `${QUESTION_STATE} <> 'open'`;

export const TASK_FACTS: readonly Fact[] = [
  {
    name: "tasks",
    holds: "every task's state, node and result agree, and the totals are their counts",
    sql: `
      SELECT 'task ' || task_id || ' is ' || status || ', but its node or result disagrees' FROM task_rows
      WHERE status NOT IN ('open', 'assigned', 'completed', 'failed')
        OR (status IN ('open', 'failed')) <> (assigned_node IS NULL)
        OR (status = 'completed') <> (problem IS NOT NULL)
        OR (result_verified = 1 AND status <> 'completed')
        OR (result_extra IS NOT NULL AND (problem IS NULL OR NOT json_valid(result_extra)))
        OR (assigned_node IS NOT NULL AND assigned_node NOT IN (SELECT node_id FROM nodes))
      UNION ALL
      SELECT 'the total of ' || status || ' tasks is ' || said || ', but there are ' || counted FROM (
        SELECT 'open' AS status, open AS said, (SELECT count(*) FROM task_rows WHERE status = 'open') AS counted
        FROM task_totals
        UNION ALL
        SELECT 'assigned', assigned, (SELECT count(*) FROM task_rows WHERE status = 'assigned') FROM task_totals
        UNION ALL
        SELECT 'completed', completed, (SELECT count(*) FROM task_rows WHERE status = 'completed') FROM task_totals
        UNION ALL
        SELECT 'failed', failed, (SELECT count(*) FROM task_rows WHERE status = 'failed') FROM task_totals)
      WHERE said <> counted LIMIT ${SHOWN}`,
  },
  {
    name: "rows",
    holds: "every task has a specification, and what belongs to it has a task and agrees with it",
    sql: `
      SELECT 'task ' || task_id || ' has no specification' FROM tasks WHERE seq NOT IN (SELECT task_seq FROM task_specs)
      UNION ALL
      SELECT 'a row of task ' || task_seq || ' has no task' FROM (
        SELECT task_seq FROM task_specs UNION SELECT task_seq FROM task_results UNION SELECT task_seq FROM task_features)
      WHERE task_seq NOT IN (SELECT seq FROM tasks)
      UNION ALL
      SELECT 'the features of task ' || task_id || ' are of an earlier state' FROM task_features f
      JOIN tasks t ON t.seq = f.task_seq
      WHERE (f.status, f.updated_at) <> (t.status, t.updated_at) OR f.assigned_node IS NOT t.assigned_node
      LIMIT ${SHOWN}`,
  },
  {
    name: "leases",
    holds:
      "only an assigned task has a lease, and each with a timeout or max_run_s and without an open question has one; only an open one waits for its time",
    sql: `
      SELECT 'task ' || task_id || ' is ' || status || ', and its lease or its wait is not' FROM task_rows
      WHERE (lease_until IS NOT NULL) <>
          (status = 'assigned' AND (timeout_ms IS NOT NULL OR max_run_ms IS NOT NULL) AND ${NOT_ASKING})
        OR (run_until IS NOT NULL) <> (status = 'assigned' AND max_run_ms IS NOT NULL AND ${NOT_ASKING})
        OR lease_until > run_until
        OR (ready IS NULL) <> (status <> 'open') OR (ready = 2) <> (ready > 0 AND lane IS NOT NULL)
        OR (ready = 0
          AND (status <> 'open' OR (not_before IS NULL AND unmet = 0 AND quorum IS NULL AND ${QUESTION_STATE} <> 'parked')))
        OR due_at IS NOT nullif(min(
          coalesce(CASE WHEN ready = 0 AND unmet = 0 THEN not_before END, ${NEVER}),
          coalesce(CASE WHEN status IN ('open', 'assigned') THEN expires_at END, ${NEVER})), ${NEVER})
        OR (unmet > 0 AND (status <> 'open' OR ready <> 0)) LIMIT ${SHOWN}`,
  },
  {
    name: "totals",
    holds: "the totals of the files are their number and their bytes",
    sql: `
      SELECT 'the totals are ' || said.files || ' files of ' || said.bytes || ' bytes, but there are '
        || counted.files || ' of ' || counted.bytes
      FROM file_totals said, (SELECT count(*) AS files, coalesce(sum(size_bytes), 0) AS bytes FROM files) counted
      WHERE said.files <> counted.files OR said.bytes <> counted.bytes LIMIT ${SHOWN}`,
  },
];
