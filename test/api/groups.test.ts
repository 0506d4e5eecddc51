/**
 * Groups and tags over HTTP: what a task shows, lists by group, the counts and the end of a group, one wait for all of
 * it, cancel and retry in steps, and what a bound key may do. group-events.test.ts has the events.
 */
import { GROUP_STEP_TASKS, LUX_REWARD_MAX, TAGS_MAX } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

const create = (count: number) =>
  `batch {requests: [${"{path: task/create, body: {title: t, description: d, group: g}}, ".repeat(count)}]}`;
/** group.ended is logged in a commit of its own. */
const ended = (times: number) => `until GET events?since=0&kind=group.ended -> events #${times}`;

transcripts(`
== the list of groups is by name, in pages, with counts, on <A|B>
  <|B >task/create {group: <b.2|a|b.1|B|b.1>, lux_reward: 1}
  <|B >task/create
  <|B >GET group/list -> {groups: [{group: B}, {group: a}, {group: b.1}, {group: b.2}], next_cursor: null}
  <|B >GET group/list?q=b. -> {groups: [{group: b.1}, {group: b.2}], next_cursor: null}
  <|B >GET group/list?q=c -> {groups: [], next_cursor: null}
  <|B >GET group/list?limit=3 -> {groups: [{group: B}, {group: a}, {group: b.1}], next_cursor: b.1}
  <|B >GET group/list?limit=3&cursor=b.1 -> {groups: [{group: b.2}], next_cursor: null}
  <|B >GET group/list?q=b.&limit=1&cursor=b.1 -> {groups: [{group: b.2}], next_cursor: null}
  g = <|B >GET group/list?q=b.1 -> groups [{total: 2, lux_reward: 2}]
  <|B >GET group/b.1 -> $g.groups.0
  -> {usage: null, failures: []}
  <|B >GET group/list?limit=51 -> 400 limit

== the group and the tags of a task are shown on it, and only on it, on <A|B>
  t = <|B >task/create {group: nightly.1, tags: [red, "a b", é, red]}
  other = <|B >task/create
  task $t -> {group: nightly.1, tags: [red, "a b", é]}
  task $other -> {group: absent, tags: absent}
  <|B >GET task/list -> tasks [{group: absent}, {group: nightly.1}]

-- groups and tags have limits
  task/create {group: <""|"a b"|cancel|retry|${"x".repeat(129)}>} -> 400 group
  task/create {tags: ["a,b", ${"x".repeat(65)}]} -> 400 tags.0 tags.1
  task/create {tags: [${Array.from({ length: TAGS_MAX + 1 }, (_, i) => `t${i}`)}]} -> 400 tags

== groups and tags select tasks in lists, with the other filters and over pages
  nodes n1
  a = task/create {group: g, tags: [red, blue]}
  b = task/create {group: g, tags: [reddish]}
  c = task/create {group: other, tags: [red]}
  task/create
  d = task/create {group: g, title: "the done one"}
  task/<claim|complete> $d n1
  GET task/list?group=g<|&status=open|&node_id=n1|&q=done> -> tasks.task_id [<$d, $b, $a|$b, $a|$d|$d>]
  GET task/list?tag=<red|red&group=g|re> -> tasks.task_id [<$c, $a|$a|>]
  p = GET task/list?group=g&per_page=2 -> total 3
  GET task/list?group=g&per_page=2&cursor=$p.next_cursor -> tasks.task_id [$a]

== groups tell at their end how their tasks have ended
  nodes n1
  done, failing = task/create {group: g}
  task/create {group: g}
  task/claim $<done|failing> n1
  task/complete $done n1
  task/fail $failing n1 {retry: false}
  group/cancel {group: g}
  ${ended(1)}
  GET events?since=0&kind=group.ended -> events.data [{group: g, completed: 1, failed: 1, cancelled: 1}]
  task/retry $failing
  task/<claim|complete> $failing n1
  ${ended(2)}
  GET events?since=0&kind=group.ended -> events.1.data {group: g, completed: 2, failed: 0, cancelled: 1}

-- group and tags are those of the tasks of a schedule
  schedule/put {name: s, every_s: 60, task: {title: t, description: d, group: g, tags: [x]}}
  -> schedule.task {group: g, tags: [x]}
  schedule/run {name: s} -> task {group: g, tags: [x]}

== a group is its tasks: counts, times, LUX, usage and failures
  GET group/g -> 404 group_not_found
  nodes n1
  task/create {group: g, lux_reward: 1}
  done = task/create {group: g, lux_reward: 2.5}
  failed = task/create {group: g, title: bad}
  task/create {group: other, lux_reward: 9}
  task/claim $<done|failed> n1
  task/extend $done n1 {usage: [{seq: 1, model: m, input_tokens: 10, output_tokens: 5, cost_usd: 0.25}]}
  task/complete $done n1
  task/fail $failed n1 {retry: false}
  GET group/g -> {group: g, done: false, total: 3, unfinished: 1, lux_reward: 3.5, lux_paid: 2.5}
  -> by_status {open: 1, completed: 1, failed: 1}
  -> usage {input_tokens: 10, output_tokens: 5, cost_usd: 0.25}
  -> failures [{task_id: $failed, title: bad, failure: {message: e}}]
  -> {first_created_at: -0s, last_created_at: -0s, last_updated_at: -0s}
  GET usage?by=group -> usage [{name: g, cost_usd: 0.25}]

== a group sums rewards exactly, however large, and is gone with its last task
  t = task/create {group: g, lux_reward: ${LUX_REWARD_MAX}}; ${Array.from({ length: 11 }, (_, i) => `t${i} = task/create {group: g, lux_reward: ${LUX_REWARD_MAX}}`).join("; ")}
  small = task/create {group: g, lux_reward: 0.000001}
  admin task/delete $<t|${Array.from({ length: 11 }, (_, i) => `t${i}`).join("|")}>
  GET group/g -> {total: 1, lux_reward: 0.000001}
  admin task/delete $small
  GET group/g -> 404 group_not_found
  GET group/list -> groups []

== a group ends once, with the last of its unfinished tasks, however that ends
  nodes n1
  first, last = task/create {group: g}; task/claim $first n1; task/complete $first n1; task/claim $last n1;
  <task/complete $last n1|task/fail $last n1 {retry: false}|task/cancel $last|admin task/delete $last>;
  until GET events?since=0&kind=group.ended -> events #<1|2|3|4>
  GET events?since=0&kind=group.ended -> events.0 {node_id: null, task_id: null, data: {group: g}}

== a group ends when a task expires, or fails through another one
  before = task/create {expires_at: +60s}
  task/create {group: g, depends_on: [$before]}
  GET group/g -> done false
  tick 61s
  sweep
  ${ended(1)}
  # Fails at once.
  task/create {group: g, depends_on: [$before]}
  ${ended(2)}
  GET group/g -> {done: true, by_status: {failed: 2}}

== a group is waited for
  nodes n1
  a, b = task/create {group: g}
  task/claim $<a|b> n1
  GET group/g?wait=0.01 -> {done: false, unfinished: 2}
  w = & GET group/g?wait=300
  task/complete $a n1
  $w waits
  task/complete $b n1
  $w -> {done: true, unfinished: 0, by_status: {completed: 2}}
  GET group/g?wait=300 -> done true
  GET group/none?wait=300 -> 404 group_not_found

== a group ends once when a batch ends all of it
  a, b = task/create {group: g}
  batch {requests: [{path: task/cancel, body: {task_id: $a}}, {path: task/cancel, body: {task_id: $b}}]}
  ${ended(1)}
  sweep
  ${ended(1)}

== cancel and retry of a group change all of it in steps, and say how many are left
  ${create(GROUP_STEP_TASKS)}
  ${create(5)}
  keep = task/create
  group/<cancel|retry> {group: none} -> 404 group_not_found
  group/cancel {group: g, reason: enough} -> {cancelled: ${GROUP_STEP_TASKS}, left: 5}
  group/cancel {group: g} -> {cancelled: <5|0>, left: 0}
  ${ended(1)}
  # What people cancel is no failure.
  GET group/g -> {done: true, total: ${GROUP_STEP_TASKS + 5}, cancelled: ${GROUP_STEP_TASKS + 5}, failures: [], by_status: {failed: 0}}
  task $keep -> status open
  first = group/retry {group: g} -> {retried: ${GROUP_STEP_TASKS}, left: 5}
  group/retry {group: g, cursor: $first.next_cursor} -> {retried: 5, left: 0, next_cursor: null}
  GET group/g -> {done: false, by_status: {open: ${GROUP_STEP_TASKS + 5}}}

== cancel and retry of a group keep what depends on each other in order
  nodes n1
  a = task/create {group: g}
  b = task/create {group: g, depends_on: [$a]}
  c = task/create {group: g, depends_on: [$b]}
  group/cancel {group: g} -> cancelled 3
  task $<a|b|c> -> failure.kind cancelled
  group/retry {group: g} -> retried 3
  task $c -> {status: open, ready: false}
  until task $<a|b|c> -> {status: open, ready: true}; task/next n1 -> task.task_id $<a|b|c>; task/complete $<a|b|c> n1
  ${ended(2)}

-- a retry of a group leaves what cannot be retried
  nodes n1
  outside = task/create
  held = task/create {group: g, depends_on: [$outside]}
  costly = task/create {group: g, max_cost_usd: 1}
  done = task/create {group: g}
  task/claim $<outside|costly|done> n1
  task/fail $outside n1 {retry: false}
  sweep
  task/extend $costly n1 {usage: [{seq: 1, model: m, input_tokens: 1, output_tokens: 1, cost_usd: 2}]}
  task/complete $done n1
  group/retry {group: g} -> {retried: 0, left: 0, next_cursor: null}
  task $<held|costly> -> status failed

-- a retry of a group opens what runs however its dependencies ended
  nodes n1
  outside = task/create
  runs = task/create {group: g, depends_on: [$outside], on_dependency: run}
  task/claim $outside n1
  task/fail $outside n1 {retry: false}
  sweep
  task/claim $runs n1
  task/fail $runs n1 {retry: false}
  group/retry {group: g} -> {retried: 1, left: 0}
  task $runs -> {status: open, ready: true}

-- cancel and retry of a group with a bound key concern only what its node created; and a batch may have them
  nodes n1
  k = admin key/add n1 {name: k}
  own = as $k task/create {group: g}
  other = task/create {group: g}
  as $k group/cancel {group: g} -> {cancelled: 1, left: 0}
  task $own -> {status: failed, failure: {node_id: n1}}
  task $other -> status open
  as $k group/cancel n2 {group: g} -> 403 key_bound_to_other_node
  batch {requests: [
    {path: group/retry, body: {group: g/n1}}, {path: group/cancel, body: {group: g/n1}},
    {path: group/cancel, body: {group: g}}]} ->
    answers [{body: {retried: 1}}, {body: {cancelled: 1}}, {body: {cancelled: 1}}]

-- on B the balancer gives the retried tasks of a group out
  t = B task/create {group: g}
  B group/cancel {group: g}
  B nodes n1
  B group/retry {group: g}
  task $t -> assigned_node n1
  B GET group/g -> {by_status: {pending: 1, failed: 0}, unfinished: 1}
`);
