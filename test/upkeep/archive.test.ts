/** The tar archive: a round trip through this program and through tar itself, and the detection of damage. */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { must } from "../../src/lib/assert.ts";
import { ArchiveReader, ArchiveWriter } from "../../src/upkeep/archive.ts";
import { fileTarget, openBackup } from "../../src/upkeep/backup-target.ts";
import { storedAt as findAt } from "../../src/upkeep/source.ts";
import { ArchiveUnwritten, type StoredBytes, writeNewFile } from "../../src/upkeep/upkeep.ts";
import { SMALL_DISK_BYTES, SmallDisk, whyNoSmallDisk } from "../support/small-disk.ts";

const MODIFIED_AT = 1_700_000_000_000;
const BLOCK_BYTES = 512;
const none = (): void => {};
const storedAt = async (path: string): Promise<StoredBytes> => must(await findAt(path), "the test wrote it");
const tar = Bun.which("tar");
const probe = mkdtempSync(join(tmpdir(), "luxhub-tar-"));
const noDisk = await whyNoSmallDisk(probe);
rmSync(probe, { recursive: true });
const skipped = noDisk === null ? "" : ` (skipped: ${noDisk})`;

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "luxhub-tar-"));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Every entry of an archive as text by its name. */
async function read(folder: string, bytes: Uint8Array): Promise<Readonly<Record<string, string>>> {
  const path = join(folder, "read.tar");
  writeFileSync(path, bytes);
  const archive = new ArchiveReader(openBackup(path));
  const texts: Record<string, string> = {};
  try {
    for (let entry = await archive.next(); entry !== null; entry = await archive.next())
      texts[entry.header.name] = await archive.text(entry, 1_000);
    return texts;
  } finally {
    await archive.close();
  }
}

type Head = { readonly name: string; readonly type?: string; readonly size: Uint8Array | string };

/** A head as 0.1.0 wrote it: ustar, with a size above 8 GiB in binary. */
function headOf({ name, type = "0", size }: Head): Buffer {
  const head = Buffer.alloc(BLOCK_BYTES);
  const fields: readonly (readonly [number, Uint8Array | string])[] = [
    [0, name],
    [100, "0000600"],
    [108, "0000000"],
    [116, "0000000"],
    [124, size],
    [136, (MODIFIED_AT / 1_000).toString(8).padStart(11, "0")],
    [148, " ".repeat(8)],
    [156, type],
    [257, "ustar\0" + "00"],
  ];
  for (const [at, value] of fields) Buffer.from(value).copy(head, at);
  const sum = head.reduce((total, byte) => total + byte, 0);
  head.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return head;
}

const block = (text: string): Buffer => Buffer.concat([Buffer.from(text)], BLOCK_BYTES);
const END = Buffer.alloc(2 * BLOCK_BYTES);
const ONE_FILE = Buffer.concat([headOf({ name: "a", size: "00000000005" }), block("hello"), END]);

describe("an archive that 0.1.0 wrote", () => {
  test("is read", () =>
    inFolder(async (folder) => expect(await read(folder, ONE_FILE)).toEqual({ a: "hello" })));

  test("is read with a size in binary", () =>
    inFolder(async (folder) => {
      const size = Uint8Array.of(0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5);
      const bytes = Buffer.concat([headOf({ name: "files/ab/x", size }), block("hello"), END]);
      expect(await read(folder, bytes)).toEqual({ "files/ab/x": "hello" });
    }));
});

describe("refuses", () => {
  test("a header with one flipped bit, unless its meaning is the same", () =>
    inFolder(async (folder) => {
      let [flips, refused] = [0, 0];
      for (let bit = 0; bit < BLOCK_BYTES * 8; bit += 9) {
        flips++; // another bit of each byte
        const flipped = Buffer.from(ONE_FILE);
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        const outcome = await read(folder, flipped).catch((error: unknown) => error);
        if (outcome instanceof Error) refused++;
        else expect(outcome).toEqual({ a: "hello" });
      }
      expect(refused).toBeGreaterThan(flips - 8);
    }));

  test("an entry that is not a plain file", () =>
    inFolder(async (folder) => {
      const link = Buffer.concat([headOf({ name: "a", type: "2", size: "00000000000" }), END]);
      await expect(read(folder, link)).rejects.toThrow("something other than plain files");
    }));

  for (const bytes of [100, BLOCK_BYTES, BLOCK_BYTES + 3, 2 * BLOCK_BYTES])
    test(`an archive that is cut short after ${bytes} bytes`, () =>
      inFolder(async (folder) => {
        await expect(read(folder, ONE_FILE.subarray(0, bytes))).rejects.toThrow("truncated");
      }));
});

describe("an archive", () => {
  /** Writes three files, one of them larger than a chunk. */
  async function write(folder: string): Promise<{ path: string; large: Uint8Array }> {
    const large = Uint8Array.from({ length: 2 ** 21 + 77 }, (_, i) => (i * 7) & 0xff);
    writeFileSync(join(folder, "large"), large);
    writeFileSync(join(folder, "empty"), "");
    const path = join(folder, "a.tar");
    const sink = await fileTarget(path).open();
    const archive = new ArchiveWriter(sink, MODIFIED_AT);
    const copied = await archive.add("files/ab/large", await storedAt(join(folder, "large")), none);
    expect(copied).toEqual({ size: large.length, sha256: Bun.SHA256.hash(large, "hex"), isWhole: true });
    await archive.add("empty", await storedAt(join(folder, "empty")), none);
    await archive.addText("last", "the end");
    await archive.end();
    await sink.finish();
    await archive.close();
    expect(archive.size).toBe(readFileSync(path).length);
    return { path, large };
  }

  test("returns the files that were added", () =>
    inFolder(async (folder) => {
      const { path, large } = await write(folder);
      const archive = new ArchiveReader(openBackup(path));
      const entryOf = async (name: string) => {
        const entry = await archive.next();
        if (entry?.header.name !== name) throw new Error(`no ${name}`);
        return entry;
      };
      const first = await entryOf("files/ab/large");
      expect(first.header).toMatchObject({ size: large.length, mode: 0o600, mtime: new Date(MODIFIED_AT) });
      const out = join(folder, "out");
      const copied = await writeNewFile(out, archive.chunks(first), none);
      expect(copied.sha256).toBe(Bun.SHA256.hash(large, "hex"));
      expect(readFileSync(out).equals(large)).toBe(true);
      const empty = await writeNewFile(join(folder, "out-2"), archive.chunks(await entryOf("empty")), none);
      expect(empty.size).toBe(0);
      const last = await entryOf("last");
      expect(await archive.text(last, 7)).toBe("the end");
      expect(await archive.next()).toBeNull();
      await archive.close();
    }));

  test.skipIf(tar === null)(
    `can be unpacked by tar${tar === null ? " (skipped: tar is not installed)" : ""}`,
    () =>
      inFolder(async (folder) => {
        const { path, large } = await write(folder);
        const into = join(folder, "into");
        const unpack = Bun.spawn(["sh", "-c", `mkdir "$1" && tar xf "$2" -C "$1"`, "sh", into, path]);
        expect(await unpack.exited).toBe(0);
        expect(readFileSync(join(into, "files/ab/large")).equals(large)).toBe(true);
        expect(readFileSync(join(into, "last"), "utf8")).toBe("the end");
      }),
  );

  test.skipIf(noDisk !== null)(`on a full disk fails with the reason${skipped}`, () =>
    inFolder(async (folder) => {
      await using disk = await SmallDisk.mount(join(folder, "disk"));
      writeFileSync(join(folder, "large"), Buffer.alloc(2 * SMALL_DISK_BYTES));
      const sink = await fileTarget(join(disk.inside(disk.path), "a.tar")).open();
      const archive = new ArchiveWriter(sink, MODIFIED_AT);
      try {
        await archive.add("large", await storedAt(join(folder, "large")), none);
        throw new Error("it was written");
      } catch (error) {
        expect(error).toBeInstanceOf(ArchiveUnwritten);
        expect(error).toMatchObject({ cause: { code: "ENOSPC" } });
      } finally {
        await archive.close();
      }
    }),
  );
});
