/**
 * Mail on Redis where it meets the store: several hubs, a hub that dies in between, a Redis that forgets, is full, hangs,
 * or is cut off for one hub and not for the other. Nothing may be lost, handed out twice, or out of its order.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { TICKETS_MAX } from "../../src/domain/limits.ts";
import { until } from "../e2e/program.ts";
import { RedisServer, withoutRedis } from "../support/redis.ts";
import type { Transact } from "../../src/store/store.ts";
import { Office, died, heldUp, refused } from "./office.ts";

/** Who is rung for by then was: who waits so long in vain is answered with nothing. */
const PATIENCE_MS = 15_000;

const names = (n: number, start = 0): readonly string[] =>
  Array.from({ length: n }, (_, i) => `m${start + i}`);

describe.skipIf(withoutRedis(true))("mail on Redis", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await RedisServer.start();
  });
  afterAll(() => redis.close());

  const open = () => Office.open(redis.url, redis.url);
  const held = (office: Office, key: string) => until(async () => (await office.keysIn(redis)).includes(key));

  /** How many have found something in another hub's hands, and were not rung for yet. */
  const wanted = async (office: Office) =>
    Number(await redis.ask("GET", `${await office.prefix()}wanted:n1`));

  describe("several hubs", () => {
    test("a message sent at one wakes who waits at another", async () => {
      await using office = await open();
      const [a, b] = office.both;
      const waiting = b.receive(10_000);
      await until(() => b.waiters.size === 1);
      expect(await a.send(["m1"])).toBe("redis");
      expect(await waiting).toBe("m1");
    });

    test("so does a broadcast, for each of its receivers", async () => {
      await using office = await open();
      const [a, b] = office.both;
      const waiting = ["n1", "n2", "n3"].map((nodeId) => b.receive(10_000, nodeId));
      await a.post({ toNode: null, type: "alert", content: "all" });
      expect(await Promise.all(waiting)).toEqual(["all", "all", "all"]);
    });

    test("of many receivers at both, each message goes to one", async () => {
      await using office = await open();
      const [a, b] = office.both;
      const all = names(300);
      const receivers = Array.from({ length: 30 }, async (_, i) => {
        const got: string[] = [];
        for (let name = " "; name !== ""; got.push(name)) name = await (i % 2 ? a : b).receive(1_000);
        return got.filter((name) => name !== "");
      });
      await Promise.all([a.send(all.slice(0, 150)), b.send(all.slice(150))]);
      const got = (await Promise.all(receivers)).flat();
      expect(got.toSorted()).toEqual(all.toSorted());
    });

    test("while one has a message in its hands, another takes the next of another sender", async () => {
      await using office = await open();
      const [a, b] = office.both;
      await a.send(["m1"], { fromNode: "x" });
      await a.send(["m2"], { fromNode: "x" });
      await a.send(["m3"], { fromNode: "y" });
      const { transact, letGo } = heldUp(office.store.transact);
      const first = a.take(1, transact);
      await held(office, "hands:n1");
      expect(await b.take()).toEqual(["m3"]); // not m2: it must not overtake m1
      await until(async () => (await wanted(office)) === 0); // that taking has rung its own bell
      const waiting = b.receive(PATIENCE_MS);
      await until(async () => (await wanted(office)) === 1); // he has found it there, and waits
      await using bells = await office.listen(redis);
      letGo();
      expect(await first).toEqual(["m1"]);
      expect(await bells.heard).toBe("n1"); // the hands are empty: nobody has to wait until they would be by themselves
      expect(await waiting).toBe("m2");
      expect([await a.take(), await b.take()]).toEqual([[], []]);
    });

    test.each([
      ["the next, when that was handed out", null, ["m1"], "m2"],
      ["that, when it was not", refused, [], "m1"],
    ] as const)(
      "who would not wait, and finds one in another's hands, gets %s",
      async (_, fate, first, then) => {
        await using office = await open();
        const [a, b] = office.both;
        await a.send(["m1", "m2"]);
        const { transact, letGo } = heldUp(fate ?? office.store.transact);
        const taking = a.take(1, transact).catch(() => []);
        await held(office, "hands:n1");
        const asked = b.receive(0);
        await held(office, "wanted:n1"); // he has found it there
        letGo();
        expect([await taking, await asked]).toEqual([first, then]);
      },
    );

    test("so do all who would not wait: each looks again", async () => {
      await using office = await open();
      const [a, b] = office.both;
      await a.send(["m1"]);
      const { transact, letGo } = heldUp(office.store.transact);
      const taking = a.take(1, transact);
      await held(office, "hands:n1");
      const looks = [0, 0, 0, 0, 0];
      const asked = looks.map((_, i) => {
        const counting: Transact = (load, decide) => {
          looks[i] = (looks[i] ?? 0) + 1;
          return office.store.transact(load, decide);
        };
        return b.receive(0, "n1", 1, counting);
      });
      await until(async () => (await wanted(office)) === asked.length);
      letGo();
      expect(await taking).toEqual(["m1"]);
      expect(await Promise.all(asked)).toEqual(["", "", "", "", ""]);
      for (const count of looks) expect(count).toBeGreaterThanOrEqual(3); // before, after, and to say that nothing is there
    });

    test("takes at one hub do not wait for one another: its store decides them in order", async () => {
      await using office = await Office.open(redis.url);
      const [a] = office.desks;
      await a?.send(["m1", "m2"]);
      const { transact, letGo } = heldUp(office.store.transact);
      const first = a?.take(1, transact);
      await held(office, "hands:n1");
      expect(await a?.take(1)).toEqual(["m1"]);
      letGo();
      expect(await first).toEqual(["m2"]);
    });

    test("of different databases share a Redis and nothing else", async () => {
      await using one = await Office.open(redis.url);
      await using other = await Office.open(redis.url);
      await one.desks[0]?.send(["m1"]);
      expect(await other.desks[0]?.take()).toEqual([]);
      expect(await one.desks[0]?.take()).toEqual(["m1"]);
    });
  });

  // At once, for most of it is waiting; each has a database of its own in the Redis.
  describe.concurrent("a hub that dies", () => {
    test("between its ticket and the commit of the handing out: another hands it out, once, and rings", async () => {
      await using office = await open();
      const [a, b] = office.both;
      await a.send(["m1"]);
      await a.send(["m2"]);
      void a.take(1, died);
      await held(office, "hands:n1");
      expect(await b.receive(PATIENCE_MS)).toBe("m1");
      expect([await a.take(), await b.take()]).toEqual([["m2"], []]);
    });

    test("its message comes back although the mailbox is in use all the while", async () => {
      await using office = await open();
      const [a, b] = office.both;
      await a.send(["m1"]);
      void a.take(1, died);
      await held(office, "hands:n1");
      const got: string[] = [];
      await until(
        async () => {
          await b.send([`y${got.length}`], { fromNode: "y" });
          got.push(...(await b.take()));
          return got.includes("m1");
        },
        PATIENCE_MS,
        100,
      );
      expect(got.length).toBeGreaterThan(2); // it was in use; how often is the machine's to say
    });

    test("after that commit, before its hands were empty: the message stays handed out", async () => {
      await using office = await open();
      const [a, b] = office.both;
      await a.send(["m1", "m2"]);
      expect(await a.take(1)).toEqual(["m1"]);
      // As if its hands had been emptied by time, and the ticket were there once more.
      await redis.ask("LPUSH", `${await office.prefix()}box:n1`, "m1");
      expect(await b.take(1)).toEqual(["m2"]);
      expect([await a.take(), await b.take()]).toEqual([[], []]);
    });

    test("between the ticket and the commit of the sending: nothing is handed out for it", async () => {
      await using office = await open();
      const [a, b] = office.both;
      void a.mail.send(died, { ...SENT, messageId: "ghost" }, "n1");
      await held(office, "box:n1");
      await a.send(["m1"]);
      expect(await b.take(1)).toEqual(["m1"]);
      expect(await b.take()).toEqual([]);
    });

    test("one that is only slow finds its message handed out by the other, and hands out nothing", async () => {
      await using office = await open();
      const [a, b] = office.both;
      await a.send(["m1"]);
      const { transact, letGo } = heldUp(office.store.transact);
      const slow = a.take(1, transact);
      await held(office, "hands:n1");
      expect(await b.receive(PATIENCE_MS)).toBe("m1");
      letGo();
      expect(await slow).toEqual([]);
    });

    test("a handing out that is refused gives its message free at once", async () => {
      await using office = await open();
      const [a, b] = office.both;
      await a.send(["m1"]);
      const { transact, letGo } = heldUp(refused);
      const failing = a.take(1, transact);
      await held(office, "hands:n1");
      const waiting = b.receive(PATIENCE_MS);
      await held(office, "wanted:n1");
      await using bells = await office.listen(redis);
      letGo();
      await expect(failing).rejects.toThrow("refused");
      expect(await bells.heard).toBe("n1");
      expect(await waiting).toBe("m1");
    });

    test("a sending that is refused leaves no ticket behind", async () => {
      await using office = await open();
      const [a] = office.both;
      await expect(a.send(["m1"], { toNode: "nobody" })).rejects.toThrow();
      await expect(a.mail.send(refused, { ...SENT, messageId: "m2" }, "n3")).rejects.toThrow("refused");
      await until(async () => !(await office.keysIn(redis)).some((key) => key.startsWith("box:")));
      expect(await a.take()).toEqual([]);
    });
  });

  describe("a Redis that", () => {
    test("forgets everything: each look finds what waits, in order, once", async () => {
      await using office = await open();
      const [a, b] = office.both;
      await a.send(names(5));
      await redis.ask("FLUSHALL");
      await a.send(names(5, 5));
      expect([await b.take(3), await a.take(3), await b.take(), await a.take()]).toEqual([
        names(3),
        names(3, 3),
        names(4, 6),
        [],
      ]);
    });

    test("lost one ticket in the middle hands out in the old order", async () => {
      await using office = await open();
      const [a, b] = office.both;
      await a.send(names(3));
      await redis.ask("LREM", `${await office.prefix()}box:n1`, "1", "m0");
      expect([await b.take(1), await b.take(1), await a.take(1), await a.take()]).toEqual([
        ["m0"],
        ["m1"],
        ["m2"],
        [],
      ]);
    });

    test("has no room for more tickets of a mailbox is asked for no more, and nothing stays behind", async () => {
      await using office = await Office.open(redis.url);
      const [a] = office.desks;
      const all = names(TICKETS_MAX + 5);
      await Promise.all(all.map((name) => a?.send([name])));
      expect(await redis.ask("LLEN", `${await office.prefix()}box:n1`)).toBe(TICKETS_MAX);
      const got = [...((await a?.take(1_000)) ?? []), ...((await a?.take(1_000)) ?? [])];
      expect(got.toSorted()).toEqual(all.toSorted());
    });

    test("keeps no content, and every key for a time only", async () => {
      await using office = await open();
      const [a] = office.both;
      await a.send(["m1", "m2"], { content: "secret words" });
      void a.take(1, died);
      await held(office, "hands:n1");
      const prefix = await office.prefix();
      for (const key of await office.keysIn(redis)) {
        expect(Number(await redis.ask("PTTL", prefix + key))).toBeGreaterThan(0);
        expect(String(await redis.ask("DUMP", prefix + key))).not.toContain("secret words");
      }
    });
  });
});

const SENT = {
  fromNode: "op",
  toNode: "n1",
  type: "text",
  content: "ghost",
  requireAck: false,
  sentAt: 0,
} as const;
