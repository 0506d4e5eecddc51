/**
 * Fixtures of the API tests: register a node, create a task, expect a problem, send bytes over a raw socket. All of it
 * uses the hub as a client does, and reads none of its internals.
 */
import { expect } from "bun:test";
import { BATCH_REQUESTS_MAX } from "../../src/domain/limits.ts";
import { HANG_MS } from "../support/hang.ts";
import { type Answer, type CallOptions, SECRET, type TestHub } from "../support/hub.ts";

export const VARIANTS = ["A", "B"] as const;
export type VariantName = (typeof VARIANTS)[number];

export const RESULT = { problem: "it was slow", improvement: "it is fast", lesson: "measure first" } as const;

/** ISO 8601 UTC with milliseconds, the form of every time. */
export const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** A UUIDv7 as no answer of these tests has one. */
export const NO_ID = "01890000-0000-7000-8000-000000000000";

type Fields = Readonly<Record<string, unknown>>;

/** The answer of a call that has to succeed. */
export async function ok(answer: Answer | Promise<Answer>): Promise<Answer["body"]> {
  const { status, body } = await answer;
  expect(body).toMatchObject({ success: true });
  expect(status).toBe(200);
  return body;
}

/** Expects an answer to be this problem. The test hub checks the form of every problem. */
export async function refused(
  answer: Answer | Promise<Answer>,
  status: number,
  code: string,
): Promise<Answer> {
  const got = await answer;
  expect({ status: got.status, error: got.body["error"] }).toEqual({ status, error: code });
  expect(got.body["errors"] !== undefined).toBe(status === 400);
  return got;
}

/** Says that an answer is a 400 that names exactly these fields, whatever their order. */
export async function badFields(answer: Answer | Promise<Answer>, paths: readonly string[]): Promise<void> {
  const { body } = await refused(answer, 400, "invalid_request");
  const errors = list(body, "errors");
  expect(errors.map((error) => error["path"]).toSorted()).toEqual([...paths].toSorted());
  for (const { message } of errors) expect(message).toMatch(/\w/);
}

/** Registers a node that the balancer may give tasks to, in either variant; the answer's body. */
export function addNode(
  hub: TestHub,
  nodeId: string,
  fields: Fields = {},
  variant: VariantName = "A",
): Promise<Answer["body"]> {
  const asked = { node_id: nodeId, name: nodeId, auto_assign: true, ...fields };
  return ok(hub.post("/node/register", asked, { variant }));
}

export async function addNodes(hub: TestHub, nodeIds: readonly string[]): Promise<void> {
  for (const nodeId of nodeIds) await addNode(hub, nodeId);
}

/** Creates a task; its id. */
export async function addTask(
  hub: TestHub,
  fields: Fields = {},
  variant: VariantName = "A",
): Promise<string> {
  const body = await ok(hub.post("/task/create", { title: "t", description: "d", ...fields }, { variant }));
  return String(body["task_id"]);
}

/** Posts these bodies to one path in as few requests as a batch allows; the answers, which all have to succeed. */
export async function inBatches(
  hub: TestHub,
  path: string,
  bodies: readonly Fields[],
  variant: VariantName = "A",
): Promise<readonly Answer["body"][]> {
  const got: Answer["body"][] = [];
  for (let i = 0; i < bodies.length; i += BATCH_REQUESTS_MAX) {
    const requests = bodies.slice(i, i + BATCH_REQUESTS_MAX).map((body) => ({ path, body }));
    const answers = list(await ok(hub.post("/batch", { requests }, { variant })), "answers");
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    got.push(...answers.map(({ body }) => record(body)));
  }
  return got;
}

/** Creates so many tasks; their ids. */
export async function addTasks(
  hub: TestHub,
  count: number,
  fields: Fields = {},
  variant: VariantName = "A",
): Promise<readonly string[]> {
  const bodies = Array.from({ length: count }, () => ({ title: "t", description: "d", ...fields }));
  return (await inBatches(hub, "task/create", bodies, variant)).map(({ task_id }) => String(task_id));
}

/** Creates a task on A and assigns it; its id. */
export async function addTaskOf(hub: TestHub, nodeId: string, fields: Fields = {}): Promise<string> {
  const taskId = await addTask(hub, fields);
  await ok(hub.post("/task/assign", { task_id: taskId, node_id: nodeId }));
  return taskId;
}

export function complete(
  hub: TestHub,
  taskId: string,
  nodeId: string,
  options: CallOptions = {},
): Promise<Answer> {
  return hub.post("/task/complete", { task_id: taskId, node_id: nodeId, result: RESULT }, options);
}

/** A task as the list of a variant shows it. */
export async function taskOf(
  hub: TestHub,
  taskId: string,
  variant: VariantName = "A",
): Promise<Record<string, unknown>> {
  const body = await ok(hub.get("/task/list?per_page=50", { variant }));
  const task = list(body, "tasks").find((one) => one["task_id"] === taskId);
  if (!task) throw new Error(`no task ${taskId} in the list`);
  return task;
}

export async function nodeOf(
  hub: TestHub,
  nodeId: string,
  variant: VariantName = "A",
): Promise<Record<string, unknown>> {
  return record((await ok(hub.get(`/node/${nodeId}`, { variant })))["node"]);
}

/** Sends a message; its id. */
export async function send(hub: TestHub, from: string, to: string, fields: Fields = {}): Promise<string> {
  const body = await ok(
    hub.post("/message/send", { from_node: from, to_node: to, content: "hello", ...fields }),
  );
  return String(body["message_id"]);
}

/** Takes messages without waiting. */
export async function receive(
  hub: TestHub,
  nodeId: string,
  fields: Fields = {},
): Promise<readonly Record<string, unknown>[]> {
  return list(await ok(hub.post("/message/receive", { node_id: nodeId, ...fields })), "messages");
}

/** How the event log begins. */
export function startsOf(hub: TestHub): readonly string[] {
  return Array.from({ length: hub.size }, () => "hub.started");
}

/** The event log from its beginning, as kinds; of one task, if given. */
export async function eventKinds(hub: TestHub, taskId?: string): Promise<unknown[]> {
  const events = list(await ok(hub.get("/events?since=0&limit=1000")), "events");
  return events
    .filter((event) => taskId === undefined || event["task_id"] === taskId)
    .map((event) => event["kind"]);
}

export function record(value: unknown): Record<string, unknown> {
  expect(value).toEqual(expect.any(Object));
  return { ...(value as object) };
}

export function list(body: Readonly<Record<string, unknown>>, name: string): Record<string, unknown>[] {
  const value = body[name];
  if (!Array.isArray(value)) throw new Error(`${name} is no array: ${JSON.stringify(value)}`);
  return value.map(record);
}

/** One field of each item of a list. */
export function pick(body: Readonly<Record<string, unknown>>, name: string, field: string): unknown[] {
  return list(body, name).map((item) => item[field]);
}

/** Whether so many calls of callers with the secret wait, by the hub's own metrics. */
export async function waits(hub: TestHub, count: number): Promise<boolean> {
  const answer = await fetch(`${hub.base()}/metrics`, { headers: { "X-Matrix-Secret": SECRET } });
  return new RegExp(`^luxhub_waiting_calls\\{secret="valid"\\} ${count}$`, "m").test(await answer.text());
}

/** Polls until the hub brings a condition about by itself (its sweeper runs every second of real time). */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + HANG_MS;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within ${HANG_MS} ms: ${what}`);
    await Bun.sleep(20);
  }
}

/** Lets 3 minutes pass, in which the nodes in `alive` send their heartbeats, and the hub do its periodic work twice. */
export async function swept(hub: TestHub, alive: readonly string[] = []): Promise<void> {
  for (let i = 0; i < 2; i++) {
    hub.clock.pass(90_000);
    for (const nodeId of alive) await ok(hub.post("/node/heartbeat", { node_id: nodeId }));
    await hub.sweep();
  }
}

/** What came back over a bare socket. */
export type RawAnswer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
};

/** A request on its way over a socket of its own. */
export type Held = {
  readonly answered: Promise<RawAnswer>;
  /** Breaks the connection off, as a caller that goes away. */
  hangUp(): void;
  /** Sends more bytes; they must fit into the socket's buffer. */
  send(bytes: string): void;
};

/** Sends bytes as they are over a socket of their own, and goes on while the answer (with a Content-Length) is awaited. */
export async function hold(port: number, bytes: string | Uint8Array): Promise<Held> {
  const chunks: Uint8Array[] = [];
  const answered = Promise.withResolvers<RawAnswer>();
  answered.promise.catch(() => {}); // nobody need wait for it
  const look = (closed: boolean): void => {
    const answer = parseAnswer(Buffer.concat(chunks));
    if (answer) answered.resolve(answer);
    else if (closed) answered.reject(new Error("the connection closed without an answer"));
  };
  let left = typeof bytes === "string" ? Buffer.from(bytes) : Buffer.from(bytes);
  const write = (socket: { write(bytes: Uint8Array): number }): void => {
    left = left.subarray(socket.write(left));
  };
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_, chunk) {
        chunks.push(new Uint8Array(chunk));
        look(false);
      },
      drain: write,
      close: () => look(true),
      error: (_, error) => answered.reject(error),
    },
  });
  write(socket);
  const end = (): void => {
    socket.end();
  };
  answered.promise.then(end, end);
  return {
    answered: answered.promise,
    hangUp: () => socket.terminate(),
    send: (more) => void socket.write(more),
  };
}

/** Sends bytes as they are over a socket of their own and reads one answer. */
export async function raw(port: number, bytes: string | Uint8Array): Promise<RawAnswer> {
  return (await hold(port, bytes)).answered;
}

/** The text of a POST with a JSON body and the secret. */
export function rawPost(path: string, body: unknown, headers: readonly string[] = []): string {
  const text = JSON.stringify(body);
  return [
    `POST /api/v1${path} HTTP/1.1`,
    "Host: hub",
    `X-Matrix-Secret: ${SECRET}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(text)}`,
    ...headers,
    "",
    text,
  ].join("\r\n");
}

function parseAnswer(bytes: Buffer): RawAnswer | null {
  const end = bytes.indexOf("\r\n\r\n");
  if (end === -1) return null;
  const [first = "", ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const headers = new Headers();
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const body = bytes.subarray(end + 4);
  if (body.byteLength < Number(headers.get("content-length") ?? 0)) return null;
  return { status: Number(first.split(" ")[1]), headers, text: body.toString("utf8") };
}
