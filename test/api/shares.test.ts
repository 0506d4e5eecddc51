/**
 * What one key may do to the others (domain/shares.ts): each limit of the whole hub has a share for each node, and what
 * a node did an administrator undoes, also on a strict hub.
 */
import { describe, expect, test } from "bun:test";
import { GIFTS_OF_GIVER_MAX } from "../../src/domain/limits.ts";
import { HUB_LIMITS, type HubLimit } from "../../src/domain/shares.ts";
import { DECLARED } from "../../src/api/routes.ts";
import { ADMIN_KEY, type CallOptions, type TestHub, startHub } from "../support/hub.ts";
import { as } from "./key-commands.ts";
import { badFields, list, ok, record, refused, until } from "./scene.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A strict hub with nodes, and what shows the key of each. */
async function withNodes(...nodes: readonly string[]) {
  const hub = await startHub({ isStrict: true, isPrivate: true });
  const secrets = new Map<string, string>();
  const by = (node_id: string): CallOptions => as(secrets.get(node_id) ?? null);
  for (const node_id of nodes) {
    const { secret } = await ok(hub.admin("/key/add", { name: node_id, node_id }));
    secrets.set(node_id, String(secret));
    await ok(hub.post("/node/register", { node_id, name: node_id, auto_assign: false }, by(node_id)));
  }
  return { hub, by };
}

/** Claims a new task of a limit key, which the node then may hold; its id. */
async function claim(hub: TestHub, key: string, node_id: string, options: CallOptions): Promise<string> {
  const { task_id } = await ok(hub.post("/task/create", { title: "t", description: "d", task_type: key }));
  await ok(hub.post("/task/claim", { task_id, node_id }, options));
  return String(task_id);
}

/** How a node makes one of what a limit bounds, and the body with which an administrator removes that. */
type Kind = {
  readonly path: string;
  readonly body: (name: string, node_id: string) => Fields;
  readonly undo: (name: string, node_id: string, response: Fields) => Fields;
  /** What comes before. */
  readonly before?: (hub: TestHub, name: string, node_id: string, options: CallOptions) => Promise<unknown>;
};

const TASK = { title: "t", description: "d" };
const KINDS: Partial<Record<keyof typeof HUB_LIMITS, Kind>> = {
  notes: {
    path: "note/put",
    body: (key) => ({ key, text: "x" }),
    undo: (key) => ({ key }),
  },
  leases: {
    path: "lease/acquire",
    body: (name, node_id) => ({ name, node_id }),
    undo: (name, node_id) => ({ name, node_id }),
  },
  holds: {
    path: "limit/hold",
    body: (key) => ({ key, for_s: 60 }),
    undo: (key) => ({ key }),
    before: claim,
  },
  schedules: {
    path: "schedule/put",
    body: (name) => ({ name, every_s: 86_400, task: TASK }),
    undo: (name) => ({ name }),
  },
  lanes: {
    path: "task/create",
    body: (limit_key) => ({ ...TASK, limit_key }),
    undo: (_, __, { task_id }) => ({ task_id }),
  },
};

const shares = Object.entries(HUB_LIMITS).filter(([, { ofNode }]) => ofNode !== null);

test("every share is tested, and what has none only an administrator can make and remove", () => {
  expect(shares.map(([name]) => name).filter((name) => !(name in KINDS))).toEqual([
    "noteBytes", // follows from the number of notes
    "pushes", // a2a.test.ts
  ]);
  const auths = new Map(DECLARED.map(({ path, auth }) => [path.replace("/api/v1/", ""), auth]));
  for (const { all, ofNode, undo } of Object.values<HubLimit>(HUB_LIMITS)) {
    expect(auths.has(undo)).toBe(true);
    if (ofNode === null) expect(auths.get(undo)).toBe("admin");
    else expect(ofNode).toBeLessThanOrEqual(all / 2);
  }
});

test.each(Object.entries(KINDS))(
  "a node has a share of the %s, and an administrator undoes it",
  async (name, kind) => {
    const { ofNode, code, undo } =
      Object.entries<HubLimit>(HUB_LIMITS).find(([one]) => one === name)?.[1] ?? {};
    const { hub, by } = await withNodes("evil", "honest");
    await using _ = hub;
    const all = Array.from({ length: Number(ofNode) }, (_, i) => `e${i}`);
    let first: Fields = {};
    if (kind.before) for (const one of [...all, "more"]) await kind.before(hub, one, "evil", by("evil"));
    for (let i = 0; i < all.length; i += 250) {
      const requests = all
        .slice(i, i + 250)
        .map((one) => ({ path: kind.path, body: kind.body(one, "evil") }));
      const answers = list(await ok(hub.post("/batch", { requests }, by("evil"))), "answers");
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      if (i === 0) first = record(answers[0]?.["body"]);
    }
    const more = () => hub.post(`/${kind.path}`, kind.body("more", "evil"), by("evil"));
    await refused(more(), 409, String(code));
    await kind.before?.(hub, "other", "honest", by("honest"));
    await ok(hub.post(`/${kind.path}`, kind.body("other", "honest"), by("honest")));
    await ok(hub.admin(`/${undo}`, kind.undo("e0", "evil", first)));
    await ok(more());
  },
);

describe("a hold with a key that is bound to a node", () => {
  test("is of a key of its tasks, for ten minutes at most, under its name, and ends by the administrator", async () => {
    const { hub, by } = await withNodes("n1", "n2");
    await using _ = hub;
    await refused(hub.post("/limit/hold", { key: "k", for_s: 60 }, by("n1")), 403, "not_assigned_to_node");
    const task_id = await claim(hub, "k", "n1", by("n1"));
    await refused(hub.post("/limit/hold", { key: "k", for_s: 60 }, by("n2")), 403, "not_assigned_to_node");
    await badFields(hub.post("/limit/hold", { key: "k", for_s: 601 }, by("n1")), ["for_s"]);
    const returned = { task_id, node_id: "n1" };
    await badFields(hub.post("/task/release", { ...returned, hold_s: 601 }, by("n1")), ["hold_s"]);
    await badFields(hub.post("/task/fail", { ...returned, error: "e", hold_s: 601 }, by("n1")), ["hold_s"]);
    const { limit } = await ok(hub.post("/limit/hold", { key: "k", for_s: 600 }, by("n1")));
    expect(limit).toMatchObject({ key: "k", held_by: "n1" });
    const { limits } = await ok(hub.get("/limit/list", { headers: { "X-Admin-Key": ADMIN_KEY } }));
    expect(limits).toEqual([limit]);
    const { events } = await ok(hub.get("/events?kind=limit.held"));
    expect(record(list({ events }, "events").at(-1)?.["data"])["held_by"]).toBe("n1");
    await ok(hub.post("/task/release", { ...returned, hold_s: 60 }, by("n1"))); // the longer hold stays
    const unbound = await ok(hub.post("/limit/hold", { key: "k", for_s: 3_600 }));
    expect(unbound["limit"]).toMatchObject({ held_by: null });
    await ok(hub.admin("/limit/delete", { key: "k" }));
    await ok(hub.post("/task/claim", { task_id, node_id: "n2" }, by("n2")));
  });
});

describe("a key that is revoked", () => {
  const put = (name: string): Fields => ({ name, every_s: 60, overlap: "queue", task: TASK });

  test.each([
    ["of a node", "evil", { node_id: "evil" }],
    ["of no node", "robot", {}],
  ])("%s leaves no schedule that goes on, but the node's other key does", async (_, name, bound) => {
    const { hub } = await withNodes("evil");
    await using _hub = hub;
    const added = [`${name}-1`, `${name}-2`];
    const secrets: string[] = [];
    for (const key of added) {
      const { secret } = await ok(hub.admin("/key/add", { name: key, ...bound }));
      secrets.push(String(secret));
    }
    await ok(hub.admin("/key/revoke", { name: "evil" }));
    await ok(hub.post("/schedule/put", put("s"), as(secrets[0] ?? "")));
    await ok(hub.post("/schedule/put", put("operators")));
    const fired = async (): Promise<readonly unknown[]> => {
      hub.clock.pass(60_000);
      await hub.sweep();
      const { events } = await ok(hub.get("/events?since=0&kind=schedule.skipped"));
      const { schedules } = await ok(hub.get("/schedule/list"));
      const tasks = list({ schedules }, "schedules").map(({ last_task_id }) => last_task_id);
      const skipped = list({ events }, "events").map(({ data }) => [
        record(data)["name"],
        record(data)["reason"],
      ]);
      return [new Set(tasks).size - Number(tasks.includes(null)), skipped];
    };
    expect(await fired()).toEqual([2, []]);
    await ok(hub.admin("/key/revoke", { name: added[0] }));
    const isHeir = name === "evil";
    expect(await fired()).toEqual([2, isHeir ? [] : [["s", "key_revoked"]]]);
    await ok(hub.admin("/key/revoke", { name: added[1] }));
    expect((await fired())[1]).toEqual(Array.from({ length: isHeir ? 1 : 2 }, () => ["s", "key_revoked"]));
    const before = await ok(hub.get("/task/count?creator_node=evil"));
    await fired();
    expect(await ok(hub.get("/task/count?creator_node=evil"))).toEqual(before);
  });
});

test("a key that is bound to a node reviews for no creator that it is not", async () => {
  const { hub, by } = await withNodes("worker", "friend", "boss");
  await using _ = hub;
  const result = { problem: "p", improvement: "i", lesson: "l" };
  const inReview = async (options?: CallOptions): Promise<string> => {
    const { task_id } = await ok(hub.post("/task/create", { ...TASK, review: "creator" }, options));
    await ok(hub.post("/task/claim", { task_id, node_id: "worker" }, by("worker")));
    await ok(hub.post("/task/complete", { task_id, node_id: "worker", result }, by("worker")));
    return String(task_id);
  };
  const pass = (task_id: string, options?: CallOptions) =>
    hub.post("/task/review", { task_id, verdict: "pass" }, options);
  const operators = await inReview();
  await refused(pass(operators, by("friend")), 403, "not_reviewer");
  await refused(pass(operators, by("worker")), 403, "own_work");
  await ok(pass(operators));
  const ofBoss = await inReview(by("boss"));
  await refused(pass(ofBoss, by("friend")), 403, "not_reviewer");
  await ok(pass(ofBoss, by("boss")));
});

describe("names with a key that is bound to a node", () => {
  const create = async (hub: TestHub, fields: Fields, options?: CallOptions) =>
    ok(hub.post("/task/create", { ...TASK, ...fields }, options));
  const never = { delay_s: 315_360_000 };

  test("a unique key is that of the node, or of all others together", async () => {
    const { hub, by } = await withNodes("evil", "boss");
    await using _ = hub;
    const { secret } = await ok(hub.admin("/key/add", { name: "fleet" }));
    const unique = { unique_key: "daily", unique_for_s: 60 };
    const taken = await create(hub, { ...unique, ...never }, by("evil"));
    const of = new Map<CallOptions | undefined, unknown>();
    for (const caller of [by("boss"), undefined]) {
      const made = await create(hub, unique, caller);
      expect([made["deduplicated"], made["task_id"] === taken["task_id"]]).toEqual([undefined, false]);
      of.set(caller, made["task_id"]);
    }
    for (const [caller, task_id] of [
      ...of,
      [as(String(secret)), of.get(undefined)] as const,
      [by("evil"), taken["task_id"]] as const,
    ])
      expect(await create(hub, unique, caller)).toMatchObject({ deduplicated: true, task_id });
    await ok(hub.post("/task/cancel", { task_id: taken["task_id"] }, by("evil")));
    expect(await create(hub, unique, by("evil"))).toMatchObject({ deduplicated: true }); // for 60 s
    hub.clock.pass(61_000);
    expect((await create(hub, unique, by("evil")))["deduplicated"]).toBeUndefined();
  });

  test("a group is that of the node: nobody else keeps it from its end", async () => {
    const { hub, by } = await withNodes("evil", "boss");
    await using _ = hub;
    const group = "release-7";
    const result = { problem: "p", improvement: "i", lesson: "l" };
    await create(hub, { group, ...never }, by("evil"));
    const made = [];
    for (const caller of [by("boss"), undefined]) {
      const { task_id, task } = await create(hub, { group }, caller);
      made.push(record(task)["group"]);
      expect(await ok(hub.get(`/group/${group}`, caller))).toMatchObject({ total: 1, done: false });
      await ok(hub.post("/task/claim", { task_id, node_id: "boss" }, by("boss")));
      await ok(hub.post("/task/complete", { task_id, node_id: "boss", result }, by("boss")));
      expect(await ok(hub.get(`/group/${group}?wait=60`, caller))).toMatchObject({ total: 1, done: true });
    }
    expect(made).toEqual(["release-7/boss", "release-7"]);
    const ended = async () => {
      const { events } = await ok(hub.get("/events?since=0&kind=group.ended"));
      return list({ events }, "events").map(({ data }) => record(data)["group"]);
    };
    expect(await ended()).toEqual(made);
    const { groups } = await ok(hub.get("/group/list?q=release"));
    expect(list({ groups }, "groups").map((one) => one["group"])).toEqual([
      "release-7",
      "release-7/boss",
      "release-7/evil",
    ]);

    // Filters: the node's and the hub's; of all others those that they name.
    const total = async (query: string, options?: CallOptions) =>
      (await ok(hub.get(query, options)))["total"];
    expect(await total(`/task/list?group=${group}`, by("boss"))).toBe(2);
    expect(await total(`/task/list?group=${group}`)).toBe(1);
    expect(await total("/task/list?group=release-7%2Fevil")).toBe(1);
    const created = `/events?since=0&kind=task.created&group=${group}`;
    expect(list(await ok(hub.get(created, by("boss"))), "events")).toHaveLength(2);
    expect(list(await ok(hub.get(created)), "events")).toHaveLength(1);

    // The full name is accepted from its owner alone; an administrator ends what the node began.
    await create(hub, { group: "release-7/boss" }, by("boss"));
    await badFields(hub.post("/task/create", { ...TASK, group: "release-7/boss" }, by("evil")), ["group"]);
    await badFields(hub.post("/task/create", { ...TASK, group: "release-7/boss" }), ["group"]);
    const evils = { group: "release-7/evil" };
    expect(await ok(hub.post("/group/cancel", evils, by("boss")))).toMatchObject({ cancelled: 0 });
    expect(await ok(hub.post("/group/cancel", evils))).toMatchObject({ cancelled: 1, left: 0 });
    expect(await ok(hub.post("/group/retry", { group }, by("evil")))).toMatchObject({ ...evils, retried: 1 });
    await refused(hub.post("/group/cancel", { group: "none" }, by("boss")), 404, "group_not_found");
    await refused(hub.get("/group/none?wait=1", by("boss")), 404, "group_not_found");
    expect(await ok(hub.get(`/group/${encodeURIComponent("release-7/evil")}`))).toMatchObject({ total: 1 });
  });
});

describe("a task that a key sends to another node", () => {
  const gift = (fields: Fields = {}): Fields => ({ ...TASK, for_node: "honest", ...fields });
  const nextOf = async (hub: TestHub, fields: Fields, options?: CallOptions) => {
    const { task } = await ok(hub.post("/task/next", { node_id: "honest", ...fields }, options));
    return task === null ? null : record(task)["title"];
  };

  test("waits in line with the others: by priority, type and room, for this node alone", async () => {
    const { hub, by } = await withNodes("evil", "honest");
    await using _ = hub;
    const register = {
      node_id: "honest",
      name: "h",
      capabilities: ["summarise"],
      max_tasks: 1,
      auto_assign: false,
    };
    await ok(hub.post("/node/register", register, by("honest")));
    await refused(
      hub.post("/task/create", gift({ task_type: "other" }), by("evil")),
      409,
      "requirements_not_met",
    );
    for (const field of [{ limit_key: "k" }, { requires: { resources: { gpu: 1 } } }])
      await badFields(hub.post("/task/create", gift(field), by("evil")), [Object.keys(field)[0] ?? ""]);
    const word = { requires: { capabilities: ["node:honest"] } };
    await badFields(hub.post("/task/create", { ...TASK, ...word }, by("evil")), ["requires.capabilities"]);
    const types = ["summarise", undefined];
    const make = (n: number, priority: number) =>
      gift({ title: `gift ${priority}`, priority, task_type: types[n % 2] });
    for (let n = 0; n < GIFTS_OF_GIVER_MAX; n++)
      expect(await ok(hub.post("/task/create", make(n, 1), by("evil")))).toMatchObject({
        assigned_node: null,
      });
    await refused(hub.post("/task/create", make(0, 1), by("evil")), 409, "gifts_limit");
    await refused(hub.post("/task/create", make(1, 1), by("evil")), 409, "gifts_limit");
    expect(await ok(hub.get("/node/honest", by("honest")))).toMatchObject({ node: { tasks_assigned: 0 } });
    const { tasks } = await ok(hub.get("/task/list?creator_node=evil&per_page=1"));
    const { task_id } = record(list({ tasks }, "tasks")[0]);
    await refused(hub.post("/task/update", { task_id, limit_key: "k" }, by("evil")), 409, "gifts_limit");

    for (const priority of [0, 2])
      await ok(
        hub.post("/task/create", { ...TASK, title: `real ${priority}`, priority, task_type: "summarise" }),
      );
    const admins = await ok(hub.admin("/task/create", gift({ title: "gift of the operator", priority: 2 })));
    expect(admins).toMatchObject({ assigned_node: "honest" });
    expect(await nextOf(hub, {}, by("honest"))).toBe("gift of the operator");
    expect(await nextOf(hub, {}, by("honest"))).toBeNull(); // it is full
    const done = { node_id: "honest", result: { problem: "p", improvement: "i", lesson: "l" } };
    await ok(hub.post("/task/complete", { ...done, task_id: admins["task_id"] }, by("honest")));
    const order: unknown[] = [];
    for (let n = 0; n < 3; n++) {
      const { task } = await ok(
        hub.post("/task/next", { node_id: "honest", task_types: ["summarise"] }, by("honest")),
      );
      order.push(record(task)["title"]);
      expect(record(task)["task_type"]).toBe("summarise");
      await ok(hub.post("/task/complete", { ...done, task_id: record(task)["task_id"] }, by("honest")));
    }
    expect(order).toEqual(["real 0", "gift 1", "gift 1"]);
    await ok(hub.post("/task/create", make(0, 1), by("evil"))); // there is room again
    await ok(
      hub.post(
        "/node/register",
        { node_id: "evil", name: "e", capabilities: ["node:honest", "summarise"] },
        by("evil"),
      ),
    );
    expect(
      (await ok(hub.post("/task/next", { node_id: "evil", task_types: ["summarise"] }, by("evil"))))["task"],
    ).toMatchObject({ title: "real 2" });
    expect((await ok(hub.post("/task/next", { node_id: "evil" }, by("evil"))))["task"]).toBeNull();
  });

  test("reaches a node to which the balancer gives tasks, created on either variant", async () => {
    const { hub, by } = await withNodes("evil", "honest");
    await using _ = hub;
    const asked = { node_id: "honest", name: "h", auto_assign: true, max_tasks: 1 };
    await ok(hub.post("/node/register", asked, by("honest")));
    const { task_id } = await ok(hub.post("/task/create", gift(), by("evil")));
    await hub.sweep();
    await until("the balancer has given it", async () => {
      const { task } = await ok(hub.get(`/task/${String(task_id)}`));
      return record(task)["assigned_node"] === "honest";
    });
  });
});

test("the word of a node waits for it, and no other node has the word", async () => {
  await using hub = await startHub();
  const node = (node_id: string, fields: Fields = {}) => ({
    node_id,
    name: node_id,
    auto_assign: false,
    ...fields,
  });
  await ok(hub.post("/node/register", node("other", { capabilities: ["node:late"] })));
  const requires = { capabilities: ["node:late"] };
  const { task_id } = await ok(hub.post("/task/create", { ...TASK, requires }));
  expect((await ok(hub.post("/task/next", { node_id: "other" })))["task"]).toBeNull();
  await refused(hub.post("/task/claim", { task_id, node_id: "other" }), 409, "requirements_not_met");
  const { reasons } = await ok(hub.get(`/task/${String(task_id)}/explain`));
  expect(list({ reasons }, "reasons").map(({ code }) => code)).toContain("no_node");
  await ok(hub.post("/node/register", node("late")));
  expect((await ok(hub.post("/task/next", { node_id: "late" })))["task"]).toMatchObject({ task_id });
});
