/** The short form of the fuzz (the long one is torture/fuzz.ts): every endpoint of both variants, from what it declares. */
import { expect, test } from "bun:test";
import { fuzzInProcess } from "./fuzz.ts";
import { TARGETS } from "./requests.ts";

const SUCCESS = [200, 206, 304];

test("3,000 requests: each answered as declared, and what was refused changes nothing", async () => {
  const tally = await fuzzInProcess(3_000, 1);
  expect(tally.total).toBeGreaterThanOrEqual(3_000);
  // It would be no fuzz if nothing succeeded, or if nothing were refused for some of the reasons.
  expect(tally.of(SUCCESS) / tally.total).toBeWithin(0.3, 0.9);
  for (const status of [400, 401, 403, 404, 405, 409, 415])
    expect(tally.of([status]), `${status}`).toBeGreaterThan(0);
  for (const { method, path } of TARGETS)
    for (const variant of ["A", "B"]) {
      const endpoint = `${variant} ${method} ${path}`;
      expect(tally.of(SUCCESS, endpoint), endpoint).toBeGreaterThan(0);
    }
});
