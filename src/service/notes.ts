/** The use cases of notes: the shared memory of the nodes (domain/note.ts). */
import { Rejection } from "../domain/decision.ts";
import {
  NOTES_SCANNED_MAX,
  NOTES_SCANNED_MAX_BYTES,
  NOTES_STEP,
  NOTE_EXCERPT_CHARS,
} from "../domain/limits.ts";
import type { Note, NoteHead } from "../domain/model.ts";
import { type NoteRequest, headOf, noteNotFound, put, remove } from "../domain/note.ts";
import { TickQueue } from "../lib/semaphore.ts";
import { matchesWords } from "../lib/word-search.ts";
import { noteByKey, noteHeadsAfter, noteTotals, notesAfter } from "../store/sql/notes.ts";
import type { Committed, Transact } from "../store/store.ts";
import { pageOfFound } from "./scan.ts";
import { UseCases } from "./use-cases.ts";

/** In the order of their keys; `next`: the key after which the next page begins. */
type NotePage<N> = { readonly notes: readonly N[]; readonly next: string | null };

/** Keys that begin with `prefix`, after the key `after`. */
type NotePart = { readonly prefix: string; readonly after: string; readonly limit: number };

/** `excerpt`: where the first word is, or the beginning. */
export type FoundNote = NoteHead & { readonly excerpt: string };

export class NoteService extends UseCases {
  /** One step of all searches in each tick. */
  readonly #steps = new TickQueue();

  /** @throws {Rejection} note_version_conflict, notes_limit */
  put(
    transact: Transact<NoteHead>,
    asked: NoteRequest & { readonly text: string },
  ): Promise<Committed<NoteHead>> {
    const load = { note: noteByKey(asked.key), totals: noteTotals(asked.nodeId) };
    return transact(load, ({ note, totals }) => put(note, totals, asked, this.clock.now()));
  }

  /** @throws {Rejection} note_not_found, note_version_conflict */
  remove(transact: Transact<NoteHead>, asked: NoteRequest): Promise<Committed<NoteHead>> {
    return transact({ note: noteByKey(asked.key) }, ({ note }) => remove(note, asked, this.clock.now()));
  }

  /** @throws {Rejection} note_not_found */
  async get(key: string): Promise<Note> {
    const note = await this.store.read(noteByKey(key));
    if (!note) throw new Rejection(noteNotFound(key));
    return note;
  }

  async list({ prefix, after, limit }: NotePart): Promise<NotePage<NoteHead>> {
    const found = await this.store.read(noteHeadsAfter(after, prefix, limit + 1));
    const notes = found.filter(({ key }) => key.startsWith(prefix));
    const { rows, next } = pageOfFound(notes, limit, ({ key }) => key);
    return { notes: rows, next };
  }

  /**
   * Each of `words` begins a word of the key or the text. A page may have fewer than `limit`, and the next one
   * continues.
   */
  async search(words: readonly string[], { prefix, after, limit }: NotePart): Promise<NotePage<FoundNote>> {
    const notes: FoundNote[] = [];
    let [last, examined, bytes] = [after, 0, 0];
    while (examined < NOTES_SCANNED_MAX && bytes < NOTES_SCANNED_MAX_BYTES) {
      const step = await this.store.read(notesAfter(last, prefix, NOTES_STEP));
      for (const note of step) {
        if (!note.key.startsWith(prefix)) return { notes, next: null };
        if (notes.length === limit) return { notes, next: last };
        last = note.key;
        examined++;
        const head = headOf(note);
        bytes += head.bytes;
        if (!matchesWords(words, `${note.key} ${note.text}`)) continue;
        notes.push({ ...head, excerpt: excerptOf(note.text, words) });
      }
      if (step.length < NOTES_STEP) return { notes, next: null };
      await this.#steps.next();
    }
    return { notes, next: last };
  }
}

/** The line with the first of the words, or the beginning of the text. */
function excerptOf(text: string, words: readonly string[]): string {
  const line = text.split("\n").find((one) => words.some((word) => matchesWords([word], one))) ?? text;
  const chars = [...line.trim()];
  return chars.length <= NOTE_EXCERPT_CHARS
    ? chars.join("")
    : `${chars.slice(0, NOTE_EXCERPT_CHARS).join("")}…`;
}
