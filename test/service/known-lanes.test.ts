/** Which special lanes a hub remembers for the workers that wait. */
import { expect, test } from "bun:test";
import { gateAt } from "../../src/domain/gate.ts";
import type { ReadyLane } from "../../src/domain/lane.ts";
import { LANES_EMPTY_AWAITED } from "../../src/domain/limits.ts";
import { KnownLanes } from "../../src/service/known-lanes.ts";
import { NOW, node } from "../domain/samples.ts";

const GATE = gateAt({ day: 0, budgets: [], pauses: [], limits: [] }, NOW);
const lanesOf = (...names: readonly string[]): ReadonlyMap<string, ReadyLane> =>
  new Map(
    names.map((name) => [
      name,
      {
        name,
        taskType: "",
        limitKey: name,
        requires: null,
        creatorNode: null,
        head: { priority: 1, seq: 1 },
      },
    ]),
  );
const names = (count: number): readonly string[] => Array.from({ length: count }, (_, i) => ` ${i}`);

test("workers wait for the next task of lanes that are empty, but not of more than may add up", () => {
  const known = new KnownLanes(false);
  const awaited = (): readonly string[] => known.awaitedBy(node("n1"), null).special.map(({ name }) => name);
  const some = names(LANES_EMPTY_AWAITED);
  for (const name of some) known.learn(GATE, lanesOf(name));
  known.learn(GATE, lanesOf());
  expect(awaited()).toEqual(some);
  known.learn(GATE, lanesOf(" a", " b"));
  expect(awaited()).toHaveLength(some.length + 2);
  for (const name of [" a", " b", " 0"]) known.announce(name);
  expect([known.announce(" a"), known.announce(" 0")]).toEqual([false, false]);
  known.learn(GATE, lanesOf(" a"));
  known.learn(GATE, lanesOf(" a", " c")); // still no more than twice the ready ones beside
  expect(awaited()).toHaveLength(some.length + 3);
  known.learn(GATE, lanesOf(" a"));
  expect(awaited()).toEqual([" a"]);
  // The next task of a lane that was forgotten wakes all workers; of one that was not, one of its queue.
  expect([known.announce(" a"), known.announce(" 0")]).toEqual([false, true]);
});
