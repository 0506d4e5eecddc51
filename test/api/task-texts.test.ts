/**
 * Tasks: the texts and numbers that are kept as they were sent, refused input, and lists by filters and cursors.
 * tasks.test.ts has the rest.
 */
import { LIST_SCANNED_MAX, SEARCH_MAX_CHARS } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

/** What is wrong with the result of a task, and the fields that are named. */
const BAD_RESULTS = [
  ["null", "result"],
  ["done", "result"],
  ["[a, b, c]", "result"],
  ["{}", "result.problem, result.improvement, result.lesson"],
  ["{problem: p}", "result.improvement, result.lesson"],
  ["{problem: p, improvement: i}", "result.lesson"],
  ["{problem: p, lesson: l}", "result.improvement"],
  ["{improvement: i, lesson: l}", "result.problem"],
  ['{problem: "", improvement: " ", lesson: "\\t\\n"}', "result.problem, result.improvement, result.lesson"],
  ["{problem: 1, improvement: null, lesson: [l]}", "result.problem, result.improvement, result.lesson"],
  ["{problem: p, improvement: i, lesson: x*65537}", "result.lesson"],
  ['{problem: "\\u0000", improvement: i, lesson: l}', "result.problem"],
  ['{problem: p, improvement: "\\udfff", lesson: l}', "result.improvement"],
] as const;

const deep = "[".repeat(64) + 1 + "]".repeat(64);

/** Tasks by creator, type and title, of which some have ended. */
const FILTERED = [
  ["creator_node=boss", "$b, $a"],
  ["creator_node=ghost", ""],
  ["creator_node=", "$e, $d, $c, $b, $a"],
  ["task_type=coding", "$c, $a"],
  ["task_type=%20coding%20", "$c, $a"],
  ["task_type=cod", ""],
  ["status=failed", "$c"],
  ["task_type=coding&status=failed", "$c"],
  ["task_type=coding&status=completed", "$a"],
  ["task_type=coding&status=pending", ""],
  ["creator_node=boss&task_type=coding", "$a"],
  ["creator_node=boss&status=pending", "$b"],
  ["creator_node=boss&node_id=n1", "$a"],
  ["task_type=research&node_id=n1", ""],
  ["q=login", "$c, $b, $a"],
  ["q=LOG", "$c, $b, $a"],
  ["q=log%20pa", "$a"],
  ["q=ogin", ""],
  ["q=u%CC%88ber", "$b"],
  ["q=1.5", ""],
  ["q=5%20V1", "$b"],
  ["q=v1.5", "$b"],
  ["q=%E9%A1%B5", "$d"],
  ["q=login&status=failed", "$c"],
  ["q=login&creator_node=boss&task_type=research&status=open", "$b"],
  ["q=login&node_id=n1", "$a"],
] as const;

const cursors = [
  "",
  "&creator_node=boss",
  "&task_type=coding",
  "&q=title",
  "&status=pending",
  "&status=pending&q=title",
];

transcripts(`
== create answers all fields of the task
  t = task/create {task_type: coding, priority: 2, creator_node: boss, lux_reward: 12.5} -> {status: open, assigned_node: null}
  -> lease {epoch: 0, expires_at: null}
  -> task {title: t, description: d, task_type: coding, priority: 2, creator_node: boss, lux_reward: 12.5, status: open}
  -> task {creator_verified: false, assigned_node: null, result: null, result_verified: false, ready: true, attempts: 0}
  -> task {max_attempts: null, timeout_s: null, max_run_s: null, max_cost_usd: null, usage: null, waiting_for: null}
  -> task {restarts: 0, not_before: null, expires_at: null, depends_on: [], started_at: null, progress: null, failure: null}
  -> task {files: [], inputs: [], outputs: [], created_at: +0s, updated_at: $t.task.created_at}
  GET task/list -> tasks [$t.task]

== create keeps text unchanged
  t = task/create {title: "  Größe 🦊 \\u0001\\t", description: "a\\"b\\\\c\\n\\u2028<script>"}
  task $t -> {title: "  Größe 🦊 \\u0001\\t", description: "a\\"b\\\\c\\n\\u2028<script>"}

-- create refuses missing, blank, too long and wrongly typed fields, all at once
  task/create {title: null, description: null} -> 400 title description
  task/create {title: "", description: " \\n"} -> 400 title description
  task/create {title: 5, description: [x]} -> 400 title description
  task/create {title: [x], description: {x: 1}} -> 400 title description
  task/create {title: x*501} -> 400 title
  task/create {description: <x*65537|ä*32769>} -> 400 description
  task/create {title: "a\\u0000b", description: "a\\u0000b", task_type: "\\u0000"} -> 400 title description task_type
  task/create {title: "\\ud800", description: "a\\udc00b"} -> 400 title description
  task/create {task_type: 5} -> 400 task_type
  task/create {creator_node: "<a b|>"} -> 400 creator_node
  task/create {lux_reward: <-1|0.0000001|1.0000001|1000000000.5|"5"|true>} -> 400 lux_reward
  task/create {title: 1, description: 2, task_type: 3, priority: 4, creator_node: 5, lux_reward: "6"} -> 400 title description task_type priority creator_node lux_reward
  GET task/list -> {tasks: [], total: 0}

-- complete refuses an incomplete result and names every bad field, on <A|B>
  <|B >batch {requests: [${BAD_RESULTS.map(
    ([result]) => `{path: task/complete, body: {task_id: ${NO_ID}, node_id: n1, result: ${result}}}`,
  )}]} -> answers.body.errors.path [${BAD_RESULTS.map(([, paths]) => `[${paths}]`)}]
  <|B >batch {requests: [{path: task/complete, body: {node_id: "", result: {}}}]} ->
    answers.body.errors.path [[task_id, node_id, result.problem, result.improvement, result.lesson]]

-- create and complete accept values exactly at the limits, and no further keys of a result beyond 64 KiB
  t = task/create {title: 🦊*250, description: ä*32768}
  task $t -> {title: 🦊*250, description: ä*32768}
  nodes n1
  task/claim $t n1
  task/complete $t n1 {result: <{a: x*65523, b: 1}|{deep: ${deep}}>} -> 400 result
  task/complete $t n1 {result: {a: "${"\\u0001".repeat(10_921)}", b: 1}} -> 400 result
  task/complete $t n1 {result: {problem: ä*32768, improvement: ä*32768, lesson: ä*32768, a: x*65522, b: 1}}
  task $t -> result {problem: ä*32768, improvement: ä*32768, lesson: ä*32768, a: x*65522, b: 1}

== lists are filtered by creator, type and title, on <A|B>
  nodes n1
  a = task/create {title: "Fix the login page", creator_node: boss, task_type: coding}
  b = task/create {title: "Überblick: Login, v1.5", creator_node: boss, task_type: research}
  c = task/create {title: "Write a blog about logins", creator_node: n1, task_type: coding}
  d = task/create {title: "\\u767b\\u5f55\\u9875\\u9762", creator_node: n1}
  e = task/create {title: nothing}
  task/claim $a n1
  task/complete $a n1
  task/cancel $c
  ${FILTERED.map(
    ([query, ids]) => `<|B >GET task/list?per_page=50&${query} -> tasks.task_id [${ids}]
      -> {total: ${ids.split("$").length - 1}, pages: ${ids === "" ? 0 : 1}, page: 1, next_cursor: null}`,
  ).join("\n")}
  GET task/list?q=login&per_page=1 -> {tasks: [{task_id: $c}], total: 3, pages: 3}
  # B has the unfinished tasks first.
  B GET task/list?q=login -> tasks.task_id [$b, $c, $a]
  B GET task/list?task_type=coding&creator_node=boss -> tasks.task_id [$a]

-- lists name the invalid fields of their query
  GET task/list?q=<%2B%2B|${"a".repeat(SEARCH_MAX_CHARS + 1)}> -> 400 q
  GET task/list?creator_node=a%20b -> 400 creator_node
  GET task/list?task_type=${"a".repeat(101)} -> 400 task_type
  GET task/list?cursor=<x|MS4x!|LTEuMQ|MS4xLjE|enp6enp6enp6enouMQ> -> 400 cursor
  GET task/list?q=a&per_page=50&page=${LIST_SCANNED_MAX / 50 + 1} -> 400 page
  GET task/list?q=a&per_page=50&page=${LIST_SCANNED_MAX / 50}

${cursors
  .map(
    (query) => `
${/^$|&q=/.test(query) ? "==" : "--"} lists go on by cursor while tasks come, change and go${query === "" ? "" : `: ${query}`}
  nodes n1
  <a|b|c|d|e|f|g|h|i> = task/create {title: "a title", creator_node: boss, task_type: coding}
  one = GET task/list?per_page=2${query} -> tasks.task_id [$i, $h]
  # Where the cursor is.
  task/create {title: "a title", creator_node: boss, task_type: coding}; admin task/delete $h; task/claim $a n1
  two = GET task/list?per_page=2${query}&cursor=$one.next_cursor -> {page: null, total: null, pages: null, per_page: 2}
  -> tasks.task_id [$g, $f]
  task/create {title: "a title", creator_node: boss, task_type: coding}; admin task/delete $f; task/claim $b n1
  three = GET task/list?per_page=50${query}&cursor=$two.next_cursor -> {tasks: #5, next_cursor: null}
  -> tasks.task_id [$e, $d, $c, $b, $a]
  page = GET task/list?page=2&per_page=3${query}
  GET task/list?page=2&cursor=$page.next_cursor -> 400 page
  B GET task/list?cursor=$page.next_cursor -> {per_page: 500, next_cursor: null}
`,
  )
  .join("")}
`);
