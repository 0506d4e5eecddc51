/**
 * Retention of finished tasks and of files: deletes a task when its own `retain_s`, or the hub's `--retain-tasks`, has
 * passed since its end, with its output and files; and files that belong to no unfinished task after `--retain-files`.
 * Never: the ledger, a task on which one depends that has not ended, and what a task has counted for its node.
 *
 * It works in steps of one commit each. A run looks at the finished tasks and the files from the oldest on, and stops at
 * the first that was created too late to be old enough.
 */
import { accept } from "../domain/decision.ts";
import { remove } from "../domain/file.ts";
import {
  RETENTION_LOOK_TASKS,
  RETENTION_STEP_DEPENDED,
  RETENTION_STEP_SUMS,
  RETENTION_STEP_TASKS,
  RETENTION_UNFINISHED_MAX,
} from "../domain/limits.ts";
import type { Task } from "../domain/model.ts";
import { dayOf } from "../domain/task/facet/spending.ts";
import { discard, isPastRetention } from "../domain/task/retention.ts";
import { hasEnded } from "../domain/task/state.ts";
import {
  type Aged,
  type RetentionPlace,
  dependedOn,
  filesFrom,
  filesOf,
  finishedFrom,
  pastTheirRetention,
} from "../store/sql/retention.ts";
import { filesById } from "../store/sql/files.ts";
import { oldSums } from "../store/sql/spending.ts";
import { reviewCount } from "../store/sql/reviews.ts";
import { tasksById, taskTotals } from "../store/sql/tasks.ts";
import type { Store } from "../store/store.ts";
import type { FileService } from "./files.ts";
import { partOf } from "./scan.ts";

/** Resolves to whether there may be more to do. */
type Step = () => Promise<boolean>;

/** Null: forever. */
type Retained = {
  readonly tasksMs: number | null;
  readonly filesMs: number | null;
  readonly usageMs: number | null;
};

export class Retention {
  readonly #store: Store;
  readonly #files: Pick<FileService, "removeBytes">;
  readonly #retained: Retained;

  constructor(store: Store, files: Pick<FileService, "removeBytes">, retained: Retained) {
    this.#store = store;
    this.#files = files;
    this.#retained = retained;
  }

  steps(now: number): readonly Step[] {
    const { tasksMs, filesMs, usageMs } = this.#retained;
    const before = tasksMs === null ? null : now - tasksMs;
    const ofTheirOwn = new Walk<RetentionPlace>(
      { retainUntil: Number.MIN_SAFE_INTEGER, seq: 0 },
      async (from) => {
        const found = await this.#store.read(pastTheirRetention(now, from, RETENTION_LOOK_TASKS));
        return { found, next: partOf(found, RETENTION_LOOK_TASKS, (place) => place).next };
      },
      (found) => this.#discardTasks(found, before, now),
    );
    const steps = [() => ofTheirOwn.step()];
    if (before !== null)
      for (const status of ["completed", "failed"] as const) {
        const walk = new Walk(
          0,
          (from) => this.#look(finishedFrom(status, now, from, RETENTION_LOOK_TASKS), before),
          (found) => this.#discardTasks(found, before, now),
        );
        steps.push(() => walk.step());
      }
    if (usageMs !== null) steps.push(() => this.#pruneSums(dayOf(now - usageMs)));
    if (filesMs !== null) {
      const old = now - filesMs;
      const walk = new Walk(
        0,
        (from) => this.#look(filesFrom(from, RETENTION_LOOK_TASKS), old),
        (found) => this.#deleteFiles(found, old, now),
      );
      steps.push(() => walk.step());
    }
    return steps;
  }

  /** Null at the end. */
  async #look(rows: ReturnType<typeof filesFrom>, before: number): Promise<Found<number>> {
    const read = await this.#store.read(rows);
    const last = read.at(-1);
    const isEnd = !last || read.length < RETENTION_LOOK_TASKS || last.createdAt >= before;
    return {
      found: read.filter(({ endedAt }) => endedAt !== null && endedAt < before),
      next: isEnd ? null : last.seq,
    };
  }

  async #pruneSums(before: number): Promise<boolean> {
    const old = { before, limit: RETENTION_STEP_SUMS };
    const count = await this.#store.read(oldSums(old));
    if (count === 0) return false;
    const kinds = ["sums.refunded", "node.sums.pruned", "sums.pruned"] as const;
    await this.#store.transact({}, () =>
      accept(
        null,
        kinds.map((kind) => ({ kind, ...old })),
      ),
    );
    return true;
  }

  async #discardTasks(found: readonly Aged[], before: number | null, now: number): Promise<void> {
    const ids = await this.#deletable(found);
    if (ids.length === 0) return;
    const load = {
      tasks: tasksById(ids),
      files: filesOf(ids),
      depended: dependedOn(idsOf(found.filter(({ hasDependents }) => hasDependents))),
    };
    const fileIds = await this.#store.transact(load, ({ tasks, files, depended }) => {
      const isOver = (task: Task): boolean =>
        isPastRetention(task, before, now) && !depended.includes(task.taskId);
      const over = tasks.filter(isOver);
      const overIds = new Set(over.map(({ taskId }) => taskId));
      const theirs = files.filter(({ taskId }) => taskId !== null && overIds.has(taskId));
      return accept(
        theirs.map(({ fileId }) => fileId),
        [
          ...over.flatMap((task) => discard(task, now)),
          ...theirs.flatMap((file) => changesOf(remove(file, file.fileId, now))),
        ],
      );
    });
    await this.#files.removeBytes(fileIds);
  }

  /** Without those on which others depend, if too many tasks could be these others. */
  async #deletable(found: readonly Aged[]): Promise<readonly string[]> {
    const own = found.filter(({ hasDependents }) => !hasDependents);
    const depended = found.filter(({ hasDependents }) => hasDependents);
    if (depended.length === 0) return idsOf(own);
    const { open, assigned } = await this.#store.read(taskTotals());
    const inReview = await this.#store.read(reviewCount(RETENTION_UNFINISHED_MAX));
    return idsOf(open + assigned + inReview > RETENTION_UNFINISHED_MAX ? own : found);
  }

  async #deleteFiles(found: readonly Aged[], before: number, now: number): Promise<void> {
    const taskIds = found.flatMap(({ taskId }) => (taskId === null ? [] : [taskId]));
    const load = {
      files: filesById(idsOf(found)),
      tasks: tasksById(taskIds),
    };
    const fileIds = await this.#store.transact(load, ({ files, tasks }) => {
      const kept = new Set<string | null>();
      for (const task of tasks) if (!hasEnded(task) || task.updatedAt >= before) kept.add(task.taskId);
      const old = files.filter(({ taskId }) => taskId === null || !kept.has(taskId));
      return accept(
        old.map(({ fileId }) => fileId),
        old.flatMap((file) => changesOf(remove(file, file.fileId, now))),
      );
    });
    await this.#files.removeBytes(fileIds);
  }
}

type Found<Place> = { readonly found: readonly Aged[]; readonly next: Place | null };

/**
 * In the order of their age: looks at many rows at once, and handles few of them in a commit. It passes those that must
 * stay, so that they hold no others back. Places are those after which it looks on.
 */
class Walk<Place> {
  readonly #look: (from: Place) => Promise<Found<Place>>;
  readonly #handle: (found: readonly Aged[]) => Promise<void>;
  #from: Place | null;
  #found: readonly Aged[] = [];

  constructor(
    from: Place,
    look: (from: Place) => Promise<Found<Place>>,
    handle: (found: readonly Aged[]) => Promise<void>,
  ) {
    this.#from = from;
    this.#look = look;
    this.#handle = handle;
  }

  async step(): Promise<boolean> {
    if (this.#found.length === 0) {
      if (this.#from === null) return false;
      const { found, next } = await this.#look(this.#from);
      this.#found = found;
      this.#from = next;
    }
    const some = upTo(this.#found);
    this.#found = this.#found.slice(some.length);
    if (some.length > 0) await this.#handle(some);
    return this.#found.length > 0 || this.#from !== null;
  }
}

/** Few of those on which others depend, because each is looked for in all tasks. */
function upTo(found: readonly Aged[]): readonly Aged[] {
  let depended = 0;
  const end = found.findIndex(({ hasDependents }) => hasDependents && ++depended > RETENTION_STEP_DEPENDED);
  return found.slice(0, Math.min(end === -1 ? found.length : end, RETENTION_STEP_TASKS));
}

const idsOf = (found: readonly Aged[]): readonly string[] => found.map(({ id }) => id);

function changesOf(decision: ReturnType<typeof remove>) {
  return decision.kind === "accepted" ? decision.changes : [];
}
