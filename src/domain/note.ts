/**
 * Note rules: a shared memory of the nodes, by key, with compare-and-set (optimistic concurrency control).
 *
 *   (none) --put--> version 1 --put--> version 2 ... --delete--> (none)
 *
 * `ifVersion` makes a write conditional: it must be the current version, 0 for a note that must not exist yet. A write
 * that repeats the last one of the same node changes nothing, so that a lost response can be asked for again.
 *
 * Must not: let an event have the text of a note.
 */
import type { Change } from "./change.ts";
import { type Decision, type Rejected, accept, reject } from "./decision.ts";
import type { EventData, EventKind } from "./event.ts";
import { NOTES_MAX, NOTES_MAX_BYTES, NOTES_OF_NODE_MAX_BYTES } from "./limits.ts";
import type { Note, NoteHead } from "./model.ts";
import { refund } from "./quota.ts";

/** What all notes take: their number, their bytes, and the bytes of those that one node has written last. */
export type NoteTotals = { readonly notes: number; readonly bytes: number; readonly ofNode: number };

/** `ifVersion`: the version that the note must have, 0: there must be none; null: any. */
export type NoteRequest = Pick<Note, "key" | "nodeId" | "verified"> & { readonly ifVersion: number | null };

export function headOf({ text, kept: _, ...head }: Note): NoteHead {
  return { ...head, bytes: Buffer.byteLength(head.key) + Buffer.byteLength(text) };
}

/** Writes a note, or a new version of it. @param totals of all notes, this one included */
export function put(
  before: Note | null,
  totals: NoteTotals,
  asked: NoteRequest & { readonly text: string },
  now: number,
): Decision<NoteHead> {
  const { key, text, nodeId, verified, ifVersion } = asked;
  if (before && isRepeat(before, asked)) return accept(headOf(before));
  const current = before?.version ?? 0;
  if (ifVersion !== null && ifVersion !== current) return versionConflict(key, current);
  const createdAt = before?.createdAt ?? now;
  const note: Note = { key, text, version: current + 1, nodeId, verified, createdAt, updatedAt: now };
  const head = headOf(note);
  const full = refusesMore(before && headOf(before), head, totals);
  if (full) return full;
  return accept(head, [
    ...refund(before),
    { kind: "note.saved", note },
    noteEvent("note.changed", head, nodeId, now),
  ]);
}

/** Deletes a note. A later put of its key begins with version 1 again. */
export function remove(before: Note | null, asked: NoteRequest, now: number): Decision<NoteHead> {
  if (!before) return noteNotFound(asked.key);
  if (asked.ifVersion !== null && asked.ifVersion !== before.version)
    return versionConflict(asked.key, before.version);
  const head = headOf(before);
  return accept(head, [
    ...refund(before),
    { kind: "note.removed", key: asked.key },
    noteEvent("note.deleted", head, asked.nodeId, now),
  ]);
}

export function noteNotFound(key: string): Rejected {
  const detail = `There is no note ${JSON.stringify(key)}. List the keys with GET /api/v1/note/list.`;
  return reject("note_not_found", detail);
}

/** Whether the node wrote this text last, under the condition that it names. */
function isRepeat(
  { text, nodeId, verified, version }: Note,
  asked: NoteRequest & { readonly text: string },
): boolean {
  const { ifVersion } = asked;
  const isSame = text === asked.text && nodeId === asked.nodeId && verified === asked.verified;
  return isSame && (ifVersion === null || (nodeId !== null && ifVersion === version - 1));
}

function versionConflict(key: string, version: number): Rejected {
  const is = version === 0 ? "does not exist" : `has version ${version}`;
  const detail = `The note ${JSON.stringify(key)} ${is}, and not the version in if_version. Read it, and write again what follows from it.`;
  return { ...reject("note_version_conflict", detail), version };
}

function refusesMore(before: NoteHead | null, after: NoteHead, totals: NoteTotals): Rejected | null {
  const notes = totals.notes + Number(!before);
  const bytes = totals.bytes - (before?.bytes ?? 0) + after.bytes;
  const isOwn = before?.nodeId === after.nodeId;
  const ofNode = totals.ofNode - (isOwn ? (before?.bytes ?? 0) : 0) + after.bytes;
  const isLess = before !== null && isOwn && after.bytes <= before.bytes;
  if (isLess || (notes <= NOTES_MAX && bytes <= NOTES_MAX_BYTES && ofNode <= NOTES_OF_NODE_MAX_BYTES))
    return null;
  const what =
    notes > NOTES_MAX
      ? `The hub has its ${NOTES_MAX} notes.`
      : bytes > NOTES_MAX_BYTES
        ? `All notes together may have ${NOTES_MAX_BYTES} bytes.`
        : `The notes that one node has written may have ${NOTES_OF_NODE_MAX_BYTES} bytes.`;
  return reject("notes_limit", `${what} Delete notes that nobody needs with POST /api/v1/note/delete.`);
}

function noteEvent(kind: EventKind, { key, version }: NoteHead, nodeId: string | null, at: number): Change {
  const data: EventData = { key, version };
  return { kind: "event.logged", event: { kind, at, nodeId, taskId: null, data } };
}
