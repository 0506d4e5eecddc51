/**
 * Runs the API tests of messages again, against hubs that are connected to Redis. test/postgres/api.ts runs those of
 * concurrency on Redis, over two hubs.
 */
import { afterAll, beforeAll, describe } from "bun:test";
import { carryMessagesBy } from "../support/hub.ts";
import { type SharedRedis, openRedis, withoutRedis } from "../support/redis.ts";

let redis: SharedRedis | null = null;

describe.skipIf(withoutRedis())("on Redis", async () => {
  beforeAll(async () => {
    redis = await openRedis();
    carryMessagesBy(redis.url);
  });
  afterAll(async () => {
    carryMessagesBy(null);
    await redis?.close();
  });
  // The query makes it a module of its own: without --isolate the same file is loaded for itself in this process too.
  for (const name of ["messages"]) await import(`./${name}.test.ts?carrier=redis`);
});
