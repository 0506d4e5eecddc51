/**
 * The context of a task: what other tasks and earlier attempts leave for its worker.
 *
 * It is read after the commit that hands the task out, for the response only: a repeat (Idempotency-Key) reads it
 * again.
 *
 * Must not: decide anything, or read more than its limits allow.
 */
import type { Lesson } from "../domain/lesson.ts";
import {
  CONTEXT_ANSWERS_MAX,
  CONTEXT_ANSWERS_MAX_BYTES,
  CONTEXT_FILES_MAX,
  CONTEXT_RESULTS_MAX_BYTES,
  FILES_OF_TASK_MAX,
  INPUTS_PAGE_MAX_BYTES,
} from "../domain/limits.ts";
import type { Checkpoint, Failure, Question, ReviewCheck, Task, TaskResult } from "../domain/model.ts";
import { bytesOf } from "../domain/task/question.ts";
import { failedAttempts } from "../domain/task/failure.ts";
import { Rejection, taskNotFound } from "../domain/decision.ts";
import {
  type InputFile,
  type InputTask,
  checkpointOf,
  filesOfTasks,
  inputTasks,
  resultsOf,
} from "../store/sql/task-context.ts";
import { newestQuestionsOf } from "../store/sql/questions.ts";
import { taskById } from "../store/sql/tasks.ts";
import type { Read, Store } from "../store/store.ts";
import type { Lessons } from "./lessons.ts";

export type TaskInput = {
  readonly taskId: string;
  /** null: it was deleted. */
  readonly task: Pick<InputTask, "title" | "status" | "assignedNode" | "resultVerified"> | null;
  readonly result: TaskResult | null;
  readonly files: readonly InputFile[];
  /** There was no room. Never in a page of inputs(). */
  readonly omitted: boolean;
};

export type TaskContext = {
  /** In the order of `dependsOn`. */
  readonly inputs: readonly TaskInput[];
  readonly checkpoint: Checkpoint | null;
  /** Oldest first. */
  readonly failures: readonly Failure[];
  /** Of its type, newest first. */
  readonly lessons: readonly Lesson[];
  /** The newest, oldest first. */
  readonly answers: readonly Question[];
  /** Why its last result was rejected. */
  readonly review: ReviewCheck | null;
};

type InputsPage = {
  readonly inputs: readonly TaskInput[];
  readonly total: number;
  readonly next: number | null;
};

export class TaskContexts {
  readonly #store: Store;
  readonly #lessons: Lessons;

  constructor(store: Store, lessons: Lessons) {
    this.#store = store;
    this.#lessons = lessons;
  }

  /** Null: there is nothing to learn. */
  async of(task: Task): Promise<TaskContext | null> {
    const { taskId, taskType, dependsOn, checkpointBytes, questions } = task;
    const failures = failedAttempts(task);
    const check = task.review?.check ?? null;
    const review = check?.state === "rejected" ? check : null;
    const lessons = (await this.#lessons.lastOf(taskType)).filter((lesson) => lesson.taskId !== taskId);
    if (dependsOn.length === 0 && checkpointBytes === 0 && questions === null) {
      const isEmpty = failures.length === 0 && lessons.length === 0 && review === null;
      return isEmpty ? null : { inputs: [], checkpoint: null, failures, answers: [], review, lessons };
    }
    return this.#store.readTogether(async (read) => {
      const checkpoint = checkpointBytes === 0 ? null : await read(checkpointOf(taskId));
      const inputs = await readInputs(read, task, dependsOn, CONTEXT_RESULTS_MAX_BYTES, false);
      const answers = questions === null ? [] : await readAnswers(read, taskId);
      return { inputs, checkpoint, failures, answers, review, lessons };
    });
  }

  /** Null also if the task is gone. */
  async ofId(taskId: string): Promise<TaskContext | null> {
    const task = await this.#store.read(taskById(taskId));
    return task && this.of(task);
  }

  /** From number `from` on, whole: at most `limit`, and fewer if they are large. @throws {Rejection} task_not_found */
  async inputs(taskId: string, from: number, limit: number): Promise<InputsPage> {
    return this.#store.readTogether(async (read) => {
      const task = await read(taskById(taskId));
      if (!task) throw new Rejection(taskNotFound(taskId));
      const asked = task.dependsOn.slice(from, from + limit);
      const inputs = await readInputs(read, task, asked, INPUTS_PAGE_MAX_BYTES, true);
      const total = task.dependsOn.length;
      const end = from + inputs.length;
      return { inputs, total, next: end < total && inputs.length > 0 ? end : null };
    });
  }
}

/** As many as CONTEXT_ANSWERS_MAX and CONTEXT_ANSWERS_MAX_BYTES allow, oldest first. */
async function readAnswers(read: Read, taskId: string): Promise<readonly Question[]> {
  let bytes = 0;
  const newest = await read(newestQuestionsOf(taskId, CONTEXT_ANSWERS_MAX));
  const shown = newest.filter((question) => (bytes += bytesOf(question)) <= CONTEXT_ANSWERS_MAX_BYTES);
  return shown.toReversed();
}

/** Up to `maxBytes`; then it ends (`endsThere`, but not before the first), or leaves the other results out. */
async function readInputs(
  read: Read,
  { child }: Pick<Task, "child">,
  taskIds: readonly string[],
  maxBytes: number,
  endsThere: boolean,
): Promise<readonly TaskInput[]> {
  if (taskIds.length === 0) return [];
  const tasks = new Map((await read(inputTasks(taskIds))).map((task) => [task.taskId, task]));
  const whole: string[] = [];
  let bytes = 0;
  for (const taskId of taskIds) {
    bytes += tasks.get(taskId)?.bytes ?? 0; // a deleted one has no result
    if (bytes > maxBytes && !(endsThere && whole.length === 0)) break;
    whole.push(taskId);
  }
  const shown = endsThere ? whole : taskIds;
  const files = await read(filesOfTasks(shown, CONTEXT_FILES_MAX + 1));
  const filesOf = Map.groupBy(files.slice(0, CONTEXT_FILES_MAX), ({ taskId }) => taskId);
  const isCut = files.length > CONTEXT_FILES_MAX;
  if (isCut && endsThere) {
    // So few tasks have room for all their files.
    const first = taskIds.slice(0, CONTEXT_FILES_MAX / FILES_OF_TASK_MAX);
    return readInputs(read, { child }, first, maxBytes, true);
  }
  // A result that waits for its review is an input only of the task that checks it, and a sealed one of none.
  const mayRead = ({ taskId, inReview, isSealed }: InputTask): boolean =>
    !isSealed && (!inReview || child?.of === taskId);
  const checked = whole.filter((taskId) => {
    const task = tasks.get(taskId);
    return task !== undefined && mayRead(task);
  });
  const results = checked.length === 0 ? new Map<string, TaskResult>() : await read(resultsOf(checked));
  return shown.map((taskId, i): TaskInput => {
    const task = tasks.get(taskId) ?? null;
    const isLeftOut = i >= whole.length && (task?.bytes ?? 0) > 0;
    return {
      taskId,
      task,
      result: results.get(taskId) ?? null,
      files: filesOf.get(taskId) ?? [],
      omitted: isLeftOut || isCut,
    };
  });
}
