/**
 * One worker process per node on this machine: a file lock, and the id of the run that holds it, by which a successor
 * finds and ends what a killed worker left running.
 *
 * A worker on another machine is not seen here: the epochs of the tasks show it (src/client/worker.ts).
 */
import { lstatSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { newId } from "../lib/ids.ts";
import { type Lock, takeLock } from "../store/sqlite/file-lock.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export type WorkerLock = {
  /** For the environment of every command: a process that has it was started by this worker. */
  readonly mark: Environment;
  /** How many processes of a killed worker were ended. */
  readonly endedProcesses: number;
  release(): void;
};

const MARK = "LUXHUB_WORKER_RUN";

/** Takes the lock of a node of a hub. When it is taken: the id of the process that has it, "" if unknown. */
export function takeWorkerLock(url: string, nodeId: string, env: Environment): WorkerLock | string {
  const dir = makeStateDir(new Bun.CryptoHasher("sha256").update(`${url} ${nodeId}`).digest("hex"), env);
  const file = join(dir, "running");
  const lock: Lock | null = takeLock(join(dir, "lock"));
  const [pid = "", killedRun = ""] = readIfThere(file).split(" ");
  if (lock === null) return pid;
  const endedProcesses = killedRun === "" ? 0 : endProcesses(`${MARK}=${killedRun}`);
  const run = newId();
  writeFileSync(file, `${process.pid} ${run}`);
  return {
    mark: { [MARK]: run },
    endedProcesses,
    release: () => {
      rmSync(file, { force: true });
      lock.release();
    },
  };
}

/** In the user's state directory (XDG Base Directory), else, for users without a home, in the temporary one. */
function makeStateDir(name: string, { XDG_STATE_HOME: given = "" }: Environment): string {
  try {
    const state = isAbsolute(given) ? given : join(homedir(), ".local", "state");
    return makeOwnDir(join(state, "luxhub-workers"), name);
  } catch {
    return makeOwnDir(join(tmpdir(), `luxhub-workers-${process.geteuid?.() ?? 0}`), name);
  }
}

/** @throws {Error} when it cannot be made, or is another user's */
function makeOwnDir(parent: string, name: string): string {
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  const { uid } = lstatSync(parent);
  if (!lstatSync(parent).isDirectory() || (process.geteuid?.() ?? uid) !== uid)
    throw new Error(`${parent} is not a directory of this user`);
  const dir = join(parent, name);
  mkdirSync(dir, { recursive: true });
  return dir;
}

/** A process that is about to end may start another one: looked for again until none is found. */
const LOOKS_MAX = 10;

/** Kills all processes with an entry in their environment. Linux only, by /proc. */
function endProcesses(entry: string): number {
  const ended = new Set<string>();
  for (let look = 0; look < LOOKS_MAX; look++) {
    const found = allPids().filter((pid) => readIfThere(`/proc/${pid}/environ`).split("\0").includes(entry));
    if (found.length === 0) break;
    for (const pid of found) {
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

/** The ids of all processes; none on a system without /proc. */
export function allPids(): readonly string[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

/** "" for a file that is not there, or is another user's. */
export function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
