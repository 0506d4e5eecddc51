/**
 * How much the suite does of what it could do for ever: random sequences, and API tests that only repeat a statement on
 * PostgreSQL. `bun run test` is short enough to run after each change; LUXHUB_TEST_LONG=1, which .ci/run sets, does all.
 */
import { test } from "bun:test";

export const IS_LONG = process.env["LUXHUB_TEST_LONG"] === "1";

/** A count of random cases. `short` finds what the test is known to find; `long` looks for what nobody knows yet. */
export function cases(short: number, long: number): number {
  return IS_LONG ? long : short;
}

/** A test that waits for a limit of the hub in real time, of a kind of which the short form has another. */
export function longTest(name: string, run: () => Promise<void>): void {
  if (IS_LONG) test.concurrent(name, run);
  else test.skip(`${name} (skipped: waits in real time; LUXHUB_TEST_LONG=1 runs it)`, run);
}
