/** A file of 1 GiB through a hub and back: on the disk, and through two hubs on PostgreSQL. Memory stays flat. */
import { MIB, download, upload } from "../../test/e2e/large-file.ts";
import { Hub, TempDir, memoryMib } from "../../test/e2e/program.ts";
import { POSTGRES_MISSING, newSchema } from "../../test/support/postgres.ts";
import { withHub } from "./overload.ts";
import { type Figure, type Section, notRun } from "./section.ts";

const FILE_MIB = 1_024;
/** What a hub's memory may grow by while a file passes, of any size. */
export const GREW_MAX_MIB = 64;

export type LargeFileReport = {
  readonly isSame: boolean;
  readonly grewMib: number;
};

/** Sends a file to the first hub and reads it at the second, which may be the same. */
export async function measureLargeFile(
  [to, from]: readonly [Hub, Hub],
  mib: number,
): Promise<LargeFileReport> {
  await download(from, (await upload(to, 1)).fileId); // loads what the first file loads
  const hubs = [to, from];
  const before = hubs.map(({ pid }) => memoryMib(pid, "VmRSS"));
  const { fileId, sha256 } = await upload(to, mib);
  const read = await download(from, fileId);
  const grew = hubs.map(({ pid }, i) => memoryMib(pid, "VmHWM") - (before[i] ?? 0));
  return { isSame: read.size === mib * MIB && read.sha256 === sha256, grewMib: Math.max(...grew) };
}

function figureOf(where: string, mib: number, { isSame, grewMib }: LargeFileReport): Figure {
  return {
    what: `Memory taken while ${mib} MiB went up and down, ${where}, MiB; the same bytes`,
    value: `${grewMib.toFixed(0)}; ${isSame ? "yes" : "no"}`,
    goal: `<= ${GREW_MAX_MIB}; yes`,
    held: isSame && grewMib <= GREW_MAX_MIB,
  };
}

export const largeFilesSection: Section = {
  name: "files",
  title: "Large files",
  limitMs: 10 * 60_000,
  async run(scale, _seed, progress) {
    const mib = Math.ceil(FILE_MIB * scale);
    progress(`${mib} MiB on the disk`);
    const onDisk = figureOf("on the disk", mib, await withHub((hub) => measureLargeFile([hub, hub], mib)));
    if (POSTGRES_MISSING !== null) return [onDisk, notRun("Files in PostgreSQL", POSTGRES_MISSING)];
    progress(`${mib} MiB in PostgreSQL`);
    using dir = new TempDir();
    const { url, remove } = await newSchema();
    const start = (name: string): Promise<Hub> =>
      Hub.start({ data: dir.join(name), env: { LUXHUB_DATABASE: url } });
    await using a = await start("a");
    await using b = await start("b");
    const inPostgres = figureOf(
      "from one hub to another on PostgreSQL",
      mib,
      await measureLargeFile([a, b], mib),
    );
    await remove();
    return [onDisk, inPostgres];
  },
};
