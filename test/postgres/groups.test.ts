/**
 * Group commit on PostgreSQL: bulk statements have the same effect as the transactions one by one, in their order.
 */
import { SQL } from "bun";
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import { accept } from "../../src/domain/decision.ts";
import { LOAD_AHEAD } from "../../src/domain/limits.ts";
import type { Task } from "../../src/domain/model.ts";
import { acknowledge } from "../../src/domain/message.ts";
import { heartbeatChange, saved } from "../../src/domain/node.ts";
import { complete, create as createTask, take } from "../../src/domain/task/core.ts";
import { next } from "../../src/domain/task/next.ts";
import { retryWithDependents } from "../../src/domain/task/dependents.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { ledgerHead } from "../../src/store/sql/lux.ts";
import { nodeById } from "../../src/store/sql/nodes.ts";
import { deliveryOf, waitingDeliveries } from "../../src/store/sql/messages.ts";
import { NO_ROW } from "../../src/store/sql/query.ts";
import {
  bestGift,
  brokenCount,
  brokenTasks,
  dependenciesById,
  taskById,
  tasksById,
  taskTotals,
  unmetOf,
} from "../../src/store/sql/tasks.ts";
import { bestReady } from "../../src/store/sql/ready-tasks.ts";
import { openPostgres } from "../../src/store/postgres/engine.ts";
import { CommitNotifications } from "../../src/store/postgres/commit-notifications.ts";
import { runGroup } from "../../src/store/postgres/group-commit.ts";
import type { Transaction } from "../../src/store/pending-transaction.ts";
import type { Result, Session } from "../../src/store/postgres/connection.ts";
import type { Load, Loaded, Part, Row, Store } from "../../src/store/store.ts";
import { AT, draft, message, node, tally, task } from "../domain/samples.ts";
import { until } from "../api/scene.ts";
import { POSTGRES_MISSING } from "../support/postgres.ts";
import { dropSchemas, takeSchema } from "../support/schemas.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

afterAll(dropSchemas);

/** Of the database that was opened last. */
let address = "";

async function open(): Promise<Store> {
  const { url, giveBack } = await takeSchema();
  address = url;
  closing.push(async () => giveBack());
  const store = await openPostgres(url, systemClock(), (error) => {
    throw error;
  });
  closing.push(() => store.close());
  return store;
}

type Patch = Partial<Task> & Pick<Task, "taskId">;

/** Creates tasks, all asked for at once, and answers them as they are stored. */
async function create(store: Store, patches: readonly Patch[]): Promise<readonly unknown[]> {
  const tasks = patches.map((patch) => task(patch.taskId, patch));
  await Promise.all(
    tasks.map((one) =>
      store.transact({ before: taskById(one.taskId) }, ({ before }) => {
        expect(before).toBeNull();
        return accept(null, [
          { kind: "task.created", task: one },
          { kind: "tasks.tallied", open: 1, assigned: 0, completed: 0, failed: 0 },
        ]);
      }),
    ),
  );
  const stored = await Promise.all(tasks.map(({ taskId }) => store.read(taskById(taskId))));
  expect(stored).toEqual(tasks.map((one) => ({ ...one, seq: expect.any(Number) })));
  return tasks;
}

const commit = (store: Store, changes: readonly Change[]): Promise<null> =>
  store.transact({}, () => accept(null, changes));

/** As many new tasks for each node, held by it and not listed, as they are stored. */
async function claim(store: Store, nodes: readonly string[], each: number): Promise<readonly Task[]> {
  const ids = nodes.flatMap((nodeId) => Array.from({ length: each }, (_, i) => `${nodeId} ${i}`));
  await create(
    store,
    ids.map((taskId) => ({ taskId })),
  );
  const open = await store.read(tasksById(ids));
  const tasks = open.map((one): Task => ({
    ...one,
    status: "assigned",
    assignedNode: one.taskId.split(" ")[0] ?? null,
  }));
  for (const task of tasks) await commit(store, [{ kind: "task.moved", task }]);
  return tasks;
}

function part<L extends Load>(load: L, decide: (rows: Loaded<L>) => ReturnType<Part["decide"]>): Part {
  return { load: () => load, decide };
}

/**
 * Commits one transaction of these parts, and answers how often it was reloaded, beyond the first load of each LOAD_AHEAD
 * parts, and how many statements it sent.
 */
async function cost(parts: readonly Part[]): Promise<{ reloads: number; statements: number }> {
  const sql = new SQL(address, { max: 1 });
  const session = await sql.reserve();
  let reloads = 1 - Math.ceil(parts.length / LOAD_AHEAD);
  let statements = 0;
  try {
    const counted: Session = Object.assign(
      (text: TemplateStringsArray) => {
        statements++;
        return session<Result>(text);
      },
      {
        unsafe: ((text, params) => {
          statements++;
          return session.unsafe(text, params);
        }) satisfies SQL["unsafe"],
      },
    );
    const transaction: Transaction = {
      parts,
      resolve: () => {},
      reject: (error) => {
        throw error;
      },
    };
    await runGroup(counted, {
      waiting: () => [transaction],
      granted: () => [transaction],
      reloaded: () => void reloads++,
      committing: () => [],
    });
    return { reloads, statements };
  } finally {
    session.release();
    await sql.close();
  }
}

const reason = POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`;

describe.skipIf(POSTGRES_MISSING !== null)(`group commit on postgresql${reason}`, () => {
  test("numbers of any size", async () => {
    const store = await open();
    await create(store, [{ taskId: "small", luxRewardMicro: 1 }]);
    await create(store, [
      { taskId: "large", luxRewardMicro: 999_999_999_999_999 },
      { taskId: "larger", luxRewardMicro: 1_000_000_000_000_000 },
    ]);
    await create(store, [{ taskId: "alone", luxRewardMicro: 1_000_000_000_000_000 }]);
    expect(await store.read(taskTotals())).toEqual({ open: 4, assigned: 0, completed: 0, failed: 0 });
  });

  test("texts with the characters of array literals", async () => {
    const store = await open();
    const plain = [``, `NULL`, `null`, `"`, `\\`, `\\"`, `\\n`, `{a,b}`, `,`, ` `, `'`, `$1`, `\u007f`, `🦊`];
    await create(store, [{ taskId: "first", title: "t" }]);
    // Control characters take another way into the literal, with all that are in the same group.
    for (const [name, texts] of Object.entries({ plain, all: [...plain, `a\nb\tc`, `\u0001`] })) {
      await create(
        store,
        texts.map((title, i) => ({ taskId: `t ${name} ${i}`, title })),
      );
      await create(
        store,
        texts.map((title, i) => ({
          taskId: `u ${name} ${i}`,
          title,
          creatorNode: i % 2 === 0 ? null : title,
        })),
      );
    }
  });

  test("a task that is moved, deleted and moved back in one commit: in that order", async () => {
    const store = await open();
    for (let round = 0; round < 3; round++) {
      const [, moved, deleted, back] = await claim(store, [`n${round}`], 4);
      if (!moved || !deleted || !back) throw new Error("not there");
      await Promise.all([
        commit(store, [{ kind: "task.moved", task: { ...moved, status: "open", assignedNode: null } }]),
        commit(store, [{ kind: "task.deleted", taskId: deleted.taskId }]),
        commit(store, [{ kind: "task.moved", task: { ...back, status: "open", assignedNode: null } }]),
        commit(store, [{ kind: "task.moved", task: back }]),
      ]);
      const after = await Promise.all(
        [moved, deleted, back].map(({ taskId }) => store.read(taskById(taskId))),
      );
      expect(after.map((one) => one?.status ?? null)).toEqual(["open", null, "assigned"]);
    }
  });

  test("a text that cannot be stored is not found, and the other keys of the bulk read are", async () => {
    const store = await open();
    await create(store, [{ taskId: "a" }, { taskId: "b" }]);
    const found = (taskId: string) =>
      store.transact({ task: taskById(taskId) }, (rows) => accept(rows.task?.taskId ?? null, []));
    const asked = ["a", "x\0y", "b", "\0", "a\0b"];
    expect(await Promise.all(asked.map(found))).toEqual(["a", null, "b", null, null]);
  });

  test("running totals of one node are summed exactly, also above 2^53", async () => {
    const store = await open();
    await commit(store, saved(node("n1")));
    const each = 4_000_000_000_000_001;
    const tallies = Array.from({ length: 5 }, (_, i) =>
      tally({
        nodeId: "n1",
        assigned: 1,
        luxEarnedMicro: each,
        balanceMicro: each,
        entries: 1,
        idleSince: i,
      }),
    );
    await Promise.all(tallies.map((one) => commit(store, [one])));
    const sum = 5n * BigInt(each);
    expect(await store.read(nodeById("n1"))).toMatchObject({
      tasksAssigned: 5,
      entries: 5,
      luxEarnedMicro: sum,
      balanceMicro: sum,
      idleSince: 4,
    });
  });

  test("a node and its heartbeat, a message and its delivery, in one commit: each after the row that it needs", async () => {
    const store = await open();
    const to = ["n1", "n2", "n3"];
    const all = to.map((toNode, i): readonly Change[] => [
      { kind: "message.stored", message: message(`m${i}`, { toNode }) },
      { kind: "delivery.queued", messageId: `m${i}`, toNode },
      ...saved(node(toNode)),
      tally({ nodeId: toNode, assigned: 1 }),
    ]);
    await Promise.all(all.map((changes) => commit(store, changes)));
    for (const [i, nodeId] of to.entries()) {
      expect(await store.read(nodeById(nodeId))).toMatchObject({ tasksAssigned: 1 });
      expect(await store.read(waitingDeliveries(nodeId, 9))).toMatchObject([
        { message: { messageId: `m${i}` } },
      ]);
    }
  });

  test("mailboxes read in one statement: each in order, up to its limit", async () => {
    const store = await open();
    const nodes = ["n1", "n2", "n3"];
    const ids = Array.from({ length: 30 }, (_, i) => `m${String(i).padStart(2, "0")}`);
    const toOf = (i: number): string => nodes[i % 3] ?? "";
    await commit(
      store,
      ids.flatMap((messageId, i): readonly Change[] => [
        { kind: "message.stored", message: message(messageId, { toNode: toOf(i) }) },
        { kind: "delivery.queued", messageId, toNode: toOf(i) },
      ]),
    );
    const received = await Promise.all(
      nodes.map((nodeId, i) =>
        store.transact({ waiting: waitingDeliveries(nodeId, 4 + i) }, ({ waiting }) =>
          accept(
            waiting.map((one) => one.message.messageId),
            [{ kind: "event.logged", event: { kind: "hub.started", at: 1, nodeId, taskId: null, data: {} } }],
          ),
        ),
      ),
    );
    expect(received).toEqual<readonly string[][]>(
      nodes.map((_, n) => ids.filter((__, i) => i % 3 === n).slice(0, 4 + n)),
    );
    // A group that fails is committed in halves: then they are several.
    const sql = new SQL(address, { max: 1 });
    const [commits] = await sql`SELECT count(DISTINCT xmin::text)::int AS n FROM events`;
    await sql.close();
    expect(commits).toEqual({ n: 1 });
  });

  test("each message wakes one receive at another hub, once, and its event follows in order", async () => {
    const store = await open();
    const other = await openPostgres(address, systemClock(), (error) => {
      throw error;
    });
    closing.push(() => other.close());
    const woken: string[] = [];
    const events: number[] = [];
    other.onCommit((changes, eventIds) => {
      events.push(...eventIds);
      for (const change of changes) if (change.kind === "delivery.queued") woken.push(change.toNode);
    });
    const nodes = Array.from({ length: 100 }, (_, i) => `n${i}`);
    for (let sent = 1; sent <= 3; sent++) {
      await Promise.all(
        nodes.map((nodeId) => {
          const event = { kind: "message.sent", at: 1, nodeId, taskId: null, data: {} } as const;
          return commit(store, [{ kind: "event.logged", event }]);
        }),
      );
      await until("all events are there", async () => events.length === sent * nodes.length);
      expect(woken.toSorted()).toEqual(
        Array.from({ length: sent }, () => nodes)
          .flat()
          .toSorted(),
      );
    }
    expect(events).toEqual(events.toSorted((a, b) => a - b));
  });

  test("a task with 1,000 dependencies, and 1,000 dependents that are opened again, take a few statements", async () => {
    const store = await open();
    const ids = Array.from({ length: 1_000 }, (_, i) => `t${String(i).padStart(3, "0")}`);
    await create(
      store,
      ids.map((taskId) => ({ taskId })),
    );
    const all = draft({ dependsOn: ids });
    const made = await cost([
      part({ dependencies: dependenciesById(ids) }, ({ dependencies }) =>
        createTask(all, "all", [], AT, dependencies),
      ),
    ]);
    expect(made.reloads).toBe(0);
    expect(made.statements).toBeLessThan(15);
    expect(await store.read(taskById("all"))).toMatchObject({ unmet: 1_000, scheduled: true });
    expect(await store.read(unmetOf("all", 2))).toEqual(["t000", "t001"]);
    // A leaf that has failed, and with it 1,000 others, as settle() writes them.
    await create(store, [{ taskId: "leaf" }]);
    await commit(store, [{ kind: "task.depended", taskId: "leaf" }]);
    const failed = ids.map((id) => ({ taskId: `of ${id}`, dependsOn: ["leaf"] }));
    await create(store, failed);
    const broken = await store.read(tasksById(["leaf", ...failed.map(({ taskId }) => taskId)]));
    const failure = { message: "m", nodeId: null, at: 1 };
    const end = (task: Task, kind: "cancelled" | "dependency"): readonly Change[] => [
      { kind: "task.moved", task: { ...task, status: "failed", failure: { kind, ...failure } } },
      ...(kind === "cancelled"
        ? []
        : [{ kind: "task.broken", taskId: task.taskId, brokenBy: "leaf" } as const]),
    ];
    await commit(
      store,
      broken.flatMap((task) => end(task, task.taskId === "leaf" ? "cancelled" : "dependency")),
    );
    const which = { brokenBy: "leaf", after: 0, creatorNode: null };
    const load = {
      leaf: taskById("leaf"),
      broken: brokenTasks(which, 1_000),
      count: brokenCount(which, 2_000),
      dependencies: dependenciesById(["leaf"]),
    };
    let opened = 0;
    const again = await cost([
      part(load, ({ leaf, broken, count, dependencies }) => {
        expect(count).toBe(1_000);
        const asked = { taskId: "leaf", boundTo: null };
        const decision = retryWithDependents(leaf, broken, dependencies, [], asked, AT);
        opened = decision.kind === "accepted" ? decision.answer.opened : 0;
        return decision;
      }),
    ]);
    expect([opened, again.reloads]).toEqual([1_000, 0]);
    expect(again.statements).toBeLessThan(20);
    expect(await store.read(brokenCount(which, 2_000))).toBe(0);
    expect(await store.read(taskById("of t999"))).toMatchObject({
      status: "open",
      unmet: 1,
      scheduled: true,
    });
  });

  test("many requests of one node in one transaction: they see one another without a reload", async () => {
    const store = await open();
    const ids = Array.from({ length: 100 }, (_, i) => `t${String(i).padStart(2, "0")}`);
    await commit(store, saved(node("n1")));
    await create(
      store,
      ids.map((taskId) => ({ taskId, luxRewardMicro: 5 })),
    );
    const nodeId = "n1";
    const beat = heartbeatChange(nodeId, { ...AT, leaseMs: 1 });
    const claim = (taskId: string): Part =>
      part({ task: taskById(taskId), node: nodeById(nodeId) }, (rows) =>
        take(rows.task, rows.node, { taskId, nodeId, by: "claim" }, AT),
      );
    const finish = (taskId: string): Part =>
      part({ task: taskById(taskId), node: nodeById(nodeId), head: ledgerHead() }, (rows) => {
        const result = { problem: "p", improvement: "i", lesson: "l", extra: null };
        const { head } = rows;
        const asked = {
          taskId,
          nodeId,
          epoch: 1,
          result,
          claimOnComplete: false,
          entryId: `e${taskId}`,
          head,
          paid: null,
        };
        return complete(rows.task, rows.node, asked, AT);
      });
    const nextOne = part(
      { node: nodeById(nodeId), started: NO_ROW, gifts: bestGift(nodeId), open: bestReady(null, true) },
      ({ node, ...found }) => {
        if (!node) throw new Error("no node");
        const { answer, changes } = next(node, { ...found, open: found.open.tasks }, AT);
        return accept(answer, [beat, ...changes]);
      },
    );
    const [claimed, taken] = [ids.slice(0, 50), ids.slice(50)];
    const claims = await cost(claimed.flatMap((taskId) => [claim(taskId), finish(taskId)]));
    expect(claims.reloads).toBe(0);
    expect(claims.statements).toBeLessThan(15);
    const nexts = await cost(taken.map(() => nextOne));
    expect(nexts.reloads).toBeLessThanOrEqual(2); // of the open tasks, 32 at a time
    expect(nexts.statements).toBeLessThan(25);
    const completions = await cost(taken.map(finish));
    expect(completions.reloads).toBe(0);
    expect(completions.statements).toBeLessThan(15);
    expect(await store.read(taskTotals())).toEqual({ open: 0, assigned: 0, completed: 100, failed: 0 });
    expect(await store.read(nodeById(nodeId))).toMatchObject({
      tasksAssigned: 0,
      tasksCompleted: 100,
      entries: 100,
      balanceMicro: 500n,
      lastHeartbeatAt: AT.now,
    });
  });

  test("another hub's event that was read before an own group was notified follows right behind it", async () => {
    await open();
    const log: Row[] = [];
    const logged: number[] = [];
    let reads = 0;
    const notifications = new CommitNotifications({
      url: address,
      hubId: "this",
      channel: "nobody_else",
      read: async ({ params: [after], shape }) => {
        reads++;
        return shape(after === undefined ? [{ n: 5 }] : log.filter(({ id }) => Number(id) > Number(after)));
      },
      onFault: (error) => {
        throw error;
      },
    });
    await notifications.start();
    notifications.listen((_, eventIds) => void logged.push(...eventIds));
    closing.push(() => notifications.close());
    await until("it listens, and has read the log", async () => reads > 1);
    const own = notifications.granted(5);
    for (const id of [6, 7])
      log.push({ id, at: 1, kind: "node.left", node_id: "n1", task_id: null, data: "{}", verified: 0 });
    await notifications.tick(); // 6 may be of the own group, and so may 7
    expect(logged).toEqual([]);
    await notifications.publish(
      { outcomes: [], written: [{ changes: [{ kind: "task.deleted", taskId: "" }], eventIds: [6] }] },
      own,
    );
    await until("both events are notified", async () => logged.length > 1);
    expect(logged).toEqual([6, 7]);
  });

  test("acknowledgements of one mailbox in one transaction are loaded once", async () => {
    const store = await open();
    const owner = { nodeId: "n1" };
    await commit(store, saved(node(owner.nodeId)));
    const sent = Array.from({ length: 50 }, (_, i) => message(`m${i}`, { requireAck: true }));
    await commit(
      store,
      sent.flatMap((one) => [
        { kind: "message.stored", message: one },
        { kind: "delivery.queued", messageId: one.messageId, toNode: owner.nodeId },
      ]),
    );
    const ack = ({ messageId }: { messageId: string }): Part =>
      part({ stub: deliveryOf(messageId, owner.nodeId) }, ({ stub }) =>
        acknowledge({ messageId }, stub, owner, { messageId, ...owner }, AT.now),
      );
    const acks = await cost([...sent, ...sent].map(ack)); // each twice: a repeat finds the first
    expect(acks.reloads).toBe(0);
    expect(acks.statements).toBeLessThan(10);
    expect(await store.read(waitingDeliveries(owner.nodeId, 1))).toEqual([]);
  });

  test("more rows in one commit than one statement carries", async () => {
    const store = await open();
    const description = "x".repeat(1_500_000);
    await create(
      store,
      Array.from({ length: 7 }, (_, i) => ({ taskId: `t${i}`, description })),
    );
    expect(await store.read(taskTotals())).toEqual({ open: 7, assigned: 0, completed: 0, failed: 0 });
  });
});
