/**
 * Orphans (bytes without a record) are removed shard by shard, except those of an upload that is about to be recorded,
 * and except while a backup copies files.
 */
import { afterEach, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDiskBlobs } from "../../src/blobs/disk.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { type FileDraft, FileService } from "../../src/service/files.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Transact } from "../../src/store/store.ts";

const DRAFT: FileDraft = {
  name: "a",
  contentType: "text/plain",
  metadata: "{}",
  nodeId: null,
  taskId: null,
};

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function openScene() {
  const folder = await mkdtemp(join(tmpdir(), "luxhub-orphans-"));
  closing.push(() => rm(folder, { recursive: true }));
  const store = openSqlite(join(folder, "db"), (error) => {
    throw error;
  });
  closing.push(() => store.close());
  const blobs = await openDiskBlobs(folder);
  closing.push(() => blobs.close());
  const scene = { pinned: false, arriving: new Set<string>() };
  const files = new FileService(
    store,
    systemClock(),
    blobs,
    () => scene.pinned,
    (blobId) => scene.arriving.has(blobId),
  );
  const bytes = new TextEncoder().encode("some bytes");
  return {
    scene,
    store,
    files,
    upload: async (transact: Transact) => {
      const writer = await files.begin();
      await writer.write(bytes);
      return files.save(transact, writer, DRAFT);
    },
    /** Bytes on disk whose record was never written. */
    orphan: async () => {
      const writer = await blobs.begin();
      await writer.write(bytes);
      await writer.finish();
      return writer.blobId;
    },
    there: async (blobId: string) => (await blobs.open(blobId, 0, bytes.length)) !== null,
    /** Every shard once. */
    sweep: async () => {
      let removed = 0;
      for (let shard = 0; shard < blobs.shards; shard++) removed += await files.sweepShard();
      return removed;
    },
  };
}

test("bytes without a record are removed, bytes with a record stay", async () => {
  const { store, upload, orphan, there, sweep } = await openScene();
  const kept = await Promise.all(Array.from({ length: 20 }, () => upload(store.transact)));
  const lost = await Promise.all(Array.from({ length: 20 }, orphan));
  expect(await sweep()).toBe(20);
  expect(await Promise.all(kept.map(({ fileId }) => there(fileId)))).toEqual(kept.map(() => true));
  expect(await Promise.all(lost.map(there))).toEqual(lost.map(() => false));
  expect(await sweep()).toBe(0);
});

test("an upload whose record is not written yet is kept", async () => {
  const { store, upload, there, sweep } = await openScene();
  const waiting = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const slowly: Transact = async (load, decide) => {
    waiting.resolve();
    await go.promise;
    return store.transact(load, decide);
  };
  const uploading = upload(slowly);
  await waiting.promise; // the bytes are in place, the record is not
  expect(await sweep()).toBe(0);
  go.resolve();
  const { fileId } = await uploading;
  expect(await sweep()).toBe(0);
  expect(await there(fileId)).toBe(true);
});

test("bytes that a standby has taken before their record are kept", async () => {
  const { scene, orphan, there, sweep } = await openScene();
  const arriving = await orphan();
  scene.arriving.add(arriving);
  const lost = await orphan();
  expect(await sweep()).toBe(1);
  expect([await there(arriving), await there(lost)]).toEqual([true, false]);
});

test("no bytes are removed during a backup; afterwards those of files deleted meanwhile are", async () => {
  const { scene, store, files, upload, orphan, there, sweep } = await openScene();
  const { fileId } = await upload(store.transact);
  const lost = await orphan();
  scene.pinned = true;
  await files.remove(store.transact, fileId);
  expect(await sweep()).toBe(0);
  expect([await there(fileId), await there(lost)]).toEqual([true, true]);
  scene.pinned = false;
  expect(await sweep()).toBe(2);
  expect([await there(fileId), await there(lost)]).toEqual([false, false]);
});
