/**
 * What `luxhub worker --repo` does around an attempt: a worktree before it, and after it the commit, the patch on the
 * hub and the push. Must not: report the task to the hub.
 */
import { mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { LuxHubError, type Task, type TaskContext, WorkerOutage } from "../client/index.ts";
import { reasonOf } from "../lib/reason.ts";
import {
  type Changes,
  type Earlier,
  GitError,
  type Left,
  type Repository,
  type Start,
  type Worktree,
} from "./repository.ts";
import { FOREVER, type Transfer, deleteEarlier, fetchFile, fileOfAttempt, upload } from "./task-files.ts";

export const PATCH_FILE = "changes.patch";
/** Next to the worktree, where no other user writes: a worker that was killed leaves nothing elsewhere. */
const PATCHES = "patches";
/** Less than the worker waits for a handler that it has stopped. */
const LAST_SAVE_MS = 4_000;

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
  const dir = join(dirname(path), PATCHES);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  try {
    const worktree = await checkOut(task, context, path, dir, repository, transfer);
    transfer.log.info(`works on ${worktree.branch}`, { task: task.task_id, start: worktree.start });
    let sentHead: string | null = null;
    const of = { task_id: task.task_id, epoch };
    const patch = join(dir, PATCH_FILE);
    const commit = (): ReturnType<Repository["finish"]> =>
      repository.finish(worktree, `${task.title}\n\nluxhub task ${task.task_id}\n`, patch);
    const save = async (): Promise<Changes> => {
      const { head, missing, ...changes } = await commit();
      const { branch, base } = changes;
      if (head !== sentHead && changes.files > 0)
        await uploadPatch({ patch, branch, base, head }, of, signal, transfer);
      // Only then: a worker that is killed between the two leaves both. What has not begun from a patch does not replace it.
      if (head !== sentHead && (changes.files > 0 || worktree.start !== "patch_refused"))
        await deleteEarlier(task, epoch, signal, transfer);
      if (head !== sentHead) await repository.push(worktree);
      sentHead = head;
      if (missing !== null) throw new Error(`not all work is in the branch ${branch}: ${missing}`);
      return changes;
    };
    const saveInterrupted = async (): Promise<void> => {
      const changes = await commit();
      if (changes.head === sentHead) return; // as when it has asked
      const left = { ...changes, attempt: of, patch, kept: null };
      await sendLeft(left, repository, AbortSignal.timeout(LAST_SAVE_MS), transfer);
    };
    try {
      const value = await attempt({ worktree, start: worktree.start, save });
      await save();
      return value;
    } catch (error) {
      await (signal.aborted ? saveInterrupted() : save()).catch((fault) =>
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

/**
 * Sends the patch of an interrupted attempt, whose worker was killed or is stopped, and pushes its branch. When the task
 * is completed, or another node has had it since, that node's work counts: this one's stays on its branch. Never rejects
 * but when `signal` aborts.
 */
export async function sendLeft(
  { attempt, kept, missing, head, ...left }: Left,
  repository: Repository,
  signal: AbortSignal,
  transfer: Transfer,
): Promise<void> {
  const { hub, nodeId, log, mask } = transfer;
  const { branch } = left;
  const about = { task: attempt?.task_id, branch };
  if (missing !== null)
    log.warn("not all work of an interrupted attempt could be committed", { ...about, kept, missing });
  if (attempt === null || head === undefined) return;
  try {
    const { task } = await hub.tasks.get({ task_id: attempt.task_id }, { signal, retry: FOREVER });
    const sent = await fileOfAttempt(task, PATCH_FILE, { signal, retry: FOREVER }, hub);
    const { status, assigned_node, failure } = task;
    const lastNode = assigned_node ?? (failure?.kind === "cancelled" ? null : failure?.node_id);
    const isLast = status !== "completed" && lastNode === nodeId;
    if (isLast && left.files > 0 && sent?.metadata["head"] !== head) {
      await uploadPatch({ ...left, head }, attempt, signal, transfer);
      await deleteEarlier(task, attempt.epoch, signal, transfer);
    }
    if (isLast) await repository.push(left);
    log.warn(`saved the work of an interrupted attempt${isLast ? "" : ": only on its branch"}`, about);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof LuxHubError || error instanceof GitError)) throw error;
    const cause = mask.text(error.message);
    log.warn("the work of an interrupted attempt is only on its branch", { ...about, cause });
  }
}

function uploadPatch(
  { patch, branch, base, head }: Pick<Left, "patch" | "branch" | "base"> & { readonly head: string },
  of: { readonly task_id: string; readonly epoch: number },
  signal: AbortSignal,
  transfer: Transfer,
): Promise<string> {
  const metadata = { branch, base, head };
  return upload(Bun.file(patch), PATCH_FILE, "text/x-diff", of, signal, transfer, metadata);
}

async function checkOut(
  task: Task,
  { signal, epoch }: TaskContext,
  path: string,
  dir: string,
  repository: Repository,
  transfer: Transfer,
): ReturnType<Repository["checkOut"]> {
  const earlier = await earlierAttempt(task, signal, dir, transfer);
  try {
    return await repository.checkOut({ ...task, epoch }, path, earlier);
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
