/**
 * A Redis that fails while hubs use it: full, frozen, forbidden, cut off for one of two hubs, restarted empty. Messages
 * are still delivered in order, and `transport` is the transport that was used.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { until } from "../e2e/program.ts";
import { HANG_MS } from "../support/hang.ts";
import { RedisServer, withoutRedis } from "../support/redis.ts";
import { type MailHub, MailHubs } from "./hubs.ts";

const carries = (hub: MailHub, transport: string) => until(() => hub.mail.transport === transport);

/** A TCP proxy whose connections can be made to stall: nothing goes through, and nothing is closed. */
function openProxy(server: string) {
  const { hostname, port } = new URL(server);
  const ends = new Set<{ terminate(): void }>();
  const pipes = new WeakMap<object, Bun.Socket<undefined>>();
  let isStalled = false;
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      async open(near) {
        ends.add(near);
        near.pause();
        if (isStalled) return;
        const far = await Bun.connect({
          hostname,
          port: Number(port),
          socket: {
            data: (_, bytes) => void (isStalled || near.write(bytes)),
            close: () => void near.end(),
          },
        });
        ends.add(far);
        pipes.set(near, far);
        near.resume();
      },
      data: (near, bytes) => void (isStalled || pipes.get(near)?.write(bytes)),
      close: (near) => void pipes.get(near)?.end(),
    },
  });
  return {
    url: `redis://127.0.0.1:${listener.port}`,
    stall: (stalled: boolean): void => {
      isStalled = stalled;
      if (!stalled) for (const end of ends) end.terminate(); // a stream with a gap is useless
    },
    close: (): void => {
      listener.stop(true);
      for (const end of ends) end.terminate();
    },
  };
}

describe.skipIf(withoutRedis(true))("a Redis that", () => {
  test("is full still carries wake-ups", async () => {
    await using redis = await RedisServer.start("--maxmemory-policy", "noeviction");
    await using hubs = await MailHubs.open(redis.url, redis.url);
    const [a, b] = hubs.both;
    await redis.ask("CONFIG", "SET", "maxmemory", "1");
    const waiting = b.receive(10_000);
    await until(() => b.waiters.size === 1);
    expect(await a.send(["m1"])).toBe("redis");
    expect(await waiting).toBe("m1");
  });

  test("forbids PUBLISH is unavailable until it allows it again; two hubs log each change once", async () => {
    await using redis = await RedisServer.start();
    await using hubs = await MailHubs.open(redis.url, redis.url);
    const [a, b] = hubs.both;
    expect(await a.send(["m1"])).toBe("redis");
    await redis.ask("ACL", "SETUSER", "default", "-publish");
    expect(await a.send(["m2"])).toBe("sqlite");
    expect(await b.send(["m3"])).toBe("sqlite");
    expect(await b.take()).toEqual(["m1", "m2", "m3"]);
    await until(() =>
      hubs.logged.some((line) => line.includes("redis is unavailable") && /publish/i.test(line)),
    );
    const attempts = async () =>
      Number(/total_connections_received:(\d+)/.exec(String(await redis.ask("INFO", "stats")))?.[1]);
    const enough = (await attempts()) + 12; // two for each attempt of each hub, and one for each question
    await until(async () => (await attempts()) > enough, HANG_MS, 100);
    expect([a.mail.transport, b.mail.transport]).toEqual(["sqlite", "sqlite"]); // no flapping
    expect(await hubs.changes()).toEqual(["redis sqlite"]);
    await redis.ask("ACL", "SETUSER", "default", "+publish");
    await Promise.all([carries(a, "redis"), carries(b, "redis")]);
    expect(await a.send(["m4"])).toBe("redis");
    expect(await b.take()).toEqual(["m4"]);
    await until(async () => (await hubs.changes()).length === 2);
    expect(await hubs.changes()).toEqual(["redis sqlite", "sqlite redis"]);
  });

  test("hangs delays no request for longer than the timeout of a command, and is used again when it is back", async () => {
    await using redis = await RedisServer.start();
    await using hubs = await MailHubs.open(redis.url, redis.url);
    const [a, b] = hubs.both;
    await a.send(["m0"]);
    redis.freeze();
    const sent = await Promise.all([a.send(["m1"]), a.send(["m2"]), b.send(["m3"]), b.take(1)]);
    expect(sent).toEqual(["sqlite", "sqlite", "sqlite", ["m0"]]); // it still hangs: a request that waited for it would never end
    expect([a.mail.transport, b.mail.transport]).toEqual(["sqlite", "sqlite"]); // later requests do not ask it
    expect((await b.take()).toSorted()).toEqual(["m1", "m2", "m3"]);
    redis.thaw();
    await Promise.all([carries(a, "redis"), carries(b, "redis")]);
    expect(await a.send(["m4"])).toBe("redis");
    expect([await b.take(), await a.take()]).toEqual([["m4"], []]);
  });

  test("hangs while a hub is idle is noticed", async () => {
    await using redis = await RedisServer.start();
    await using hubs = await MailHubs.open(redis.url);
    redis.freeze();
    await until(() => hubs.all[0]?.mail.transport === "sqlite");
    redis.thaw();
    await until(() => hubs.all[0]?.mail.transport === "redis");
  });

  test("is cut off for one hub only: the messages of that hub keep their order", async () => {
    await using redis = await RedisServer.start();
    const proxy = openProxy(redis.url);
    try {
      await using hubs = await MailHubs.open(proxy.url, redis.url);
      const [a, b] = hubs.both;
      expect([await a.send(["m0"]), await b.send(["m1"])]).toEqual(["redis", "redis"]);
      proxy.stall(true);
      expect([await a.send(["m2"]), await b.send(["m3"])]).toEqual(["sqlite", "redis"]);
      expect([await a.send(["m4"]), await b.send(["m5"])]).toEqual(["sqlite", "redis"]);
      expect([await b.take(3), await a.take(1), await b.take(9)]).toEqual([
        ["m0", "m1", "m2"],
        ["m3"],
        ["m4", "m5"],
      ]);
      proxy.stall(false);
      await carries(a, "redis");
      expect(await a.send(["m6"])).toBe("redis");
      expect([await a.take(), await b.take()]).toEqual([["m6"], []]);
      await until(async () => (await hubs.changes()).length === 2);
      expect(await hubs.changes()).toEqual(["redis sqlite", "sqlite redis"]);
    } finally {
      proxy.close();
    }
  });

  test("restarts empty under two hubs: all messages are found, in order, and receivers are woken again", async () => {
    await using redis = await RedisServer.start();
    await using hubs = await MailHubs.open(redis.url, redis.url);
    const [a, b] = hubs.both;
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

  test("restricts its user to the rights that docs/redis.md names", async () => {
    await using redis = await RedisServer.start();
    const page = await Bun.file(join(import.meta.dir, "../../docs/redis.md")).text();
    const commands = [...page.matchAll(/`([A-Z]+(?: [A-Z]+)?)`/g)].map(([, name = ""]) => name);
    expect(commands).toContain("PUBLISH");
    const rights = commands.map((name) => `+${name.toLowerCase().replace(" ", "|")}`);
    const rules = ["on", ">s3", "&luxhub:*", ...rights];
    await redis.ask("ACL", "SETUSER", "hub", ...rules);
    const url = redis.url.replace("//", "//hub:s3@");
    await using hubs = await MailHubs.open(url, url);
    const [a, b] = hubs.both;
    const waiting = b.receive(10_000);
    await until(() => b.waiters.size === 1);
    expect(await a.send(["m1"])).toBe("redis");
    expect(await waiting).toBe("m1");
  });
});
