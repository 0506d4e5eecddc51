/** Queries that patch their result (Query.patch) read the same from memory as from the database. */
import { describe, expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import { type Decision, Rejection, type Undecided, accept, nodeNotFound } from "../../src/domain/decision.ts";
import { heartbeatChange, saved } from "../../src/domain/node.ts";
import * as mailRules from "../../src/domain/message.ts";
import * as rules from "../../src/domain/task/core.ts";
import { retry } from "../../src/domain/task/creator.ts";
import { next } from "../../src/domain/task/next.ts";
import * as balancer from "../../src/store/sql/balancer.ts";
import { entryOfTask, ledgerHead } from "../../src/store/sql/lux.ts";
import * as mail from "../../src/store/sql/messages.ts";
import * as nodeReads from "../../src/store/sql/nodes.ts";
import * as sqlQuery from "../../src/store/sql/query.ts";
import * as taskReads from "../../src/store/sql/tasks.ts";
import * as readyReads from "../../src/store/sql/ready-tasks.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { writeSetOf } from "../../src/store/sql/statements.ts";
import type { Query } from "../../src/store/store.ts";
import { NOW, STEADY, message, node, task } from "../domain/samples.ts";
import { checkRows } from "../support/row-cache-check.ts";
import { closing, noFault, prepareStores, sqlitePlace, write } from "./store-engines.ts";
import { dice } from "./store-rows.ts";

await prepareStores();

describe("store: sqlite: patches", () => patchedQueries()); // the patches know no engine

function patchedQueries(): void {
  test("queries of a node and of a task, patched by the changes of any rule, are what they read after it", async () => {
    const place = await sqlitePlace();
    closing.push(() => place.remove());
    const store = openSqlite(place.path, noFault);
    closing.push(() => store.close());
    const roll = dice(7);
    const nodeIds = ["n0", "n1"];
    const taskIds = Array.from({ length: 12 }, (_, i) => `t${i}`);
    await write(
      store,
      ...nodeIds.flatMap((nodeId) => saved(node(nodeId))),
      ...taskIds.map((taskId, i): Change => ({
        kind: "task.created",
        task: task(taskId, {
          luxRewardMicro: 3,
          priority: i % 2 === 0 ? 1 : 2,
          uniqueKey: i === 0 ? "k" : null,
        }),
      })),
    );
    const queries: readonly Query<unknown>[] = [
      ...nodeIds.flatMap((nodeId) => [
        nodeReads.nodeById(nodeId),
        nodeReads.pulseOf(nodeId),
        taskReads.bestGift(nodeId),
        taskReads.firstStarted(nodeId),
        balancer.candidatesFor("", nodeId),
      ]),
      ...taskIds.map(taskReads.taskById),
      ...taskIds.map((taskId) => taskReads.dependenciesById([taskId])),
      taskReads.tasksByUniqueKey("k", null, 0),
      ledgerHead(),
    ];
    const known: unknown[] = [];
    for (const query of queries) known.push(await store.read(query));
    const patches = new Set<string>();
    for (let step = 0; step < 250; step++) {
      const taskId = taskIds[roll(taskIds.length)] ?? "";
      const nodeId = nodeIds[roll(2)] ?? "";
      const at = { now: NOW + step, steady: STEADY + step };
      const asked = { taskId, nodeId, epoch: null, reason: null, error: "e", retry: roll(3) > 0, note: "n" };
      const result = { problem: "p", improvement: "i", lesson: "l", extra: null };
      const load = {
        task: taskReads.taskById(taskId),
        node: nodeReads.nodeById(nodeId),
        started: roll(3) === 0 ? taskReads.firstStarted(nodeId) : sqlQuery.NO_ROW,
        gifts: taskReads.bestGift(nodeId),
        open: readyReads.bestReady(null),
        head: ledgerHead(),
        paid: entryOfTask(taskId),
      };
      const rule = roll(12);
      let changes: readonly Change[] = [];
      await store
        .transact(load, ({ task, node, head, paid, ...found }): Decision<unknown> => {
          const decide = (): Decision<unknown> => {
            if (rule < 3)
              return rules.take(task, node, { taskId, nodeId, by: rule === 0 ? "assign" : "claim" }, at);
            const ready = { ...found, open: found.open.tasks };
            if (rule < 5) return node ? next(node, ready, at) : nodeNotFound(nodeId);
            if (rule === 5)
              return rules.complete(
                task,
                node,
                { ...asked, result, claimOnComplete: true, entryId: `e${step}`, head, paid },
                at,
              );
            if (rule === 6) return rules.release(task, node, [], asked, at);
            if (rule === 7) return rules.fail(task, node, [], asked, at);
            if (rule === 8) return rules.extend(task, node, asked, at);
            if (rule === 9) return rules.revoke(task, node, [], asked, at);
            if (rule === 10) return retry(task, [], [], { taskId, boundTo: null }, at);
            const draining = roll(4) === 0;
            return accept(null, [
              { kind: "node.drained", nodeId, draining },
              heartbeatChange(nodeId, { ...at, leaseMs: 9 }),
            ]);
          };
          const decision = decide();
          changes = decision.kind === "accepted" ? decision.changes : [];
          return decision;
        })
        .catch((error: unknown) => {
          if (!(error instanceof Rejection)) throw error;
        });
      await checkRows(store, changes);
      for (const [i, query] of queries.entries()) {
        let patched: unknown = known[i];
        const written = changes.filter((change) =>
          writeSetOf(change).some((key) => query.reads.includes(key)),
        );
        for (const change of written) if (patched !== undefined) patched = query.patch?.(patched, change);
        known[i] = await store.read(query);
        if (patched === undefined) continue;
        expect<unknown>(patched).toEqual(known[i]);
        if (written.length > 0) patches.add(query.sql);
      }
    }
    expect(patches).toEqual(new Set(queries.map(({ sql }) => sql)));
  });

  test("queries of a mailbox, patched by the changes of any rule, are what they read after it", async () => {
    const place = await sqlitePlace();
    closing.push(() => place.remove());
    const store = openSqlite(place.path, noFault);
    closing.push(() => store.close());
    const roll = dice(7);
    const nodeId = "n1";
    const owner = { nodeId };
    await write(store, ...saved(node(nodeId)));
    const messageIds = Array.from({ length: 60 }, (_, i) => `m${i}`);
    const queries: readonly Query<unknown>[] = [
      ...[2, 50].flatMap((limit) => [
        mail.waitingDeliveries(nodeId, limit),
        mail.waitingDeliveries(nodeId, limit, 40),
        mail.waitingDeliveriesIfSmall(nodeId, limit),
      ]),
      ...messageIds.map((messageId) => mail.deliveryOf(messageId, nodeId)),
    ];
    const known: unknown[] = [];
    for (const query of queries) known.push(await store.read(query));
    const patches = new Set<Query<unknown>>();
    let sent = 0;
    for (let step = 0; step < 200; step++) {
      const messageId = messageIds[roll(messageIds.length)] ?? "";
      const waiting = await store.read(mail.waitingDeliveries(nodeId, 1 + roll(4)));
      const stub = await store.read(mail.deliveryOf(messageId, nodeId));
      const rule = roll(4);
      const decide = (): Decision<unknown> | Undecided => {
        if (rule === 0 && sent < messageIds.length) {
          const content = "x".repeat(1 + roll(30));
          const one = message(`m${sent++}`, { toNode: nodeId, requireAck: roll(3) > 0, content });
          return mailRules.send(one, owner, nodeId);
        }
        if (rule === 1) return mailRules.receive(owner, nodeId, waiting, STEADY);
        if (rule === 2 && stub?.state === "leased") return mailRules.expireLeases([stub], NOW);
        return mailRules.acknowledge(stub && { messageId }, stub, owner, { messageId, nodeId }, NOW);
      };
      const decision = decide();
      const changes = decision.kind === "accepted" ? decision.changes : [];
      await write(store, ...changes);
      for (const [i, query] of queries.entries()) {
        let patched: unknown = known[i];
        for (const change of changes)
          if (patched !== undefined && writeSetOf(change).some((key) => query.reads.includes(key)))
            patched = query.patch?.(patched, change);
        known[i] = await store.read(query);
        if (patched === undefined) continue;
        expect<unknown>(patched).toEqual(known[i]);
        if (changes.length > 0) patches.add(query);
      }
    }
    expect(patches).toEqual(new Set(queries));
  });
}
