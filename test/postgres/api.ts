/**
 * Runs the API tests of test/api that are no transcripts on PostgreSQL, in parts of about the same length, a file each.
 * Transcripts (test/support/transcript.ts) run there by themselves. The parts in FLEETS go
 * through an nginx in front of two hubs, the others call a single hub. A test that needs a single hub in a fleet part
 * says why: ALONE in support/hub.ts. Without nginx (or Redis, where a part wants it) every part calls a single hub.
 * Tests that no store can change are defined by onlyOnce() of support/hub.ts, and not run again here.
 */
import { afterAll, beforeAll, describe, test } from "bun:test";
import { closeFronts } from "../support/front.ts";
import { carryMessagesBy, useEngine } from "../support/hub.ts";
import { IS_LONG } from "../support/long.ts";
import { NGINX_MISSING } from "../support/nginx.ts";
import { POSTGRES_MISSING, sharedServer } from "../support/postgres.ts";
import { REDIS_MISSING, sharedRedis } from "../support/redis.ts";
import { dropSchemas } from "../support/schemas.ts";

/** API tests that run on SQLite only, and why. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  damage: "tests SQLite's file",
  "wrong-clock": "needs a clock that stands still; hubs on PostgreSQL follow the clock of the database",
  input: "tests requests before they reach a store",
  limits: "tests constants, calls no hub",
  waiting: "tests one hub's own waiting calls and streams",
  invariants: "its double is of SQLite; contract/store.test.ts breaks an invariant on PostgreSQL",
  bounds: "tests what one hub holds, whatever its store",
  "response-backpressure": "tests answers being sent, calls no hub",
  "access-log": "tests the lines of requests, whatever their store",
  "cross-origin": "tests headers of requests and answers, whatever the store",
  "large-lists": "tests how lists are sent; contract/queries.test.ts reads their parts on PostgreSQL",
  "request-bodies": "tests requests before they reach a store",
  "mcp-limits": "its tools ask the endpoints, whose transcripts run on PostgreSQL",
  "hub-limits": "tests the rules of domain/shares.ts at a hub; shares has what keys do on PostgreSQL",
  "hub-itself": "tests one hub's own page and timer; runs its diagnostics on PostgreSQL by itself",
  "quorum-doors": "tests doors whose rows quorum-secrets reads on PostgreSQL",
  strict: "tests what a key may say, whatever the store",
  rights: "tests what each kind of key may call, whatever the store",
  "key-secrets": "tests the command and the declarations; fleet.test.ts runs the command on PostgreSQL",
  "activity-log":
    "tests the lines for what is committed, whatever the store; fleet.test.ts has those of two hubs",
  "lost-keys":
    "tests what a hub does with open calls, whatever the store; fleet.test.ts revokes a key of open calls at two hubs",
  mcp: "its tools ask the endpoints that run here, and decide nothing",
  "mcp-jobs": "its tools ask the endpoints that run here, and decide nothing",
  "mcp-results": "tests the form of results, whatever the store",
  variants: "tests the words of the variants, whatever the store; its transcripts run there by themselves",
  "presigned-urls": "tests what opens a ticket, whatever the store; its transcripts run there by themselves",
  "stored-bytes":
    "reads the tables of SQLite; what a row counts is the same on PostgreSQL, where quotas runs",
  "batch-bounds": "tests what one hub takes on at once, whatever the store",
  uploads: "tests the disk, and the heads of requests and responses",
  "stored-answers": "tests calls that wait at one hub; idempotency has what the store keeps",
  openapi: "tests the documents of the endpoints, whatever the store",
  "messages-on-redis": "tests a single hub on Redis; concurrency runs on Redis here",
};

export const PARTS = {
  tasks: ["held-tasks", "ledger", "stream", "traces"],
  concurrency: ["concurrency", "broadcasts"],
  periodic: ["many-lanes", "hang-ups", "webhooks", "monitoring", "quota-bytes"],
} as const;

/**
 * Files whose every statement the other files of the parts, the contract tests and the tests of this folder send to
 * PostgreSQL, too: what else they test is the hub's, whatever its store. They run here only in the long form.
 */
export const REPEATS: ReadonlySet<string> = new Set(["broadcasts", "ledger", "monitoring", "stream"]);

/**
 * Parts that run on two hubs: where concurrent requests meet in the database. The others test what one request does,
 * the form of answers and periodic work; fleet.test.ts has what two hubs without Redis do at once, and their streams.
 */
const FLEETS: ReadonlySet<keyof typeof PARTS> = new Set(["concurrency"]);

/** Parts whose hubs pass messages over Redis; in the others PostgreSQL does it. */
const ON_REDIS: ReadonlySet<keyof typeof PARTS> = new Set(["concurrency"]);

/** Whether two hubs behind nginx can run here: they need loopback addresses of their own, as Linux has. */
const canRunFleets = process.platform === "linux" && NGINX_MISSING === null && REDIS_MISSING === null;

/** Runs the tests of a part in the file that calls it. */
export async function runOnPostgres(part: keyof typeof PARTS): Promise<void> {
  if (POSTGRES_MISSING !== null) {
    describe.skip(`the API on PostgreSQL (skipped: ${POSTGRES_MISSING})`, () => test("runs", () => {}));
    return;
  }
  await sharedServer();
  const fleets = canRunFleets && FLEETS.has(part);
  const redis = fleets && ON_REDIS.has(part) ? await sharedRedis() : null;
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
  // The query makes it a separate module: without --isolate this process may also load the same file for SQLite.
  for (const name of PARTS[part])
    if (IS_LONG || !REPEATS.has(name)) await import(`../api/${name}.test.ts?engine=postgresql`);
}
