/**
 * A full disk, in short: the rounds of torture/disk.ts once each, against the real program on a tmpfs of 16 MiB. Skipped,
 * with the reason, where none can be mounted.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import {
  type Extent,
  RECOVERY_MS,
  beatOnFullDisk,
  fillOnce,
  newDiskReport,
  startOnFullDisk,
} from "../torture/disk.ts";
import { whyNoSmallDisk } from "../torture/small-disk.ts";
import { TempDir } from "./program.ts";

setDefaultTimeout(60_000); // much of it waits, and the machine may be busy

using folder = new TempDir();
const reason = await whyNoSmallDisk(folder.join("try"));
if (reason !== null) console.log(`e2e/disk.test.ts is skipped: ${reason}`);
const onSmallDisk = reason === null ? test : test.skip;
const skipped = reason === null ? "" : ` (skipped: ${reason})`;

const ROUNDS: readonly (readonly [string, Extent])[] = [
  [
    "the data is on a full disk: reads go on, also after a restart, writes are 507, and with room all is well",
    "data",
  ],
  ["only the files are on a full disk: uploads are 507 and everything else goes on", "files"],
];

for (const [name, extent] of ROUNDS)
  onSmallDisk(
    `${name}${skipped}`,
    async () => {
      const report = newDiskReport();
      await fillOnce(extent, report);
      expect(report.faults).toEqual([]);
      expect(report.refused).toBeGreaterThan(10);
      expect(report.recoveriesMs).toHaveLength(1);
      for (const tookMs of report.recoveriesMs) expect(tookMs).toBeLessThan(RECOVERY_MS);
    },
    60_000,
  );

onSmallDisk(
  `on a full disk the log is written back into the database, and its room serves further writes${skipped}`,
  async () => {
    const { statuses, logBytes } = await beatOnFullDisk();
    expect(new Set(statuses)).toEqual(new Set([200]));
    const [before, after] = logBytes;
    expect(before).toBeGreaterThan(1024 * 1024);
    expect(after).toBeLessThan(before / 4);
  },
  60_000,
);

onSmallDisk(
  `a first start on a full disk is refused in one line and leaves nothing in the way of the next${skipped}`,
  async () => {
    const report = newDiskReport();
    await startOnFullDisk(report);
    expect(report.faults).toEqual([]);
  },
  60_000,
);
