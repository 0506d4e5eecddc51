// The bench's child processes and temporary directories. Invariant: all are gone when the bench ends, whether it
// finishes, fails, or is ended by Ctrl-C, SIGTERM or its own deadline.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const children = new Set<Bun.Subprocess>();
const directories = new Set<string>();

/** Remembers a child, so that it is killed at the latest when the bench ends. */
export function keepChild<Child extends Bun.Subprocess>(child: Child): Child {
  children.add(child);
  void child.exited.then(() => children.delete(child));
  return child;
}

export async function stopChild(child: Bun.Subprocess, graceMs = 5_000): Promise<void> {
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), graceMs);
  await child.exited;
  clearTimeout(timer);
}

/** Makes a temporary directory that is removed when the bench ends. `root`: where; default the system's. */
export function makeDirectory(root = tmpdir()): string {
  const directory = mkdtempSync(join(root, "luxhub-bench-"));
  directories.add(directory);
  return directory;
}

export function removeDirectory(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
  directories.delete(directory);
}

/** Ends the process on Ctrl-C, SIGTERM and after `limitMs`, and clears up however it ends. */
export function clearUpAtExit(limitMs: number): void {
  process.on("exit", () => {
    for (const child of children) child.kill("SIGKILL");
    for (const directory of directories) removeDirectory(directory);
  });
  process.on("SIGINT", () => process.exit(130));
  process.on("SIGTERM", () => process.exit(143));
  const timer = setTimeout(() => {
    console.error(`bench: not done after ${Math.round(limitMs / 1_000)} s, stopped`);
    process.exit(1);
  }, limitMs);
  timer.unref();
}
