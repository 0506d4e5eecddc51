/** The contract of src/blobs/blobs.ts, tested on every engine; then the guarantees of the disk engine alone. */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BlobContent, type BlobWriter, type Blobs, BlobsFull } from "../../src/blobs/blobs.ts";
import { type DiskIo, openDiskBlobs } from "../../src/blobs/disk.ts";
import { FILE_PIECE_MAX_BYTES, FILE_UNCUT_MAX_BYTES } from "../../src/domain/limits.ts";
import { FailingDisk } from "../support/failing-disk.ts";
import { openPostgresBlobs } from "../../src/blobs/postgres.ts";
import { openPool } from "../../src/store/postgres/connection.ts";
import { POSTGRES_MISSING, sharedServer } from "../support/postgres.ts";
import { dropSchemas, takeSchema } from "../support/schemas.ts";

const MIB = 1024 * 1024;
const folders: string[] = [];
const opened: Blobs[] = [];
const removing: (() => Promise<void>)[] = [];

afterEach(async () => {
  // Also after a simulated crash: Bun throws when the garbage collector has to close a file.
  await Promise.all(opened.splice(0).map((blobs) => blobs.close()));
  for (const remove of removing.splice(0).toReversed()) await remove();
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true })));
});

afterAll(dropSchemas);

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "luxhub-blobs-"));
  folders.push(folder);
  return folder;
}

/** `reopen` opens the same blobs again, as the next start of a hub does. */
type Engine = {
  readonly name: string;
  /** Why it cannot run here; null: it can. */
  readonly skip: string | null;
  start(): Promise<{ blobs: Blobs; reopen(): Promise<Blobs> }>;
};

async function openPostgres(url: string): Promise<Blobs> {
  const blobs = openPostgresBlobs(url, 0);
  opened.push(blobs);
  return blobs;
}

const ENGINES: readonly Engine[] = [
  {
    name: "disk",
    skip: null,
    async start() {
      const folder = await newFolder();
      return { blobs: await openDisk(folder), reopen: () => openDisk(folder) };
    },
  },
  {
    name: "postgresql",
    skip: POSTGRES_MISSING,
    async start() {
      const { url, giveBack } = await takeSchema();
      removing.push(async () => giveBack());
      const pool = openPool(url, 1);
      removing.push(() => pool.close());
      const reopen = async (): Promise<Blobs> => {
        // Simulates a minute in which no hub has touched its uploads.
        await pool`UPDATE blobs SET touched_at = touched_at - interval '61 seconds'`;
        return openPostgres(url);
      };
      return { blobs: await openPostgres(url), reopen };
    },
  },
];

async function openDisk(folder: string, io?: DiskIo): Promise<Blobs> {
  const blobs = await openDiskBlobs(folder, io);
  opened.push(blobs);
  return blobs;
}

function sha256(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

/** Bytes that differ from their neighbours, so that a shift is noticed. */
function pattern(length: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length }, (_, i) => (i * 31 + (i >> 8)) & 0xff);
}

async function writeAll(writer: BlobWriter, bytes: Uint8Array, chunkBytes: number): Promise<void> {
  for (let at = 0; at < bytes.length; at += chunkBytes)
    await writer.write(bytes.subarray(at, at + chunkBytes));
}

async function put(blobs: Blobs, bytes: Uint8Array): Promise<string> {
  const writer = await blobs.begin();
  await writeAll(writer, bytes, 64 * 1024);
  await writer.finish();
  return writer.blobId;
}

/** "" if it has just been closed. */
function pathOfDescriptor(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return "";
  }
}

async function read(content: BlobContent | null): Promise<Uint8Array | null> {
  return content === null ? null : new Response(content).bytes();
}

if (POSTGRES_MISSING === null) await sharedServer(); // so that its start does not count towards a test's timeout

for (const engine of ENGINES) {
  const suite = engine.skip === null ? describe : describe.skip;
  const reason = engine.skip === null ? "" : ` (skipped: ${engine.skip})`;

  suite(`blobs: ${engine.name}${reason}`, () => {
    for (const [name, size, chunkBytes] of [
      ["nothing", 0, 1],
      ["one byte", 1, 1],
      ["many small chunks", 300_000, 7_001],
      ["chunks as large as the buffer", MIB, 256 * 1024],
      ["chunks larger than the buffer", 3 * MIB + 1, MIB + 3],
      ["small and large chunks in turn", 2 * MIB, 300_001],
    ] as const) {
      test(`returns what was written: ${name}`, async () => {
        const { blobs } = await engine.start();
        const bytes = pattern(size);
        const writer = await blobs.begin();
        await writeAll(writer, bytes, chunkBytes);
        expect(writer.size).toBe(size);
        expect(await writer.finish()).toEqual({ sha256: sha256(bytes), size });
        expect(await read(await blobs.open(writer.blobId, 0, size))).toEqual(bytes);
      });
    }

    test("a large part as a stream: read to its end, or cancelled at any time", async () => {
      const { blobs } = await engine.start();
      const bytes = pattern(FILE_UNCUT_MAX_BYTES + 1_000_001);
      const blobId = await put(blobs, bytes);
      const openPart = async (): Promise<ReadableStream<Uint8Array>> => {
        const content = await blobs.open(blobId, 7, bytes.length, "asStream");
        if (!(content instanceof ReadableStream)) throw new Error("no stream");
        return content;
      };
      expect(sha256((await read(await openPart())) ?? new Uint8Array())).toBe(sha256(bytes.subarray(7)));
      await (await openPart()).cancel();
      const reader = (await openPart()).getReader();
      expect((await reader.read()).value?.length).toBeLessThanOrEqual(FILE_PIECE_MAX_BYTES);
      const pending = reader.read();
      await reader.cancel();
      expect((await pending).done).toBe(true);
      const small = await blobs.open(blobId, 0, 1_000, "asStream");
      expect(await read(small)).toEqual(bytes.subarray(0, 1_000));
      if (engine.name === "disk" && existsSync("/proc/self/fd")) {
        const isOpen = (): boolean =>
          readdirSync("/proc/self/fd").some((fd) => pathOfDescriptor(fd).endsWith(blobId));
        while (isOpen()) await Bun.sleep(1);
      }
    });

    test("does not keep a reference to a chunk", async () => {
      const { blobs } = await engine.start();
      const writer = await blobs.begin();
      const chunk = new Uint8Array([1, 2, 3]);
      await writer.write(chunk);
      chunk.fill(9);
      await writer.finish();
      expect(await read(await blobs.open(writer.blobId, 0, 3))).toEqual(new Uint8Array([1, 2, 3]));
    });

    test("opens any part", async () => {
      const { blobs } = await engine.start();
      const bytes = pattern(1000);
      const id = await put(blobs, bytes);
      for (const [start, end] of [
        [0, 1],
        [999, 1000],
        [10, 20],
        [0, 1000],
        [5, 5],
      ] as const) {
        expect(await read(await blobs.open(id, start, end))).toEqual(bytes.subarray(start, end));
      }
    });

    test("open() is null for a missing blob, or past its end", async () => {
      const { blobs } = await engine.start();
      const id = await put(blobs, pattern(10));
      expect(await blobs.open(id, 0, 11)).toBeNull();
      expect(await blobs.open(Bun.randomUUIDv7(), 0, 0)).toBeNull();
    });

    test("hides a blob until finish()", async () => {
      const { blobs } = await engine.start();
      const writer = await blobs.begin();
      await writer.write(pattern(MIB));
      expect(await blobs.open(writer.blobId, 0, 0)).toBeNull();
      await writer.discard();
    });

    test("accepts an id once", async () => {
      const { blobs } = await engine.start();
      const id = Bun.randomUUIDv7();
      const writer = await blobs.begin(id);
      expect(writer.blobId).toBe(id);
      await expect(blobs.begin(id)).rejects.toThrow();
      await writer.finish();
      expect(await blobs.open(id, 0, 0)).not.toBeNull();
    });

    for (const bad of [
      "",
      "..",
      "../../etc/passwd",
      "a/b",
      "x".repeat(36),
      Bun.randomUUIDv7().toUpperCase(),
      `${Bun.randomUUIDv7()}\n`,
    ]) {
      test(`refuses an id that is not a UUID: ${JSON.stringify(bad)}`, async () => {
        const { blobs } = await engine.start();
        await expect(blobs.begin(bad)).rejects.toThrow(TypeError);
        await expect(blobs.open(bad, 0, 0)).rejects.toThrow(TypeError);
        await expect(blobs.remove(bad)).rejects.toThrow(TypeError);
      });
    }

    test("discard() leaves nothing, and is idempotent", async () => {
      const { blobs, reopen } = await engine.start();
      const writer = await blobs.begin();
      await writer.write(pattern(MIB));
      await Promise.all([writer.discard(), writer.discard()]);
      await writer.discard();
      expect(() => writer.write(pattern(1))).toThrow();
      expect(() => writer.finish()).toThrow();
      expect(await blobs.open(writer.blobId, 0, 0)).toBeNull();
      expect(await (await reopen()).sweepUnfinished()).toBe(0);
    });

    test("discard() waits for a running write", async () => {
      const { blobs, reopen } = await engine.start();
      const writer = await blobs.begin();
      const writing = writer.write(pattern(4 * MIB));
      await writer.discard();
      await writing;
      expect(await (await reopen()).sweepUnfinished()).toBe(0);
    });

    test("discard() after finish() keeps the blob", async () => {
      const { blobs } = await engine.start();
      const writer = await blobs.begin();
      await writer.write(pattern(5));
      await writer.finish();
      await writer.discard();
      expect(await read(await blobs.open(writer.blobId, 0, 5))).toEqual(pattern(5));
    });

    test("remove() returns whether there was a blob", async () => {
      const { blobs } = await engine.start();
      const id = await put(blobs, pattern(10));
      expect(await blobs.remove(id)).toBe(true);
      expect(await blobs.remove(id)).toBe(false);
      expect(await blobs.open(id, 0, 1)).toBeNull();
    });

    test("the shards together list every finished blob once, and no other", async () => {
      const { blobs } = await engine.start();
      const open = await blobs.begin();
      const ids = await Promise.all(Array.from({ length: 30 }, () => put(blobs, pattern(10))));
      const removed = ids.pop() ?? "";
      await blobs.remove(removed);
      const shards = await Promise.all(Array.from({ length: blobs.shards }, (_, i) => blobs.list(i)));
      expect(shards.flat().toSorted()).toEqual(ids.toSorted());
      await open.discard();
    });

    test("the sweep deletes unfinished blobs of a crash, and nothing else", async () => {
      const { blobs: crashed, reopen } = await engine.start();
      const finished = await put(crashed, pattern(10));
      await (await crashed.begin()).write(pattern(10)); // never finished
      const blobs = await reopen();
      const live = await blobs.begin();
      await live.write(pattern(10));
      expect(await blobs.sweepUnfinished()).toBe(1);
      expect(await blobs.sweepUnfinished()).toBe(0);
      await live.finish();
      expect(await read(await blobs.open(live.blobId, 0, 10))).toEqual(pattern(10));
      expect(await read(await blobs.open(finished, 0, 10))).toEqual(pattern(10));
    });

    test("the sweep deletes no blob that is being started", async () => {
      const { blobs } = await engine.start();
      for (let round = 0; round < 200; round++) {
        const [one, , other] = await Promise.all([blobs.begin(), blobs.sweepUnfinished(), blobs.begin()]);
        await Promise.all([one.finish(), other.finish()]);
      }
    });

    test("probe() writes, and leaves nothing", async () => {
      const { blobs, reopen } = await engine.start();
      expect(blobs.writable).toBe(true);
      await blobs.probe();
      expect(blobs.writable).toBe(true);
      expect(await (await reopen()).sweepUnfinished()).toBe(0);
    });

    test("close() discards open writers, and begin() rejects afterwards", async () => {
      const { blobs, reopen } = await engine.start();
      await (await blobs.begin()).write(pattern(10));
      await blobs.close();
      await blobs.close();
      await expect(blobs.begin()).rejects.toThrow();
      expect(await (await reopen()).sweepUnfinished()).toBe(0);
    });
  });
}

/** The names of all files under `folder`. */
async function filesUnder(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
}

function systemError(code: string): Error {
  return Object.assign(new Error(code), { code });
}

describe("blobs: the disk engine alone", () => {
  test("puts a file into the directory of the last two digits of its id, readable by its owner only", async () => {
    const folder = await newFolder();
    const id = await put(await openDisk(folder), pattern(10));
    const subfolder = join(folder, "files", id.slice(-2));
    const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;
    expect(await modeOf(join(subfolder, id))).toBe(0o600);
    expect(await modeOf(subfolder)).toBe(0o700);
    expect(await modeOf(join(folder, "files"))).toBe(0o700);
    expect(await filesUnder(folder)).toEqual([id]);
  });

  test("continues after a short write", async () => {
    const shortIo: DiskIo = {
      write: async (file, bytes) =>
        (await file.write(bytes.subarray(0, 1 + (bytes.length >> 1)))).bytesWritten,
      datasync: (file) => file.datasync(),
    };
    const blobs = await openDisk(await newFolder(), shortIo);
    const id = await put(blobs, pattern(MIB));
    expect(await read(await blobs.open(id, 0, MIB))).toEqual(pattern(MIB));
  });

  for (const [when, failing] of [
    ["a write", { write: () => Promise.reject(systemError("ENOSPC")) }],
    ["the last sync", { datasync: () => Promise.reject(systemError("EDQUOT")) }],
  ] as const) {
    test(`rejects with BlobsFull when the disk is full at ${when}, and leaves nothing`, async () => {
      const folder = await newFolder();
      const io: DiskIo = {
        write: async (file, bytes) => (await file.write(bytes)).bytesWritten,
        datasync: (file) => file.datasync(),
        ...failing,
      };
      const writer = await (await openDisk(folder, io)).begin();
      await expect(writeAll(writer, pattern(MIB), 100_000).then(() => writer.finish())).rejects.toThrow(
        BlobsFull,
      );
      await writer.discard();
      expect(await filesUnder(folder)).toEqual([]);
    });
  }

  test("writable is false from a failed write until the next durable one", async () => {
    const disk = new FailingDisk();
    const blobs = await openDisk(await newFolder(), disk.io);
    for (const fault of ["ENOSPC", "EIO"] as const) {
      disk.fileFault = fault;
      const writer = await blobs.begin();
      await writer.write(pattern(10));
      expect(blobs.writable).toBe(true);
      await expect(writer.finish()).rejects.toThrow(fault === "EIO" ? "injected EIO" : BlobsFull);
      await writer.discard();
      expect(blobs.writable).toBe(false);
      await expect(blobs.probe()).rejects.toThrow();
      expect(blobs.writable).toBe(false);
      disk.fileFault = null;
      if (fault === "EIO") await put(blobs, pattern(10));
      else await blobs.probe();
      expect(blobs.writable).toBe(true);
    }
  });

  test("leaves nothing when the file cannot be moved into place", async () => {
    const folder = await newFolder();
    const blobs = await openDisk(folder);
    const writer = await blobs.begin();
    await rm(join(folder, "files", writer.blobId.slice(-2)), { recursive: true });
    await writer.write(pattern(10));
    await expect(writer.finish()).rejects.toThrow();
    await writer.discard();
    expect(await filesUnder(folder)).toEqual([]);
  });
});
