/** Reads the operating system's reason out of an error, for a message that already names the file or the address. */

/** Captures "no such file or directory" in "ENOENT: no such file or directory, open 'x'". */
const SYSTEM_MESSAGE = /^E[A-Z0-9]+: ([^,]+)(?:, .*)?$/s;

/** Without code, call, path and full stop; the whole message of an error that is not the system's. */
export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const [, words = message] = SYSTEM_MESSAGE.exec(message) ?? [];
  return words;
}

/** As ENOENT or SQLITE_FULL; "" without one. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
