/**
 * The lessons of completed tasks: the last ones of a type, for the workers of its next tasks, and the search over all.
 *
 * The last ones are in memory, so that a dispatch reads nothing for them: loaded once, at the first dispatch of a task
 * with a type, and then kept up to date by the commits. Of a task that another hub has completed, this hub reads the
 * lesson before the next such dispatch.
 *
 * Must not: read more than its limits allow, or more than one step of a search in a tick of the event loop.
 */
import type { Notified } from "../domain/change.ts";
import { type Lesson, isLesson, withLesson } from "../domain/lesson.ts";
import {
  LESSON_SHOWN_MAX_CHARS,
  LESSONS_STEP_ROWS,
  LESSONS_TYPES_MAX,
  LESSONS_UNREAD_MAX,
} from "../domain/limits.ts";
import type { Task } from "../domain/model.ts";
import { isInReview } from "../domain/task/state.ts";
import { assert } from "../lib/assert.ts";
import { matchesWords } from "../lib/word-search.ts";
import { lessonsBelow, lessonsOf } from "../store/sql/lessons.ts";
import type { Origin, Store } from "../store/store.ts";
import { type Position, START } from "./list-pages.ts";
import { partOf, Scans } from "./scan.ts";

/** `taskType` null: every type. `words`: each begins a word of the lesson or of the title of its task. */
type LessonQuery = { readonly taskType: string | null; readonly words: readonly string[] };

/** `looked`: completed tasks that were examined. */
type LessonPage = {
  readonly lessons: readonly Lesson[];
  readonly looked: number;
  readonly next: Position | null;
};

export class Lessons {
  readonly #store: Store;
  readonly #searches = new Scans();
  /** A dispatch waits for a load, and must not wait for searches. */
  readonly #loads = new Scans();
  /** Newest first; the type in which something was completed last is at the end. */
  readonly #byType = new Map<string, readonly Lesson[]>();
  /** Null: no task of a type was dispatched yet, and nothing is kept. */
  #loading: Promise<void> | null = null;
  /** Tasks that other hubs have completed. */
  readonly #unread = new Set<string>();
  #reading: Promise<void> | null = null;

  constructor(store: Store) {
    this.#store = store;
    store.onCommit((changes, _, origin) => {
      if (this.#loading) this.#follow(changes, origin);
    });
  }

  /** A task without a type has no others of its type. */
  async lastOf(taskType: string): Promise<readonly Lesson[]> {
    if (taskType === "") return [];
    this.#loading ??= this.#load();
    await this.#loading;
    if (this.#unread.size > 0)
      await (this.#reading ??= this.#readUnread().finally(() => (this.#reading = null)));
    return this.#byType.get(taskType) ?? [];
  }

  /** @throws {PagesBusy} */
  async page(query: LessonQuery, from: Position | null, most: number): Promise<LessonPage> {
    const lessons: Lesson[] = [];
    const isWanted = (lesson: Lesson): boolean =>
      query.words.length === 0 || matchesWords(query.words, `${lesson.title}\n${lesson.text}`);
    let position: Position | null = from ?? START;
    let looked = 0;
    for await (const { rows, next } of this.#searches.steps(position, this.#stepOf(query.taskType))) {
      for (const { seq, lesson } of rows) {
        if (lessons.length === most) return { lessons, looked, next: position };
        position = { before: seq };
        looked++;
        if (lesson && isLesson(lesson.text) && isWanted(lesson)) lessons.push(lesson);
      }
      position = next;
    }
    return { lessons, looked, next: position };
  }

  readonly #stepOf =
    (taskType: string | null) =>
    async ({ before }: Position) =>
      partOf(
        await this.#store.read(lessonsBelow(taskType, before, LESSONS_STEP_ROWS)),
        LESSONS_STEP_ROWS,
        ({ seq }): Position => ({ before: seq }),
      );

  async #load(): Promise<void> {
    try {
      for await (const { rows } of this.#loads.steps(START, this.#stepOf(null)))
        for (const { lesson } of rows) if (lesson) this.#addLoaded(lesson);
      const types = [...this.#byType].toSorted(([, a], [, b]) => (a[0]?.at ?? 0) - (b[0]?.at ?? 0));
      this.#byType.clear();
      for (const [taskType, lessons] of types) this.#byType.set(taskType, lessons);
    } catch (error) {
      this.#loading = null; // the next dispatch tries again
      throw error;
    }
  }

  #follow(changes: readonly Notified[], origin: Origin): void {
    for (const change of changes) {
      if (change.kind === "task.moved") this.#moved(change.task);
      else if (change.kind === "task.deleted") this.#remove(change.taskId);
      else if (change.kind === "event.logged" && origin === "remote") {
        const { kind, taskId } = change.event;
        if (taskId === null) continue;
        if (kind === "task.completed" || kind === "task.review_passed") this.#note(taskId);
        else if (kind === "task.deleted") this.#remove(taskId);
      }
    }
  }

  #moved(task: Task): void {
    const { taskId, title, taskType, status, assignedNode, result, resultVerified, updatedAt } = task;
    // What nobody has checked teaches nobody, and of copies the task that they are of has the lesson.
    if (isInReview(task) || task.child !== null) return;
    if (taskType === "" || status !== "completed" || result === null || assignedNode === null) return;
    const { lesson } = result;
    const beginning = firstChars(lesson, LESSON_SHOWN_MAX_CHARS);
    const truncated = beginning.length < lesson.length;
    const about = { taskId, title, taskType, nodeId: assignedNode, verified: resultVerified };
    this.#add({ ...about, at: updatedAt, text: beginning.trim(), truncated });
  }

  #add(lesson: Lesson): void {
    const { taskType, text } = lesson;
    if (taskType === "" || !isLesson(text)) return;
    const lessons = withLesson(this.#byType.get(taskType) ?? [], lesson);
    this.#byType.delete(taskType);
    this.#byType.set(taskType, lessons);
    assert(this.#byType.size <= LESSONS_TYPES_MAX + 1, "the number of types is bounded");
    if (this.#byType.size <= LESSONS_TYPES_MAX) return;
    for (const oldest of this.#byType.keys()) {
      this.#byType.delete(oldest);
      return;
    }
  }

  /** The newest come first, so a type for which there is no room is an older one. */
  #addLoaded(lesson: Lesson): void {
    if (this.#byType.size < LESSONS_TYPES_MAX || this.#byType.has(lesson.taskType)) this.#add(lesson);
  }

  #remove(taskId: string): void {
    this.#unread.delete(taskId);
    for (const [taskType, lessons] of this.#byType) {
      const others = lessons.filter((lesson) => lesson.taskId !== taskId);
      if (others.length < lessons.length) this.#byType.set(taskType, others);
    }
  }

  #note(taskId: string): void {
    this.#unread.add(taskId);
    assert(this.#unread.size <= LESSONS_UNREAD_MAX + 1, "the number of unread lessons is bounded");
    if (this.#unread.size <= LESSONS_UNREAD_MAX) return;
    for (const oldest of this.#unread) {
      this.#unread.delete(oldest);
      return;
    }
  }

  async #readUnread(): Promise<void> {
    const taskIds = [...this.#unread];
    for (const { lesson } of await this.#store.read(lessonsOf(taskIds))) if (lesson) this.#add(lesson);
    for (const taskId of taskIds) this.#unread.delete(taskId);
  }
}

/** As SQL counts them. */
function firstChars(text: string, most: number): string {
  return text.length <= most ? text : [...text.slice(0, 2 * most)].slice(0, most).join("");
}
