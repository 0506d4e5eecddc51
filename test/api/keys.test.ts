/**
 * Authentication and authorisation (docs/security.md): every endpoint with and without the secret, keys bound to a
 * variant or a node, expiry, revoking, rotation, and the rate limit on wrong secrets. The tests add keys with the real
 * `luxhub keys` while the hub runs, and then start its periodic work; e2e/cli.test.ts tests that the timer starts it.
 */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileEndpoints } from "../../src/api/files.ts";
import { ENDPOINTS as ENDPOINT_LIST } from "../../src/api/routes.ts";
import { readConfig } from "../../src/config.ts";
import { SECRET_MAX_CHARS } from "../../src/domain/limits.ts";
import { hashSecret } from "../../src/service/keys.ts";
import {
  ADMIN_KEY,
  type Answer,
  type CallOptions,
  SECRET,
  type TestHub,
  newDataDir,
  startHub,
} from "../support/hub.ts";
import { addKey, as, keys, runKeys } from "./key-commands.ts";
import { NO_ID, RESULT, VARIANTS, badFields, list, ok, record, refused } from "./scene.ts";

const WINDOW_MS = 60_000;

/** The authentication of every endpoint on variant A: `S` needs the secret. */
const ENDPOINTS = {
  "POST /node/register": "S",
  "POST /node/heartbeat": "S",
  "GET /node/list": "Public",
  "GET /node/n1": "Public",
  "POST /task/create": "S",
  "POST /task/assign": "S",
  "POST /task/claim": "S",
  "POST /task/complete": "S",
  "POST /task/revoke": "S+Admin",
  "POST /task/batch-assign": "S",
  "POST /task/delete": "S+Admin",
  "GET /task/list": "Public",
  "GET /task/pull": "S",
  "GET /task/stats": "Public",
  "POST /agent/message": "S",
  "GET /agent/messages": "S",
  "POST /agent/broadcast": "S",
  "POST /agent/ack": "S",
  "POST /message/send": "S",
  "POST /message/receive": "S",
  "POST /message/broadcast": "S",
  "POST /message/ack": "S",
  "GET /message/history": "S",
  "POST /signin": "S",
  "GET /lux/ledger": "S",
  "GET /lux/entries": "S",
  "GET /lux/head": "S",
  "POST /file/upload": "S",
  "GET /file/download/x": "Public",
  "GET /file/list": "Public",
  "POST /file/delete": "S",
  "DELETE /file/x": "S",
  "GET /status": "Public",
  "GET /events": "Public",
  "GET /pg/diagnostic": "Public",
  "GET /poll?timeout=0": "Public",
  "GET /key/list": "S+Admin",
  "POST /key/add": "S+Admin",
  "POST /key/revoke": "S+Admin",
} as const;

type Auth = (typeof ENDPOINTS)[keyof typeof ENDPOINTS];

describe("every endpoint", () => {
  const CALLERS = {
    nobody: { "X-Matrix-Secret": null },
    "a wrong secret": { "X-Matrix-Secret": "wrong" },
    "the admin key as secret": { "X-Matrix-Secret": ADMIN_KEY },
    "only the admin key": { "X-Matrix-Secret": null, "X-Admin-Key": ADMIN_KEY },
    "the secret": {},
    "the secret and a wrong admin key": { "X-Admin-Key": "wrong" },
    "the secret as admin key": { "X-Admin-Key": SECRET },
    "both keys": { "X-Admin-Key": ADMIN_KEY },
  } as const;
  type CallerName = keyof typeof CALLERS;
  const STRANGERS: readonly CallerName[] = [
    "nobody",
    "a wrong secret",
    "the admin key as secret",
    "only the admin key",
  ];

  /** 401, 403, or that the request was authorised. */
  function expected(auth: Auth, caller: CallerName): string {
    if (auth === "Public") return "in";
    if (STRANGERS.includes(caller)) return "401 unauthorized";
    return auth === "S" || caller === "both keys" ? "in" : "403 admin_key_required";
  }

  function outcomeOf({ status, body }: Answer): string {
    return status === 401 || status === 403 || status === 429 ? `${status} ${body["error"]}` : "in";
  }

  test.each(VARIANTS)("requires on %s the credentials of the specification", async (variant) => {
    await using hub = await startHub({ variants: [variant] });
    const outcomes: Record<string, string> = {};
    const wanted: Record<string, string> = {};
    for (const [endpoint, authOnA] of Object.entries(ENDPOINTS)) {
      const [method = "", path = ""] = endpoint.split(" ");
      const auth = variant === "B" && authOnA === "Public" ? "S" : authOnA;
      for (const caller of Object.keys(CALLERS) as CallerName[]) {
        const answer = await hub.call(method, path, { variant, headers: CALLERS[caller] });
        hub.clock.pass(WINDOW_MS); // so many wrong secrets at once would be taken for guessing
        outcomes[`${endpoint} by ${caller}`] = outcomeOf(answer);
        wanted[`${endpoint} by ${caller}`] = expected(auth, caller);
      }
    }
    expect(outcomes).toEqual(wanted);
  });

  test("a secret is read from its header only", async () => {
    await using hub = await startHub({ variants: ["B"] });
    for (const path of [`/status?secret=${SECRET}`, `/status?X-Matrix-Secret=${SECRET}`]) {
      await refused(hub.get(path, as(null, { variant: "B" })), 401, "unauthorized");
    }
    const inCookie = { variant: "B", headers: { Cookie: `X-Matrix-Secret=${SECRET}` } };
    await refused(hub.get("/status", as(null, inCookie as CallOptions)), 401, "unauthorized");
  });

  test("a bearer token is taken wherever X-Matrix-Secret is, which wins if both are sent", async () => {
    await using hub = await startHub();
    const sent = (secret: string | null, authorization: string, variant: "A" | "B"): CallOptions => ({
      variant,
      headers: { "X-Matrix-Secret": secret, Authorization: authorization },
    });
    for (const variant of VARIANTS) {
      const pull = (secret: string | null, authorization: string) =>
        hub.get("/task/pull?node_id=nobody", sent(secret, authorization, variant));
      for (const scheme of ["Bearer", "bearer", "BEARER "])
        await refused(pull(null, `${scheme} ${SECRET}`), 404, "node_not_found");
      await refused(pull(SECRET, "Bearer wrong"), 404, "node_not_found");
      await refused(pull("wrong", `Bearer ${SECRET}`), 401, "unauthorized");
      for (const header of ["Bearer wrong", `Basic ${SECRET}`, SECRET, "Bearer", `Bearer ${SECRET} x`]) {
        const answer = await refused(pull(null, header), 401, "unauthorized");
        expect(answer.headers.get("www-authenticate")).toBe(
          'Bearer realm="luxhub", X-Matrix-Secret realm="luxhub"',
        );
        expect(answer.headers.get("vary")).toBe("X-Matrix-Secret, Authorization, Accept-Encoding");
      }
    }
  });

  test("a bearer token is a key as any other: it has a variant, an administrator key and an upload", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const made = await ok(
      hub.post("/key/add", { name: "pinned", variant: "B" }, { headers: { "X-Admin-Key": ADMIN_KEY } }),
    );
    const bearer = { "X-Matrix-Secret": null, Authorization: `Bearer ${String(made["secret"])}` };
    const status = await fetch(`${hub.base("A")}/api/v1/status`, {
      headers: { Authorization: bearer.Authorization },
    });
    expect(record(await status.json())["variant"]).toBe("B");
    const asAdmin = { headers: { ...bearer, "X-Admin-Key": ADMIN_KEY } };
    await refused(hub.post("/task/delete", { task_id: "none" }, asAdmin), 404, "task_not_found");
    const form = new FormData();
    form.append("file", new Blob(["bytes"]), "a.txt");
    const upload = await fetch(`${hub.base("A")}/api/v1/file/upload`, {
      method: "POST",
      body: form,
      headers: { Authorization: bearer.Authorization },
    });
    expect(upload.status).toBe(200);
  });
});

const TRUSTS_LOOPBACK = { flags: { "trust-proxy": ["127.0.0.0/8"] }, env: {}, file: null };

describe("the rate limit on wrong secrets", () => {
  const attempt = (hub: TestHub, secret: string | null, headers: Record<string, string> = {}) =>
    hub.post("/task/create", { title: "t", description: "d" }, as(secret, { headers }));

  test("answers the 20th wrong secret in a minute with 429 until the window ends, and always accepts a right one", async () => {
    await using hub = await startHub({ alone: "wrongSecrets" });
    for (let i = 1; i < 20; i++) await refused(attempt(hub, `guess ${i}`), 401, "unauthorized");
    for (let i = 0; i < 3; i++) {
      const answer = await refused(attempt(hub, "guess 20"), 429, "too_many_wrong_secrets");
      const seconds = Number(answer.headers.get("retry-after"));
      expect(seconds).toBeGreaterThanOrEqual(1);
      expect(seconds).toBeLessThanOrEqual(60);
    }
    await ok(attempt(hub, SECRET));
    await ok(hub.get("/status", { variant: "B" }));
    await refused(attempt(hub, "guess 21"), 429, "too_many_wrong_secrets");
    hub.clock.pass(WINDOW_MS);
    await refused(attempt(hub, "guess 22"), 401, "unauthorized");
  });

  test("a missing secret does not count, nor one on a path that does not exist", async () => {
    await using hub = await startHub({ alone: "wrongSecrets" });
    for (let i = 0; i < 25; i++) {
      await refused(attempt(hub, null), 401, "unauthorized");
      await ok(hub.get("/status", as(null)));
      await refused(hub.post("/nope", {}, as("wrong")), 404, "not_found");
      await ok(attempt(hub, SECRET));
    }
    await refused(attempt(hub, "guess 1"), 401, "unauthorized");
    for (let i = 2; i < 20; i++) await refused(attempt(hub, `guess ${i}`), 401, "unauthorized");
    await refused(attempt(hub, null), 401, "unauthorized");
    await refused(attempt(hub, "guess 20"), 429, "too_many_wrong_secrets");
    await refused(attempt(hub, null), 401, "unauthorized");
  });

  test("counts a wrong secret on a public path of A, which answers it nevertheless, and every right one in its dialect", async () => {
    await using hub = await startHub({ alone: "wrongSecrets" });
    const pinned = await addKey(hub, "pinned", { variant: "B" });
    const versionFor = async (secret: string): Promise<unknown> =>
      (await ok(hub.get("/status", as(secret))))["version"];
    expect([await versionFor("guess"), await versionFor(pinned)]).toEqual(["1.5", "1.0"]);
    for (let i = 2; i <= 19; i++) expect(await versionFor(`guess ${i}`)).toBe("1.5");
    const justAdded = await addKey(hub, "just-added", { variant: "B" });
    expect(await versionFor(justAdded)).toBe("1.0");
    expect(await versionFor("x".repeat(2 * SECRET_MAX_CHARS))).toBe("1.5");
    await refused(attempt(hub, "guess 21"), 429, "too_many_wrong_secrets");
    expect([await versionFor("guess 22"), await versionFor(pinned)]).toEqual(["1.5", "1.0"]);
    // Unknown secrets are looked up no more; the next refresh of the keys still finds this one.
    let isUnknown = false;
    for (let i = 0; i < 5 && !isUnknown; i++) {
      const later = (await runKeys(hub, "add", `later-${i}`, "--variant", "B")).trim();
      isUnknown = (await versionFor(later)) === "1.5"; // unless the hub's timer has just refreshed the keys
      await hub.sweep();
      expect(await versionFor(later)).toBe("1.0");
    }
    expect(isUnknown).toBe(true);
    await ok(attempt(hub, SECRET));
  });

  test("counts over all listeners, whatever address the request claims", async () => {
    await using hub = await startHub({ alone: "wrongSecrets" });
    for (let i = 1; i < 20; i++) {
      const headers = { "X-Forwarded-For": `10.0.0.${i}`, Forwarded: `for=10.0.0.${i}` };
      const variant = i % 2 === 0 ? "A" : "B";
      const path = variant === "A" ? "/task/pull" : "/status";
      await refused(hub.get(path, as(`guess ${i}`, { variant, headers })), 401, "unauthorized");
    }
    await refused(attempt(hub, "x", { "X-Forwarded-For": "10.9.9.9" }), 429, "too_many_wrong_secrets");
  });

  test("treats an empty secret as a missing one", async () => {
    await using hub = await startHub();
    for (let i = 0; i < 25; i++) await refused(attempt(hub, ""), 401, "unauthorized");
    for (let i = 0; i < 19; i++) await refused(attempt(hub, "guess"), 401, "unauthorized");
  });

  test("behind a trusted proxy, counts by the address of the proxy's client", async () => {
    await using hub = await startHub({
      trustProxy: readConfig(TRUSTS_LOOPBACK).trustProxy,
      alone: "wrongSecrets",
    });
    const from = (address: string) => attempt(hub, "guess", { "X-Forwarded-For": address });
    for (let i = 0; i < 19; i++) await refused(from(`10.0.0.${i}, 203.0.113.5`), 401, "unauthorized");
    await refused(from("203.0.113.5"), 429, "too_many_wrong_secrets");
    await refused(from("203.0.113.6"), 401, "unauthorized");
    await refused(attempt(hub, "guess"), 401, "unauthorized");
  });

  test("slow guessing is not limited", async () => {
    await using hub = await startHub();
    for (let i = 0; i < 40; i++) {
      await refused(attempt(hub, `guess ${i}`), 401, "unauthorized");
      hub.clock.pass(6_000);
    }
  });
});

// Each starts the program a few times: side by side.
describe.concurrent("further keys", () => {
  test("several are valid at once: a secret is rotated without downtime", async () => {
    await using hub = await startHub();
    const next = await addKey(hub, "next");
    const status = async (secret: string) => (await hub.get("/status", as(secret, { variant: "B" }))).status;
    expect([await status(SECRET), await status(next)]).toEqual([200, 200]);
    await keys(hub, "revoke", "primary");
    expect([await status(SECRET), await status(next)]).toEqual([401, 200]);
    const admin = as(next, { headers: { "X-Admin-Key": ADMIN_KEY } });
    await refused(hub.post("/task/delete", { task_id: NO_ID }, admin), 404, "task_not_found");
  });

  test("an administrator key is rotated the same way", async () => {
    await using hub = await startHub();
    const next = await addKey(hub, "next-admin", { role: "admin" });
    const remove = (key: string) =>
      hub.post("/task/delete", { task_id: NO_ID }, { headers: { "X-Admin-Key": key } });
    await refused(remove(next), 404, "task_not_found");
    await refused(remove(ADMIN_KEY), 404, "task_not_found");
    await refused(hub.get("/status", as(next, { variant: "B" })), 401, "unauthorized"); // no secret
    await keys(hub, "revoke", "primary-admin");
    await refused(remove(ADMIN_KEY), 403, "admin_key_required");
    await refused(remove(next), 404, "task_not_found");
  });

  test("a key is valid when the command that makes it ends", async () => {
    await using hub = await startHub();
    for (let i = 0; i < 4; i++) {
      const secret = (await runKeys(hub, "add", `key-${i}`, "--variant", "B")).trim();
      expect(await ok(hub.get("/status", as(secret)))).toMatchObject({ variant: "B" });
      const adminKey = (await runKeys(hub, "add", `admin-${i}`, "--admin")).trim();
      const admin = as(secret, { headers: { "X-Admin-Key": adminKey } });
      await refused(hub.post("/task/delete", { task_id: NO_ID }, admin), 404, "task_not_found");
    }
  });

  test("a key expires by the hub's clock", async () => {
    await using hub = await startHub();
    const secret = await addKey(hub, "short", { expires_in_s: 7200 });
    const attempt = () => hub.get("/status", as(secret, { variant: "B" }));
    await ok(attempt());
    hub.clock.pass(3_600_000);
    await ok(attempt());
    hub.clock.pass(3_600_000);
    await refused(attempt(), 401, "unauthorized");
    await keys(hub, "expire", "short", "never");
    await ok(attempt());
  });

  test("a revoked key is refused in both variants and no longer pins one", async () => {
    await using hub = await startHub();
    const secret = await addKey(hub, "gone", { variant: "B" });
    expect(await ok(hub.get("/status", as(secret)))).toMatchObject({ variant: "B" });
    await keys(hub, "revoke", "gone");
    expect(await ok(hub.get("/status", as(secret)))).toMatchObject({ variant: "A" });
    await refused(hub.get("/task/pull?node_id=n1", as(secret)), 401, "unauthorized");
    await refused(hub.get("/status", as(secret, { variant: "B" })), 401, "unauthorized");
  });

  test("a pinned key is answered in its variant on the other listener", async () => {
    await using hub = await startHub();
    const [ofA, ofB] = await Promise.all([
      addKey(hub, "fleet-a", { variant: "A" }),
      addKey(hub, "fleet-b", { variant: "B" }),
    ]);
    for (const listener of VARIANTS) {
      const call = (secret: string): CallOptions => as(secret, { variant: listener });
      expect(await ok(hub.get("/status", call(ofA)))).toMatchObject({ variant: "A", version: "1.5" });
      expect(await ok(hub.get("/status", call(ofB)))).toMatchObject({ variant: "B", version: "1.0" });
      const ask = { title: "t", description: "d", task_type: listener, priority: "p5" };
      const onA = await ok(hub.post("/task/create", ask, call(ofA)));
      expect(onA).toMatchObject({ status: "open", task: { priority: 2 } });
      const onB = await ok(hub.post("/task/create", ask, call(ofB)));
      expect(onB).toMatchObject({ status: "pending", task: { priority: "p5" } });
      const node = { node_id: `n-${listener}`, name: "n", capabilities: [listener] };
      const registered = await ok(hub.post("/node/register", node, call(ofB)));
      expect(registered).toMatchObject({ heartbeat_interval: 30, node: { capabilities: [listener] } });
      expect(await hub.taskOf(String(onB["task_id"]))).toMatchObject({ assigned_node: node.node_id });
    }
  });

  test("a key, also the first one, can be pinned later and unpinned", async () => {
    await using hub = await startHub();
    await keys(hub, "pin", "primary", "B");
    expect(await ok(hub.get("/status", { answeredIn: "B" }))).toMatchObject({ variant: "B" });
    // Without any secret the listener's variant answers.
    expect(await ok(hub.get("/status", as(null)))).toMatchObject({ variant: "A" });
    await keys(hub, "pin", "primary", "none");
    expect(await ok(hub.get("/status"))).toMatchObject({ variant: "A" });
  });

  test("an upload with a bound key belongs to its node, and only to tasks that the node created or holds", async () => {
    await using hub = await startHub();
    const secret = await addKey(hub, "of-n1", { node_id: "n1" });
    const upload = (metadata: object, options: CallOptions = as(secret)) => {
      const form = new FormData();
      form.set("file", new File(["x"], "x.txt"));
      form.set("metadata", JSON.stringify(metadata));
      return hub.post("/file/upload", form, options);
    };
    await refused(upload({}), 404, "node_not_found"); // it registers first, as for everything
    await hub.addNodes(["n1", "n2"]);
    const theirs = await hub.addTaskOf("n2", { creator_node: "n2" });
    const held = await hub.addTaskOf("n1", { creator_node: "n2" });
    const created = await hub.addTaskOf("n2", { creator_node: "n1" });
    const before = await hub.eventKinds();
    for (const metadata of [{ task_id: theirs }, { task_id: theirs, node: "n1" }]) {
      const again = as(secret, { headers: { "Idempotency-Key": crypto.randomUUID() } });
      await refused(upload(metadata), 403, "key_bound_to_other_node");
      await refused(upload({ task_id: theirs }, again), 403, "key_bound_to_other_node");
    }
    await refused(upload({ node: "n2" }), 403, "key_bound_to_other_node");
    expect(await ok(hub.get("/file/list"))).toMatchObject({ total: 0 });
    expect(await hub.eventKinds()).toEqual(before);
    for (const metadata of [{}, { task_id: held }, { task_id: created, node: "n1" }]) {
      const { file_id } = await ok(upload(metadata));
      const task_id = "task_id" in metadata ? metadata.task_id : null;
      expect(list(await ok(hub.get("/file/list")), "files")[0]).toMatchObject({ node_id: "n1", task_id });
      await ok(hub.post("/file/delete", { file_id }, as(secret)));
    }
    const named = await ok(upload({ node: "somebody", task_id: "else" })); // that do not exist: metadata like the rest
    expect(named).toMatchObject({ node_id: "n1", task_id: null, metadata: { node: "somebody" } });
    const { file_id } = await ok(upload({}, {}));
    await refused(hub.post("/file/delete", { file_id }, as(secret)), 403, "key_bound_to_other_node");
    await ok(upload({ task_id: theirs }, {})); // a key that is not bound may attach to any
  });

  test("a bound key acts for its node only", async () => {
    await using hub = await startHub();
    const secret = await addKey(hub, "of-n1", { node_id: "n1" });
    await hub.addNodes(["n1", "n2"]);
    const mine = await hub.send("op", "n1", { require_ack: true });
    const theirs = await hub.send("op", "n2", { require_ack: true });
    const upload = (node: string) => {
      const form = new FormData();
      form.set("file", new File(["x"], "x.txt"));
      form.set("metadata", JSON.stringify({ node }));
      return form;
    };
    const fileOf = async (nodeId: string) => (await ok(hub.post("/file/upload", upload(nodeId))))["file_id"];
    const tasks = { n1: await hub.addTask(), n2: await hub.addTask() } as const;
    const failing = { n1: await hub.addTaskOf("n1"), n2: await hub.addTaskOf("n2") } as const;
    const created = {
      n1: await hub.addTask({ creator_node: "n1" }),
      n2: await hub.addTask({ creator_node: "n2" }),
    } as const;
    const files = { n1: await fileOf("n1"), n2: await fileOf("n2") } as const;
    const messages = { n1: mine, n2: theirs } as const;

    const calls = (node_id: "n1" | "n2"): readonly (readonly [string, string, unknown?])[] => [
      ["POST", "/node/register", { node_id, name: "n" }],
      ["POST", "/node/heartbeat", { node_id }],
      ["POST", "/task/create", { title: "t", description: "d", creator_node: node_id }],
      ["POST", "/task/claim", { task_id: tasks[node_id], node_id }],
      ["POST", "/task/assign", { task_id: tasks[node_id], node_id }],
      ["POST", "/task/batch-assign", { assignments: [{ task_id: tasks[node_id], node_id }] }],
      ["POST", "/task/extend", { task_id: tasks[node_id], node_id }],
      ["POST", "/task/release", { task_id: tasks[node_id], node_id }],
      ["POST", "/task/claim", { task_id: tasks[node_id], node_id }],
      ["POST", "/task/fail", { task_id: failing[node_id], node_id, error: "e" }],
      ["POST", "/task/cancel", { task_id: created[node_id], node_id }],
      ["POST", "/task/retry", { task_id: created[node_id] }],
      ["POST", "/node/drain", { node_id, drain: false }],
      ["POST", "/task/complete", { task_id: tasks[node_id], node_id, result: RESULT }],
      ["GET", `/task/pull?node_id=${node_id}`],
      ["GET", `/agent/messages?node_id=${node_id}`],
      ["POST", "/message/receive", { node_id }],
      ["POST", "/message/ack", { node_id, message_id: messages[node_id] }],
      ["POST", "/agent/ack", { node_id, message_id: messages[node_id] }],
      ["GET", `/message/history?node_id=${node_id}`],
      ["POST", "/message/send", { from_node: node_id, to_node: "n2", content: "x" }],
      ["POST", "/agent/message", { from_node: node_id, to_node: "n2", content: "x" }],
      ["POST", "/message/broadcast", { from_node: node_id, content: "x" }],
      ["POST", "/agent/broadcast", { from_node: node_id, content: "x" }],
      ["POST", "/signin", { node_id }],
      ["GET", `/lux/ledger?node_id=${node_id}`],
      ["POST", "/file/upload", upload(node_id)],
      ["DELETE", `/file/${files[node_id]}`],
    ];
    for (const [method, path, body] of calls("n2")) {
      const answer = await hub.call(method, path, as(secret, { body }));
      expect([method, path, answer.status, answer.body["error"]]).toEqual([
        method,
        path,
        403,
        "key_bound_to_other_node",
      ]);
    }
    expect(await hub.taskOf(tasks.n2)).toMatchObject({ status: "open" });
    for (const [method, path, body] of calls("n1")) {
      const answer = await hub.call(method, path, as(secret, { body }));
      expect([method, path, answer.status]).toEqual([method, path, 200]);
    }
    await refused(
      hub.post("/file/delete", { file_id: files.n2 }, as(secret)),
      403,
      "key_bound_to_other_node",
    );
    // Like every key, it may read what belongs to no single node.
    expect(list(await ok(hub.get("/node/list", as(secret, { variant: "B" }))), "nodes")).toHaveLength(2);
  });

  test("a bound key creates, cancels and retries as its node", async () => {
    await using hub = await startHub();
    const secret = await addKey(hub, "of-n1", { node_id: "n1" });
    const made = await ok(hub.post("/task/create", { title: "t", description: "d" }, as(secret)));
    expect(made["task"]).toMatchObject({ creator_node: "n1" });
    const own = { task_id: made["task_id"] };
    const cancelled = await ok(hub.post("/task/cancel", own, as(secret)));
    expect(cancelled["task"]).toMatchObject({ failure: { kind: "cancelled", node_id: "n1" } });
    await ok(hub.post("/task/retry", own, as(secret)));
    const others = { task_id: await hub.addTask() };
    for (const step of ["cancel", "retry"])
      await refused(hub.post(`/task/${step}`, others, as(secret)), 403, "key_bound_to_other_node");
  });

  test("a bound key cannot reassign another node's task, even with the admin key", async () => {
    await using hub = await startHub();
    const secret = await addKey(hub, "of-n1", { node_id: "n1" });
    await hub.addNodes(["n1", "n2"]);
    const taskId = await hub.addTaskOf("n1");
    const both = as(secret, { headers: { "X-Admin-Key": ADMIN_KEY } });
    const handOn = hub.post("/task/revoke", { task_id: taskId, node_id: "n2" }, both);
    await refused(handOn, 403, "key_bound_to_other_node");
  });

  test("the same Idempotency-Key of two keys is two requests", async () => {
    await using hub = await startHub();
    const secret = await addKey(hub, "second");
    const ask = (key: string) =>
      ok(
        hub.post(
          "/task/create",
          { title: "t", description: "d" },
          as(key, { headers: { "Idempotency-Key": "k1" } }),
        ),
      );
    const [first, second] = [await ask(SECRET), await ask(secret)];
    expect(second["task_id"]).not.toBe(first["task_id"]);
    expect((await ask(secret))["task_id"]).toBe(second["task_id"]);
  });

  test("keys survive a restart, and no secret is stored", async () => {
    const dataDir = newDataDir();
    try {
      let secret = "";
      {
        await using hub = await startHub({ dataDir });
        secret = await addKey(hub, "stays", { variant: "B", node_id: "n1" });
        await keys(hub, "revoke", "primary");
      }
      await using hub = await startHub({ dataDir });
      expect(await ok(hub.get("/status", as(secret)))).toMatchObject({ variant: "B" });
      await refused(hub.get("/status", { variant: "B" }), 401, "unauthorized");
      const listed = await keys(hub, "list");
      expect(listed).toContain("stays");
      expect(listed).not.toContain(secret);
      for await (const name of new Bun.Glob("**/*").scan(dataDir)) {
        const bytes = Buffer.from(await Bun.file(join(dataDir, name)).bytes());
        expect([name, bytes.includes(secret)]).toEqual([name, false]);
      }
    } finally {
      rmSync(dataDir, { recursive: true });
    }
  });
});

const ADMIN = { "X-Admin-Key": ADMIN_KEY };

/** Makes a key by POST key/add; its secret. */
async function made(hub: TestHub, draft: Record<string, unknown>): Promise<string> {
  const { secret } = await ok(hub.post("/key/add", draft, { headers: ADMIN }));
  return String(secret);
}

describe("the key endpoints", () => {
  test("key/add answers the secret once, key/list shows neither secrets nor hashes", async () => {
    await using hub = await startHub();
    const draft = { name: "robot", variant: "b", node_id: "n1", expires_in_s: 60 };
    const added = await ok(hub.post("/key/add", draft, { headers: ADMIN }));
    const { created_at, expires_at, ...key } = record(added["key"]);
    const named = { name: "robot", role: "full", state: "valid", variant: "B", node_id: "n1" };
    expect(key).toEqual({ ...named, mint_per_day: null, revoked_at: null });
    const lifetimeMs = Date.parse(String(expires_at)) - Date.parse(String(created_at));
    expect(lifetimeMs).toBeWithin(30_000, 60_001); // the request began a moment earlier
    const secret = String(added["secret"]);
    expect(secret).toMatch(/^\S{32}$/);
    expect(await ok(hub.get("/status", as(secret)))).toMatchObject({ variant: "B" });
    const listed = await ok(hub.get("/key/list", { headers: ADMIN }));
    const names = list(listed, "keys").map(({ name, role, state }) => `${name} ${role} ${state}`);
    expect(names).toEqual(["primary full valid", "primary-admin admin valid", "robot full valid"]);
    expect(list(listed, "keys")[2]).toEqual({ ...record(added["key"]), used: { tasks: 0, bytes: 0 } });
    const text = JSON.stringify(listed);
    for (const hidden of [secret, SECRET, ADMIN_KEY].flatMap((word) => [word, hashSecret(word)]))
      expect(text).not.toContain(hidden);
    hub.clock.pass(60_000);
    const later = list(await ok(hub.get("/key/list", { headers: ADMIN })), "keys");
    expect(later[2]).toMatchObject({ name: "robot", state: "expired" });
  });

  test.each(["A", "B"] as const)("key/list lists all keys, or a page of them (%s)", async (variant) => {
    await using hub = await startHub();
    const names = Array.from({ length: 61 }, (_, i) => `robot-${String(i).padStart(2, "0")}`);
    for (const name of names) await made(hub, { name });
    const all = ["primary", "primary-admin", ...names];
    const page = (query: string) => ok(hub.get(`/key/list${query}`, { variant, headers: ADMIN }));
    const shown = async (query: string) => list(await page(query), "keys").map(({ name }) => name);
    expect(await page("")).toMatchObject({ page: 1, total: 63, pages: 1 });
    expect(await shown("")).toEqual(all);
    expect(await page("?page=2&per_page=50")).toMatchObject({ page: 2, per_page: 50, total: 63, pages: 2 });
    expect(await shown("?page=2&per_page=50")).toEqual(all.slice(50));
    expect(await shown("?page=4")).toEqual(all.slice(60));
    expect(await shown("?page=5")).toEqual([]);
    await badFields(hub.get("/key/list?per_page=0", { variant, headers: ADMIN }), ["per_page"]);
  });

  test("key/revoke revokes a key permanently; a repeat changes nothing", async () => {
    await using hub = await startHub();
    const secret = await made(hub, { name: "robot" });
    await ok(hub.get("/status", as(secret, { variant: "B" })));
    const revoke = () => ok(hub.post("/key/revoke", { name: "robot" }, { headers: ADMIN }));
    const first = await revoke();
    expect(first).toMatchObject({ name: "robot", key: { state: "revoked" } });
    hub.clock.pass(1_000);
    expect(await revoke()).toEqual(first);
    await refused(hub.get("/status", as(secret, { variant: "B" })), 401, "unauthorized");
    await refused(hub.post("/key/revoke", { name: "nobody" }, { headers: ADMIN }), 404, "key_not_found");
    await refused(hub.post("/key/add", { name: "robot" }, { headers: ADMIN }), 409, "key_exists");
  });

  test("an administrator key is made and revoked the same way", async () => {
    await using hub = await startHub();
    const next = await made(hub, { name: "chief", role: "admin" });
    await ok(hub.post("/key/revoke", { name: "primary-admin" }, { headers: { "X-Admin-Key": next } }));
    await refused(hub.get("/key/list", { headers: ADMIN }), 403, "admin_key_required");
    await ok(hub.get("/key/list", { headers: { "X-Admin-Key": next } }));
  });

  test("a key that cannot be is 400, field by field", async () => {
    await using hub = await startHub();
    const past = new Date(hub.clock.now()).toISOString();
    const far = new Date(hub.clock.now() + 400_000_000_000).toISOString();
    const rows: readonly (readonly [body: object, ...paths: readonly string[]])[] = [
      [{}, "name"],
      [{ name: "a b" }, "name"],
      [{ name: "a".repeat(65) }, "name"],
      [{ name: "a", role: "king" }, "role"],
      [{ name: "a", variant: "C" }, "variant"],
      [{ name: "a", node_id: "/" }, "node_id"],
      [{ name: "a", expires_in_s: 0 }, "expires_in_s"],
      [{ name: "a", expires_at: past }, "expires_at"],
      [{ name: "a", expires_at: far }, "expires_at"],
      [{ name: "a", expires_at: far, expires_in_s: 1 }, "expires_in_s", "expires_at"],
      [{ name: "a", role: "admin", node_id: "n1", variant: "A" }, "variant", "node_id"],
    ];
    for (const [body, ...paths] of rows) {
      const { body: problem } = await refused(
        hub.post("/key/add", body, { headers: ADMIN }),
        400,
        "invalid_request",
      );
      expect([body, list(problem, "errors").map(({ path }) => path)]).toEqual([body, paths]);
    }
  });

  test("an answer with a secret is never stored: key/add takes no Idempotency-Key", async () => {
    await using hub = await startHub();
    const headers = { ...ADMIN, "Idempotency-Key": "k1" };
    const { body } = await refused(
      hub.post("/key/add", { name: "robot" }, { headers }),
      400,
      "invalid_request",
    );
    expect(list(body, "errors").map(({ path }) => path)).toEqual(["Idempotency-Key"]);
    expect(list(await ok(hub.get("/key/list", { headers: ADMIN })), "keys")).toHaveLength(2);
    await made(hub, { name: "robot" });
    await ok(hub.post("/key/revoke", { name: "robot" }, { headers })); // has none, and may be repeated
  });

  test("a key that is bound to a node makes keys of that node only, and revokes none", async () => {
    await using hub = await startHub();
    const bound = await made(hub, { name: "of-n1", node_id: "n1" });
    const both = as(bound, { headers: ADMIN });
    for (const draft of [{ name: "x" }, { name: "x", node_id: "n2" }])
      await refused(hub.post("/key/add", draft, both), 403, "key_bound_to_other_node");
    await ok(hub.post("/key/add", { name: "x", node_id: "n1" }, both));
    await refused(hub.post("/key/revoke", { name: "primary" }, both), 403, "key_bound_to_other_node");
  });
});

describe("a viewer key", () => {
  const HIDDEN = ["/message/history", "/message/parked", "/agent/messages", "/agent/sse"];
  const DECLARED = [
    ...ENDPOINT_LIST,
    ...fileEndpoints(1),
    { method: "GET", path: "/api/v1/agent/sse", auth: "secret" },
  ] as const;

  test.each(VARIANTS)(
    "reads on %s with GET and HEAD, but no contents of messages, and does no more",
    async (variant) => {
      await using hub = await startHub({ variants: [variant] });
      await ok(hub.post("/node/register", { node_id: "n1", name: "n" }, { variant }));
      const draft = { name: "board", role: "viewer" };
      const added = await ok(hub.post("/key/add", draft, { variant, headers: ADMIN }));
      const secret = String(added["secret"]);
      const outcomes: Record<string, string> = {};
      const wanted: Record<string, string> = {};
      for (const { method, path: template, auth } of DECLARED) {
        const path = template.replace("/api/v1", "").replaceAll(/:\w+/g, "n1");
        for (const called of method === "GET" ? ["GET", "HEAD"] : [method]) {
          const query = called === "POST" ? "" : "?node_id=n1&timeout=0";
          const options = as(secret, { variant, headers: ADMIN });
          const { status, body } = await hub.call(called, path + query, options);
          // What is open to everyone reads no key.
          const isHidden = (method !== "GET" && auth !== "open") || HIDDEN.includes(path);
          const error = called === "HEAD" ? "" : ` ${body["error"]}`;
          outcomes[`${called} ${path}`] = status === 403 ? `403${error}` : status === 401 ? "401" : "read";
          wanted[`${called} ${path}`] = isHidden
            ? called === "HEAD"
              ? "403"
              : "403 viewer_not_allowed"
            : "read";
        }
      }
      expect(outcomes).toEqual(wanted);
    },
  );

  test("sees tasks, results, events and files", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1"]);
    const secret = await made(hub, { name: "board", role: "viewer" });
    const viewer = as(secret);
    const taskId = await hub.addTaskOf("n1");
    await ok(hub.post("/task/complete", { task_id: taskId, node_id: "n1", result: RESULT }));
    await hub.send("op", "n1");
    const form = new FormData();
    form.set("file", new File(["bytes"], "x.txt"));
    const { file_id } = await ok(hub.post("/file/upload", form));
    expect(await ok(hub.get(`/task/${taskId}`, viewer))).toMatchObject({ task: { result: RESULT } });
    const { cursor } = await ok(hub.get("/events", viewer));
    expect(list(await ok(hub.get("/poll?since=0", viewer)), "events")).not.toBeEmpty();
    expect(Number(cursor)).toBeGreaterThan(0);
    const download = await fetch(`${hub.base()}/api/v1/file/download/${file_id}`, {
      headers: { "X-Matrix-Secret": secret },
    });
    expect(await download.text()).toBe("bytes");
    await ok(hub.get("/task/pull?node_id=n1", viewer));
  });

  test("is made by luxhub keys too, and may be bound to a node", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2"]);
    const secret = await addKey(hub, "board", { role: "viewer", node_id: "n1" });
    await ok(hub.get("/task/pull?node_id=n1", as(secret)));
    await refused(hub.get("/task/pull?node_id=n2", as(secret)), 403, "key_bound_to_other_node");
    await refused(hub.post("/node/heartbeat", { node_id: "n1" }, as(secret)), 403, "viewer_not_allowed");
    expect(await keys(hub, "list")).toMatch(/\nboard +viewer +- +n1 +- +never +valid +-\n/);
  });
});

test("a key of a node and its sessions acts for one of them at a time, and for no node of another key", async () => {
  await using hub = await startHub();
  const secret = await addKey(hub, "sessions", { node_id: "agent-1.*" });
  await addKey(hub, "other", { node_id: "agent-1.7" });
  for (const id of ["agent-1", "agent-1.2", "agent-1.7"]) await hub.addNode(id);
  const outcome = async (named: string | null, node: string): Promise<string> => {
    const headers = { "X-Matrix-Secret": secret, ...(named !== null && { "X-Node-Id": named }) };
    const { status, body } = await hub.post("/node/heartbeat", { node_id: node }, { headers });
    return `${status} ${status === 200 ? "" : body["error"]}`.trim();
  };
  const refusal = "403 key_bound_to_other_node";
  for (const [named, node, expected] of [
    [null, "agent-1", "200"],
    [null, "agent-1.2", refusal],
    ["agent-1.2", "agent-1.2", "200"],
    ["agent-1.2", "agent-1", refusal],
    ["agent-1.7", "agent-1.7", refusal],
    ["agent-1.7", "agent-1", "200"],
    ["agent-1.x", "agent-1", "200"],
    ["agent-1.100", "agent-1", "200"],
    ["agent-2", "agent-2", refusal],
  ] as const)
    expect([named, node, await outcome(named, node)]).toEqual([named, node, expected]);
});
