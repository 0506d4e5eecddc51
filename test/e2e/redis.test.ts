/**
 * A Redis that fails under load, in short (bun run torture has the long form), and what the program logs about a Redis
 * that it cannot use.
 */
import { describe, expect, test } from "bun:test";
import { OWN_HOST, freePort } from "../support/keeper.ts";
import { RedisServer, withoutRedis } from "../support/redis.ts";
import { cutOneHub } from "../../tools/torture/redis.ts";
import { Hub, TempDir, run, until } from "./program.ts";

const OPENSSL = Bun.which("openssl");

describe.skipIf(withoutRedis(true))("redis", () => {
  for (const cut of ["frozen", "killed"] as const)
    test(`${cut} under load: no message lost, repeated or out of order`, async () => {
      const {
        sent,
        received,
        acked,
        caughtUpMs: _,
        transports,
        ...rest
      } = await cutOneHub(cut, {
        aroundMs: 100,
        cutMs: 1_200,
      });
      expect(rest).toEqual({
        refused: [],
        lost: [],
        twice: [],
        disordered: [],
        changes: ["sqlite", "redis"],
      });
      expect(transports).toEqual(["redis", "sqlite", "redis"]);
      expect([received, acked > 0]).toEqual([sent, true]);
    });

  test("one that refuses the password: one log line, the hub serves, and uses it once the password is right", async () => {
    await using redis = await RedisServer.start("--requirepass", "geheim-1");
    using dir = new TempDir();
    const url = redis.url.replace("//", "//:wrong-geheim-2@");
    await using hub = await Hub.start({ data: dir.join("data"), env: { LUXHUB_REDIS: url } });
    expect((await hub.get("/status")).body).toMatchObject({ status: "ok", transport: "sqlite" });
    await hub.register("n1");
    const sent = await hub.post("/message/send", { from_node: "op", to_node: "n1", content: "x" });
    expect(sent.body).toMatchObject({ success: true, transport: "sqlite" });
    await hub.program.printed(
      /redis is unavailable; messages use sqlite .*refuses the user name or the password/,
    );
    await redis.ask("ACL", "SETUSER", "default", ">wrong-geheim-2");
    await until(async () => (await hub.get("/status")).body["transport"] === "redis");
    await hub.stop();
    // However often it was retried.
    expect(hub.program.stdout.match(/refuses the user name/g)).toHaveLength(1);
    expect(hub.program.stdout.match(/messages use redis/g)).toHaveLength(1);
    expect(hub.program.stdout + hub.program.stderr).not.toContain("geheim");
  });

  test("one whose password has a % in it, not escaped: it may be unavailable at the start, and fail at any time", async () => {
    await using redis = await RedisServer.start("--requirepass", "50%off");
    using dir = new TempDir();
    const url = redis.url.replace("//", "//:50%off@");
    await redis.kill();
    await using hub = await Hub.start({ data: dir.join("data"), env: { LUXHUB_REDIS: url } });
    const carries = (transport: string) =>
      until(async () => (await hub.get("/status")).body["transport"] === transport);
    await redis.run();
    await carries("redis");
    await redis.kill();
    await carries("sqlite");
    await redis.run();
    await carries("redis");
    expect((await hub.stop()).code).toBe(0);
  });

  test.skipIf(OPENSSL === null)(
    `over TLS: its certificate must be trusted${OPENSSL === null ? " (there is no openssl to make one with)" : ""}`,
    async () => {
      using dir = new TempDir();
      const [cert, key, port] = [dir.join("cert.pem"), dir.join("key.pem"), freePort()];
      const names = ["-subj", "/CN=localhost", "-addext", `subjectAltName=IP:${OWN_HOST}`];
      const files = ["-keyout", key, "-out", cert, "-days", "1"];
      const words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", ...files, ...names];
      await Bun.spawn([OPENSSL ?? "", ...words], { stderr: "ignore" }).exited;
      const tls = ["--tls-port", String(port), "--tls-cert-file", cert, "--tls-key-file", key];
      await using _redis = await RedisServer.start(...tls, "--tls-auth-clients", "no");
      const env = { LUXHUB_REDIS: `rediss://${OWN_HOST}:${port}` };
      const data = dir.join("data");
      {
        await using hub = await Hub.start({ data, env });
        await hub.program.printed(/redis is unavailable.*its certificate is not trusted/);
        await hub.stop();
      }
      await using hub = await Hub.start({ data, env: { ...env, NODE_EXTRA_CA_CERTS: cert } });
      expect((await hub.get("/status")).body).toMatchObject({ transport: "redis" });
    },
  );

  test("a hub whose Redis hangs shuts down in order", async () => {
    await using redis = await RedisServer.start();
    using dir = new TempDir();
    await using hub = await Hub.start({ data: dir.join("data"), env: { LUXHUB_REDIS: redis.url } });
    redis.freeze();
    expect((await hub.stop()).code).toBe(0);
  });
});

test("no Redis at the address: one log line, and the hub serves", async () => {
  using dir = new TempDir();
  const env = { LUXHUB_REDIS: `redis://:geheim@${OWN_HOST}:${freePort()}` };
  await using hub = await Hub.start({ data: dir.join("data"), env });
  expect((await hub.get("/status")).body).toMatchObject({ status: "ok", transport: "sqlite" });
  await hub.stop();
  const { stdout } = hub.program;
  expect(stdout.match(/redis is unavailable; messages use sqlite/g)).toHaveLength(1);
  expect(stdout).toContain("it cannot be reached (ECONNREFUSED)");
  expect(stdout).not.toContain("geheim");
});

describe("an invalid URL is refused, without its password", () => {
  for (const url of [
    "geheim",
    "http://:geheim@h",
    "redis://",
    "redis://:geheim@h/x",
    "redis://:geheim@h:99999",
  ])
    test(url, async () => {
      const { code, stderr } = await run(["serve", "--redis", url]);
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr: expect.stringMatching(/^luxhub: --redis must be redis:\/\/.*\n$/),
      });
      expect(stderr).not.toContain("geheim");
    });
});
