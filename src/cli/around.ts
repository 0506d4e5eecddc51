/**
 * What worker.toml puts around each attempt of `luxhub worker`: a command before it, one after it, and one in front of
 * the command itself, such as a sandbox. `{dir}` in `wrap` is the directory in which the command runs, `{git}` the
 * directory of git that the worktrees share.
 */
import { AttemptStalled } from "../client/index.ts";
import { TimeLimit } from "../client/time-limit.ts";
import type { Environment } from "../config.ts";
import type { Log } from "../lib/log.ts";
import { reasonOf } from "../lib/reason.ts";
import type { SecretMask } from "./secret-mask.ts";
import { type Run, runCommand } from "./worker-process.ts";

export type Around = {
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly wrap: readonly string[];
};

/** `after` must not keep the worker from its next task for ever. */
const AFTER_MAX_MS = 10 * 60_000;

export type Place = {
  readonly cwd: string | null;
  readonly env: Environment;
  /** `before` has stalled that prints nothing for so long; null: there is no limit. */
  readonly idleMs: number | null;
  readonly graceMs: number;
  readonly mask: SecretMask;
  readonly log: Log;
  readonly taskId: string;
};

export function wrapped(
  command: readonly string[],
  { wrap }: Around,
  dir: string,
  git: string,
): readonly string[] {
  return [...wrap.map((word) => word.replaceAll("{dir}", dir).replaceAll("{git}", git)), ...command];
}

/** @throws {Error} when `before` has failed; `after` runs nevertheless */
export async function between<T>(
  { before, after }: Around,
  place: Place,
  signal: AbortSignal,
  attempt: () => Promise<T>,
): Promise<T> {
  try {
    if (before.length > 0) {
      const { exitCode, endedBy, lastLines, overtime } = await runUnlessIdle(before, place, signal);
      signal.throwIfAborted();
      if (overtime !== null) throw new AttemptStalled(`before ${overtime}\n${lastLines}`.trimEnd());
      if (exitCode !== 0)
        throw new Error(["before failed", lastLines || `exit status ${exitCode ?? endedBy}`].join(": "));
    }
    return await attempt();
  } finally {
    if (after.length > 0) await runAfter(after, place, signal);
  }
}

/** When the attempt is to end, as at a shutdown, `after` has no more time than the command. */
async function runAfter(after: readonly string[], place: Place, attempt: AbortSignal): Promise<void> {
  const { log, taskId, graceMs, mask } = place;
  const end = new AbortController();
  const limit = new TimeLimit(AFTER_MAX_MS, () => end.abort());
  const grace = new TimeLimit(graceMs, () => end.abort());
  const hurry = (): void => grace.resume();
  limit.resume();
  if (attempt.aborted) hurry();
  else attempt.addEventListener("abort", hurry);
  try {
    const { exitCode, lastLines } = await run(after, place, end.signal);
    if (exitCode !== 0)
      log.warn("after failed", { task: taskId, status: exitCode ?? "ended", lines: lastLines });
  } catch (error) {
    log.warn("after failed", { task: taskId, cause: mask.text(reasonOf(error)) });
  } finally {
    attempt.removeEventListener("abort", hurry);
    limit.end();
    grace.end();
  }
}

async function runUnlessIdle(command: readonly string[], place: Place, signal: AbortSignal): Promise<Run> {
  const over = new AbortController();
  const idle = new TimeLimit(place.idleMs, () => over.abort("has stalled: it printed nothing for too long"));
  idle.resume();
  try {
    return await run(command, place, signal, over.signal, () => idle.restart());
  } finally {
    idle.end();
  }
}

function run(
  command: readonly string[],
  place: Place,
  signal: AbortSignal,
  timeout: AbortSignal = new AbortController().signal,
  onActivity: () => void = () => {},
): Promise<Run> {
  const { cwd, env, graceMs, mask, log, taskId } = place;
  return runCommand(command, {
    cwd,
    env,
    input: "",
    timeout,
    graceMs,
    signal,
    onActivity,
    onText: null,
    onErrorLine: (line) => log.info("stderr", { task: taskId, line }),
    mask,
  });
}
