/** Limits on simultaneous uploads, streams and keys: one more is refused with a problem, and a freed slot can be used. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type Share, shareOfAddress, shareOfKey } from "../../src/api/caller-shares.ts";
import type { Call } from "../../src/api/endpoint.ts";
import { EventStreams } from "../../src/api/stream.ts";
import { accept } from "../../src/domain/decision.ts";
import {
  KEYS_MAX,
  STREAM_SHARES,
  UPLOAD_SHARES,
  ANSWERS_EVICT_EVERY_MS,
  ANSWERS_OF_KEY_MAX_BYTES,
  CONTENT_MAX_BYTES,
  MESSAGES_ANSWER_MAX_BYTES,
} from "../../src/domain/limits.ts";
import { openLog } from "../../src/lib/log.ts";
import { hashSecret } from "../../src/service/keys.ts";
import { compareNoMore } from "../support/new-database.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { run, until } from "../e2e/program.ts";
import { RawConnection, uploadOf } from "../e2e/raw.ts";
import { ADMIN_KEY, SECRET, newDataDir, startHub, type TestHub } from "../support/hub.ts";
import { addKey, as } from "./key-commands.ts";
import { ok, refused } from "./scene.ts";

const FLEET: Share = { kind: "fullKey", name: "primary" };

test("the limits have their documented values", () => {
  expect([STREAM_SHARES.keys, UPLOAD_SHARES.keys, KEYS_MAX]).toEqual([20_000, 256, 1_000]);
});

test("too many uploads of a key at once are 429 with Retry-After, and each one that ends frees its place", async () => {
  await using hub = await startHub({ variants: ["A"] });
  const { head, before, after } = uploadOf(5);
  const begin = async (): Promise<RawConnection> => {
    const connection = await RawConnection.open(hub.port());
    connection.send(withSecret(head) + before);
    return connection;
  };
  const open = await Promise.all(Array.from({ length: UPLOAD_SHARES.fullKey }, begin));
  const isFull = async (): Promise<boolean> => {
    const { status, headers, body } = await hub.post("/file/upload", form());
    if (status === 200) return false;
    expect([status, headers.get("retry-after"), body["error"]]).toEqual([429, "1", "too_many_calls"]);
    return true;
  };
  await until(isFull);
  // One hangs up, one is refused, one ends well: each makes room for one.
  open[0]?.cut();
  await until(async () => !(await isFull()));
  const refused = await begin();
  await until(isFull);
  refused.send(`\r\n--no-end`);
  refused.cut();
  await until(async () => !(await isFull()));
  open[1]?.send(`hello${after}`);
  await open[1]?.got(/^HTTP\/1\.1 200 /);
  for (const connection of open) connection.cut();
  // All of them: as many again fit at once, when the hub has noticed that the others are gone.
  await until(async () => {
    const again = await Promise.all(Array.from({ length: UPLOAD_SHARES.fullKey }, begin));
    for (const connection of again) connection.send(`hello${after}`);
    await until(() => again.every(({ received }) => received !== ""));
    for (const connection of again) connection.cut();
    return again.every(({ received }) => received.startsWith("HTTP/1.1 200 "));
  });
});

test("a key that is bound to a node has at most 16 uploads at once, and others have theirs meanwhile", async () => {
  await using hub = await startHub({ variants: ["A"] });
  await hub.post("/node/register", { node_id: "n1", name: "n" });
  const robot = await addKey(hub, "robot", { node_id: "n1" });
  const { head, before, after } = uploadOf(5);
  const open = await Promise.all(
    Array.from({ length: UPLOAD_SHARES.limitedKey }, async () => {
      const connection = await RawConnection.open(hub.port());
      connection.send(head.replace(/X-Matrix-Secret: .*/, `X-Matrix-Secret: ${robot}`) + before);
      return connection;
    }),
  );
  const another = () => hub.post("/file/upload", form(), as(robot));
  await until(async () => (await another()).status !== 200); // all of them have begun
  const { status, headers, body } = await another();
  expect([status, headers.get("retry-after"), body["error"]]).toEqual([429, "1", "too_many_calls"]);
  expect(body["detail"]).toStartWith(
    `${UPLOAD_SHARES.limitedKey} of your uploads run at once, which is the limit.`,
  );
  const withFile = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "t" }, { raw: btoa("x") }] };
  const throughA2a = await sendMessage(hub, robot, withFile);
  expect([throughA2a.status, await throughA2a.json()]).toEqual([
    429,
    expect.objectContaining({ error: "too_many_calls", detail: body["detail"] }),
  ]);
  const withoutFile = { ...withFile, messageId: "m2", parts: [{ text: "t" }] };
  expect((await sendMessage(hub, robot, withoutFile)).status).toBe(200);
  expect((await hub.post("/file/upload", form())).status).toBe(200);
  open[0]?.send(`hello${after}`);
  await open[0]?.got(/^HTTP\/1\.1 200 /);
  expect((await another()).status).toBe(200);
  for (const connection of open) connection.cut();
});

/** Sends a message through A2A, and does not wait for its task. */
function sendMessage(hub: TestHub, secret: string, message: object): Promise<Response> {
  return fetch(`${hub.base()}/a2a/message:send`, {
    method: "POST",
    headers: {
      "A2A-Version": "1.0",
      "Content-Type": "application/a2a+json",
      Authorization: `Bearer ${secret}`,
    },
    body: JSON.stringify({ message, configuration: { returnImmediately: true } }),
  });
}

/** The helpers of e2e speak with the secret of their own hub. */
function withSecret(head: string): string {
  return head.replace(/X-Matrix-Secret: .*/, `X-Matrix-Secret: ${SECRET}`);
}

function form(): FormData {
  const data = new FormData();
  data.set("file", new Blob(["hello"]), "a.txt");
  return data;
}

test("an upload that fails in any way frees its place", async () => {
  await using hub = await startHub({ variants: ["A"] });
  for (let i = 0; i < 2 * UPLOAD_SHARES.keys; i++)
    await refused(hub.call("POST", "/file/upload", { body: "no form" }), 415, "unsupported_media_type");
});

/** A hub's streams. `open` opens one for a caller with this share. */
function openStreams() {
  const log = openLog({ format: "json", level: "debug" }, Date.now, () => {});
  const never = new Promise<never>(() => {});
  const ofLog = () => ({ subscribe: () => () => {}, catchUp: () => never });
  const room = new EventStreams({ lastId: async () => 0, ofLog } as never, log); // all that opening one asks for
  const endpoint = room.endpoints.find(({ path }) => path.endsWith("events/stream"));
  const open = async (share: Share): Promise<AbortController> => {
    const caller = new AbortController();
    const request = new Request("http://hub/", { signal: caller.signal });
    const exchange = { request, server: { timeout: () => {} }, requestId: "r" };
    const call = { exchange, key: null, watchKey: () => () => {}, share: () => share };
    if (endpoint?.kind !== "raw") throw new Error("no stream");
    await endpoint.handle(call as unknown as Call);
    return caller;
  };
  const openMany = (count: number, share: Share) =>
    Promise.all(Array.from({ length: count }, () => open(share)));
  return { room, open, openMany };
}

const RETRY_SOON = { extras: { headers: { "Retry-After": "1" } } };
const TOO_MANY = { status: 429, code: "too_many_calls", ...RETRY_SOON };
const OVERLOADED = { status: 503, code: "overloaded", ...RETRY_SOON };

test("too many streams of a key are 429, of all keys 503, and each one that ends frees its place", async () => {
  const { room, open, openMany } = openStreams();
  const fleet = await openMany(STREAM_SHARES.fullKey, FLEET);
  await expect(open(FLEET)).rejects.toMatchObject(TOO_MANY);
  const other: Share = { kind: "fullKey", name: "other" };
  await openMany(STREAM_SHARES.keys - STREAM_SHARES.fullKey, other);
  await expect(open(other)).rejects.toMatchObject(OVERLOADED);
  expect(room.size).toBe(STREAM_SHARES.keys);
  fleet[7]?.abort();
  await open(other);
  await expect(open(other)).rejects.toMatchObject(OVERLOADED);
  room.close();
  expect(room.size).toBe(0);
});

test("one key that is bound to a node, or a viewer, has 500 streams, and others have theirs meanwhile", async () => {
  const { room, open, openMany } = openStreams();
  for (const key of [
    { keyId: "robot", nodeId: "n1", role: "full" },
    { keyId: "eye", nodeId: null, role: "viewer" },
  ] as const) {
    const [first] = await openMany(500, shareOfKey(key));
    await expect(open(shareOfKey(key))).rejects.toMatchObject(TOO_MANY);
    first?.abort();
    await open(shareOfKey(key));
  }
  await open(FLEET);
  await open(shareOfAddress("eye"));
  room.close();
});

test("streams without a secret have bounds of their own, in all and for each address", async () => {
  const { open, openMany } = openStreams();
  const at = (address: string) => open(shareOfAddress(address));
  const [first] = await openMany(STREAM_SHARES.address, shareOfAddress("a"));
  await expect(at("a")).rejects.toMatchObject(TOO_MANY);
  first?.abort();
  await at("a");
  for (let n = STREAM_SHARES.address; n < STREAM_SHARES.addresses; n++) await at(`b${n % 90}`);
  await expect(at("c")).rejects.toMatchObject(OVERLOADED);
  await open(FLEET);
});

describe("keys", () => {
  test("one above the limit is refused, the others stay valid", async () => {
    const dataDir = newDataDir();
    try {
      await (await startHub({ dataDir, variants: ["A"] })).close();
      const store = openSqlite(join(dataDir, "luxhub.db"), () => {});
      const base = {
        role: "full",
        variant: null,
        nodeId: null,
        mintMicro: null,
        createdAt: 1,
        expiresAt: null,
      } as const;
      const keys = Array.from({ length: KEYS_MAX - 3 }, (_, i) => ({
        ...base,
        keyId: `k${i}`,
        hash: hashSecret(`${i}`),
        revokedAt: null,
      }));
      await store.transact({}, () =>
        accept(
          null,
          keys.map((key) => ({ kind: "key.saved", key }) as const),
        ),
      );
      await store.close();
      const env = { LUXHUB_SECRET: SECRET, LUXHUB_ADMIN_KEY: ADMIN_KEY };
      const add = (keyId: string) => run(["keys", "add", keyId, "--data", dataDir], { env });
      expect((await add("last")).code).toBe(0); // with the two that every hub has
      const { code, stderr } = await add("one-more");
      expect([code, stderr]).toEqual([5, expect.stringContaining("1000 keys")]);
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});

test("a receive counts the JSON of its messages: control characters are six bytes each", async () => {
  await using hub = await startHub({ variants: ["A"] });
  await hub.addNode("n1");
  const content = "\u0001".repeat(CONTENT_MAX_BYTES / 2);
  for (let i = 0; i < 20; i++) await hub.send("op", "n1", { content });
  const seen: string[] = [];
  for (let calls = 0; seen.length < 20 && calls < 20; calls++) {
    const { body } = await hub.post("/message/receive", { node_id: "n1", count: 1_000 });
    const messages = body["messages"] as { id: string; content: string }[];
    expect(messages.length).toBeGreaterThan(0);
    for (const one of messages.slice(0, 1)) expect(one.content).toBe(content);
    expect(JSON.stringify(body).length).toBeLessThan(MESSAGES_ANSWER_MAX_BYTES + 6 * CONTENT_MAX_BYTES);
    seen.push(...messages.map((one) => one.id));
  }
  expect([seen.length, new Set(seen).size]).toEqual([20, 20]);
});

test("below --min-free only writes that free space succeed, and with space all do again", async () => {
  const dataDir = newDataDir();
  const call = async (minFreeBytes: number, use: (hub: TestHub) => Promise<void>): Promise<void> => {
    await using hub = await startHub({ variants: ["A"], dataDir, minFreeBytes });
    await use(hub);
  };
  const ids = { task: "", file: "" };
  try {
    await call(1, async (hub) => {
      await hub.addNode("n1");
      ids.task = await hub.addTask();
      ids.file = String((await ok(hub.post("/file/upload", form())))["file_id"]);
    });
    await call(2 ** 52, async (hub) => {
      await refused(hub.post("/task/create", { title: "t", description: "d" }), 507, "insufficient_storage");
      await refused(hub.post("/file/upload", form()), 507, "insufficient_storage");
      await refused(
        hub.post("/task/claim", { task_id: ids.task, node_id: "n1" }),
        507,
        "insufficient_storage",
      );
      const deletion = { path: "task/delete", body: { task_id: ids.task } };
      const creation = { path: "task/create", body: { title: "t", description: "d" } };
      const batch = { requests: [deletion, creation] };
      await refused(hub.admin("/batch", batch), 507, "insufficient_storage");
      expect(await ok(hub.get("/task/list"))).toMatchObject({ total: 1 });
      expect(await ok(hub.get("/status"))).toMatchObject({ status: "degraded" });
      await refused(hub.post("/task/claim", { task_id: "none", node_id: "n1" }), 404, "task_not_found");
      await ok(hub.post("/file/delete", { file_id: ids.file }));
      await ok(hub.admin("/task/delete", { task_id: ids.task }));
      expect(await ok(hub.get("/status"))).toMatchObject({ status: "degraded" }); // a deletion proves nothing
      await refused(hub.post("/task/create", { title: "t", description: "d" }), 507, "insufficient_storage");
    });
    await call(1, async (hub) => {
      expect(await ok(hub.get("/task/list"))).toMatchObject({ total: 0 });
      await hub.addTask();
      await ok(hub.post("/file/upload", form()));
    });
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test("the stored answers of one key are bounded, and those of others stay", async () => {
  await using hub = await startHub({ variants: ["A"] });
  const db = new Database(join(hub.dataDir, "luxhub.db"), { strict: true });
  compareNoMore(db.filename);
  try {
    const insert = db.prepare(
      `INSERT INTO answers (scope, body_hash, status, body, stored_at, key_id, bytes) VALUES (?, 'h', 200, ?, ?, ?, ?)`,
    );
    const body = "x".repeat(2 ** 20);
    const now = hub.clock.now();
    for (let i = 0; i < 70; i++) insert.run(`greedy p ${i}`, body, now - 1_000 + i, "greedy", body.length);
    for (let i = 0; i < 10; i++) insert.run(`other p ${i}`, body, now - 5_000 + i, "other", body.length);
    hub.clock.pass(ANSWERS_EVICT_EVERY_MS + 1_000);
    await hub.sweep();
    const left = db.query(
      `SELECT key_id, count(*) AS n, min(stored_at) AS oldest FROM answers GROUP BY key_id`,
    );
    expect(left.all()).toEqual([
      { key_id: "greedy", n: ANSWERS_OF_KEY_MAX_BYTES / 2 ** 20, oldest: now - 1_000 + 6 },
      { key_id: "other", n: 10, oldest: now - 5_000 },
    ]);
  } finally {
    db.close();
  }
});
