/**
 * A short fuzz test of every endpoint of both variants, generated from its declaration; tools/torture/fuzz.ts runs it
 * longer.
 */
import { expect, test } from "bun:test";
import { SUCCESS, fuzzInProcess } from "./fuzz.ts";
import { TARGETS } from "./requests.ts";

test("2,000 requests: each answered as declared, and what was refused changes nothing", async () => {
  const tally = await fuzzInProcess(2_000, 1);
  expect(tally.total).toBeGreaterThanOrEqual(2_000);
  // The fuzz test is useful only if requests succeed, and if every kind of refusal occurs.
  expect(tally.of(SUCCESS) / tally.total).toBeWithin(0.3, 0.9);
  for (const status of [400, 401, 403, 404, 405, 409, 415])
    expect(tally.of([status]), `${status}`).toBeGreaterThan(0);
  // The torture requires a success of every endpoint: in so few requests, a few have none.
  const never = tally.neverServed();
  expect(never.length, never.join(", ")).toBeLessThanOrEqual(TARGETS.length / 20);
});
