/**
 * A Redis that fails while hubs use it: full, frozen, cut off for one hub and not for the other, gone. What one hub sends
 * by the store and another by Redis comes out in order all the same.
 */
import { describe, expect, test } from "bun:test";
import { until } from "../e2e/program.ts";
import { HANG_MS } from "../support/hang.ts";
import { RedisServer, withoutRedis } from "../support/redis.ts";
import { type Desk, Office } from "./office.ts";

const carries = (desk: Desk, transport: string) => until(() => desk.mail.transport === transport);

/** A way to a port that can be cut: nothing goes through, and nobody is told. */
function openWire(server: string) {
  const { hostname, port } = new URL(server);
  const ends = new Set<{ terminate(): void }>();
  const pipes = new WeakMap<object, Bun.Socket<undefined>>();
  let isCut = false;
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      async open(near) {
        ends.add(near);
        near.pause();
        if (isCut) return;
        const far = await Bun.connect({
          hostname,
          port: Number(port),
          socket: {
            data: (_, bytes) => void (isCut || near.write(bytes)),
            close: () => void near.end(),
          },
        });
        ends.add(far);
        pipes.set(near, far);
        near.resume();
      },
      data: (near, bytes) => void (isCut || pipes.get(near)?.write(bytes)),
      close: (near) => void pipes.get(near)?.end(),
    },
  });
  return {
    url: `redis://127.0.0.1:${listener.port}`,
    cut: (cut: boolean): void => {
      isCut = cut;
      if (!cut) for (const end of ends) end.terminate(); // what was cut in the middle is of no use
    },
    close: (): void => {
      listener.stop(true);
      for (const end of ends) end.terminate();
    },
  };
}

describe.skipIf(withoutRedis(true))("a Redis that", () => {
  test("is full counts as away, and is back when it has room; two hubs say each once", async () => {
    await using redis = await RedisServer.start("--maxmemory-policy", "noeviction");
    await using office = await Office.open(redis.url, redis.url);
    const [a, b] = office.both;
    expect(await a.send(["m1"])).toBe("redis");
    await redis.ask("CONFIG", "SET", "maxmemory", "1");
    expect(await a.send(["m2"])).toBe("sqlite");
    expect(await b.send(["m3"])).toBe("sqlite");
    expect(await b.take()).toEqual(["m1", "m2", "m3"]);
    await until(() => office.logged.some((line) => line.includes("OOM")));
    const tries = async () =>
      Number(/total_connections_received:(\d+)/.exec(String(await redis.ask("INFO", "stats")))?.[1]);
    const enough = (await tries()) + 12; // two for each try of each hub; asking is one too
    await until(async () => (await tries()) > enough, HANG_MS, 100);
    expect([a.mail.transport, b.mail.transport]).toEqual(["sqlite", "sqlite"]); // no fluttering
    expect(await office.changes()).toEqual(["redis sqlite"]);
    await redis.ask("CONFIG", "SET", "maxmemory", "0");
    await Promise.all([carries(a, "redis"), carries(b, "redis")]);
    expect(await a.send(["m4"])).toBe("redis");
    expect(await b.take()).toEqual(["m4"]);
    await until(async () => (await office.changes()).length === 2);
    expect(await office.changes()).toEqual(["redis sqlite", "sqlite redis"]);
  });

  test("hangs holds nobody up for longer than a command may take, and is back by itself", async () => {
    await using redis = await RedisServer.start();
    await using office = await Office.open(redis.url, redis.url);
    const [a, b] = office.both;
    await a.send(["m0"]);
    redis.freeze();
    const sent = await Promise.all([a.send(["m1"]), a.send(["m2"]), b.send(["m3"]), b.take(1)]);
    expect(sent).toEqual(["sqlite", "sqlite", "sqlite", ["m0"]]); // it hangs still: who waited for it would for ever
    expect([a.mail.transport, b.mail.transport]).toEqual(["sqlite", "sqlite"]); // who comes later does not ask it
    expect((await b.take()).toSorted()).toEqual(["m1", "m2", "m3"]);
    redis.thaw();
    await Promise.all([carries(a, "redis"), carries(b, "redis")]);
    expect(await a.send(["m4"])).toBe("redis");
    expect([await b.take(), await a.take()]).toEqual([["m4"], []]);
  });

  test("hangs while a hub has nothing to do is noticed all the same", async () => {
    await using redis = await RedisServer.start();
    await using office = await Office.open(redis.url);
    redis.freeze();
    await until(() => office.desks[0]?.mail.transport === "sqlite");
    redis.thaw();
    await until(() => office.desks[0]?.mail.transport === "redis");
  });

  test("is cut off for one hub only: what it sends by the store keeps its place at the other", async () => {
    await using redis = await RedisServer.start();
    const wire = openWire(redis.url);
    try {
      await using office = await Office.open(wire.url, redis.url);
      const [a, b] = office.both;
      expect([await a.send(["m0"]), await b.send(["m1"])]).toEqual(["redis", "redis"]);
      wire.cut(true);
      expect([await a.send(["m2"]), await b.send(["m3"])]).toEqual(["sqlite", "redis"]);
      expect([await a.send(["m4"]), await b.send(["m5"])]).toEqual(["sqlite", "redis"]);
      expect([await b.take(3), await a.take(1), await b.take(9)]).toEqual([
        ["m0", "m1", "m2"],
        ["m3"],
        ["m4", "m5"],
      ]);
      wire.cut(false);
      await carries(a, "redis");
      expect(await a.send(["m6"])).toBe("redis");
      expect([await a.take(), await b.take()]).toEqual([["m6"], []]);
      await until(async () => (await office.changes()).length === 2);
      expect(await office.changes()).toEqual(["redis sqlite", "sqlite redis"]);
    } finally {
      wire.close();
    }
  });

  test("forgets everything in a restart under two hubs: all is found, in order, and who waits is woken again", async () => {
    await using redis = await RedisServer.start();
    await using office = await Office.open(redis.url, redis.url);
    const [a, b] = office.both;
    await a.send(["m1", "m2"]);
    await redis.kill();
    await Promise.all([carries(a, "sqlite"), carries(b, "sqlite")]);
    await b.send(["m3"]);
    await redis.run();
    await Promise.all([carries(a, "redis"), carries(b, "redis")]);
    await a.send(["m4"]);
    expect([await b.take(3), await a.take(), await b.take()]).toEqual([["m1", "m2", "m3"], ["m4"], []]);
    const waiting = b.receive(10_000);
    await until(() => b.waiters.size === 1);
    await a.send(["m5"]); // the subscription is there again too
    expect(await waiting).toBe("m5");
  });

  test("is reached by a user with no more rights than the README names", async () => {
    await using redis = await RedisServer.start();
    const commands = [
      ..."hello evalsha script|load lrem publish subscribe ping llen rpush lpop pexpire".split(" "),
      ..."time get incr decr zadd zrem zrange zremrangebyscore".split(" "),
    ];
    const rights = commands.map((name) => `+${name}`);
    const rules = ["on", ">s3", "~luxhub:*", "&luxhub:*", ...rights];
    await redis.ask("ACL", "SETUSER", "hub", ...rules);
    const url = redis.url.replace("//", "//hub:s3@");
    await using office = await Office.open(url, url);
    const [a, b] = office.both;
    const waiting = b.receive(10_000);
    expect(await a.send(["m1"])).toBe("redis");
    expect(await waiting).toBe("m1");
    await expect(a.send(["m2"], { toNode: "nobody" })).rejects.toThrow();
    expect(await a.send(["m3"])).toBe("redis");
  });
});
