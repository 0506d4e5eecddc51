/** The output of a task while it runs: task/output, task/<id>/output with its waits, and its stream. */
import { describe, expect, test } from "bun:test";
import {
  OUTPUT_BLOCK_BYTES,
  OUTPUT_HEAD_DEFAULT_BYTES,
  OUTPUT_SENT_MAX_BYTES,
} from "../../src/domain/limits.ts";
import { HANG_MS } from "../support/hang.ts";
import { SseReader } from "../support/sse.ts";
import { SECRET, type TestHub, newDataDir, onlyOnce, startHub } from "../support/hub.ts";
import { addKey, as } from "./key-commands.ts";
import { RESULT, VARIANTS, badFields, list, ok, record, refused, until } from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;

/** A task that n1 works on. */
class Scene implements AsyncDisposable {
  readonly hub: TestHub;
  readonly taskId: string;
  #offset = 0;

  private constructor(hub: TestHub, taskId: string) {
    this.hub = hub;
    this.taskId = taskId;
  }

  static async open(options: Parameters<typeof startHub>[0] = {}): Promise<Scene> {
    const hub = await startHub(options);
    await hub.addNode("n1");
    const taskId = await hub.addTask({ backoff_s: 0 });
    const scene = new Scene(hub, taskId);
    await scene.taken();
    return scene;
  }

  async taken(): Promise<number> {
    const { lease } = await ok(this.hub.post("/task/claim", this.of()));
    this.#offset = 0;
    return Number(record(lease)["epoch"]);
  }

  of(fields: Fields = {}): Fields {
    return { task_id: this.taskId, node_id: "n1", ...fields };
  }

  post(fields: Fields) {
    return this.hub.post("/task/output", this.of(fields));
  }

  async send(data: string): Promise<void> {
    const { next_offset } = await ok(this.post({ offset: this.#offset, data }));
    this.#offset += Buffer.byteLength(data);
    expect(next_offset).toBe(this.#offset);
  }

  read(query = ""): Promise<Fields> {
    return ok(this.hub.get(`/task/${this.taskId}/output${query}`));
  }

  fail(): Promise<Fields> {
    return ok(this.hub.post("/task/fail", this.of({ error: "no" })));
  }

  complete(): Promise<Fields> {
    return ok(this.hub.post("/task/complete", this.of({ result: RESULT })));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.hub.close();
  }
}

describe("task/output", () => {
  test("appends at an offset in bytes; a repeat succeeds, and a gap says where the output continues", async () => {
    await using scene = await Scene.open();
    await scene.send("Grüße\n");
    await scene.send("\u001b[1mbold\u001b[0m\r\n");
    expect(await ok(scene.post({ offset: 0, data: "Grüße\n" }))).toMatchObject({ next_offset: 22 });
    const { body } = await refused(scene.post({ offset: 23, data: "x" }), 409, "wrong_offset");
    expect(body["expected"]).toBe(22);
    expect(await scene.read()).toMatchObject({
      task_id: scene.taskId,
      status: "assigned",
      offset: 0,
      data: "Grüße\n\u001b[1mbold\u001b[0m\r\n",
      next_offset: 22,
      dropped: 0,
      size: 22,
      ended: false,
    });
    expect(await scene.read("?from=8")).toMatchObject({ offset: 8, data: "\u001b[1mbold\u001b[0m\r\n" });
  });

  test("is the holder's, in its lease, and of a running task", async () => {
    await using scene = await Scene.open();
    const { hub } = scene;
    await hub.addNode("n2");
    const piece = { offset: 0, data: "x" };
    await refused(scene.post({ ...piece, epoch: 7 }), 409, "stale_lease");
    await refused(scene.post({ ...piece, node_id: "n2" }), 403, "not_assigned_to_node");
    await refused(scene.post({ ...piece, node_id: "n3" }), 404, "node_not_found");
    await refused(scene.post({ ...piece, task_id: "none" }), 404, "task_not_found");
    await ok(hub.post("/task/release", scene.of()));
    await refused(scene.post(piece), 409, "task_not_assigned");
    await scene.taken();
    await scene.complete();
    await refused(scene.post(piece), 409, "task_completed");
    expect(await scene.read()).toMatchObject({ attempt: null, data: "", size: 0, ended: true, attempts: [] });
    const secret = await addKey(hub, "k", { node_id: "n2" });
    const bound = hub.post("/task/output", scene.of(piece), as(secret));
    await refused(bound, 403, "key_bound_to_other_node");
  });

  once.test("takes 1 to 65,536 bytes of text", async () => {
    await using scene = await Scene.open();
    await badFields(scene.post({ offset: -1, data: "" }), ["offset", "data"]);
    await badFields(scene.post({}), ["offset", "data"]);
    await badFields(scene.post({ offset: 0, data: "\0" }), ["data"]);
    await badFields(scene.post({ offset: 0, data: "é".repeat(OUTPUT_SENT_MAX_BYTES / 2) + "x" }), ["data"]);
    await scene.send("é".repeat(OUTPUT_SENT_MAX_BYTES / 2));
    for (const query of ["?from=-1", "?attempt=x", "?wait=301"])
      await refused(scene.hub.get(`/task/${scene.taskId}/output${query}`), 400, "invalid_request");
  });

  test("may be part of a batch, each piece after the one before", async () => {
    await using scene = await Scene.open();
    const piece = (offset: number, data: string) => ({
      path: "task/output",
      body: scene.of({ offset, data }),
    });
    const requests = [
      piece(0, "a"),
      piece(1, "bc"),
      piece(9, "x"),
      piece(3, "d".repeat(40_000)),
      piece(40_003, "e"),
    ];
    const answers = list(await ok(scene.hub.post("/batch", { requests })), "answers");
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 409, 200, 200]);
    expect((await scene.read())["data"]).toBe(`abc${"d".repeat(40_000)}e`);
  });

  test("is no event, and needs the secret on both variants", async () => {
    await using scene = await Scene.open();
    const before = (await ok(scene.hub.get("/events")))["cursor"];
    await scene.send("secret words");
    expect((await ok(scene.hub.get("/events")))["cursor"]).toBe(before);
    for (const variant of VARIANTS)
      for (const path of ["", "/stream"]) {
        const asked = { variant, headers: { "X-Matrix-Secret": null } };
        await refused(scene.hub.get(`/task/${scene.taskId}/output${path}`, asked), 401, "unauthorized");
      }
  });
});

describe("task/<id>/output", () => {
  test("says how much is no longer kept, and goes on with the end", async () => {
    const headBytes = 2 * OUTPUT_BLOCK_BYTES;
    await using scene = await Scene.open({ outputHeadBytes: headBytes, outputTailBytes: OUTPUT_BLOCK_BYTES });
    const text = Array.from({ length: 20_000 }, (_, i) => `zeile ${i} ✓\n`).join("");
    const all = Buffer.from(text);
    for (let at = 0; at < text.length; at += 5_000) await scene.send(text.slice(at, at + 5_000));
    const head = await scene.read();
    expect(head["size"]).toBe(all.length);
    expect(Number(head["next_offset"])).toBeWithin(headBytes, headBytes + 3);
    expect(head["data"]).toBe(all.toString("utf8", 0, Number(head["next_offset"])));
    const tail = await scene.read(`?from=${Number(head["next_offset"])}`);
    expect(tail["next_offset"]).toBe(all.length);
    expect(Number(tail["offset"])).toBeWithin(
      all.length - 3 * OUTPUT_BLOCK_BYTES,
      all.length - OUTPUT_BLOCK_BYTES,
    );
    expect(tail["dropped"]).toBe(Number(tail["offset"]) - Number(head["next_offset"]));
    expect(tail["data"]).toBe(all.toString("utf8", Number(tail["offset"])));
  });

  test("the last three attempts are kept, each from its beginning", async () => {
    await using scene = await Scene.open();
    const epochs: number[] = [];
    for (let n = 1; n <= 4; n++) {
      if (n > 1) epochs.push(await scene.taken());
      await scene.send(`attempt ${n}`);
      await scene.fail();
    }
    const { attempts, attempt, data, ended } = await scene.read();
    expect({ attempt, data, ended }).toEqual({ attempt: epochs.at(-1), data: "attempt 4", ended: true });
    expect((attempts as Fields[]).map((one) => one["attempt"])).toEqual(epochs);
    expect(await scene.read("?attempt=0&from=3")).toMatchObject({
      attempt: epochs[0],
      offset: 0,
      data: "attempt 2",
    });
    expect(await scene.read(`?attempt=${epochs[1]}&from=8`)).toMatchObject({ offset: 8, data: "3" });
  });

  test("waits for more, for the end of the attempt, for the next attempt, and for the end of the task", async () => {
    await using scene = await Scene.open();
    const first = scene.read("?wait=60");
    await scene.send("one");
    expect(await first).toMatchObject({ data: "one", ended: false });
    const second = scene.read("?from=3&wait=60");
    await scene.send("two");
    const { attempt, ...more } = await second;
    expect(more).toMatchObject({ offset: 3, data: "two", next_offset: 6 });
    const end = scene.read(`?attempt=${attempt}&from=6&wait=60`);
    await scene.fail();
    expect(await end).toMatchObject({ attempt, data: "", next_offset: 6, ended: true });
    const another = scene.read(`?attempt=${Number(attempt) + 1}&wait=60`);
    const epoch = await scene.taken();
    await scene.send("again");
    expect(await another).toMatchObject({ attempt: epoch, data: "again", ended: false });
    const last = scene.read(`?attempt=${epoch + 1}&wait=60`);
    await scene.complete();
    expect(await last).toMatchObject({ attempt: null, status: "completed", ended: true });
    const begun = performance.now();
    await scene.read(`?attempt=${epoch}&from=5&wait=300`);
    expect(performance.now() - begun).toBeLessThan(HANG_MS); // not at the end of its time
  });

  test("is gone with its task", async () => {
    await using scene = await Scene.open();
    await scene.send("x".repeat(40_000));
    const waits = scene.hub.get(`/task/${scene.taskId}/output?from=40000&wait=60`);
    await ok(scene.hub.admin("/task/delete", { task_id: scene.taskId }));
    await refused(waits, 404, "task_not_found");
    await refused(scene.hub.get(`/task/${scene.taskId}/output`), 404, "task_not_found");
  });

  test("is gone when the retention of its task is over", async () => {
    await using scene = await Scene.open();
    const { hub } = scene;
    const taskId = await hub.addTask({ retain_s: 60 });
    const of = { task_id: taskId, node_id: "n1" };
    await ok(hub.post("/task/claim", of));
    await ok(hub.post("/task/output", { ...of, offset: 0, data: "x".repeat(40_000) }));
    await ok(hub.post("/task/complete", { ...of, result: RESULT }));
    expect(await ok(hub.get(`/task/${taskId}/output`))).toMatchObject({ size: 40_000, ended: true });
    hub.clock.pass(61_000);
    const isGone = async (): Promise<boolean> => {
      hub.clock.pass(60_000);
      await hub.sweep();
      return (await hub.get(`/task/${taskId}/output`)).status === 404;
    };
    await until("it is gone", isGone); // the hub looks for output without a task when it closes
  });

  once.test("is there after a restart, with other settings too", async () => {
    const dataDir = newDataDir();
    let taskId = "";
    {
      await using scene = await Scene.open({ dataDir });
      await scene.send("a".repeat(60_000));
      await scene.send("b".repeat(60_000));
      ({ taskId } = scene);
    }
    await using hub = await startHub({ dataDir, outputHeadBytes: 1, outputTailBytes: 1 });
    const { data } = await ok(hub.get(`/task/${taskId}/output`));
    expect(data).toBe("a".repeat(60_000) + "b".repeat(60_000));
    const piece = { task_id: taskId, node_id: "n1", offset: 120_000, data: "c".repeat(20_000) };
    await ok(hub.post("/task/output", piece));
    const tail = await ok(hub.get(`/task/${taskId}/output?from=${OUTPUT_BLOCK_BYTES}`));
    expect(String(tail["data"])).toEndWith("c".repeat(1_000));
    expect(Number(tail["dropped"])).toBeGreaterThan(OUTPUT_HEAD_DEFAULT_BYTES);
  });
});

describe("task/<id>/output/stream", () => {
  const ENDED = "the stream has ended";

  function stream(scene: Scene, query = "", lastEventId?: string): Promise<SseReader> {
    const url = `${scene.hub.base()}/api/v1/task/${scene.taskId}/output/stream${query}`;
    return SseReader.open(url, SECRET, lastEventId);
  }

  async function output(reader: SseReader): Promise<Fields> {
    const { id, data } = await reader.next("output");
    return { id, ...(JSON.parse(data) as Fields) };
  }

  test("shows what comes, attempt by attempt, until the task is finished, and resumes exactly", async () => {
    await using scene = await Scene.open();
    await using reader = await stream(scene);
    await scene.send("one");
    const first = await output(reader);
    expect(first).toMatchObject({ offset: 0, next_offset: 3, dropped: 0, data: "one" });
    await scene.send("two");
    const second = await output(reader);
    expect(second).toMatchObject({ offset: 3, data: "two" });
    await scene.fail();
    const epoch = await scene.taken();
    await scene.send("again");
    const third = await output(reader);
    expect(third).toMatchObject({ id: `5.${epoch}`, attempt: epoch, node_id: "n1", data: "again" });
    await scene.complete();
    expect(JSON.parse((await reader.next("end")).data)).toEqual({ status: "completed" });
    await expect(reader.next("output")).rejects.toThrow(ENDED);

    await using resumed = await stream(scene, "", String(first["id"]));
    expect(await output(resumed)).toEqual(second);
    expect(await output(resumed)).toEqual(third);
    await resumed.next("end");
    await using byOffset = await stream(scene, `?attempt=${epoch}`, "2");
    expect(await output(byOffset)).toMatchObject({ offset: 2, data: "ain" });
    await using fromQuery = await stream(scene, `?attempt=${epoch}&from=4`);
    expect(await output(fromQuery)).toMatchObject({ offset: 4, data: "n" });
  });

  test("of no task is 404, and ends when its task is deleted", async () => {
    await using scene = await Scene.open();
    await refused(scene.hub.get("/task/none/output/stream"), 404, "task_not_found");
    await using reader = await stream(scene);
    await scene.send("one");
    expect(await output(reader)).toMatchObject({ data: "one" });
    await ok(scene.hub.admin("/task/delete", { task_id: scene.taskId }));
    await expect(reader.next("output")).rejects.toThrow(ENDED);
  });

  once.test("ends when the hub stops", async () => {
    await using scene = await Scene.open();
    await using reader = await stream(scene);
    await scene.send("one");
    await output(reader);
    await scene.hub.close();
    await expect(reader.next("output")).rejects.toThrow(ENDED);
  });
});
