/** Migrations keep the rows of an older schema, on both engines. */
import { Database } from "bun:sqlite";
import { SQL } from "bun";
import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tasksIn } from "../../src/domain/task/facet/group.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { LuxService } from "../../src/service/lux.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { FACTS } from "../../src/store/sql/consistency.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import { openPostgres } from "../../src/store/postgres/engine.ts";
import { POSTGRES_MIGRATIONS } from "../../src/store/postgres/migrations.ts";
import { eventsAfter } from "../../src/store/sql/events.ts";
import { fileTotals } from "../../src/store/sql/files.ts";
import { gateOn } from "../../src/store/sql/gate.ts";
import { groupFailures, groupTotals, touchedGroups } from "../../src/store/sql/groups.ts";
import { query } from "../../src/store/sql/query.ts";
import { messageById } from "../../src/store/sql/messages.ts";
import { nodeById } from "../../src/store/sql/nodes.ts";
import { spentBy } from "../../src/store/sql/spending.ts";
import { dependenciesById, taskById } from "../../src/store/sql/tasks.ts";
import { webhookByName } from "../../src/store/sql/webhooks.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Store } from "../../src/store/store.ts";
import { ANY_TASK } from "../domain/samples.ts";
import { POSTGRES_MISSING, newSchema, sharedServer } from "../support/postgres.ts";

const REWARD = 1_500_000;
const DONE = 150;

/** The rows of a hub before the ledger was kept in order of arrival: a has done much, b holds two, c is new. */
function rowsBefore(): readonly string[] {
  const node = (id: string, assigned: number, completed: number): string => `
    INSERT INTO nodes (node_id, name, capabilities, variant, online, registered_at, last_heartbeat_at, lease_until,
      tasks_assigned, tasks_completed, lux_earned_micro, idle_since)
    VALUES ('${id}', '${id}', '', 'A', 1, 1, 7, 9, ${assigned}, ${completed}, ${completed * REWARD}, 1)`;
  const task = (n: number, status: string, holder: string | null): string => `
    INSERT INTO tasks (task_id, title, description, task_type, priority, status, lux_reward_micro, assigned_node,
      balanced, attempts, created_at, updated_at, problem, improvement, lesson)
    VALUES ('t${n}', 't', '', '', 1, '${status}', ${REWARD}, ${holder === null ? "NULL" : `'${holder}'`}, 0, 0, 1, 1,
      ${status === "completed" ? "'p', 'i', 'l'" : "NULL, NULL, NULL"})`;
  const entry = (n: number): string => `
    INSERT INTO ledger VALUES ('a', ${n}, 'e${String(n).padStart(4, "0")}', ${REWARD}, ${n * REWARD}, 'reward',
      't${n}', 1)`;
  return [
    ...[node("a", 0, DONE), node("b", 2, 0), node("c", 0, 0)],
    ...Array.from({ length: DONE }, (_, i) => task(i + 1, "completed", "a")),
    ...[1, 2].map((n) => task(DONE + n, "assigned", "b")),
    ...Array.from({ length: DONE }, (_, i) => entry(i + 1)),
    `UPDATE task_totals SET assigned = 2, completed = ${DONE}`,
    ...[1, 2, 3].map(
      (n) => `
        INSERT INTO files (file_id, name, size_bytes, sha256, content_type, metadata, uploaded_at)
        VALUES ('f${n}', 'f', ${n * 1_000}, '', 'text/plain', '{}', 1)`,
    ),
    `UPDATE files SET task_id = 't152' WHERE file_id <> 'f3'`,
    `UPDATE files SET node_id = 'b' WHERE file_id <> 'f1'`,
    `INSERT INTO events (id, at, kind, node_id, task_id, data) VALUES (1, 1, 'task.completed', 'a', 't1', '{}')`,
    `INSERT INTO messages (message_id, from_node, to_node, type, content, require_ack, sent_at)
      VALUES ('m1', 'a', 'b', 'text', 'hi', 0, 1)`,
    `INSERT INTO deliveries (seq, to_node, state, deliveries, broadcast)
      SELECT seq, 'b', 'waiting', 0, 0 FROM messages`,
  ];
}

/** The rows are what they were, and the work goes on from them. */
async function check(store: Store): Promise<void> {
  const tasks = new TaskService(store, systemClock(), () => Bun.randomUUIDv7());
  const lux = new LuxService(store, systemClock(), () => Bun.randomUUIDv7());
  const page = { page: 1, perPage: 500 };
  const account = { entries: DONE, balanceMicro: BigInt(DONE * REWARD) };
  expect(await store.read(nodeById("a"))).toMatchObject(account);
  expect(await store.read(nodeById("c"))).toMatchObject({
    entries: 0,
    lastHeartbeatAt: 7,
    leaseUntil: 9,
  });
  expect(await store.read(fileTotals())).toEqual({ files: 3, bytes: 6_000 });
  // Of the node that holds the task, or of another.
  expect(await store.read(taskById("t152"))).toMatchObject({ files: ["f1", "f2"], outputs: ["f2"] });
  const numbers = async (): Promise<readonly (number | null)[]> =>
    (await lux.ledger("a", page)).rows.first.map(({ n }) => n);
  expect(await numbers()).toEqual(Array.from({ length: DONE }, (_, i) => DONE - i));
  const listed = async (nodeId: string): Promise<readonly string[]> =>
    (
      await tasks.lists.page({ ...ANY_TASK, statuses: ["assigned", "completed"], nodeId }, page)
    ).rows.first.map(({ taskId }) => taskId);
  expect((await listed("a")).length).toBe(DONE);
  expect(await listed("b")).toEqual(["t152", "t151"]);
  const result = { problem: "p", improvement: "i", lesson: "l", extra: null };
  const asked = { taskId: "t151", nodeId: "b", result, epoch: null, claimOnComplete: false };
  await tasks.complete(store.transact, asked);
  expect(await listed("b")).toEqual(["t152", "t151"]);
  expect(await store.read(nodeById("b"))).toMatchObject({ entries: 1, tasksCompleted: 1 });
  const [oldest] = await store.read(eventsAfter(0, [], 1));
  expect(oldest).toMatchObject({ kind: "task.completed", nodeId: "a", verified: false });
  expect((await store.read(taskById("t1")))?.resultVerified).toBe(false);
  expect((await store.read(messageById("m1")))?.message).toMatchObject({ content: "hi", verified: false });
  await tasks.remove(store.transact, "t9");
  expect((await listed("a")).includes("t9")).toBe(false);
  expect((await listed("a")).length).toBe(DONE - 1);
}

test("sqlite: schema 4, with rows", async () => {
  const folder = mkdtempSync(join(tmpdir(), "luxhub-migrate-"));
  try {
    const path = join(folder, "luxhub.db");
    const before = new Database(path);
    for (const step of SQLITE_MIGRATIONS.slice(0, 4)) before.run(step);
    for (const row of rowsBefore()) before.run(row);
    before.run("PRAGMA user_version = 4");
    before.close();
    const store = openSqlite(path, (error) => {
      throw error;
    });
    expect(store.migration).toMatchObject({ from: 4, to: SQLITE_MIGRATIONS.length });
    const faults = (): readonly unknown[] => {
      const db = new Database(path, { readonly: true });
      try {
        return FACTS.flatMap(({ sql }) => db.query(sql).values());
      } finally {
        db.close();
      }
    };
    expect(faults()).toEqual([]);
    await check(store);
    expect(faults()).toEqual([]);
    await store.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.skipIf(POSTGRES_MISSING !== null)(
  `postgresql: schema 1, with rows${POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`}`,
  async () => {
    const { url, remove } = await newSchema(await sharedServer());
    const before = new SQL(url, { max: 1 });
    await before.unsafe("CREATE TABLE schema_version (version INTEGER NOT NULL)");
    await before.unsafe(POSTGRES_MIGRATIONS[0] ?? "");
    for (const row of rowsBefore()) await before.unsafe(row);
    await before.unsafe("INSERT INTO schema_version VALUES (1)");
    await before.close();
    const lines: unknown[] = [];
    const log = { info: (_: string, fields?: object) => void lines.push(fields), warn: () => {} };
    const onFault = (error: unknown): never => {
      throw error;
    };
    const store = await openPostgres(url, systemClock(), onFault, log);
    const schemas = { from: 1, to: POSTGRES_MIGRATIONS.length };
    expect(lines).toEqual([schemas, { ...schemas, seconds: expect.any(Number) }]);
    await check(store);
    await store.close();
    await remove();
  },
);

/** leaf <- part <- all, and one that depends on a deleted task; each failed as an older hub has written it. */
const FAILED_TREE = (
  [
    ["leaf", "cancelled", null],
    ["part", "dependency", "Task leaf, on which it depends, failed."],
    ["all", "dependency", "Task part, on which it depends, failed."],
    ["other", "dependency", "Task gone, on which it depends, was deleted."],
  ] as const
).map(
  ([taskId, kind, message]) => `
    INSERT INTO tasks (task_id, title, description, task_type, priority, status, lux_reward_micro, balanced, attempts,
      created_at, updated_at, failure)
    VALUES ('${taskId}', 't', '', '', 1, 'failed', 0, 0, 0, 1, 1,
      '${JSON.stringify({ kind, message, nodeId: null, at: 1 })}')`,
);

async function checkTree(store: Store): Promise<void> {
  const causes = await store.read(dependenciesById(["leaf", "part", "all", "other"]));
  expect(Object.fromEntries(causes.map(({ taskId, brokenBy }) => [taskId, brokenBy]))).toEqual({
    leaf: null,
    part: "leaf",
    all: "leaf",
    other: "gone",
  });
}

/** The rows before the step that made the groups of a node's keys its own: one group of boss, one of others too. */
const GROUPED = [
  ...[
    ["t1", "mine", "boss", 1, null],
    ["t2", "mine", "boss", 1, null],
    ["copy", null, "boss", 1, "t1"],
    ["t3", "mixed", "boss", 1, null],
    ["t4", "mixed", "boss", 0, null],
    ["t5", "hub", null, 0, null],
  ].map(
    ([taskId, group, creator, verified, parent]) => `
      INSERT INTO tasks (task_id, title, description, task_type, priority, status, lux_reward_micro, balanced, attempts,
        created_at, updated_at, task_group, creator_node, creator_verified, parent_task, child)
      VALUES ('${taskId}', 't', '', '', 1, 'open', 0, 0, 0, 1, 1, ${quoted(group)}, ${quoted(creator)}, ${verified},
        ${quoted(parent)}, ${parent === null ? "NULL" : `'{"as":"copy","of":"t1","group":"mine"}'`})`,
  ),
  `UPDATE task_totals SET open = 6`,
  ...["mine", "mixed", "gone"].flatMap((group) => [
    `INSERT INTO usage_sums VALUES ('group', '${group}', 1, 2, 0, 3, 0, 0, 5)`,
    `INSERT INTO budgets (scope, value, per, cost_micro, on_limit) VALUES ('group', '${group}', 'total', 9, 'warn')`,
    `INSERT INTO group_endings VALUES ('${group}')`,
    `INSERT INTO webhooks (name, webhook_id, revision, url, format, filter, cursor_id, state, attempts, created_at, updated_at)
      VALUES ('${group}', '${group}', 1, 'u', 'luxhub', '{"kinds":[],"group":"${group}"}', 0, 'active', 0, 1, 1)`,
  ]),
];

function quoted(value: string | number | null | undefined): string {
  return value == null ? "NULL" : `'${value}'`;
}

async function checkGroups(store: Store): Promise<void> {
  const counts = new Map<string, number>();
  for (const name of ["mine", "mine/boss", "mixed", "mixed/boss", "hub"]) {
    const totals = await store.read(groupTotals(name));
    counts.set(name, totals ? tasksIn(totals) : 0);
  }
  expect([...counts.values()]).toEqual([0, 2, 2, 0, 1]);
  expect((await store.read(taskById("copy")))?.child).toMatchObject({ of: "t1", group: "mine/boss" });
  const names = ["gone", "mine/boss", "mixed"];
  expect((await store.read(touchedGroups(9))).map(({ group }) => group)).toEqual(names);
  expect((await store.read(gateOn(1))).budgets.map(({ value }) => value)).toEqual(names);
  const spent = { since: 0, until: 9 };
  for (const name of names) expect((await store.read(spentBy("group", name, spent))).costMicro).toBe(5);
  for (const [i, name] of ["gone", "mine", "mixed"].entries())
    expect((await store.read(webhookByName(name)))?.filter).toMatchObject({ group: names[i] });
}

/** The rows before the step that sums up each group in a row: a task of each kind that counts in its own way. */
const SUMMED = [
  ...[
    ["open", "open", 1_500_000, null, null, null],
    ["held", "assigned", 0, null, null, null],
    ["paid", "completed", 2_000_001, 1, null, null],
    ["reviewed", "completed", 4_000_000, null, null, 9],
    ["agreed", "completed", 3_000_000, null, '{"state":"agreed"}', null],
    ["failed", "failed", 0, null, null, null],
    ["cancelled", "failed", 1, null, null, null],
    ["expired", "failed", 0, null, null, null],
    ["copy1", "completed", 1_000_000, 2, null, null],
    ["copy2", "completed", 1_000_001, 3, null, null],
  ].flatMap(([id, status, lux, paid, quorum, until], i) => {
    const isCopy = String(id).startsWith("copy");
    const kind = status !== "failed" ? null : id;
    const failure = kind === null ? null : `{"kind":"${kind}","message":null,"nodeId":null,"at":1}`;
    return [
      `INSERT INTO tasks (task_id, title, task_type, priority, creator_verified, status, lux_reward_micro, balanced,
        attempts, failures, restarts, epoch, unmet, failure, paid_seq, created_at, updated_at)
      VALUES ('${id}', 't', '', 1, 0, '${status}', ${lux}, 0, 0, 0, 0, 0, 0, ${quoted(failure)}, ${paid}, ${i + 5}, ${50 - i})`,
      `INSERT INTO task_features (task_seq, status, updated_at, lux_reward_micro, paid_seq, task_group, quorum, parent_task,
        review_until)
      VALUES (${i + 1}, '${status}', ${50 - i}, ${lux}, ${paid}, ${isCopy ? null : "'g'"}, ${quoted(quorum)},
        ${isCopy ? "'agreed'" : null}, ${until})`,
    ];
  }),
];

async function checkSums(store: Store): Promise<void> {
  expect(await store.read(groupTotals("g"))).toEqual({
    ...{ open: 1, assigned: 1, completed: 3, failed: 1, cancelled: 2, inReview: 1 },
    ...{ lux: 10, luxMicro: 500_002, paid: 4, paidMicro: 2 },
    ...{ firstCreatedAt: 5, lastCreatedAt: 12, lastUpdatedAt: 50 },
  });
  expect((await store.read(groupFailures("g", 9))).map(({ taskId }) => taskId)).toEqual(["failed"]);
}

const PLAIN = {
  status: "open",
  title: "t",
  description: "d",
  created_at: 1,
  updated_at: 2,
  lux_reward_micro: 3,
};
const ASSIGNED = { status: "assigned", assigned_node: "b", started_at: 4 };
const RESULT = { problem: "p", improvement: "i", lesson: "l", result_extra: '{"n":1}' };
/** Tasks before the step that split their rows: each has what the others have not, and `ready` and `due_at` are new. */
const UNSPLIT: readonly { readonly [column: string]: string | number }[] = [
  { max_attempts: 5, backoff_ms: 7, ready: 1 },
  { lane: " x", limit_key: "k", ready: 2 },
  { scheduled: 1, not_before: 5, ready: 0, due_at: 5 },
  { scheduled: 1, not_before: 5, expires_at: 9, unmet: 1, depends_on: "t0,t1", ready: 0, due_at: 9 },
  { not_before: 5, expires_at: 9, ready: 1, due_at: 9 },
  { ...ASSIGNED, lease_until: 8, run_until: 9, expires_at: 9, due_at: 9 },
  { status: "failed", expires_at: 9, not_before: 5, failure: "{}", failed_node: "b" },
  { status: "completed", assigned_node: "b", ...RESULT, paid_seq: 1, result_verified: 1, expires_at: 9 },
];
const FEATURES: typeof UNSPLIT = [
  ...[{ creator_key: "k" }, { schedule: "s", schedule_at: 6 }, { schedule: "s" }, { on_dependency: "run" }],
  ...[{ retain_ms: 6 }, { task_group: "g" }, { tags: ",a,b," }, { unique_key: "u", unique_until: 6 }],
  ...[{ requires: "{}" }, { quorum: "{}" }, { child: "{}", parent_task: "t0" }, { not_nodes: ",b," }],
  ...[{ questions: '{"state":"open"}' }, { spent: "{}" }, { max_cost_micro: 6 }, { earlier_failures: "[]" }],
  ...[{ has_output: 1 }, { checkpoint_bytes: 6 }, { kept_bytes: 6 }, { lent_bytes: 6 }],
  { a2a_caller: "a", a2a_ids: "c m" },
].map((feature) => ({ ...feature, ready: 1 }));
const ENDED_FEATURES: typeof UNSPLIT = [
  { ...ASSIGNED, has_leases: 1 },
  { status: "failed", broken_by: "t0" },
  { status: "completed", assigned_node: "b", ...RESULT, paid_seq: 2, review: "{}", review_until: 6 },
  { status: "completed", assigned_node: "b", ...RESULT, retain_ms: 6, retain_until: 8 },
];
const SPLIT = [...UNSPLIT, ...FEATURES, ...ENDED_FEATURES].map((columns, i) => ({
  task_id: `t${i}`,
  ...PLAIN,
  ...columns,
}));

const INSERTED = SPLIT.map((task) => {
  const columns = Object.entries({ task_type: "", priority: 1, balanced: 0, attempts: 0, ...task }).filter(
    ([name]) => name !== "ready" && name !== "due_at",
  );
  const values = columns.map(([, value]) => quoted(value));
  return `INSERT INTO tasks (${columns.map(([name]) => name).join(", ")}) VALUES (${values.join(", ")})`;
});

/** Every value is in the row that it belongs to, and only a task that uses a feature has a row of features. */
async function checkParts(store: Store): Promise<void> {
  const copied = ["status", "updated_at", "assigned_node"];
  const copies = copied.map((name) => `f.${name} AS copied_${name}`).join(", ");
  const sql = `SELECT t.*, ${copies} FROM task_rows t LEFT JOIN task_features f ON f.task_seq = t.seq ORDER BY t.seq`;
  const rows = await store.read(query(sql, [], (found) => found, ["tasks"]));
  const told = (value: unknown): string | null => (value == null ? null : String(value));
  expect(rows.length).toBe(SPLIT.length);
  for (const [i, columns] of SPLIT.entries()) {
    const row = rows[i] ?? {};
    const wanted = Object.entries({ ready: null, due_at: null, ...columns }).filter(
      ([name]) => name !== "scheduled",
    );
    for (const [name, value] of wanted)
      expect([columns.task_id, name, told(row[name])]).toEqual([columns.task_id, name, told(value)]);
    const isPlain = i < UNSPLIT.length;
    expect([columns.task_id, row["features_of"] == null]).toEqual([columns.task_id, isPlain]);
    if (!isPlain)
      expect(copied.map((name) => row[`copied_${name}`])).toEqual(copied.map((name) => row[name]));
  }
}

/** What is checked after the step with these words, of what was there before it. */
describe.each([
  [
    "tasks that failed through others get the task at the root of that",
    "ADD COLUMN broken_by",
    FAILED_TREE,
    checkTree,
  ],
  ["groups of a node's keys become its own", "owned_groups", GROUPED, checkGroups],
  ["the tasks of a group are summed up", "CREATE TABLE group_totals", SUMMED, checkSums],
  ["the row of a task becomes several", "CREATE TABLE task_specs", INSERTED, checkParts],
] as const)("%s", (_, words, rows, checked) => {
  const before = (steps: readonly string[]): number => steps.findIndex((step) => step.includes(words));

  test("on sqlite", async () => {
    const folder = mkdtempSync(join(tmpdir(), "luxhub-migrate-"));
    try {
      const path = join(folder, "luxhub.db");
      const db = new Database(path);
      const old = before(SQLITE_MIGRATIONS);
      for (const step of [...SQLITE_MIGRATIONS.slice(0, old), ...rows]) db.run(step);
      db.run(`PRAGMA user_version = ${old}`);
      db.close();
      const store = openSqlite(path, (error) => {
        throw error;
      });
      await checked(store);
      await store.close();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test.skipIf(POSTGRES_MISSING !== null)(
    `on postgresql${POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`}`,
    async () => {
      const { url, remove } = await newSchema(await sharedServer());
      const sql = new SQL(url, { max: 1 });
      const old = before(POSTGRES_MIGRATIONS);
      await sql.unsafe("CREATE TABLE schema_version (version INTEGER NOT NULL)");
      for (const step of [...POSTGRES_MIGRATIONS.slice(0, old), ...rows]) await sql.unsafe(step);
      await sql.unsafe(`INSERT INTO schema_version VALUES (${old})`);
      await sql.close();
      const store = await openPostgres(url, systemClock(), (error) => {
        throw error;
      });
      await checked(store);
      await store.close();
      await remove();
    },
  );
});
