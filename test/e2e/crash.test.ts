/**
 * A 200 means on disk: writers keep a ledger of every success they were told of, the hub is killed with SIGKILL in the
 * middle of it, again and again, and after each start everything in the ledger is there, once (torture/crash.ts).
 *
 * The moments are random and printed with their seed; E2E_SEED repeats a run's moments, if not the machine's timing.
 */
import { expect, test } from "bun:test";
import { crash } from "../torture/crash.ts";

const CYCLES = 6;
/** A writer that never gets to work proves nothing. */
const WORK_EACH_CYCLE = 100;

test("every acknowledged write survives kill -9", async () => {
  const seed = Number(process.env["E2E_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`seed ${seed}`);
  const { ledger, findings, recoveriesMs } = await crash(CYCLES, seed, console.log);
  expect(findings.words).toEqual([]);
  expect(ledger.faults).toEqual([]);
  expect(recoveriesMs).toHaveLength(CYCLES);
  expect(ledger.acknowledged).toBeGreaterThan(CYCLES * WORK_EACH_CYCLE);
  for (const kind of [ledger.completed, ledger.received, ledger.acked, ledger.files, ledger.signedIn]) {
    expect(kind.size).toBeGreaterThan(CYCLES);
  }
  expect([...ledger.ended.keys()].toSorted()).toEqual([
    "/node/leave",
    "/task/cancel",
    "/task/fail",
    "/task/release",
    "/task/retry",
  ]);
});
