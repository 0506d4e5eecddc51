/** The reads and writes of file records. */
import type { FileRecord } from "../../domain/model.ts";
import type { Query, Row } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import {
  NO_ROWS,
  type Sized,
  type Slice,
  always,
  count,
  many,
  one,
  padded,
  pageRows,
  placeholders,
  rowsBySeq,
  sizes,
} from "./query.ts";
import { toFile } from "./rows.ts";
import { EVERYTHING } from "./conflict-keys.ts";
import { FILES, FILE_TOTALS } from "./tables.ts";
import { type Writes, evict } from "./write.ts";
import { add, added, drop, update, whole } from "./write-statement.ts";

export function fileById(fileId: string): Query<FileRecord | null> {
  return one(`SELECT * FROM files WHERE file_id = $1`, [fileId], toFile, ["files"]);
}

/** Oldest first. */
export function filesById(fileIds: readonly string[]): Query<readonly FileRecord[]> {
  if (fileIds.length === 0) return NO_ROWS;
  const ids = padded(fileIds);
  const sql = `SELECT * FROM files WHERE file_id IN (${placeholders(ids)}) ORDER BY seq`;
  return many(sql, ids, toFile, fileIds.map(keyOf.file));
}

export function fileIdsAmong(fileIds: readonly string[]): Query<readonly string[]> {
  const ids = padded(fileIds);
  const sql = `SELECT file_id FROM files WHERE file_id IN (${placeholders(ids)})`;
  return many(sql, ids, (row) => String(row["file_id"]), ["files"]);
}

const SIZES = `SELECT seq, octet_length(metadata) + octet_length(name) AS bytes FROM files`;

/** Newest first. */
export function fileSizes(slice: Slice): Query<readonly Sized[]> {
  return sizes(`${SIZES} ${pageRows("files", slice)}`, [slice.limit, slice.offset], ["files"]);
}

export function fileSizesOf(taskId: string, slice: Slice): Query<readonly Sized[]> {
  const sql = `${SIZES} ${pageRows("files WHERE task_id = $3", slice)}`;
  return sizes(sql, [slice.limit, slice.offset, taskId], ["files"]);
}

/** Newest first; `taskId`: only those of this task. */
export function fileSizesBelow(
  taskId: string | null,
  before: number,
  limit: number,
): Query<readonly Sized[]> {
  const ofTask = taskId === null ? "" : "AND task_id = $3";
  const sql = `${SIZES} WHERE seq < $1 ${ofTask} ORDER BY seq DESC LIMIT $2`;
  return sizes(sql, taskId === null ? [before, limit] : [before, limit, taskId], ["files"]);
}

export type FileName = { readonly seq: number; readonly name: string };

/** Newest first; `taskId`: only those of this task. */
export function fileNamesBelow(
  taskId: string | null,
  before: number,
  limit: number,
): Query<readonly FileName[]> {
  const ofTask = taskId === null ? "" : "AND task_id = $3";
  const sql = `SELECT seq, name FROM files WHERE seq < $1 ${ofTask} ORDER BY seq DESC LIMIT $2`;
  const of = (row: Row): FileName => ({ seq: Number(row["seq"]), name: String(row["name"]) });
  return many(sql, taskId === null ? [before, limit] : [before, limit, taskId], of, ["files"]);
}

/** Newest first. */
export function fileSizesBySeq(seqs: readonly number[]): Query<readonly Sized[]> {
  const filled = padded(seqs);
  return sizes(`${SIZES} WHERE seq IN (${placeholders(filled)}) ORDER BY seq DESC`, filled, ["files"]);
}

/** Newest first. */
export function filesBySeq(seqs: readonly number[]): Query<readonly FileRecord[]> {
  return rowsBySeq(`SELECT * FROM files`, seqs, "seq DESC", toFile, ["files"]);
}

export type FileTotals = { readonly files: number; readonly bytes: number };

export function fileTotals(): Query<FileTotals> {
  return always(`SELECT files, bytes FROM file_totals`, [], FILE_TOTALS.reader("files", "bytes"), [
    "file_totals",
  ]);
}

export function filesCountOf(taskId: string): Query<number> {
  return count(`SELECT count(*) AS n FROM files WHERE task_id = $1`, [taskId], ["files"]);
}

export const FILE_WRITES = {
  "file.saved": {
    cache: evict,
    row: ({ file }) => keyOf.file(file.fileId),
    keys: ({ file }) => (file.taskId === null ? [] : [keyOf.filesOfTask(file.taskId)]),
    statement: add(FILES, ({ file }) => file),
  },
  "file.attached": {
    cache: evict,
    row: ({ fileId }) => keyOf.file(fileId),
    keys: ({ taskId }) => [keyOf.filesOfTask(taskId)],
    statement: update(
      "files",
      FILES.set((change) => change, "file_id"),
      { ...FILES.set((change) => change, "task_id"), output: "0" },
    ),
  },
  "file.deleted": {
    cache: evict,
    frees: true,
    row: ({ fileId }) => keyOf.file(fileId),
    keys: () => [EVERYTHING], // the change does not name the task of the file
    statement: drop(FILES, ["file_id"]),
  },
  "files.tallied": {
    statement: update(
      "file_totals",
      { one: "1" },
      { files: whole(({ files }) => files, added), bytes: whole(({ bytes }) => bytes, added) },
    ),
    sum: (earlier, later) => ({
      ...later,
      files: earlier.files + later.files,
      bytes: earlier.bytes + later.bytes,
    }),
  },
} satisfies Partial<Writes>;
