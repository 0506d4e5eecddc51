/**
 * What nobody sees of a quorum before it is decided, by any door, and whom it does not pay. quorum.test.ts has the rest.
 */
import { describe, expect, test } from "bun:test";
import { ADMIN_KEY, type TestHub, startHub, onlyOnce } from "../support/hub.ts";
import { Agent } from "../support/mcp.ts";
import { RECEIVER_URL, type Received, Receiver } from "../support/receiver.ts";
import { as } from "./key-commands.ts";
import { RESULT, ok, record, refused, until } from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;
const ADMIN = { "X-Admin-Key": ADMIN_KEY };

const says = (output: unknown): Fields => ({ ...RESULT, output });

function complete(hub: TestHub, taskId: string, nodeId: string, output: unknown) {
  return hub.post("/task/complete", { task_id: taskId, node_id: nodeId, result: says(output) });
}

async function taskOf(hub: TestHub, taskId: string): Promise<Fields> {
  return record((await ok(hub.get(`/task/${taskId}`)))["task"]);
}

async function quorumOf(hub: TestHub, taskId: string): Promise<Fields> {
  return record((await taskOf(hub, taskId))["quorum"]);
}

/** The copy that a node gets; null: none. */
async function next(hub: TestHub, nodeId: string): Promise<string | null> {
  const { task } = await ok(hub.post("/task/next", { node_id: nodeId }));
  return task === null ? null : String(record(task)["task_id"]);
}

async function copies(hub: TestHub, taskId: string, n: number): Promise<readonly string[]> {
  await until("there are copies", async () => (await idsOf(hub, taskId)).length === n);
  return idsOf(hub, taskId);
}

async function idsOf(hub: TestHub, taskId: string): Promise<readonly string[]> {
  const { copies } = await quorumOf(hub, taskId);
  return Array.isArray(copies) ? copies.map(String) : [];
}

async function balanceOf(hub: TestHub, nodeId: string): Promise<unknown> {
  return record((await ok(hub.get(`/node/${nodeId}`)))["node"])["lux_balance"];
}

const LIE = "the moon is made of cheese";
const THREE = { quorum: { results: 2, of: 3 }, lux_reward: 1.000001, backoff_s: 0, creator_node: "boss" };

describe("a quorum", () => {
  once.test("of three, of whom one lies, one dies and one copies", async () => {
    await using hub = await startHub();
    await hub.addNodes(["liar", "dying", "copier", "honest", "another"]);
    const taskId = await hub.addTask({ ...THREE, quorum: { results: 2, of: 4 } });
    await copies(hub, taskId, 2);
    const [lied, died] = [String(await next(hub, "liar")), String(await next(hub, "dying"))];
    const noted = { task_id: lied, node_id: "liar", note: `it is ${LIE}`, checkpoint: { answer: LIE } };
    await ok(hub.post("/task/extend", noted));
    await ok(hub.post("/task/output", { task_id: lied, node_id: "liar", offset: 0, data: LIE }));
    await ok(complete(hub, lied, "liar", LIE));
    // The one who copies tries everything that shows what others have sent.
    const trap = await hub.addTask({ depends_on: [lied], priority: 2 });
    const seen = await Promise.all([
      hub.get(`/task/${lied}?context=1`),
      hub.get(`/task/${taskId}?context=1`),
      hub.get("/task/list"),
      hub.get(`/task/${lied}/output`),
      hub.get(`/task/${trap}?context=1`),
      hub.get(`/task/${trap}/inputs`),
      hub.get(`/task/${taskId}/inputs`),
      hub.get(`/task/wait?task_ids=${lied}`),
      hub.get("/lessons"),
      hub.get("/file/list"),
      hub.get("/events?since=0&limit=1000"),
      hub.post("/task/next", { node_id: "copier", task_types: ["none"] }),
    ]);
    for (const { status, body } of seen)
      expect([status, JSON.stringify(body).includes(LIE)]).toEqual([200, false]);
    expect(await taskOf(hub, lied)).toMatchObject({ status: "completed", result: null, sealed: true });
    const form = new FormData();
    form.set("file", new File([LIE], "result.txt"));
    form.set("metadata", JSON.stringify({ task_id: lied, node: "liar" }));
    await refused(hub.call("POST", "/file/upload", { body: form }), 409, "task_sealed");
    // Its node leaves, which opens the copy again.
    await ok(hub.post("/node/leave", { node_id: "dying" }));
    const copied = await next(hub, "copier");
    expect(copied).toBe(died);
    await ok(complete(hub, String(copied), "copier", 7));
    await copies(hub, taskId, 3);
    expect(await next(hub, "liar")).toBe(trap);
    const third = String(await next(hub, "honest"));
    await ok(complete(hub, third, "honest", 42));
    await copies(hub, taskId, 4);
    expect(await next(hub, "honest")).toBeNull();
    const fourth = String(await next(hub, "another"));
    await ok(complete(hub, fourth, "another", 42));
    await until("it is decided", async () => (await taskOf(hub, taskId))["status"] === "completed");
    expect(await taskOf(hub, taskId)).toMatchObject({
      result: { output: 42 },
      quorum: { agreed: ["honest", "another"] },
    });
    expect(await taskOf(hub, lied)).toMatchObject({ result: { output: LIE } });
    expect([await balanceOf(hub, "liar"), await balanceOf(hub, "copier")]).toEqual([0, 0]);
  });

  test("hides the errors of a copy from a cheating worker until it is decided, at every door", async () => {
    await using hub = await startHub();
    await hub.addNodes(["honest", "cheat", "third"]);
    const bound = { name: "cheat", node_id: "cheat" };
    const key = as(String((await ok(hub.post("/key/add", bound, { headers: ADMIN })))["secret"]));
    const taskId = await hub.addTask({ ...THREE, task_type: "sum", quorum: { results: 2, of: 4 } });
    await copies(hub, taskId, 2);
    const failing = String(await next(hub, "honest"));
    const [own] = [record((await ok(hub.post("/task/next", { node_id: "cheat" }, key)))["task"])];
    const held = { task_id: failing, node_id: "honest" };
    await refused(hub.post("/task/ask", { ...held, question: LIE }), 409, "task_sealed");
    await ok(hub.post("/task/release", { ...held, reason: LIE }));
    await ok(hub.post("/task/claim", held));
    await ok(hub.post("/task/fail", { ...held, error: LIE }));
    await ok(hub.post("/task/claim", held));
    const { task } = await ok(hub.post("/task/fail", { ...held, error: LIE, retry: false }));
    expect(record(task)["failure"]).toMatchObject({ kind: "failed", node_id: "honest" });
    const doors = [
      `/task/${failing}`,
      `/task/${failing}?context=1`,
      `/task/${failing}/explain`,
      `/task/${failing}/questions`,
      `/task/${failing}/output`,
      `/task/${failing}/inputs`,
      `/task/${taskId}?context=1`,
      `/task/${String(own["task_id"])}?context=1`,
      "/task/list?per_page=50",
      "/task/list?fields=summary",
      "/task/list?status=failed&order=updated",
      "/task/list?node_id=honest",
      `/task/wait?task_ids=${failing}`,
      "/task/stats",
      "/stats/failures",
      "/stats/types",
      "/questions",
      "/lessons",
      "/reviews",
      "/events?since=0&limit=1000",
      "/poll?since=0",
      "/usage?by=node",
      "/node/honest",
    ];
    for (const door of doors) {
      const { status, body } = await hub.get(door, key);
      expect([door, status, JSON.stringify(body).includes(LIE)]).toEqual([door, 200, false]);
    }
    {
      const headers = { "X-Matrix-Secret": key.headers?.["X-Matrix-Secret"] ?? "" };
      await using agent = await Agent.connect(hub.base(), "cheat", "2026-07-28", headers);
      for (const [tool, args] of [
        ["task_get", { task_id: failing }],
        ["task_list", {}],
        ["task_list", { status: "failed" }],
      ] as const) {
        const { text, data } = await agent.call(tool, args);
        expect([tool, `${text} ${JSON.stringify(data)}`.includes(LIE)]).toEqual([tool, false]);
      }
    }
    // When it is decided, the creator sees why the copy failed.
    await ok(complete(hub, String(own["task_id"]), "cheat", 42));
    await copies(hub, taskId, 3);
    await ok(complete(hub, String(await next(hub, "third")), "third", 42));
    await until("it is decided", async () => (await taskOf(hub, taskId))["status"] === "completed");
    await until("it is shown", async () => {
      return record((await taskOf(hub, failing))["failure"])["message"] === LIE;
    });
    expect(JSON.stringify(await ok(hub.get("/stats/failures")))).toContain(LIE);
  });

  test("hides the result of a copy from webhooks, also in the format of A2A", async () => {
    await using receiver = new Receiver();
    await using hub = await startHub({ post: receiver.post });
    await hub.addNodes(["a", "b"]);
    for (const format of ["a2a", "luxhub"]) {
      const hook = { name: format, url: `${RECEIVER_URL}/${format}`, format };
      await ok(hub.admin("/webhook/put", { ...hook, kinds: ["task.completed"] }));
    }
    const taskId = await hub.addTask(THREE);
    const [copy] = await copies(hub, taskId, 2);
    await ok(hub.post("/task/claim", { task_id: copy, node_id: "a" }));
    await ok(complete(hub, String(copy), "a", LIE));
    const ofCopy = ({ text }: Received): boolean => text.includes(String(copy));
    await receiver.until((received) => received.filter(ofCopy).length >= 2);
    for (const { text } of receiver.received) expect(text).not.toContain(LIE);
  });

  once.test("does not pay the key of its creator either, through whatever node it works", async () => {
    await using hub = await startHub({ selfReward: false });
    await hub.addNodes(["a", "b", "c"]);
    const keyWith = async (name: string, fields: Fields = {}) =>
      as(String((await ok(hub.post("/key/add", { name, ...fields }, { headers: ADMIN })))["secret"]));
    const [creator, other, own] = [
      await keyWith("creator"),
      await keyWith("other"),
      await keyWith("own", { node_id: "c" }),
    ];
    const decided = async (
      fields: Fields,
      by: ReturnType<typeof as>,
      work: Readonly<Record<string, typeof by>>,
    ) => {
      const asked = { title: "t", description: "d", quorum: { results: 2, of: 2 }, lux_reward: 2, ...fields };
      const taskId = String((await ok(hub.post("/task/create", asked, by)))["task_id"]);
      await copies(hub, taskId, 2);
      const before = await Promise.all(Object.keys(work).map((nodeId) => balanceOf(hub, nodeId)));
      for (const [node_id, key] of Object.entries(work)) {
        const { task } = await ok(hub.post("/task/next", { node_id }, key));
        const { task_id } = record(task);
        await ok(hub.post("/task/complete", { task_id, node_id, result: says(1) }, key));
      }
      await until("it is decided", async () => (await taskOf(hub, taskId))["status"] === "completed");
      const after = await Promise.all(Object.keys(work).map((nodeId) => balanceOf(hub, nodeId)));
      return after.map((balance, i) => Number(balance) - Number(before[i]));
    };
    expect(await decided({}, creator, { a: creator, b: other })).toEqual([0, 1]);
    expect(await decided({}, creator, { a: other, b: other })).toEqual([1, 1]);
    expect(await decided({}, own, { c: {}, b: other })).toEqual([0, 1]); // as its node, with another secret
    expect(await decided({}, {}, { a: {}, b: {} })).toEqual([1, 1]); // the secret that all share is nobody's own
  });
});
