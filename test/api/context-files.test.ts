/**
 * What is large or exact in the context of a task: files, results beyond the limit, the digits of a checkpoint, and the
 * context of a repeated request. context.test.ts has the rest.
 */
import { expect, test } from "bun:test";
import { CONTEXT_FILES_MAX, CONTEXT_RESULTS_MAX_BYTES, FILES_OF_TASK_MAX } from "../../src/domain/limits.ts";
import { type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { RESULT, list, ok, record } from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;

function next(hub: TestHub, fields: Fields = {}): Promise<Fields> {
  return ok(hub.post("/task/next", { node_id: "n1", ...fields }));
}

async function taken(hub: TestHub, taskId: string): Promise<unknown> {
  const { context } = await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
  return context;
}

async function contextOf(hub: TestHub, taskId: string): Promise<unknown> {
  return (await ok(hub.get(`/task/${taskId}?context=1`)))["context"];
}

function of(taskId: string, fields: Fields = {}): Fields {
  return { task_id: taskId, node_id: "n1", ...fields };
}

async function done(hub: TestHub, taskId: string, fields: Fields = {}): Promise<void> {
  await ok(hub.post("/task/claim", of(taskId)));
  await ok(hub.post("/task/complete", of(taskId, { result: { ...RESULT, ...fields } })));
}

async function put(hub: TestHub, name: string, taskId: string, nodeId?: string): Promise<unknown> {
  const form = new FormData();
  form.append("file", new File([`content of ${name}`], name));
  form.append("metadata", JSON.stringify({ task_id: taskId, ...(nodeId && { node: nodeId }) }));
  return (await ok(hub.post("/file/upload", form)))["file_id"];
}

test("inputs are the results and files of what the task depends on, in that order", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const first = await hub.addTask({ title: "First" });
  const second = await hub.addTask({ title: "Second" });
  const gone = await hub.addTask({ title: "Gone" });
  const taskId = await hub.addTask({ depends_on: [second, gone, first] });
  const given = await put(hub, "in.txt", first);
  await ok(hub.post("/task/claim", of(first)));
  const made = await put(hub, "out.txt", first, "n1");
  await ok(hub.post("/task/complete", of(first, { result: { ...RESULT, pages: 7 } })));
  await done(hub, second);
  await done(hub, gone);
  await hub.sweep();
  await ok(hub.admin("/task/delete", { task_id: gone }));
  const inputs = [
    { task_id: second, title: "Second", status: "completed", result: RESULT, files: [] },
    { task_id: gone, title: null, status: null, result: null, files: [] },
    {
      task_id: first,
      title: "First",
      status: "completed",
      result: { ...RESULT, pages: 7 },
      files: [
        { file_id: given, name: "in.txt", size: 17, attached: "input" },
        { file_id: made, name: "out.txt", size: 18, attached: "output" },
      ],
    },
  ];
  expect(await contextOf(hub, taskId)).toMatchObject({ inputs });
  const { task, context } = await next(hub);
  expect(record(task)["task_id"]).toBe(taskId);
  expect(context).toMatchObject({ inputs });
  expect(await ok(hub.get(`/task/${taskId}/inputs`))).toMatchObject({
    inputs,
    total: 3,
    next_cursor: null,
  });
});

once.test("inputs beyond their limit are left out, and the pages of task/<id>/inputs have them", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const large = "x".repeat(CONTEXT_RESULTS_MAX_BYTES / 8);
  const inputs: string[] = [];
  for (let i = 0; i < 40; i++) inputs.push(await hub.addTask({ title: `Input ${i}` }));
  for (const taskId of inputs) await done(hub, taskId, { lesson: large });
  const taskId = await hub.addTask({ depends_on: inputs });
  const shown = list(record(await taken(hub, taskId)), "inputs");
  expect(shown.map((input) => input["task_id"])).toEqual(inputs);
  const whole = shown.filter((input) => input["result"] !== null);
  expect(whole.length).toBe(7);
  expect(shown.slice(7).map(({ result, omitted }) => ({ result, omitted }))).toEqual(
    Array.from({ length: 33 }, () => ({ result: null, omitted: true })),
  );
  const read: unknown[] = [];
  let pages = 0;
  for (let cursor: unknown = "0"; cursor !== null; pages++) {
    const page = await ok(hub.get(`/task/${taskId}/inputs?limit=100&cursor=${String(cursor)}`));
    for (const { task_id, result } of list(page, "inputs")) {
      read.push(task_id);
      expect(record(result)["lesson"]).toBe(large);
    }
    cursor = page["next_cursor"];
  }
  expect(read).toEqual(inputs);
  expect(pages).toBe(2); // 1 MiB each
});

once.test(
  "inputs with more files than a response has room for come in smaller pages, with all files",
  async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const inputs: string[] = [];
    for (let i = 0; i <= CONTEXT_FILES_MAX / FILES_OF_TASK_MAX; i++) inputs.push(await hub.addTask());
    for (const taskId of inputs) {
      await Promise.all(Array.from({ length: FILES_OF_TASK_MAX }, (_, i) => put(hub, `${i}.txt`, taskId)));
      await done(hub, taskId);
    }
    const taskId = await hub.addTask({ depends_on: inputs });
    const files: number[] = [];
    for (let cursor: unknown = "0"; cursor !== null;) {
      const page = await ok(hub.get(`/task/${taskId}/inputs?limit=100&cursor=${String(cursor)}`));
      for (const input of list(page, "inputs")) files.push(list(input, "files").length);
      expect(JSON.stringify(page)).not.toContain("omitted");
      cursor = page["next_cursor"];
    }
    expect(files).toEqual(inputs.map(() => FILES_OF_TASK_MAX));
  },
);

once.test(
  "a checkpoint without a timeout is kept too; keeps the digits of numbers; null is none",
  async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await hub.addTask();
    await ok(hub.post("/task/claim", of(taskId)));
    const body = `{"task_id":"${taskId}","node_id":"n1","checkpoint":{"n":12345678901234567890.10}}`;
    await ok(hub.post("/task/extend", body, { headers: { "Content-Type": "application/json" } }));
    await ok(hub.post("/task/extend", of(taskId, { checkpoint: null })));
    const answer = await fetch(`${hub.base()}/api/v1/task/${taskId}?context=1`);
    expect(await answer.text()).toContain(`"data":{"n":12345678901234567890.10}`);
  },
);

once.test("a dispatch that is repeated with its Idempotency-Key has the context again", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const first = await hub.addTask();
  await done(hub, first);
  await hub.addTask({ depends_on: [first] });
  const ask = () => hub.post("/task/next", { node_id: "n1" }, { headers: { "Idempotency-Key": "k1" } });
  const { body } = await ask();
  const again = await ask();
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(again.body).toEqual(body);
  expect(body["context"]).toMatchObject({ inputs: [{ task_id: first, result: RESULT }] });
});
