/** The order of offers: the places by which the store orders lanes say the same as the comparison of two tasks. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Requirements } from "../../src/domain/model.ts";
import { compareOffers, lanesByPlace } from "../../src/domain/task/order.ts";

const needs = (...names: readonly string[]): Requirements => ({
  capabilities: [],
  resources: Object.fromEntries(names.map((name) => [name, 1])),
});
const TURNS: Readonly<Record<string, number>> = { ann: 7, bob: 2 };
const turnOf = ({ creatorNode }: { readonly creatorNode: string | null }): number =>
  TURNS[creatorNode ?? ""] ?? 0;

const lane = fc.record({
  requires: fc.constantFrom(null, needs("cpu"), needs("gpu"), needs("cpu", "gpu")),
  creatorNode: fc.constantFrom(null, "ann", "bob"),
  head: fc.record({ priority: fc.constantFrom(0, 1, 2, 5), seq: fc.integer({ min: 1, max: 4 }) }),
});

test("lanes by place, then priority, place and age, are in the order in which their best tasks are offered", () => {
  fc.assert(
    fc.property(fc.array(lane, { maxLength: 8 }), (lanes) => {
      const places = lanesByPlace(lanes, turnOf);
      const placed = places.flatMap((alike, place) => alike.map((each) => ({ ...each, place })));
      placed.sort(
        (a, b) => a.head.priority - b.head.priority || a.place - b.place || a.head.seq - b.head.seq,
      );
      for (const [i, next] of placed.slice(1).entries()) {
        const before = placed[i];
        expect(before && compareOffers(before, before.head, next, next.head, turnOf)).toBeLessThanOrEqual(0);
      }
    }),
    { seed: 1, numRuns: 1_000 },
  );
});

test("priority, then a rare resource, then the creator who waits longest, then age", () => {
  const offer = (priority: number, needed: Requirements | null, creatorNode: string, seq: number) => ({
    requires: needed,
    creatorNode,
    priority,
    seq,
  });
  const offers = [
    offer(0, null, "ann", 9),
    offer(1, needs("gpu"), "ann", 8),
    offer(1, needs("cpu"), "", 7),
    offer(1, null, "bob", 5),
    offer(1, null, "bob", 6),
    offer(1, null, "ann", 1),
    offer(2, needs("gpu"), "", 1),
  ];
  const sorted = offers.toReversed().toSorted((a, b) => compareOffers(a, a, b, b, turnOf));
  expect(sorted).toEqual(offers);
});
