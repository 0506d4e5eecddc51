/**
 * The tests of the API, in parts of about the same length: each file beside this one runs a part on PostgreSQL. All but
 * the part "alone" go through an nginx before two hubs, with a Redis between them. What they say is what test/api says on
 * SQLite; api-parts.test.ts sees to it that none is left out. A test that wants a single hub says why: ALONE in
 * support/hub.ts. Without nginx or Redis it is one hub that is called directly.
 */
import { afterAll, beforeAll, describe, setDefaultTimeout, test } from "bun:test";
import { closeFronts } from "../support/front.ts";
import { carryMessagesBy, useEngine } from "../support/hub.ts";
import { NGINX_MISSING } from "../support/nginx.ts";
import { POSTGRES_MISSING, sharedServer } from "../support/postgres.ts";
import { REDIS_MISSING, sharedRedis } from "../support/redis.ts";
import { dropSchemas } from "../support/schemas.ts";

/** Those that are run on SQLite only, and why. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  damage: "it is about SQLite's file",
  time: "it is about a clock that stands still, and several hubs follow that of the database",
  input: "it is about what is asked, before any store",
  limits: "it is about numbers, and asks no hub",
  waiting: "it is about one hub's own waiting calls and streams",
  bounds: "it is about what one hub holds, whatever its store",
  "response-backpressure": "it asks no hub",
  "messages-on-redis": "it is about a single hub, and here all messages go over Redis",
};

export const PARTS = {
  tasks: ["tasks", "balancer", "concurrency", "lux"],
  messages: ["messages", "stream"],
  requests: ["envelope", "idempotency", "variants", "files", "nodes"],
  alone: ["offline", "keys", "lost-keys", "system", "large-lists"],
} as const;

/**
 * Of one hub that is called directly: what is about periodic work, which one of the hubs does (fleet.test.ts), about each
 * hub's own keys, log and log lines, and about one long answer. Two hubs would take twice the time and show no more.
 */
const ALONE: ReadonlySet<keyof typeof PARTS> = new Set(["alone"]);

/** Where PostgreSQL carries the messages between the hubs itself, as it does without --redis. */
const WITHOUT_REDIS: ReadonlySet<keyof typeof PARTS> = new Set(["tasks"]);

/** Why a single hub is called directly; null where nginx and two hubs are there. */
const FLEETS_MISSING: string | null =
  process.platform === "linux"
    ? (NGINX_MISSING ?? REDIS_MISSING)
    : "wants addresses of its own on Linux' loopback";

/** Has the tests of a part run in the file that calls it. */
export async function runOnPostgres(part: keyof typeof PARTS): Promise<void> {
  if (POSTGRES_MISSING !== null) {
    describe.skip(`the API on PostgreSQL (skipped: ${POSTGRES_MISSING})`, () => test("runs", () => {}));
    return;
  }
  setDefaultTimeout(60_000); // two hubs each, and several tests at once
  await sharedServer(); // so that no test's time goes into its start
  const fleets = FLEETS_MISSING === null && !ALONE.has(part);
  const redis = fleets && !WITHOUT_REDIS.has(part) ? await sharedRedis() : null;
  beforeAll(() => {
    useEngine("postgresql", { fleets });
    carryMessagesBy(redis);
  });
  afterAll(async () => {
    useEngine("sqlite");
    carryMessagesBy(null);
    await closeFronts();
    await dropSchemas();
  });
  // The query makes it a module of its own: without --isolate the same file is loaded for SQLite in this process too.
  for (const name of PARTS[part]) await import(`../api/${name}.test.ts?engine=postgresql`);
}
