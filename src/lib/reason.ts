/** The operating system's reason of an error, for a message that already names the file or the address. */

/** "ENOENT: no such file or directory, open 'x'" without the code, the call and the path. */
const SYSTEM_MESSAGE = /^E[A-Z0-9]+: ([^,]+)(?:, .*)?$/s;

/** The reason without a full stop, for the end of a line; of any other error, its message. */
export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const [, words = message] = SYSTEM_MESSAGE.exec(message) ?? [];
  return words;
}

/** An error's code from the system or a library (ENOENT, SQLITE_FULL); "" without one. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
