/** Who is paid what: the right to mint (keys add --mint), --self-reward off, the daily bonus; and attacks on LUX. */
import { describe, expect, test } from "bun:test";
import {
  ADMIN_KEY,
  type HubOptions,
  SECRET,
  type TestHub,
  TestClock,
  onlyOnce,
  startHub,
} from "../support/hub.ts";
import { Agent, ERAS } from "../support/mcp.ts";
import { as } from "./key-commands.ts";
import { RESULT, list, ok, record, refused, until } from "./scene.ts";

const once = onlyOnce(import.meta.url);
const ADMIN = { "X-Admin-Key": ADMIN_KEY };
const DAY_MS = 86_400_000;

type Fields = Readonly<Record<string, unknown>>;

/** Adds a key over HTTP; its secret. */
async function keyWith(hub: TestHub, name: string, fields: Fields = {}): Promise<string> {
  return String((await ok(hub.post("/key/add", { name, ...fields }, { headers: ADMIN })))["secret"]);
}

const NEW = { title: "t", description: "d" };

function create(hub: TestHub, secret: string, lux_reward: number, fields: Fields = {}) {
  return hub.post("/task/create", { ...NEW, lux_reward, ...fields }, as(secret));
}

/** A hub in the middle of a day to come, with a node and a key that may promise 10 LUX a day. */
async function scene(options: HubOptions = {}) {
  const clock = new TestClock();
  clock.jump(DAY_MS - (clock.now() % DAY_MS) + DAY_MS / 2);
  const hub = await startHub({ clock, offlineTasks: "keep", ...options });
  if (options.isStrict !== true) await hub.addNode("n1");
  return { hub, clock, secret: await keyWith(hub, "ten", { mint_per_day: 10 }) };
}

describe("the right to mint", () => {
  once.test("bounds the rewards of the tasks that a key creates in a UTC day", async () => {
    const { hub, clock, secret } = await scene();
    await using _ = hub;
    await ok(create(hub, secret, 6));
    await refused(create(hub, secret, 4.000001), 403, "mint_limit");
    await ok(create(hub, secret, 4));
    await ok(create(hub, secret, 0));
    await refused(create(hub, secret, 0.000001), 403, "mint_limit");
    await ok(create(hub, await keyWith(hub, "other"), 1_000));
    clock.pass(DAY_MS / 2); // midnight
    await ok(create(hub, secret, 10));
    await refused(create(hub, secret, 1), 403, "mint_limit");
    const keys = list(await ok(hub.get("/key/list", { headers: ADMIN })), "keys");
    expect(keys.map(({ name, mint_per_day }) => [name, mint_per_day])).toEqual([
      ["primary", null],
      ["primary-admin", null],
      ["ten", 10],
      ["other", null],
    ]);
  });

  once.test("counts batches, concurrent requests, updates and repeats once", async () => {
    const { hub, secret } = await scene();
    await using _ = hub;
    const requests = [6, 6, 4, 1].map((lux_reward) => ({
      path: "task/create",
      body: { ...NEW, lux_reward },
    }));
    const { answers } = await ok(hub.post("/batch", { requests }, as(secret)));
    expect(Array.isArray(answers) && answers.map((answer) => record(answer)["status"])).toEqual([
      200, 403, 200, 403,
    ]);
    const three = await keyWith(hub, "three", { mint_per_day: 3 });
    const many = await Promise.all(Array.from({ length: 8 }, () => create(hub, three, 1)));
    expect(many.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 403, 403, 403, 403, 403]);
    const five = await keyWith(hub, "five", { mint_per_day: 5 });
    const headers = { "Idempotency-Key": "one" };
    const body = { ...NEW, lux_reward: 2 };
    const first = await ok(hub.post("/task/create", body, as(five, { headers })));
    expect(await ok(hub.post("/task/create", body, as(five, { headers })))).toEqual(first);
    const raise = (lux_reward: number) =>
      hub.post("/task/update", { task_id: first["task_id"], lux_reward }, as(five));
    await refused(raise(5.5), 403, "mint_limit"); // 3.5 more
    await ok(raise(5));
    await ok(raise(5)); // nothing more
    await refused(raise(5.000001), 403, "mint_limit");
  });

  once.test(
    "what was promised stays so: a task that is cancelled or deleted gives nothing back",
    async () => {
      const { hub, secret } = await scene();
      await using _ = hub;
      const { task_id } = await ok(create(hub, secret, 10));
      await ok(hub.post("/task/cancel", { task_id }, as(secret)));
      await ok(hub.admin("/task/delete", { task_id }));
      await refused(create(hub, secret, 1), 403, "mint_limit");
    },
  );

  once.test("a schedule counts for the key that put it, however often it runs", async () => {
    const { hub, clock, secret } = await scene();
    await using _ = hub;
    const schedule = { name: "s", every_s: 3_600, overlap: "queue", task: { ...NEW, lux_reward: 5 } };
    await ok(hub.post("/schedule/put", schedule, as(secret)));
    await ok(hub.post("/schedule/run", { name: "s" }, as(secret)));
    for (let hour = 0; hour < 2; hour++) {
      clock.pass(3_600_000);
      await hub.sweep();
    }
    expect(list(await ok(hub.get("/task/list")), "tasks")).toHaveLength(2);
    const skipped = list(await ok(hub.get("/events?since=0&kind=schedule.skipped")), "events");
    expect(skipped.map(({ data }) => record(data)["reason"])).toEqual(["mint_limit"]);
    await refused(hub.post("/schedule/run", { name: "s" }, as(secret)), 403, "mint_limit");
  });

  once.test("bounds the tools of MCP; a repeated call counts once", async () => {
    const { hub, secret } = await scene();
    await using _ = hub;
    for (const [i, era] of ERAS.entries()) {
      const key = i === 0 ? secret : await keyWith(hub, "ten-more", { mint_per_day: 10 });
      const headers = { "X-Matrix-Secret": key, "X-Node-Id": "n1" };
      await using agent = await Agent.connect(hub.base(), "n1", era, headers);
      const six = { ...NEW, lux_reward: 6, key: era };
      const first = record((await agent.ok("task_create", six))["task"])["task_id"];
      const again = await agent.ok("task_create", six);
      expect([record(again["task"])["task_id"], again["repeated"]]).toEqual([first, true]);
      const five = { ...NEW, lux_reward: 5, key: `${era} 5` };
      for (let tries = 0; tries < 2; tries++)
        expect(await agent.call("task_create", five)).toMatchObject({
          isError: true,
          data: { error: "mint_limit" },
        });
      const four = { ...NEW, lux_reward: 4, key: `${era} 4` };
      await agent.ok("task_create", four);
      await refused(create(hub, key, 0.000001), 403, "mint_limit");
      await agent.ok("task_create", { ...NEW, key: `${era} 0` });
    }
    expect(list(await ok(hub.get("/task/list")), "tasks")).toHaveLength(6);
  });

  once.test("counts a quorum once: neither its copies nor the shares of its reward count", async () => {
    const { hub, secret } = await scene();
    await using _ = hub;
    await hub.addNode("n2");
    const fields = { quorum: { results: 2, of: 2 } };
    await refused(create(hub, secret, 10.000001, fields), 403, "mint_limit");
    const { task_id } = await ok(create(hub, secret, 8, fields));
    const quorum = async () => {
      const { task } = await ok(hub.get(`/task/${String(task_id)}`));
      return record(record(task)["quorum"]);
    };
    await until("there are copies", async () => {
      const { copies } = await quorum();
      return Array.isArray(copies) && copies.length === 2;
    });
    await refused(create(hub, secret, 2.000001), 403, "mint_limit");
    const raise = (lux_reward: number) => hub.post("/task/update", { task_id, lux_reward }, as(secret));
    await refused(raise(10.5), 403, "mint_limit");
    await ok(raise(9));
    for (const node_id of ["n1", "n2"]) {
      const { task } = await ok(hub.post("/task/next", { node_id }));
      const result = { ...RESULT, output: 1 };
      await ok(hub.post("/task/complete", { task_id: record(task)["task_id"], node_id, result }));
    }
    await until("it is decided", async () => (await quorum())["state"] === "agreed");
    for (const nodeId of ["n1", "n2"]) expect(await hub.nodeOf(nodeId)).toMatchObject({ lux_balance: 4.5 });
    await refused(create(hub, secret, 1.000001), 403, "mint_limit");
    await ok(create(hub, secret, 1));
  });

  once.test("is none for a bound key of a strict hub, unless it is given; all for others", async () => {
    const { hub } = await scene({ isStrict: true });
    await using _ = hub;
    const own = await keyWith(hub, "own", { node_id: "n1" });
    await refused(create(hub, own, 0.5), 403, "mint_limit");
    await ok(create(hub, own, 0));
    const given = await keyWith(hub, "given", { node_id: "n1", mint_per_day: 1 });
    await ok(create(hub, given, 0.5));
    await ok(create(hub, await keyWith(hub, "full"), 1_000));
    await ok(hub.post("/task/create", { ...NEW, lux_reward: 1_000 }));
  });

  once.test("a mint loop of a bound key ends at its limit (F15)", async () => {
    const { hub } = await scene();
    await using _ = hub;
    const secret = await keyWith(hub, "own", { node_id: "n1", mint_per_day: 7 });
    let refusals = 0;
    for (let i = 0; i < 5; i++) {
      const created = await create(hub, secret, 3, { retain_s: 0, creator_node: "n1" });
      if (created.status !== 200) {
        refusals++;
        continue;
      }
      const { task_id } = created.body;
      await ok(hub.post("/task/claim", { task_id, node_id: "n1" }, as(secret)));
      await ok(hub.post("/task/complete", { task_id, node_id: "n1", result: RESULT }, as(secret)));
      await hub.sweep(); // and the task is gone
    }
    expect(refusals).toBe(3);
    expect(await hub.nodeOf("n1")).toMatchObject({ lux_balance: 6 });
  });
});

describe("--self-reward off", () => {
  once.test("neither a node nor a key is paid for a task of its own", async () => {
    const { hub } = await scene({ selfReward: false });
    await using _ = hub;
    await hub.addNode("n2");
    const [a, b] = [await keyWith(hub, "a"), await keyWith(hub, "b")];
    const paid = async (creator: string, worker: string, node_id: string, fields: Fields = {}) => {
      const { task_id } = await ok(create(hub, creator, 3, fields));
      await ok(hub.post("/task/claim", { task_id, node_id }, as(worker)));
      const body = { task_id, node_id, result: RESULT };
      const done = await ok(hub.post("/task/complete", body, as(worker)));
      expect(await ok(hub.post("/task/complete", body, as(worker)))).toEqual(done);
      expect(done["receipt"] === null).toBe(done["lux_paid"] === 0);
      return done["lux_paid"];
    };
    expect(await paid(a, b, "n1", { creator_node: "n1" })).toBe(0);
    expect(await paid(a, b, "n1", { creator_node: "n2" })).toBe(3);
    expect(await paid(a, b, "n1")).toBe(3);
    expect(await paid(a, a, "n1")).toBe(0);
    expect(await paid(a, a, "n2", { creator_node: "n1" })).toBe(0);
    expect(await hub.nodeOf("n1")).toMatchObject({ lux_balance: 6, tasks_completed: 4 });
    const put = { name: "s", every_s: 60, task: { ...NEW, lux_reward: 3 } };
    await ok(hub.post("/schedule/put", put, as(a)));
    const { task_id } = record((await ok(hub.post("/schedule/run", { name: "s" }, as(b))))["task"]);
    await ok(hub.post("/task/claim", { task_id, node_id: "n1" }, as(a)));
    expect(await ok(hub.complete(String(task_id), "n1", as(a)))).toMatchObject({ lux_paid: 0 });
  });

  once.test("is on by default: a node may complete its own task", async () => {
    const { hub } = await scene();
    await using _ = hub;
    const taskId = await hub.addTask({ creator_node: "n1", lux_reward: 2 });
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
    expect(await ok(hub.complete(taskId, "n1"))).toMatchObject({ lux_paid: 2 });
  });
});

test("groups, statistics and metrics say what was paid, not what was promised or held", async () => {
  const { hub } = await scene({ selfReward: false });
  await using _ = hub;
  await hub.addNode("n2");
  const metrics = async () => {
    const answer = await fetch(`${hub.base()}/metrics`, { headers: { "X-Matrix-Secret": SECRET } });
    return Number(/^luxhub_lux_paid_total (.*)$/m.exec(await answer.text())?.[1]);
  };
  const said = async () => [
    (await ok(hub.get("/group/g")))["lux_paid"],
    list(await ok(hub.get("/group/list")), "groups")[0]?.["lux_paid"],
    record((await ok(hub.get("/stats/minutes")))["total"])["lux_paid"],
    await metrics(),
  ];
  const all = (lux: number): unknown[] => [lux, lux, lux, lux];
  const done = async (node_id: string, fields: Fields) => {
    const task_id = await hub.addTask({ group: "g", creator_node: "n1", ...fields });
    await ok(hub.post("/task/claim", { task_id, node_id }));
    await ok(hub.complete(task_id, node_id));
    return task_id;
  };
  await done("n1", { lux_reward: 100 }); // its own
  expect(await said()).toEqual(all(0));
  await done("n2", { lux_reward: 1 });
  expect(await said()).toEqual(all(1));
  const [passed, rejected] = [
    await done("n2", { lux_reward: 2, review: "creator" }),
    await done("n2", { lux_reward: 50, review: "creator" }),
  ];
  const own = await done("n1", { lux_reward: 75, review: "node:n2" });
  expect(await said()).toEqual(all(1));
  await ok(hub.post("/task/review", { task_id: passed, verdict: "pass" }));
  await ok(hub.post("/task/review", { task_id: own, verdict: "pass" }));
  await ok(hub.post("/task/review", { task_id: rejected, verdict: "reject" }));
  expect(await said()).toEqual(all(3));
  await ok(hub.post("/task/cancel", { task_id: rejected }));
  const quorum = await hub.addTask({
    group: "g",
    creator_node: "n1",
    lux_reward: 8,
    quorum: { results: 2, of: 2 },
  });
  const isIn = async (status: string) => (await hub.taskOf(quorum))["status"] === status;
  await until("there are copies", async () => {
    const { copies } = record((await hub.taskOf(quorum))["quorum"]);
    return Array.isArray(copies) && copies.length === 2;
  });
  for (const node_id of ["n1", "n2"]) {
    const task_id = record((await ok(hub.post("/task/next", { node_id })))["task"])["task_id"];
    await ok(hub.post("/task/complete", { task_id, node_id, result: { ...RESULT, output: 1 } }));
  }
  await until("it is decided", () => isIn("completed"));
  expect(await said()).toEqual(all(7)); // the share of n1 is paid to nobody
});

describe("the daily bonus", () => {
  once.test("is as many LUX as the operator says", async () => {
    const { hub } = await scene({ signinLux: 2.5 });
    await using _ = hub;
    expect(await ok(hub.post("/signin", { node_id: "n1" }))).toMatchObject({
      lux_earned: 2.5,
      lux_balance: 2.5,
    });
  });

  once.test("0 switches it off: a sign-in pays nothing, and is no entry", async () => {
    const { hub } = await scene({ signinLux: 0 });
    await using _ = hub;
    for (let i = 0; i < 2; i++)
      expect(await ok(hub.post("/signin", { node_id: "n1" }))).toMatchObject({
        lux_earned: 0,
        already_signed_in: false,
        lux_balance: 0,
      });
    expect(await ok(hub.get("/lux/head"))).toMatchObject({ head: { seq: 0, hash: null } });
  });

  once.test("bound: only a key of the node's own collects it", async () => {
    const { hub } = await scene({ signinBound: true });
    await using _ = hub;
    await hub.addNode("n2");
    await refused(hub.post("/signin", { node_id: "n1" }), 403, "key_not_bound");
    const own = await keyWith(hub, "own", { node_id: "n1" });
    await refused(hub.post("/signin", { node_id: "n2" }, as(own)), 403, "key_bound_to_other_node");
    expect(await ok(hub.post("/signin", { node_id: "n1" }, as(own)))).toMatchObject({ lux_earned: 10 });
  });
});
