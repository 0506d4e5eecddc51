/** The reads, writes and facts of questions. */
import type { Question, Task } from "../../domain/model.ts";
import type { DueQuestion } from "../../domain/task/question.ts";
import type { Query, Row } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { many, one, query, countRows } from "./query.ts";
import { TASK_COLUMNS, textOrNull, toTask } from "./rows.ts";
import { TASKS_READ } from "./tasks.ts";
import { soundQuestion } from "../../domain/sound.ts";
import { CLOCK_JUMP_MS } from "../../domain/limits.ts";
import { QUESTIONS } from "./tables.ts";
import type { Writes } from "./write.ts";
import { add, customStatement, drop, text, update, whole } from "./write-statement.ts";
import { type Fact, QUESTION_STATE } from "./fact.ts";

const toQuestion = QUESTIONS.reader().to(soundQuestion);
const COLUMNS = `q.seq, ${toQuestion.list.replace("task_id", "q.task_id").replace("epoch", "q.epoch")}`;

export function questionOf(taskId: string, questionId: string): Query<Question | null> {
  const sql = `SELECT ${COLUMNS} FROM questions q WHERE question_id = $1 AND q.task_id = $2`;
  return one(sql, [questionId, taskId], toQuestion, [keyOf.questions(taskId)]);
}

/** Oldest first: never more than OPEN_QUESTIONS_OF_TASK_MAX. */
export function openQuestionsOf(taskId: string): Query<readonly Question[]> {
  const sql = `SELECT ${COLUMNS} FROM questions q WHERE q.task_id = $1 AND state = 'open' ORDER BY q.seq`;
  return many(sql, [taskId], toQuestion, [keyOf.questions(taskId)]);
}

/** Oldest first, from number `from` on: the first is number 0. */
export function questionsOf(taskId: string, from: number, limit: number): Query<readonly Question[]> {
  const sql = `SELECT ${COLUMNS} FROM questions q WHERE q.task_id = $1 ORDER BY q.seq LIMIT $2 OFFSET $3`;
  return many(sql, [taskId, limit, from], toQuestion, [keyOf.questions(taskId)]);
}

/** Newest first. */
export function newestQuestionsOf(taskId: string, limit: number): Query<readonly Question[]> {
  const sql = `SELECT ${COLUMNS} FROM questions q WHERE q.task_id = $1 ORDER BY q.seq DESC LIMIT $2`;
  return many(sql, [taskId, limit], toQuestion, [keyOf.questions(taskId)]);
}

/** Together they grow with each change. */
export type QuestionCounts = { readonly asked: number; readonly settled: number };

export function questionCountsOf(taskId: string): Query<QuestionCounts> {
  const settled = `sum(CASE WHEN state = 'open' THEN 0 ELSE 1 END)`;
  const sql = `SELECT count(*) AS asked, coalesce(${settled}, 0) AS settled FROM questions WHERE task_id = $1`;
  const shape: Query<QuestionCounts>["shape"] = ([row]) => ({
    asked: Number(row?.["asked"]),
    settled: Number(row?.["settled"]),
  });
  return query(sql, [taskId], shape, [keyOf.questions(taskId)]);
}

export type OpenPosition = { readonly until: number; readonly seq: number };

export type OpenQuestion = {
  readonly seq: number;
  readonly question: Question;
  readonly taskTitle: string;
  readonly creatorNode: string | null;
};

/** The most urgent first. */
export function openQuestions({ until, seq }: OpenPosition, limit: number): Query<readonly OpenQuestion[]> {
  const sql = `
    SELECT ${COLUMNS}, t.title AS task_title, t.creator_node
    FROM questions q JOIN tasks t ON t.task_id = q.task_id
    WHERE state = 'open' AND until >= $1 AND (until > $1 OR q.seq > $2) ORDER BY until, q.seq LIMIT $3`;
  const toOpen = (row: Row): OpenQuestion => ({
    seq: Number(row["seq"]),
    question: toQuestion(row),
    taskTitle: String(row["task_title"]),
    creatorNode: textOrNull(row["creator_node"]),
  });
  return many(sql, [until, seq, limit], toOpen, ["questions", "tasks"]);
}

/** Counted up to `most`. */
export function openCount(most: number): Query<number> {
  const open = `SELECT 1 AS one FROM questions WHERE state = 'open' LIMIT $1`;
  return countRows(open, [most], ["questions"]);
}

const DUE = `FROM questions q WHERE state = 'open' AND until <= $1 ORDER BY until, q.seq LIMIT $2`;

export function dueQuestions(now: number, limit: number): Query<readonly DueQuestion[]> {
  const openOfTask = `(SELECT count(*) FROM questions o WHERE o.task_id = q.task_id AND o.state = 'open')`;
  const sql = `SELECT ${COLUMNS}, ${openOfTask} AS open_of_task ${DUE}`;
  const toDue = (row: Row): DueQuestion => ({
    question: toQuestion(row),
    openOfTask: Number(row["open_of_task"]),
  });
  return many(sql, [now, limit], toDue, ["questions"]);
}

export function tasksOfDueQuestions(now: number, limit: number): Query<readonly Task[]> {
  const sql = `SELECT ${TASK_COLUMNS} FROM task_rows t WHERE task_id IN (SELECT due.task_id FROM (SELECT q.task_id ${DUE}) AS due)`;
  return many(sql, [now, limit], toTask, ["questions", ...TASKS_READ]);
}

export const QUESTION_WRITES = {
  "question.asked": {
    row: ({ question }) => keyOf.questions(question.taskId),
    statement: add(QUESTIONS, ({ question }) => question),
  },
  "question.settled": {
    row: ({ question }) => keyOf.questions(question.taskId),
    statement: update(
      "questions",
      QUESTIONS.set(({ question }) => question, "question_id"),
      QUESTIONS.set(({ question }) => question, "state", "answer", "answered_by", "answered_at", "verified"),
    ),
  },
  "questions.closed": {
    row: ({ taskId }) => keyOf.questions(taskId),
    statement: update(
      "questions",
      { task_id: text(({ taskId }) => taskId), state: "'open'" },
      { state: "'timed_out'", answered_at: whole(({ at }) => at) },
    ),
  },
  "questions.removed": {
    frees: true,
    row: ({ taskId }) => keyOf.questions(taskId),
    statement: drop(QUESTIONS, ["task_id"]),
  },
  "questions.restarted": {
    isSweep: true,
    statement: customStatement(
      "questions",
      `UPDATE questions SET until = until - asked_at + $1, asked_at = $1
        WHERE state = 'open' AND asked_at > $1 + ${CLOCK_JUMP_MS}`,
      [whole(({ now }) => now)],
    ),
  },
} satisfies Partial<Writes>;

export const QUESTION_FACTS: readonly Fact[] = [
  {
    name: "questions",
    holds:
      "a task says that it waits for an answer exactly if it has an open question, and a parked one is open and not ready",
    sql: `
      SELECT 'question ' || question_id || ' is of no task, or its answer is not what its state says' FROM questions
      WHERE task_id NOT IN (SELECT task_id FROM task_rows)
        OR (state = 'answered') <> (answer IS NOT NULL) OR (state = 'open') <> (answered_at IS NULL)
      UNION ALL
      SELECT 'task ' || t.task_id || ' is ' || t.status || ', and its questions are ' || ${QUESTION_STATE} FROM task_rows t
      LEFT JOIN (
        SELECT task_id, count(*) AS asked, sum(state = 'open') AS open FROM questions GROUP BY task_id) q
        ON q.task_id = t.task_id
      WHERE (t.questions IS NOT NULL OR q.asked IS NOT NULL) AND (
        coalesce(q.asked, 0) <> coalesce(json_extract(t.questions, '$.asked'), 0)
        OR (coalesce(q.open, 0) > 0) <> (${QUESTION_STATE} IN ('open', 'parked'))
        OR (t.status IN ('completed', 'failed') AND coalesce(q.open, 0) > 0)
        OR (${QUESTION_STATE} = 'parked' AND (t.status <> 'open' OR t.ready <> 0)))`,
  },
];
