/**
 * Mail with Redis as the wake-up channel over one store: several hubs, a hub that dies between commit and wake-up, a lost
 * wake-up. No message may be lost, delivered twice or out of order.
 */
import { RedisClient } from "bun";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { EmbeddedMail } from "../../src/mail/embedded.ts";
import type { Transact } from "../../src/store/store.ts";
import { message } from "../domain/samples.ts";
import { until } from "../e2e/program.ts";
import { RedisServer, withoutRedis } from "../support/redis.ts";
import { MailHubs } from "./hubs.ts";

/** A receiver that is not woken within this time gets nothing. */
const PATIENCE_MS = 15_000;

/** A hub that died: its commit never comes. */
const died: Transact = () => new Promise<never>(() => {});

/** Nothing is written. */
const refused: Transact = () => Promise.reject(new Error("refused"));

const names = (n: number): readonly string[] => Array.from({ length: n }, (_, i) => `m${i}`);

describe.skipIf(withoutRedis(true))("mail on Redis", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await RedisServer.start();
  });
  afterAll(() => redis.close());

  const open = () => MailHubs.open(redis.url, redis.url);

  /** Hears everything that is published: the texts without the name of the hub, probes left out. */
  async function subscribe(): Promise<AsyncDisposable & { readonly heard: readonly string[] }> {
    const client = new RedisClient(redis.url, { autoReconnect: false });
    const heard: string[] = [];
    await client.connect();
    const [channel = ""] = (await redis.ask("PUBSUB", "CHANNELS", "luxhub:*")) as readonly string[];
    await client.subscribe(channel, (text) => {
      const [, nodeIds = ""] = text.split(" ");
      if (nodeIds !== "") heard.push(nodeIds);
    });
    return { heard, [Symbol.asyncDispose]: async () => client.close() };
  }

  describe("several hubs", () => {
    test("a message sent at one wakes a receiver at another", async () => {
      await using hubs = await open();
      const [a, b] = hubs.both;
      const waiting = b.receive(PATIENCE_MS);
      await until(() => b.waiters.size === 1);
      expect(await a.send(["m1"])).toBe("redis");
      expect(await waiting).toBe("m1");
    });

    test("a broadcast wakes a receiver for each of its nodes", async () => {
      await using hubs = await open();
      const [a, b] = hubs.both;
      const waiting = ["n1", "n2", "n3"].map((nodeId) => b.receive(PATIENCE_MS, nodeId));
      await until(() => b.waiters.size === 3);
      await a.post({ toNode: null, type: "alert", content: "all" });
      expect(await Promise.all(waiting)).toEqual(["all", "all", "all"]);
    });

    test("of many receivers at both, one gets each message", async () => {
      await using hubs = await open();
      const [a, b] = hubs.both;
      const all = names(300);
      const got: string[] = [];
      const receivers = Array.from({ length: 30 }, async (_, i) => {
        while (got.length < all.length) {
          const name = await (i % 2 ? a : b).receive(1_000);
          if (name !== "") got.push(name);
        }
      });
      await Promise.all([a.send(all.slice(0, 150)), b.send(all.slice(150))]);
      await Promise.all(receivers);
      expect(got.toSorted()).toEqual(all.toSorted());
    });

    test("concurrent takes at both get different messages, in order", async () => {
      await using hubs = await open();
      const [a, b] = hubs.both;
      await a.send(names(60));
      const taken = await Promise.all(Array.from({ length: 14 }, (_, i) => (i % 2 ? a : b).take(5)));
      expect(taken.flat()).toEqual([...names(60)]);
    });

    test("of different databases do not wake each other", async () => {
      await using one = await MailHubs.open(redis.url);
      await using other = await open();
      const [a, b] = other.both;
      const waiting = b.receive(PATIENCE_MS);
      await until(() => b.waiters.size === 1);
      await one.all[0]?.send(["m1"]);
      await a.send(["m2"]);
      expect(await waiting).toBe("m2");
      expect(await one.all[0]?.take()).toEqual(["m1"]);
    });
  });

  describe("a hub that", () => {
    test.each([
      ["dies before the commit of a take leaves the message to the others, at once", died],
      ["fails to commit a take leaves the message to the others, at once", refused],
    ] as const)("%s", async (_, transact) => {
      await using hubs = await open();
      const [a, b] = hubs.both;
      await a.send(["m1", "m2"]);
      void a.take(1, transact).catch(() => {});
      expect(await b.take(1)).toEqual(["m1"]);
      expect([await a.take(), await b.take()]).toEqual([["m2"], []]);
    });

    test("dies after the commit of a send and before its wake-up loses no message", async () => {
      await using hubs = await open();
      const [a, b] = hubs.both;
      await new EmbeddedMail(hubs.store).send(
        hubs.store.transact,
        message("m1", { content: "m1", toNode: "n1" }),
        "n1",
      );
      await a.send(["m2"]);
      expect([await b.receive(0), await b.receive(0)]).toEqual(["m1", "m2"]);
    });
  });

  describe("Redis", () => {
    test("stores nothing, and never gets the content of a message", async () => {
      await using hubs = await open();
      const [a, b] = hubs.both;
      await using subscription = await subscribe();
      await a.send(["m1", "m2"], { content: "secret words" });
      await a.post({ toNode: null, type: "alert", content: "secret words" });
      await b.take(1);
      await until(() => subscription.heard.length === 3);
      expect(subscription.heard.slice(0, 2)).toEqual(["n1", "n1"]);
      expect(subscription.heard[2]?.split(",").toSorted()).toEqual(["n1", "n2", "n3"]);
      expect(await redis.ask("DBSIZE")).toBe(0);
    });

    test("gets no wake-up for a refused send", async () => {
      await using hubs = await open();
      const [a] = hubs.both;
      await using subscription = await subscribe();
      await expect(a.send(["m1"], { toNode: "nobody" })).rejects.toThrow();
      await expect(a.mail.send(refused, message("m2"), "n2")).rejects.toThrow("refused");
      await a.send(["m3"], { toNode: "n3" });
      await until(() => subscription.heard.length > 0);
      expect(subscription.heard).toEqual(["n3"]);
    });
  });
});
