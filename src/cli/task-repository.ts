/**
 * What `luxhub worker --repo` does around an attempt: a worktree before it, and after it the commit, the patch on the
 * hub and the push. Must not: report the task to the hub.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Task, type TaskContext, WorkerOutage } from "../client/index.ts";
import { reasonOf } from "../lib/reason.ts";
import {
  type Changes,
  type Earlier,
  GitError,
  type Repository,
  type Start,
  type Worktree,
} from "./repository.ts";
import { FOREVER, type Transfer, deleteEarlier, fetchFile, fileOfAttempt, upload } from "./task-files.ts";

export const PATCH_FILE = "changes.patch";

export type Checkout = {
  readonly worktree: Worktree;
  readonly start: Start;
  /** Commits, and sends the patch to the hub if it has changed. */
  readonly save: () => Promise<Changes>;
};

/**
 * What the attempt leaves is saved also when it fails, and the worktree is removed. @throws {WorkerOutage} when there
 * can be no worktree: no attempt of the task is to blame
 */
export async function inWorktree<T>(
  task: Task,
  context: TaskContext,
  path: string,
  repository: Repository,
  transfer: Transfer,
  attempt: (checkout: Checkout) => Promise<T>,
): Promise<T> {
  const { signal, epoch } = context;
  const dir = mkdtempSync(join(tmpdir(), "luxhub-patch-"));
  try {
    const worktree = await checkOut(task, context, path, dir, repository, transfer);
    transfer.log.info(`works on ${worktree.branch}`, { task: task.task_id, start: worktree.start });
    let sentHead: string | null = null;
    const commit = (): ReturnType<Repository["finish"]> =>
      repository.finish(worktree, `${task.title}\n\nluxhub task ${task.task_id}\n`, join(dir, PATCH_FILE));
    const save = async (): Promise<Changes> => {
      const { head, missing, ...changes } = await commit();
      const { branch, base } = changes;
      if (head !== sentHead && changes.files > 0)
        await upload(
          Bun.file(join(dir, PATCH_FILE)),
          PATCH_FILE,
          "text/x-diff",
          { task_id: task.task_id, epoch },
          signal,
          transfer,
          { branch, base, head },
        );
      // Only then: a worker that is killed between the two leaves both. What has not begun from a patch does not replace it.
      if (head !== sentHead && (changes.files > 0 || worktree.start !== "patch_refused"))
        await deleteEarlier(task, epoch, signal, transfer);
      if (head !== sentHead) await repository.push(worktree);
      sentHead = head;
      if (missing !== null) throw new Error(`not all work is in the branch ${branch}: ${missing}`);
      return changes;
    };
    try {
      const value = await attempt({ worktree, start: worktree.start, save });
      await save();
      return value;
    } catch (error) {
      await (signal.aborted ? commit().then(() => repository.push(worktree)) : save()).catch((fault) =>
        transfer.log.warn("the work of a failed attempt could not be saved", {
          task: task.task_id,
          cause: transfer.mask.text(reasonOf(fault)),
        }),
      );
      // The repository, or its disk, fails, and not the agent.
      throw error instanceof GitError ? new WorkerOutage(`git fails: ${error.message}`) : error;
    } finally {
      await repository.remove(worktree).catch((fault) =>
        transfer.log.warn("a worktree could not be removed", {
          task: task.task_id,
          cause: reasonOf(fault),
        }),
      );
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function checkOut(
  task: Task,
  { signal }: TaskContext,
  path: string,
  dir: string,
  repository: Repository,
  transfer: Transfer,
): ReturnType<Repository["checkOut"]> {
  const earlier = await earlierAttempt(task, signal, dir, transfer);
  try {
    return await repository.checkOut(task, path, earlier);
  } catch (error) {
    signal.throwIfAborted();
    throw new WorkerOutage(`the repository has no worktree for the task: ${reasonOf(error)}`);
  }
}

/** The newest patch of the task, which an attempt on another machine may have left. */
async function earlierAttempt(
  task: Task,
  signal: AbortSignal,
  dir: string,
  { hub }: Transfer,
): Promise<Earlier | null> {
  const file = await fileOfAttempt(task, PATCH_FILE, { signal, retry: FOREVER }, hub);
  if (file === null) return null;
  const { branch, base, head } = file.metadata;
  const text = (value: unknown): string => (typeof value === "string" ? value : "");
  const fetch = async (): Promise<string> =>
    join(dir, await fetchFile(file.file_id, dir, () => "earlier.patch", signal, hub));
  return { branch: text(branch), base: text(base), head: text(head), patch: fetch };
}
