/** Damage to the database and its log: torture/damage.ts in short. E2E_SEED repeats a run's places. */
import { expect, test } from "bun:test";
import { damage } from "../../tools/torture/damage.ts";

test("each of 12 kinds and places of damage gives a right answer or a refusal", async () => {
  const seed = Number(process.env["E2E_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const report = await damage(12, seed, () => {});
  console.log(`damage, seed ${seed}: ${JSON.stringify(report)}`);
  expect(report.faults).toEqual([]);
  expect(report.refused).toBeGreaterThan(0);
  expect(report.right).toBeGreaterThan(0);
});
