/**
 * The tests of the API, in parts of about the same length: each file beside this one runs a part on PostgreSQL. What they
 * say is what test/api says on SQLite; api-parts.test.ts sees to it that none is left out.
 */
import { describe, test } from "bun:test";
import { useEngine } from "../support/hub.ts";
import { POSTGRES_MISSING, sharedServer } from "../support/postgres.ts";

/** Those that are about the file of SQLite. */
export const OF_SQLITE: readonly string[] = ["damage"];

export const PARTS = {
  tasks: ["tasks", "balancer", "concurrency", "lux"],
  messages: ["messages", "stream", "offline"],
  requests: ["envelope", "idempotency", "variants", "system"],
  others: ["nodes", "keys", "files", "time", "large-lists"],
} as const;

/** Has the tests of a part run in the file that calls it. */
export async function runOnPostgres(part: keyof typeof PARTS): Promise<void> {
  if (POSTGRES_MISSING !== null) {
    describe.skip(`the API on PostgreSQL (skipped: ${POSTGRES_MISSING})`, () => test("runs", () => {}));
    return;
  }
  await sharedServer(); // so that no test's time goes into its start
  useEngine("postgresql");
  for (const name of PARTS[part]) await import(`../api/${name}.test.ts`);
}
