/** The exit codes of every command. */

export const EXIT = {
  OK: 0,
  /** Anything that failed and has no code of its own; also: the task that was waited for failed. */
  FAILED: 1,
  /** The command line or a setting is wrong as it is written, or the hub refuses a value. */
  USAGE: 2,
  NOT_FOUND: 3,
  /** The secret is missing or wrong, or may not do this. */
  NOT_ALLOWED: 4,
  CONFLICT: 5,
  UNREACHABLE: 6,
  /** As timeout(1) has it. */
  TIMED_OUT: 124,
} as const;

/** For the help and the manual page. */
export const EXIT_LINES: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT.OK, "done"],
  [EXIT.FAILED, "failed; also: the task that was waited for failed"],
  [EXIT.USAGE, "the command line, a setting or a value is wrong as it is written"],
  [EXIT.NOT_FOUND, "there is no such task, node, message, file or key"],
  [EXIT.NOT_ALLOWED, "the secret is missing or wrong, or may not do this"],
  [EXIT.CONFLICT, "the state of things does not allow it"],
  [EXIT.UNREACHABLE, "the hub cannot be reached"],
  [EXIT.TIMED_OUT, "the time given was over"],
];

/** Of a refusal of the hub. */
export function exitCodeOf(status: number): number {
  if (status === 400) return EXIT.USAGE;
  if (status === 401 || status === 403) return EXIT.NOT_ALLOWED;
  if (status === 404) return EXIT.NOT_FOUND;
  if (status === 409 || status === 422) return EXIT.CONFLICT;
  return status === 502 || status === 503 || status === 504 ? EXIT.UNREACHABLE : EXIT.FAILED;
}
