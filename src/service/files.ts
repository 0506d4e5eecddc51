/**
 * The use cases of files. Invariant: every record has its bytes. Bytes are durable before their record is written, and
 * are removed after it is. A crash, or a removal during a backup, leaves orphans (bytes without a record): sweepShard()
 * removes them.
 */
import type { BlobContent, BlobWriter, Blobs } from "../blobs/blobs.ts";
import { fileNotFound, remove, upload } from "../domain/file.ts";
import { Rejection } from "../domain/decision.ts";
import { SEARCH_STEP_ROWS, SWEEP_BATCH } from "../domain/limits.ts";
import type { FileRecord } from "../domain/model.ts";
import type { Clock } from "../lib/clock.ts";
import { matchesWords } from "../lib/word-search.ts";
import { fileById, fileIdsAmong } from "../store/sql/files.ts";
import { nodeById } from "../store/sql/nodes.ts";
import { NO_ROW } from "../store/sql/query.ts";
import { taskById } from "../store/sql/tasks.ts";
import {
  fileNamesBelow,
  fileSizes,
  fileSizesBySeq,
  fileSizesBelow,
  fileSizesOf,
  fileTotals,
  filesBySeq,
  filesCountOf,
} from "../store/sql/files.ts";
import { type Committed, OutcomeUnknown, type Read, type Store, type Transact } from "../store/store.ts";
import {
  type CursorPage,
  ListPages,
  type PageRequest,
  type Position,
  START,
  loadRows,
} from "./list-pages.ts";
import { Scans, pageOfFound, partOf } from "./scan.ts";
import { UseCases } from "./use-cases.ts";

export type FileDraft = Pick<FileRecord, "name" | "contentType" | "metadata" | "nodeId" | "taskId">;

type FilePage = CursorPage<FileRecord>;

export class FileService extends UseCases {
  readonly #blobs: Blobs;
  readonly #pinned: () => boolean;
  readonly #isArriving: (blobId: string) => boolean;
  readonly #pages: ListPages;
  readonly #scans = new Scans();
  /** Blobs being saved: they may have no record yet, but are not orphans. */
  readonly #saving = new Set<string>();
  #shard = 0;

  /**
   * `pinned`: no bytes are removed, because a running backup may still have to copy them. `isArriving`: a standby takes
   * the bytes before the record.
   */
  constructor(
    store: Store,
    clock: Clock,
    blobs: Blobs,
    pinned: () => boolean,
    isArriving: (blobId: string) => boolean = () => false,
  ) {
    super(store, clock);
    this.#isArriving = isArriving;
    this.#blobs = blobs;
    this.#pinned = pinned;
    this.#pages = new ListPages(store);
  }

  begin(): Promise<BlobWriter> {
    return this.#blobs.begin();
  }

  /**
   * If the outcome of the write is unknown, the bytes stay; the next sweep removes them if they have no record.
   * `boundTo`: the node of the caller's key, if it is bound to one.
   */
  async save(
    transact: Transact<FileRecord>,
    writer: BlobWriter,
    draft: FileDraft,
    boundTo: string | null = null,
  ): Promise<Committed<FileRecord>> {
    this.#saving.add(writer.blobId);
    try {
      const { sha256, size } = await writer.finish();
      const uploadedAt = this.clock.now();
      const stored = { fileId: writer.blobId, sizeBytes: size, sha256, uploadedAt };
      const file = { ...draft, ...stored, attached: null, keptBytes: 0 };
      return await this.#record(transact, file, boundTo);
    } finally {
      this.#saving.delete(writer.blobId);
    }
  }

  /** `write` writes the records in a commit of its own. If it fails, the bytes are removed. */
  async saveWith<T>(
    contents: readonly (FileDraft & { readonly bytes: Uint8Array })[],
    write: (files: readonly FileRecord[]) => Promise<T>,
  ): Promise<T> {
    const files: FileRecord[] = [];
    const begun: string[] = [];
    try {
      for (const { bytes, ...draft } of contents) {
        const writer = await this.#blobs.begin();
        this.#saving.add(writer.blobId);
        begun.push(writer.blobId);
        try {
          await writer.write(bytes);
          const { sha256, size } = await writer.finish();
          files.push({
            ...draft,
            fileId: writer.blobId,
            sizeBytes: size,
            sha256,
            attached: null,
            uploadedAt: this.clock.now(),
            keptBytes: 0,
          });
        } finally {
          await writer.discard(); // does nothing after finish()
        }
      }
      return await write(files);
    } catch (error) {
      if (!(error instanceof OutcomeUnknown))
        for (const { fileId } of files) await this.#blobs.remove(fileId).catch(() => {});
      throw error;
    } finally {
      for (const blobId of begun) this.#saving.delete(blobId);
    }
  }

  async #record(
    transact: Transact<FileRecord>,
    file: FileRecord,
    boundTo: string | null,
  ): Promise<Committed<FileRecord>> {
    const load = {
      task: file.taskId === null ? NO_ROW : taskById(file.taskId),
      node: file.nodeId === null ? NO_ROW : nodeById(file.nodeId),
      own: boundTo === null ? NO_ROW : nodeById(boundTo),
    };
    try {
      return await transact(load, ({ task, node, own }) =>
        upload(file, task, node, boundTo === null ? null : { nodeId: boundTo, node: own }),
      );
    } catch (error) {
      // Bytes that may have a record stay. If the removal fails, the sweep does it, and the caller gets the first error.
      if (!(error instanceof OutcomeUnknown)) await this.#blobs.remove(file.fileId).catch(() => {});
      throw error;
    }
  }

  /** @throws {Rejection} file_not_found */
  async get(fileId: string): Promise<FileRecord> {
    const file = await this.store.read(fileById(fileId));
    if (!file) throw new Rejection(fileNotFound(fileId));
    return file;
  }

  /** `taskId`: only the files of this task. */
  async list(request: PageRequest, taskId: string | null): Promise<FilePage> {
    const page = await this.#pages.load(request, async (read) => ({
      total: await countOf(taskId, read),
      sizes: (slice) => (taskId === null ? fileSizes(slice) : fileSizesOf(taskId, slice)),
      rowsBySeq: filesBySeq,
    }));
    const { rows, total, lastSeq } = page;
    const hasMore = lastSeq !== null && request.page * request.perPage < total;
    return { ...request, rows, total, next: hasMore ? { before: lastSeq } : null };
  }

  after(taskId: string | null, { before }: Position, perPage: number): Promise<FilePage> {
    return this.store.readTogether(async (read) => {
      const sizes = await read(fileSizesBelow(taskId, before, perPage + 1));
      const { rows: shown, next } = pageOfFound(sizes, perPage, ({ seq }) => ({ before: seq }));
      const rows = await loadRows(shown, filesBySeq, read, (later) => this.store.read(later));
      const total = await countOf(taskId, read);
      return { rows, page: null, perPage, total, next };
    });
  }

  /**
   * `from` null: from the newest on. Each of `words` begins a word of the name. One call examines LIST_SCANNED_MAX
   * names.
   * @throws {PagesBusy}
   */
  async search(
    taskId: string | null,
    words: readonly string[],
    from: Position | null,
    perPage: number,
  ): Promise<FilePage> {
    const found: number[] = [];
    let end: Position | null = null;
    const step = async ({ before }: Position) =>
      partOf(
        await this.store.read(fileNamesBelow(taskId, before, SEARCH_STEP_ROWS)),
        SEARCH_STEP_ROWS,
        ({ seq }) => ({ before: seq }),
      );
    for await (const { rows, next } of this.#scans.steps(from ?? START, step)) {
      for (const { seq, name } of rows) if (matchesWords(words, name)) found.push(seq);
      end = next;
      if (found.length > perPage) break;
    }
    const { rows: shown, next } = pageOfFound(found, perPage, (before): Position => ({ before }), end);
    const rows = await this.store.readTogether(async (read) =>
      loadRows(await read(fileSizesBySeq(shown)), filesBySeq, read, (later) => this.store.read(later)),
    );
    return { rows, page: null, perPage, total: null, next };
  }

  /**
   * Null when the record exists but its bytes are missing. `asStream`: as the blobs' port says.
   * @throws {Rejection} file_not_found when it has been deleted since the record was read
   */
  async open(
    file: FileRecord,
    start: number,
    endExclusive: number,
    asStream?: "asStream",
  ): Promise<BlobContent | null> {
    const content = await this.#blobs.open(file.fileId, start, endExclusive, asStream);
    if (!content) await this.get(file.fileId);
    return content;
  }

  async remove(transact: Transact<FileRecord>, fileId: string): Promise<Committed<FileRecord>> {
    const now = this.clock.now();
    const removed = await transact({ file: fileById(fileId) }, ({ file }) => remove(file, fileId, now));
    // pinned() after the commit: a backup that starts later does not find the record.
    await this.removeBytes([fileId]);
    return removed;
  }

  /** Their records have been deleted. */
  async removeBytes(fileIds: readonly string[]): Promise<void> {
    if (this.#pinned()) return; // as in remove(); the sweep of orphans finds them
    for (const fileId of fileIds) await this.#blobs.remove(fileId);
  }

  /** Of the next shard. Returns how many. */
  async sweepShard(): Promise<number> {
    const shard = this.#shard;
    this.#shard = (shard + 1) % this.#blobs.shards;
    // A blob gets its record before it leaves #saving or ends to arrive, so any other listed blob has a record or is an
    // orphan.
    const isComing = (blobId: string): boolean => this.#saving.has(blobId) || this.#isArriving(blobId);
    const left = (await this.#blobs.list(shard)).filter((blobId) => !isComing(blobId));
    let removed = 0;
    while (left.length > 0) removed += await this.#sweepSome(left.splice(0, SWEEP_BATCH));
    return removed;
  }

  async #sweepSome(blobIds: readonly string[]): Promise<number> {
    const recorded = new Set(await this.store.read(fileIdsAmong(blobIds)));
    const orphans = blobIds.filter((blobId) => !recorded.has(blobId));
    if (orphans.length === 0 || this.#pinned()) return 0; // in this order, as in remove()
    for (const blobId of orphans) await this.#blobs.remove(blobId);
    return orphans.length;
  }
}

async function countOf(taskId: string | null, read: Read): Promise<number> {
  return taskId === null ? (await read(fileTotals())).files : read(filesCountOf(taskId));
}
