/**
 * Many lanes, agents and random requests: the order among more lanes than are looked up, the limit of lanes, and that
 * dispatch, readiness and explain agree. lanes.test.ts has the rules.
 */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { LANES_LOOKED_UP, LANES_MAX } from "../../src/domain/limits.ts";
import { SECOND_MS } from "../../src/lib/clock.ts";
import { compareNoMore } from "../support/new-database.ts";
import { ADMIN_KEY, type TestHub, newDataDir, onlyOnce, startHub } from "../support/hub.ts";
import { dice } from "../support/dice.ts";
import { cases } from "../support/long.ts";
import { Agent } from "../support/mcp.ts";
import { list, ok, record, refused, until } from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;

const idle = { auto_assign: false };

async function next(hub: TestHub, node_id = "n1", fields: Fields = {}): Promise<string | null> {
  const { task } = await ok(hub.post("/task/next", { node_id, ...fields }));
  return task === null ? null : String(record(task)["task_id"]);
}

function asAdmin(hub: TestHub, path: string): Promise<Fields> {
  return ok(hub.get(path, { headers: { "X-Admin-Key": ADMIN_KEY } }));
}

const release = (hub: TestHub, task_id: string | null, fields: Fields = {}): Promise<Fields> =>
  ok(hub.post("/task/release", { task_id, node_id: "n1", ...fields }));

test("of more lanes than a dispatch looks up, the best task comes first, whatever has changed meanwhile", async () => {
  await using hub = await startHub();
  await hub.addNode("n1", idle);
  const roll = dice(20_261_128);
  /** Ready tasks, by age. */
  const ready = new Map<string, number>();
  const priorities = ["high", "medium", "low", "p5"];
  const best = (): string | null => [...ready].toSorted(([, a], [, b]) => a - b)[0]?.[0] ?? null; // stable
  const create = async (lane: number): Promise<void> => {
    const place = roll(4);
    ready.set(await hub.addTask({ limit_key: `k${lane}`, priority: priorities[place] }), place);
  };
  for (let lane = 0; lane < 4 * LANES_LOOKED_UP; lane++) await create(lane);
  for (let step = 0; step < cases(150, 600); step++) {
    const kind = roll(5);
    if (kind === 4 && roll(3) === 0) {
      // The best of many lanes go without a dispatch that looks them up.
      const sorted = [...ready].toSorted(([, a], [, b]) => a - b);
      for (const [task_id] of sorted.slice(0, 2 * LANES_LOOKED_UP)) {
        await ok(hub.post("/task/claim", { task_id, node_id: "n1" }));
        ready.delete(task_id);
      }
      expect([step, await next(hub)]).toEqual([step, best()]);
      ready.delete(best() ?? "");
      while (ready.size < 4 * LANES_LOOKED_UP) await create(roll(5 * LANES_LOOKED_UP));
    } else if (kind === 0) await create(roll(5 * LANES_LOOKED_UP));
    else if (kind === 1 && ready.size > 0) {
      const task_id = [...ready.keys()][roll(ready.size)] ?? "";
      const place = roll(4);
      const changed = roll(2)
        ? { priority: priorities[place] }
        : { limit_key: `k${roll(5 * LANES_LOOKED_UP)}` };
      await ok(hub.post("/task/update", { task_id, ...changed }));
      if (changed.priority !== undefined) ready.set(task_id, place);
    } else {
      const expected = best();
      expect([step, await next(hub)]).toEqual([step, expected]);
      if (expected === null) continue;
      if (roll(3)) ready.delete(expected);
      else await release(hub, expected);
    }
  }
});

once.test("unfinished tasks are in at most LANES_MAX lanes", async () => {
  const dataDir = newDataDir();
  try {
    await using first = await startHub({ dataDir });
    await first.addTask({ limit_key: "k" });
    await first.close();
    const db = new Database(join(dataDir, "luxhub.db"));
    compareNoMore(db.filename);
    const columns = db
      .query<{ name: string }, []>("SELECT name FROM pragma_table_info('tasks')")
      .all()
      .map(({ name }) => name);
    const copied = new Map([
      ["seq", "seq + n"],
      ["task_id", "'copy ' || n"],
      ["lane", "' copy ' || n"],
    ]);
    db.run(
      `WITH RECURSIVE copies (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < ${LANES_MAX - 2})
       INSERT INTO tasks (${columns.join(", ")})
       SELECT ${columns.map((name) => copied.get(name) ?? name).join(", ")} FROM tasks CROSS JOIN copies`,
    );
    db.run(`INSERT INTO task_specs SELECT t.seq, max_attempts, backoff_ms, description, depends_on
      FROM tasks t CROSS JOIN task_specs WHERE t.seq > 1`);
    db.run(`UPDATE task_totals SET open = open + ${LANES_MAX - 2}`);
    db.close();
    await using hub = await startHub({ dataDir });
    await hub.addTask({ limit_key: "the last" });
    const draft = { title: "t", description: "d" };
    await refused(hub.post("/task/create", { ...draft, limit_key: "more" }), 409, "too_many_lanes");
    await refused(
      hub.post("/task/create", { ...draft, limit_key: "more" }, { variant: "B" }),
      409,
      "too_many_lanes",
    );
    // What is in a lane that there is, or in a plain one, is not refused.
    await hub.addTask({ limit_key: "k" });
    const plain = await hub.addTask();
    await refused(hub.post("/task/update", { task_id: plain, limit_key: "more" }), 409, "too_many_lanes");
    await ok(hub.post("/task/update", { task_id: plain, limit_key: "k" }));
    // There is room when a lane has no unfinished task any more.
    await ok(hub.admin("/task/delete", { task_id: "copy 1" }));
    await hub.addTask({ limit_key: "more" });
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

once.test("an agent without a task hears of the types in special lanes that it does not take", async () => {
  await using hub = await startHub();
  await using agent = await Agent.connect(hub.base(), "ann");
  await agent.ok("node_update", { capabilities: ["a"] });
  await hub.addTask({ task_type: "b", limit_key: "k" });
  await hub.addTask({ task_type: "a", requires: { resources: { gpu: 1 } } }); // its type is not what is missing
  expect(await agent.ok("task_next")).toMatchObject({ task: null, others: ["b"] });
});

once.test("why a task does not run is shown to agents, with what the closest node lacks", async () => {
  await using hub = await startHub();
  await using agent = await Agent.connect(hub.base(), "ann");
  await agent.ok("node_update", { capabilities: ["a"] });
  const plain = await hub.addTask({ task_type: "a" });
  expect(await agent.ok("task_get", { task_id: plain })).not.toHaveProperty("why");
  const task_id = await hub.addTask({ task_type: "a", requires: { resources: { tpu: 1 } } });
  expect(await agent.ok("task_get", { task_id })).toMatchObject({ why: ["no_node"], missing: ["tpu 1"] });
  await ok(hub.admin("/hub/pause", {}));
  expect(await agent.ok("task_get", { task_id: plain })).toMatchObject({ why: ["paused"] });
});

describe("hand-out, ready and explain agree", () => {
  /**
   * The clock jumps by whole steps, and all waits end half a step off: none ends between two requests that are
   * compared.
   */
  const STEP_S = 600;
  type Shown = Readonly<Record<string, unknown>>;
  const amounts = (value: unknown): Readonly<Record<string, number>> =>
    Object.fromEntries(Object.entries(Object(value)).map(([name, amount]) => [name, Number(amount)]));

  /** The nodes that have had a copy of a task with a quorum, by the task. */
  type Copied = Map<unknown, Set<unknown>>;

  /** Whether a node could take a task now, as far as the two records say. */
  function fitsNow(node: Shown, task: Shown, copied: Copied): boolean {
    if (copied.get(task["parent_task"])?.has(node["node_id"])) return false;
    const words = String(node["capabilities"])
      .split(",")
      .filter((word) => word !== "");
    const type = task["task_type"];
    if (type !== null && words.length > 0 && !words.includes(String(type))) return false;
    const requires = Object(task["requires"] ?? {});
    if (![requires.capabilities ?? []].flat().every((word) => words.includes(String(word)))) return false;
    const [has, used] = [amounts(node["resources"]), amounts(node["resources_used"])];
    const needs = Object.entries(amounts(requires.resources));
    return needs.every(([name, amount]) => (has[name] ?? 0) - (used[name] ?? 0) >= amount - 1e-9);
  }

  /** The order in which a node is offered tasks: priority, what needs a rare resource, age. */
  function offeredBefore(a: Shown, b: Shown): boolean {
    const rank = (task: Shown): readonly number[] => {
      const isRare = "gpu" in amounts(Object(task["requires"] ?? {}).resources);
      return [Number(task["priority"]), isRare ? 0 : 1];
    };
    const [[p1 = 0, r1 = 0], [p2 = 0, r2 = 0]] = [rank(a), rank(b)];
    if (p1 !== p2) return p1 < p2;
    return r1 === r2 ? String(a["task_id"]) < String(b["task_id"]) : r1 < r2;
  }

  async function agreeAfter(seed: number, rounds: number): Promise<void> {
    await using hub = await startHub();
    let state = seed * 7_919;
    const random = (below: number): number => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((state / 2_147_483_648) * below);
    };
    const oneOf = <T>(values: readonly T[]): T | undefined => values[random(values.length)];
    const nodes = ["n0", "n1", "n2", "n3"];
    const held: (readonly [string, string])[] = [];
    const register = (node_id: string): Promise<unknown> =>
      hub.addNode(node_id, {
        ...idle,
        capabilities: oneOf([[], ["a"], ["a", "b", "cuda"], ["cuda"]]),
        resources: oneOf([{}, { gpu: 1 }, { gpu: 2, cpu: 4 }, { cpu: 2 }]),
      });
    for (const node of nodes) await register(node);
    const subject = (): Fields =>
      oneOf([{}, { type: "a" }, { limit_key: "k" }, { creator_node: "n0" }, { limit_key: "a" }]) ?? {};
    const tasks: string[] = [];
    const copied: Copied = new Map();
    const create = async (): Promise<void> => {
      const fields: Fields = {
        task_type: oneOf([undefined, "a", "b"]),
        limit_key: oneOf([undefined, undefined, "k"]),
        creator_node: oneOf([undefined, "n0"]),
        priority: oneOf([0, 1, 1, 2]),
        requires: oneOf([
          undefined,
          undefined,
          { resources: { gpu: 1 } },
          { capabilities: ["cuda"] },
          { resources: { cpu: 2 } },
          { capabilities: ["cuda"], resources: { gpu: 0.5 } },
        ]),
        depends_on: random(8) === 0 && tasks.length > 0 ? [oneOf(tasks)] : undefined,
        delay_s: random(10) === 0 ? 2.5 * STEP_S : undefined,
      };
      tasks.push(await hub.addTask(fields));
      if (random(4) > 0) return;
      const { depends_on, delay_s, ...alike } = fields;
      const asked = await hub.addTask({ ...alike, quorum: { results: 2, of: 2, compare: "json:/lesson" } });
      copied.set(asked, new Set());
      await until("it has its copies", async () => {
        const { quorum } = record((await ok(hub.get(`/task/${asked}`)))["task"]);
        return [Object(quorum).copies].flat().length === 2;
      });
    };
    /** All open tasks, page by page. */
    const openTasks = async (): Promise<readonly Shown[]> => {
      const found: Shown[] = [];
      for (let page = 1, pages = 1; page <= pages; page++) {
        const shown = await ok(hub.get(`/task/list?status=open&per_page=50&page=${page}`));
        found.push(...list(shown, "tasks"));
        pages = Number(shown["pages"]);
      }
      return found;
    };
    const steps: readonly (() => Promise<unknown>)[] = [
      create,
      create,
      create,
      create,
      () => hub.admin("/hub/pause", subject()),
      () => hub.admin("/hub/resume", subject()),
      () => hub.admin("/hub/resume", subject()),
      () => hub.admin("/limit/set", { key: oneOf(["a", "k", ""]), running: 1 + random(2) }),
      () => hub.admin("/limit/delete", { key: oneOf(["a", "k", ""]) }),
      () => hub.post("/limit/hold", { key: oneOf(["a", "k"]), for_s: 1.5 * STEP_S }),
      () => hub.admin("/budget/set", { scope: "type", value: "b", per: "day", cost_usd: random(2) }),
      () => register(oneOf(nodes) ?? "n0"),
      async () => {
        const [task_id = "", node_id = ""] = held.splice(random(held.length), 1)[0] ?? [];
        if (task_id === "") return;
        if (random(3) > 0) return hub.complete(task_id, node_id);
        return hub.post("/task/ask", { task_id, node_id, question: "which?", park: true });
      },
      async () => hub.clock.jump(random(3) * STEP_S * SECOND_MS),
    ];
    let [handedOut, copies] = [0, 0];
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < 4; i++) await oneOf(steps)?.();
      await hub.sweep();
      const all = await Promise.all(
        nodes.map(async (id) => record((await ok(hub.get(`/node/${id}`)))["node"])),
      );
      const node_id = oneOf(nodes) ?? "n0";
      const node = record(all.find((one) => one["node_id"] === node_id));
      const open = await openTasks();
      const ready: Shown[] = [];
      for (const task of open) {
        const explained = await ok(hub.get(`/task/${task["task_id"]}/explain`));
        const codes = list(explained, "reasons").map(({ code }) => code);
        expect(codes.at(-1) === "in_line").toBe(explained["ready"] === true);
        if (task["ready"] !== true) expect(explained["ready"]).toBe(false);
        if (explained["ready"] === true) ready.push(task);
        // Some node could take it exactly when no reason is about nodes.
        const isWanting = codes.some((code) => /^no(?:de|_node)/.test(String(code)));
        if (task["quorum"] !== undefined)
          expect([codes.includes("quorum"), isWanting]).toEqual([true, false]);
        else
          expect({ codes, fits: all.some((one) => fitsNow(one, task, copied)) }).toEqual({
            codes,
            fits: !isWanting,
          });
      }
      const best = ready
        .filter((task) => fitsNow(node, task, copied))
        .toSorted((a, b) => (offeredBefore(a, b) ? -1 : 1))[0];
      const taken = await next(hub, node_id);
      expect({ round, taken }).toEqual({ round, taken: best === undefined ? null : String(best["task_id"]) });
      if (taken !== null) {
        handedOut++;
        held.push([taken, node_id]);
        const had = copied.get(best?.["parent_task"]);
        if (had !== undefined) {
          had.add(node_id);
          copies++;
        }
      }
      const limits = list(await asAdmin(hub, "/limit/list"), "limits");
      const assigned = list(await ok(hub.get("/task/list?status=assigned&per_page=50")), "tasks");
      for (const { key, running, running_now } of limits) {
        if (running === null) continue;
        const count = assigned.filter(
          (task) => (task["limit_key"] ?? task["task_type"] ?? "") === key,
        ).length;
        expect({ key, count }).toEqual({ key, count: Number(running_now) });
      }
    }
    expect(handedOut).toBeGreaterThan(5);
    expect(copies).toBeGreaterThan(1);
  }

  once.test("after random requests", () => agreeAfter(1, cases(30, 60)));
  // On SQLite as on PostgreSQL: test/model/lanes.test.ts has more of them, against a model.
  test("after other random requests", () => agreeAfter(10, cases(20, 40)));
});
