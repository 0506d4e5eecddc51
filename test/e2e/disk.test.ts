/**
 * A full disk, in short: the rounds of torture/disk.ts once each, against the real program on a tmpfs of 16 MiB. Skipped,
 * with the reason, where none can be mounted.
 */
import { expect, test } from "bun:test";
import {
  type Extent,
  beatOnFullDisk,
  fillOnce,
  newDiskReport,
  startOnFullDisk,
} from "../../tools/torture/disk.ts";
import { whyNoSmallDisk } from "../support/small-disk.ts";
import { TempDir } from "./program.ts";

using folder = new TempDir();
const reason = await whyNoSmallDisk(folder.join("try"));
if (reason !== null) console.log(`e2e/disk.test.ts is skipped: ${reason}`);
const onSmallDisk = reason === null ? test : test.skip;
const skipped = reason === null ? "" : ` (skipped: ${reason})`;

const ROUNDS: readonly (readonly [string, Extent])[] = [
  [
    "full data disk: reads continue, also after a restart, writes are 507, and freed space is used without a restart",
    "data",
  ],
  ["full disk for files: uploads are 507 and everything else continues", "files"],
];

for (const [name, extent] of ROUNDS)
  onSmallDisk(`${name}${skipped}`, async () => {
    const report = newDiskReport();
    await fillOnce(extent, report);
    expect(report.faults).toEqual([]);
    expect(report.refused).toBeGreaterThan(10);
    expect(report.recoveriesMs).toHaveLength(1);
  });

onSmallDisk(
  `on a full disk the log is written back into the database, and its room serves further writes${skipped}`,
  async () => {
    const { statuses, logBytes } = await beatOnFullDisk();
    expect(new Set(statuses)).toEqual(new Set([200]));
    const [before, after] = logBytes;
    expect(before).toBeGreaterThan(1024 * 1024);
    expect(after).toBeLessThan(before / 4);
  },
);

onSmallDisk(
  `a first start on a full disk is refused in one line and does not block the next${skipped}`,
  async () => {
    const report = newDiskReport();
    await startOnFullDisk(report);
    expect(report.faults).toEqual([]);
  },
);
