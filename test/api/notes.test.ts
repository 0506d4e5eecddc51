/** Notes: the shared memory of the nodes, with compare-and-set, lists, search and limits. */
import { NOTE_KEY_MAX_CHARS, NOTE_TEXT_MAX_BYTES } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

const key = "k".repeat(NOTE_KEY_MAX_CHARS);
const text = "x".repeat(NOTE_TEXT_MAX_BYTES);
const put = (name: string, words: string, fields = "") =>
  `note/put {key: ${name}, text: "${words}", ${fields}}`;
const large = (from: number) =>
  Array.from(
    { length: 20 },
    (_, i) =>
      `{path: note/put, body: {key: k${from + i}, node_id: n${i % 7}, text: "needle ${text.slice(7)}"}}`,
  ).join();

transcripts(`
== a note has version after version, and says who wrote it
  nodes n1
  n = ${put("plan", "Begin.", "node_id: n1")} -> note {key: plan, version: 1, node_id: n1, verified: false, bytes: 10}
  -> note {created_at: +0s, updated_at: +0s}
  ${put("plan", "Go on.")} -> note {version: 2, node_id: null, created_at: $n.note.created_at}
  GET note/get?key=plan -> note.text "Go on."
  GET events?since=0&kind=note.changed -> events #2

== a note is written only with the version that the caller has read
  ${put("lock", "n1", "if_version: 0, node_id: n1")}
  ${put("lock", "n2", "if_version: 0, node_id: n2")} -> 409 note_version_conflict {version: 1}
  ${put("lock", "n2", "if_version: 1, node_id: n2")}
  ${put("lock", "n1 again", "if_version: 1, node_id: n1")} -> 409 note_version_conflict {version: 2}
  ${put("none", "t", "if_version: 3")} -> 409 note_version_conflict {version: 0}

== a note again by the same node changes nothing; the same text by another node is a new version
  n = ${put("k", "t", "if_version: 0, node_id: n1")}
  ${put("k", "t", "if_version: 0, node_id: n1")} -> note $n.note
  ${put("k", "t", "node_id: n1")} -> note $n.note
  ${put("k", "t", "if_version: 0")} -> 409 note_version_conflict
  ${put("k", "t", "node_id: n2")} -> note {version: 2, node_id: n2}

-- a note is verified with a key of the node, which need not name it and cannot name another
  own = admin key/add n1 {name: n1}
  as $own ${put("k", "t")} -> note {node_id: n1, verified: true}
  as $own ${put("k", "t", "node_id: n2")} -> 403 key_bound_to_other_node

-- a note takes what has its limits, and no more
  ${put(key, text)}
  ${put(`${key}k`, `${text}x`, "if_version: -1")} -> 400 key text if_version
  note/put {key: " ", text: " "} -> 400 key text

== a note of the version that the caller names is deleted, once
  ${put("k", "t")}
  note/delete {key: k, if_version: 2} -> 409 note_version_conflict
  note/delete {key: k, if_version: 1} -> note {key: k, version: 1}
  note/delete {key: k} -> 404 note_not_found
  GET note/get?key=k -> 404 note_not_found
  ${put("k", "again")} -> note.version 1
  GET events?since=0&kind=note.deleted -> events #1

== lists of notes go by key, from a prefix, page after page
  ${put("<b/2|a|b/1|b/ä|c|b>", "t")}
  GET note/list -> notes.key [a, b, b/1, b/2, b/ä, c]
  -> notes.0.text absent
  GET note/list?prefix=b/ -> notes.key [b/1, b/2, b/ä]
  p = GET note/list?prefix=b&per_page=2 -> notes.key [b, b/1]
  GET note/list?prefix=b&per_page=2&cursor=$p.next_cursor -> {notes: [{key: b/2}, {key: b/ä}], next_cursor: null}
  GET note/list?cursor=% -> 400 cursor

== a search finds words in keys and texts
  ${put("api/errors", "Every error is a problem.\\nCodes are stable.")}
  ${put("api/lists", "Lists are paged.")}
  ${put("web", "The page has errors in red.")}
  GET note/search?q=<ERR|page%20list|err&prefix=api/|nothing> -> notes.key [<api/errors, web|api/lists|api/errors|>]
  GET note/search?q=stable -> notes [{excerpt: "Codes are stable.", version: 1}]

-- a search goes on where one call has examined its maximum
  ${Array.from({ length: 30 }, (_, i) => `batch {requests: [${large(100 + 20 * i)}]}`).join("\n")}
  GET note/search?q=missing -> {notes: [], next_cursor: *}
  p = GET note/search?q=needle&per_page=50&cursor= -> notes #50
  ${"p = GET note/search?q=needle&per_page=50&cursor=$p.next_cursor -> notes #50\n".repeat(11)}
  -> next_cursor null

== a batch writes notes, each seeing those before it
  batch {requests: [{path: note/put, body: {key: k, text: a, if_version: 0}},
    {path: note/put, body: {key: k, text: b, if_version: 0}},
    {path: note/put, body: {key: k, text: c, if_version: 1}}]} -> answers.status [200, 409, 200]
  GET note/get?key=k -> note.text c
`);
