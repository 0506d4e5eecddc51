/** The `transport` in the answers of two hubs, with PostgreSQL and Redis available, and after the loss of Redis. */
import { describe, expect, test } from "bun:test";
import { type Answer, type TestHub, startHub } from "../support/hub.ts";
import { POSTGRES_MISSING, newSchema, sharedServer } from "../support/postgres.ts";
import { REDIS_MISSING, RedisServer, withoutRedis } from "../support/redis.ts";
import { VARIANTS, ok, until } from "../api/scene.ts";

const missing = POSTGRES_MISSING ?? (withoutRedis(true) ? (REDIS_MISSING ?? "no redis-server here") : null);
const reason = missing === null ? "" : ` (skipped: ${missing})`;
if (missing === null) await sharedServer();

/** Every endpoint that answers a transport, on both variants, in one burst. */
function burst(hub: TestHub): Promise<Answer>[] {
  const letter = { from_node: "n1", to_node: "n2", content: "x" };
  const reads = [
    "/message/history?node_id=n1",
    "/message/history?node_id=n2",
    "/agent/messages?node_id=n2",
    "/status",
  ];
  return VARIANTS.flatMap((variant) => [
    hub.post("/message/send", letter, { variant }),
    hub.post("/agent/message", letter, { variant }),
    hub.post("/message/broadcast", letter, { variant }),
    hub.post("/agent/broadcast", letter, { variant }),
    hub.post("/message/receive", { node_id: "n2" }, { variant }),
    hub.post("/message/receive", { node_id: "n3", blocking: true, timeout: 0.1 }, { variant }),
    ...reads.map((path) => hub.get(path, { variant })),
  ]);
}

async function transportsOf(hubs: readonly TestHub[], rounds: number): Promise<ReadonlySet<unknown>> {
  const named = new Set<unknown>();
  for (let round = 0; round < rounds; round++) {
    const answers = await Promise.all(hubs.flatMap(burst));
    for (const answer of answers) {
      const body = await ok(answer);
      if ("transport" in body) named.add(body["transport"]);
    }
  }
  return named;
}

describe.skipIf(missing !== null)(`the transport of two hubs${reason}`, () => {
  test("is redis in every answer while both are up, and postgresql in every one when Redis is gone", async () => {
    await using redis = await RedisServer.start();
    const { url: database, remove } = await newSchema();
    try {
      await using a = await startHub({ database, redis: redis.url });
      await using b = await startHub({ database, redis: redis.url });
      await a.addNodes(["n1", "n2", "n3"]);
      // A hub on a machine that is too slow for a while goes on without Redis, and says so.
      const only = async (transport: string): Promise<boolean> =>
        [...(await transportsOf([a, b], 3))].join() === transport;
      await until("every answer names Redis", () => only("redis"));

      await redis.kill();
      const lost = async (hub: TestHub): Promise<boolean> =>
        (await hub.get("/status")).body["transport"] === "postgresql";
      await until("both hubs notice", async () => (await lost(a)) && (await lost(b)));
      expect(await transportsOf([a, b], 2)).toEqual(new Set(["postgresql"]));

      await redis.run();
      await until("both hubs return", async () => !(await lost(a)) && !(await lost(b)));
      await a.send("n1", "n2");
      await until("every answer names Redis again", () => only("redis"));
    } finally {
      await remove();
    }
  });
});
