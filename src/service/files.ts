/**
 * The use cases of files. The bytes are on disk before their record is; a record without bytes cannot be, bytes without
 * a record can only be left by a crash.
 */
import type { BlobContent, BlobWriter, Blobs } from "../blobs/blobs.ts";
import { type FileRecord, fileNotFound, remove, upload } from "../domain/file.ts";
import { Rejection } from "../domain/decision.ts";
import type { Clock } from "../lib/clock.ts";
import { NOTHING, fileById, nodeById, taskById } from "../store/queries.ts";
import { filePage, fileSizes, filesById, filesCount } from "../store/list-queries.ts";
import type { Store, Transact } from "../store/store.ts";
import { type Page, type PageRequest, pageInParts } from "./pages.ts";

/** What the uploader says of a file. */
export type FileDraft = Pick<FileRecord, "name" | "contentType" | "metadata" | "nodeId" | "taskId">;

export class FileService {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #blobs: Blobs;

  constructor(store: Store, clock: Clock, blobs: Blobs) {
    this.#store = store;
    this.#clock = clock;
    this.#blobs = blobs;
  }

  /** A writer for the bytes of a new file; give it to `save`, or discard it. */
  begin(): Promise<BlobWriter> {
    return this.#blobs.begin();
  }

  /** Makes the bytes durable, then records the file. If it cannot be recorded, nothing is left. */
  async save(transact: Transact, writer: BlobWriter, draft: FileDraft): Promise<FileRecord> {
    const { sha256, size } = await writer.finish();
    const fileId = writer.blobId;
    const file: FileRecord = { ...draft, fileId, sizeBytes: size, sha256, uploadedAt: this.#clock.now() };
    const load = {
      task: draft.taskId === null ? NOTHING : taskById(draft.taskId),
      node: draft.nodeId === null ? NOTHING : nodeById(draft.nodeId),
    };
    try {
      return await transact(load, ({ task, node }) => upload(file, task, node));
    } catch (error) {
      await this.#blobs.remove(fileId);
      throw error;
    }
  }

  /** @throws {Rejection} file_not_found */
  async get(fileId: string): Promise<FileRecord> {
    const file = await this.#store.read(fileById(fileId));
    if (!file) throw new Rejection(fileNotFound(fileId));
    return file;
  }

  async list(page: PageRequest): Promise<Page<FileRecord>> {
    return pageInParts(page, await this.#store.read(filesCount()), {
      slice: (slice) => this.#store.read(filePage(slice)),
      sizes: (slice) => this.#store.read(fileSizes(slice)),
      some: (ids) => this.#store.read(filesById(ids)),
      sizeOf: ({ fileId, name, metadata }) => ({ id: fileId, bytes: name.length + metadata.length }),
    });
  }

  /** The bytes from `start` to before `endExclusive`; null when they are not where the record says. */
  open(file: FileRecord, start: number, endExclusive: number): Promise<BlobContent | null> {
    return this.#blobs.open(file.fileId, start, endExclusive);
  }

  async remove(transact: Transact, fileId: string): Promise<FileRecord> {
    const now = this.#clock.now();
    const removed = await transact({ file: fileById(fileId) }, ({ file }) => remove(file, fileId, now));
    await this.#blobs.remove(fileId);
    return removed;
  }
}
