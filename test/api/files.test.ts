/**
 * Files through the API: upload, download, list, delete. uploads.test.ts has bodies that are refused and ranges;
 * test/http the details of multipart bodies and range requests.
 */
import { FILES_OF_TASK_MAX } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

const LIMIT = FILES_OF_TASK_MAX;

transcripts(`
== upload: answers the record, and the list shows the same (<A|B>)
  nodes n1
  t = task/create
  f = <|B >upload r.md {type: text/markdown, content: Größe, metadata: {type: report, node: n1, task_id: $t, nested: {a: [1, null, ä]}}} ->
  {attached: input, file_id: *, name: r.md, size: 7, sha256: ${Bun.SHA256.hash("Größe", "hex")}, content_type: text/markdown,
    metadata: {type: report, node: n1, task_id: $t, nested: {a: [1, null, ä]}}, node_id: n1, verified: false, task_id: $t, uploaded_at: +0s}
  <|B >GET file/list -> files [{file_id: $f, url: /api/v1/file/download/$f, name: r.md, size: 7, sha256: $f.sha256, node_id: n1, task_id: $t,
    metadata: $f.metadata, content_type: text/markdown, uploaded_at: $f.uploaded_at, attached: input, verified: false}]
  GET events?kind=file.uploaded -> events [{node_id: n1, task_id: $t}]
  GET file/download/$f -> text Größe
  GET file/list?q=r
  restart
  GET file/list -> files [{file_id: $f, sha256: $f.sha256}]
  GET file/download/$f -> text Größe

== upload: of no bytes is a file of 0 bytes
  f = upload a.txt {content: ""} -> {size: 0, sha256: ${Bun.SHA256.hash("", "hex")}, metadata: {}, node_id: null, task_id: null}
  GET file/download/$f -> text ""

-- upload: keeps only the base name of a path
  upload <../../etc/passwd|C:\\x\\y.txt|größe.txt|say"hi".txt|..> -> name <passwd|y.txt|größe.txt|say"hi".txt|file>

-- upload: with metadata that is not a JSON object is refused and leaves nothing
  upload a.txt {metadata: <x|"{"|"[]"|"[1]"|"5"|"\\"x\\""|"true"|"{'a':1}"|"{\\"a\\":1}}">} -> 400 metadata
  upload a.txt {metadata: ${JSON.stringify(`${'{"a":'.repeat(65)}1${"}".repeat(65)}`)}} -> 400 metadata
  GET file/list -> total 0

-- upload: with metadata that names what does not exist attaches nothing; null has none (<A|B>)
  nodes n1
  <|B >upload a.txt {<node: somebody|task_id: ${NO_ID}, node: somebody|task_id: 5, node: "a b"|task_id: null, node: null|
    task_id: [x], node: {id: n1}|task_id: "a\\u0000b", node: ""|task_id: t*5000, node: n*5000>} -> {task_id: null, node_id: null}
  <|B >upload a.txt {task_id: ${NO_ID}, node: n1} -> {task_id: null, node_id: n1, metadata: {task_id: ${NO_ID}, node: n1}}
  <|B >upload a.txt {metadata: <"null"|" null "|""|" ">} -> {metadata: {}, node_id: null, task_id: null}

-- upload: over the limit is 413 and leaves nothing; exactly at the limit it is accepted {maxFileBytes: 100000}
  upload a.txt {content: <x*100001|x*500000|x*8000000>} -> 413 body_too_large
  GET file/list -> total 0
  GET events?since=0&kind=file.uploaded -> events []
  upload a.txt {content: x*100000} -> size 100000

== a task's files: are the files whose metadata name it, on both variants, until they are deleted
  t, other = task/create
  f, g = upload a.txt {task_id: $t}
  upload a.txt
  <|B >GET task/$t -> task.files [$f, $g]
  <|B >GET task/$other -> task.files []
  DELETE file/$f
  task $t -> files [$g]
  admin task/delete $t
  GET file/download/$g -> text *

== a task's files: are at most ${LIMIT}, also under concurrent uploads; a deleted file makes room
  t = task/create
  at once -> statuses {"200": ${LIMIT - 3}}
  ${"+ f = upload a.txt {task_id: $t}\n".repeat(LIMIT - 3)}
  at once -> statuses {"200": 3, "409": 5}
  ${"+ upload a.txt {task_id: $t}\n".repeat(8)}
  task $t -> files #${LIMIT}
  GET file/list -> total ${LIMIT}
  upload a.txt
  DELETE file/$f
  upload a.txt {task_id: $t}
  upload a.txt {task_id: $t} -> 409 task_files_limit detail ~/api/v1/file/delete

-- download: of an unknown file is 404; B checks the secret first
  f = upload a.txt
  anon GET file/download/${NO_ID} -> 404 file_not_found
  anon GET file/download/$f -> text *
  anon B GET file/download/$f -> 401 unauthorized
  B GET file/download/$f -> text *

== list: is read by a cursor, each file once, whatever is uploaded or deleted meanwhile
  t = task/create
  a, b, c = upload a.txt {task_id: $t}
  d, e = upload a.txt
  one = GET file/list?per_page=2 -> {files: [{file_id: $e}, {file_id: $d}], total: 5}
  upload new.txt
  file/delete {file_id: $e}
  two = GET file/list?per_page=2&cursor=$one.next_cursor -> {files: [{file_id: $c}, {file_id: $b}], page: null, per_page: 2, total: 5}
  GET file/list?per_page=2&cursor=$two.next_cursor -> {files: [{file_id: $a}], next_cursor: null}
  one = GET file/list?per_page=2&task_id=$t -> files.file_id [$c, $b]
  GET file/list?per_page=2&task_id=$t&cursor=$one.next_cursor -> {files: [{file_id: $a}], next_cursor: null}
  GET file/list?cursor=$one.next_cursor&page=2 -> 400 page
  GET file/list?cursor=x -> 400 cursor

== list: is searched by name, by cursor, of all tasks or of one
  t = task/create
  a = upload report-2026.pdf
  b = upload Annual-Report.txt {task_id: $t}
  upload notes.md
  GET file/list?q=<repo|report%202026|port|report&task_id=$t> -> files.file_id <[$b, $a]|[$a]|[]|[$b]>
  first = GET file/list?q=rep&per_page=1 -> {page: null, total: null, pages: null}
  GET file/list?q=rep&per_page=1&cursor=$first.next_cursor -> files.file_id [$a]
  GET file/list?q=rep&page=1 -> 400 page
  GET file/list?q=... -> 400 q

-- list: is newest first and paged like tasks
  ${Array.from({ length: 22 }, (_, i) => `upload ${i}`).join("\n")}
  GET file/list -> {page: 1, per_page: 20, total: 22, pages: 2, files: [{name: "21"}, ${"*, ".repeat(18)}{name: "2"}]}
  GET file/list?page=2 -> files.name ["1", "0"]
  GET file/list?per_page=99 -> {per_page: 50, pages: 1}
  B GET file/list -> {per_page: 500, pages: 1}
  GET file/list?page=0&per_page=x -> 400 page per_page

== delete: removes record and bytes, by <file/delete|DELETE file/>
  f, other = upload a.txt
  anon <file/delete {file_id: $f}|DELETE file/$f> -> 401 unauthorized
  <file/delete {file_id: $f}|DELETE file/$f> -> file_id $f
  <file/delete {file_id: $f}|DELETE file/$f> -> 404 file_not_found
  GET file/download/$f -> 404 file_not_found
  GET file/list -> files.file_id [$other]
  GET events?since=0&kind=file.deleted -> events #1
  file/delete {} -> 400 file_id
  file/delete {file_id: 5} -> 400 file_id
`);
