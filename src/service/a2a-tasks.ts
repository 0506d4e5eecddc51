/**
 * The tasks that were created through A2A, as their callers see them: a caller finds what it created itself, through the
 * same card, and nothing else. They are created by tasks.ts.
 *
 * The list of a caller is ordered by the last change. A page examines a bounded number of entries and holds a bounded
 * number of bytes: it may have fewer tasks than were asked for, and still not be the last.
 */
import { reject, Rejection } from "../domain/decision.ts";
import { A2A_PAGE_MAX_BYTES, A2A_SCANNED_MAX, CONTEXT_ANSWERS_MAX } from "../domain/limits.ts";
import type { FileRecord, Question, Task } from "../domain/model.ts";
import { isAsking } from "../domain/task/facet/questions.ts";
import {
  type Place,
  type SentEntry,
  type SentTask,
  contextOf,
  filesOfTask,
  sentEntries,
  sentTask,
  sentTasksBySeq,
} from "../store/sql/a2a.ts";
import { lastEventId } from "../store/sql/events.ts";
import { newestQuestionsOf, openQuestionsOf } from "../store/sql/questions.ts";
import type { Read, Store } from "../store/store.ts";
import { must } from "../lib/assert.ts";
import { upToBytes } from "./list-pages.ts";

export type { Place, SentEntry, SentTask };

/** One page; `next` is null at the end of the list. `total` counts the newest A2A_SCANNED_MAX only. */
type SentPage = {
  readonly tasks: readonly SentTask[];
  readonly next: Place | null;
  readonly total: number;
};

const START: Place = { updatedAt: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER };

function notFound(taskId: string): Rejection {
  const detail = `There is no task ${taskId} of yours at this address. Use the address to which you sent it, and the same key, or list your tasks.`;
  return new Rejection(reject("task_not_found", detail));
}

async function questionsOf(read: Read, task: Task): Promise<readonly Question[]> {
  if (task.questions === null) return [];
  const open = isAsking(task) ? await read(openQuestionsOf(task.taskId)) : [];
  const newest = await read(newestQuestionsOf(task.taskId, CONTEXT_ANSWERS_MAX));
  return [...open, ...newest.filter(({ state }) => state === "answered").toReversed()];
}

export class A2aTasks {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** @throws {Rejection} task_not_found, also for a task of another caller */
  async get(taskId: string, caller: string): Promise<SentTask> {
    const found = await this.#store.read(sentTask(taskId, caller));
    if (!found) throw notFound(taskId);
    return found;
  }

  /** `eventId`: the last of the log at that moment. @throws {Rejection} task_not_found */
  snapshot(
    taskId: string,
    caller: string,
  ): Promise<SentTask & { files: readonly FileRecord[]; questions: readonly Question[]; lastId: number }> {
    return this.#store.readTogether(async (read) => {
      const found = await read(sentTask(taskId, caller));
      if (!found) throw notFound(taskId);
      const files = found.task.files.length === 0 ? [] : await read(filesOfTask(taskId));
      const questions = await questionsOf(read, found.task);
      return { ...found, files, questions, lastId: await read(lastEventId()) };
    });
  }

  /** The first of them. */
  questions(task: Task): Promise<readonly Question[]> {
    return this.#store.readTogether((read) => questionsOf(read, task));
  }

  /** Null: not created through A2A. */
  async question(taskId: string): Promise<Question | null> {
    const [question = null] = await this.#store.read(openQuestionsOf(taskId));
    return question;
  }

  contextOf(taskId: string): Promise<string | null> {
    return this.#store.read(contextOf(taskId));
  }

  /** Oldest first. */
  files(taskId: string): Promise<readonly FileRecord[]> {
    return this.#store.read(filesOfTask(taskId));
  }

  /** @param since the time of the last change from which on tasks are listed */
  list(
    caller: string,
    matches: (entry: SentEntry) => boolean,
    { from, since, most }: { readonly from: Place | null; readonly since: number; readonly most: number },
  ): Promise<SentPage> {
    return this.#store.readTogether(async (read) => {
      const newest = await read(sentEntries(caller, START, since, A2A_SCANNED_MAX));
      const entries = from === null ? newest : await read(sentEntries(caller, from, since, A2A_SCANNED_MAX));
      const found = entries.filter(matches);
      const page = found.slice(0, most);
      const shown = page.slice(0, upToBytes(page, A2A_PAGE_MAX_BYTES).length);
      const isLast = shown.length === found.length && entries.length < A2A_SCANNED_MAX;
      const next = shown.length < found.length ? shown.at(-1) : entries.at(-1);
      const seqs = shown.map(({ seq }) => seq);
      const rows = seqs.length === 0 ? [] : await read(sentTasksBySeq(seqs));
      const bySeq = new Map(rows.map((row) => [row.task.seq, row]));
      return {
        tasks: seqs.map((seq) => must(bySeq.get(seq), "a snapshot has the rows of its own list")),
        next: isLast ? null : must(next, "a page that is not the last has an entry"),
        total: newest.filter(matches).length,
      };
    });
  }
}
