/**
 * Allows one worker process per node on this machine: a file lock, and the id of the run that holds it, by which the
 * next worker finds and ends the processes that a killed worker left running.
 *
 * Workers on other machines are revealed by the epochs of the tasks (src/client/worker.ts).
 */
import { lstatSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import type { Environment } from "../config.ts";
import { newId } from "../lib/ids.ts";
import { type Lock, takeExclusiveLock } from "../store/sqlite/file-lock.ts";

export type WorkerLock = {
  /** For every command, so that its processes can be recognised. */
  readonly mark: Environment;
  /** How many processes of a killed worker were ended. */
  readonly endedProcesses: number;
  /** For directories of its runs: what a killed worker left in it is gone. */
  readonly runsDir: string;
  release(): void;
};

export const MARK = "LUXHUB_WORKER_RUN";
/** In stateDirOf() and in the directory of the tasks: of a worker. */
export const LOCK = "lock";

/**
 * Of the node at the hub, and of the directory of its tasks, which workers for other hubs may share. If another process
 * has one of them, returns its id, "" if unknown.
 */
export function takeWorkerLock(
  url: string,
  nodeId: string,
  workDir: string | null,
  env: Environment,
): WorkerLock | string {
  const dir = stateDirOf(url, nodeId, env);
  const run = newId();
  const claims: Claim[] = [];
  const release = (): void => claims.forEach((claim) => claim.release());
  for (const place of [dir, ...(workDir === null ? [] : [workDir])]) {
    const claim = claimDir(place, run);
    if (typeof claim === "string") {
      release();
      return claim;
    }
    claims.push(claim);
  }
  const runsDir = join(dir, "runs");
  rmSync(runsDir, { recursive: true, force: true });
  mkdirSync(runsDir, { mode: 0o700 });
  const endedProcesses = Math.max(...claims.map((claim) => claim.endedProcesses));
  return { mark: { [MARK]: run }, endedProcesses, runsDir, release };
}

export type Claim = { readonly endedProcesses: number; release(): void };

/** Ends what a killed worker has left running. A string: another process has the directory; its id, "" if unknown. */
export function claimDir(dir: string, run = newId()): Claim | string {
  const file = join(dir, "running");
  const lock: Lock | null = takeExclusiveLock(join(dir, LOCK));
  const [pid = "", killedRun = ""] = readIfThere(file).split(" ");
  if (lock === null) return pid;
  const endedProcesses = killedRun === "" ? 0 : endProcesses(`${MARK}=${killedRun}`);
  writeFileSync(file, `${process.pid} ${run}`);
  return {
    endedProcesses,
    release: () => {
      rmSync(file, { force: true });
      lock.release();
    },
  };
}

/** What this machine keeps of a node, which only its user can read. */
export function stateDirOf(url: string, nodeId: string, env: Environment): string {
  return makeStateDir(new Bun.CryptoHasher("sha256").update(`${url} ${nodeId}`).digest("hex"), env);
}

/**
 * Creates a directory below the user's state directory (XDG Base Directory) or, for a user without a home, below the
 * temporary one.
 */
function makeStateDir(name: string, { XDG_STATE_HOME: given = "" }: Environment): string {
  try {
    const state = isAbsolute(given) ? given : join(homedir(), ".local", "state");
    return makeOwnDir(join(state, "luxhub-workers"), name);
  } catch {
    return makeOwnDir(join(tmpdir(), `luxhub-workers-${process.geteuid?.() ?? 0}`), name);
  }
}

/** @throws {Error} when that fails, or `parent` belongs to another user */
function makeOwnDir(parent: string, name: string): string {
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  const { uid } = lstatSync(parent);
  if (!lstatSync(parent).isDirectory() || (process.geteuid?.() ?? uid) !== uid)
    throw new Error(`${parent} is not a directory of this user`);
  const dir = join(parent, name);
  mkdirSync(dir, { recursive: true });
  return dir;
}

/** A process that is about to end may start another one. */
const SEARCHES_MAX = 10;

/** Kills all processes with this entry in their environment, and returns how many. Linux only, by /proc. */
function endProcesses(entry: string): number {
  const ended = new Set<string>();
  for (let search = 0; search < SEARCHES_MAX; search++) {
    const marked = allPids().filter((pid) => readIfThere(`/proc/${pid}/environ`).split("\0").includes(entry));
    if (marked.length === 0) break;
    for (const pid of marked) {
      ended.add(pid);
      try {
        process.kill(Number(pid), "SIGKILL");
      } catch {
        // It has just ended.
      }
    }
  }
  return ended.size;
}

export function allPids(): readonly string[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

/** "" if it cannot be read. */
export function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
