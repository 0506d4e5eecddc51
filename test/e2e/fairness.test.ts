/** Costly requests in short: what `bun run torture --only fairness,decisions` does, but for its times. */
import { describe, expect, test } from "bun:test";
import { CHORE_BUDGET_MS, CHORE_OVERRUN_MS } from "../../src/domain/limits.ts";
import { SECOND_MS } from "../../src/lib/clock.ts";
import { KINDS, measureDecisions } from "../../tools/torture/decisions.ts";
import { measureChores, withScene } from "../../tools/torture/fairness.ts";

const MAX_ANSWERS_MIB = 8;
const LOAD_MS = 5 * SECOND_MS;
/** Far more than every chore needs for one turn, on any machine that runs this. */
const OLDEST_MAX_SECONDS = (20 * (CHORE_BUDGET_MS + CHORE_OVERRUN_MS)) / SECOND_MS;

describe("a key that creates tasks which expire at once, and lets large responses be stored", () => {
  test("stops no chore, and leaves no more stored responses behind than it may", async () => {
    const args = ["--max-answers", `${MAX_ANSWERS_MIB}MiB`];
    const report = await withScene("A", (scene) => measureChores(scene, 2, LOAD_MS), args);
    expect(report.created).toBeGreaterThan(0);
    expect(report.storedBytes).toBeGreaterThan(MAX_ANSWERS_MIB * 2 ** 19); // it has tried
    expect(report.storedBytes).toBeLessThanOrEqual(MAX_ANSWERS_MIB * 2 ** 20);
    expect(report.oldestSeconds).toBeLessThan(OLDEST_MAX_SECONDS);
  });
});

test("batches that are dear to decide delay others, and each is run", async () => {
  const found = await withScene("A", (scene) => measureDecisions(scene, scene.hub, 100, () => {}));
  expect([...found].filter(([, beats]) => beats.length > 0).map(([name]) => name)).toEqual(
    Object.keys(KINDS),
  );
});
