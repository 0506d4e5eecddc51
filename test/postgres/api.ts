/**
 * The tests of the API, in parts of about the same length: each file beside this one runs a part on PostgreSQL. What they
 * say is what test/api says on SQLite; api-parts.test.ts sees to it that none is left out.
 */
import { afterAll, describe, test } from "bun:test";
import { closeFronts } from "../support/front.ts";
import { carryMessagesBy, useEngine } from "../support/hub.ts";
import { NGINX_MISSING } from "../support/nginx.ts";
import { POSTGRES_MISSING, sharedServer } from "../support/postgres.ts";
import { sharedRedis } from "../support/redis.ts";

const FLEETS_MISSING = NGINX_MISSING;

/** Those that are run on SQLite only, and why. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  damage: "it is about SQLite's file",
  time: "it is about a clock that stands still, and several hubs follow that of the database",
  "messages-on-redis": "test/mail has Redis over several hubs",
};

export const PARTS = {
  tasks: ["tasks", "balancer", "concurrency", "lux"],
  messages: ["messages", "stream", "offline"],
  requests: ["envelope", "idempotency", "variants", "system"],
  others: ["nodes", "keys", "files", "large-lists"],
} as const;

/** Has the tests of a part run in the file that calls it. */
export async function runOnPostgres(part: keyof typeof PARTS): Promise<void> {
  if (POSTGRES_MISSING !== null) {
    describe.skip(`the API on PostgreSQL (skipped: ${POSTGRES_MISSING})`, () => test("runs", () => {}));
    return;
  }
  await sharedServer(); // so that no test's time goes into its start
  const fleets = FLEETS_MISSING === null;
  useEngine("postgresql", { fleets });
  if (fleets) {
    carryMessagesBy(await sharedRedis());
    afterAll(closeFronts);
  }
  for (const name of PARTS[part]) await import(`../api/${name}.test.ts`);
}
