/** The reads and writes of notes. */
import type { Note, NoteHead } from "../../domain/model.ts";
import type { NoteTotals } from "../../domain/note.ts";
import type { Query, Row } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { always, byKey, many, one } from "./query.ts";
import { keptOf } from "./rows.ts";
import { soundNote } from "../../domain/sound.ts";
import { headOf } from "../../domain/note.ts";
import type { Reader } from "./table.ts";
import { NOTES } from "./tables.ts";
import type { Writes } from "./write.ts";
import { drop, save } from "./write-statement.ts";

const HEAD = ["key", "version", "node_id", "verified", "created_at", "updated_at"] as const;
const toNoteHead: Reader<NoteHead> = NOTES.reader(...HEAD, "bytes").to(soundNote);
const readNote = NOTES.reader(...HEAD, "content").to(soundNote);
const toNote = (row: Row): Note => ({ ...readNote(row), ...keptOf(row) });
const NOTE_BY_KEY = byKey(["text"], `SELECT ${readNote.list}, kept_by, kept_bytes FROM notes WHERE key = $1`);

export function noteByKey(key: string): Query<Note | null> {
  return one(NOTE_BY_KEY, [key], toNote, [keyOf.note(key)]);
}

/** Read from an index that has every note: NOTES_MAX of them take about a millisecond. */
export function noteTotals(nodeId: string | null): Query<NoteTotals> {
  const sql = `
    SELECT count(*) AS notes, coalesce(sum(bytes), 0) AS bytes, count(CASE WHEN node_id = $1 THEN 1 END) AS of_node
    FROM notes`;
  const totals = (row: Row): NoteTotals => ({
    all: Number(row["notes"]),
    bytes: Number(row["bytes"]),
    ofNode: Number(row["of_node"]),
  });
  return always(sql, [nodeId], totals, ["notes"]);
}

/** By key: those after `after`, from the first on that is not before `from`. */
export function noteHeadsAfter(after: string, from: string, limit: number): Query<readonly NoteHead[]> {
  const sql = `SELECT ${toNoteHead.list} FROM notes WHERE key > $1 AND key >= $2 ORDER BY key LIMIT $3`;
  return many(sql, [after, from, limit], toNoteHead, ["notes"]);
}

/** As noteHeadsAfter() selects them. */
export function notesAfter(after: string, from: string, limit: number): Query<readonly Note[]> {
  const sql = `SELECT ${readNote.list}, kept_by, kept_bytes FROM notes WHERE key > $1 AND key >= $2 ORDER BY key LIMIT $3`;
  return many(sql, [after, from, limit], toNote, ["notes"]);
}

export const NOTE_WRITES = {
  "note.saved": {
    row: ({ note }) => keyOf.note(note.key),
    statement: save(NOTES, ({ note }) => ({ ...note, bytes: headOf(note).bytes })),
  },
  "note.removed": { frees: true, row: ({ key }) => keyOf.note(key), statement: drop(NOTES, ["key"]) },
} satisfies Partial<Writes>;
