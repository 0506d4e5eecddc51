/** A short fuzz test of every endpoint of both variants, generated from its declaration; torture/fuzz.ts runs it longer. */
import { expect, test } from "bun:test";
import { fuzzInProcess } from "./fuzz.ts";
import { TARGETS } from "./requests.ts";

const SUCCESS = [200, 206, 304];

test("3,000 requests: each answered as declared, and what was refused changes nothing", async () => {
  const tally = await fuzzInProcess(3_000, 1);
  expect(tally.total).toBeGreaterThanOrEqual(3_000);
  // The fuzz test is useful only if requests succeed, and if every kind of refusal occurs.
  expect(tally.of(SUCCESS) / tally.total).toBeWithin(0.3, 0.9);
  for (const status of [400, 401, 403, 404, 405, 409, 415])
    expect(tally.of([status]), `${status}`).toBeGreaterThan(0);
  // In so few, some succeed in one variant only.
  for (const { method, path } of TARGETS) {
    if (path === "/api/v1/message/redrive") continue; // a message is parked only after three minutes of silence
    const either = ["A", "B"].map((variant) => tally.of(SUCCESS, `${variant} ${method} ${path}`));
    expect(Math.max(...either), path).toBeGreaterThan(0);
  }
});
