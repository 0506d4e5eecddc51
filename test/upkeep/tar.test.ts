/** The blocks of a tar archive: what is written is read back, by this program and by tar itself, and damage is seen. */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TAR_BLOCK_BYTES, decodeTarHead, encodeTarHead, tarPadding } from "../../src/lib/tar.ts";
import { ArchiveReader, ArchiveWriter } from "../../src/upkeep/archive.ts";

const MODIFIED_AT = 1_700_000_000_000;
const head = (name: string, size: number) => ({ name, size, modifiedAt: MODIFIED_AT });
const none = (): void => {};

describe("a head", () => {
  for (const size of [0, 1, 511, 512, 8 ** 11 - 1, 8 ** 11, 2 ** 45])
    test(`of ${size} bytes`, () => {
      const block = encodeTarHead(head("files/ab/name", size));
      expect(block).toHaveLength(TAR_BLOCK_BYTES);
      expect(decodeTarHead(block)).toEqual(head("files/ab/name", size));
    });

  test("with any one bit flipped is not read, or as what it was", () => {
    const whole = head("luxhub.db", 1_234_567);
    const block = encodeTarHead(whole);
    for (let bit = 0; bit < block.length * 8; bit++) {
      const flipped = block.slice();
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      let read: unknown = whole;
      try {
        read = decodeTarHead(flipped);
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
      }
      expect(read).toEqual(whole);
    }
  });

  test("of anything but a plain file is refused", () => {
    const link = Buffer.from(encodeTarHead(head("a", 0)));
    link.write("2", 156);
    link.write(
      `${(link.reduce((sum, byte) => sum + byte, 0) - link.subarray(148, 156).reduce((s, b) => s + b, 0) + 8 * 32).toString(8).padStart(6, "0")}\0 `,
      148,
    );
    expect(() => decodeTarHead(link)).toThrow("something else than plain files");
  });

  test("takes no name that it cannot hold", () => {
    expect(() => encodeTarHead(head("a".repeat(101), 0))).toThrow("no name");
    expect(() => encodeTarHead(head("ä", 0))).toThrow("no name");
  });

  test("an empty block is the end", () => {
    expect(decodeTarHead(new Uint8Array(TAR_BLOCK_BYTES))).toBeNull();
    expect([0, 1, 511, 512, 513].map(tarPadding)).toEqual([0, 511, 1, 0, 511]);
  });
});

describe("an archive", () => {
  const tar = Bun.which("tar");

  async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), "luxhub-tar-"));
    try {
      await work(folder);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  /** One of three files, of which one is larger than a buffer. */
  async function write(folder: string): Promise<{ path: string; large: Uint8Array }> {
    const large = Uint8Array.from({ length: 2 ** 21 + 77 }, (_, i) => (i * 7) & 0xff);
    writeFileSync(join(folder, "large"), large);
    writeFileSync(join(folder, "empty"), "");
    const path = join(folder, "a.tar");
    const archive = await ArchiveWriter.create(path, MODIFIED_AT);
    const copied = await archive.addFile("files/ab/large", join(folder, "large"), none);
    expect(copied).toEqual({ size: large.length, sha256: Bun.SHA256.hash(large, "hex"), whole: true });
    await archive.addFile("empty", join(folder, "empty"), none);
    await archive.addBytes("last", new TextEncoder().encode("the end"));
    await archive.finish();
    await archive.close();
    return { path, large };
  }

  test("gives back what was put in", () =>
    inFolder(async (folder) => {
      const { path, large } = await write(folder);
      const archive = await ArchiveReader.open(path);
      const first = await archive.next();
      expect(first).toEqual(head("files/ab/large", large.length));
      const out = join(folder, "out");
      const copied = await archive.copyTo(out, first ?? head("", 0), none);
      expect(copied.sha256).toBe(Bun.SHA256.hash(large, "hex"));
      expect(readFileSync(out).equals(large)).toBe(true);
      const second = await archive.next();
      expect(second).toEqual(head("empty", 0));
      await archive.copyTo(join(folder, "out-2"), second ?? head("", 0), none);
      const third = await archive.next();
      expect(new TextDecoder().decode(await archive.bytes(third ?? head("", 0), 7))).toBe("the end");
      expect(await archive.next()).toBeNull();
      await archive.close();
    }));

  test.skipIf(tar === null)(`can be unpacked by tar${tar === null ? " (skipped: there is none)" : ""}`, () =>
    inFolder(async (folder) => {
      const { path, large } = await write(folder);
      const into = join(folder, "into");
      const unpack = Bun.spawn(["sh", "-c", `mkdir "$1" && tar xf "$2" -C "$1"`, "sh", into, path]);
      expect(await unpack.exited).toBe(0);
      expect(readFileSync(join(into, "files/ab/large")).equals(large)).toBe(true);
      expect(readFileSync(join(into, "last"), "utf8")).toBe("the end");
    }),
  );
});
