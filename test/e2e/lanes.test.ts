/**
 * Never more tasks run than a limit allows, nor use more than a node has, although workers and hubs are killed.
 * `bun run torture --only lanes` is the long form.
 */
import { expect, test } from "bun:test";
import { runLanes } from "../../tools/torture/lanes.ts";
import { cases } from "../support/long.ts";
import { POSTGRES_PROGRAMS } from "../support/postgres.ts";

const TASKS = cases(20, 40);

async function runSmall(onPostgres: boolean): Promise<void> {
  const seed = Number(process.env["E2E_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`seed ${seed}`);
  const report = await runLanes(TASKS, seed, onPostgres, console.log);
  expect(report.words).toEqual([]);
  expect(report.hubsKilled).toBeGreaterThan(0);
  expect(report.looks).toBeGreaterThan(0);
  expect(report.changes).toBeGreaterThan(0);
}

test("limits and resources hold on sqlite", () => runSmall(false));

const reason = POSTGRES_PROGRAMS === null ? " (skipped: no PostgreSQL of our own can be started here)" : "";
test.skipIf(POSTGRES_PROGRAMS === null)(
  `limits and resources hold with two hubs on postgresql${reason}`,
  () => runSmall(true),
);
