/**
 * Quotas of keys that are bound to a node (docs/quotas.md): what counts, what is refused, what gives room back, and
 * that the running totals equal the rows after each step.
 */
import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import {
  BATCH_REQUESTS_MAX,
  BROADCAST_STEP_NODES,
  KEPT_BLOCK_BYTES,
  KEPT_FILE_BYTES,
  KEPT_MESSAGE_BYTES,
} from "../../src/domain/limits.ts";
import { DAY_MS, MINUTE_MS } from "../../src/lib/clock.ts";
import { FACTS } from "../../src/store/sql/consistency.ts";
import { onPostgres } from "../support/consistency-check.ts";
import { ADMIN_KEY, type Answer, type HubOptions, type TestHub, startHub, onlyOnce } from "../support/hub.ts";
import { Agent } from "../support/mcp.ts";
import { as } from "./key-commands.ts";
import { RESULT, list, ok, record, refused, until } from "./scene.ts";

const once = onlyOnce(import.meta.url);
const ADMIN = { "X-Admin-Key": ADMIN_KEY } as const;
const KIB = 1024;

type Fields = Readonly<Record<string, unknown>>;
type Usage = { readonly tasks: number; readonly bytes: number };

/** A hub with a key that is bound to n1, which is registered, and the calls with this key. */
class Scene implements AsyncDisposable {
  readonly hub: TestHub;
  readonly secret: string;

  private constructor(hub: TestHub, secret: string) {
    this.hub = hub;
    this.secret = secret;
  }

  static async open(options: HubOptions = {}): Promise<Scene> {
    const hub = await startHub({ variants: ["A", "B"], ...options });
    const added = await ok(hub.post("/key/add", { name: "of-n1", node_id: "n1" }, { headers: ADMIN }));
    const scene = new Scene(hub, String(added["secret"]));
    await ok(scene.post("node/register", { node_id: "n1", name: "n1" }));
    await hub.addNode("n2");
    return scene;
  }

  post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.hub.post(`/${path}`, body, as(this.secret, { headers }));
  }

  create(fields: Fields = {}): Promise<Answer> {
    return this.post("task/create", { title: "t", description: "d", ...fields });
  }

  async created(fields: Fields = {}): Promise<string> {
    return String((await ok(this.create(fields)))["task_id"]);
  }

  upload(bytes: number, metadata: object = {}): Promise<Answer> {
    const form = new FormData();
    form.set("file", new Blob([new Uint8Array(bytes)]), "a.bin");
    form.set("metadata", JSON.stringify(metadata));
    return this.post("file/upload", form);
  }

  /** What counts against the quota of n1, as key/list shows it; checks every total against the rows. */
  async usage(): Promise<Usage> {
    expect(await this.#differences()).toEqual([]);
    const keys = list(await ok(this.hub.get("/key/list", { headers: ADMIN })), "keys");
    for (const key of keys)
      expect([key["name"], key["used"] !== undefined]).toEqual([key["name"], key["node_id"] !== null]);
    const { tasks, bytes } = record(keys.find(({ name }) => name === "of-n1")?.["used"]);
    return { tasks: Number(tasks), bytes: Number(bytes) };
  }

  async #differences(): Promise<readonly unknown[]> {
    const facts = FACTS.filter(({ name }) => name === "usage" || name === "charges").map(({ sql }) => sql);
    if (this.hub.database !== null) {
      await using database = new SQL(this.hub.database, { max: 1 });
      return (await Promise.all(facts.map((sql) => database.unsafe(onPostgres(sql))))).flat();
    }
    using database = new Database(join(this.hub.dataDir, "luxhub.db"), { readonly: true });
    return facts.flatMap((sql) => database.query(sql).all());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.hub.close();
  }
}

/** Expects quota_exceeded, with what is used and allowed. */
async function exceeded(answer: Answer | Promise<Answer>, quota: Fields): Promise<void> {
  const { headers, body } = await refused(answer, 429, "quota_exceeded");
  expect([headers.get("retry-after"), body]).toEqual(["60", expect.objectContaining(quota)]);
}

describe("unfinished tasks", () => {
  let scene: Scene;
  beforeEach(async () => void (scene = await Scene.open({ quotaTasks: 2 })));
  afterEach(() => scene.hub.close());

  const full = { used: 2, allowed: 2 };

  test("a third is refused, and each way to finish one gives room", async () => {
    const claim = async (task_id: string) => ok(scene.hub.post("/task/claim", { task_id, node_id: "n2" }));
    const ways: Readonly<Record<string, (task_id: string) => Promise<unknown>>> = {
      completed: async (task_id) => {
        await claim(task_id);
        await ok(scene.hub.post("/task/complete", { task_id, node_id: "n2", result: RESULT }));
      },
      failed: async (task_id) => {
        await claim(task_id);
        await ok(scene.hub.post("/task/fail", { task_id, node_id: "n2", error: "no", retry: false }));
      },
      cancelled: (task_id) => ok(scene.post("task/cancel", { task_id })),
      deleted: (task_id) => ok(scene.hub.post("/task/delete", { task_id }, { headers: ADMIN })),
    };
    await scene.created();
    for (const [way, finish] of Object.entries(ways)) {
      const taskId = await scene.created();
      await exceeded(scene.create(), full);
      expect([way, (await scene.usage()).tasks]).toEqual([way, 2]);
      await finish(taskId);
      expect([way, (await scene.usage()).tasks]).toEqual([way, 1]);
    }
  });

  once.test("a retry counts as a creation; a return to open changes nothing", async () => {
    const taskId = await scene.created();
    await ok(scene.post("task/cancel", { task_id: taskId }));
    const [first] = [await scene.created(), await scene.created()];
    await exceeded(scene.post("task/retry", { task_id: taskId }), full);
    await ok(scene.hub.post("/task/claim", { task_id: first, node_id: "n2" }));
    await ok(scene.hub.post("/task/release", { task_id: first, node_id: "n2" }));
    expect((await scene.usage()).tasks).toBe(2);
    await ok(scene.post("task/cancel", { task_id: first }));
    await ok(scene.post("task/retry", { task_id: taskId }));
    expect((await scene.usage()).tasks).toBe(2);
  });

  once.test(
    "tasks of the hub's secret count for nobody, also those that name the node as their creator",
    async () => {
      for (let i = 0; i < 4; i++) await scene.hub.addTask({ creator_node: "n1" });
      expect((await scene.usage()).tasks).toBe(0);
      await scene.created();
    },
  );

  test("of many at once exactly as many pass as there is room for", async () => {
    await scene.created();
    const answers = await Promise.all(Array.from({ length: 30 }, () => scene.create()));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array<number>(29).fill(429)]);
    expect((await scene.usage()).tasks).toBe(2);
  });

  once.test("each request of a batch is charged after those before it", async () => {
    const taskId = await scene.created();
    const one = { path: "task/create", body: { title: "t", description: "d" } };
    const cancel = { path: "task/cancel", body: { task_id: taskId } };
    const requests = [one, one, cancel, one, one];
    const answers = list(await ok(scene.post("batch", { requests })), "answers");
    expect(answers.map(({ status }) => status)).toEqual([200, 429, 200, 200, 429]);
    expect(record(answers[1]?.["body"])).toMatchObject({ error: "quota_exceeded", ...full });
    expect((await scene.usage()).tasks).toBe(2);
  });

  once.test("the refusal is not stored for a repeat with the same Idempotency-Key", async () => {
    const [taskId] = [await scene.created(), await scene.created()];
    const body = { title: "t", description: "d" };
    const again = () => scene.post("task/create", body, { "Idempotency-Key": "k" });
    await exceeded(again(), full);
    await ok(scene.post("task/cancel", { task_id: taskId }));
    const created = await again();
    expect([created.status, created.headers.get("idempotent-replayed")]).toEqual([200, null]);
    const replayed = await again();
    expect([replayed.status, replayed.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
    expect((await scene.usage()).tasks).toBe(2);
  });

  test("a quorum holds room for its copies until it is decided, and is refused as a whole", async () => {
    await using wide = await Scene.open({ quotaTasks: 5 });
    const { hub } = wide;
    await hub.addNode("n3");
    const asked = { quorum: { results: 2, of: 3 }, backoff_s: 0 };
    await exceeded(wide.create({ quorum: { results: 5 } }), { used: 0, allowed: 5 });
    const refusal = (await wide.create({ quorum: { results: 5 } })).body["detail"];
    expect(refusal).toContain("this request needs room for 6 more");
    const taskId = await wide.created(asked);
    const held = await wide.usage();
    expect(held.tasks).toBe(3);
    await exceeded(wide.create(asked), { used: 3, allowed: 5 });
    const copies = async (n: number): Promise<readonly string[]> => {
      let ids: readonly string[] = [];
      await until(`there are ${n} copies`, async () => {
        const { copies } = record((await hub.taskOf(taskId))["quorum"]);
        ids = Array.isArray(copies) ? copies.map(String) : [];
        return ids.length === n;
      });
      return ids;
    };
    const work = async (task_id: string | undefined, node_id: string, output: number) => {
      await ok(hub.post("/task/claim", { task_id, node_id }));
      await ok(hub.post("/task/complete", { task_id, node_id, result: { ...RESULT, output } }));
    };
    const [first, second] = await copies(2);
    expect(await wide.usage()).toEqual(held); // the copies are in the room that was held for them
    await work(first, "n2", 1);
    await work(second, "n3", 2);
    const third = (await copies(3))[2];
    expect((await wide.usage()).tasks).toBe(3);
    await exceeded(wide.create(asked), { used: 3 });
    await ok(hub.post("/node/register", { node_id: "n4", name: "n4" }));
    await work(third, "n4", 1);
    await until("it is decided", async () => (await hub.taskOf(taskId))["status"] === "completed");
    const decided = await wide.usage();
    expect(decided.tasks).toBe(0);
    expect(decided.bytes).toBeGreaterThan(held.bytes); // the results of the copies count too
    const again = await wide.created(asked);
    await ok(wide.post("task/cancel", { task_id: again }));
    expect((await wide.usage()).tasks).toBe(0);
    await wide.created(asked);
    await exceeded(wide.post("task/retry", { task_id: again }), { used: 3, allowed: 5 });
    await ok(hub.admin("/task/delete", { task_id: taskId }));
    await wide.usage();
  });

  once.test("the copies of a quorum must fit the bytes too, before there is any", async () => {
    await using narrow = await Scene.open({ quotaBytes: 30 * KIB });
    const description = "x".repeat(4 * KIB);
    await exceeded(narrow.create({ description, quorum: { results: 2, of: 9 } }), { allowed: 30 * KIB });
    const taskId = await narrow.created({ description, quorum: { results: 2, of: 3 } });
    expect((await narrow.usage()).bytes).toBeGreaterThan(16 * KIB);
    await ok(narrow.post("task/cancel", { task_id: taskId }));
    await narrow.hub.sweep();
    expect((await narrow.usage()).bytes).toBeLessThan(16 * KIB); // but for the copies that there were
  });

  once.test(
    "a task keeps its place while its result is reviewed; the task for the review needs none",
    async () => {
      for (const review of ["creator", "capability:check"]) {
        const taskId = await scene.created({ review, backoff_s: 0 });
        await scene.created();
        await exceeded(scene.create(), full);
        const work = async (node_id: string, lesson: string) => {
          await ok(scene.hub.post("/task/claim", { task_id: taskId, node_id }));
          await ok(
            scene.hub.post("/task/complete", { task_id: taskId, node_id, result: { ...RESULT, lesson } }),
          );
        };
        await work("n2", "one");
        await scene.hub.sweep();
        expect((await scene.usage()).tasks).toBe(2);
        await exceeded(scene.create(), full);
        await ok(scene.hub.post("/task/review", { task_id: taskId, verdict: "reject" }));
        expect((await scene.usage()).tasks).toBe(2);
        await work("n2", "two");
        await ok(scene.hub.post("/task/review", { task_id: taskId, verdict: "pass" }));
        expect((await scene.usage()).tasks).toBe(1);
        const { tasks } = await ok(scene.hub.get("/task/list?status=open"));
        for (const { task_id } of list({ tasks }, "tasks"))
          await ok(scene.hub.post("/task/cancel", { task_id }));
        expect((await scene.usage()).tasks).toBe(0);
      }
    },
  );

  once.test("an agent of MCP is told what to do", async () => {
    const agent = await Agent.connect(scene.hub.base(), "n1", "2026-07-28", {
      "X-Matrix-Secret": scene.secret,
    });
    await scene.created();
    await agent.ok("task_create", { title: "t", description: "d" });
    const told = await agent.call("task_create", { title: "t", description: "other" });
    expect([told.isError, told.data["error"]]).toEqual([true, "quota_exceeded"]);
    expect(told.text).toContain("--quota-tasks");
    await agent.client.close();
  });
});

describe("bytes", () => {
  test("every row counts while it is kept, whoever changes it", async () => {
    await using scene = await Scene.open();
    const { hub } = scene;
    /** Runs a step; by how many bytes the usage has changed. */
    const change = async (step: () => Promise<unknown>): Promise<number> => {
      const before = (await scene.usage()).bytes;
      await step();
      return (await scene.usage()).bytes - before;
    };
    const long = "x".repeat(10_000);
    let taskId = "";
    expect(await change(async () => void (taskId = await scene.created({ description: long })))).toBeWithin(
      10_000,
      12_000,
    );
    const dependent = { depends_on: [taskId] };
    expect(await change(() => scene.created(dependent))).toBeWithin(700, 1_500);
    await change(() => ok(scene.post("task/claim", { task_id: taskId, node_id: "n1" })));
    const progress = { task_id: taskId, node_id: "n1", note: "é".repeat(500) };
    expect(await change(() => ok(scene.post("task/extend", progress)))).toBeWithin(2_000, 3_000); // and its event
    const failed = { task_id: taskId, node_id: "n1", error: "e".repeat(3_000) };
    expect(await change(() => ok(scene.post("task/fail", failed)))).toBeWithin(5_000, 7_000); // less the note
    hub.clock.pass(MINUTE_MS);
    await ok(hub.post("/node/heartbeat", { node_id: "n2" }));
    await hub.sweep(); // its backoff is over
    const done = { task_id: taskId, node_id: "n2", result: { ...RESULT, problem: long } };
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n2" }));
    expect(await change(() => ok(hub.post("/task/complete", done)))).toBeWithin(9_500, 11_000); // and an edge less
    await change(() => ok(hub.post("/task/delete", { task_id: taskId }, { headers: ADMIN })));
    const file = await ok(scene.upload(1));
    expect(await change(() => scene.upload(5_000))).toBeWithin(
      2 * KEPT_BLOCK_BYTES + KEPT_FILE_BYTES + 1,
      2 * KEPT_BLOCK_BYTES + 2 * KEPT_FILE_BYTES + 400,
    );
    const { file_id } = file;
    expect(await change(() => ok(hub.post("/file/delete", { file_id })))).toBeWithin(
      -KEPT_BLOCK_BYTES - KEPT_FILE_BYTES - 200,
      -KEPT_BLOCK_BYTES,
    );
    const message = { from_node: "n1", to_node: "n2", content: long };
    expect(await change(() => ok(scene.post("message/send", message)))).toBeWithin(10_001, 12_000);
    await ok(hub.post("/message/receive", { node_id: "n2" }));
    expect(
      await change(() => ok(scene.post("message/broadcast", { from_node: "n1", content: "x" }))),
    ).toBeWithin(KEPT_MESSAGE_BYTES + 1, KEPT_MESSAGE_BYTES + KIB);
    expect(await change(() => ok(hub.post("/message/send", { ...message, from_node: "n2" })))).toBe(0);
  });

  once.test("what is over is refused; what ends something is not", async () => {
    await using scene = await Scene.open({ quotaBytes: 30 * KIB });
    const { hub } = scene;
    const allowed = { allowed: 30 * KIB };
    const [taskId, other] = [await scene.created(), await scene.created()];
    await ok(scene.post("task/claim", { task_id: taskId, node_id: "n1" }));
    await ok(scene.post("task/claim", { task_id: other, node_id: "n1" }));
    const { file_id } = await ok(scene.upload(1));
    const sent = { from_node: "n2", to_node: "n1", content: "x", require_ack: true };
    const { message_id } = await ok(hub.post("/message/send", sent));
    const { bytes } = await scene.usage();
    const rest = { title: "t", description: "x".repeat(30 * KIB - bytes - 1_000) };
    await ok(scene.post("task/create", rest));
    await exceeded(scene.post("task/create", rest), allowed);
    await exceeded(scene.upload(1), allowed);
    await exceeded(scene.post("message/send", { ...sent, from_node: "n1", to_node: "n2" }), allowed);
    await exceeded(scene.post("message/broadcast", { from_node: "n1", content: "x" }), allowed);
    await ok(scene.post("node/heartbeat", { node_id: "n1" }));
    await ok(scene.post("message/receive", { node_id: "n1" }));
    await ok(scene.post("message/ack", { message_id, node_id: "n1" }));
    const loud = { task_id: other, node_id: "n1", error: "e".repeat(4_000), retry: false };
    await ok(scene.post("task/fail", loud));
    await ok(scene.post("task/complete", { task_id: taskId, node_id: "n1", result: RESULT }));
    const used = (await scene.usage()).bytes;
    expect(used).toBeGreaterThan(30 * KIB);
    await exceeded(scene.post("task/retry", { task_id: other }), { used, ...allowed });
    await exceeded(scene.post("task/next", { node_id: "n1" }), { used, ...allowed });
    await ok(scene.post("node/leave", { node_id: "n1" }));
    await ok(scene.post("node/heartbeat", { node_id: "n1" }));
    await ok(scene.post("file/delete", { file_id }));
    expect((await scene.usage()).bytes).toBeLessThan(used);
    await hub.addTask({ description: "x".repeat(40 * KIB) }); // other keys have no quota
  });

  test("output counts against the node that sends it; deleting the task, or newer attempts, give it back", async () => {
    await using scene = await Scene.open({ quotaBytes: 100 * KIB });
    const { hub } = scene;
    await ok(hub.post("/node/register", { node_id: "n1", name: "n1" }));
    const task = await hub.addTask({ backoff_s: 0 });
    const of = { task_id: task, node_id: "n1" };
    const start = async () => (await ok(hub.post("/task/claim", of)), (await scene.usage()).bytes);
    const before = await start();
    const data = "x".repeat(30_000);
    const send = (offset: number) => scene.post("task/output", { ...of, offset, data });
    await ok(send(0));
    await ok(send(30_000));
    expect((await scene.usage()).bytes - before).toBeWithin(60_000, 62_000);
    await ok(send(0)); // a repeat
    await exceeded(scene.post("task/output", { ...of, offset: 60_000, data: data + data }), {
      allowed: 100 * KIB,
    });
    await ok(hub.post("/task/output", { ...of, offset: 60_000, data })); // other keys have no quota
    for (let n = 0; n < 3; n++) {
      await ok(hub.post("/task/fail", { ...of, error: "no" }));
      await start();
      await ok(hub.post("/task/output", { ...of, offset: 0, data }));
    }
    expect((await scene.usage()).bytes).toBe(before);
    await ok(hub.post("/task/fail", { ...of, error: "no" }));
    await start();
    await ok(send(0));
    expect((await scene.usage()).bytes).toBeGreaterThan(before + 30_000);
    await ok(hub.admin("/task/delete", { task_id: task }));
    expect((await scene.usage()).bytes).toBe(before);
  });

  test("what a worker adds to a task of another counts for the worker until the task ends", async () => {
    await using scene = await Scene.open({ quotaBytes: 300 * KIB });
    const { hub } = scene;
    const added = await ok(hub.post("/key/add", { name: "of-n2", node_id: "n2" }, { headers: ADMIN }));
    const n2 = as(String(added["secret"]));
    const usedBy = async (name: string): Promise<number> => {
      const keys = list(await ok(hub.get("/key/list", { headers: ADMIN })), "keys");
      return Number(record(keys.find((key) => key["name"] === name)?.["used"])["bytes"]);
    };
    const ofN1 = async () => ((await scene.usage()).bytes, usedBy("of-n1"));
    const text = "x".repeat(4_000);
    const ends: readonly ((of: Fields) => Promise<Answer>)[] = [
      (of) => scene.post("task/complete", { ...of, result: RESULT }),
      (of) => scene.post("task/fail", { ...of, error: text, retry: false }),
      ({ task_id }) => hub.post("/task/cancel", { task_id }),
      ({ task_id }) => hub.admin("/task/delete", { task_id }),
    ];
    for (const [creator, options] of [["nobody", {}] as const, ["n2", n2] as const])
      for (const end of ends) {
        const fields = { title: "t", description: "d", backoff_s: 0 };
        const { task_id } = await ok(hub.post("/task/create", fields, options));
        const of = { task_id, node_id: "n1" };
        await ok(scene.post("task/claim", of));
        const [before, ofCreator] = [await ofN1(), await usedBy("of-n2")];
        await ok(scene.post("task/ask", { ...of, question: text }));
        await ok(scene.post("task/extend", { ...of, note: "n", checkpoint: text.repeat(10) }));
        await ok(scene.post("task/extend", { ...of, checkpoint: 1 }));
        await ok(scene.post("task/extend", { ...of, checkpoint: text.repeat(10) })); // it grows to what it was
        await ok(scene.post("task/fail", { ...of, error: text }));
        await ok(scene.post("task/claim", of));
        expect((await ofN1()) - before).toBeWithin(52_000, 54_000);
        expect([creator, await usedBy("of-n2")]).toEqual([creator, ofCreator]);
        const big = { ...of, note: "n", checkpoint: "x".repeat(60_000) };
        while ((await scene.upload(10_000)).status === 200);
        await exceeded(scene.post("task/extend", big), { allowed: 300 * KIB });
        const { files } = await ok(hub.get("/file/list"));
        for (const { file_id } of list({ files }, "files")) await ok(hub.post("/file/delete", { file_id }));
        await ok(end(of));
        expect((await ofN1()) - before).toBeWithin(0, 30_000); // the events
        await hub.sweep();
        await ofN1();
        if (creator === "n2" && end !== ends[3])
          expect((await usedBy("of-n2")) - ofCreator).toBeGreaterThan(8_000);
      }
  });

  test("retention gives room back", async () => {
    await using scene = await Scene.open();
    const content = "x".repeat(5_000);
    await ok(scene.post("message/send", { from_node: "n1", to_node: "n2", content }));
    await ok(scene.post("message/broadcast", { from_node: "n1", content }));
    await ok(scene.post("task/cancel", { task_id: await scene.created() }));
    expect((await scene.usage()).bytes).toBeGreaterThan(2 * content.length);
    // The hub runs all the time: it does not take a jump for the age of its rows.
    for (let day = 0; day < 9; day++) {
      scene.hub.clock.pass(DAY_MS);
      await scene.hub.sweep();
    }
    // What is left is the task, and events that others made meanwhile count for nobody.
    const { tasks, bytes } = await scene.usage();
    expect(tasks).toBe(0);
    expect(bytes).toBeWithin(384, 900);
  });

  test("a broadcast of several commits counts once it is whole", async () => {
    await using scene = await Scene.open();
    const many = BROADCAST_STEP_NODES + 10;
    const nodes = Array.from({ length: many }, (_, i) => ({ node_id: `m${i}`, name: "m" }));
    for (let at = 0; at < many; at += BATCH_REQUESTS_MAX)
      await scene.hub.inBatches("node/register", nodes.slice(at, at + BATCH_REQUESTS_MAX));
    const before = (await scene.usage()).bytes;
    const { receivers } = await ok(scene.post("message/broadcast", { from_node: "n1", content: "x" }));
    expect(receivers).toBeArrayOfSize(many + 1);
    expect((await scene.usage()).bytes - before).toBeGreaterThan(100 * many);
  });

  once.test(
    "a broadcast of several commits that exceeds the quota reaches nobody, and is removed",
    async () => {
      await using scene = await Scene.open({ quotaBytes: 20 * KIB });
      const many = BROADCAST_STEP_NODES + 10;
      const nodes = Array.from({ length: many }, (_, i) => ({ node_id: `m${i}`, name: "m" }));
      for (let at = 0; at < many; at += BATCH_REQUESTS_MAX)
        await scene.hub.inBatches("node/register", nodes.slice(at, at + BATCH_REQUESTS_MAX));
      const before = await scene.usage();
      await exceeded(scene.post("message/broadcast", { from_node: "n1", content: "x" }), {
        allowed: 20 * KIB,
      });
      expect(await scene.usage()).toEqual(before);
      const history = "/message/history?node_id=";
      for (const node of ["n1", "m7"]) expect((await ok(scene.hub.get(history + node)))["count"]).toBe(0);
      scene.hub.clock.pass(MINUTE_MS);
      await scene.hub.sweep();
      for (const node of ["n1", "m7"]) expect((await ok(scene.hub.get(history + node)))["count"]).toBe(0);
      expect(await scene.usage()).toEqual(before);
    },
  );
});

describe("files", () => {
  const MIB = 1024 * KIB;

  test("an upload over the quota ends with 429, and leaves nothing behind", async () => {
    await using scene = await Scene.open({ quotaBytes: MIB });
    await ok(scene.upload(MIB / 2));
    await exceeded(scene.upload(8 * MIB), { allowed: MIB });
    await exceeded(scene.upload(MIB / 2), { allowed: MIB });
    expect((await ok(scene.hub.get("/file/list")))["total"]).toBe(1);
    if (scene.hub.database === null) expect(blobsOf(scene.hub)).toBeArrayOfSize(1);
    await ok(scene.hub.post("/file/upload", form(2 * MIB))); // with the hub's secret
    await scene.usage();
  });

  test("of several at once no more pass than there is room for", async () => {
    await using scene = await Scene.open({ quotaBytes: MIB });
    const answers = await Promise.all(Array.from({ length: 8 }, () => scene.upload(400 * KIB)));
    const passed = answers.filter(({ status }) => status === 200).length;
    expect(answers.filter(({ status }) => status === 429)).toBeArrayOfSize(8 - passed);
    expect(passed).toBeWithin(1, 3);
    expect((await scene.usage()).bytes).toBeWithin(passed * 400 * KIB, MIB + 1);
  });

  once.test("the files in a message of A2A count, and belong to the node", async () => {
    await using scene = await Scene.open({ quotaBytes: 200 * KIB });
    const send = async (messageId: string, files: number): Promise<Response> => {
      const raw = Buffer.alloc(1).toString("base64");
      const parts = [
        { text: "do it" },
        ...Array.from({ length: files }, (_, i) => ({ raw, filename: `${i}` })),
      ];
      const message = { messageId, role: "ROLE_USER", parts };
      return fetch(`${scene.hub.base()}/a2a/message:send`, {
        method: "POST",
        headers: {
          "A2A-Version": "1.0",
          "Content-Type": "application/a2a+json",
          Authorization: `Bearer ${scene.secret}`,
        },
        body: JSON.stringify({ message, configuration: { returnImmediately: true } }),
      });
    };
    expect((await send("m1", 20)).status).toBe(200);
    const files = list(await ok(scene.hub.get("/file/list")), "files");
    expect(new Set(files.map((file) => file["node_id"]))).toEqual(new Set(["n1"]));
    const { tasks, bytes } = await scene.usage();
    expect(tasks).toBe(1);
    expect(bytes).toBeWithin(20 * 4 * KIB, 150 * KIB);
    const refusal = await send("m2", 40);
    expect([refusal.status, await refusal.json()]).toEqual([
      429,
      expect.objectContaining({ error: "quota_exceeded", allowed: 200 * KIB }),
    ]);
    expect((await ok(scene.hub.get("/file/list")))["total"]).toBe(20);
    await scene.usage();
    expect((await send("m3", 0)).status).toBe(200); // the text alone fits
  });
});

/** The names of the files on the disk. */
function blobsOf({ dataDir }: TestHub): readonly string[] {
  return readdirSync(join(dataDir, "files"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);
}

function form(bytes: number): FormData {
  const data = new FormData();
  data.set("file", new Blob([new Uint8Array(bytes)]), "a.bin");
  return data;
}
