/** The use cases of files: a file that is deleted while it is being read. */
import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDiskBlobs } from "../../src/blobs/disk.ts";
import { accept } from "../../src/domain/decision.ts";
import type { FileRecord } from "../../src/domain/model.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { FileService } from "../../src/service/files.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";

test("a file deleted since its record was read is not found; a record without its bytes is a fault", async () => {
  const folder = await mkdtemp(join(tmpdir(), "luxhub-files-"));
  const store = openSqlite(join(folder, "db"), () => undefined);
  const blobs = await openDiskBlobs(folder);
  try {
    const files = new FileService(store, systemClock(), blobs, () => false);
    const fileId = Bun.randomUUIDv7();
    const words = { name: "a", sha256: "h", contentType: "", metadata: "{}" };
    const ofNone = { nodeId: null, taskId: null, attached: null, keptBytes: 0 };
    const file: FileRecord = { ...words, ...ofNone, fileId, sizeBytes: 1, uploadedAt: 1 };
    await expect(files.open(file, 0, 1)).rejects.toMatchObject({ code: "file_not_found" });
    await store.transact({}, () => accept(null, [{ kind: "file.saved", file }]));
    expect(await files.open(file, 0, 1)).toBeNull();
  } finally {
    await blobs.close();
    await store.close();
    await rm(folder, { recursive: true });
  }
});
