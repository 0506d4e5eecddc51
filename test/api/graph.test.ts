/**
 * Tasks that belong together: unique keys, a graph of tasks in one batch, tasks that run however their dependencies end,
 * and changes of a task that waits. test/api/races.test.ts has many creates with one unique key at once.
 */
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

/** A request of a batch that creates a task. */
const create = (ref: string, fields = "") =>
  `{path: task/create, ${ref && `ref: ${ref},`} body: {title: t, description: d, ${fields}}}`;
const on = (...refs: readonly string[]) =>
  `depends_on: [${refs.map((ref) => (ref.startsWith("$") ? ref : `{$ref: ${ref}}`))}]`;
/** Each depends on the five before it. */
const wide = (count: number) =>
  Array.from({ length: count }, (_, i) =>
    create(`r${i}`, on(...Array.from({ length: Math.min(i, 5) }, (_, j) => `r${i - j - 1}`))),
  );
const chain = Array.from({ length: 500 }, (_, i) =>
  create(`r${i}`, i === 0 ? "" : on(`r${i - 1}`, ...(i > 1 ? ["r0"] : []))),
);

const WRONG =
  "0.body.depends_on.0.$ref 1.body.depends_on.1.$ref 1.body.depends_on.2.$ref 2.ref 3.ref 4.ref 5.ref 6.ref 7.body.task_id.$ref"
    .split(" ")
    .map((path) => `requests.${path}`)
    .join(" ");

transcripts(`
== an unfinished task with the unique key is returned, whatever its state; a finished one is not
  nodes n1
  t = task/create {unique_key: nightly} -> {deduplicated: absent, task: {unique_key: nightly}}
  task/create {unique_key: nightly, title: another} -> {deduplicated: true, task_id: $t, task: {title: t}}
  task/claim $t n1
  task/create {unique_key: nightly, for_node: n1} -> {deduplicated: true, task_id: $t, status: assigned}
  task/complete $t n1
  u = task/create {unique_key: nightly} -> deduplicated absent
  task/cancel $u
  u = task/create {unique_key: nightly} -> deduplicated absent
  admin task/delete $u
  task/create {unique_key: <nightly|Nightly>} -> deduplicated absent
  GET task/stats -> total 4

== unique_for_s holds the key from the creation, finished or not
  nodes n1
  t = task/create {unique_key: report, unique_for_s: 3600}
  task/<claim|complete> $t n1
  tick 3540s
  task/create {unique_key: report} -> {deduplicated: true, task_id: $t, status: completed}
  tick 120s
  u = task/create {unique_key: report, unique_for_s: 1} -> deduplicated absent
  # Its time is over, and it is unfinished.
  tick 120s
  task/create {unique_key: report} -> task_id $u

== a task that is retried holds its unique key again, and the older of two gets the answer
  first = task/create {unique_key: k}
  task/cancel $first
  second = task/create {unique_key: k}
  task/retry $first
  task/create {unique_key: k} -> {deduplicated: true, task_id: $first}
  task/cancel $first
  task/create {unique_key: k} -> {deduplicated: true, task_id: $second}

== the requests of one batch see each other's unique keys, and each answer of a repeat is the same
  b = key b batch {requests: [${`${create("", "unique_key: k")}, `.repeat(3)}]} -> answers.body.deduplicated [absent, true, true]
  -> answers.body.task_id [$b.answers.0.body.task_id, $b.answers.0.body.task_id, $b.answers.0.body.task_id]
  replay

-- a unique key is checked
  task/create {unique_key: <""|" "|${"k".repeat(256)}|5>} -> 400 unique_key
  task/create {unique_key: ${"k".repeat(255)}, unique_for_s: 1.5}
  task/create {unique_for_s: 10} -> 400 unique_for_s
  task/create {unique_key: k, unique_for_s: 0} -> 400 unique_for_s

== refs stand for the ids of the tasks that earlier requests of a batch create (<A|B>)
  nodes n1 {auto_assign: false}
  before = task/create
  r = <|B >batch {requests: [${create("fetch")}, ${create("parse", on("fetch", "$before"))}, ${create("", on("parse", "fetch"))},
    {path: task/claim, body: {task_id: {$ref: fetch}, node_id: n1}}]} -> answers.status [200, 200, 200, 200]
  -> answers.1.body.task.depends_on [$r.answers.0.body.task_id, $before]
  -> answers.2.body.task.depends_on [$r.answers.1.body.task_id, $r.answers.0.body.task_id]
  -> answers.3.body {task_id: $r.answers.0.body.task_id, assigned_node: n1}

== 500 tasks in a chain are made in one call
  r = batch {requests: [${chain.join()}]} -> answers.status !~4
  task $r.answers.499.body.task_id -> unmet.count 2
  -> depends_on [$r.answers.498.body.task_id, $r.answers.0.body.task_id]

-- nothing of a graph is written that is too large for a batch (<A|B>)
  <|B >batch {requests: [${wide(500).join()}]} -> 413 graph_too_large
  GET task/stats -> total 0
  <|B >batch {requests: [${wide(250).join()}]} -> answers.status !~4
  GET task/stats -> total 250

-- what refers to a refused request is refused, and the others stand
  batch {requests: [${[create("a", 'title: ""'), create("b", `depends_on: [${NO_ID}]`), create("c", on("a")), create("", on("c"))].join()},
    {path: task/cancel, body: {task_id: {$ref: b}}}, ${create("d")}, {path: task/cancel, body: {task_id: {$ref: d}}}]} ->
    answers.status [400, 400, 409, 409, 409, 200, 200]
  -> answers.body.error [*, *, ref_refused, ref_refused, ref_refused, absent, absent]
  GET task/stats -> total 1

-- unknown, repeated and forward refs are refused with their places before anything runs
  batch {requests: [${[create("a", on("b")), create("b", on("a", "b", "5")), create("a")].join()},
    {ref: n, path: node/register, body: {node_id: n1, name: n1}},
    ${[create("k", "unique_key: k"), create('""'), create("r".repeat(65))].join()},
    {path: task/cancel, body: {task_id: {$ref: none}}}]} -> 400 ${WRONG}
  GET task/stats -> total 0
  task/create {${on("a")}} -> 400 depends_on.0

== task/<task_id>/graph has layers before the task, and what waits for it, on <A|B>
  a = <|B >task/create {title: a}
  <b|c|d|e|f|g> = <|B >task/create {title: <b|c|d|e|f|g>, depends_on: [<$a|$a, $b|$c|$d|$e|$f>]}
  <|B >GET task/$e/graph -> {dependents: 1, tasks: [{title: e, layer: 0, depends_on: [$d]}, {title: d, layer: -1, depends_on: [$c]},
    {title: c, layer: -2}, {title: a, layer: -3}, {title: b, layer: -3, depends_on: [$a]}, {title: f, layer: 1, depends_on: [$e]}]}
  <|B >GET task/$c/graph -> {dependents: 1, tasks: [{title: c, layer: 0}, {title: a, layer: -2}, {title: b, layer: -1}, {title: d, layer: 1}]}
  <|B >GET task/$a/graph -> {dependents: 2, tasks: [{title: a, layer: 0}, {title: b, layer: 1}, {title: c, layer: 1}]}
  # What has failed because of it is shown as well; what was deleted is not.
  <|B >task/cancel $e
  <|B >GET task/$e/graph -> {dependents: 1, tasks: [*, *, *, *, *, {title: f, layer: 1}]}
  admin task/delete $e
  <|B >GET task/$f/graph -> {dependents: 1, tasks: [{title: f, layer: 0}, {title: g, layer: 1}]}
  <|B >GET task/${NO_ID}/graph -> 404 task_not_found

-- task/<task_id>/graph shows 50 tasks of a layer, and counts the dependents
  first = task/create
  batch {requests: [${`${create("", on("$first"))}, `.repeat(60)}]}
  GET task/$first/graph -> {tasks: #51, dependents: 60}

== on_dependency: run starts a task when all that it depends on have ended, however
  nodes n1
  completed, failed, deleted, early = task/create
  task/cancel $early
  t = task/create {depends_on: [$completed, $failed, $deleted, $early], on_dependency: run}
  strict = task/create {depends_on: [$failed]}
  task $t -> {on_dependency: run, status: open, ready: false, unmet: {count: 3}}
  task/cancel $failed
  admin task/delete $deleted
  sweep
  task $t -> {ready: false, unmet: {count: 1, task_ids: [$completed]}}
  task $strict -> status failed
  task/<claim|complete> $completed n1
  sweep
  task/next n1 -> {task: {task_id: $t}, context: {inputs: [{task_id: $completed, status: completed},
    {task_id: $failed, status: failed, result: null}, {task_id: $deleted, status: null, result: null},
    {task_id: $early, status: failed, result: null}]}}
  task/fail $t n1 {retry: false}
  admin task/delete $early
  task/retry $t
  task $t -> {status: open, ready: true}

-- on_dependency: run: a retry of what failed leaves it as it is
  failed, other = task/create
  t = task/create {depends_on: [$failed, $other], on_dependency: RUN}
  task/cancel $failed
  sweep
  task/retry $failed {with_dependents: true} -> dependents {opened: 0, left: 0}
  task $t -> unmet {count: 1, task_ids: [$other]}
  task/create {on_dependency: wait} -> 400 on_dependency

== task/update changes a task that waits, and logs the names of what has changed
  nodes n1
  first = task/create
  t = task/create {priority: 2, lux_reward: 1, expires_at: +90s}
  task/update $t {title: new, description: other, priority: 0, lux_reward: 1.5, expires_at: +60s}
  -> task {task_id: $t, title: new, description: other, priority: 0, lux_reward: 1.5, expires_at: +60s, status: open}
  # A repeat changes nothing.
  task/update $t {title: new, description: other, priority: 0, lux_reward: 1.5}
  GET events?since=0&kind=task.updated -> events [{task_id: $t, data: {changed: "title,description,priority,lux_reward,expires_at"}}]
  task/next n1 -> task {task_id: $t, title: new, description: other}
  task/complete $t n1 -> lux_paid 1.5
  task/update $first {expires_at: +60s}
  tick 61s
  sweep
  task $first -> {status: failed, failure: {kind: expired}}

== task/update replaces the tags, or removes them, and lists find the task by the new ones
  t = task/create {tags: [red, blue]}
  task/update $t {tags: [green, red]} -> task.tags [green, red]
  GET task/list?tag=<green|blue> -> total <1|0>
  # Changes nothing.
  task/update $t {tags: [green, red]}
  GET events?since=0&kind=task.updated -> events.data.changed [tags]
  task/update $t {tags: []}
  task $t -> tags absent
  GET task/list?tag=green -> total 0

-- not_before makes a task wait, or ends its wait at once (<A|B>)
  t = <|B >task/create {not_before: +1h}
  <|B >nodes n1
  task $t -> ready false
  <|B >task/update $t {not_before: -1s} -> assigned_node <null|n1>
  other = task/create
  task/update $other {not_before: +1h}
  task $other -> {ready: false, not_before: +1h}
  task/claim $other n1 -> 409 task_not_ready

-- null ends the wait for a time, and takes the end of a task away (<A|B>)
  t = <|B >task/create {not_before: +60s, expires_at: +60s}
  <|B >nodes n1
  <|B >task/update $t {not_before: null, expires_at: null} -> task {not_before: null, expires_at: null}
  task $t -> assigned_node <null|n1>
  # There is nothing to clear.
  other = task/create
  task/update $other {not_before: null}
  GET events?since=0&kind=task.updated -> events [{task_id: $t, data: {changed: "not_before,expires_at"}}]
  tick 61s
  node/heartbeat n1
  sweep
  task $t -> failure null
  task/update $t {title: null} -> 400 ""

== a worker that waits gets a task whose wait was ended
  nodes n1
  t = task/create {not_before: +1h}
  w = & task/next n1 {wait: 30}
  task/update $t {not_before: -1s}
  $w -> task.task_id $t

-- task/update is refused when a node holds the task, when it has ended, and with another node's key
  nodes n1 n2
  t = task/create {creator_node: n2}
  k = admin key/add n1 {name: k}
  as $k task/update $t {title: new} -> 403 key_bound_to_other_node
  task/update {task_id: ${NO_ID}, title: new} -> 404 task_not_found
  task/claim $t n1
  task/update $t {title: new} -> 409 task_not_open
  task/complete $t n1
  task/update $t {title: new} -> 409 task_completed
  failed = task/create
  task/cancel $failed
  task/update $failed {title: new} -> 409 task_failed
  task/update $failed {title: " ", priority: p9} -> 400 title priority
  task/update $failed {expires_at: -1s} -> 400 expires_at
  task/update $failed -> 400 ""

== task/update counts against the quota of the node that created the task {quotaBytes: 20000}
  nodes n1
  k = admin key/add n1 {name: k}
  t = as $k task/create
  as $k task/update $t {description: ${"x".repeat(5_000)}}
  as $k task/update $t {description: ${"x".repeat(30_000)}} -> 429 quota_exceeded
  task $t -> description ${"x".repeat(5_000)}
  GET events?since=0&kind=task.updated -> events [{node_id: n1, verified: true}]

-- task/update lowers a reward only with the administrator key
  t = task/create {lux_reward: 2}
  task/update $t {lux_reward: 1} -> 403 lower_reward
  admin task/update $t {lux_reward: 1} -> task.lux_reward 1
`);
