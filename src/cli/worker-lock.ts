/**
 * One worker process per node on this machine: a file lock, and the process groups that the worker has started, so that
 * its successor ends what a killed worker left running.
 *
 * A worker on another machine is not seen here: the epochs of the tasks show it (src/client/worker.ts).
 */
import { lstatSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { type Lock, takeLock } from "../store/sqlite/file-lock.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export type WorkerLock = {
  /** How many process groups of a killed worker were ended. */
  readonly endedGroups: number;
  /** Records a process group until the returned function is called. */
  record(group: number): () => void;
  release(): void;
};

/** Takes the lock of a node of a hub; the id of the process that has it, "" if unknown, when it is taken. */
export function takeWorkerLock(url: string, nodeId: string, env: Environment): WorkerLock | string {
  const dir = makeStateDir(new Bun.CryptoHasher("sha256").update(`${url} ${nodeId}`).digest("hex"), env);
  const pidFile = join(dir, "pid");
  const lock: Lock | null = takeLock(join(dir, "lock"));
  if (lock === null) return readIfThere(pidFile);
  writeFileSync(pidFile, String(process.pid));
  const groups = join(dir, "groups");
  mkdirSync(groups, { recursive: true });
  return {
    endedGroups: endGroups(groups),
    record: (group) => {
      const file = join(groups, `${group}-${startOf(group)}`);
      try {
        writeFileSync(file, "");
      } catch {
        return () => {}; // on a full disk the command runs all the same
      }
      return () => rmSync(file, { force: true });
    },
    release: () => lock.release(),
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

function endGroups(dir: string): number {
  let count = 0;
  for (const name of readdirSync(dir)) {
    const [group = 0, start = ""] = [Number.parseInt(name), name.split("-")[1]];
    // The time of its start tells the process from a later one with the same id.
    if (group > 1 && start !== "" && startOf(group) === start && killGroup(group, "SIGKILL")) count++;
    rmSync(join(dir, name));
  }
  return count;
}

/** When a process started, in ticks since the boot; "" if it is not there or the system has no /proc. */
function startOf(pid: number): string {
  return statOf(pid)[19] ?? ""; // starttime
}

/** The fields of proc_pid_stat(5) from the third on: after the bracket that ends the command's name. */
function statOf(pid: number | string): readonly string[] {
  const stat = readIfThere(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Whether a process of the group runs. Where nobody waits for orphans, as in many containers, dead ones stay in it. */
export function isGroupRunning(group: number): boolean {
  if (!killGroup(group, 0)) return false;
  const pids = listIfThere("/proc").filter((name) => /^\d+$/.test(name));
  return (
    pids.length === 0 ||
    pids.some((pid) => {
      const [state, , pgrp] = statOf(pid);
      return pgrp === String(group) && state !== "Z";
    })
  );
}

function listIfThere(dir: string): readonly string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

/** Sends a signal to a process group; 0 only asks whether it is there. False if it is not. */
export function killGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal);
  } catch {
    return false;
  }
}
