/** The endpoints of notes, the shared memory of the nodes: note/*. */
import * as z from "zod/mini";
import { PER_PAGE_DEFAULT } from "../domain/limits.ts";
import type { Note, NoteHead } from "../domain/model.ts";
import { headOf } from "../domain/note.ts";
import { isoTime } from "../lib/clock.ts";
import type { FoundNote } from "../service/notes.ts";
import type { JsonAnswer } from "./answer.ts";
import { type Endpoint, BY_NODE, readEndpoint, writeEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { time } from "./response-schemas.ts";
import { about, flag, maybeString, optional, string, whole } from "./about.ts";

const head = () => ({
  key: string("The name of the note."),
  version: whole("1 for a new note; each change adds 1."),
  node_id: maybeString("Who wrote this version; null: the request named no node."),
  verified: flag("Whether the note was written with a key that is bound to `node_id`."),
  bytes: z.int(),
  created_at: about(time(), "When version 1 was written."),
  updated_at: about(time(), "When this version was written."),
});

export const noteHeadSchema = () => z.strictObject(head());
export const noteSchema = () => z.strictObject({ ...head(), text: z.string() });
export const foundNoteSchema = () =>
  z.strictObject({
    ...head(),
    excerpt: string(
      "The first line of the text in which a word was found, or the beginning of the text; at most 200 characters.",
    ),
  });

function encodeHead({ key, version, nodeId, verified, bytes, createdAt, updatedAt }: NoteHead): JsonAnswer {
  return {
    key,
    version,
    node_id: nodeId,
    verified,
    bytes,
    created_at: isoTime(createdAt),
    updated_at: isoTime(updatedAt),
  };
}

function requestOf(input: z.infer<ReturnType<typeof removal>>, nodeOfKey: string | null) {
  const { key, node_id: nodeId = nodeOfKey, if_version: ifVersion = null } = input;
  return { key, nodeId, verified: nodeId !== null && nodeOfKey === nodeId, ifVersion };
}

const removal = () =>
  z.object({
    key: about(field.noteKey(), "The name of the note."),
    node_id: optional(field.nodeId(), "Who deletes the note; if left out, the node of the key."),
    if_version: z.optional(field.noteVersion()),
  });

const put = writeEndpoint({
  ...BY_NODE,
  path: "/api/v1/note/put",
  summary: "Writes a note; with if_version only if the note has that version",
  rejections: ["note_version_conflict", "notes_limit"],
  input: () =>
    z.object({
      key: about(field.noteKey(), "The name of the note, any text: for example `api/decisions`."),
      text: field.noteText(),
      node_id: optional(field.nodeId(), "Who writes; if left out, the node of the key."),
      if_version: z.optional(field.noteVersion()),
    }),
  answer: () => z.strictObject({ note: about(noteHeadSchema(), "The note as it is now.") }),
  handle: ({ services, transact, nodeOfKey }, input) =>
    services.notes.put(transact, { ...requestOf(input, nodeOfKey), text: input.text }),
  encode: (note: NoteHead) => ({ note: encodeHead(note) }),
});

const remove = writeEndpoint({
  ...BY_NODE,
  path: "/api/v1/note/delete",
  summary: "Deletes a note",
  rejections: ["note_not_found", "note_version_conflict"],
  input: removal,
  answer: () => z.strictObject({ note: about(noteHeadSchema(), "The note that was deleted.") }),
  handle: ({ services, transact, nodeOfKey }, input) =>
    services.notes.remove(transact, requestOf(input, nodeOfKey)),
  encode: (note: NoteHead) => ({ note: encodeHead(note) }),
});

const get = readEndpoint({
  path: "/api/v1/note/get",
  auth: "secret",
  summary: "A note with its text",
  rejections: ["note_not_found"],
  input: () => z.object({ key: about(field.noteKey(), "The name of the note.") }),
  answer: () => z.strictObject({ note: about(noteSchema(), "The note.") }),
  handle: ({ services }, { key }) => services.notes.get(key),
  encode: (note: Note) => ({
    note: { ...encodeHead(headOf(note)), text: note.text },
  }),
});

const paged = (filter: "prefix" | "search") => ({
  prefix: z.optional(field.notePrefix()),
  cursor: optional(field.noteCursor(), `The \`next_cursor\` of the previous page, with the same ${filter}.`),
  per_page: field.paging().per_page,
});

type Paged = z.infer<z.ZodMiniObject<ReturnType<typeof paged>>>;

const partOf = ({ prefix = "", cursor: after = "", per_page: limit = PER_PAGE_DEFAULT }: Paged) => ({
  prefix,
  after,
  limit,
});

const cursorAfter = (key: string | null): string | null =>
  key === null ? null : field.encodeNoteCursor(key);

const list = readEndpoint({
  path: "/api/v1/note/list",
  readsMany: true,
  auth: "secret",
  summary: "The notes by key, without their content",
  input: () => z.object(paged("prefix")),
  answer: () => z.strictObject({ notes: z.array(noteHeadSchema()), next_cursor: z.nullable(z.string()) }),
  handle: ({ services }, input) => services.notes.list(partOf(input)),
  encode: ({ notes, next }) => ({ notes: notes.map(encodeHead), next_cursor: cursorAfter(next) }),
});

const search = readEndpoint({
  path: "/api/v1/note/search",
  readsMany: true,
  auth: "secret",
  summary: "The notes whose key or text has the words of a search, by key",
  input: () =>
    z.object({
      q: about(
        field.search(),
        "Words, each of which must begin a word of the key or the text, ignoring case.",
      ),
      ...paged("search"),
    }),
  answer: () => z.strictObject({ notes: z.array(foundNoteSchema()), next_cursor: z.nullable(z.string()) }),
  handle: ({ services }, { q, ...input }) => services.notes.search(q, partOf(input)),
  encode: ({ notes, next }) => ({ notes: notes.map(encodeFound), next_cursor: cursorAfter(next) }),
});

function encodeFound({ excerpt, ...note }: FoundNote): JsonAnswer {
  return { ...encodeHead(note), excerpt };
}

export const NOTE_ENDPOINTS: readonly Endpoint[] = [put, get, list, search, remove];
