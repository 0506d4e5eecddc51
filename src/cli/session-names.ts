/**
 * Names of the processes of `luxhub mcp` that act for one node on this machine: NODE, NODE.2, NODE.3, … Each process
 * holds the lock of its number until it ends. Beside the lock is the id of the process that started it, the client, by
 * which a hook of the client finds the name.
 */
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../config.ts";
import { WITH_SESSIONS } from "../domain/key.ts";
import { SESSIONS_MAX } from "../domain/limits.ts";
import { isHeld, takeExclusiveLock } from "../store/sqlite/file-lock.ts";
import { LOCK, readIfThere, stateDirOf } from "./worker-lock.ts";

export type SessionName = {
  readonly name: string;
  /** The name is free again, and no hook finds it. */
  release(): void;
};

const CLIENT = ".client";

const nameOf = (node: string, number: number): string => (number === 1 ? node : `${node}.${number}`);

const dirOf = (url: string, node: string, env: Environment): string =>
  stateDirOf(url, `${node}${WITH_SESSIONS}`, env);

/** The first free name; that of a worker that runs here is not free. Null: all are taken. */
export function takeSessionName(url: string, node: string, env: Environment): SessionName | null {
  const dir = dirOf(url, node, env);
  for (let number = 1; number <= SESSIONS_MAX; number++) {
    const name = nameOf(node, number);
    const path = join(dir, `${number}`);
    // Whoever looks whether a lock is held, holds it for a moment: only the first name is worth a wait for that.
    const lock = number > 1 && isHeld(path) ? null : takeExclusiveLock(path);
    if (lock === null) continue;
    if (isHeld(join(stateDirOf(url, name, env), LOCK))) {
      lock.release();
      continue;
    }
    const client = join(dir, `${number}${CLIENT}`);
    writeFileSync(client, String(process.ppid));
    const release = (): void => {
      rmSync(client, { force: true });
      lock.release();
    };
    return { name, release };
  }
  return null;
}

/** The name that the nearest client among the processes that started this one has; the node if there is none. */
export function sessionNameOf(url: string, node: string, env: Environment): string {
  const dir = dirOf(url, node, env);
  const names = new Map<number, string>();
  for (const file of readdirSync(dir).filter((entry) => entry.endsWith(CLIENT))) {
    const number = file.slice(0, -CLIENT.length);
    if (isHeld(join(dir, number)))
      names.set(Number(readIfThere(join(dir, file))), nameOf(node, Number(number)));
  }
  for (let pid = parentOf(process.pid); pid > 1; pid = parentOf(pid)) {
    const name = names.get(pid);
    if (name !== undefined) return name;
  }
  return node;
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
