// Checks the stores of the growth bench: a filled store must be one that a hub could have left, with every running
// total right, and a hub must work on it. Also a whole run, at a small size.
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dataDirAt } from "../../../../src/data-dir.ts";
import { systemClock } from "../../../../src/lib/clock.ts";
import { examine } from "../../../../src/upkeep/doctor.ts";
import { fillStore, measureGrowth } from "../../../../tools/bench/growth/growth.ts";
import { OPERATIONS } from "../../../../tools/bench/growth/job.ts";

const root = mkdtempSync(join(tmpdir(), "luxhub-growth-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

test("a filled store is one that a hub could have left", async () => {
  const data = join(root, "filled");
  await fillStore(data, { tasks: 1_000, nodes: 10 });
  using db = new Database(join(data, "luxhub.db"), { readonly: true });
  const rows = (sql: string) => db.query<Record<string, number | string>, []>(sql).all();
  expect(rows("SELECT open, assigned, completed FROM task_totals")).toEqual([
    { open: 20, assigned: 20, completed: 960 },
  ]);
  expect(rows("SELECT status, count(*) AS n FROM tasks GROUP BY status ORDER BY status")).toEqual([
    { status: "assigned", n: 20 },
    { status: "completed", n: 960 },
    { status: "open", n: 20 },
  ]);
  const wrongNodes = rows(`
    SELECT node_id FROM nodes n WHERE
      tasks_assigned <> (SELECT count(*) FROM tasks WHERE assigned_node = node_id AND status = 'assigned') OR
      tasks_completed <> (SELECT count(*) FROM tasks WHERE assigned_node = node_id AND status = 'completed') OR
      lux_earned_micro <> (SELECT sum(amount_micro) FROM ledger l WHERE l.node_id = n.node_id) OR
      lux_earned_micro <> (SELECT max(balance_micro) FROM ledger l WHERE l.node_id = n.node_id)`);
  expect(wrongNodes).toEqual([]);
  expect(rows("SELECT sum(lux_earned_micro) AS paid FROM nodes")).toEqual([{ paid: 960 * 2_500_000 }]);
  expect(rows("SELECT kind, count(*) AS n FROM events GROUP BY kind ORDER BY kind")).toEqual([
    { kind: "lux.paid", n: 960 },
    { kind: "message.acked", n: 98 },
    { kind: "message.sent", n: 1_000 },
    { kind: "node.online", n: 10 },
    { kind: "node.registered", n: 10 },
    { kind: "task.assigned", n: 980 },
    { kind: "task.completed", n: 960 },
    { kind: "task.created", n: 1_000 },
  ]);
  expect(rows("SELECT state, count(*) AS n FROM deliveries GROUP BY state ORDER BY state")).toEqual([
    { state: "acked", n: 98 },
    { state: "gone", n: 882 },
    { state: "waiting", n: 20 },
  ]);
  expect(rows("SELECT count(*) AS n FROM deliveries d JOIN messages m USING (seq, to_node)")).toEqual([
    { n: 1_000 },
  ]);
  const tools = { clock: systemClock(), onProgress: () => {}, signal: new AbortController().signal };
  const findings = await Array.fromAsync(examine({ dir: dataDirAt(data), url: null }, tools));
  expect(findings.length).toBeGreaterThan(10);
  expect(findings.filter(({ grade }) => grade === "bad")).toEqual([]);
});

test("a run measures every kind of request on both stores", async () => {
  const plan = { requests: 40, rounds: 1, connections: 4, hub: [process.execPath, "src/main.ts"] };
  const sizes = { small: { tasks: 100, nodes: 4 }, large: { tasks: 200, nodes: 8 } };
  const { rows } = await measureGrowth({ ...plan, ...sizes, dataRoot: root }, () => {});
  expect(rows.map(({ operation }) => operation)).toEqual([...OPERATIONS]);
  for (const { small, large, ratio } of rows) {
    expect(small.requestsPerSecond).toBeGreaterThan(0);
    expect(large.p50Ms).toBeGreaterThan(0);
    expect(ratio).toBeCloseTo(small.requestsPerSecond / large.requestsPerSecond, 6);
  }
});
