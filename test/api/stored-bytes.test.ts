/**
 * Whatever a key that is bound to a node stores, counts for the node (docs/quotas.md): each request of such a key adds at
 * least as many bytes to the usage of its node as the texts of all tables grow by. An operation that is not in the table
 * below, or a table of the database that is new, fails the test until it counts, or is left out for a reason.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { DECLARED } from "../../src/api/routes.ts";
import { ADMIN_KEY, type Answer, type TestHub, startHub } from "../support/hub.ts";
import { as } from "./key-commands.ts";
import { RESULT, list, ok, record } from "./scene.ts";

const ADMIN = { headers: { "X-Admin-Key": ADMIN_KEY } };

/** Tables that count for nobody, and why. */
const UNCOUNTED: Readonly<Record<string, string>> = {
  answers: "has a limit of its own, and drops the oldest",
  answer_totals: "one row for each key",
  leases: "few for each node, and they end",
  limits: "few for each node, and they end",
  limit_uses: "of the last minute",
  nodes: "one row for each node",
  ledger: "is never deleted; --mint limits it",
  mints: "one row for each key and day",
  quota_usage: "one row for each node",
  family_checks: "until the next round of periodic work",
  group_totals: "one row for each group that has a task, which counts",
  group_endings: "until the next round of periodic work",
  settlements: "until the next round of periodic work",
};

type Fields = Readonly<Record<string, unknown>>;

let hub: TestHub;
let own: ReturnType<typeof as>;
let database: Database;
let columns: ReadonlyMap<string, readonly string[]>;

beforeAll(async () => {
  hub = await startHub({ variants: ["A"] });
  const { secret } = await ok(hub.post("/key/add", { name: "of-n1", node_id: "n1" }, ADMIN));
  own = as(String(secret));
  await ok(hub.post("/node/register", { node_id: "n1", name: "n1" }, own));
  await hub.addNode("n2");
  database = new Database(join(hub.dataDir, "luxhub.db"), { readonly: true });
  const tables = database.query<{ name: string }, []>(
    `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'change%'`,
  );
  columns = new Map(
    tables.all().map(({ name }) => {
      const all = database.query<{ name: string; type: string }, []>(`PRAGMA table_info("${name}")`).all();
      return [name, all.flatMap((column) => (/TEXT|BLOB/.test(column.type) ? [column.name] : []))];
    }),
  );
});
afterAll(async () => {
  database.close();
  await hub.close();
});

/** The bytes of all texts and blobs of a table. */
function textBytes(table: string): number {
  const sizes = (columns.get(table) ?? []).map((column) => `coalesce(length(CAST("${column}" AS BLOB)), 0)`);
  if (sizes.length === 0) return 0;
  // The hub logs the end of a group later, in a commit of its own, which counts for nobody.
  const where = table === "events" ? `WHERE kind <> 'group.ended'` : "";
  const sql = `SELECT coalesce(sum(${sizes.join(" + ")}), 0) AS bytes FROM "${table}" ${where}`;
  return database.query<{ bytes: number }, []>(sql).get()?.bytes ?? 0;
}

async function used(): Promise<number> {
  const keys = list(await ok(hub.get("/key/list", ADMIN)), "keys");
  return Number(record(keys.find(({ name }) => name === "of-n1")?.["used"])["bytes"]);
}

const text = (chars: number): string =>
  crypto
    .randomUUID()
    .repeat(Math.ceil(chars / 36))
    .slice(0, chars);
const post = (path: string, fields: Fields) => ok(hub.post(path, fields, own));
const OF_N1 = { node_id: "n1" };

/** A task of the hub's own secret, which counts for nobody. */
const open = (fields: Fields = {}): Promise<string> => hub.addTask({ backoff_s: 0, ...fields });

async function held(fields: Fields = {}): Promise<Fields> {
  const of = { task_id: await open(fields), ...OF_N1 };
  await post("/task/claim", of);
  return of;
}

const created = async (fields: Fields = {}): Promise<string> =>
  String((await post("/task/create", { title: "t", description: "d", ...fields }))["task_id"]);

const failed = async (fields: Fields = {}): Promise<Fields> => {
  const task_id = await created(fields);
  await post("/task/cancel", { task_id });
  return { task_id };
};

async function received(): Promise<Fields> {
  const sent = { from_node: "n2", to_node: "n1", content: "x", require_ack: true };
  const { message_id } = await ok(hub.post("/message/send", sent));
  return { ...OF_N1, message_id };
}

async function inReview(): Promise<Fields> {
  const task_id = await created({ review: "creator" });
  await ok(hub.post("/task/claim", { task_id, node_id: "n2" }));
  await ok(hub.post("/task/complete", { task_id, node_id: "n2", result: RESULT }));
  return { task_id };
}

function upload(): FormData {
  const form = new FormData();
  form.set("file", new File([text(9_000)], `${text(100)}.txt`));
  form.set("metadata", JSON.stringify({ more: text(3_000) }));
  return form;
}

const usage = () =>
  Array.from({ length: 20 }, (_, i) => ({ seq: i + 1, model: text(128), input_tokens: 1, output_tokens: 1 }));
const result = () => ({
  problem: text(9_000),
  improvement: text(9_000),
  lesson: text(9_000),
  output: text(9_000),
});
const message = async () => ({ from_node: "n1", to_node: "n2", content: text(9_000) });
const schedule = () => ({
  name: text(60),
  every_s: 86_400,
  task: { title: text(400), description: text(9_000) },
});

/** Prepares a request that stores as much as it can; null: it is refused or changes nothing, and why. */
const REQUESTS: Readonly<Record<string, (() => Promise<unknown>) | null>> = {
  "node/register": async () => ({ ...OF_N1, name: text(200), capabilities: [text(60)] }),
  "node/heartbeat": async () => OF_N1,
  "node/leave": async () => (await held(), OF_N1),
  "node/drain": async () => ({ ...OF_N1, drain: true }),
  "task/create": async () => ({
    ...{
      title: text(500),
      description: text(9_000),
      task_type: text(100),
      group: text(100),
      tags: [text(64)],
    },
    ...{ limit_key: text(100), unique_key: text(200), depends_on: [await open()] },
    requires: { capabilities: [text(64)], resources: { [text(30)]: 1 } },
  }),
  "task/next": async () => (await open({ priority: 0 }), OF_N1),
  "task/assign": async () => ({ task_id: await open(), ...OF_N1 }),
  "task/claim": async () => ({ task_id: await open(), ...OF_N1 }),
  // What it adds counts for the creator of the task (docs/quotas.md).
  "task/complete": async () => {
    const task_id = await created();
    await post("/task/claim", { task_id, ...OF_N1 });
    return { task_id, ...OF_N1, result: result(), usage: usage() };
  },
  "task/release": async () => ({
    ...(await held()),
    reason: text(500),
    checkpoint: text(9_000),
    usage: usage(),
  }),
  "task/fail": async () => ({
    ...(await held()),
    error: text(4_000),
    checkpoint: text(9_000),
    usage: usage(),
  }),
  "task/extend": async () => ({
    ...(await held()),
    note: text(1_000),
    checkpoint: text(9_000),
    usage: usage(),
  }),
  "task/retry": async () => failed(),
  "task/cancel": async () => ({ task_id: await created(), reason: text(500) }),
  "task/update": async () => ({ task_id: await created(), title: text(500), description: text(9_000) }),
  "task/batch-assign": async () => ({ assignments: [{ task_id: await open(), ...OF_N1 }] }),
  "task/output": async () => ({ ...(await held()), offset: 0, data: text(60_000) }),
  "task/ask": async () => ({
    ...(await held()),
    ...{ question: text(4_000), choices: [text(200)], schema: { title: text(4_000) } },
  }),
  "task/answer": async () => {
    const task_id = await created();
    await ok(hub.post("/task/claim", { task_id, node_id: "n2" }));
    const { question } = await ok(hub.post("/task/ask", { task_id, node_id: "n2", question: "?" }));
    return { task_id, question_id: record(question)["question_id"], answer: text(9_000) };
  },
  "task/review": async () => ({ ...(await inReview()), verdict: "reject", note: text(900) }),
  "message/send": message,
  "message/receive": async () => (await received(), OF_N1),
  "message/broadcast": async () => ({ from_node: "n1", content: text(9_000) }),
  "message/ack": received,
  "message/redrive": null, // needs a parked message, and stores nothing
  "agent/message": message,
  "agent/broadcast": async () => ({ from_node: "n1", content: text(9_000) }),
  "agent/ack": received,
  "note/put": async () => ({ key: text(100), text: text(9_000) }),
  "note/delete": async () => {
    const key = text(100);
    await post("/note/put", { key, text: "x" });
    return { key };
  },
  "lease/acquire": async () => ({ ...OF_N1, name: text(100) }),
  "lease/renew": async () => {
    const lease = { ...OF_N1, name: text(100) };
    await post("/lease/acquire", lease);
    return lease;
  },
  "lease/release": async () => {
    const lease = { ...OF_N1, name: text(100) };
    await post("/lease/acquire", lease);
    return lease;
  },
  signin: async () => OF_N1,
  "group/cancel": async () => {
    const group = text(60);
    await created({ group });
    return { group, reason: text(500) };
  },
  "group/retry": async () => {
    const group = text(60);
    await failed({ group });
    return { group };
  },
  "schedule/put": async () => schedule(),
  "schedule/run": async () => {
    const { name } = await putSchedule();
    return { name };
  },
  "schedule/delete": async () => {
    const { name } = await putSchedule();
    return { name };
  },
  "limit/hold": async () => {
    const key = text(100);
    await held({ limit_key: key });
    return { key, for_s: 60 };
  },
  batch: async () => ({
    requests: Array.from({ length: 3 }, () => ({
      path: "note/put",
      body: { key: text(100), text: text(900) },
    })),
  }),
  "file/upload": async () => upload(),
  "file/download-url": async () => ({ file_id: await uploaded() }),
  "file/upload-url": async () => ({ name: "a" }),
  "file/delete": async () => ({ file_id: await uploaded() }),
};

async function putSchedule(): Promise<{ name: string }> {
  const asked = schedule();
  await post("/schedule/put", asked);
  return asked;
}

const uploaded = async (): Promise<unknown> => (await ok(hub.post("/file/upload", upload(), own)))["file_id"];

/** By how much the texts of the counted tables grow during a step, and how many bytes more are counted. */
async function growth(step: () => Promise<Answer>) {
  const counted = [...columns.keys()].filter((table) => !Object.hasOwn(UNCOUNTED, table));
  const sizes = () => new Map(counted.map((table) => [table, textBytes(table)]));
  const [before, usedBefore] = [sizes(), await used()];
  const answer = await step();
  const after = sizes();
  const grown = counted.map((table) => [table, (after.get(table) ?? 0) - (before.get(table) ?? 0)] as const);
  const stored = grown.reduce((sum, [, bytes]) => sum + bytes, 0);
  const tables = grown.filter(([, bytes]) => bytes > 0).map(([table]) => table);
  return { answer, stored, counted: (await used()) - usedBefore, tables };
}

test("every operation of a bound key is in the table", () => {
  const declared = DECLARED.filter(({ method, auth }) => method === "POST" && auth === "secret");
  const paths = declared.map(({ path }) => path.replace("/api/v1/", ""));
  expect(Object.keys(REQUESTS).toSorted()).toEqual(paths.toSorted());
  expect(Object.keys(UNCOUNTED).filter((table) => !columns.has(table))).toEqual([]);
});

/** A removal gives back more than the texts of its row: what it removes is prepared within the measurement. */
const REMOVALS: readonly string[] = ["note/delete", "schedule/delete", "file/delete"];

test.each(Object.entries(REQUESTS))("%s counts what it stores", async (path, prepare) => {
  if (prepare === null) return;
  const prepared = REMOVALS.includes(path) ? undefined : await prepare();
  const { answer, stored, counted, tables } = await growth(async () =>
    hub.post(`/${path}`, prepared ?? (await prepare()), own),
  );
  expect([answer.status, answer.body]).toEqual([200, expect.anything()]);
  if (path === "batch") for (const part of list(answer.body, "answers")) expect(part["status"]).toBe(200);
  expect({ tables, isCounted: counted >= stored, stored, counted }).toMatchObject({ isCounted: true });
  await post("/node/drain", { ...OF_N1, drain: false });
  await post("/node/heartbeat", OF_N1);
});

test("so does a task that comes through A2A, and its push config", async () => {
  let n = 0;
  const call = async (method: string, params: Fields): Promise<Answer> => {
    const response = await fetch(`${hub.base()}/a2a`, {
      method: "POST",
      headers: { ...own.headers, "A2A-Version": "1.0", "Content-Type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: ++n, method, params }),
    });
    return { status: response.status, headers: response.headers, body: record(await response.json()) };
  };
  const message = { messageId: text(36), role: "ROLE_USER", parts: [{ text: text(9_000) }] };
  const sent = await growth(() =>
    call("SendMessage", { message, configuration: { returnImmediately: true } }),
  );
  const taskId = record(record(sent.answer.body["result"])["task"])["id"];
  const url = `http://8.8.4.4/${text(900)}`;
  const saved = await growth(() =>
    call("CreateTaskPushNotificationConfig", { taskId, url, token: text(200) }),
  );
  expect(record(saved.answer.body["result"])).toMatchObject({ url });
  for (const { stored, counted } of [sent, saved]) expect(counted).toBeGreaterThanOrEqual(stored);
  expect(saved.tables).toContain("webhooks");
});
