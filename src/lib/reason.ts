/** The system's reason for an error, for a message that names the file or the address. */

/** "ENOENT: no such file or directory, open 'x'" without the code, the call and the path. */
const SYSTEM_MESSAGE = /^E[A-Z0-9]+: ([^,]+)(?:, .*)?$/s;

/** Without a full stop, for the end of a line. The message of any other error is answered unchanged. */
export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const [, words = message] = SYSTEM_MESSAGE.exec(message) ?? [];
  return words;
}

/** The system's or the library's code of an error (ENOENT, SQLITE_FULL); "" when it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
