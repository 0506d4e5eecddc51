/**
 * Which endpoint needs which credentials (docs/security.md), and the real `luxhub keys` while the hub runs: the tests
 * start its periodic work; e2e/cli.test.ts tests that the timer starts it. No secret is stored.
 */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileEndpoints } from "../../src/api/files.ts";
import { ENDPOINTS } from "../../src/api/routes.ts";
import { hashSecret } from "../../src/service/keys.ts";
import { ADMIN_KEY, SECRET, newDataDir, startHub } from "../support/hub.ts";
import { play } from "../support/transcript.ts";
import { addKey, as, keys, runKeys } from "./key-commands.ts";
import { NO_ID, ok } from "./scene.ts";

/** What the specification says: `public` is open on A. rights.test.ts tests that each declaration holds. */
const CREDENTIALS = {
  public: `GET node/list, GET node/:node_id, GET task/list, GET task/stats, GET file/download/:file_id, GET file/list,
    GET status, GET events, GET pg/diagnostic, GET poll`,
  secret: `POST node/register, POST node/heartbeat, POST task/create, POST task/assign, POST task/claim,
    POST task/complete, POST task/batch-assign, GET task/pull, POST agent/message, GET agent/messages,
    POST agent/broadcast, POST agent/ack, POST message/send, POST message/receive, POST message/broadcast,
    POST message/ack, GET message/history, POST signin, GET lux/ledger, GET lux/entries, GET lux/head,
    POST file/upload, POST file/delete, DELETE file/:file_id`,
  admin: `POST task/revoke, POST task/delete, GET key/list, POST key/add, POST key/revoke`,
};

test("every endpoint of the specification requires its credentials", () => {
  const declared = new Map(
    [...ENDPOINTS, ...fileEndpoints(1)].map(({ method, path, auth }) => [
      `${method} ${path.replace("/api/v1/", "")}`,
      auth,
    ]),
  );
  for (const [auth, endpoints] of Object.entries(CREDENTIALS))
    for (const endpoint of endpoints.split(/,\s+/))
      expect([endpoint, declared.get(endpoint)]).toEqual([endpoint, auth as "public"]);
});

// Each starts the program a few times: side by side.
describe.concurrent("luxhub keys", () => {
  test("a key is valid when the command that makes it ends", async () => {
    await using hub = await startHub();
    for (let i = 0; i < 4; i++) {
      const secret = (await runKeys(hub, "add", `key-${i}`, "--variant", "B")).trim();
      const chief = (await runKeys(hub, "add", `admin-${i}`, "--admin")).trim();
      await play(
        hub,
        `as $k GET status -> variant B
        as $k with {X-Admin-Key: ${chief}} task/delete {task_id: ${NO_ID}} -> 404 task_not_found`,
        { k: { secret } },
      );
    }
  });

  test("makes, pins, expires and revokes keys, the first ones as well", async () => {
    await using hub = await startHub();
    const secret = await addKey(hub, "short", { expires_in_s: 60, role: "viewer", node_id: "n1" });
    expect(await keys(hub, "list")).toMatch(/\nshort +viewer +- +n1 +- +.* +valid +-\n/);
    hub.clock.pass(60_000);
    const names = { k: { secret } };
    await play(hub, "as $k B GET status -> 401 unauthorized", names);
    await keys(hub, "expire", "short", "never");
    await play(hub, "as $k B GET status", names);
    await keys(hub, "pin", "primary", "B");
    expect(await ok(hub.get("/status", { answeredIn: "B" }))).toMatchObject({ variant: "B" });
    await play(hub, "anon GET status -> variant A"); // the listener's
    await keys(hub, "pin", "primary", "none");
    await play(hub, "GET status -> variant A");
    await keys(hub, "revoke", "primary");
    await keys(hub, "revoke", "primary-admin");
    await play(
      hub,
      `B GET status -> 401 unauthorized
      as $k admin key/list -> 405 method_not_allowed
      as $k admin GET key/list -> 403 admin_key_required`,
      names,
    );
  });

  test("a key that another process made is found where wrong secrets are looked up no more", async () => {
    await using hub = await startHub({ alone: "wrongSecrets" });
    const versionFor = async (secret: string): Promise<unknown> =>
      (await ok(hub.get("/status", as(secret))))["version"];
    for (let i = 0; i <= 20; i++) expect(await versionFor(`guess ${i}`)).toBe("1.5");
    let isUnknown = false;
    for (let i = 0; i < 5 && !isUnknown; i++) {
      const later = (await runKeys(hub, "add", `later-${i}`, "--variant", "B")).trim();
      isUnknown = (await versionFor(later)) === "1.5"; // unless the hub's timer has just refreshed the keys
      await hub.sweep();
      expect(await versionFor(later)).toBe("1.0");
    }
    expect(isUnknown).toBe(true);
  });

  test("keys survive a restart, and no secret is stored or listed", async () => {
    const dataDir = newDataDir();
    try {
      let secret = "";
      {
        await using hub = await startHub({ dataDir });
        secret = await addKey(hub, "stays", { variant: "B", node_id: "n1" });
        const { body } = await hub.get("/key/list", { headers: { "X-Admin-Key": ADMIN_KEY } });
        for (const hidden of [secret, SECRET, ADMIN_KEY].flatMap((word) => [word, hashSecret(word)]))
          expect(JSON.stringify(body)).not.toContain(hidden);
        await keys(hub, "revoke", "primary");
      }
      await using hub = await startHub({ dataDir });
      const lines = "as $k GET status -> variant B\nB GET status -> 401 unauthorized";
      await play(hub, lines, { k: { secret } });
      expect(await keys(hub, "list")).toContain("stays");
      for await (const name of new Bun.Glob("**/*").scan(dataDir)) {
        const bytes = Buffer.from(await Bun.file(join(dataDir, name)).bytes());
        expect([name, bytes.includes(secret)]).toEqual([name, false]);
      }
    } finally {
      rmSync(dataDir, { recursive: true });
    }
  });
});
