/**
 * Rewards that are held for a review are settled exactly once, although the hub is killed again and again.
 * `bun run torture --only review` is the long form.
 */
import { expect, test } from "bun:test";
import { runReviews } from "../../tools/torture/review.ts";
import { cases } from "../support/long.ts";
import { POSTGRES_PROGRAMS } from "../support/postgres.ts";

/** One of each way, or two. */
const TASKS = cases(7, 14);

async function runSmall(onPostgres: boolean): Promise<void> {
  const seed = Number(process.env["E2E_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`seed ${seed}`);
  const report = await runReviews(TASKS, seed, onPostgres, console.log);
  expect(report.words).toEqual([]);
  expect(report.hubsKilled).toBeGreaterThan(0);
  expect(report.states["passed"]).toBeGreaterThan(0);
}

test("held rewards are settled once on sqlite", () => runSmall(false));

const reason = POSTGRES_PROGRAMS === null ? " (skipped: no PostgreSQL of our own can be started here)" : "";
test.skipIf(POSTGRES_PROGRAMS === null)(
  `held rewards are settled once with two hubs on postgresql${reason}`,
  () => runSmall(true),
);
