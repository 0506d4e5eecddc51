/** The short form of torture's standby (tools/torture/standby.ts): what fails between a first hub and its standby. */
import { expect, test } from "bun:test";
import { standbyRounds } from "../../tools/torture/standby-rounds.ts";
import { play } from "../../tools/torture/standby-scenes.ts";

test("under writers: after kill -9 what is missing is at most the lag; with --sync, and of a first that runs, nothing", async () => {
  const seed = Number(process.env["E2E_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`seed ${seed}`);
  const { rounds, acknowledged, faults } = await standbyRounds(3, seed, () => {});
  expect(faults).toEqual([]);
  expect(rounds).toBe(3);
  expect(Math.min(...Object.values(acknowledged))).toBeGreaterThan(20);
});

test.each([
  "link silent, then the standby is promoted",
  "a file that the first has lost",
  "the disk of the standby full, --sync",
  "of two copies the one that lags is promoted",
  "of two copies both are promoted",
  "the log was trimmed while the standby was away",
  "the standby is killed while it takes the base, and promoted before it has it",
])("%s", async (name) => {
  const { fault, notHere } = await play(name);
  if (notHere !== null) console.log(`skipped: ${notHere}`);
  expect(fault).toBeNull();
});
