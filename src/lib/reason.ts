/** Why something could not be done, in the system's words: for a line that names the file or the address itself. */

/** "ENOENT: no such file or directory, open 'x'" without the code, the call and the path. */
const SYSTEM_MESSAGE = /^E[A-Z0-9]+: ([^,]+)(?:, .*)?$/s;

/** Words without a full stop, for the end of a line. What is no error of the system speaks for itself. */
export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const [, words = message] = SYSTEM_MESSAGE.exec(message) ?? [];
  return words;
}

/** The system's or the library's code of an error (ENOENT, SQLITE_FULL); "" where it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
