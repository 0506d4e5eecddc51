/**
 * Idempotency-Key (docs/api.md): a repeat gets the first answer and has no second effect, whenever and however often it
 * is sent. keys.test.ts tests that the keys of different callers are separate.
 */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { type Attempt, Idempotency } from "../../src/api/idempotency.ts";
import { shareOfAddress } from "../../src/api/caller-shares.ts";
import { ResponseBackpressure } from "../../src/api/response-backpressure.ts";
import { WAIT_SHARES } from "../../src/domain/limits.ts";
import {
  ADMIN_KEY,
  type Answer,
  type CallOptions,
  TestClock,
  type TestHub,
  newDataDir,
  onlyOnce,
  startHub,
} from "../support/hub.ts";
import {
  NO_ID,
  RESULT,
  VARIANTS,
  type VariantName,
  badFields,
  hold,
  list,
  ok,
  rawPost,
  refused,
} from "./scene.ts";

const once = onlyOnce(import.meta.url);

const DRAFT = { title: "t", description: "d" };
const HOUR_MS = 3_600_000;

function keyed(key: string, more: CallOptions = {}): CallOptions {
  return { ...more, headers: { "Idempotency-Key": key, ...more.headers } };
}

/** Whether an answer says that it is a replay. */
function isReplay({ headers }: Answer): boolean {
  const header = headers.get("idempotent-replayed");
  expect([null, "true"]).toContain(header);
  return header === "true";
}

async function expectReplay(first: Answer, repeat: Promise<Answer>): Promise<void> {
  const again = await repeat;
  expect([isReplay(first), isReplay(again)]).toEqual([false, true]);
  expect([again.status, again.body]).toEqual([first.status, first.body]);
  expect(again.headers.get("content-type")).toBe(first.headers.get("content-type"));
}

async function tasksIn(hub: TestHub): Promise<unknown> {
  return (await ok(hub.get("/task/list")))["total"];
}

test("after the secret was replaced, nobody replays the answers to the former one", async () => {
  const dataDir = newDataDir();
  const k1 = keyed("k1");
  const body = { node_id: "n", name: "n" };
  try {
    let first: Answer;
    {
      await using hub = await startHub({ dataDir });
      first = await hub.post("/node/register", body, k1);
      await ok(first);
      await expectReplay(first, hub.post("/node/register", body, k1));
    }
    {
      await using hub = await startHub({ dataDir, secret: "another-secret" });
      const other = { headers: { ...k1.headers, "X-Matrix-Secret": "another-secret" } };
      await refused(hub.post("/node/register", body, other), 422, "idempotency_key_reused");
    }
    await using hub = await startHub({ dataDir });
    await expectReplay(first, hub.post("/node/register", body, k1));
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

describe("a repeat", () => {
  test("gets the first answer, marked as replayed, and has no effect", async () => {
    await using hub = await startHub();
    const first = await hub.post("/task/create", DRAFT, keyed("k1"));
    await ok(first);
    hub.clock.pass(60_000);
    for (let i = 0; i < 3; i++) await expectReplay(first, hub.post("/task/create", DRAFT, keyed("k1")));
    expect(await tasksIn(hub)).toBe(1);
    const other = await hub.post("/task/create", DRAFT, keyed("k2"));
    expect([isReplay(other), await tasksIn(hub)]).toEqual([false, 2]);
  });

  once.test("without a key is another request", async () => {
    await using hub = await startHub();
    await ok(hub.post("/task/create", DRAFT));
    expect(isReplay(await hub.post("/task/create", DRAFT))).toBe(false);
    expect(await tasksIn(hub)).toBe(2);
  });

  once.test("has a request id of its own", async () => {
    await using hub = await startHub();
    const own = (id: string) => keyed("k1", { headers: { "Idempotency-Key": "k1", "X-Request-Id": id } });
    await hub.post("/task/create", DRAFT, own("first"));
    const again = await hub.post("/task/create", DRAFT, own("second"));
    expect(again.headers.get("x-request-id")).toBe("second");
  });

  once.test("gets the first answer, whatever has changed since", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const first = await hub.post("/task/create", DRAFT, keyed("k1"));
    const task_id = String((await ok(first))["task_id"]);
    await ok(hub.post("/task/claim", { task_id, node_id: "n1" }));
    await expectReplay(first, hub.post("/task/create", DRAFT, keyed("k1")));
    await ok(hub.admin("/task/delete", { task_id }));
    await expectReplay(first, hub.post("/task/create", DRAFT, keyed("k1")));
    expect(await tasksIn(hub)).toBe(0);
  });

  once.test("gets it for 24 hours", async () => {
    await using hub = await startHub();
    const first = await hub.post("/task/create", DRAFT, keyed("k1"));
    hub.clock.pass(24 * HOUR_MS - 60_000);
    await expectReplay(first, hub.post("/task/create", DRAFT, keyed("k1")));
    hub.clock.pass(60_001);
    await hub.sweep();
    const second = await hub.post("/task/create", DRAFT, keyed("k1"));
    expect([isReplay(second), await tasksIn(hub)]).toEqual([false, 2]);
    await expectReplay(second, hub.post("/task/create", DRAFT, keyed("k1")));
  });

  once.test(
    "in the other variant is refused: neither done twice nor answered in the first variant's words",
    async () => {
      await using hub = await startHub({ variants: ["A", "B"] });
      const first = await hub.post("/task/create", DRAFT, keyed("k1", { variant: "B" }));
      expect(first.body).toMatchObject({ status: "pending" });
      const other = await hub.post("/task/create", DRAFT, keyed("k1", { variant: "A" }));
      expect([other.status, other.body["error"]]).toEqual([422, "idempotency_key_reused"]);
      await expectReplay(first, hub.post("/task/create", DRAFT, keyed("k1", { variant: "B" })));
      expect(await tasksIn(hub)).toBe(1);
    },
  );

  once.test("may use any key of visible ASCII", async () => {
    await using hub = await startHub();
    for (const key of ["x", "0", "a/b?c=d&e", '"8e03978e-40d5-43dd-bc93-6894a57f9324"', "x".repeat(255)]) {
      const first = await hub.post("/task/create", DRAFT, keyed(key));
      await expectReplay(first, hub.post("/task/create", DRAFT, keyed(key)));
    }
    expect(await tasksIn(hub)).toBe(5);
  });
});

describe("what is stored", () => {
  test("an answer that depends on state, errors included", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2"]);
    const taken = await hub.addTaskOf("n2");
    const cases = [
      ["/task/claim", { task_id: NO_ID, node_id: "n1" }, 404],
      ["/task/claim", { task_id: taken, node_id: "n1" }, 409],
      ["/task/complete", { task_id: taken, node_id: "n1", result: RESULT }, 403],
      ["/node/heartbeat", { node_id: "ghost" }, 404],
      ["/message/send", { from_node: "op", to_node: "ghost", content: "x" }, 404],
      ["/message/receive", { node_id: "ghost" }, 404],
      ["/message/ack", { node_id: "n1", message_id: NO_ID }, 404],
      ["/signin", { node_id: "ghost" }, 404],
      ["/file/delete", { file_id: NO_ID }, 404],
    ] as const;
    const firsts: Answer[] = [];
    for (const [i, [path, body, status]] of cases.entries()) {
      const first = await hub.post(path, body, keyed(`k${i}`));
      expect([path, first.status]).toEqual([path, status]);
      firsts.push(first);
    }
    // Now all of it would go differently.
    await hub.addNode("ghost");
    await ok(hub.admin("/task/revoke", { task_id: taken }));
    for (const [i, [path, body]] of cases.entries()) {
      const first = firsts[i];
      if (!first) throw new Error("as many firsts as cases");
      await expectReplay(first, hub.post(path, body, keyed(`k${i}`)));
    }
  });

  once.test("not a 400 or any earlier refusal: the key stays free", async () => {
    await using hub = await startHub();
    const path = "/task/delete";
    const task_id = await hub.addTask();
    const admin = { "X-Admin-Key": ADMIN_KEY };
    const call = (body: unknown, headers: Record<string, string | null> = admin) =>
      hub.post(path, body, keyed("k1", { headers: { "Idempotency-Key": "k1", ...headers } }));
    await refused(call({ task_id }, { "X-Matrix-Secret": null }), 401, "unauthorized");
    await refused(call({ task_id }, {}), 403, "admin_key_required");
    await refused(call(new FormData()), 415, "unsupported_media_type");
    await refused(call(JSON.stringify({ task_id, x: "x".repeat(1024 * 1024) })), 413, "body_too_large");
    await badFields(call({}), ["task_id"]);
    await badFields(call("{"), [""]);
    const first = await call({ task_id });
    expect([first.status, isReplay(first)]).toEqual([200, false]);
    await expectReplay(first, call({ task_id }));
  });

  once.test("is not replayed to a caller that the secret or the body would refuse", async () => {
    await using hub = await startHub();
    await ok(hub.post("/task/create", DRAFT, keyed("k1")));
    const stranger = keyed("k1", { headers: { "Idempotency-Key": "k1", "X-Matrix-Secret": "wrong" } });
    await refused(hub.post("/task/create", DRAFT, stranger), 401, "unauthorized");
    await badFields(hub.post("/task/create", {}, keyed("k1")), ["title", "description"]);
  });

  once.test.each(VARIANTS)("every POST of %s", async (variant) => {
    await using hub = await startHub();
    for (const [path, body] of await everyPost(hub, variant)) {
      const attempt = () =>
        hub.admin(path, body, {
          variant,
          headers: { "X-Admin-Key": ADMIN_KEY, "Idempotency-Key": "one-for-all" },
        });
      const first = await attempt();
      expect([path, first.status]).toEqual([path, 200]);
      const before = (await ok(hub.get("/events?since=0&limit=1000")))["cursor"];
      await expectReplay(first, attempt());
      const after = (await ok(hub.get("/events?since=0&limit=1000")))["cursor"];
      expect([path, after]).toEqual([path, before]);
    }
  });

  once.test("an answer without a change is not stored: a repeat runs again", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const task_id = await hub.addTask();
    await ok(hub.post("/task/claim", { task_id, node_id: "n1" }));
    const again = await hub.post("/task/claim", { task_id, node_id: "n1" }, keyed("k1"));
    expect([again.status, isReplay(again)]).toEqual([200, false]);
    await ok(hub.post("/task/complete", { task_id, node_id: "n1", result: RESULT }));
    await refused(hub.post("/task/claim", { task_id, node_id: "n1" }, keyed("k1")), 409, "task_completed");
    expect((await ok(hub.post("/message/receive", { node_id: "n1" }, keyed("k2"))))["count"]).toBe(0);
    await hub.send("op", "n1");
    expect((await ok(hub.post("/message/receive", { node_id: "n1" }, keyed("k2"))))["count"]).toBe(1);
  });

  once.test(
    "only as much as --max-answers: the commit beyond it deletes the oldest answers, and their requests are done again",
    async () => {
      await using hub = await startHub({ maxAnswersBytes: 200 * 1024 });
      const create = (key: string) =>
        hub.post("/task/create", { ...DRAFT, description: "x".repeat(60 * 1024) }, keyed(key));
      const firsts = [await create("k0"), await create("k1"), await create("k2"), await create("k3")];
      for (const one of firsts) expect([one.status, isReplay(one)]).toEqual([200, false]);
      for (const key of ["k3", "k2", "k1"]) expect([key, isReplay(await create(key))]).toEqual([key, true]);
      expect(isReplay(await create("k0"))).toBe(false);
    },
  );

  async function everyPost(
    hub: TestHub,
    variant: VariantName,
  ): Promise<readonly (readonly [string, unknown])[]> {
    await hub.addNodes(["n1", "n2"]);
    const form = new FormData();
    form.set("file", new File(["x"], "x.txt"));
    const { file_id } = await ok(hub.post("/file/upload", form));
    const [claimed, assigned, batched] = [await hub.addTask(), await hub.addTask(), await hub.addTask()];
    const [done, revoked] = [await hub.addTaskOf("n1"), await hub.addTaskOf("n1")];
    const message_id = await hub.send("op", "n1", { require_ack: true });
    const other_id = await hub.send("op", "n1", { require_ack: true });
    const message = { from_node: "n2", to_node: "n1", content: "x" };
    const batch = { assignments: [{ task_id: batched, node_id: "n1" }] };
    return [
      ["/node/register", { node_id: "n3", name: "n" }],
      ["/node/heartbeat", { node_id: "n1" }],
      ["/task/create", { ...DRAFT, task_type: "coding" }],
      ["/task/claim", { task_id: claimed, node_id: "n1" }],
      ["/task/assign", { task_id: assigned, node_id: "n1" }],
      ["/task/complete", { task_id: done, node_id: "n1", result: RESULT }],
      ["/task/revoke", { task_id: revoked }],
      ["/task/batch-assign", variant === "A" ? batch : { assignments: null }],
      ["/task/delete", { task_id: done }],
      ["/message/send", message],
      ["/agent/message", message],
      ["/message/receive", { node_id: "n1", count: 1 }],
      ["/message/broadcast", { from_node: "n2", content: "x" }],
      ["/agent/broadcast", { from_node: "n2", content: "x" }],
      ["/message/ack", { node_id: "n1", message_id }],
      ["/agent/ack", { node_id: "n1", message_id: other_id }],
      ["/signin", { node_id: "n1" }],
      ["/file/delete", { file_id }],
    ];
  }

  once.test("is read for POST only", async () => {
    await using hub = await startHub();
    await hub.addTask();
    expect(await ok(hub.get("/task/list", keyed("k1")))).toMatchObject({ total: 1 });
    await hub.addTask();
    const again = await hub.get("/task/list", keyed("k1"));
    expect([isReplay(again), again.body["total"]]).toEqual([false, 2]);
  });
});

once.describe("the body", () => {
  async function sameAs(first: string, second: string): Promise<number> {
    await using hub = await startHub({ variants: ["A"] });
    await ok(hub.post("/task/create", first, keyed("k1")));
    const again = await hub.post("/task/create", second, keyed("k1"));
    if (again.status === 422) await refused(again, 422, "idempotency_key_reused");
    else expect(isReplay(again)).toBe(true);
    expect(await tasksIn(hub)).toBe(1);
    return again.status;
  }

  test.each([
    ["with its names in another order", '{"title":"t","description":"d"}', '{"description":"d","title":"t"}'],
    ["with other spaces", '{"title":"t","description":"d"}', ' {\n"title" :"t",\t"description": "d" } '],
    ["with other escapes", '{"title":"\\u0074","description":"d/"}', '{"title":"t","description":"d\\/"}'],
    [
      "with the same numbers",
      '{"title":"t","description":"d","lux_reward":1.0}',
      '{"title":"t","description":"d","lux_reward":1}',
    ],
    [
      "with inner names in another order",
      '{"title":"t","description":"d","x":[{"a":1,"b":{"c":2,"d":3}}]}',
      '{"x":[{"b":{"d":3,"c":2},"a":1}],"title":"t","description":"d"}',
    ],
  ])("%s is the same", async (_, first, second) => {
    expect(await sameAs(first, second)).toBe(200);
  });

  test.each([
    ["with another text", '{"title":"t","description":"d"}', '{"title":"T","description":"d"}'],
    [
      "with one field more",
      '{"title":"t","description":"d"}',
      '{"title":"t","description":"d","priority":1}',
    ],
    [
      "with an unknown field more",
      '{"title":"t","description":"d"}',
      '{"title":"t","description":"d","x":1}',
    ],
    [
      "with a list in another order",
      '{"title":"t","description":"d","x":[1,2]}',
      '{"title":"t","description":"d","x":[2,1]}',
    ],
    [
      "with a list for an object",
      '{"title":"t","description":"d","x":{"a":1}}',
      '{"title":"t","description":"d","x":[["a",1]]}',
    ],
    [
      "with a text for a number",
      '{"title":"t","description":"d","x":1}',
      '{"title":"t","description":"d","x":"1"}',
    ],
  ])("%s is another", async (_, first, second) => {
    expect(await sameAs(first, second)).toBe(422);
  });

  test("a 422 leaves the first answer as it was", async () => {
    await using hub = await startHub();
    const first = await hub.post("/task/create", DRAFT, keyed("k1"));
    const other = { ...DRAFT, title: "other" };
    await refused(hub.post("/task/create", other, keyed("k1")), 422, "idempotency_key_reused");
    await refused(hub.post("/task/create", other, keyed("k1")), 422, "idempotency_key_reused");
    await expectReplay(first, hub.post("/task/create", DRAFT, keyed("k1")));
  });

  test("of another path is another request", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const message = { from_node: "op", to_node: "n1", content: "x", node_id: "n1" };
    for (const path of [
      "/message/send",
      "/agent/message",
      "/signin",
      "/node/heartbeat",
      "/message/broadcast",
    ]) {
      const first = await hub.post(path, message, keyed("k1"));
      expect([path, first.status, isReplay(first)]).toEqual([path, 200, false]);
    }
    expect(await hub.receive("n1")).toHaveLength(3);
  });
});

describe("an upload", () => {
  type Sent = { content?: string; name?: string; type?: string; metadata?: string | null; boundary?: string };

  function bodyOf(sent: Sent = {}): CallOptions {
    const {
      content = "content",
      name = "a.txt",
      type = "text/plain",
      metadata = null,
      boundary = "b1",
    } = sent;
    const file = [
      `--${boundary}`,
      `Content-Disposition: form-data; name="file"; filename="${name}"`,
      `Content-Type: ${type}`,
      "",
      content,
    ];
    const field = [`--${boundary}`, 'Content-Disposition: form-data; name="metadata"', "", metadata];
    const lines = [...(metadata === null ? [] : field), ...file, `--${boundary}--`, ""];
    const headers = { "Idempotency-Key": "k1", "Content-Type": `multipart/form-data; boundary=${boundary}` };
    return { body: new Blob([lines.join("\r\n")]), headers };
  }

  const attempt = (hub: TestHub, sent: Sent): Promise<Answer> =>
    hub.call("POST", "/file/upload", bodyOf(sent));

  test("is the same request if file and metadata are equal, whatever its boundary, and is stored once", async () => {
    await using hub = await startHub();
    const first = await attempt(hub, {});
    await ok(first);
    for (const same of [{}, { boundary: "another" }, { metadata: "" }, { metadata: " {} " }]) {
      await expectReplay(first, attempt(hub, same));
    }
    for (const other of [
      { content: "Content" },
      { content: "" },
      { name: "b.txt" },
      { type: "text/html" },
      { metadata: '{"a":1}' },
    ]) {
      await refused(attempt(hub, other), 422, "idempotency_key_reused");
    }
    expect(await ok(hub.get("/file/list"))).toMatchObject({ total: 1 });
    expect((await hub.get(`/file/download/${first.body["file_id"]}`)).status).toBe(200);
  });

  once.test("compares metadata by value", async () => {
    await using hub = await startHub();
    const first = await attempt(hub, { metadata: '{"a":"é","b":{"n":9007199254740993,"m":[1,2]}}' });
    await ok(first);
    const metadata = '{ "b": {"m":[1, 2],"n":9007199254740993}, "a": "\\u00e9" }';
    await expectReplay(first, attempt(hub, { metadata, boundary: "x" }));
    for (const other of [
      '{"a":"é","b":{"n":9007199254740992,"m":[1,2]}}',
      '{"a":"é","b":{"n":9007199254740993,"m":[2,1]}}',
      '{"a":"é","b":{"n":"9007199254740993","m":[1,2]}}',
    ]) {
      await refused(attempt(hub, { metadata: other }), 422, "idempotency_key_reused");
    }
  });

  once.test.each(VARIANTS)("on %s that an ordinary client tries again is stored once", async (variant) => {
    await using hub = await startHub();
    const ordinary = (): Promise<Answer> => {
      const form = new FormData(); // fetch draws a boundary for each
      form.set("file", new File(["content"], "a.txt", { type: "text/plain" }));
      form.set("metadata", '{"node":"somebody"}');
      return hub.post("/file/upload", form, keyed("k1", { variant }));
    };
    const first = await ordinary();
    await expectReplay(first, ordinary());
    expect(await ok(hub.get("/file/list"))).toMatchObject({ total: 1 });
  });

  test("ten times at once is stored once", async () => {
    await using hub = await startHub();
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) => attempt(hub, { boundary: `b${i}` })),
    );
    expect(new Set(answers.map((answer) => answer.body["file_id"])).size).toBe(1);
    expect(answers.filter((answer) => !isReplay(answer))).toHaveLength(1);
    expect(await ok(hub.get("/file/list"))).toMatchObject({ total: 1 });
  });

  once.test("that named a node before it was registered gets its first answer again", async () => {
    await using hub = await startHub();
    const sent = { metadata: '{"node":"late"}' };
    const first = await attempt(hub, sent);
    expect(await ok(first)).toMatchObject({ node_id: null });
    await hub.addNode("late");
    await expectReplay(first, attempt(hub, { ...sent, boundary: "b2" }));
    expect(await ok(hub.get("/file/list"))).toMatchObject({ total: 1 });
  });
});

describe("at once", () => {
  const AT_ONCE = 50;
  const all = (attempt: () => Promise<Answer>) => Promise.all(Array.from({ length: AT_ONCE }, attempt));

  function expectOneEffect(answers: readonly Answer[]): void {
    expect(new Set(answers.map((answer) => JSON.stringify(answer.body))).size).toBe(1);
    expect(answers.filter((answer) => answer.status !== 200)).toEqual([]);
    expect(answers.filter((answer) => !isReplay(answer))).toHaveLength(1);
  }

  test("50 with one key make one task", async () => {
    await using hub = await startHub();
    expectOneEffect(await all(() => hub.post("/task/create", DRAFT, keyed("k1"))));
    expect(await tasksIn(hub)).toBe(1);
  });

  test("50 sends with one key send one message, and 50 receives with one key get it", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const message = { from_node: "op", to_node: "n1", content: "x" };
    expectOneEffect(await all(() => hub.post("/message/send", message, keyed("k1"))));
    const taken = await all(() => hub.post("/message/receive", { node_id: "n1" }, keyed("k2")));
    expectOneEffect(taken);
    expect(list(taken[0]?.body ?? {}, "messages")).toHaveLength(1);
    expect(await hub.receive("n1")).toEqual([]);
  });

  test("50 with one key pay once", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await hub.addTaskOf("n1", { lux_reward: 3 });
    const body = { task_id: taskId, node_id: "n1", result: RESULT };
    expectOneEffect(await all(() => hub.post("/task/complete", body, keyed("k1"))));
    expectOneEffect(await all(() => hub.post("/signin", { node_id: "n1" }, keyed("k1"))));
    expect(await hub.nodeOf("n1")).toMatchObject({ lux_balance: 13, tasks_completed: 1 });
  });

  test("50 with one key and two bodies: one body wins, the other is 422", async () => {
    await using hub = await startHub();
    let turn = 0;
    const answers = await all(() =>
      hub.post("/task/create", { ...DRAFT, title: `t${turn++ % 2}` }, keyed("k1")),
    );
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(AT_ONCE / 2);
    expect(answers.filter((answer) => answer.status === 422)).toHaveLength(AT_ONCE / 2);
    expect(await tasksIn(hub)).toBe(1);
  });

  once.test("50 keys are 50 requests", async () => {
    await using hub = await startHub();
    let turn = 0;
    const answers = await all(() => hub.post("/task/create", DRAFT, keyed(`k${turn++}`)));
    expect(answers.filter(isReplay)).toEqual([]);
    expect(await tasksIn(hub)).toBe(AT_ONCE);
  });

  test("the second waits for the first that still runs", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const body = { node_id: "n1", blocking: true, timeout: 60 };
    const attempt = () => hub.post("/message/receive", body, keyed("k1"));
    const [first, second] = [attempt(), attempt()];
    let answered = 0;
    for (const one of [first, second]) one.then(() => answered++).catch(() => {});
    await ok(hub.get("/status"));
    expect(answered).toBe(0);
    await hub.send("op", "n1");
    const answers = [await first, await second];
    expect(answers.map(isReplay).toSorted()).toEqual([false, true]);
    for (const answer of answers) expect(answer.body).toMatchObject({ count: 1 });
    expect(await hub.receive("n1")).toEqual([]);
  });

  once.test("the second waits no longer than the first, and keys of other callers delay nobody", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const attempt = (key: string, timeout: number) =>
      hub.post("/message/receive", { node_id: "n1", blocking: true, timeout }, keyed(key));
    const held = attempt("slow", 60);
    await ok(attempt("quick", 0));
    await hub.send("op", "n1");
    expect(await ok(held)).toMatchObject({ count: 1 });
  });

  once.test("a first request that is refused for its body frees the waiting ones", async () => {
    await using hub = await startHub();
    const answers = await Promise.all([
      hub.post("/task/create", {}, keyed("k1")),
      hub.post("/task/create", DRAFT, keyed("k1")),
      hub.post("/task/create", DRAFT, keyed("k1")),
    ]);
    expect(answers.map((answer) => answer.status)).toEqual([400, 200, 200]);
    expect(await tasksIn(hub)).toBe(1);
  });
});

const NO_KEYS = { derive: async () => "" };

once.test("as many repeats as may wait all get the stored answer", async () => {
  let stored: unknown = null;
  // Of the store only this one read is asked for.
  const store = { read: async () => stored } as unknown as ConstructorParameters<typeof Idempotency>[0];
  const idempotency = new Idempotency(store, new TestClock(), new ResponseBackpressure(), NO_KEYS, 1);
  let held = 0;
  const attempt = {
    scope: "s",
    asked: "h",
    isPrimary: false,
    exchange: {} as Attempt["exchange"],
    transact: () => Promise.reject(new Error("written")),
    share: () => shareOfAddress("a"),
    hold: <T>(wait: (signal: AbortSignal) => Promise<T>) => (held++, wait(new AbortController().signal)),
  };
  const first = Promise.withResolvers<string>();
  let runs = 0;
  const run = () => idempotency.run(attempt, () => (runs++, first.promise));
  const running = run();
  const waiting = Array.from({ length: WAIT_SHARES.keys }, run);
  stored = { asked: "h", status: 200, body: "{}" };
  first.resolve("{}");
  await running;
  const answers = await Promise.all(waiting);
  const isReplayed = (answer: unknown): boolean =>
    answer instanceof Response && answer.headers.get("idempotent-replayed") === "true";
  expect(answers.every(isReplayed)).toBe(true);
  expect(runs).toBe(1);
  expect(held).toBe(WAIT_SHARES.keys);
});

test("a caller that hung up gets, when it repeats, the messages taken for it", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const body = { node_id: "n1", blocking: true, timeout: 60 };
  const first = await hold(hub.port(), rawPost("/message/receive", body, ["Idempotency-Key: k1"]));
  await ok(hub.get("/status")); // came later, so the first is there
  first.hangUp();
  await hub.send("op", "n1", { content: "for you" });
  const again = await hub.post("/message/receive", body, keyed("k1"));
  expect(list(await ok(again), "messages")).toMatchObject([{ content: "for you" }]);
});

test("an answer is replayed after a restart", async () => {
  const dataDir = newDataDir();
  try {
    const firsts: Answer[] = [];
    const attempt = async (hub: TestHub) => [
      await hub.post("/task/create", DRAFT, keyed("k1")),
      await hub.post("/signin", { node_id: "n1" }, keyed("k1")),
      await hub.post("/task/claim", { task_id: NO_ID, node_id: "n1" }, keyed("k1")),
    ];
    {
      await using hub = await startHub({ dataDir });
      await hub.addNode("n1");
      firsts.push(...(await attempt(hub)));
    }
    await using hub = await startHub({ dataDir });
    const again = await attempt(hub);
    expect(again.map(isReplay)).toEqual([true, true, true]);
    expect(again.map((answer) => [answer.status, answer.body])).toEqual(
      firsts.map((answer) => [answer.status, answer.body]),
    );
    expect(await tasksIn(hub)).toBe(1);
    expect(await hub.nodeOf("n1")).toMatchObject({ lux_balance: 10 });
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

test("an answer that luxhub 0.1.0 stored, without the variant, is replayed for its own body", async () => {
  const store = {
    read: async () => ({ asked: "hash", status: 200, body: "{}" }),
  } as unknown as ConstructorParameters<typeof Idempotency>[0];
  const idempotency = new Idempotency(store, new TestClock(), new ResponseBackpressure(), NO_KEYS, 1);
  const attempt = (asked: string) => ({
    scope: "s",
    asked,
    isPrimary: false,
    exchange: {} as Attempt["exchange"],
    transact: () => Promise.reject(new Error("written")),
    share: () => shareOfAddress("a"),
    hold: <T>(wait: (signal: AbortSignal) => Promise<T>) => wait(new AbortController().signal),
  });
  const never = () => Promise.reject(new Error("done twice"));
  const again = await idempotency.run(attempt("A hash"), never);
  expect(again instanceof Response && (await again.text())).toBe("{}");
  await expect(idempotency.run(attempt("A other"), never)).rejects.toThrow("another body");
});
