/**
 * A small pipeline of AI workers: they fail, hang and crash, one asks a person, hubs and workers are killed, and every
 * answer, checkpoint, report and result is there once. `bun run torture --only pipeline` is the long form.
 */
import { expect, test } from "bun:test";
import { runPipeline } from "../../tools/torture/pipeline.ts";
import { POSTGRES_PROGRAMS } from "../support/postgres.ts";

/** The fewest of which one holds its task while it asks, and one gives it back. */
const DOCUMENTS = 20;

async function runSmall(onPostgres: boolean): Promise<void> {
  const seed = Number(process.env["E2E_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`seed ${seed}`);
  const report = await runPipeline(DOCUMENTS, seed, onPostgres, console.log);
  expect(report.findings.words).toEqual([]);
  expect(report.ended).toEqual([]);
  expect(report.findings.counts["combined"]).toBe(DOCUMENTS);
  expect(report.accepted.size).toBe(2);
  expect(report.hubsKilled).toBeGreaterThan(0);
}

test("a pipeline loses nothing and does nothing twice on sqlite", () => runSmall(false));

const reason = POSTGRES_PROGRAMS === null ? " (skipped: no PostgreSQL of our own can be started here)" : "";
test.skipIf(POSTGRES_PROGRAMS === null)(
  `a pipeline loses nothing and does nothing twice with two hubs on postgresql${reason}`,
  () => runSmall(true),
);
