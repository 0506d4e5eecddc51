/** The exit codes of every command. */

export const EXIT = {
  OK: 0,
  FAILED: 1,
  /** The command line or a setting is invalid, or the hub refuses a value. */
  USAGE: 2,
  NOT_FOUND: 3,
  NOT_ALLOWED: 4,
  CONFLICT: 5,
  UNREACHABLE: 6,
  /** The code of timeout(1). */
  TIMED_OUT: 124,
} as const;

/** The message is one line for the user. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

export const EXIT_LINES: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT.OK, "done"],
  [EXIT.FAILED, "the command failed, or the task to wait for has failed"],
  [EXIT.USAGE, "the command line, a setting or a value is invalid"],
  [EXIT.NOT_FOUND, "there is no such task, node, message, note, file or key"],
  [EXIT.NOT_ALLOWED, "the secret is missing or wrong, or does not permit the command"],
  [
    EXIT.CONFLICT,
    "the current state of the task, key, data directory or the like does not allow the command",
  ],
  [EXIT.UNREACHABLE, "the hub cannot be reached, or returned 502, 503 or 504"],
  [EXIT.TIMED_OUT, "the time limit was reached"],
];

export function exitCodeOf(status: number): number {
  if (status === 400) return EXIT.USAGE;
  if (status === 401 || status === 403) return EXIT.NOT_ALLOWED;
  if (status === 404) return EXIT.NOT_FOUND;
  if (status === 409 || status === 422) return EXIT.CONFLICT;
  return status === 502 || status === 503 || status === 504 ? EXIT.UNREACHABLE : EXIT.FAILED;
}
