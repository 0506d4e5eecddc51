/**
 * Who said it (docs/security.md): the data that the hub marks as verified, and the requests that a hub with --strict
 * refuses. A separate file, because its table has every call that acts for a node.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Endpoint } from "../../src/api/endpoint.ts";
import { DECLARED } from "../../src/api/routes.ts";
import { ADMIN_KEY, type Answer, type CallOptions, SECRET, type TestHub, startHub } from "../support/hub.ts";
import { Agent } from "../support/mcp.ts";
import { as } from "./key-commands.ts";
import { RESULT, list, ok, record, refused } from "./scene.ts";

/** Keys that are bound to n1 and to n2. The calls below act for n1. */
type Scene = { readonly hub: TestHub; readonly n1: string; readonly n2: string };

const ADMIN = { "X-Admin-Key": ADMIN_KEY } as const;

async function scene(isStrict: boolean): Promise<Scene> {
  const hub = await startHub({ variants: ["A"], isStrict });
  const key = async (node_id: string): Promise<string> => {
    const { secret } = await ok(hub.post("/key/add", { name: `of-${node_id}`, node_id }, { headers: ADMIN }));
    await ok(hub.post("/node/register", { node_id, name: node_id }, as(String(secret))));
    return String(secret);
  };
  return { hub, n1: await key("n1"), n2: await key("n2") };
}

test("an event of what a person did says with which key and, behind a proxy that names people, who", async () => {
  const proxy = [{ address: "127.0.0.0", prefix: 8 }];
  for (const trustProxy of [proxy, []]) {
    await using hub = await startHub({ trustProxy, userHeader: "X-Forwarded-User" });
    const { secret } = await ok(hub.admin("/key/add", { name: "office" }));
    await hub.addNode("n1");
    const asked = await hub.addTaskOf("n1", { creator_node: "n1" });
    const { question } = await ok(
      hub.post("/task/ask", { task_id: asked, node_id: "n1", question: "Which?" }),
    );
    const { question_id } = record(question);
    const headers = { "X-Forwarded-User": "alice", "X-Matrix-Secret": String(secret) };
    await ok(hub.post("/task/answer", { task_id: asked, question_id, answer: "Red" }, { headers }));
    await ok(hub.post("/hub/pause", {}, { headers: { ...headers, ...ADMIN } }));
    const batch = { requests: [{ path: "task/cancel", body: { task_id: asked } }] };
    await ok(hub.post("/batch", batch, { headers: { "X-Matrix-Secret": String(secret) } }));
    const person = trustProxy.length > 0 ? "alice@office" : "@office";
    const events = list(await ok(hub.get("/events?since=0")), "events").filter(({ by }) => by !== null);
    expect(events.map(({ kind, by, data }) => [kind, by, record(data)["author"]])).toEqual([
      ["task.answered", person, undefined],
      ["hub.paused", person, undefined],
      ["task.failed", "@office", undefined],
    ]);
  }
});

type Case = {
  readonly path: string;
  /** What the declaration must say. */
  readonly strict: "bound" | "administrator";
  /** Makes what the call needs; its body. */
  readonly body: (scene: Scene) => Promise<unknown>;
  /** The events of the call by the node's own key, and whether each is verified. */
  readonly events?: readonly string[];
  /** What the call is answered where it is not refused. */
  readonly status?: number;
  /** Why it is not part of a batch. */
  readonly alone?: true;
};

const open = async ({ hub }: Scene) => ({ task_id: await hub.addTask(), node_id: "n1" });

async function held({ hub, n1 }: Scene) {
  const task_id = await hub.addTask({ lux_reward: 2 });
  await ok(hub.post("/task/claim", { task_id, node_id: "n1" }, as(n1)));
  return { task_id, node_id: "n1" };
}

/** A message of n2 for n1. */
async function sent({ hub, n2 }: Scene) {
  const asked = { from_node: "n2", to_node: "n1", content: "x", require_ack: true };
  return {
    node_id: "n1",
    message_id: (await ok(hub.post("/message/send", asked, as(n2))))["message_id"],
  };
}

/** A note that n1 has written. */
async function written({ hub, n1 }: Scene) {
  const key = crypto.randomUUID();
  await ok(hub.post("/note/put", { key, text: "x", node_id: "n1" }, as(n1)));
  return { key, node_id: "n1" };
}

/** A lease of n1. */
async function leased({ hub, n1 }: Scene) {
  const asked = { name: "held", node_id: "n1" };
  await ok(hub.post("/lease/acquire", asked, as(n1)));
  return asked;
}

function upload(metadata: object): FormData {
  const form = new FormData();
  form.set("file", new File(["x"], "x.txt"));
  form.set("metadata", JSON.stringify(metadata));
  return form;
}

const own = async () => ({ node_id: "n1" });
const message = async () => ({ from_node: "n1", to_node: "n2", content: "x" });
const broadcast = async () => ({ from_node: "n1", content: "x" });

const CASES: readonly Case[] = [
  {
    path: "/node/register",
    strict: "bound",
    body: async () => ({ node_id: "n1", name: crypto.randomUUID() }),
    events: ["node.updated true"],
  },
  { path: "/node/heartbeat", strict: "bound", body: own },
  {
    path: "/node/drain",
    strict: "administrator",
    body: async () => ({ node_id: "n1", drain: true }),
    events: ["node.draining true"],
  },
  { path: "/node/leave", strict: "bound", body: own, events: ["node.left true", "node.offline true"] },
  {
    path: "/task/create",
    strict: "bound",
    body: async () => ({ title: "t", description: "d", creator_node: "n1" }),
    events: ["task.created true"],
  },
  {
    path: "/task/next",
    strict: "bound",
    body: async (scene) => ({ node_id: (await open(scene)).node_id }),
    events: ["task.assigned true"],
  },
  { path: "/task/claim", strict: "bound", body: open, events: ["task.assigned true"] },
  { path: "/task/assign", strict: "administrator", body: open, events: ["task.assigned true"] },
  {
    path: "/task/batch-assign",
    strict: "administrator",
    body: async (scene) => ({ assignments: [await open(scene)] }),
    events: ["task.assigned true"],
    alone: true,
  },
  {
    path: "/task/complete",
    strict: "bound",
    body: async (scene) => ({ ...(await held(scene)), result: RESULT }),
    events: ["task.completed true", "lux.paid true"],
  },
  { path: "/task/release", strict: "bound", body: held, events: ["task.released true"] },
  {
    path: "/task/fail",
    strict: "bound",
    body: async (scene) => ({ ...(await held(scene)), error: "e", retry: false }),
    events: ["task.attempt_failed true", "task.failed true"],
  },
  {
    path: "/task/extend",
    strict: "bound",
    body: async (scene) => ({ ...(await held(scene)), note: "on it" }),
    events: ["task.progress true"],
  },
  {
    path: "/task/output",
    strict: "bound",
    body: async (scene) => ({ ...(await held(scene)), offset: 0, data: "x" }),
  },
  {
    path: "/task/ask",
    strict: "bound",
    body: async (scene) => ({ ...(await held(scene)), question: "?" }),
    events: ["task.asked true"],
  },
  {
    path: "/task/answer",
    strict: "bound",
    body: async ({ hub, n1 }) => {
      const asked = { title: "t", description: "d", creator_node: "n1" };
      const { task_id } = await ok(hub.post("/task/create", asked, as(n1)));
      const of = { task_id, node_id: "n1" };
      await ok(hub.post("/task/claim", of, as(n1)));
      const { question } = await ok(hub.post("/task/ask", { ...of, question: "?" }, as(n1)));
      return { ...of, question_id: record(question)["question_id"], answer: 1 };
    },
    events: ["task.answered true"],
  },
  {
    path: "/task/cancel",
    strict: "bound",
    body: async ({ hub, n1 }) => {
      const asked = { title: "t", description: "d", creator_node: "n1" };
      return { node_id: "n1", task_id: (await ok(hub.post("/task/create", asked, as(n1))))["task_id"] };
    },
    events: ["task.failed false"], // the event names the holder, and there is none
  },
  {
    path: "/task/review",
    strict: "bound",
    body: async ({ hub, n1, n2 }) => {
      const asked = { title: "t", description: "d", creator_node: "n1", review: "creator" };
      const { task_id } = await ok(hub.post("/task/create", asked, as(n1)));
      await ok(hub.post("/task/claim", { task_id, node_id: "n2" }, as(n2)));
      await ok(hub.post("/task/complete", { task_id, node_id: "n2", result: RESULT }, as(n2)));
      return { task_id, node_id: "n1", verdict: "pass" };
    },
    events: ["task.review_passed true"],
  },
  {
    path: "/group/cancel",
    strict: "bound",
    body: async ({ hub, n1 }) => {
      const group = crypto.randomUUID();
      await ok(hub.post("/task/create", { title: "t", description: "d", creator_node: "n1", group }, as(n1)));
      return { group: `${group}/n1`, node_id: "n1" };
    },
    events: ["task.failed false", "group.ended false"],
  },
  {
    path: "/limit/hold",
    strict: "bound",
    body: async ({ hub, n1 }) => {
      const key = crypto.randomUUID();
      const task_id = await hub.addTask({ limit_key: key });
      await ok(hub.post("/task/claim", { task_id, node_id: "n1" }, as(n1)));
      return { key, for_s: 1, node_id: "n1" };
    },
    events: ["limit.held false"], // the event is about the key, and names the node in its data
  },
  {
    path: "/schedule/put",
    strict: "bound",
    body: async () => ({
      name: crypto.randomUUID().slice(0, 8),
      every_s: 3_600,
      task: { title: "t", description: "d", creator_node: "n1" },
    }),
    events: ["schedule.saved true"],
  },
  {
    path: "/note/put",
    strict: "bound",
    body: async () => ({ key: crypto.randomUUID(), text: "x", node_id: "n1" }),
    events: ["note.changed true"],
  },
  { path: "/note/delete", strict: "bound", body: written, events: ["note.deleted true"] },
  {
    path: "/lease/acquire",
    strict: "bound",
    body: async () => ({ name: "free", node_id: "n1" }),
  },
  { path: "/lease/renew", strict: "bound", body: leased },
  { path: "/lease/release", strict: "administrator", body: leased },
  { path: "/message/send", strict: "bound", body: message, events: ["message.sent true"] },
  { path: "/agent/message", strict: "bound", body: message, events: ["message.sent true"] },
  {
    path: "/message/broadcast",
    strict: "bound",
    body: broadcast,
    events: ["message.sent true"],
    alone: true,
  },
  { path: "/agent/broadcast", strict: "bound", body: broadcast, events: ["message.sent true"], alone: true },
  { path: "/message/receive", strict: "bound", body: own },
  { path: "/message/ack", strict: "bound", body: sent, events: ["message.acked true"] },
  { path: "/agent/ack", strict: "bound", body: sent, events: ["message.acked true"] },
  { path: "/message/redrive", strict: "administrator", body: sent, status: 409 }, // it is not parked
  { path: "/signin", strict: "bound", body: own, events: ["lux.signin true"] },
  { path: "/file/upload-url", strict: "bound", body: own, alone: true },
  {
    path: "/file/upload",
    strict: "bound",
    body: async () => upload({ node: "n1" }),
    events: ["file.uploaded true"],
    alone: true,
  },
];

const CALLERS = [
  "its own key",
  "the key of another node",
  "a key without a node",
  "that and the administrator key",
];

function callerOf({ n1, n2 }: Scene, caller: string): CallOptions {
  if (caller === CALLERS[0]) return as(n1);
  if (caller === CALLERS[1]) return as(n2);
  return caller === CALLERS[3] ? { headers: ADMIN } : {};
}

/** A code, or the status of a call that is not refused. */
function expected({ strict, status = 200 }: Case, caller: string, isStrict: boolean): string {
  if (caller === CALLERS[0]) return String(status);
  if (caller === CALLERS[1]) return "key_bound_to_other_node";
  const isAllowed = !isStrict || (strict === "administrator" && caller === CALLERS[3]);
  return isAllowed ? String(status) : "key_not_bound";
}

function outcomeOf({ status, body }: Pick<Answer, "status" | "body">): string {
  return status === 403 ? String(body["error"]) : String(status);
}

/** The newest event's id, and the events after one. */
async function eventsAfter(hub: TestHub, since: number) {
  return list(await ok(hub.get(`/events?since=${since}&limit=1000`)), "events");
}

async function lastId(hub: TestHub): Promise<number> {
  return Number((await ok(hub.get("/events?limit=1")))["cursor"]);
}

describe.each([false, true])("a call that acts for a node (--strict: %p)", (isStrict) => {
  let all: Scene;
  beforeAll(async () => void (all = await scene(isStrict)));
  afterAll(() => all.hub[Symbol.asyncDispose]());

  /** n1 is online and takes tasks. */
  async function ready({ hub, n1 }: Scene): Promise<void> {
    await ok(hub.post("/node/heartbeat", { node_id: "n1" }, as(n1)));
    await ok(hub.post("/node/drain", { node_id: "n1", drain: false }, as(n1)));
  }

  test.each(CASES)("$path", async (one) => {
    const { hub } = all;
    for (const caller of CALLERS) {
      for (const inBatch of one.alone ? [false] : [false, true]) {
        await ready(all);
        const body = await one.body(all);
        const before = await lastId(hub);
        const options = callerOf(all, caller);
        const answer = inBatch
          ? await hub.post("/batch", { requests: [{ path: one.path.slice(1), body }] }, options)
          : await hub.post(one.path, body, options);
        const [item = {}] = inBatch ? list(answer.body, "answers") : [];
        const outcome = inBatch
          ? outcomeOf({ status: Number(item["status"]), body: record(item["body"]) })
          : outcomeOf(answer);
        const wanted = expected(one, caller, isStrict);
        expect({ caller, inBatch, outcome }).toEqual({ caller, inBatch, outcome: wanted });
        const events = await eventsAfter(hub, before);
        const shown = events.map(({ kind, verified }) => `${kind} ${verified}`);
        if (wanted.startsWith("key_")) expect(shown).toEqual([]);
        else if (caller !== CALLERS[0])
          expect(events.filter(({ verified }) => verified !== false)).toEqual([]);
        else if (one.path !== "/signin" || !inBatch) expect(shown).toEqual([...(one.events ?? [])]);
      }
    }
  });
});

test("the table has every call that acts for a node", () => {
  const acting = DECLARED.filter(({ strict }) => strict !== undefined);
  const name = (path: string): string => path.replace(/^(\/api\/v1)?\//, "");
  const rows = (some: readonly { readonly path: string; readonly strict?: string }[]) =>
    some.map(({ path, strict }) => `${name(path)} ${strict}`).toSorted();
  expect(rows(CASES)).toEqual(rows(acting));
  for (const endpoint of DECLARED) {
    const { method, path, auth, strict } = endpoint;
    const namesNode =
      "actsFor" in endpoint && (endpoint as Endpoint & { actsFor?: unknown }).actsFor !== undefined;
    if (method === "POST" && auth === "secret" && namesNode)
      expect({ path, isStrict: strict !== undefined }).toEqual({ path, isStrict: true });
    else if (method !== "POST" || auth === "admin")
      expect({ path, strict }).toEqual({ path, strict: undefined });
  }
});

describe("what is verified", () => {
  let all: Scene;
  beforeAll(async () => void (all = await scene(false)));
  afterAll(() => all.hub[Symbol.asyncDispose]());

  const asked = { from_node: "n1", to_node: "n2", content: "hello" };

  test("a message, wherever it is shown", async () => {
    const { hub, n1, n2 } = all;
    const known = await ok(hub.post("/message/send", asked, as(n1)));
    const unknown = await hub.send("n1", "n2");
    const called = await ok(hub.post("/agent/broadcast", { from_node: "n1", content: "all" }, as(n1)));
    const wanted = new Map([
      [known["message_id"], true],
      [unknown, false],
      [called["message_id"], true],
    ]);
    for (const path of [
      "/message/history?node_id=n2",
      "/agent/messages?node_id=n2",
      "/message/history?node_id=n1",
    ]) {
      const shown = list(await ok(hub.get(path)), "messages").map(
        ({ id, verified }) => [id, verified] as const,
      );
      expect(new Map(shown)).toEqual(wanted);
    }
    const taken = list(await ok(hub.post("/message/receive", { node_id: "n2" }, as(n2))), "messages");
    expect(new Map(taken.map(({ id, verified }) => [id, verified]))).toEqual(wanted);
  });

  test("a result, by the key of its first completion", async () => {
    const { hub, n1 } = all;
    for (const [options, again, wanted] of [
      [as(n1), {}, true],
      [{}, as(n1), false],
    ] as const) {
      const { task_id } = await held(all);
      const done = { task_id, node_id: "n1", result: RESULT };
      await ok(hub.post("/task/complete", done, options));
      await ok(hub.post("/task/complete", done, again)); // a repeat changes nothing
      const { task } = await ok(hub.get(`/task/${task_id}`));
      expect(task).toMatchObject({ status: "completed", result: RESULT, result_verified: wanted });
    }
  });

  test("the creator of a task, by the key that created it", async () => {
    const { hub, n1 } = all;
    const draft = { title: "t", description: "d" };
    for (const [options, fields, wanted] of [
      [as(n1), {}, { creator_node: "n1", creator_verified: true }],
      [as(n1), { creator_node: "n1" }, { creator_node: "n1", creator_verified: true }],
      [{}, { creator_node: "n1" }, { creator_node: "n1", creator_verified: false }],
      [{}, {}, { creator_node: null, creator_verified: false }],
    ] as const) {
      const made = await ok(hub.post("/task/create", { ...draft, ...fields }, options));
      expect(made["task"]).toMatchObject(wanted);
      expect((await ok(hub.get(`/task/${made["task_id"]}`)))["task"]).toMatchObject(wanted);
    }
  });

  test("a file, by the key that uploaded it", async () => {
    const { hub, n1 } = all;
    for (const [options, node, wanted] of [
      [as(n1), "n1", true],
      [as(n1), undefined, true],
      [{}, "n1", false],
    ] as const) {
      const file = await ok(hub.post("/file/upload", upload({ node }), options));
      expect(file).toMatchObject({ node_id: "n1", verified: wanted });
      const [newest] = list(await ok(hub.get("/file/list?per_page=1")), "files");
      expect(newest).toMatchObject({ file_id: file["file_id"], verified: wanted });
    }
  });

  test("with an Idempotency-Key, and in a batch with one", async () => {
    const { hub, n1 } = all;
    const keyed = as(n1, { headers: { "Idempotency-Key": crypto.randomUUID() } });
    const { task_id } = await held(all);
    const before = await lastId(hub);
    const body = { task_id, node_id: "n1", result: RESULT };
    const requests = [
      { path: "task/complete", body },
      { path: "message/send", body: asked },
    ];
    for (let i = 0; i < 2; i++) await ok(hub.post("/batch", { requests }, keyed));
    const events = await eventsAfter(hub, before);
    expect(events.map(({ kind, verified }) => [kind, verified])).toEqual([
      ["task.completed", true],
      ["lux.paid", true],
      ["message.sent", true],
    ]);
    expect((await ok(hub.get(`/task/${task_id}`)))["task"]).toMatchObject({ result_verified: true });
  });

  test("only actions of the node itself, not of the balancer or an administrator", async () => {
    await using hub = await startHub({ isStrict: true });
    const { secret } = await ok(hub.post("/key/add", { name: "k", node_id: "n1" }, { headers: ADMIN }));
    const mine = as(String(secret), { variant: "B" });
    const task = await hub.addTask({}, "B");
    const before = await lastId(hub);
    await ok(hub.post("/node/register", { node_id: "n1", name: "n" }, mine)); // the balancer has a task for it
    const admin = as(String(secret), { headers: ADMIN });
    await ok(hub.post("/task/revoke", { task_id: task }, admin));
    await ok(hub.post("/task/delete", { task_id: task }, admin));
    await ok(hub.post("/node/delete", { node_id: "n1" }, { headers: ADMIN }));
    await ok(hub.post("/task/batch-assign", undefined, { variant: "B" })); // names no node
    const events = await eventsAfter(hub, before);
    expect(events.map(({ kind, verified }) => `${kind} ${verified}`)).toEqual([
      "node.registered true",
      "node.online true",
      "task.assigned false",
      "task.revoked false",
      "task.deleted false",
      "node.deleted false",
    ]);
  });

  test("no field of a request can set it", async () => {
    const { hub } = all;
    const lies = { verified: true, result_verified: true };
    const before = await lastId(hub);
    await ok(hub.post("/message/send", { ...asked, ...lies, type: "text" }));
    const taskId = await hub.addTask({ creator_node: "n1", ...lies });
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1", ...lies }));
    const result = { ...RESULT, ...lies, data: lies };
    await ok(hub.post("/task/extend", { task_id: taskId, node_id: "n1", note: '"verified":true', ...lies }));
    await ok(hub.post("/task/complete", { task_id: taskId, node_id: "n1", result, ...lies }));
    const file = await ok(hub.post("/file/upload", upload({ node: "n1", task_id: taskId, ...lies })));
    expect(file).toMatchObject({ metadata: lies });
    const { task } = await ok(hub.get(`/task/${taskId}`));
    expect(task).toMatchObject({ result, result_verified: false }); // the worker's own words stay in its result
    const events = await eventsAfter(hub, before);
    expect(events.map(({ verified }) => verified)).toEqual(events.map(() => false));
    const [message] = list(await ok(hub.get("/message/history?node_id=n2")), "messages");
    expect(message).toMatchObject({ content: "hello", verified: false });
  });
});

describe("a strict hub", () => {
  let all: Scene;
  beforeAll(async () => void (all = await scene(true)));
  afterAll(() => all.hub[Symbol.asyncDispose]());

  test("says what to do", async () => {
    const { hub } = all;
    const { body } = await refused(hub.post("/node/heartbeat", { node_id: "n1" }), 403, "key_not_bound");
    expect(body["detail"]).toBe(
      "This hub is strict, and this key is bound to no node. Use a key that is bound to n1 (luxhub keys add NAME --node n1).",
    );
    const drained = await refused(
      hub.post("/node/drain", { node_id: "n1", drain: true }),
      403,
      "key_not_bound",
    );
    expect(drained.body["detail"]).toEndWith(
      ", or send the administrator key in the header X-Admin-Key too.",
    );
  });

  test("takes an agent of MCP at its key", async () => {
    const { hub, n1 } = all;
    await using impostor = await Agent.connect(hub.base(), "n1");
    expect(await impostor.refused("task_next")).toBe("key_not_bound");
    await using creator = await Agent.connect(hub.base(), "", "2026-07-28", { "X-Matrix-Secret": SECRET });
    await creator.ok("task_create", { title: "t", description: "d" });
    await using agent = await Agent.connect(hub.base(), "n1", "2026-07-28", { "X-Matrix-Secret": n1 });
    const { task_id } = record((await agent.ok("task_next"))["task"]);
    await agent.ok("task_complete", { task_id, ...RESULT });
    expect(await creator.ok("task_get", { task_id })).toMatchObject({ task: { result_verified: true } });
  });

  test("lets a key without a node administer, create, look and clean up", async () => {
    const { hub, n1 } = all;
    const taskId = await hub.addTask();
    await ok(hub.post("/task/assign", { task_id: taskId, node_id: "n1" }, { headers: ADMIN }));
    await ok(hub.post("/task/revoke", { task_id: taskId, node_id: "n2" }, { headers: ADMIN }));
    await ok(hub.post("/task/cancel", { task_id: taskId }));
    await ok(hub.post("/task/retry", { task_id: taskId }));
    await ok(hub.post("/task/delete", { task_id: taskId }, { headers: ADMIN }));
    const { file_id } = await ok(hub.post("/file/upload", upload({})));
    await ok(hub.post("/file/delete", { file_id }));
    for (const path of [
      "/task/pull?node_id=n1",
      "/message/history?node_id=n1",
      "/message/parked?node_id=n1",
      "/agent/messages?node_id=n1",
      "/lux/ledger?node_id=n1",
      "/task/list?node_id=n1",
      "/events?node_id=n1",
    ])
      await ok(hub.get(path));
    await refused(hub.get("/task/pull?node_id=n2", as(n1)), 403, "key_bound_to_other_node");
    await ok(hub.post("/node/delete", { node_id: "n2" }, { headers: ADMIN }));
  });
});
