/** What many explanations at once cost the others: each looks at every node. */
import { expect, test } from "bun:test";
import { LIMIT_ENDPOINTS } from "../../src/api/limits.ts";
import type { Change } from "../../src/domain/change.ts";
import { accept } from "../../src/domain/decision.ts";
import { NODES_PART } from "../../src/domain/limits.ts";
import type { Node } from "../../src/domain/model.ts";
import { Explanations } from "../../src/service/explanations.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Query } from "../../src/store/store.ts";
import { TestClock } from "../support/hub.ts";
import { node, task } from "../domain/samples.ts";

test("they look at one part of the nodes in each tick, all together", async () => {
  await using closing = new AsyncDisposableStack();
  const store = closing.adopt(
    openSqlite(":memory:", (error) => {
      throw error;
    }),
    (opened) => opened.close(),
  );
  const nodes = Array.from({ length: 5 * NODES_PART }, (_, i) => node(`n${i}`, { capabilities: ["y"] }));
  const registered = (one: Node): readonly Change[] => [
    { kind: "node.saved", node: one },
    { kind: "node.beaten", nodeId: one.nodeId, lastHeartbeatAt: 1, leaseUntil: 1 },
  ];
  await store.transact({}, () =>
    accept(null, [
      ...nodes.flatMap(registered),
      { kind: "task.created", task: task("t", { taskType: "x" }) },
    ]),
  );
  let inTick = 0;
  let most = 0;
  let parts = 0;
  const read = <R>(query: Query<R>): Promise<R> => {
    if (query.sql.includes("FROM nodes")) {
      parts++;
      most = Math.max(most, ++inTick);
      setImmediate(() => (inTick = 0));
    }
    return store.read(query);
  };
  const explanations = new Explanations({ read }, new TestClock());
  const found = await Promise.all(Array.from({ length: 20 }, () => explanations.of("t")));
  expect(found.map(({ reasons }) => reasons.map(({ code }) => code))).toEqual(
    Array.from({ length: 20 }, () => ["no_node", "in_line"]),
  );
  expect(parts).toBeGreaterThanOrEqual(100);
  expect(most).toBeLessThanOrEqual(2); // what is counted together may be of two ticks
});

test("each is one of the caller's running reads", () => {
  expect(LIMIT_ENDPOINTS.filter(({ path }) => path.endsWith("/explain"))).toMatchObject([
    { readsMany: true },
  ]);
});
