/** The reads, writes and facts of what a worker learns about its task. */
import type { Attachment, Checkpoint, TaskResult, TaskStatus } from "../../domain/model.ts";
import { soundCheckpoint } from "../../domain/sound.ts";
import { must } from "../../lib/assert.ts";
import type { Query, Row } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { many, one, padded, placeholders, query } from "./query.ts";
import { TASK, toResult } from "./rows.ts";
import { reader } from "./table.ts";
import { CHECKPOINTS, TASK_FEATURES } from "./tables.ts";
import type { Writes } from "./write.ts";
import { drop, save } from "./write-statement.ts";
import { type Fact, SHOWN } from "./fact.ts";

const toCheckpoint = CHECKPOINTS.reader("data", "epoch", "node_id", "at").to(soundCheckpoint);

export function checkpointOf(taskId: string): Query<Checkpoint | null> {
  const sql = `SELECT ${toCheckpoint.list} FROM checkpoints WHERE task_id = $1`;
  return one(sql, [taskId], toCheckpoint, [keyOf.checkpoint(taskId)]);
}

/** `bytes`: roughly those of the result. */
export type InputTask = {
  readonly taskId: string;
  readonly title: string;
  readonly status: TaskStatus;
  readonly assignedNode: string | null;
  readonly resultVerified: boolean;
  readonly inReview: boolean;
  readonly isSealed: boolean;
  readonly bytes: number;
};

const readChild = TASK_FEATURES.reader("child");
const readInput = reader(TASK, ["task_id", "title", "status", "assigned_node", "result_verified"], {
  inReview: (row): boolean => row["review_until"] !== null,
  isSealed: (row): boolean => readChild(row).child?.sealed === true,
  bytes: (row): number => Number(row["bytes"]),
});
const toInput: (row: Row) => InputTask = readInput;

export function inputTasks(taskIds: readonly string[]): Query<readonly InputTask[]> {
  const ids = padded(taskIds);
  const lengths = ["problem", "improvement", "lesson", "result_extra"].map(
    (column) => `coalesce(octet_length(${column}), 0)`,
  );
  const sql = `
    SELECT ${readInput.list}, review_until, child, ${lengths.join(" + ")} AS bytes
    FROM task_rows WHERE task_id IN (${placeholders(ids)})`;
  return many(sql, ids, toInput, ["tasks"]);
}

/** By the id of the task. */
export function resultsOf(taskIds: readonly string[]): Query<ReadonlyMap<string, TaskResult>> {
  const ids = padded(taskIds);
  const sql = `
    SELECT task_id, problem, improvement, lesson, result_extra
    FROM task_rows WHERE task_id IN (${placeholders(ids)}) AND problem IS NOT NULL`;
  const shape: Query<ReadonlyMap<string, TaskResult>>["shape"] = (rows) =>
    new Map(
      rows.map((row) => [String(row["task_id"]), must(toResult(row), "a result has a problem")] as const),
    );
  return query(sql, ids, shape, ["tasks"]);
}

export type InputFile = {
  readonly taskId: string;
  readonly fileId: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly attached: Attachment;
};

/** Oldest first, `limit` of all together. */
export function filesOfTasks(taskIds: readonly string[], limit: number): Query<readonly InputFile[]> {
  const ids = padded(taskIds);
  const sql = `
    SELECT task_id, file_id, name, size_bytes, output
    FROM files WHERE task_id IN (${placeholders(ids, 2)}) ORDER BY seq LIMIT $1`;
  const toInputFile = (row: Row): InputFile => ({
    taskId: String(row["task_id"]),
    fileId: String(row["file_id"]),
    name: String(row["name"]),
    sizeBytes: Number(row["size_bytes"]),
    attached: row["output"] === 1 ? "output" : "input",
  });
  return many(sql, [limit, ...ids], toInputFile, ["files"]);
}

export const CHECKPOINT_WRITES = {
  "checkpoint.saved": {
    row: ({ taskId }) => keyOf.checkpoint(taskId),
    statement: save(CHECKPOINTS, ({ taskId, checkpoint }) => ({ taskId, ...checkpoint })),
  },
  "checkpoint.removed": {
    row: ({ taskId }) => keyOf.checkpoint(taskId),
    statement: drop(CHECKPOINTS, ["task_id"]),
  },
} satisfies Partial<Writes>;

export const CHECKPOINT_FACTS: readonly Fact[] = [
  {
    name: "checkpoints",
    holds: "every checkpoint is that of an unfinished or failed task, which says its size",
    sql: `
      SELECT 'the checkpoint of task ' || c.task_id || ' is not the one that the task has' FROM checkpoints c
      LEFT JOIN task_rows t ON t.task_id = c.task_id
      WHERE t.task_id IS NULL OR t.status = 'completed' OR t.checkpoint_bytes <> octet_length(c.data)
      UNION ALL
      SELECT 'task ' || task_id || ' has no checkpoint, and says that it has one' FROM task_rows
      WHERE checkpoint_bytes > 0 AND task_id NOT IN (SELECT task_id FROM checkpoints)
      LIMIT ${SHOWN}`,
  },
];
