/**
 * Who may write or read the files that the hub trusts, by their modes (POSIX). Where there are no modes, nothing is found.
 */
import { statSync } from "node:fs";
import { shellWord } from "./lib/shell.ts";

const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
const OTHERS_READ = 0o004;

/** @throws {Error} one line when everybody may write it: it could hold what a stranger wants. `what` names it, as "the secret file" */
export function refuseWorldWritable(path: string, what: string): void {
  if ((modeOf(path) & OTHERS_WRITE) === 0) return;
  throw new Error(`everybody may write ${what} ${path}: change that with chmod o-w ${shellWord(path)}`);
}

/** What should not be so, each in a sentence. */
export function permissionWarnings(path: string, what: string, isSecret: boolean): string[] {
  const mode = modeOf(path);
  const warnings: string[] = [];
  if ((mode & GROUP_WRITES) !== 0) warnings.push(`a group may write ${what} ${path}`);
  if (isSecret && (mode & OTHERS_READ) !== 0) warnings.push(`everybody may read ${what} ${path}`);
  return warnings;
}

function modeOf(path: string): number {
  if (process.platform === "win32") return 0; // it has no such modes, and Bun makes some up
  try {
    return statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  } catch {
    return 0; // whoever opens it is told why that cannot be done
  }
}
