/** Finds the hub's files that too many users may write or read, by POSIX modes. */
import { statSync } from "node:fs";
import { shellWord } from "./lib/shell.ts";

/** Windows has access lists instead, which the hub does not read; Bun invents modes there. */
export const HAS_MODES = process.platform !== "win32";

const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
const OTHERS_READ = 0o004;

/** Its content cannot be trusted. `what` names the file in the message. @throws {Error} one line */
export function refuseWorldWritable(path: string, what: string): void {
  if ((modeOf(path) & OTHERS_WRITE) === 0) return;
  throw new Error(`everybody may write ${what} ${path}: change that with chmod o-w ${shellWord(path)}`);
}

/**
 * As git and ssh do: the file of the current directory may be anybody's. Root trusts the files of all users. @throws
 * {Error} one line
 */
export function refuseForeign(path: string, what: string): void {
  refuseWorldWritable(path, what);
  const uid = process.geteuid?.() ?? 0;
  const owner = uid === 0 ? 0 : (statSync(path, { throwIfNoEntry: false })?.uid ?? 0);
  if (owner === 0 || owner === uid) return;
  throw new Error(
    `${what} ${path} is of another user: run the command as that user, or copy it if you trust it`,
  );
}

/** A sentence for each permission that is too wide. */
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
