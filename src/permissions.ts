/**
 * File permissions (POSIX modes): finds the hub's files that too many users may write or read. On a system without
 * modes it finds none.
 */
import { statSync } from "node:fs";
import { shellWord } from "./lib/shell.ts";

/** Whether the system has modes. Windows has access lists instead, which the hub does not read; Bun invents modes there. */
export const HAS_MODES = process.platform !== "win32";

const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
const OTHERS_READ = 0o004;

/**
 * Refuses a file that everybody may write, because its content cannot be trusted. `what` names it in the message.
 * @throws {Error} one line
 */
export function refuseWorldWritable(path: string, what: string): void {
  if ((modeOf(path) & OTHERS_WRITE) === 0) return;
  throw new Error(`everybody may write ${what} ${path}: change that with chmod o-w ${shellWord(path)}`);
}

/** Returns a sentence for each permission that is too wide. */
export function permissionWarnings(path: string, what: string, isSecret: boolean): string[] {
  const mode = modeOf(path);
  const warnings: string[] = [];
  if ((mode & GROUP_WRITES) !== 0) warnings.push(`a group may write ${what} ${path}`);
  if (isSecret && (mode & OTHERS_READ) !== 0) warnings.push(`everybody may read ${what} ${path}`);
  return warnings;
}

function modeOf(path: string): number {
  if (!HAS_MODES) return 0;
  try {
    return statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  } catch {
    return 0; // opening the file reports the reason
  }
}
