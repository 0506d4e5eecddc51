/** The reads of the gate and of the special lanes, on every engine: what they find after the changes that rules make. */
import { expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import { type Lane, laneOf } from "../../src/domain/lane.ts";
import type { Closed, Requirements, Task } from "../../src/domain/model.ts";
import { saved } from "../../src/domain/node.ts";
import { must } from "../../src/lib/assert.ts";
import { gateOn } from "../../src/store/sql/gate.ts";
import { otherLanes, readyLanes } from "../../src/store/sql/lanes.ts";
import { nodeById } from "../../src/store/sql/nodes.ts";
import { bestOfLanes } from "../../src/store/sql/ready-tasks.ts";
import { NOW, node, task } from "../domain/samples.ts";
import { ENGINES, openFresh, prepareStores, suiteOf, write } from "./store-engines.ts";

await prepareStores();

const GPU: Requirements = { capabilities: [], resources: { gpu: 500 } };
const CPU: Requirements = { capabilities: [], resources: { cpu: 1_000 } };

const inLane = (taskId: string, patch: Partial<Task>): Change => {
  const one = task(taskId, { status: "open", ...patch });
  return { kind: "task.created", task: { ...one, lane: laneOf(one, false) } };
};
const assigned = (taskId: string, patch: Partial<Task>): Change => ({
  kind: "task.created",
  task: task(taskId, { status: "assigned", assignedNode: "n1", ...patch }),
});

for (const engine of ENGINES)
  suiteOf(engine)("lanes", () => {
    test("the gate has the pauses, the limits, and what is used of them", async () => {
      const { store } = await openFresh(engine);
      expect((await store.read(gateOn(NOW))).closed).toBeNull();
      await write(
        store,
        { kind: "pause.saved", pause: { scope: "type", value: "t", reason: "r", at: 5 } },
        { kind: "limit.saved", limit: { key: "k", running: 2, perMinute: 3, hold: null } },
        {
          kind: "limit.saved",
          limit: {
            key: "held",
            running: null,
            perMinute: null,
            hold: { at: NOW - 5, until: NOW + 5, by: "n1" },
          },
        },
        { kind: "limit.used", key: "k", second: 7 },
        { kind: "limit.used", key: "k", second: 8 },
        { kind: "limit.used", key: "k", second: 7 },
        assigned("t1", { countsFor: "k" }),
        assigned("t2", { countsFor: "k" }),
        assigned("t3", { taskType: "late" }),
      );
      const { pauses, limits, closed, opensAt } = await store.read(gateOn(NOW));
      expect(pauses).toEqual([{ scope: "type", value: "t", reason: "r", at: 5 }]);
      expect(limits.map(({ key, inUse }) => [key, inUse])).toEqual([
        ["held", 0],
        ["k", 2],
      ]);
      expect(limits[1]?.uses.toSorted((a, b) => a.second - b.second)).toEqual([
        { second: 7, count: 2 },
        { second: 8, count: 1 },
      ]);
      expect(closed?.types).toEqual(new Set(["t"]));
      expect(closed?.keys).toEqual(new Set(["held", "k"]));
      expect(opensAt).toBe(NOW + 5);
      await write(
        store,
        { kind: "pause.deleted", key: { scope: "type", value: "t" } },
        { kind: "limit.deleted", key: "held" },
        { kind: "limit.uses.removed", key: "k", before: 8 },
        {
          kind: "limit.saved",
          limit: { key: "late", running: 1, perMinute: null, hold: null },
        },
        { kind: "tasks.counted", key: "late" },
      );
      const after = await store.read(gateOn(NOW));
      expect(after.pauses).toEqual([]);
      expect(after.limits.map(({ key, inUse, uses }) => [key, inUse, uses.length])).toEqual([
        ["k", 2, 1],
        ["late", 1, 0],
      ]);
    });

    test("the lanes and the best task of each, in the order in which a node is offered them", async () => {
      const { store } = await openFresh(engine);
      expect(await store.read(readyLanes())).toEqual(new Map());
      await write(
        store,
        inLane("cpu", { requires: CPU }),
        inLane("gpu 1", { requires: GPU, balanced: true }),
        inLane("gpu 2", { requires: GPU }),
        inLane("k", { limitKey: "k", creatorNode: "boss" }),
        inLane("k 2", { limitKey: "k" }),
        inLane("urgent", { taskType: "t", limitKey: "k", priority: 0 }),
        inLane("later", { limitKey: "later", scheduled: true }),
        inLane("own type", { taskType: "t", limitKey: "t" }), // that is no key of its own
      );
      const lanes = await store.read(readyLanes());
      const kinds = [...lanes.values()].map(({ taskType, limitKey, requires }) => [
        taskType,
        limitKey,
        requires,
      ]);
      expect(kinds.toSorted()).toEqual(
        [
          ["", null, CPU],
          ["", null, GPU],
          ["", "k", null],
          ["t", "k", null],
        ].toSorted(),
      );
      const best = async (
        some: readonly Lane[],
        closed: Closed | null = null,
        more = {},
      ): Promise<string[]> =>
        ((await store.read(bestOfLanes(some, closed, more))) ?? []).map(({ taskId }) => taskId);
      const all = [...lanes.values()];
      expect(await best(all)).toEqual(["urgent", "gpu 1", "gpu 2", "cpu", "k"]);
      const turnOf = ({ creatorNode }: Pick<Lane, "creatorNode">): number =>
        creatorNode === "boss" ? 3 : 11;
      expect(await best(all, null, { turnOf })).toEqual(["urgent", "gpu 1", "gpu 2", "k", "cpu"]);
      expect(await best(all, null, { onlyBalanced: true })).toEqual(["gpu 1"]);
      expect(await best(all, null, { limit: 2 })).toEqual(["urgent", "gpu 1"]);
      expect(await best([])).toEqual([]);
      const nobody = new Set<string>();
      const closed = { hub: false, nodes: nobody, types: nobody, groups: nobody, keys: nobody };
      expect(await best(all, { ...closed, creators: new Set(["boss"]) })).toContain("k 2");
      expect(await store.read(otherLanes(" none", 3))).toBe(4); // it counts no further than it must
      expect(await store.read(otherLanes(" none", 7))).toBe(5); // with the one that is not ready
      expect(await store.read(otherLanes(" none", 8))).toBe(0); // 7 tasks cannot be in 8 lanes
      expect(await store.read(otherLanes(must(all[0], "there are lanes").name, 10))).toBe(0);
    });

    test("a node shows what its unfinished tasks use", async () => {
      const { store } = await openFresh(engine);
      await write(
        store,
        ...saved(node("n1", { resources: { gpu: 2_000, cpu: 8_000 } })),
        ...saved(node("n2")),
        assigned("t1", { requires: GPU }),
        assigned("t2", { requires: GPU }),
        assigned("t3", { requires: CPU }),
        assigned("t4", {}),
        {
          kind: "task.created",
          task: task("t5", { status: "completed", assignedNode: "n1", requires: GPU }),
        },
      );
      const { resources, used } = must(await store.read(nodeById("n1")), "it is there");
      expect({ resources, used }).toEqual({
        resources: { gpu: 2_000, cpu: 8_000 },
        used: { gpu: 1_000, cpu: 1_000 },
      });
      expect(await store.read(nodeById("n2"))).toMatchObject({ resources: {}, used: {} });
    });
  });
