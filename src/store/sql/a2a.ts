/** The reads and writes of tasks that were created through A2A. */
import type { Failure, FileRecord, Task, TaskOrigin, TaskStatus } from "../../domain/model.ts";
import { isAsking } from "../../domain/task/facet/questions.ts";
import type { Query, Row } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { many, one, rowsBySeq } from "./query.ts";
import { TASK_COLUMNS, toFile, toTask } from "./rows.ts";
import { TASK_BYTES } from "./tasks.ts";
import { TASK_FEATURES } from "./tables.ts";
import { setFeature } from "./task-writes.ts";
import { type Writes, evict } from "./write.ts";

export type SentTask = { readonly task: Task; readonly origin: TaskOrigin };

const SENT = `SELECT ${TASK_COLUMNS}, a2a_caller, a2a_ids FROM task_rows t`;

function originIdsOf(row: Row): Omit<TaskOrigin, "caller"> {
  const { context, message } = JSON.parse(String(row["a2a_ids"])) as { context: string; message: string };
  return { contextId: context, messageId: message };
}

const toSentTask = (row: Row): SentTask => ({
  task: toTask(row),
  origin: { caller: String(row["a2a_caller"]), ...originIdsOf(row) },
});

export function sentTask(taskId: string, caller: string): Query<SentTask | null> {
  const reads = [keyOf.task(taskId), keyOf.filesOfTask(taskId)];
  return one(`${SENT} WHERE task_id = $1 AND a2a_caller = $2`, [taskId, caller], toSentTask, reads);
}

/** Null: not created through A2A. */
export function contextOf(taskId: string): Query<string | null> {
  const sql = `SELECT a2a_ids FROM task_rows WHERE task_id = $1 AND a2a_ids IS NOT NULL`;
  return one(sql, [taskId], (row) => originIdsOf(row).contextId, [keyOf.task(taskId)]);
}

/** Oldest first. */
export function sentTasksBySeq(seqs: readonly number[]): Query<readonly SentTask[]> {
  return rowsBySeq(SENT, seqs, "seq", toSentTask, ["tasks", "files"]);
}

/** Ordered by the last change. */
export type Place = { readonly updatedAt: number; readonly seq: number };

/** Before it loads the task. */
export type SentEntry = Place & {
  readonly status: TaskStatus;
  readonly failureKind: Failure["kind"] | null;
  readonly isAsking: boolean;
  readonly isInReview: boolean;
  readonly contextId: string;
  readonly bytes: number;
};

/** Before `from` and at or after `since`, the last one first. */
export function sentEntries(
  caller: string,
  from: Place,
  since: number,
  limit: number,
): Query<readonly SentEntry[]> {
  const sql = `
    SELECT seq, updated_at, status, failure, questions, review_until, a2a_ids, ${TASK_BYTES} AS bytes
    FROM task_rows t WHERE t.seq IN (
      SELECT f.task_seq FROM task_features f
      WHERE f.a2a_caller = $1 AND (f.updated_at, f.task_seq) < ($2, $3) AND f.updated_at >= $4
      ORDER BY f.updated_at DESC, f.task_seq DESC LIMIT $5)
    ORDER BY updated_at DESC, seq DESC`;
  return many(sql, [caller, from.updatedAt, from.seq, since, limit], toEntry, ["tasks", "files"]);
}

function toEntry(row: Row): SentEntry {
  const { failure, questions } = row;
  return {
    seq: Number(row["seq"]),
    updatedAt: Number(row["updated_at"]),
    status: row["status"] as TaskStatus, // as toTask(): only the rules write it
    failureKind: typeof failure === "string" ? (JSON.parse(failure) as Failure).kind : null,
    isAsking:
      typeof questions === "string" && isAsking({ questions: JSON.parse(questions) as Task["questions"] }),
    isInReview: row["review_until"] != null,
    contextId: originIdsOf(row).contextId,
    bytes: Number(row["bytes"]),
  };
}

/** Oldest first. */
export function filesOfTask(taskId: string): Query<readonly FileRecord[]> {
  return many(`SELECT * FROM files WHERE task_id = $1 ORDER BY seq`, [taskId], toFile, ["files"]);
}

export const A2A_WRITES = {
  "task.sent": {
    cache: evict,
    row: ({ taskId }) => keyOf.task(taskId),
    statement: setFeature(TASK_FEATURES.set(({ origin }) => origin, "a2a_caller", "a2a_ids")),
  },
} satisfies Partial<Writes>;
