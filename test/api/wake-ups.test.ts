/** Whatever makes a task available to a node wakes the blocked task/next of the node. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SECOND_MS } from "../../src/lib/clock.ts";
import { type TestHub, startHub } from "../support/hub.ts";
import { RESULT, ok, record, until } from "./scene.ts";

type Fields = Readonly<Record<string, unknown>>;

let hub: TestHub;
beforeAll(async () => void (hub = await startHub()));
afterAll(() => hub.close());

const idle = { auto_assign: false };
const admin = (path: string, body: Fields) => ok(hub.admin(path, body));
const create = (fields: Fields) => hub.addTask(fields);
const claim = (task_id: string, node_id = "other") => admin("/task/claim", { task_id, node_id });
const complete = (task_id: string, node_id = "other", fields: Fields = {}) =>
  admin("/task/complete", { task_id, node_id, result: RESULT, ...fields });
const done = async (task_id: string) => (await claim(task_id), await complete(task_id));
const cancel = (task_id: string) => admin("/task/cancel", { task_id });

/** What a case is about: names of its own, and what its setup has made. */
type Case = { readonly type: string; readonly node: string; readonly made: string };
type Step = (of: Case) => Promise<unknown>;

async function passes(seconds: number): Promise<void> {
  hub.clock.pass(seconds * SECOND_MS);
  await hub.sweep();
}

/** Creates a task that another node holds. */
const held =
  (fields: Fields = {}, holder?: string) =>
  async ({ type, node }: Case): Promise<string> => {
    const taskId = await create({ task_type: type, ...fields });
    if (holder !== undefined) await hub.addNode(node + holder, idle);
    await claim(taskId, holder === undefined ? "other" : node + holder);
    return taskId;
  };
const open =
  (fields: Fields = {}) =>
  ({ type }: Case): Promise<string> =>
    create({ task_type: type, ...fields });
/** Creates a task, and one that depends on it. */
const dependent =
  (fields: Fields = {}, first: Fields = {}) =>
  async ({ type }: Case): Promise<string> => {
    const taskId = await create({ task_type: `${type}-first`, ...first });
    await create({ task_type: type, depends_on: [taskId], ...fields });
    return taskId;
  };
/** A task with this limit key or type waits behind one that another node holds. */
const limited =
  (fields: Fields = {}, holder?: string) =>
  async (of: Case): Promise<string> => {
    await admin("/limit/set", { key: of.type, running: 1 });
    const taskId = await held(fields, holder)(of);
    await open()(of);
    return taskId;
  };
/** The node itself holds a task, so that there is no room, or too little of a resource, for another one. */
const busy =
  (fields: Fields = {}) =>
  async ({ type, node }: Case): Promise<string> => {
    const taskId = await create({ task_type: `${type}-first`, ...fields });
    await claim(taskId, node);
    await create({ task_type: type, ...fields });
    return taskId;
  };
const paused =
  (fields: (of: Case) => Fields) =>
  async (of: Case): Promise<string> => {
    await admin("/hub/pause", fields(of));
    await hub.addNode(`${of.node}-boss`, idle);
    return create({ task_type: of.type, creator_node: `${of.node}-boss`, limit_key: `${of.type}-key` });
  };
const resumes =
  (fields: (of: Case) => Fields): Step =>
  (of) =>
    admin("/hub/resume", fields(of));
const budget =
  (scope: string, value: (of: Case) => string) =>
  async (of: Case): Promise<string> => {
    await hub.addNode(`${of.node}-boss`, idle);
    await admin("/budget/set", { scope, value: value(of), per: "total", tokens: 0 });
    return create({ task_type: of.type, creator_node: `${of.node}-boss` });
  };
const unbudgeted =
  (scope: string, value: (of: Case) => string): Step =>
  (of) =>
    admin("/budget/delete", { scope, value: value(of), per: "total" });
const asks = async (of: Case, fields: Fields = {}): Promise<Fields> => {
  const asked = { task_id: of.made, node_id: "other", question: "?", park: true, ...fields };
  return record((await admin("/task/ask", asked))["question"]);
};

const gpu = { requires: { resources: { gpu: 1 } } };
const withGpu = { resources: { gpu: 1 } };
const reviewed = { review: "creator", backoff_s: 0 };
const completed =
  (fields: Fields) =>
  async (of: Case): Promise<string> => {
    const taskId = await open(fields)(of);
    await done(taskId);
    return taskId;
  };
const cancelled =
  (fields: Fields = {}) =>
  async (of: Case): Promise<string> => {
    const taskId = await open(fields)(of);
    await cancel(taskId);
    return taskId;
  };
const nothing = async (): Promise<string> => "";

type Row = readonly [
  name: string,
  setUp: (of: Case) => Promise<string>,
  makeAvailable: Step,
  /** Of the node that waits; without it, the node takes tasks of the case's type only. */
  node?: (of: Case) => Fields,
];

const ROWS: readonly Row[] = [
  // The life of a task.
  ["a task is created", nothing, open()],
  [
    "a task is created in a batch",
    nothing,
    ({ type }) =>
      admin("/batch", {
        requests: [{ path: "task/create", body: { title: "t", description: "d", task_type: type } }],
      }),
  ],
  [
    "a task is created for the node",
    nothing,
    ({ type, node }) => create({ task_type: type, for_node: node }),
  ],
  ["a quorum is created", nothing, open({ quorum: { results: 2 } })],
  ["delay_s is over", open({ delay_s: 3 }), () => passes(4)],
  [
    "not_before is cleared",
    open({ delay_s: 500 }),
    ({ made }) => admin("/task/update", { task_id: made, not_before: null }),
  ],
  [
    "the holder releases it",
    held(),
    ({ made }) => admin("/task/release", { task_id: made, node_id: "other" }),
  ],
  [
    "an attempt fails",
    held({ backoff_s: 0 }),
    ({ made }) => admin("/task/fail", { task_id: made, node_id: "other", error: "x" }),
  ],
  [
    "the backoff is over",
    held({ backoff_s: 3 }),
    async ({ made }) => {
      await admin("/task/fail", { task_id: made, node_id: "other", error: "x" });
      await passes(4);
    },
  ],
  ["timeout_s is over", held({ timeout_s: 2, backoff_s: 0 }), () => passes(3)],
  ["max_run_s is over", held({ max_run_s: 2, backoff_s: 0 }), () => passes(3)],
  ["it is revoked", held(), ({ made }) => admin("/task/revoke", { task_id: made })],
  [
    "it is revoked to the node",
    held(),
    ({ made, node }) => admin("/task/revoke", { task_id: made, node_id: node }),
  ],
  [
    "it is assigned to the node",
    ({ type }) => create({ task_type: `${type}-other` }),
    ({ made, node }) => admin("/task/assign", { task_id: made, node_id: node }),
  ],
  [
    "its holder leaves",
    held({}, "-holder"),
    ({ node }) => admin("/node/leave", { node_id: `${node}-holder` }),
  ],
  [
    "its holder is deleted",
    held({}, "-holder"),
    ({ node }) => admin("/node/delete", { node_id: `${node}-holder` }),
  ],
  ["it is retried", cancelled(), ({ made }) => admin("/task/retry", { task_id: made })],
  [
    "its group is retried",
    (of) => cancelled({ group: of.node })(of),
    ({ node }) => admin("/group/retry", { group: node }),
  ],
  // Dependencies, reviews, questions.
  ["its dependency completes", dependent(), ({ made }) => done(made)],
  [
    "its dependency is cancelled, on_dependency: run",
    dependent({ on_dependency: "run" }),
    ({ made }) => cancel(made),
  ],
  [
    "its dependency is deleted, on_dependency: run",
    dependent({ on_dependency: "run" }),
    ({ made }) => admin("/task/delete", { task_id: made }),
  ],
  [
    "its dependency passes the review",
    dependent({}, { review: "creator" }),
    async ({ made }) => {
      await done(made);
      await admin("/task/review", { task_id: made, verdict: "pass" });
    },
  ],
  [
    "its dependency is retried with dependents and completes",
    dependent(),
    async ({ made }) => {
      await cancel(made);
      await passes(1);
      await admin("/task/retry", { task_id: made, with_dependents: true });
      await done(made);
    },
  ],
  [
    "a review rejects it",
    completed(reviewed),
    ({ made }) => admin("/task/review", { task_id: made, verdict: "reject" }),
  ],
  [
    "its review times out",
    completed({ ...reviewed, review_within_s: 2, on_review_timeout: "reject" }),
    () => passes(3),
  ],
  [
    "its review becomes a task",
    ({ type }) => create({ task_type: `${type}-first`, review: `capability:${type}` }),
    ({ made }) => done(made),
  ],
  [
    "its question is answered",
    held(),
    async (of) => {
      const { question_id } = await asks(of);
      await admin("/task/answer", { task_id: of.made, question_id, answer: "a" });
    },
  ],
  ["its question times out", held(), async (of) => (await asks(of, { within_s: 2 }), await passes(3))],
  // The gate.
  ["its type is resumed", paused(({ type }) => ({ type })), resumes(({ type }) => ({ type }))],
  [
    "its creator is resumed",
    paused(({ node }) => ({ creator_node: `${node}-boss` })),
    resumes(({ node }) => ({ creator_node: `${node}-boss` })),
  ],
  [
    "its limit key is resumed",
    paused(({ type }) => ({ limit_key: `${type}-key` })),
    resumes(({ type }) => ({ limit_key: `${type}-key` })),
  ],
  [
    "it gets another limit key than a paused one",
    paused(({ type }) => ({ limit_key: `${type}-key` })),
    ({ made, type }) => admin("/task/update", { task_id: made, limit_key: `${type}-free` }),
  ],
  ["the hub is resumed", paused(() => ({})), resumes(() => ({}))],
  ["the limit's other task completes", limited(), ({ made }) => complete(made)],
  ["the limit's other task is cancelled", limited(), ({ made }) => cancel(made)],
  ["the limit's other task is deleted", limited(), ({ made }) => admin("/task/delete", { task_id: made })],
  ["the limit's other task is parked", limited(), (of) => asks(of)],
  ["the limit's other task times out", limited({ timeout_s: 2, max_attempts: 1 }), () => passes(3)],
  [
    "the holder of the limit's other task leaves",
    limited({}, "-holder"),
    ({ node }) => admin("/node/leave", { node_id: `${node}-holder` }),
  ],
  ["the limit is raised", limited(), ({ type }) => admin("/limit/set", { key: type, running: 2 })],
  ["the limit is deleted", limited(), ({ type }) => admin("/limit/delete", { key: type })],
  [
    "a hold is over",
    async (of) => (await admin("/limit/hold", { key: of.type, for_s: 3 }), await open()(of)),
    () => passes(4),
  ],
  [
    "a hold is deleted",
    async (of) => (await admin("/limit/hold", { key: of.type, for_s: 300 }), await open()(of)),
    ({ type }) => admin("/limit/delete", { key: type }),
  ],
  [
    "the budget of its type is raised",
    budget("type", ({ type }) => type),
    ({ type }) => admin("/budget/set", { scope: "type", value: type, per: "total", tokens: 1 }),
  ],
  [
    "the budget of its type is deleted",
    budget("type", ({ type }) => type),
    unbudgeted("type", ({ type }) => type),
  ],
  [
    "the budget of its creator is deleted",
    budget("creator", ({ node }) => `${node}-boss`),
    unbudgeted("creator", ({ node }) => `${node}-boss`),
  ],
  [
    "the budget of the node is deleted",
    budget("node", ({ node }) => node),
    unbudgeted("node", ({ node }) => node),
  ],
  // The node.
  [
    "a task of the full node completes",
    busy(),
    ({ made, node }) => complete(made, node),
    () => ({ max_tasks: 1 }),
  ],
  ["a task of the full node is cancelled", busy(), ({ made }) => cancel(made), () => ({ max_tasks: 1 })],
  [
    "the full node gets more room",
    busy(),
    ({ node }) => hub.addNode(node, { ...idle, max_tasks: 5 }),
    () => ({ max_tasks: 1 }),
  ],
  ["a task with the resource completes", busy(gpu), ({ made, node }) => complete(made, node), () => withGpu],
  ["a task with the resource is cancelled", busy(gpu), ({ made }) => cancel(made), () => withGpu],
  [
    "a task with the resource is deleted",
    busy(gpu),
    ({ made }) => admin("/task/delete", { task_id: made }),
    () => withGpu,
  ],
  [
    "a task with the resource is revoked",
    busy({ ...gpu, priority: 2 }),
    ({ made }) => admin("/task/revoke", { task_id: made, node_id: "other-gpu" }),
    () => withGpu,
  ],
  [
    "a task with the resource fails",
    busy({ ...gpu, max_attempts: 1 }),
    ({ made, node }) => admin("/task/fail", { task_id: made, node_id: node, error: "x" }),
    () => withGpu,
  ],
  [
    "a task with the resource times out",
    busy({ ...gpu, timeout_s: 2, max_attempts: 1 }),
    () => passes(3),
    () => withGpu,
  ],
  [
    "a task with the resource is parked",
    busy(gpu),
    ({ made, node }) => admin("/task/ask", { task_id: made, node_id: node, question: "?", park: true }),
    () => withGpu,
  ],
  [
    "the node gets more of the resource",
    busy(gpu),
    ({ node }) => hub.addNode(node, { ...idle, resources: { gpu: 2 } }),
    () => withGpu,
  ],
  [
    "the node gets the capability",
    open(),
    ({ node, type }) => hub.addNode(node, { ...idle, capabilities: [type] }),
    () => ({ capabilities: ["another"] }),
  ],
  [
    "the node gets what the task requires",
    open({ requires: { capabilities: ["cuda"] } }),
    ({ node, type }) => hub.addNode(node, { ...idle, capabilities: [type, "cuda"] }),
    ({ type }) => ({ capabilities: [type] }),
  ],
  // Schedules.
  [
    "a schedule is run",
    async ({ node: name, type }) => (await admin("/schedule/put", schedule(name, type, 9999)), ""),
    ({ node: name }) => admin("/schedule/run", { name }),
  ],
  [
    "a schedule is due",
    async ({ node: name, type }) => (await admin("/schedule/put", schedule(name, type, 3)), ""),
    () => passes(4),
  ],
];

function schedule(name: string, task_type: string, every_s: number): Fields {
  return { name, every_s, task: { title: "t", description: "d", task_type } };
}

/** Takes tasks of any type, so the call must name the type that is meant. */
const takesAll = (fields: Fields): boolean => !("capabilities" in fields);

test.each(ROWS.map((row, at) => [row[0], at, row] as const))("%s", async (_, at, row) => {
  const [, setUp, makeAvailable, nodeFields] = row;
  const names = { type: `type-${at}`, node: `node-${at}`, made: "" };
  await hub.addNode("other", idle);
  await hub.addNode("other-gpu", { ...idle, resources: { gpu: 9 } });
  const fields = nodeFields?.(names) ?? { capabilities: [names.type] };
  await hub.addNode(names.node, { ...idle, ...fields });
  const made = await setUp(names);
  const asked = { node_id: names.node, wait: 20, ...(takesAll(fields) ? { task_types: [names.type] } : {}) };
  const waiting = ok(hub.post("/task/next", asked));
  await until("it waits", () => hub.waits(1));
  for (let i = 0; i < 3; i++) await hub.addNode("other", idle); // its reads are over when these are committed
  await makeAvailable({ ...names, made });
  expect((await waiting)["task"]).not.toBeNull();
});
