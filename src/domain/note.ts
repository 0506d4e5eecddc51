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
import type { Note, NoteHead } from "./model.ts";
import { refund } from "./quota.ts";
import { HUB_LIMITS, type HubCounts, refusesMore } from "./shares.ts";

export type NoteTotals = HubCounts & { readonly bytes: number };

/** `ifVersion`: the version that the note must have, 0: there must be none; null: any. */
export type NoteRequest = Pick<Note, "key" | "nodeId" | "verified"> & { readonly ifVersion: number | null };

export function headOf({ text, kept: _, ...head }: Note): NoteHead {
  return { ...head, bytes: Buffer.byteLength(head.key) + Buffer.byteLength(text) };
}

/** @param totals of all notes, this one included */
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
  const full = refusesSize(before && headOf(before), head, totals);
  if (full) return full;
  return accept(head, [
    ...refund(before),
    { kind: "note.saved", note },
    noteEvent("note.changed", head, nodeId, now),
  ]);
}

/** A later put of its key begins with version 1 again. */
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

/** Under the condition that the request names. */
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

function refusesSize(before: NoteHead | null, after: NoteHead, totals: NoteTotals): Rejected | null {
  const { nodeId } = after;
  const isOwn = before?.nodeId === nodeId;
  if (before !== null && isOwn && after.bytes <= before.bytes) return null;
  const counts = { all: totals.all - Number(before !== null), ofNode: totals.ofNode - Number(isOwn) };
  const bytes = totals.bytes - (before?.bytes ?? 0) + after.bytes;
  return (
    refusesMore(HUB_LIMITS.notes, counts, nodeId) ??
    refusesMore(HUB_LIMITS.noteBytes, { all: bytes - 1, ofNode: 0 }, null)
  );
}

function noteEvent(kind: EventKind, { key, version }: NoteHead, nodeId: string | null, at: number): Change {
  const data: EventData = { key, version };
  return { kind: "event.logged", event: { kind, at, nodeId, taskId: null, data } };
}
