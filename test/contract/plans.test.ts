/**
 * The plans of the queries: none walks through a table or sorts it, and each declares every table that it reads (its read
 * set).
 */
import { Database } from "bun:sqlite";
import { SQL } from "bun";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import { accept } from "../../src/domain/decision.ts";
import { TASK_EVENT_KINDS } from "../../src/domain/event.ts";
import { WAIT_CODES } from "../../src/domain/held.ts";
import { TASK_STATUSES, type TaskStatus } from "../../src/domain/model.ts";
import { saved } from "../../src/domain/node.ts";
import * as a2aReads from "../../src/store/sql/a2a.ts";
import * as balancer from "../../src/store/sql/balancer.ts";
import { NO_ROW } from "../../src/store/sql/query.ts";
import * as gateReads from "../../src/store/sql/gate.ts";
import * as laneReads from "../../src/store/sql/lanes.ts";
import * as keyReads from "../../src/store/sql/keys.ts";
import * as mail from "../../src/store/sql/messages.ts";
import * as retention from "../../src/store/sql/retention.ts";
import * as eventReads from "../../src/store/sql/events.ts";
import {
  firstMinute,
  firstPeriod,
  lastPeriod,
  minutesBetween,
  periodsBetween,
} from "../../src/store/sql/minutes.ts";
import * as fileReads from "../../src/store/sql/files.ts";
import * as leaseReads from "../../src/store/sql/leases.ts";
import * as luxReads from "../../src/store/sql/lux.ts";
import * as mintReads from "../../src/store/sql/mints.ts";
import { firstOfLane, oldestReady, readyOfLane, runningByType } from "../../src/store/sql/metrics.ts";
import * as nodeReads from "../../src/store/sql/nodes.ts";
import * as groupReads from "../../src/store/sql/groups.ts";
import * as invitationReads from "../../src/store/sql/invitations.ts";
import * as statsReads from "../../src/store/sql/stats.ts";
import * as scheduleReads from "../../src/store/sql/schedules.ts";
import * as webhookReads from "../../src/store/sql/webhooks.ts";
import * as noteReads from "../../src/store/sql/notes.ts";
import * as reviewReads from "../../src/store/sql/reviews.ts";
import * as taskReads from "../../src/store/sql/tasks.ts";
import * as readyReads from "../../src/store/sql/ready-tasks.ts";
import { CapabilityLists } from "../../src/store/sql/rows.ts";
import { statementsOf } from "../../src/store/sql/statements.ts";
import { must } from "../../src/lib/assert.ts";
import type { Query, Store } from "../../src/store/store.ts";
import { ANY_TASK } from "../../src/service/task-lists.ts";
import { node, task } from "../domain/samples.ts";
import { POSTGRES_MISSING } from "../support/postgres.ts";
import { takeSchema } from "../support/schemas.ts";
import { SQLITE, openFresh, prepareStores, sqlitePlace } from "./store-engines.ts";

await prepareStores();

const { oldAnswers, oldDeliveries, oldEvents, oldMessages } = retention;

describe.skipIf(POSTGRES_MISSING !== null)(
  `store: postgresql: plans${POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`}`,
  () => {
    test("the periodic search for due tasks scans no tasks, in a full queue and among finished ones", async () => {
      const { url, giveBack } = await takeSchema();
      const sql = new SQL(url, { max: 1 });
      try {
        await sql`INSERT INTO tasks (task_id, title, task_type, priority, status, lux_reward_micro, balanced,
            attempts, created_at, updated_at, creator_verified, failures, restarts, epoch, unmet)
          SELECT 'task ' || n, '', '', 1, CASE WHEN n % 2 = 0 THEN 'open' ELSE 'completed' END, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
          FROM generate_series(1, 10000) AS n`;
        await sql`ANALYZE tasks`;
        await sql`SET plan_cache_mode = force_generic_plan`; // which the server chooses after five runs
        await sql.unsafe(`PREPARE work (bigint, bigint) AS ${taskReads.taskWork(1, 2).sql}`);
        const rows: readonly Record<string, string>[] = await sql`EXPLAIN EXECUTE work (1, 2)`;
        const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
        expect(plan).toContain("tasks_lease");
        expect(plan).not.toContain("Seq Scan on tasks");
      } finally {
        await sql.close();
        giveBack();
      }
    });
  },
);

const TABLES =
  "(?:nodes|n|beats|tasks|t|ledger|l|messages|m|deliveries|d|events|answers|files|f|notes|leases|minutes|periods)";

const NOBODY = { creators: [], groups: [] };
const PLACES = { lanes: ["x", " special"], waitingTypes: ["y"] };
/** Held for any reason. */
const HELD: taskReads.HeldFilter = {
  ...{ ...NOBODY, isHeld: true, lanes: PLACES.lanes, waits: WAIT_CODES },
  ...{ all: { ...NOBODY, lanes: PLACES.lanes }, places: PLACES },
};

const LANE = { name: " lane", taskType: "x", limitKey: "k", requires: null, creatorNode: null };

describe("store: sqlite: plans", () => {
  let store: Store;
  let place: Awaited<ReturnType<typeof sqlitePlace>>;
  beforeAll(async () => {
    place = await sqlitePlace();
    store = await place.open();
  });
  afterAll(async () => {
    await store.close();
    await place.remove();
  });

  type Step = { readonly id: number; readonly parent: number; readonly detail: string };

  async function planOf(query: Query<unknown>): Promise<readonly Step[]> {
    const plan = await store.read<readonly Step[]>({
      sql: `EXPLAIN QUERY PLAN ${(query.onSqlite ?? query).sql}`,
      params: (query.onSqlite ?? query).params,
      shape: (rows) =>
        rows.map((row) => ({
          id: Number(row["id"]),
          parent: Number(row["parent"]),
          detail: String(row["detail"]),
        })),
      reads: [],
    });
    expect(plan.length).toBeGreaterThan(0);
    return plan;
  }

  /** The steps that walk through a table or an index from its beginning. */
  async function scans(query: Query<unknown>): Promise<readonly string[]> {
    const plan = await planOf(query);
    return plan.map(({ detail }) => detail).filter((detail) => new RegExp(`^SCAN ${TABLES}\\b`).test(detail));
  }

  /** The steps whose rows are all sorted before the first is given, however few are wanted; rows by id are few. */
  async function sorts(query: Query<unknown>): Promise<readonly string[]> {
    const plan = await planOf(query);
    const sorted = new Set(
      plan.filter(({ detail }) => /B-TREE FOR .*ORDER BY/.test(detail)).map(({ parent }) => parent),
    );
    return plan
      .filter(
        ({ parent, detail }) => sorted.has(parent) && new RegExp(`^S(?:CAN|EARCH) ${TABLES}\\b`).test(detail),
      )
      .map(({ detail }) => detail)
      .filter((detail) => !/USING INTEGER PRIMARY KEY \(rowid=\?\)(?: LEFT-JOIN)?$/.test(detail));
  }

  const after = { priority: 1, seq: 5 };
  const slice = { from: "newest", limit: 20, offset: 40 } as const;
  const page = (...statuses: readonly TaskStatus[]) => taskReads.taskSizes(statuses, null, slice);
  const pageOf = (...statuses: readonly TaskStatus[]) => taskReads.taskSizes(statuses, "n1", slice);
  const anyOf = (patch: Partial<taskReads.TaskFilter>): taskReads.TaskFilter => ({ ...ANY_TASK, ...patch });
  const hot: Readonly<Record<string, Query<unknown>>> = {
    pushConfigsOf: webhookReads.pushConfigsOf("t1"),
    pushCounts: webhookReads.pushCounts("t1", "n1"),
    suspendedWebhooks: webhookReads.suspendedCount(),
    dueSchedules: scheduleReads.dueSchedules(1, 100),
    hasUnfinishedTask: scheduleReads.hasUnfinishedTask("s"),
    groupFailures: groupReads.groupFailures("g", 20),
    touchedGroups: groupReads.touchedGroups(100),
    groupTotals: groupReads.groupTotals("g"),
    groupPage: groupReads.groupPage("a", "b", 50),
    tasksOfGroup: groupReads.tasksOfGroup({ group: "g", status: "failed", creatorNode: "n1" }, 5, 100),
    countOfGroup: groupReads.countOfGroup({ group: "g", status: "failed", creatorNode: "n1" }, 5, 100),
    unfinishedOfGroup: groupReads.unfinishedOfGroup({ group: "g", creatorNode: null }, 100),
    "candidatesBelow of a group": taskReads.candidatesBelow(
      anyOf({ groups: ["g/n1", "g"], tag: "t" }),
      true,
      900,
      100,
    ),
    nodeById: nodeReads.nodeById("n1"),
    pulseOf: nodeReads.pulseOf("n1"),
    pulsesOf: nodeReads.pulsesOf(["n1", "n2"]),
    nodesById: nodeReads.nodesById(["n1", "n2", "n3"]),
    taskById: taskReads.taskById("t1"),
    tasksById: taskReads.tasksById(["t1", "t2"]),
    "taskSizes open": page("open"),
    "taskSizes pending": page("open", "assigned"),
    "taskSizes of a node": pageOf("completed"),
    "taskSizes pending of a node": pageOf("open", "assigned"),
    "taskSizes all of a node": pageOf("open", "assigned", "completed"),
    "taskSizesBelow all": taskReads.taskSizesBelow(TASK_STATUSES, null, 900, 20),
    "taskSizesBelow pending": taskReads.taskSizesBelow(["open", "assigned"], null, 900, 20),
    "taskSizesBelow of a node": taskReads.taskSizesBelow(TASK_STATUSES, "n1", 900, 20),
    "candidatesBelow pending": taskReads.candidatesBelow(
      anyOf({ statuses: ["open", "assigned"] }),
      true,
      900,
      500,
    ),
    "candidatesBelow of a node": taskReads.candidatesBelow(anyOf({ nodeId: "n1" }), true, 900, 500),
    filteredSizes: taskReads.filteredSizes([1, 2, 3], anyOf({ creatorNode: "c", statuses: ["open"] })),
    tasksBySeq: taskReads.tasksBySeq([1, 2, 3]),
    tasksHeld: taskReads.tasksHeld("n1", 500),
    bestGift: taskReads.bestGift("n1"),
    bestReady: readyReads.bestReady(["x", "y"]),
    "bestReady of any type": readyReads.bestReady(null),
    unfinishedFirstSizes: taskReads.unfinishedFirstSizes(["open", "assigned", "completed"], null, 500),
    "unfinishedFirstSizes of a node": taskReads.unfinishedFirstSizes(["assigned", "completed"], "n1", 500),
    "tasksBySeq unfinished first": taskReads.tasksBySeq([1, 2, 3], "unfinishedFirst"),
    summariesBySeq: taskReads.summariesBySeq([1, 2, 3], "lastChangedFirst"),
    failedBefore: taskReads.failedBefore(
      anyOf({ taskType: "x", since: 5 }),
      true,
      true,
      { updatedAt: 9, seq: 3 },
      500,
    ),
    oldestReady: oldestReady(),
    readyOfLane: readyOfLane("x", 500),
    "readyOfLane special": readyOfLane(" x", 500),
    firstOfLane: firstOfLane(" x"),
    runningByType: runningByType(0, 500),
    "claimableSizes anything": readyReads.claimableSizes([], 20),
    claimableSizes: readyReads.claimableSizes(["x", "y"], 20),
    "claimableSizes of special lanes": readyReads.claimableSizes(["x"], 20, "n1", [1, 2, 3]),
    nodesAfter: nodeReads.nodesAfter("n1", 500),
    idleNodesAfter: nodeReads.idleNodesAfter(5, 500, 1),
    filesBySeq: fileReads.filesBySeq([1, 2, 3]),
    sentTask: a2aReads.sentTask("t", "c"),
    sentEntries: a2aReads.sentEntries("c", { updatedAt: 900, seq: 9 }, 100, 500),
    sentTasksBySeq: a2aReads.sentTasksBySeq([1, 2, 3]),
    filesOfTask: a2aReads.filesOfTask("t"),
    filesCountOf: fileReads.filesCountOf("t1"),
    nodesBySeq: nodeReads.nodesBySeq([1, 2, 3]),
    nodesByIdAfter: nodeReads.nodesByIdAfter("n1", 500),
    nodeRangeAfter: nodeReads.nodeRangeAfter(5, 500),
    "waitingFor anything": readyReads.waitingFor({ nodeId: "n1", capabilities: [], autoAssign: true }, 500),
    waitingFor: readyReads.waitingFor({ nodeId: "n1", capabilities: ["x", "y"], autoAssign: true }, 500),
    isBacklogEmpty: balancer.isBacklogEmpty(false),
    "isBacklogEmpty of the balancer's": balancer.isBacklogEmpty(true),
    backlogTypes: balancer.backlogTypes(true, "x", 500),
    backlogAfter: balancer.backlogAfter(after, ["", "x", "y"], true, 500),
    "backlogAfter of all open tasks": balancer.backlogAfter(after, ["", "x", "y"], false, 500),
    openTasks: balancer.openTasks([1, 2, 3]),
    taskWork: taskReads.taskWork(1, 2),
    dueTasks: taskReads.dueTasks(1, 500),
    timedOutTasks: taskReads.timedOutTasks(1, 500),
    dependenciesById: taskReads.dependenciesById(["t1", "t2"]),
    unmetOf: taskReads.unmetOf("t1", 20),
    tasksByUniqueKey: taskReads.tasksByUniqueKey("k", "n1", 5),
    brokenTasks: taskReads.brokenTasks({ brokenBy: "t1", after: 5, creatorNode: null }, 500),
    "brokenTasks of a creator": taskReads.brokenTasks({ brokenBy: "t1", after: 5, creatorNode: "c" }, 500),
    brokenCount: taskReads.brokenCount({ brokenBy: "t1", after: 5, creatorNode: null }, 500),
    earnedBefore: luxReads.earnedBefore(900, 5, 500),
    lastSigninAt: luxReads.lastSigninAt("n1", 86_400_000),
    endEventOf: eventReads.endEventOf("t"),
    lastEventOf: eventReads.lastEventOf("task.completed"),
    completersAfter: eventReads.completersAfter(5, 100),
    nodesOfEvents: eventReads.nodesOfEvents("task.completed", { after: 5, upTo: 100 }, 100),
    fileById: fileReads.fileById("f1"),
    noteByKey: noteReads.noteByKey("k"),
    noteHeadsAfter: noteReads.noteHeadsAfter("k", "j", 20),
    notesAfter: noteReads.notesAfter("k", "j", 20),
    leasesOf: leaseReads.leasesOf("n1", "a"),
    leasesNear: leaseReads.leasesNear("a"),
    lastEventId: eventReads.lastEventId(),
    eventsAfter: eventReads.eventsAfter(5, [], 100),
    "eventsAfter one kind": eventReads.eventsAfter(5, ["lux.paid"], 100),
    "eventsAfter task kinds": eventReads.eventsAfter(5, TASK_EVENT_KINDS, 100),
    "newestEvents of a kind": eventReads.newestEvents(["lux.paid"], 100),
    nodeEventsIn: eventReads.nodeEventsIn("n1", { after: 5, upTo: 2_005 }, 100),
    nthEventOfTask: eventReads.nthEventOfTask("t", 5, 100, true),
    failedOfNode: taskReads.failedOfNode("n", 100),
    "taskSizes failed of a node": pageOf("failed"),
    eventsIn: eventReads.eventsIn(
      { after: 5, upTo: 2_005 },
      { kinds: ["lux.paid"], taskId: "t", nodeId: "n", groups: ["g"], tag: "x" },
      100,
      true,
    ),
    eventsById: eventReads.eventsById([3, 1, 2]),
    minutesBetween: minutesBetween(60_000, 120_000),
    periodsBetween: periodsBetween(600_000, 60_000, 120_000),
    firstPeriod: firstPeriod(600_000),
    lastPeriod: lastPeriod(600_000, 120_000),
    firstMinute: firstMinute(),
    storedAnswer: keyReads.storedAnswer("s", 0),
    waitingDeliveries: mail.waitingDeliveries("n1", 10),
    waitingPart: mail.waitingPart("n1", 7),
    mailboxOwner: mail.mailboxOwner("n1"),
    hasEmptyMailbox: mail.hasEmptyMailbox("n1"),
    deliveryOf: mail.deliveryOf("m1", "n1"),
    deliveriesOf: mail.deliveriesOf("n1", [1, 2, 3]),
    expiredDeliveries: mail.expiredDeliveries(1, 500),
    messageById: mail.messageById("m1"),
    historySizes: mail.historySizes("n1", null, 50),
    waitingAfter: mail.waitingAfter("n1", 7, 10, 1_000),
    taskStates: taskReads.taskStates(["t1", "t2"]),
    fileSizesBelow: fileReads.fileSizesBelow(null, 40, 20),
    "fileSizesBelow of a task": fileReads.fileSizesBelow("t1", 40, 20),
    messageFates: mail.messageFates("n1", [1, 2, 3], "newest first"),
    parkedCount: mail.parkedCount("n1"),
    allParkedCount: mail.allParkedCount(500),
    allParkedSizes: mail.allParkedSizes({ from: "newest", limit: 20, offset: 40 }),
    failuresBefore: statsReads.failuresBefore({ updatedAt: 9, seq: 3 }, 5, 500),
    nodesByAbilities: statsReads.nodesByAbilities(5, 500),
    waitingOfType: statsReads.waitingOfType("x", 5, 500),
    waitingTypes: statsReads.waitingTypes(500),
    unsaidAmong: taskReads.unsaidAmong("task.stuck", [1, 2, 3], 5),
    choosyAfter: taskReads.choosyAfter(5, 500, 9),
    parkedByNode: mail.parkedByNode(500, 20),
    fileNamesBelow: fileReads.fileNamesBelow("t1", 40, 20),
    fileSizesBySeq: fileReads.fileSizesBySeq([1, 2, 3]),
    heldSummaries: taskReads.heldSummaries(["n1", "n2"], 3),
    countHeld: must(taskReads.countHeld(HELD, 500), "its ranges have no other tasks"),
    parkedSizes: mail.parkedSizes("n1", { from: "newest", limit: 20, offset: 40 }),
    unfinishedBroadcast: mail.unfinishedBroadcast("m1"),
    lateBroadcast: mail.lateBroadcast(1),
    queuedDeliveries: mail.queuedDeliveries(1, 500),
    waitingDeliveriesIfSmall: mail.waitingDeliveriesIfSmall("n1", 10),
    mailboxSizes: mail.mailboxSizes("n1", { since: null, before: null }, 50),
    "mailboxSizes since": mail.mailboxSizes("n1", { since: 7, before: null }, 50),
    oldAnswers: oldAnswers({ before: 1, limit: 500 }),
    excessAnswers: retention.excessAnswers(1, 2),
  };
  for (const [name, query] of Object.entries(hot))
    test(`${name} scans no table and sorts nothing`, async () => {
      expect(await scans(query)).toEqual([]);
      expect(await sorts(query)).toEqual([]);
    });

  /** In the order of what they walk through, and ended by their LIMIT. */
  const ordered: Readonly<Record<string, readonly [Query<unknown>, RegExp]>> = {
    candidatesFor: [balancer.candidatesFor("x", "n1"), /^SCAN nodes USING INDEX nodes_available$/],
    candidatesIfBalanced: [
      balancer.candidatesIfBalanced({ balanced: true, requires: null, taskType: "x" }, "n1"),
      /^SCAN nodes USING INDEX nodes_available$/,
    ],
    availableNodes: [balancer.availableNodes(new CapabilityLists()), /^SCAN nodes/],
    "taskSizes all": [page(...TASK_STATUSES), /^SCAN tasks$/],
    strandedTasks: [taskReads.strandedTasks(500), /^SCAN nodes USING INDEX nodes_stranded$/],
    tasksOfDeleted: [taskReads.tasksOfDeleted(1), /^SCAN nodes USING INDEX nodes_(?:stranded|deleted)$/],
    deletedNodesCount: [
      nodeReads.deletedNodesCount(),
      /^SCAN nodes USING (?:COVERING )?INDEX nodes_deleted$/,
    ],
    newestEvents: [eventReads.newestEvents([], 100), /^SCAN events$/],
    fileSizes: [fileReads.fileSizes(slice), /^SCAN files$/],
    oldMessages: [oldMessages({ before: 1, limit: 500, now: 2 }), /^SCAN messages$/],
    oldEvents: [oldEvents({ before: 1, limit: 500, now: 2 }), /^SCAN events$/],
  };
  for (const [name, [query, expected]] of Object.entries(ordered))
    test(`${name} reads in order, up to its limit`, async () => {
      const found = await scans(query);
      expect(found).toHaveLength(1);
      expect(found[0]).toMatch(expected);
      expect(await sorts(query)).toEqual([]);
    });

  /** How a plan comes to the rows of a table. */
  async function ways(query: Query<unknown>, table: string): Promise<readonly string[]> {
    const plan = await planOf(query);
    return plan
      .map(({ detail }) => detail)
      .filter((detail) => new RegExp(`^S(?:CAN|EARCH) ${table}\\b`).test(detail));
  }

  const skipping: Readonly<Record<string, readonly TaskStatus[]>> = {
    all: ["open", "assigned", "completed"],
    pending: ["open", "assigned"],
    completed: ["completed"],
  };
  for (const from of ["newest", "oldest"] as const)
    for (const [name, statuses] of Object.entries(skipping))
      for (const whose of [null, "n1"])
        test(`the rows before a page are skipped in indexes, without a sort: ${name} of ${whose ?? "any node"}, ${from} first`, async () => {
          const far = { from, limit: 50, offset: 499_950 };
          const query = taskReads.taskSizes(statuses, whose, far);
          const found = await ways(query, "tasks");
          expect(found).not.toEqual([]);
          // Looked up one by one are only the newest tasks of a node, which it names.
          for (const way of found) expect(way).toMatch(/COVERING INDEX|rowid=\?\)$/);
          // Several ranges are merged as they are read; only the page itself may be put in order.
          const plan = (await planOf(query)).map(({ detail }) => detail);
          expect(plan).not.toContain("COMPOUND QUERY");
          if (found.length > 1) expect(plan).toContain("MERGE (UNION ALL)");
          expect(await sorts(query)).toEqual([]);
        });

  test("a node's page reads only the node's assigned and completed tasks", async () => {
    expect((await ways(pageOf("assigned", "completed"), "tasks")).toSorted()).toEqual([
      "SEARCH tasks USING COVERING INDEX tasks_node (assigned_node=? AND status=?)",
      "SEARCH tasks USING COVERING INDEX tasks_node (assigned_node=? AND status=?)",
    ]);
  });

  test("a node's page does not read open tasks, which have no node", async () => {
    for (const way of await ways(pageOf("open", "assigned", "completed"), "tasks"))
      expect(way).toMatch(/\((?:assigned_node=\? AND status|.*rowid)=\?\)/);
  });

  test("waiting tasks are counted in the order of their index, and held ones are read in their places", async () => {
    expect(await ways(statsReads.waitingOfType("x", 7, 500), "t")).toEqual([
      "SEARCH t USING INDEX tasks_waiting (task_type=? AND rowid>?)",
    ]);
    const found = await ways(taskReads.candidatesBelow(anyOf({ held: HELD }), false, 900, 500), "tasks");
    expect([...new Set(found)]).toEqual([
      "SEARCH tasks USING COVERING INDEX tasks_pool_type (balanced=? AND task_type=? AND priority=? AND rowid<?)",
      "SEARCH tasks USING COVERING INDEX tasks_pool_lane (balanced=? AND lane=? AND priority=? AND rowid<?)",
      "SEARCH tasks USING COVERING INDEX tasks_waiting (task_type=? AND rowid<?)",
    ]);
    const counted = await ways(must(taskReads.countHeld(HELD, 500), "it has ranges"), "tasks");
    expect([...new Set(counted)]).toEqual([
      "SEARCH tasks USING COVERING INDEX tasks_pool_type (balanced=? AND task_type=? AND priority=?)",
      "SEARCH tasks USING COVERING INDEX tasks_pool_lane (balanced=? AND lane=? AND priority=?)",
      "SEARCH tasks USING COVERING INDEX tasks_waiting (task_type=?)",
    ]);
    // A reason to wait is in the row, and what an owner holds is in no range.
    const owners = { ...HELD.all, creators: ["c"] };
    for (const other of [{ waits: ["not_before"] as const }, { isHeld: false, all: owners }])
      expect(taskReads.countHeld({ ...HELD, ...other }, 500)).toBeNull();
  });

  const byBlock: Readonly<Record<string, readonly [Partial<taskReads.TaskFilter>, string]>> = {
    creator: [{ creatorNode: "c" }, "COVERING INDEX tasks_creator (<expr>=? AND creator_node=?)"],
    type: [{ taskType: "x" }, "COVERING INDEX tasks_type (<expr>=? AND task_type=? AND rowid<?)"],
    "creator and type": [
      { creatorNode: "c", taskType: "x" },
      "COVERING INDEX tasks_creator (<expr>=? AND creator_node=? AND task_type=? AND rowid<?)",
    ],
    "type and state": [
      { taskType: "x", statuses: ["open"] },
      "INDEX tasks_type (<expr>=? AND task_type=? AND rowid<?)",
    ],
  };
  for (const [name, [filter, index]] of Object.entries(byBlock))
    test(`tasks by ${name} are looked up in each block`, async () => {
      const query = taskReads.candidatesInBlocks(anyOf(filter), false, { oldest: 1, newest: 4 }, 900);
      expect(await ways(query, "t")).toEqual([`SEARCH t USING ${index}`]);
      const counted = await ways(taskReads.countInBlocks(anyOf(filter), { oldest: 1, newest: 4 }), "t");
      expect(counted.map((way) => way.replace(/ AND rowid.*| *\)$/, ""))).toEqual([
        `SEARCH t USING COVERING ${index.replace("COVERING ", "").replace(/ AND rowid.*| *\)$/, "")}`,
      ]);
    });

  test("stranded tasks are found through the index of their nodes' tasks", async () => {
    expect(await ways(taskReads.strandedTasks(500), "t")).toEqual([
      "SEARCH t USING INDEX tasks_node (assigned_node=? AND status=?)",
    ]);
  });

  for (const limit of [1, 1_000])
    test(`a receive of ${limit} reads only waiting deliveries, not all that the node ever got`, async () => {
      expect((await ways(mail.waitingDeliveries("n1", limit), "deliveries")).toSorted()).toEqual([
        "SEARCH deliveries USING COVERING INDEX deliveries_waiting (to_node=?)",
      ]);
      expect(await ways(mail.waitingDeliveries("n1", limit), "d")).toEqual([
        "SEARCH d USING PRIMARY KEY (seq=? AND to_node=?)",
      ]);
    });

  test("a node's events are read only within the range", async () => {
    const query = eventReads.nodeEventsIn("n1", { after: 5, upTo: 2_005 }, 32);
    expect(await ways(query, "events")).toEqual([
      "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
    ]);
  });

  /** What a change writes, as a query: for its plan alone. */
  const writeOf = (change: Change): Query<null> => {
    const { all, own } = statementsOf(change);
    const statement = must(all[own], "a change has a statement of its own");
    return { sql: statement.sql, params: statement.params(change), shape: () => null, reads: [] };
  };
  const old = { before: 1, limit: 500, now: 2 };
  const moved = { seq: 1, toNode: "n1", state: "gone", deliveries: 1, leaseUntil: null } as const;
  const writes: Readonly<Record<string, Change>> = {
    "node.beaten": { kind: "node.beaten", nodeId: "n1", lastHeartbeatAt: 1, leaseUntil: 2 },
    "task.moved": { kind: "task.moved", task: task("t") },
    "task.deleted": { kind: "task.deleted", taskId: "t" },
    "delivery.moved": { kind: "delivery.moved", messageId: "m", ...moved },
    "periods.pruned": { kind: "periods.pruned", stepMs: 1, first: 2, last: 3 },
    "file.deleted": { kind: "file.deleted", fileId: "f" },
    "files.tallied": { kind: "files.tallied", files: 1, bytes: 2 },
    "answers.pruned": { kind: "answers.pruned", ...old },
    "answers.trimmed of one key": {
      kind: "answers.trimmed",
      keyId: "k",
      maxBytes: 1,
      storedBytes: 1,
      scope: "",
    },
  };
  for (const [name, change] of Object.entries(writes))
    test(`${name} scans no table`, async () => {
      expect(await scans(writeOf(change))).toEqual([]);
    });

  test("the last heartbeats of many nodes are on few pages, without an index", async () => {
    const fresh = await openFresh(SQLITE);
    const fleet = Array.from({ length: 2_000 }, (_, i) => saved(node(`n${i}`))).flat();
    await fresh.store.transact({}, () => accept(null, fleet));
    expect(await fresh.place.look("SELECT count(*) AS n FROM sqlite_schema WHERE tbl_name = 'beats'")).toBe(
      1,
    );
    expect(await fresh.place.look("SELECT count(*) AS n FROM dbstat WHERE name = 'beats'")).toBeLessThan(13);
  });

  test("a page of the ledger is a range of the node's index", async () => {
    const query = luxReads.ledgerPage("n1", 100, 119);
    expect(await ways(query, "l")).toEqual(["SEARCH l USING INDEX ledger_node (node_id=? AND n>? AND n<?)"]);
  });

  const deliveryPrunes: readonly (readonly [boolean, readonly string[]])[] = [
    [false, ["SEARCH deliveries USING PRIMARY KEY (seq=? AND to_node=?)"]],
    [
      true,
      [
        "SEARCH deliveries USING PRIMARY KEY (seq=? AND to_node=?)",
        "SEARCH deliveries USING PRIMARY KEY (seq=?)",
      ],
    ],
  ];
  for (const [broadcast, expected] of deliveryPrunes)
    test(`deliveries.pruned (broadcast: ${broadcast}) reads only the oldest messages`, async () => {
      const query = writeOf({ kind: "deliveries.pruned", broadcast, ...old });
      expect(await scans(query)).toEqual(["SCAN messages"]);
      expect(await ways(query, "deliveries")).toEqual([...expected]);
    });
  for (const [kind, table] of [
    ["messages.pruned", "messages"],
    ["events.pruned", "events"],
  ] as const)
    test(`${kind} reads only the oldest rows`, async () => {
      const query = writeOf({ kind, ...old });
      expect(await scans(query)).toEqual([`SCAN ${table}`]);
      expect(await sorts(query)).toEqual([]);
    });

  /** Opens of tables and indexes in the program of a query; those of other databases than the main one are left out. */
  async function tablesOf({ onSqlite, sql, params }: Query<unknown>): Promise<ReadonlySet<string>> {
    const program = await store.read({
      sql: `EXPLAIN ${onSqlite?.sql ?? sql}`,
      params: onSqlite?.params ?? params,
      shape: (rows) => rows,
      reads: [],
    });
    const opens = program.filter(
      (row) => /^(?:OpenRead|ReopenIdx)$/.test(String(row["opcode"])) && row["p3"] === 0,
    );
    const db = new Database(place.path, { readonly: true });
    const table = db.query<{ tbl_name: string }, [number]>(
      `SELECT tbl_name FROM sqlite_schema WHERE rootpage = ?`,
    );
    // The other rows of a task are its own (write-statement.ts).
    const names = opens.map((row) =>
      (table.get(Number(row["p2"]))?.tbl_name ?? "?").replace(/^task_(?:specs|results|features)$/, "tasks"),
    );
    db.close();
    return new Set(names);
  }

  /** The tables whose rows a conflict key stands for. */
  function covered(key: string): readonly string[] {
    const [table = "", id] = key.split(" ");
    if (key === "publications") return ["broadcasts", "messages"]; // with the messages that are broadcast
    // What the tasks of a node use (nodes.used) changes together with its totals.
    if (key === "nodes") return ["nodes", "tasks"];
    if (id === undefined && key !== "registrations") return [table];
    const withIt: Readonly<Record<string, readonly string[]>> = {
      nodes: ["nodes", "beats", "tasks"],
      registrations: ["nodes"],
      deliveries: ["deliveries", "messages"],
      held: ["tasks"],
    };
    return withIt[table] ?? [table];
  }

  const declared: Readonly<Record<string, Query<unknown>>> = {
    ...hot,
    ...Object.fromEntries(Object.entries(ordered).map(([name, [query]]) => [name, query])),
    bestOfLanes: readyReads.bestOfLanes([LANE], null),
    aheadInLane: readyReads.aheadInLane(task("t1"), 5),
    "aheadInLane of a special one": readyReads.aheadInLane(task("t1", { lane: LANE.name }), 5),
    gateOn: gateReads.gateOn(1),
    readyInLanes: laneReads.readyInLanes([LANE.name, " other"], "n1", 20),
    hasTaskOfKey: gateReads.hasTaskOfKey("n1", "k"),
    readyLanes: laneReads.readyLanes(),
    headsOf: laneReads.headsOf([LANE.name]),
    otherLanes: laneReads.otherLanes(LANE.name, 5),
    "otherLanes of a node": laneReads.otherLanes(LANE.name, 5, "n1"),
    allKeys: keyReads.allKeys(),
    dependedOn: retention.dependedOn(["t1", "t2"]),
    filesFrom: retention.filesFrom(0, 500),
    filesOf: retention.filesOf(["t1", "t2"]),
    finishedFrom: retention.finishedFrom("completed", 1, 0, 500),
    pastTheirRetention: retention.pastTheirRetention(1, { retainUntil: 0, seq: 0 }, 20),
    webhookByName: webhookReads.webhookByName("w"),
    webhookPage: webhookReads.webhookPage(10, 0),
    webhooksAfter: webhookReads.webhooksAfter("w", 500),
    webhookCount: webhookReads.webhookCount(),
    ownWebhookCount: webhookReads.ownWebhookCount(),
    contextOf: a2aReads.contextOf("t1"),
    scheduleByName: scheduleReads.scheduleByName("s"),
    scheduleCounts: scheduleReads.scheduleCounts("n1"),
    schedulePage: scheduleReads.schedulePage(10, 0),
    keysByHash: keyReads.keysByHash(["h"]),
    invitationByToken: invitationReads.invitationByToken("h"),
    invitationsAfter: invitationReads.invitationsAfter("", 10),
    availableAfter: balancer.availableAfter("n1", 5, new CapabilityLists()),
    claimableSizes: readyReads.claimableSizes(["x"], 20),
    firstStarted: taskReads.firstStarted("n1"),
    firstUnacknowledged: taskReads.firstUnacknowledged("n1"),
    databaseId: mail.databaseId(),
    deletedNode: nodeReads.deletedNode("n1"),
    deletedNodesCount: nodeReads.deletedNodesCount(),
    expiredNodes: nodeReads.expiredNodes(1, 500),
    firstDependents: taskReads.firstDependents(500),
    firstSettlement: taskReads.firstSettlement(),
    tasksOfDeleted: taskReads.tasksOfDeleted(500),
    fileSizesOf: fileReads.fileSizesOf("t1", slice),
    filesById: fileReads.filesById(["f1", "f2"]),
    rankedNodes: nodeReads.rankedNodes(
      "busy",
      "online",
      { after: 1, last: 500 },
      { rank: 3n, nodeId: "n1" },
      51,
    ),
    "rankedNodes by LUX": nodeReads.rankedNodes(
      "lux",
      null,
      { after: 1, last: 500 },
      { rank: 3n, nodeId: "n1" },
      51,
    ),
    "historySizes of a thread": mail.historySizes("n1", null, 50, "m1"),
    fileTotals: fileReads.fileTotals(),
    noteTotals: noteReads.noteTotals("n1"),
    leaseTotals: leaseReads.leaseTotals("n1", 5),
    "leasesNear a glob": leaseReads.leasesNear("a/*"),
    leasesAfter: leaseReads.leasesAfter({ nodeId: "n1", taskId: null }, 5, 0, 20),
    firstDeadline: leaseReads.firstDeadline(),
    lastFencing: leaseReads.lastFencing(),
    fileIdsAmong: fileReads.fileIdsAmong(["f1"]),
    firstEventId: eventReads.firstEventId(),
    ledgerPage: luxReads.ledgerPage("n1", 1, 20),
    entriesAfter: luxReads.entriesAfter(0, 20),
    ledgerHead: luxReads.ledgerHead(),
    entryOfTask: luxReads.entryOfTask("t1"),
    mintedBy: mintReads.mintedBy("k", 1),
    nextLeaseEnd: nodeReads.nextLeaseEnd(1),
    nodesCount: nodeReads.nodesCount(),
    oldDeliveries: oldDeliveries({ before: 1, limit: 500, now: 2 }, true),
    "oldDeliveries to one node": oldDeliveries({ before: 1, limit: 500, now: 2 }, false),
    nodePart: nodeReads.nodePart("", 500),
    hasNodes: nodeReads.hasNodes(5),
    taskBounds: taskReads.taskBounds(),
    taskTotals: taskReads.taskTotals(),
    countInBlocks: taskReads.countInBlocks(anyOf({ creatorNode: "c" }), { oldest: 1, newest: 4 }),
    candidatesInBlocks: taskReads.candidatesInBlocks(
      anyOf({ taskType: "x", statuses: ["open"] }),
      true,
      { oldest: 1, newest: 4 },
      900,
    ),
    topNodes: nodeReads.topNodes(5),
    nodeEver: nodeReads.nodeEver("n1"),
    dueReviews: reviewReads.dueReviews(1, 10),
    workersOfDueReviews: reviewReads.workersOfDueReviews(1, 10),
    pendingReviews: reviewReads.pendingReviews({ until: 1, seq: 1 }, 10),
    reviewCount: reviewReads.reviewCount(10),
    markedFamilies: reviewReads.markedFamilies(10),
    familyMembers: reviewReads.familyMembers(10),
    familyWorkers: reviewReads.familyWorkers(10),
  };
  test("what is behind a closed lane is not read: a lane costs a lookup for its best task", async () => {
    const lookups = (await ways(declared["bestOfLanes"] ?? NO_ROW, "tasks")).filter((way) =>
      way.includes("lane"),
    );
    expect(new Set(lookups)).toEqual(
      new Set(["SEARCH tasks USING COVERING INDEX tasks_pool_lane (balanced=? AND lane=?)"]),
    );
    for (const name of ["readyLanes", "headsOf", "otherLanes", "otherLanes of a node"]) {
      const found = await ways(declared[name] ?? NO_ROW, "tasks");
      expect(found.length).toBeGreaterThan(0);
      for (const way of found)
        expect(way).toMatch(
          /^SEARCH tasks USING (?:COVERING )?INDEX tasks_(?:pool_lane|lanes|lanes_of_node) /,
        );
    }
  });

  for (const [name, query] of Object.entries(declared))
    test(`the read set of ${name} has every table that it reads`, async () => {
      const tables = await tablesOf(query);
      expect(tables.size).toBeGreaterThan(0);
      const patched = query.patch ? ["tasks"] : [];
      expect([...query.reads.flatMap(covered), ...patched]).toEqual(expect.arrayContaining([...tables]));
    });

  test("every query of the store is among those whose read set is checked", () => {
    const modules = [
      balancer,
      eventReads,
      fileReads,
      gateReads,
      laneReads,
      keyReads,
      luxReads,
      mintReads,
      mail,
      nodeReads,
      retention,
      reviewReads,
      statsReads,
      readyReads,
      taskReads,
    ];
    const isQuery = (name: string): boolean => !/^(patch|is[A-Z])/.test(name); // not what patches one, or a condition
    const queries = modules.flatMap((module) =>
      Object.entries(module).flatMap(([name, value]) =>
        typeof value === "function" && isQuery(name) ? [name] : [],
      ),
    );
    const checked = new Set(Object.keys(declared).map((name) => name.replace(/[ ,].*/, "")));
    expect(queries.filter((name) => !checked.has(name))).toEqual([]);
  });

  test("the check finds a read set that lacks a table", async () => {
    expect([...(await tablesOf({ ...taskReads.taskById("t1"), reads: [] }))].toSorted()).toEqual([
      "files",
      "tasks",
    ]);
  });

  test("the check finds a plan without an index", async () => {
    const slow: Query<null> = {
      sql: "SELECT * FROM tasks t WHERE title = $1",
      params: ["x"],
      shape: () => null,
      reads: ["tasks"],
    };
    expect(await scans(slow)).toEqual(["SCAN t"]);
  });
});
