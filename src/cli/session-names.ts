/**
 * Names of the processes of `luxhub mcp` that act for one node on this machine: NODE, NODE.2, NODE.3, … Each process
 * holds the lock of its name until it ends. Beside the lock is the id of the process that started it, the client, by which
 * a hook of the client finds the name.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../config.ts";
import { SESSIONS_MAX } from "../domain/limits.ts";
import { isHeld, takeExclusiveLock } from "../store/sqlite/file-lock.ts";
import { LOCK, readIfThere, stateDirOf } from "./worker-lock.ts";

const SESSION_LOCK = "session-lock";
const CLIENT = "client";

const nameOf = (node: string, number: number): string => (number === 1 ? node : `${node}.${number}`);

export type SessionName = {
  readonly name: string;
  /** The name is free again, and no hook finds it. */
  release(): void;
};

/** The first free name; that of a worker that runs here is not free. Null: all are taken. */
export function takeSessionName(url: string, node: string, env: Environment): SessionName | null {
  for (let number = 1; number <= SESSIONS_MAX; number++) {
    const name = nameOf(node, number);
    const dir = stateDirOf(url, name, env);
    if (isHeld(join(dir, LOCK))) continue;
    const lock = takeExclusiveLock(join(dir, SESSION_LOCK));
    if (lock === null) continue;
    const client = join(dir, CLIENT);
    writeFileSync(client, String(process.ppid));
    const release = (): void => {
      rmSync(client, { force: true });
      lock.release();
    };
    return { name, release };
  }
  return null;
}

/** The name that a client's process has, among the processes that started this one; the node if there is none. */
export function sessionNameOf(url: string, node: string, env: Environment): string {
  const starters = startersOf(process.pid);
  for (let number = 1; number <= SESSIONS_MAX; number++) {
    const name = nameOf(node, number);
    const dir = stateDirOf(url, name, env);
    const client = Number(readIfThere(join(dir, CLIENT)));
    if (starters.has(client) && isHeld(join(dir, SESSION_LOCK))) return name;
  }
  return node;
}

function startersOf(pid: number): ReadonlySet<number> {
  const starters = new Set<number>();
  for (let parent = parentOf(pid); parent > 1 && !starters.has(parent); parent = parentOf(parent))
    starters.add(parent);
  return starters;
}

/** 0 if it cannot be known. */
function parentOf(pid: number): number {
  if (pid === process.pid) return process.ppid;
  const [, fields] = /^.*\) (.*)$/s.exec(readIfThere(`/proc/${pid}/stat`)) ?? [];
  if (fields !== undefined) return Number(fields.split(" ")[1]);
  if (process.platform === "win32") return 0;
  const { stdout } = Bun.spawnSync(["ps", "-o", "ppid=", "-p", String(pid)], { stdin: "ignore" });
  return Number(stdout.toString());
}
