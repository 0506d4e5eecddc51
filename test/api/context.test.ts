/**
 * The context of a task: what task/next, task/claim and task/<id>?context=1 tell a worker of other tasks and of earlier
 * attempts.
 */
import { describe, expect, test } from "bun:test";
import {
  CHECKPOINT_MAX_BYTES,
  CONTEXT_FILES_MAX,
  CONTEXT_RESULTS_MAX_BYTES,
  FAILED_ATTEMPTS_KEPT,
  FILES_OF_TASK_MAX,
} from "../../src/domain/limits.ts";
import { type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { RESULT, addNode, addTask, badFields, complete, list, ok, record, refused } from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;

const INSTANT = { backoff_s: 0 };

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

async function checkpointOf(hub: TestHub, taskId: string): Promise<unknown> {
  const context = await contextOf(hub, taskId);
  return context === undefined ? undefined : record(context)["checkpoint"];
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

describe("inputs", () => {
  test("are the results and files of what the task depends on, in that order", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const first = await addTask(hub, { title: "First" });
    const second = await addTask(hub, { title: "Second" });
    const gone = await addTask(hub, { title: "Gone" });
    const taskId = await addTask(hub, { depends_on: [second, gone, first] });
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

  once.test("beyond their limit are left out, and the pages of task/<id>/inputs have them", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const large = "x".repeat(CONTEXT_RESULTS_MAX_BYTES / 8);
    const inputs: string[] = [];
    for (let i = 0; i < 40; i++) inputs.push(await addTask(hub, { title: `Input ${i}` }));
    for (const taskId of inputs) await done(hub, taskId, { lesson: large });
    const taskId = await addTask(hub, { depends_on: inputs });
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
    "with more files than a response has room for come in smaller pages, with all files",
    async () => {
      await using hub = await startHub();
      await addNode(hub, "n1");
      const inputs: string[] = [];
      for (let i = 0; i <= CONTEXT_FILES_MAX / FILES_OF_TASK_MAX; i++) inputs.push(await addTask(hub));
      for (const taskId of inputs) {
        await Promise.all(Array.from({ length: FILES_OF_TASK_MAX }, (_, i) => put(hub, `${i}.txt`, taskId)));
        await done(hub, taskId);
      }
      const taskId = await addTask(hub, { depends_on: inputs });
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

  once.test("of a task that depends on nothing are none; an unknown task is 404", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub);
    expect(await ok(hub.get(`/task/${taskId}/inputs`))).toEqual({
      success: true,
      inputs: [],
      total: 0,
      next_cursor: null,
    });
    expect(await taken(hub, taskId)).toBeUndefined();
    expect(await contextOf(hub, taskId)).toBeUndefined();
    await refused(hub.get("/task/none/inputs"), 404, "task_not_found");
    await badFields(hub.get(`/task/${taskId}/inputs?cursor=x&limit=101`), ["cursor", "limit"]);
  });
});

describe("a checkpoint", () => {
  test("sent with extend, fail or release reaches the next worker; the last one counts", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub, { ...INSTANT, timeout_s: 60 });
    await ok(hub.post("/task/claim", of(taskId)));
    await ok(hub.post("/task/extend", of(taskId, { checkpoint: { page: 1 } })));
    expect(await checkpointOf(hub, taskId)).toMatchObject({ data: { page: 1 }, epoch: 1, node_id: "n1" });
    await ok(hub.post("/task/extend", of(taskId, { note: "without one" })));
    await ok(hub.post("/task/release", of(taskId, { checkpoint: [2] })));
    expect(await taken(hub, taskId)).toMatchObject({ checkpoint: { data: [2], epoch: 1 } });
    await ok(hub.post("/task/fail", of(taskId, { error: "e", checkpoint: "three" })));
    const { context } = await next(hub);
    expect(context).toMatchObject({
      checkpoint: { data: "three", epoch: 3, node_id: "n1" },
      failures: [{ kind: "failed", message: "e", node_id: "n1" }],
    });
    await ok(complete(hub, taskId, "n1"));
    expect(await checkpointOf(hub, taskId)).toBeUndefined();
  });

  once.test("without a timeout is kept too; keeps the digits of numbers; null is none", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub);
    await ok(hub.post("/task/claim", of(taskId)));
    const body = `{"task_id":"${taskId}","node_id":"n1","checkpoint":{"n":12345678901234567890.10}}`;
    await ok(hub.post("/task/extend", body, { headers: { "Content-Type": "application/json" } }));
    await ok(hub.post("/task/extend", of(taskId, { checkpoint: null })));
    const answer = await fetch(`${hub.base()}/api/v1/task/${taskId}?context=1`);
    expect(await answer.text()).toContain(`"data":{"n":12345678901234567890.10}`);
  });

  once.test("is kept by a retry, unless that says otherwise, and goes with the task", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub);
    const fail = async (): Promise<void> => {
      await ok(hub.post("/task/claim", of(taskId)));
      await ok(hub.post("/task/fail", of(taskId, { error: "e", retry: false, checkpoint: 1 })));
    };
    await fail();
    await ok(hub.post("/task/retry", { task_id: taskId }));
    expect(await checkpointOf(hub, taskId)).toMatchObject({ data: 1 });
    await fail();
    await ok(hub.post("/task/retry", { task_id: taskId, keep_checkpoint: false }));
    expect(await checkpointOf(hub, taskId)).toBeUndefined();
    await fail();
    await ok(hub.admin("/task/delete", { task_id: taskId }));
  });

  once.test("of a worker that has lost the task changes nothing", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub, INSTANT);
    await ok(hub.post("/task/claim", of(taskId)));
    await ok(hub.post("/task/release", of(taskId)));
    await ok(hub.post("/task/claim", of(taskId)));
    const late = of(taskId, { epoch: 1, checkpoint: "late" });
    await refused(hub.post("/task/extend", late), 409, "stale_lease");
    await refused(hub.post("/task/fail", { ...late, error: "e" }), 409, "stale_lease");
    await refused(hub.post("/task/release", late), 409, "stale_lease");
    expect(await checkpointOf(hub, taskId)).toBeUndefined();
  });

  once.test("is at most 64 KiB of JSON, not too deep", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub);
    await ok(hub.post("/task/claim", of(taskId)));
    const most = "x".repeat(CHECKPOINT_MAX_BYTES - 2);
    await ok(hub.post("/task/extend", of(taskId, { checkpoint: most })));
    await badFields(hub.post("/task/extend", of(taskId, { checkpoint: `${most}x` })), ["checkpoint"]);
    let deep: unknown = 1;
    for (let i = 0; i < 65; i++) deep = [deep];
    await badFields(hub.post("/task/release", of(taskId, { checkpoint: deep })), ["checkpoint"]);
    expect(await checkpointOf(hub, taskId)).toMatchObject({ data: most });
  });
});

describe("failures", () => {
  test("are the last five attempts, oldest first, also after a retry", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub, { ...INSTANT, max_attempts: 7 });
    for (let i = 1; i <= 7; i++) {
      await ok(hub.post("/task/claim", of(taskId)));
      await ok(hub.post("/task/fail", of(taskId, { error: `e${i}` })));
    }
    await ok(hub.post("/task/retry", { task_id: taskId }));
    const failures = list(record(await taken(hub, taskId)), "failures");
    expect(failures.map(({ message }) => message)).toEqual(["e3", "e4", "e5", "e6", "e7"]);
    expect(failures.length).toBe(FAILED_ATTEMPTS_KEPT);
  });

  once.test("are only attempts: a cancelled task shows them when it is retried", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub, INSTANT);
    await ok(hub.post("/task/claim", of(taskId)));
    await ok(hub.post("/task/fail", of(taskId, { error: "e1" })));
    await ok(hub.post("/task/cancel", { task_id: taskId }));
    await ok(hub.post("/task/retry", { task_id: taskId }));
    expect(await taken(hub, taskId)).toMatchObject({ failures: [{ kind: "failed", message: "e1" }] });
  });
});

describe("a hand-out", () => {
  once.test("that is repeated with its Idempotency-Key has the context again", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const first = await addTask(hub);
    await done(hub, first);
    await addTask(hub, { depends_on: [first] });
    const ask = () => hub.post("/task/next", { node_id: "n1" }, { headers: { "Idempotency-Key": "k1" } });
    const { body } = await ask();
    const again = await ask();
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.body).toEqual(body);
    expect(body["context"]).toMatchObject({ inputs: [{ task_id: first, result: RESULT }] });
  });

  once.test("in a batch has no context", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const first = await addTask(hub);
    await done(hub, first);
    await addTask(hub, { depends_on: [first] });
    const { answers } = await ok(
      hub.post("/batch", { requests: [{ path: "task/next", body: { node_id: "n1" } }] }),
    );
    const [answer] = answers as { readonly body: Fields }[];
    expect(answer?.body["task"]).not.toBeNull();
    expect(answer?.body["context"]).toBeUndefined();
  });
});
