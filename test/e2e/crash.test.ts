/**
 * A 200 means on disk: writers record every success that the hub answered, SIGKILL ends the hub repeatedly while they
 * write, and after each start every recorded write is stored exactly once (torture/crash.ts).
 *
 * A batch is stored completely or not at all, and its repeat gets the matching answer.
 *
 * The moments are random and printed with their seed; E2E_SEED repeats a run's moments, if not the machine's timing.
 */
import { describe, expect, test } from "bun:test";
import { POSTGRES_MISSING, newSchema } from "../support/postgres.ts";
import { crash } from "../../tools/torture/crash.ts";
import { whyNoTrace } from "../../tools/torture/flush-trace.ts";
import { Hub, TempDir, listOf } from "./program.ts";

const CYCLES = 4; // the last also kills a start
const WRITERS = 8;
/** A writer that never gets to work proves nothing. */
const WORK_EACH_CYCLE = 50;

test("every acknowledged write survives kill -9", async () => {
  const seed = Number(process.env["E2E_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`seed ${seed}`);
  const { ledger, findings, cycles, failedDisks, unknown } = await crash(CYCLES, seed, console.log, WRITERS);
  expect(findings.words).toEqual([]);
  expect(ledger.faults).toEqual([]);
  expect(cycles).toBe(CYCLES);
  expect([failedDisks, unknown > 0]).toEqual(whyNoTrace() === null ? [1, true] : [0, false]);
  expect(ledger.acknowledged).toBeGreaterThan(CYCLES * WORK_EACH_CYCLE);
  for (const kind of [
    ledger.completed,
    ledger.outputs,
    ledger.received,
    ledger.acked,
    ledger.files,
    ledger.signedIn,
    ledger.rules,
    ledger.gpus,
  ]) {
    expect(kind.size).toBeGreaterThan(CYCLES);
  }
  expect(ledger.quorums).toBeGreaterThan(0);
  // A retry needs a task that has failed permanently: so short a run may have none.
  expect([...ledger.ended.keys()]).toEqual(
    expect.arrayContaining(["/node/leave", "/task/cancel", "/task/fail", "/task/release"]),
  );
});

const BATCH = 60;
/** Some batches take longer than this, and some not. */
const BATCH_KILL_MAX_MS = 40;

/** Sends batches, each creates a graph of BATCH tasks, until the hub is killed in the middle. */
async function killInBatch(data: string, env: Readonly<Record<string, string>>): Promise<void> {
  const requests = Array.from({ length: BATCH }, (_, i) => ({
    path: "task/create",
    ref: `r${i}`,
    body: { title: `task ${i}`, description: "d", depends_on: i === 0 ? [] : [{ $ref: `r${i - 1}` }] },
  }));
  const started = () => Hub.start({ data, env });
  const total = async (hub: Hub) => Number((await hub.get("/task/stats")).body["total"]);
  let answered = 0;
  let refused = 0;
  const send = async (hub: Hub): Promise<void> => {
    const headers = { "Idempotency-Key": `batch-${answered}-${refused}` };
    const { status, body } = await hub.post("/batch", { requests }, { headers });
    if (status === 413) {
      refused++; // on a busy machine it took longer than a batch may
      return send(hub);
    }
    expect([status, listOf(body["answers"]).length]).toEqual([200, BATCH]);
    answered++;
  };
  for (let cycle = 0; cycle < 2; cycle++) {
    {
      await using hub = await started();
      expect(await total(hub)).toBe(answered * BATCH);
      await send(hub);
      let isKilled = false;
      setTimeout(() => {
        isKilled = true;
        hub.program.child.kill("SIGKILL");
      }, Math.random() * BATCH_KILL_MAX_MS);
      try {
        for (;;) await send(hub);
      } catch (error) {
        if (!isKilled) throw error;
      }
    }
    await using hub = await started();
    expect([answered * BATCH, (answered + 1) * BATCH]).toContain(await total(hub));
    await send(hub);
    expect(await total(hub)).toBe(answered * BATCH);
  }
}

describe("a batch is there whole after kill -9, or not at all", () => {
  test("on sqlite", async () => {
    using dir = new TempDir();
    await killInBatch(dir.path, {});
  });

  const reason = POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`;
  test.skipIf(POSTGRES_MISSING !== null)(`on postgresql${reason}`, async () => {
    using dir = new TempDir();
    const schema = await newSchema();
    try {
      await killInBatch(dir.path, { LUXHUB_DATABASE: schema.url });
    } finally {
      await schema.remove();
    }
  });
});
