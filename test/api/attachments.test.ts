/** The files of tasks: attached when a task is created, and told apart as inputs and outputs. */
import { describe, expect, test } from "bun:test";
import { type Answer, type CallOptions, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { addKey, as } from "./key-commands.ts";
import { NO_ID, VARIANTS, badFields, list, ok, record, refused } from "./scene.ts";

const once = onlyOnce(import.meta.url);
const DRAFT = { title: "t", description: "d" };
type Fields = Readonly<Record<string, unknown>>;

async function upload(hub: TestHub, metadata: Fields = {}, options: CallOptions = {}): Promise<string> {
  const form = new FormData();
  form.set("metadata", JSON.stringify(metadata));
  form.set("file", new File(["content"], "a.txt"));
  return String((await ok(hub.post("/file/upload", form, options)))["file_id"]);
}

async function get(hub: TestHub, taskId: string): Promise<Record<string, unknown>> {
  return record((await ok(hub.get(`/task/${taskId}`)))["task"]);
}

/** What each file of a task is for it, by file_id. */
async function attachedTo(hub: TestHub, taskId: string): Promise<Record<string, unknown>> {
  const files = list(await ok(hub.get(`/file/list?task_id=${taskId}&per_page=50`)), "files");
  return Object.fromEntries(files.map((file) => [String(file["file_id"]), file["attached"]]));
}

describe("files of task/create", () => {
  test.each(VARIANTS)("are inputs of the task in the same commit, on %s", async (variant) => {
    await using hub = await startHub();
    await hub.addNode("n1", {}, variant);
    const ids = [await upload(hub), await upload(hub, { node: "n1" })];
    const [first = "", second = ""] = ids;
    const made = await ok(
      hub.post("/task/create", { ...DRAFT, files: [second, first, second] }, { variant }),
    );
    const taskId = String(made["task_id"]);
    // The balancer of B has assigned it in the same commit: to the node of one of its files, which is an input even so.
    expect(made["assigned_node"]).toBe(variant === "B" ? "n1" : null);
    const files = { files: ids, inputs: ids, outputs: [] };
    expect(made["task"]).toMatchObject(files);
    expect(await get(hub, taskId)).toMatchObject(files);
    expect(await hub.taskOf(taskId)).toMatchObject(files);
    expect(await attachedTo(hub, taskId)).toEqual({ [first]: "input", [second]: "input" });
    const next = await ok(hub.post("/task/next", { node_id: "n1" }));
    expect(next["task"]).toMatchObject(files);
  });

  once.test("that are unknown, or belong to a task, are 400, and nothing is stored", async () => {
    await using hub = await startHub();
    const [free, taken] = [await upload(hub), await upload(hub)];
    const owner = await hub.addTask({ files: [taken] });
    const named = await upload(hub, { task_id: owner });
    const files = [free, NO_ID, taken, named, "x"];
    await badFields(hub.post("/task/create", { ...DRAFT, files, depends_on: [NO_ID] }), [
      "depends_on.0",
      "files.1",
      "files.2",
      "files.3",
      "files.4",
    ]);
    await badFields(hub.post("/task/create", { ...DRAFT, files: free }), ["files"]);
    await badFields(hub.post("/task/create", { ...DRAFT, files: new Array(101).fill(free) }), ["files"]);
    expect(await ok(hub.get("/status"))).toMatchObject({ tasks_count: 1 });
    const last = await hub.addTask({ files: [free] });
    expect(await attachedTo(hub, last)).toEqual({ [free]: "input" });
    await ok(hub.admin("/task/delete", { task_id: last }));
    await badFields(hub.post("/task/create", { ...DRAFT, files: [free] }), ["files.0"]);
  });

  test("of many calls for one file, one gets it", async () => {
    await using hub = await startHub();
    const file = await upload(hub);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => hub.post("/task/create", { ...DRAFT, files: [file] })),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...new Array<number>(19).fill(400)]);
    for (const { status, body } of answers)
      if (status === 400) expect(list(body, "errors")).toMatchObject([{ path: "files.0" }]);
    expect(await ok(hub.get("/status"))).toMatchObject({ tasks_count: 1 });
  });

  test("in a batch go to the first request that names them, and a deleted one to none", async () => {
    await using hub = await startHub();
    const [one, two, gone] = [await upload(hub), await upload(hub), await upload(hub)];
    const requests = [
      { path: "task/create", body: { ...DRAFT, files: [one] } },
      { path: "task/create", body: { ...DRAFT, files: [two, one] } },
      { path: "file/delete", body: { file_id: gone } },
      { path: "task/create", body: { ...DRAFT, files: [gone] } },
      { path: "task/create", body: { ...DRAFT, files: [two] } },
    ];
    const answers = list(await ok(hub.post("/batch", { requests })), "answers");
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 200, 400, 200]);
    expect(list(record(answers[1]?.["body"]), "errors")).toMatchObject([{ path: "files.1" }]);
    expect(record(answers[4]?.["body"])["task"]).toMatchObject({ inputs: [two] });
  });

  once.test("a key that is bound to a node attaches only the files of that node", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNodes(["n1", "n2"]);
    const bound = as(await addKey(hub, "robot", { node_id: "n1" }));
    const own = await upload(hub, {}, bound);
    const ofNobody = await upload(hub);
    const theirs = await upload(hub, { node: "n2" });
    const create = (files: readonly string[]): Promise<Answer> =>
      hub.post("/task/create", { ...DRAFT, files }, bound);
    await refused(create([own, theirs]), 403, "key_bound_to_other_node");
    await refused(create([ofNobody]), 403, "key_bound_to_other_node");
    expect(await ok(create([own]))).toMatchObject({ task: { creator_node: "n1", inputs: [own] } });
  });
});

describe("inputs and outputs", () => {
  test("an output is what the node that holds the task attaches; a later attempt gets the inputs", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2"]);
    const given = await upload(hub);
    const taskId = await hub.addTask({ files: [given], backoff_s: 0 });
    const early = await upload(hub, { task_id: taskId, node: "n1" }); // nobody holds it yet
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
    const made = await upload(hub, { task_id: taskId, node: "n1" });
    const ofOther = await upload(hub, { task_id: taskId, node: "n2" });
    const ofNobody = await upload(hub, { task_id: taskId });
    const inputs = [given, early, ofOther, ofNobody];
    expect(await get(hub, taskId)).toMatchObject({
      files: [given, early, made, ofOther, ofNobody],
      inputs,
      outputs: [made],
    });
    await ok(hub.post("/task/fail", { task_id: taskId, node_id: "n1", error: "e" }));
    const next = await ok(hub.post("/task/next", { node_id: "n2" }));
    expect(next["task"]).toMatchObject({ task_id: taskId, inputs, outputs: [made] });
    const second = await upload(hub, { task_id: taskId, node: "n2" });
    const late = await upload(hub, { task_id: taskId, node: "n1" });
    await ok(hub.complete(taskId, "n2"));
    const after = await upload(hub, { task_id: taskId, node: "n2" });
    expect(await get(hub, taskId)).toMatchObject({
      inputs: [...inputs, late],
      outputs: [made, second, after],
    });
    expect(await attachedTo(hub, taskId)).toEqual({
      ...Object.fromEntries([...inputs, late].map((fileId) => [fileId, "input"])),
      ...Object.fromEntries([made, second, after].map((fileId) => [fileId, "output"])),
    });
    await ok(hub.post("/file/delete", { file_id: made }));
    expect(await get(hub, taskId)).toMatchObject({ outputs: [second, after] });
  });

  once.test("a file of no task is neither", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    const file = await upload(hub, { node: "n1", task_id: NO_ID });
    const [listed] = list(await ok(hub.get("/file/list")), "files");
    expect(listed).toMatchObject({ file_id: file, task_id: null, attached: null });
  });

  once.test("with a bound key the node need not be named", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    const bound = as(await addKey(hub, "robot", { node_id: "n1" }));
    const taskId = await hub.addTask();
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
    const file = await upload(hub, { task_id: taskId }, bound);
    expect(await attachedTo(hub, taskId)).toEqual({ [file]: "output" });
  });
});
