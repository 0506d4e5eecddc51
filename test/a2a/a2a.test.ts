/**
 * A2A at /a2a: the official client over both bindings, the examples of the specification (sections 6, 9 and 11), which
 * caller sees which task, repeated messages, and streams that resume.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import {
  type AgentCard,
  type Message,
  Role,
  type SendMessageRequest,
  StreamResponse,
  type Task,
  type TaskPushNotificationConfig,
  TaskState,
} from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import * as limit from "../../src/domain/limits.ts";
import { RESULT, list, ok, record, until } from "../api/scene.ts";
import { addKey, keys } from "../api/key-commands.ts";
import { ADMIN_KEY, SECRET, type TestHub, newDataDir, startHub } from "../support/hub.ts";
import { RECEIVER_URL, Receiver, idOf } from "../support/receiver.ts";

const SUBMITTED = "TASK_STATE_SUBMITTED";
const WORKING = "TASK_STATE_WORKING";
const COMPLETED = "TASK_STATE_COMPLETED";
const CARD = "/.well-known/agent-card.json";

type Fields = Record<string, unknown>;
type Asked = {
  secret?: string | null;
  headers?: Record<string, string>;
  to?: string;
  method?: string;
  variant?: "A" | "B";
};

function send(hub: TestHub, path: string, body: unknown, asked: Asked = {}): Promise<Response> {
  const { secret = SECRET, headers = {}, to = "/a2a", method = body === undefined ? "GET" : "POST" } = asked;
  return fetch(hub.base(asked.variant) + to + path, {
    method,
    headers: {
      "A2A-Version": "1.0",
      "Content-Type": "application/a2a+json",
      ...(secret === null ? {} : { Authorization: `Bearer ${secret}` }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
}

/** A success of the HTTP+JSON binding. */
async function http(hub: TestHub, path: string, body?: unknown, asked: Asked = {}): Promise<Fields> {
  const answer = await send(hub, path, body, asked);
  const json = record(await answer.json());
  expect([answer.status, json["error"]]).toEqual([200, undefined]);
  expect(answer.headers.get("content-type")).toBe("application/a2a+json");
  return json;
}

/** A refusal of it: status, and reason. */
async function httpError(hub: TestHub, path: string, body?: unknown, asked: Asked = {}): Promise<unknown[]> {
  const answer = await send(hub, path, body, asked);
  const error = record(record(await answer.json())["error"]);
  const details = list(error, "details");
  expect(error).toMatchObject({ code: answer.status, status: expect.stringMatching(/^[A-Z_]+$/) });
  return [answer.status, details[0]?.["reason"], ...fieldsOf(details)];
}

function fieldsOf(details: readonly Fields[]): unknown[] {
  const bad = details.find((detail) => String(detail["@type"]).endsWith("BadRequest"));
  return bad ? [list(bad, "fieldViolations").map(({ field }) => field)] : [];
}

/** A response of the JSON-RPC binding. */
async function rpc(hub: TestHub, method: string, params?: unknown, asked: Asked = {}): Promise<Fields> {
  const answer = await send(hub, "", { jsonrpc: "2.0", id: 7, method, params }, asked);
  expect(answer.status).toBe(200);
  const response = record(await answer.json());
  expect(response).toMatchObject({ jsonrpc: "2.0", id: 7 });
  return response;
}

const codeOf = (response: Fields): unknown => record(response["error"])["code"];

let messages = 0;
/** A message as its JSON, with an id of its own. */
function said(text: string, fields: Fields = {}, more: Fields = {}): Fields {
  const messageId = `m-${++messages}`;
  return { message: { messageId, role: "ROLE_USER", parts: [{ text }], ...fields }, ...more };
}

const AT_ONCE = { configuration: { returnImmediately: true } };

/** Sends a message without waiting for the end of its task; the task. */
async function create(hub: TestHub, text: string, fields: Fields = {}, asked: Asked = {}): Promise<Fields> {
  return record((await http(hub, "/message:send", said(text, fields, AT_ONCE), asked))["task"]);
}

const stateOf = (task: Fields): unknown => record(task["status"])["state"];

async function claim(hub: TestHub, taskId: unknown, nodeId = "w1"): Promise<void> {
  await ok(hub.post("/task/claim", { task_id: taskId, node_id: nodeId }));
}

/** A worker that does the next task of the hub as `end` says. */
async function work(hub: TestHub, end: (taskId: string) => Promise<unknown>): Promise<void> {
  const answer = await ok(hub.post("/task/next", { node_id: "w1", wait: 60 }));
  await end(String(record(answer["task"])["task_id"]));
}

/** The events of a stream, until it ends or `most` have come. */
async function events(answer: Response, most = Infinity): Promise<{ id: string; data: Fields }[]> {
  expect([answer.status, answer.headers.get("content-type")]).toEqual([
    200,
    expect.stringContaining("event-stream"),
  ]);
  const found: { id: string; data: Fields }[] = [];
  const decoder = new TextDecoder();
  let text = "";
  if (!answer.body) throw new Error("a stream without a body");
  for await (const chunk of answer.body) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const field = (name: string) =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const data = field("data");
      if (data !== undefined) found.push({ id: field("id") ?? "", data: record(JSON.parse(data)) });
    }
    if (found.length >= most) break;
  }
  return found;
}

/** What a stream said, in short: `task SUBMITTED`, `status WORKING`, `artifact result`. */
function told(data: Fields): string {
  const [kind = "", value] = Object.entries(data)[0] ?? [];
  const fields = record(value);
  if (kind === "artifactUpdate") return `artifact ${record(fields["artifact"])["name"]}`;
  return `${kind} ${String(stateOf(fields)).replace("TASK_STATE_", "")}`;
}

// ---- The official client

const BINDINGS = ["JSONRPC", "HTTP+JSON"] as const;

async function connect(hub: TestHub, binding: (typeof BINDINGS)[number], to = "/"): Promise<Client> {
  const fetchImpl = Object.assign(
    (url: Parameters<typeof fetch>[0], init?: RequestInit) => {
      const headers = new Headers(init?.headers);
      headers.set("Authorization", `Bearer ${SECRET}`);
      return fetch(url, { ...init, headers });
    },
    { preconnect: fetch.preconnect },
  );
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
    preferredTransports: [binding],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  const client = await factory.createFromUrl(hub.base() + to);
  expect(client.transport.protocolName).toBe(binding);
  return client;
}

function request(
  text: string,
  returnImmediately = false,
  messageId: string = crypto.randomUUID(),
): SendMessageRequest {
  const none = { metadata: undefined, extensions: [], referenceTaskIds: [] };
  const part = {
    content: { $case: "text", value: text } as const,
    metadata: undefined,
    filename: "",
    mediaType: "",
  };
  return {
    tenant: "",
    message: { messageId, contextId: "", taskId: "", role: Role.ROLE_USER, parts: [part], ...none },
    configuration: { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately },
    metadata: undefined,
  };
}

function asTask(result: Task | Message): Task {
  if (!("history" in result)) throw new Error("a message came, not a task");
  return result;
}

function caseOf({ payload }: StreamResponse): string {
  if (payload?.$case === "statusUpdate" || payload?.$case === "task")
    return `${payload.$case} ${TaskState[payload.value.status?.state ?? 0]}`;
  return payload?.$case ?? "nothing";
}

describe("the official client", () => {
  let hub: TestHub;
  beforeAll(async () => {
    hub = await startHub();
    await hub.addNode("w1");
  });
  afterAll(() => hub.close());

  for (const binding of BINDINGS) {
    test(`${binding}: sends, waits, gets, lists, cancels`, async () => {
      const client = await connect(hub, binding);
      const [answer] = await Promise.all([
        client.sendMessage(request("count the stars\nall of them")),
        work(hub, (taskId) =>
          hub.post("/task/complete", { task_id: taskId, node_id: "w1", result: { ...RESULT, output: "7" } }),
        ),
      ]);
      const done = asTask(answer);
      expect(done.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
      const [text, data] = done.artifacts[0]?.parts ?? [];
      expect(text?.content).toEqual({ $case: "text", value: "7" });
      expect(data?.content).toEqual({ $case: "data", value: RESULT });
      const task = record((await ok(hub.get(`/task/${done.id}`)))["task"]);
      expect(task).toMatchObject({ title: "count the stars", description: "count the stars\nall of them" });

      const open = asTask(await client.sendMessage(request("wait", true)));
      expect(open.status?.state).toBe(TaskState.TASK_STATE_SUBMITTED);
      const got = await client.getTask({ tenant: "", id: open.id, historyLength: 1 });
      expect(got.history.map(({ role }) => role)).toEqual([Role.ROLE_USER]);
      expect((await client.getTask({ tenant: "", id: open.id, historyLength: 0 })).history).toEqual([]);
      const { tasks } = await client.listTasks({
        tenant: "",
        contextId: open.contextId,
        status: TaskState.TASK_STATE_SUBMITTED,
        pageToken: "",
        statusTimestampAfter: undefined,
      });
      expect(tasks.map(({ id }) => id)).toEqual([open.id]);
      const cancelled = await client.cancelTask({ tenant: "", id: open.id, metadata: undefined });
      expect(cancelled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
      await expect(client.cancelTask({ tenant: "", id: open.id, metadata: undefined })).rejects.toThrow(
        "has ended",
      );
      await expect(client.getTask({ tenant: "", id: "nosuch" })).rejects.toThrow("nosuch");
    });

    test(`${binding}: gets its pushes until the task has ended, and manages their configs`, async () => {
      await using receiver = new Receiver();
      await using pushing = await startHub({ post: receiver.post });
      await pushing.addNode("w1");
      const client = await connect(pushing, binding);
      const config = (taskId: string, id: string): TaskPushNotificationConfig => ({
        tenant: "",
        id,
        taskId,
        url: RECEIVER_URL,
        token: "client-token",
        authentication: { scheme: "Bearer", credentials: "client-secret" },
      });
      const sent = request("push it", true);
      const configuration = { ...sent.configuration, acceptedOutputModes: [], returnImmediately: true };
      const withPush = { ...configuration, taskPushNotificationConfig: config("", "first") };
      const { id } = asTask(await client.sendMessage({ ...sent, configuration: withPush }));
      const second = await client.createTaskPushNotificationConfig(config(id, ""));
      expect(second).toEqual(config(id, id));
      const found = await client.getTaskPushNotificationConfig({ tenant: "", taskId: id, id: "first" });
      expect(found).toEqual(config(id, "first"));
      const listing = { tenant: "", taskId: id, pageSize: 0, pageToken: "" };
      const ids = async (): Promise<string[]> =>
        (await client.listTaskPushNotificationConfig(listing)).configs.map((one) => one.id).toSorted();
      expect(await ids()).toEqual([id, "first"].toSorted());
      await client.deleteTaskPushNotificationConfig({ tenant: "", taskId: id, id });
      expect(await ids()).toEqual(["first"]);
      const gone = client.getTaskPushNotificationConfig({ tenant: "", taskId: id, id });
      await expect(gone).rejects.toThrow("no push notification config");
      await pushing.sweep();
      await claim(pushing, id);
      await ok(pushing.complete(id, "w1"));
      const received = await receiver.until(({ length }) => length === 4);
      expect(received.map(({ body }) => told(body))).toEqual([
        "statusUpdate SUBMITTED",
        "statusUpdate WORKING",
        "artifact result",
        "statusUpdate COMPLETED",
      ]);
      expect(received.map(({ body }) => caseOf(StreamResponse.fromJSON(body)))).toContain("artifactUpdate");
      const { headers } = received[0] ?? expect.unreachable();
      expect(headers.get("content-type")).toBe("application/a2a+json");
      expect(headers.get("authorization")).toBe("Bearer client-secret");
      expect(headers.get("x-a2a-notification-token")).toBe("client-token");
      expect(new Set(received.map(idOf)).size).toBe(4);
      await until("the config ends with its task", async () => (await ids()).length === 0);
      // A config of a task that has ended gets its end.
      expect(await client.createTaskPushNotificationConfig(config(id, "late"))).toEqual(config(id, "late"));
      await pushing.sweep();
      const all = await receiver.until(({ length }) => length === 6);
      expect(all.slice(4).map(({ body }) => told(body))).toEqual([
        "artifact result",
        "statusUpdate COMPLETED",
      ]);
      await until("the late config ends too", async () => (await ids()).length === 0);
      const kinds = list(await ok(pushing.get(`/events?task_id=${id}&kind=webhook.deleted`)), "events");
      expect(kinds.map(({ data }) => record(data)["reason"])).toEqual(["deleted", "ended", "ended"]);
    });

    test(`${binding}: no push goes to an address of the hub's own network, and none of another's task`, async () => {
      await using own = await startHub();
      const client = await connect(own, binding);
      const open = asTask(await client.sendMessage(request("not pushed", true)));
      const config = (taskId: string, url: string): TaskPushNotificationConfig => ({
        tenant: "",
        id: "",
        taskId,
        url,
        token: "",
        authentication: undefined,
      });
      for (const url of [
        "http://127.0.0.1/",
        "http://169.254.169.254/",
        "ftp://example.org",
        "http://u:p@example.org",
      ])
        await expect(client.createTaskPushNotificationConfig(config(open.id, url))).rejects.toThrow("url");
      const elsewhere = await own.addTask();
      const theirs = client.createTaskPushNotificationConfig(config(elsewhere, RECEIVER_URL));
      await expect(theirs).rejects.toThrow(elsewhere);
    });

    test(`${binding}: streams a message, and subscribes to a task`, async () => {
      const client = await connect(hub, binding);
      const seen: string[] = [];
      for await (const response of client.sendMessageStream(request("stream it"))) {
        seen.push(caseOf(response));
        if (response.payload?.$case !== "task") continue;
        const { id } = response.payload.value;
        await claim(hub, id);
        await ok(hub.post("/task/extend", { task_id: id, node_id: "w1", note: "half" }));
        await ok(hub.complete(id, "w1"));
      }
      expect(seen).toEqual([
        "task TASK_STATE_SUBMITTED",
        "statusUpdate TASK_STATE_WORKING",
        "statusUpdate TASK_STATE_WORKING",
        "artifactUpdate",
        "statusUpdate TASK_STATE_COMPLETED",
      ]);
      const open = asTask(await client.sendMessage(request("later", true)));
      const later: string[] = [];
      for await (const response of client.resubscribeTask({ tenant: "", id: open.id })) {
        later.push(caseOf(response));
        if (response.payload?.$case === "task") await ok(hub.post("/task/cancel", { task_id: open.id }));
      }
      expect(later).toEqual(["task TASK_STATE_SUBMITTED", "statusUpdate TASK_STATE_CANCELED"]);
      const ended = client.resubscribeTask({ tenant: "", id: open.id });
      await expect(ended.next()).rejects.toThrow("has ended");
    });

    test(`${binding}: is asked for input, and gives it by a message with the id of the task`, async () => {
      const client = await connect(hub, binding);
      const [asked] = await Promise.all([
        client.sendMessage(request("paint the wall")),
        work(hub, (task_id) =>
          ok(hub.post("/task/ask", { task_id, node_id: "w1", question: "Which colour?" })),
        ),
      ]);
      const { id, contextId, status } = asTask(asked);
      expect(status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
      expect(status?.message?.parts.map(({ content }) => content)).toEqual([
        { $case: "text", value: "Which colour?" },
      ]);
      const answer = (changes: { contextId?: string }): SendMessageRequest => {
        const whole = request("blue", true);
        return whole.message ? { ...whole, message: { ...whole.message, taskId: id, ...changes } } : whole;
      };
      await expect(client.sendMessage(answer({ contextId: "another" }))).rejects.toThrow("contextId");
      // Without contextId it is that of the task (specification, 3.4.3).
      const given = asTask(await client.sendMessage(answer({})));
      expect([given.id, given.contextId, given.status?.state]).toEqual([
        id,
        contextId,
        TaskState.TASK_STATE_WORKING,
      ]);
      const { questions } = await ok(hub.get(`/task/${id}/questions`));
      expect(questions).toMatchObject([{ state: "answered", answer: "blue" }]);
      await expect(client.sendMessage(answer({ contextId }))).rejects.toThrow("asks for no input");
      await ok(hub.complete(id, "w1"));
    });

    test(`${binding}: has not ended while its result waits for a review`, async () => {
      const client = await connect(hub, binding);
      const sent = client.sendMessage({
        ...request("paint the door"),
        metadata: { luxhub: { review: "creator" } },
      });
      const states: (TaskState | undefined)[] = [];
      await work(hub, async (task_id) => {
        await ok(hub.complete(task_id, "w1"));
        const { status, artifacts } = await client.getTask({ tenant: "", id: task_id });
        expect(artifacts).toEqual([]);
        states.push(status?.state);
        await ok(hub.post("/task/review", { task_id, verdict: "pass" }));
      });
      const { status, artifacts } = asTask(await sent);
      expect([...states, status?.state]).toEqual([
        TaskState.TASK_STATE_WORKING,
        TaskState.TASK_STATE_COMPLETED,
      ]);
      expect(artifacts).toHaveLength(1);
    });
  }

  test("finds the card below the address, and calls an address with a slash", async () => {
    for (const binding of BINDINGS) {
      const client = await connect(hub, binding, "/a2a/");
      expect((await client.getAgentCard()).name).toBe("luxhub");
    }
    for (const to of ["/a2a/", "/a2a/nodes/w1/"])
      expect(codeOf(await rpc(hub, "GetTask", { id: "nosuch" }, { to }))).toBe(-32_001);
  });

  test("a node's card: its skills, and its tasks are assigned to it", async () => {
    await hub.addNode("painter:1", { name: "Painter", capabilities: "draw,paint" });
    for (const binding of BINDINGS) {
      const client = await connect(hub, binding, "/a2a/nodes/painter:1/");
      const card: AgentCard = await client.getAgentCard();
      expect(card).toMatchObject({ name: "Painter", skills: [{ id: "draw" }, { id: "paint" }] });
      const task = asTask(await client.sendMessage(request("a house", true)));
      expect(task.status?.state).toBe(TaskState.TASK_STATE_WORKING);
      const stored = record((await ok(hub.get(`/task/${task.id}`)))["task"]);
      expect(stored["assigned_node"]).toBe("painter:1");
      expect(await httpError(hub, `/tasks/${task.id}`)).toEqual([404, "TASK_NOT_FOUND"]); // at the hub's address
    }
  });
});

describe("the specification's examples", () => {
  let hub: TestHub;
  beforeAll(async () => {
    hub = await startHub({ variants: ["A"] });
    await hub.addNode("w1");
  });
  afterAll(() => hub.close());

  const withText = (text: string, messageId: string, more: Fields = {}) => ({
    message: { role: "ROLE_USER", parts: [{ text }], messageId, ...more },
  });

  test("6.1: a task that is done", async () => {
    const [answer] = await Promise.all([
      http(hub, "/message:send", withText("What is the weather today?", "6.1")),
      work(hub, (taskId) => hub.complete(taskId, "w1")),
    ]);
    expect(answer["task"]).toMatchObject({
      id: expect.any(String),
      contextId: expect.any(String),
      status: { state: COMPLETED, timestamp: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/) },
      artifacts: [
        {
          artifactId: "result",
          name: "result",
          parts: [
            {
              text: `Problem: ${RESULT.problem}\n\nImprovement: ${RESULT.improvement}\n\nLesson: ${RESULT.lesson}`,
            },
            { data: RESULT, mediaType: "application/json" },
          ],
        },
      ],
      history: [{ messageId: "6.1", role: "ROLE_USER", parts: [{ text: "What is the weather today?" }] }],
    });
  });

  test("6.2: a stream", async () => {
    const report = withText("Write a detailed report on climate change", "6.2");
    const stream = await send(hub, "/message:stream", report);
    await work(hub, async (taskId) => {
      const form = new FormData();
      form.append("metadata", JSON.stringify({ node: "w1", task_id: taskId }));
      form.append("file", new Blob(["# Report"]), "report.md");
      const headers = { "X-Matrix-Secret": SECRET };
      await fetch(`${hub.base()}/api/v1/file/upload`, { method: "POST", headers, body: form });
      await hub.complete(taskId, "w1");
    });
    const found = await events(stream);
    expect(found.map(({ data }) => told(data))).toEqual([
      "task SUBMITTED",
      "statusUpdate WORKING",
      "artifact report.md",
      "artifact result",
      "statusUpdate COMPLETED",
    ]);
  });

  test("6.3: a task that asks for nothing takes no further message, and says so", async () => {
    const task = await create(hub, "Book me a flight");
    const followUp = (more: Fields) => withText("From San Francisco to New York", `6.3-${++messages}`, more);
    const path = "/message:send";
    expect(await httpError(hub, path, followUp({ taskId: task["id"] }))).toEqual([
      400,
      "UNSUPPORTED_OPERATION",
    ]);
    expect(await httpError(hub, path, followUp({ taskId: task["id"], contextId: "other" }))).toEqual([
      400,
      "INVALID_PARAMS",
      ["message.contextId"],
    ]);
    expect(await httpError(hub, path, followUp({ taskId: "nosuch" }))).toEqual([404, "TASK_NOT_FOUND"]);
    const next = await create(hub, "the next one", { contextId: task["contextId"] });
    expect(next["contextId"]).toBe(task["contextId"]);
    const { tasks } = await http(hub, `/tasks?contextId=${task["contextId"]}`);
    expect(tasks).toHaveLength(2);
    await http(hub, `/tasks/${task["id"]}:cancel`, {});
    expect(await httpError(hub, path, followUp({ taskId: task["id"] }))).toEqual([
      400,
      "UNSUPPORTED_OPERATION",
    ]);
    await http(hub, `/tasks/${next["id"]}:cancel`, {});
  });

  test("an answer after the deadline is refused, and its repeat in the same words", async () => {
    const asking = await Promise.all([
      http(hub, "/message:send", withText("Paint the door", "door")),
      work(hub, (task_id) =>
        ok(hub.post("/task/ask", { task_id, node_id: "w1", question: "Which?", within_s: 60 })),
      ),
    ]);
    const { id } = record(asking[0]["task"]);
    hub.clock.pass(60_000); // the question is open until the next sweep
    const answer = withText("blue", "late", { taskId: id });
    const refused = await httpError(hub, "/message:send", answer);
    expect(refused.slice(0, 2)).toEqual([400, "UNSUPPORTED_OPERATION"]);
    expect(await httpError(hub, "/message:send", answer)).toEqual(refused);
    await http(hub, `/tasks/${id}:cancel`, {});
  });

  test("a question is INPUT_REQUIRED, and a message with taskId answers it", async () => {
    const [asking] = await Promise.all([
      http(hub, "/message:send", withText("Paint the wall", "paint")),
      work(hub, (task_id) =>
        ok(hub.post("/task/ask", { task_id, node_id: "w1", question: "Which?", choices: ["red", "blue"] })),
      ),
    ]);
    const task = record(asking["task"]);
    expect(task["status"]).toMatchObject({
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { role: "ROLE_AGENT", parts: [{ text: "Which?\n\n- red\n- blue" }] },
    });
    const { tasks } = await http(hub, "/tasks?status=TASK_STATE_INPUT_REQUIRED");
    expect(tasks).toMatchObject([{ id: task["id"], status: { message: { parts: [{}] } } }]);
    const stream = await send(hub, `/tasks/${task["id"]}:subscribe`, undefined);
    const path = "/message:send";
    const answer = (messageId: string, more: Fields = {}) =>
      withText("blue", messageId, { taskId: task["id"], ...more });
    expect(await httpError(hub, path, answer("a-0", { contextId: "other" }))).toEqual([
      400,
      "INVALID_PARAMS",
      ["message.contextId"],
    ]);
    const given = await http(hub, path, { ...answer("a-1"), ...AT_ONCE });
    expect(record(given["task"])["status"]).toMatchObject({ state: WORKING });
    // A repeat changes nothing, and another message finds no question.
    expect(await http(hub, path, { ...answer("a-1"), ...AT_ONCE })).toEqual(given);
    expect(await httpError(hub, path, answer("a-2"))).toEqual([400, "UNSUPPORTED_OPERATION"]);
    const texts = ({ history = [] }: Fields): unknown[] =>
      list({ history }, "history").map(({ role, parts }) => [role, list({ parts }, "parts")[0]?.["text"]]);
    const exchange = [
      ["ROLE_AGENT", "Which?\n\n- red\n- blue"],
      ["ROLE_USER", "blue"],
    ];
    const of = `/tasks/${task["id"]}`;
    expect(texts(await http(hub, of))).toEqual([["ROLE_USER", "Paint the wall"], ...exchange]);
    expect(texts(await http(hub, `${of}?history_length=2`))).toEqual(exchange);
    expect(texts(await http(hub, `${of}?historyLength=0`))).toEqual([]);
    const listed = await http(hub, `/tasks?contextId=${task["contextId"]}&history_length=2`);
    expect(list(listed, "tasks").map(texts)).toEqual([exchange]);
    const { questions } = await ok(hub.get(`/task/${task["id"]}/questions`));
    expect(questions).toMatchObject([{ state: "answered", answer: "blue" }]);
    await ok(hub.post("/task/ask", { task_id: task["id"], node_id: "w1", question: "How?", park: true }));
    const data = {
      message: { messageId: "a-3", taskId: task["id"], role: "ROLE_USER", parts: [{ data: [1] }] },
    };
    const [done] = await Promise.all([
      http(hub, path, data),
      work(hub, (taskId) => hub.complete(taskId, "w1")),
    ]);
    expect(record(done["task"])["status"]).toMatchObject({ state: COMPLETED });
    expect((await events(stream)).map(({ data }) => told(data))).toEqual([
      "task INPUT_REQUIRED",
      "statusUpdate WORKING",
      "statusUpdate INPUT_REQUIRED",
      "statusUpdate SUBMITTED",
      "statusUpdate WORKING",
      "artifact result",
      "statusUpdate COMPLETED",
    ]);
  });

  test("6.4: versions", async () => {
    const hello = withText("Hello", "6.4");
    const refused = [400, "VERSION_NOT_SUPPORTED"];
    for (const version of ["0.5", "0.3", "", "2.0", "1"]) {
      const asked = { headers: { "A2A-Version": version } };
      expect([version, await httpError(hub, "/message:send", hello, asked)]).toEqual([version, refused]);
      expect(codeOf(await rpc(hub, "SendMessage", hello, asked))).toBe(-32_009);
    }
    await http(hub, "/tasks", undefined, { headers: { "A2A-Version": "1.0.7" } });
    await http(hub, "/tasks?A2A-Version=1.0", undefined, { headers: { "A2A-Version": "" } });
  });

  test("6.5: lists, in pages, by context and state; the last changed first", async () => {
    const contextId = "c295ea44-7543-4f78-b524-7a38915ad6e4";
    const ids: unknown[] = [];
    for (let i = 0; i < 5; i++) {
      hub.clock.pass(1_000);
      ids.push((await create(hub, `listed ${i}`, { contextId }))["id"]);
    }
    hub.clock.pass(1_000);
    await claim(hub, ids[1]);
    const order = [ids[1], ids[4], ids[3], ids[2], ids[0]];
    const seen: unknown[] = [];
    let token = "";
    for (let page = 0; page < 3; page++) {
      const answer = await http(hub, `/tasks?contextId=${contextId}&pageSize=2&pageToken=${token}`);
      expect(answer).toMatchObject({ pageSize: 2, totalSize: 5 });
      for (const task of list(answer, "tasks")) {
        expect(task).not.toContainAnyKeys(["artifacts", "history"]);
        seen.push(task["id"]);
      }
      token = String(answer["nextPageToken"]);
    }
    expect([seen, token]).toEqual([order, ""]);

    const working = await http(
      hub,
      "/tasks?status=TASK_STATE_WORKING&pageSize=20&historyLength=3&includeArtifacts=true",
    );
    expect(working).toMatchObject({
      tasks: [{ id: ids[1], status: { state: WORKING }, history: [{ role: "ROLE_USER" }], artifacts: [] }],
      totalSize: 1,
      pageSize: 20,
      nextPageToken: "",
    });
    const changed = record(list(working, "tasks")[0]?.["status"])["timestamp"];
    const since = await http(hub, `/tasks?statusTimestampAfter=${changed}`);
    expect(list(since, "tasks").map(({ id }) => id)).toEqual([ids[1]]);
    const none = await http(hub, "/tasks?contextId=nosuch");
    expect(none).toEqual({ tasks: [], totalSize: 0, pageSize: limit.A2A_PAGE_DEFAULT, nextPageToken: "" });

    const wrong = "/tasks?pageSize=150&historyLength=-5&status=TASK_STATE_RUNNING";
    const malformed = [400, "INVALID_PARAMS"];
    expect(await httpError(hub, wrong)).toEqual([...malformed, ["status", "pageSize", "historyLength"]]);
    expect(await httpError(hub, "/tasks?pageToken=nonsense")).toEqual([...malformed, ["pageToken"]]);
    for (const id of ids) await http(hub, `/tasks/${id}:cancel`, {});
  });

  test("a page with long answers has fewer tasks, and goes on", async () => {
    const contextId = "long-answers";
    const answer = "x".repeat(limit.ANSWER_MAX_BYTES - 2);
    const ids: unknown[] = [];
    for (let n = 0; n < 5; n++) {
      const { id } = await create(hub, `long ${n}`, { contextId });
      ids.unshift(id);
      await claim(hub, id);
      for (let q = 0; q < limit.CONTEXT_ANSWERS_MAX; q++) {
        const asked = await ok(hub.post("/task/ask", { task_id: id, node_id: "w1", question: "Which?" }));
        const { question_id } = record(asked["question"]);
        await ok(hub.post("/task/answer", { task_id: id, question_id, answer }));
      }
    }
    const path = `/tasks?contextId=${contextId}&historyLength=100`;
    const pages: unknown[][] = [];
    for (let token = ""; pages.length === 0 || token !== "";) {
      const page = await http(hub, token === "" ? path : `${path}&pageToken=${token}`);
      pages.push(list(page, "tasks").map(({ id }) => id));
      token = String(page["nextPageToken"]);
    }
    expect(pages.flat()).toEqual(ids);
    expect(pages.map(({ length }) => length)).toEqual([4, 1]);
    for (const id of ids) await http(hub, `/tasks/${id}:cancel`, {});
  });

  test("6.6: a task is sent with its push config, and bad configs are refused", async () => {
    const config = { url: "https://client.example.com/webhook", token: "t" };
    const asked = said(
      "report",
      {},
      {
        configuration: { taskPushNotificationConfig: config, returnImmediately: true },
      },
    );
    const { id } = record((await http(hub, "/message:send", asked))["task"]);
    const path = `/tasks/${id}/pushNotificationConfigs`;
    const stored = { id, taskId: id, ...config };
    expect(await http(hub, path)).toEqual({ configs: [stored], nextPageToken: "" });
    expect(await http(hub, `${path}/${id}`)).toEqual(stored);
    await http(hub, "/message:send", asked);
    expect(list(await http(hub, path), "configs")).toHaveLength(1);
    const malformed = [400, "INVALID_PARAMS"];
    const bad = {
      id: "a\u001bb",
      url: "ftp://x",
      token: "a\nb",
      authentication: { scheme: "a b", credentials: "é" },
    };
    expect(await httpError(hub, path, bad)).toEqual([
      ...malformed,
      ["id", "url", "token", "authentication.scheme", "authentication.credentials"],
    ]);
    const inside = {
      ...said("report"),
      configuration: { taskPushNotificationConfig: { url: "http://10.0.0.1" } },
    };
    expect(await httpError(hub, "/message:send", inside)).toEqual([
      ...malformed,
      ["configuration.taskPushNotificationConfig.url"],
    ]);
    for (let n = 1; n < limit.PUSH_CONFIGS_OF_TASK_MAX; n++)
      await http(hub, path, { ...config, id: `c${n}` });
    expect((await send(hub, path, { ...config, id: "more" })).status).toBe(409);
    expect(await http(hub, `${path}/c1`, undefined, { method: "DELETE" })).toEqual({});
    expect(await http(hub, `${path}/c1`, undefined, { method: "DELETE" })).toEqual({});
    for (const method of ["Create", "Get", "Delete"]) {
      const params = { taskId: "x", id: "c", ...config };
      expect(codeOf(await rpc(hub, `${method}TaskPushNotificationConfig`, params))).toBe(-32_001);
    }
    expect(codeOf(await rpc(hub, "ListTaskPushNotificationConfigs", { taskId: "x" }))).toBe(-32_001);
  });

  /** Sends a message with a push config, and does not wait for its task. */
  function sendPushed(to: TestHub, secret: string, url: string): Promise<Response> {
    const configuration = { returnImmediately: true, taskPushNotificationConfig: { url } };
    return send(to, "/message:send", said("pushed", {}, { configuration }), { secret });
  }

  test("a node has a share of the push configs, and a message whose config is refused creates no task", async () => {
    await using own = await startHub({ post: async () => ({ status: 204, retryAfter: null }) });
    await own.addNode("w1");
    const greedy = await addKey(own, "greedy", { node_id: "w1" });
    for (let n = 0; n < limit.PUSH_CONFIGS_OF_NODE_MAX; n++)
      expect((await sendPushed(own, greedy, RECEIVER_URL)).status).toBe(200);
    const count = async () => (await ok(own.get("/task/list?creator_node=w1")))["total"];
    const before = await count();
    const refused = await sendPushed(own, greedy, RECEIVER_URL);
    expect([refused.status, await count()]).toEqual([409, before]);
    const { error, detail } = record(await refused.json());
    expect([error, detail]).toEqual(["webhooks_limit", expect.stringContaining("for one node")]);
    const modest = await addKey(own, "modest");
    expect((await sendPushed(own, modest, RECEIVER_URL)).status).toBe(200);
  });

  test("the push config of a task with a review lasts until its result has passed", async () => {
    await using receiver = new Receiver();
    await using own = await startHub({ post: receiver.post });
    await own.addNode("w1");
    await own.addNode("w2");
    const configuration = { returnImmediately: true, taskPushNotificationConfig: { url: RECEIVER_URL } };
    const metadata = { luxhub: { review: "node:w2" } };
    const { task } = await http(own, "/message:send", {
      ...said("checked", {}, { configuration }),
      metadata,
    });
    const { id } = record(task);
    await claim(own, id);
    await ok(own.complete(String(id), "w1"));
    await own.sweep();
    await receiver.until(({ length }) => length === 3);
    await ok(own.post("/task/review", { task_id: id, node_id: "w2", verdict: "pass" }));
    const received = await receiver.until(({ length }) => length === 5);
    expect(received.map(({ body }) => told(body))).toEqual([
      "statusUpdate SUBMITTED",
      "statusUpdate WORKING",
      "statusUpdate WORKING",
      "artifact result",
      "statusUpdate COMPLETED",
    ]);
  });

  test("an answer whose push config is refused answers nothing", async () => {
    const { id } = await create(hub, "asks");
    await claim(hub, id);
    await ok(hub.post("/task/ask", { task_id: id, node_id: "w1", question: "Which?" }));
    const config = { url: "https://client.example.com/webhook" };
    const path = `/tasks/${id}/pushNotificationConfigs`;
    for (let n = 0; n < limit.PUSH_CONFIGS_OF_TASK_MAX; n++)
      await http(hub, path, { ...config, id: `c${n}` });
    const configuration = { returnImmediately: true, taskPushNotificationConfig: { ...config, id: "more" } };
    const refused = await send(hub, "/message:send", said("blue", { taskId: id }, { configuration }));
    expect(refused.status).toBe(409);
    const { questions } = await ok(hub.get(`/task/${id}/questions`));
    expect(list({ questions }, "questions")).toMatchObject([{ state: "open", answer: null }]);
  });

  test("receivers that never answer keep neither an administrator's webhook nor another key waiting", async () => {
    const running = new Map<string, number>();
    const most = new Map<string, number>();
    const delivered: string[] = [];
    const held = Promise.withResolvers<void>();
    await using own = await startHub({
      post: async ({ url }) => {
        const { hostname } = new URL(url);
        if (!hostname.startsWith("silent")) {
          delivered.push(hostname);
          return { status: 204, retryAfter: null };
        }
        for (const name of [hostname, "all"]) {
          running.set(name, (running.get(name) ?? 0) + 1);
          most.set(name, Math.max(most.get(name) ?? 0, running.get(name) ?? 0));
        }
        await held.promise;
        return { status: 204, retryAfter: null };
      },
    });
    const keysOf: string[] = [];
    for (const name of ["silent-1", "silent-2", "modest"]) {
      await own.addNode(name);
      keysOf.push(await addKey(own, name, { node_id: name }));
    }
    const [first = "", second = "", modest = ""] = keysOf;
    await own.sweep();
    for (let n = 0; n < 2 * limit.PUSH_DELIVERIES_MAX; n++) {
      await sendPushed(own, first, `https://silent-1/${n}`);
      await sendPushed(own, second, `https://silent-2/${n}`);
    }
    await until("all places are taken", async () => most.get("all") === limit.PUSH_DELIVERIES_MAX);
    await sendPushed(own, modest, "https://modest/");
    await ok(own.admin("/webhook/put", { name: "ci", url: "https://ci/", kinds: ["note.changed"] }));
    await ok(own.post("/note/put", { key: "k", text: "t", node_id: "modest" }));
    await until("the administrator's webhook", async () => delivered.includes("ci"));
    expect(delivered).toEqual(["ci"]);
    for (const name of ["silent-1", "silent-2"])
      expect(most.get(name)).toBe(limit.PUSH_DELIVERIES_OF_KEY_MAX);
    expect(most.get("all")).toBe(limit.PUSH_DELIVERIES_MAX);
    held.resolve();
    await until("the push of the other key", async () => delivered.includes("modest"));
  });

  test("a key that is revoked gets no more pushes, and loses its configs", async () => {
    await using receiver = new Receiver();
    await using own = await startHub({ post: receiver.post });
    await own.addNode("w1");
    const bound = await addKey(own, "bound", { node_id: "w1" });
    const full = await addKey(own, "full");
    const sent = [await sendPushed(own, bound, RECEIVER_URL), await sendPushed(own, full, RECEIVER_URL)];
    await own.sweep();
    await receiver.until(({ length }) => length === 2);
    for (const name of ["bound", "full"]) await ok(own.admin("/key/revoke", { name }));
    for (const response of sent) {
      const { id } = record(record(await response.json())["task"]);
      await claim(own, id);
      await ok(own.complete(String(id), "w1"));
    }
    const webhooks = async () =>
      list(await ok(own.get("/webhook/list", { headers: { "X-Admin-Key": ADMIN_KEY } })), "webhooks");
    await until("the configs are deleted", async () => {
      await own.sweep();
      return (await webhooks()).length === 0;
    });
    const events = list(await ok(own.get("/events?since=0&kind=webhook.deleted")), "events");
    expect(events.map(({ data }) => record(data)["reason"])).toEqual(["key_revoked", "key_revoked"]);
    expect(receiver.received).toHaveLength(2);
  });

  test("6.7 and 6.8: a file becomes a file of the task, and data a part of its description", async () => {
    const bytes = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 255]);
    const parts = [
      { text: "Analyze this image and highlight any faces." },
      { raw: bytes.toBase64(), filename: "../input_image.png", mediaType: "image/png" },
      { data: { schema: ["ticketNumber"] } },
      { url: "https://example.com/more.png", filename: "more.png" },
    ];
    const task = await create(hub, "", { parts });
    const stored = record((await ok(hub.get(`/task/${task["id"]}`)))["task"]);
    expect(stored).toMatchObject({
      title: "Analyze this image and highlight any faces.",
      description:
        "Analyze this image and highlight any faces.\n\nFile: input_image.png\n\n" +
        '{"schema":["ticketNumber"]}\n\nFile: more.png https://example.com/more.png',
      files: [expect.any(String)],
    });
    const [message] = list(task, "history");
    const file = list(message ?? {}, "parts")[1];
    expect(file).toMatchObject({ filename: "input_image.png", mediaType: "image/png" });
    const content = await fetch(String(file?.["url"]), { headers: { "X-Matrix-Secret": SECRET } });
    expect(await content.bytes()).toEqual(bytes);
    expect(task).not.toHaveProperty("artifacts"); // what the client sent is no result

    const deep = "[".repeat(49_000) + "]".repeat(49_000);
    const tooDeep = `{"message":{"messageId":"deep","role":"ROLE_USER","parts":[{"data":${deep}}]}}`;
    expect(await httpError(hub, "/message:send", tooDeep)).toEqual([
      400,
      "INVALID_PARAMS",
      ["message.parts.0.data"],
    ]);
    const digits = `{"message":{"messageId":"digits","role":"ROLE_USER","parts":[{"data":{"n":12345678901234567890}}]},"configuration":{"returnImmediately":true},"metadata":{"luxhub":{"lux_reward":0.1000000000000000000001}}}`;
    const numbers = record((await http(hub, "/message:send", digits))["task"]);
    expect(record((await ok(hub.get(`/task/${numbers["id"]}`)))["task"])).toMatchObject({
      description: '{"n":12345678901234567890}',
      lux_reward: 0.1,
    });

    await claim(hub, task["id"]);
    const result = { ...RESULT, tickets: [{ ticketNumber: "REQ12312" }] };
    await ok(hub.post("/task/complete", { task_id: task["id"], node_id: "w1", result }));
    const partsOf = async (id: unknown): Promise<unknown> =>
      list(await http(hub, `/tasks/${String(id)}`), "artifacts")[0]?.["parts"];
    expect(await partsOf(task["id"])).toMatchObject([
      { text: expect.stringMatching(/^Problem/) },
      { data: result },
    ]);
    for (const output of [{ key: "value", count: 42 }, [1, "b"], 7, false, "a text"]) {
      const { id } = record((await http(hub, "/message:send", said("data", {}, AT_ONCE)))["task"]);
      await claim(hub, id);
      const withOutput = { ...result, output };
      await ok(hub.post("/task/complete", { task_id: id, node_id: "w1", result: withOutput }));
      const text = typeof output === "string" ? output : expect.stringMatching(/^Problem/);
      expect(await partsOf(id)).toEqual([
        ...(typeof output === "string" ? [] : [{ data: output, mediaType: "application/json" }]),
        { text, mediaType: "text/plain" },
        { data: result, mediaType: "application/json" },
      ]);
    }
  });

  test("6.9: there is no extended card", async () => {
    expect(await httpError(hub, "/extendedAgentCard")).toEqual([400, "UNSUPPORTED_OPERATION"]);
    expect(codeOf(await rpc(hub, "GetExtendedAgentCard"))).toBe(-32_004);
  });

  test("9.4 and 9.5: JSON-RPC", async () => {
    const { result } = await rpc(hub, "SendMessage", said("by rpc", {}, AT_ONCE));
    const task = record(record(result)["task"]);
    expect(stateOf(task)).toBe(SUBMITTED);
    const id = task["id"];
    expect(record((await rpc(hub, "GetTask", { id, historyLength: 10 }))["result"])["id"]).toBe(id);
    // By the names of the proto file.
    const parts = [{ data: { as_sent: 1 }, media_type: "application/json" }];
    const message = { message_id: "snake", context_id: "c-1", role: "ROLE_USER", parts };
    const metadata = { luxhub: { task_type: "snake_type" } };
    const snake = { message, configuration: { return_immediately: true, history_length: 0 }, metadata };
    const sent = record(record((await rpc(hub, "SendMessage", snake))["result"])["task"]);
    expect(sent).toMatchObject({ contextId: "c-1" });
    expect(sent).not.toHaveProperty("history");
    expect(record((await ok(hub.get(`/task/${sent["id"]}`)))["task"])).toMatchObject({
      task_type: "snake_type",
      description: '{"as_sent":1}',
    });
    const both = { message: { ...message, messageId: "m" } };
    expect(codeOf(await rpc(hub, "SendMessage", both))).toBe(-32_602);
    await rpc(hub, "CancelTask", { id: sent["id"] });
    const page = { contextId: task["contextId"], status: SUBMITTED, pageSize: 50, pageToken: "" };
    expect((await rpc(hub, "ListTasks", page))["result"]).toMatchObject({ tasks: [{ id }], totalSize: 1 });
    const stream = events(
      await send(hub, "", { jsonrpc: "2.0", id: "s", method: "SubscribeToTask", params: { id } }),
    );
    expect((await rpc(hub, "CancelTask", { id }))["result"]).toMatchObject({ id });
    const streamed = (await stream).map(({ data }) => [data["id"], told(record(data["result"]))]);
    expect(streamed).toEqual([
      ["s", "task SUBMITTED"],
      ["s", "statusUpdate CANCELED"],
    ]);

    const codes: readonly (readonly [string, unknown, number])[] = [
      ["SubscribeToTask", { id }, -32_004],
      ["CancelTask", { id }, -32_002],
      ["GetTask", { id: "nonexistent-task-id" }, -32_001],
      ["GetTask", {}, -32_602],
      ["GetTask", [], -32_602],
      ["SendMessage", { message: { messageId: "x", role: "ROLE_USER", parts: [] } }, -32_602],
      ["SendMessage", said("x", { role: "ROLE_AGENT" }), -32_602],
      ["SendMessage", said("x", { parts: [{ text: "a", url: "https://b.example" }] }), -32_602],
      ["SendMessage", said("   "), -32_602],
      ["SendMessage", said("é".repeat(limit.DESCRIPTION_MAX_BYTES)), -32_602],
      ["message/send", {}, -32_601],
    ];
    for (const [method, params, code] of codes)
      expect([method, codeOf(await rpc(hub, method, params))]).toEqual([method, code]);
    const { error } = await rpc(hub, "SendMessage", {
      message: { messageId: "x", role: "ROLE_USER", parts: [] },
    });
    expect(fieldsOf(list(record(error), "data"))).toEqual([["message.parts"]]);
    for (const text of ["{", ""]) {
      const broken = await send(hub, "", text);
      expect([broken.status, await broken.json()]).toMatchObject([
        400,
        { id: null, error: { code: -32_700 } },
      ]);
    }
    const unknown = record((await rpc(hub, "GetTask", { id: "nonexistent-task-id" }))["error"]);
    expect(unknown["message"]).not.toContain("/api/v1/"); // which shows the tasks of others
    const noCall = await send(hub, "", { jsonrpc: "1.0", id: 1, method: "GetTask" });
    expect(await noCall.json()).toMatchObject({ error: { code: -32_600 } });
  });

  test("metadata.luxhub has the fields of task/create", async () => {
    const luxhub = { task_type: "draw", priority: "high", lux_reward: 2.5, max_attempts: 3, max_run_s: 90 };
    const sent = { ...said("typed"), ...AT_ONCE, metadata: { luxhub } };
    const { id } = record((await http(hub, "/message:send", sent))["task"]);
    const stored = record((await ok(hub.get(`/task/${id}`)))["task"]);
    expect(stored).toMatchObject({
      task_type: "draw",
      priority: 0,
      lux_reward: 2.5,
      max_attempts: 3,
      max_run_s: 90,
    });
    const wrong = { ...said("typed"), metadata: { luxhub: { priority: "urgent", depends_on: ["nosuch"] } } };
    expect(await httpError(hub, "/message:send", wrong)).toEqual([
      400,
      "INVALID_PARAMS",
      ["metadata.luxhub.priority"],
    ]);
    const unknown = { ...said("typed"), metadata: { luxhub: { depends_on: ["nosuch"] } } };
    expect(await httpError(hub, "/message:send", unknown)).toEqual([
      400,
      "INVALID_PARAMS",
      ["metadata.luxhub.depends_on.0"],
    ]);
    await http(hub, `/tasks/${id}:cancel`, {});
  });
});

test("a key may promise as many LUX in its messages as in task/create, over both bindings", async () => {
  await using hub = await startHub();
  const headers = { "X-Admin-Key": ADMIN_KEY };
  const key = await ok(hub.post("/key/add", { name: "ten", mint_per_day: 10 }, { headers }));
  const asked = { secret: String(key["secret"]) };
  const promise = (lux_reward: number): Fields => ({
    ...said(`for ${lux_reward}`),
    ...AT_ONCE,
    metadata: { luxhub: { lux_reward } },
  });
  const six = promise(6);
  const { task } = await http(hub, "/message:send", six, asked);
  expect(record((await http(hub, "/message:send", six, asked))["task"])["id"]).toBe(record(task)["id"]);
  const five = promise(5);
  const bodies = [
    ["/message:send", five],
    ["/message:stream", promise(5)],
    ["", { jsonrpc: "2.0", id: 1, method: "SendMessage", params: promise(5) }],
    ["/message:send", five], // the same message again
  ] as const;
  for (const [path, body] of bodies) {
    const answer = await send(hub, path, body, asked);
    expect([path, answer.status, record(await answer.json())["error"]]).toEqual([path, 403, "mint_limit"]);
  }
  expect(record(await rpc(hub, "SendMessage", promise(4), asked))["error"]).toBeUndefined();
  const over = await hub.post(
    "/task/create",
    { title: "t", description: "d", lux_reward: 0.000001 },
    { headers: { "X-Matrix-Secret": asked.secret } },
  );
  expect([over.status, over.body["error"]]).toEqual([403, "mint_limit"]);
  expect(list(await ok(hub.get("/task/list")), "tasks")).toHaveLength(2);
});

describe("the cards", () => {
  test("the hub's is open and cached, and names the hub as its operator does, never as the caller", async () => {
    await using hub = await startHub({ isPrivate: true, alone: "ownHead" });
    const first = await fetch(hub.base("B") + CARD, { headers: { Host: "evil.example" } });
    expect(first.status).toBe(200);
    const etag = first.headers.get("etag") ?? "";
    expect(first.headers.get("cache-control")).toBe(`public, max-age=${limit.A2A_CARD_MAX_AGE_SECONDS}`);
    const url = `${hub.base("A")}/a2a`; // the first listener
    expect(await first.json()).toMatchObject({
      name: "luxhub",
      supportedInterfaces: [
        { url, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
        { url, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
      ],
      capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true },
      securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
      skills: [{ id: "task", tags: ["task"] }],
    });
    const again = async (headers: Record<string, string>): Promise<unknown> => {
      const answer = await fetch(hub.base("B") + CARD, { headers });
      return [answer.status, (await answer.text()) === "", answer.headers.get("etag")];
    };
    expect(await again({ "If-None-Match": `"x", W/${etag}` })).toEqual([304, true, etag]);
    const modified = first.headers.get("last-modified") ?? "";
    const before = new Date(Date.parse(modified) - 1_000).toUTCString();
    expect(await again({ "If-Modified-Since": modified })).toEqual([304, true, etag]);
    expect(await again({ "If-Modified-Since": before })).toEqual([200, false, etag]);
    expect(await again({ "If-Modified-Since": modified, "If-None-Match": '"x"' })).toEqual([
      200,
      false,
      etag,
    ]);

    await using named = await startHub({ publicUrl: "https://hub.example.org/lux", variants: ["A"] });
    const body = record(await (await fetch(named.base() + CARD)).json());
    expect(body["documentationUrl"]).toBe("https://hub.example.org/lux/docs");
    expect(list(body, "supportedInterfaces")[0]?.["url"]).toBe("https://hub.example.org/lux/a2a");
  });

  test("the hub's has the capabilities of its nodes as skills, those of the most nodes first", async () => {
    await using hub = await startHub({ variants: ["A", "B"], alone: "ownHead" });
    const skillsAt = async (path: string, variant: "A" | "B" = "A"): Promise<unknown> => {
      const card = record(await (await fetch(hub.base(variant) + path)).json());
      return list(card, "skills").map(({ id }) => id);
    };
    expect(await skillsAt(CARD)).toEqual(["task"]);
    await hub.addNode("n1", { capabilities: "sing,draw" });
    await hub.addNode("n2", { capabilities: "draw" });
    await hub.addNode("n3", { capabilities: "act" });
    const skills = ["task", "type:draw", "type:act", "type:sing"];
    expect(await skillsAt(CARD)).toEqual(skills);
    expect(await skillsAt(`/a2a${CARD}`)).toEqual(skills);
    await ok(hub.admin("/node/delete", { node_id: "n3" }));
    expect(await skillsAt(CARD)).toEqual(["task", "type:draw", "type:sing"]);
    const first = await fetch(hub.base() + CARD);
    hub.clock.pass(5_000);
    await hub.addNode("n3", { capabilities: "act" });
    const second = await fetch(hub.base() + CARD);
    const modifiedAt = ({ headers }: Response): number => Date.parse(headers.get("last-modified") ?? "");
    expect(modifiedAt(second)).toBeGreaterThan(modifiedAt(first));
    const since = { "If-Modified-Since": first.headers.get("last-modified") ?? "" };
    expect((await fetch(hub.base() + CARD, { headers: since })).status).toBe(200);

    // Where the list of nodes needs the secret, the skills do too.
    expect(await skillsAt(CARD, "B")).toEqual(["task"]);
    const { result } = await rpc(hub, "GetExtendedAgentCard", {}, { variant: "B" });
    expect(list(record(result), "skills").map(({ id }) => id)).toEqual(skills);
    const byPath = await http(hub, "/extendedAgentCard", undefined, { variant: "B" });
    expect(list(byPath, "skills").map(({ id }) => id)).toEqual(skills);
  });

  test("the hub's has a bounded number of skills", async () => {
    await using hub = await startHub({ variants: ["A"] });
    for (const group of ["a", "b"]) {
      const capabilities = Array.from({ length: limit.CAPABILITIES_MAX }, (_, i) => `${group}${i}`);
      await hub.addNode(group, { capabilities: capabilities.join() });
    }
    const card = record(await (await fetch(hub.base() + CARD)).json());
    expect(list(card, "skills")).toHaveLength(limit.A2A_SKILLS_MAX);
  });

  test("GET /a2a/nodes lists the nodes with the addresses of their cards, in pages", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("painter:1", { name: "Painter", capabilities: "draw,paint" });
    for (const nodeId of ["n1", "n2"]) await hub.addNode(nodeId, { capabilities: "sing" });
    await ok(hub.post("/node/leave", { node_id: "n2" }));
    const get = async (path: string): Promise<Fields> => {
      const answer = await fetch(`${hub.base()}/a2a/nodes${path}`, {
        headers: { "X-Matrix-Secret": SECRET },
      });
      expect(answer.status).toBe(200);
      return record(await answer.json());
    };
    const ids = (page: Fields): unknown => list(page, "nodes").map(({ node_id }) => node_id);
    const all = await get("");
    expect(ids(all)).toEqual(["n1", "n2", "painter:1"]);
    expect(all["next_cursor"]).toBeNull();
    const url = `${hub.base()}/a2a/nodes/painter%3A1`;
    expect(list(all, "nodes")[2]).toEqual({
      node_id: "painter:1",
      name: "Painter",
      online: true,
      url,
      card: `${url}${CARD}`,
      skills: ["draw", "paint"],
    });
    const card = await fetch(`${url}${CARD}`, { headers: { "X-Matrix-Secret": SECRET } });
    expect(record(await card.json())["name"]).toBe("Painter");
    expect(ids(await get("/?skill=sing"))).toEqual(["n1", "n2"]);
    expect(ids(await get("?online=1&skill=sing"))).toEqual(["n1"]);
    const first = await get("?limit=2");
    expect(ids(first)).toEqual(["n1", "n2"]);
    expect(ids(await get(`?limit=2&cursor=${String(first["next_cursor"])}`))).toEqual(["painter:1"]);
    expect((await fetch(`${hub.base()}/a2a/nodes`)).status).toBe(401);
  });

  test("a node's asks for the secret, and follows its profile", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    const get = (nodeId: string, headers: Record<string, string>) =>
      fetch(`${hub.base()}/a2a/nodes/${nodeId}${CARD}`, { headers });
    const secret = { "X-Matrix-Secret": SECRET };
    expect((await get("n1", {})).status).toBe(401);
    expect((await get("nosuch", secret)).status).toBe(404);
    const card = await get("n1", secret);
    expect(card.headers.get("cache-control")).toStartWith("private");
    expect(record(await card.json())["skills"]).toMatchObject([{ id: "task" }]);
    const etag = card.headers.get("etag") ?? "";
    expect((await get("n1", { ...secret, "If-None-Match": etag })).status).toBe(304);
    await hub.addNode("n1", { capabilities: "sing" });
    const changed = await get("n1", { ...secret, "If-None-Match": etag });
    expect([changed.status, record(await changed.json())["skills"]]).toMatchObject([200, [{ id: "sing" }]]);
  });
});

describe("who calls", () => {
  let hub: TestHub;
  beforeAll(async () => {
    hub = await startHub({ variants: ["A"] });
    await hub.addNode("w1");
  });
  afterAll(() => hub.close());

  test("no secret is 401, a viewer 403, and a key finds what it created", async () => {
    expect((await send(hub, "/tasks", undefined, { secret: null })).status).toBe(401);
    expect((await send(hub, "/tasks", undefined, { secret: "wrong" })).status).toBe(401);
    const viewer = await addKey(hub, "looks", { role: "viewer" });
    for (const path of ["/tasks", "/tasks/x", `/nodes/w1${CARD}`]) {
      const answer = await send(hub, path, undefined, { secret: viewer });
      expect([path, answer.status, record(await answer.json())["error"]]).toEqual([
        path,
        403,
        "viewer_not_allowed",
      ]);
    }
    const other = await addKey(hub, "other");
    const own = await create(hub, "mine");
    const foreign = { secret: other };
    const path = `/tasks/${own["id"]}`;
    for (const refused of [
      httpError(hub, path, undefined, foreign),
      httpError(hub, `${path}:cancel`, {}, foreign),
      httpError(hub, `${path}:subscribe`, {}, foreign),
      httpError(hub, "/message:send", said("more", { taskId: own["id"] }), foreign),
    ])
      expect(await refused).toEqual([404, "TASK_NOT_FOUND"]);
    expect((await http(hub, "/tasks", undefined, foreign))["tasks"]).toEqual([]);
    const byHttp = String((await ok(hub.post("/task/create", { title: "t", description: "d" })))["task_id"]);
    expect(await httpError(hub, `/tasks/${byHttp}`)).toEqual([404, "TASK_NOT_FOUND"]);
    expect(await httpError(hub, `/tasks/${byHttp}:cancel`, {})).toEqual([404, "TASK_NOT_FOUND"]);
  });

  test("a key of a node is that node: another of its keys finds the same tasks", async () => {
    const first = await addKey(hub, "bound-1", { node_id: "w1" });
    const second = await addKey(hub, "bound-2", { node_id: "w1" });
    const task = await create(hub, "by w1", {}, { secret: first });
    const stored = record((await ok(hub.get(`/task/${task["id"]}`)))["task"]);
    expect(stored["creator_node"]).toBe("w1");
    expect(await http(hub, `/tasks/${task["id"]}`, undefined, { secret: second })).toMatchObject({
      id: task["id"],
    });
    await http(hub, `/tasks/${task["id"]}:cancel`, {}, { secret: second });
    const message = said("sent again", {}, AT_ONCE);
    const sent = await Promise.all(
      [first, second].map((secret) => http(hub, "/message:send", message, { secret })),
    );
    expect(new Set(sent.map((answer) => record(answer["task"])["id"])).size).toBe(1);
    const forged = { ...said("as another"), metadata: { luxhub: { creator_node: "n2" } } };
    expect((await send(hub, "/message:send", forged, { secret: first })).status).toBe(403);
  });

  test("a strict hub takes a task for a node from a bound key only, or with the administrator key", async () => {
    await using strict = await startHub({ isStrict: true, variants: ["A"] });
    const secret = await addKey(strict, "bound", { node_id: "w1" });
    const bound = { secret, to: "/a2a/nodes/w2" };
    for (const nodeId of ["w1", "w2"])
      await ok(
        strict.post(
          "/node/register",
          { node_id: nodeId, name: nodeId },
          { headers: { "X-Matrix-Secret": await addKey(strict, `of-${nodeId}`, { node_id: nodeId }) } },
        ),
      );
    expect(stateOf(await create(strict, "to the hub"))).toBe(SUBMITTED);
    const refused = await send(strict, "/message:send", said("x"), { to: bound.to });
    expect([refused.status, record(await refused.json())["error"]]).toEqual([403, "key_not_bound"]);
    expect(stateOf(await create(strict, "by w1", {}, bound))).toBe(SUBMITTED); // in line
    const headers = { "X-Admin-Key": ADMIN_KEY };
    expect(stateOf(await create(strict, "by an operator", {}, { to: bound.to, headers }))).toBe(WORKING);
  });

  test("a key that is revoked ends its streams and its calls that wait", async () => {
    const secret = await addKey(hub, "short");
    const task = await create(hub, "watched", {}, { secret });
    const stream = await send(hub, `/tasks/${task["id"]}:subscribe`, {}, { secret });
    const waits = send(hub, "/message:send", said("waits"), { secret });
    await until("it waits", async () => (await ok(hub.get("/task/list?q=waits")))["total"] === 1);
    await keys(hub, "revoke", "short");
    expect((await events(stream)).map(({ data }) => told(data))).toEqual(["task SUBMITTED"]);
    expect((await waits).status).toBe(401);
  });

  test("calls are in the metrics and the log; wrong paths and bodies are refused", async () => {
    const large = await send(hub, "/message:send", said("x".repeat(2 ** 20)));
    expect(large.status).toBe(413);
    expect((await send(hub, "/tasks/x", {})).status).toBe(404);
    expect(await httpError(hub, "/message:send", "{")).toEqual([400, "INVALID_PARAMS"]);
    const metrics = await fetch(`${hub.base()}/metrics`, { headers: { "X-Matrix-Secret": SECRET } });
    const counted = (await metrics.text()).split("\n").filter((line) => line.includes('status="413"'));
    expect(counted).toEqual([expect.stringContaining('endpoint="/a2a/message:send"')]);
    await until("the calls are logged", async () => hub.logged.join("").includes("/a2a/message:send"));
  });

  test("--a2a off", async () => {
    await using off = await startHub({ a2a: false, variants: ["A"] });
    expect((await send(off, "", {})).status).toBe(404);
    expect((await fetch(off.base() + CARD)).status).toBe(404);
  });
});

describe("a message that is sent again", () => {
  test("creates one task: at once, later, streamed, and after a restart", async () => {
    const dataDir = newDataDir();
    const message = said("once", {}, AT_ONCE);
    const idOf = async (hub: TestHub, asked?: Asked): Promise<unknown> =>
      record((await http(hub, "/message:send", message, asked))["task"])["id"];
    let id: unknown;
    {
      await using hub = await startHub({ dataDir, variants: ["A"] });
      const ids = await Promise.all([idOf(hub), idOf(hub), idOf(hub)]);
      id = ids[0];
      expect(new Set(ids).size).toBe(1);
      const stream = await send(hub, "/message:stream", { message: message["message"] });
      const [first] = await events(stream, 1);
      expect(record(first?.data["task"])["id"]).toBe(id);
      const changed = { ...message, message: { ...record(message["message"]), parts: [{ text: "twice" }] } };
      const other = async (): Promise<unknown> =>
        record((await http(hub, "/message:send", changed))["task"])["id"];
      const others = [await other(), await other()];
      expect(others[0]).not.toBe(id); // the same id with another content is another message
      expect(others[1]).toBe(others[0]);
      expect(await idOf(hub, { secret: await addKey(hub, "other") })).not.toBe(id);
    }
    await using hub = await startHub({ dataDir, variants: ["A"] });
    expect(await idOf(hub)).toBe(id);
    expect((await ok(hub.get("/task/list")))["tasks"]).toHaveLength(3);
    await hub.close();
    rmSync(dataDir, { recursive: true });
  });

  test("to a node that is away is refused, until the node is back", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const to = "/a2a/nodes/n1";
    expect((await send(hub, "/message:send", said("x"), { to })).status).toBe(404);
    await hub.addNode("n1");
    await ok(hub.post("/node/leave", { node_id: "n1" }));
    const message = said("for n1", { parts: [{ raw: btoa("x"), filename: "x.txt" }] }, AT_ONCE);
    expect(await httpError(hub, "/message:send", message, { to })).toEqual([400, "UNSUPPORTED_OPERATION"]);
    expect((await ok(hub.get("/file/list")))["total"]).toBe(0);
    await hub.addNode("n1");
    const failed = (await create(hub, "fails"))["id"];
    await http(hub, `/tasks/${failed}:cancel`, {});
    for (const luxhub of [{ delay_s: 9 }, { depends_on: [failed] }]) {
      const answer = await rpc(hub, "SendMessage", said("waits", {}, { metadata: { luxhub } }), { to });
      expect(answer["error"]).toMatchObject({
        code: -32_004,
        message: expect.stringContaining("leave it to any node"),
      });
    }
    const { task } = await http(hub, "/message:send", message, { to });
    expect(stateOf(record(task))).toBe(WORKING);
    expect((await ok(hub.get("/file/list")))["total"]).toBe(1);
    const listed = await http(hub, "/tasks", undefined, { to });
    expect(list(listed, "tasks").map(({ id }) => id)).toEqual([record(task)["id"]]);
  });
});

describe("how a task ends", () => {
  let hub: TestHub;
  beforeAll(async () => {
    hub = await startHub({ variants: ["A"] });
    await hub.addNode("w1");
  });
  afterAll(() => hub.close());

  test("a call that waits is answered with a failure, and with a cancellation", async () => {
    const [failed] = await Promise.all([
      http(hub, "/message:send", said("fails")),
      work(hub, (task_id) =>
        hub.post("/task/fail", { task_id, node_id: "w1", error: "no paint", retry: false }),
      ),
    ]);
    expect(record(failed["task"])["status"]).toMatchObject({
      state: "TASK_STATE_FAILED",
      message: { role: "ROLE_AGENT", parts: [{ text: "no paint" }] },
    });
    const [cancelled] = await Promise.all([
      http(hub, "/message:send", said("is cancelled")),
      work(hub, (task_id) => hub.post("/task/cancel", { task_id, reason: "not needed" })),
    ]);
    expect(record(cancelled["task"])["status"]).toMatchObject({
      state: "TASK_STATE_CANCELED",
      message: { parts: [{ text: "not needed" }] },
    });
  });

  test("a stream tells each attempt, and resumes exactly after any of its events", async () => {
    const { id } = await create(hub, "tried twice");
    const path = `/tasks/${id}:subscribe`;
    const whole = send(hub, path, {}).then((answer) => events(answer));
    const cut = await events(await send(hub, path, undefined), 1); // as GET, too; the client goes away
    await claim(hub, id);
    await ok(hub.post("/task/fail", { task_id: id, node_id: "w1", error: "once more" }));
    hub.clock.pass(60_000);
    await hub.sweep();
    await claim(hub, id);
    await ok(hub.post("/task/extend", { task_id: id, node_id: "w1", note: "nearly" }));
    await ok(hub.post("/task/fail", { task_id: id, node_id: "w1", error: "no", retry: false }));
    const all = await whole;
    expect(all.map(({ data }) => told(data))).toEqual([
      "task SUBMITTED",
      "statusUpdate WORKING",
      "statusUpdate SUBMITTED",
      "statusUpdate WORKING",
      "statusUpdate WORKING",
      "statusUpdate FAILED",
    ]);
    const texts = all.map(({ data }) => JSON.stringify(data));
    expect([texts[2], texts[4], texts[5]]).toEqual(
      ["once more", "nearly", "no"].map((text) => expect.stringContaining(`"text":"${text}"`)),
    );
    expect(cut[0]?.id).toBe(all[0]?.id ?? "");
    for (const [i, { id: lastId }] of all.entries()) {
      const rest = await events(await send(hub, path, {}, { headers: { "Last-Event-ID": lastId } }));
      expect([i, rest]).toEqual([i, all.slice(i + 1)]);
    }
    expect(await httpError(hub, path, {})).toEqual([400, "UNSUPPORTED_OPERATION"]);
    const past = { headers: { "Last-Event-ID": "999999999" } };
    expect(await httpError(hub, path, {}, past)).toEqual([400, "UNSUPPORTED_OPERATION"]);
  });

  test("a stream that resumes before what the log still holds begins with the task", async () => {
    await using short = await startHub({ retainMs: 60_000, variants: ["A"] });
    await short.addNode("w1");
    const { id } = await create(short, "old");
    for (let passed = 0; passed < 3; passed++) {
      short.clock.pass(60_000);
      await short.sweep();
    }
    await short.addNode("w1");
    await claim(short, id);
    const kept = list(await ok(short.get("/events?since=0&limit=1")), "events");
    expect(kept[0]?.["id"]).toBeGreaterThan(2);
    const resumed = await send(short, `/tasks/${id}:subscribe`, {}, { headers: { "Last-Event-ID": "1" } });
    expect((await events(resumed, 1)).map(({ data }) => told(data))).toEqual(["task WORKING"]);
  });

  test("a deleted task ends its stream", async () => {
    const { id } = await create(hub, "deleted");
    const stream = await send(hub, `/tasks/${id}:subscribe`, {});
    await ok(hub.admin("/task/delete", { task_id: id }));
    expect((await events(stream)).map(({ data }) => told(data))).toEqual([
      "task SUBMITTED",
      "statusUpdate CANCELED",
    ]);
    expect(await httpError(hub, `/tasks/${id}`)).toEqual([404, "TASK_NOT_FOUND"]);
  });
});
