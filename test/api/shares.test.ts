/**
 * What one key may do to the others (domain/shares.ts), on a strict hub: holds, schedules, reviews, names and gifts of
 * keys that are bound to a node. hub-limits.test.ts has the shares of what the whole hub bounds.
 */
import { GIFTS_OF_GIVER_MAX } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

/** Nodes with a key each, which is named as the node. */
const keys = (...nodes: readonly string[]): string =>
  nodes
    .map(
      (node) => `${node} = admin key/add ${node} {name: ${node}}
  as $${node} node/register ${node} {name: ${node}, auto_assign: false}`,
    )
    .join("\n");
const STRICT = "{isStrict: true, isPrivate: true}";

/** Fires the schedules, and says which were skipped. */
const fired = (skipped: string): string => `tick 60s; sweep
  GET events?since=0&kind=schedule.skipped -> events ${skipped}`;
const REVOKED = "{data: {name: s, reason: key_revoked}}";

const NEVER = "delay_s: 315360000";

transcripts(`
== a hold with a key that is bound to a node: is of a key of its tasks, for ten minutes, under its name ${STRICT}
  ${keys("n1", "n2")}
  as $n1 limit/hold {key: k, for_s: 60} -> 403 not_assigned_to_node
  t = task/create {task_type: k}
  as $n1 task/claim $t n1
  as $n2 limit/hold {key: k, for_s: 60} -> 403 not_assigned_to_node
  as $n1 limit/hold {key: k, for_s: 601} -> 400 for_s
  as $n1 task/release $t n1 {hold_s: 601} -> 400 hold_s
  as $n1 task/fail $t n1 {hold_s: 601} -> 400 hold_s
  h = as $n1 limit/hold {key: k, for_s: 600} -> limit {key: k, held_by: n1}
  admin GET limit/list -> limits [$h.limit]
  GET events?kind=limit.held -> events [{data: {held_by: n1}}]
  # The longer hold stays.
  as $n1 task/release $t n1 {hold_s: 60}
  admin GET limit/list -> limits [{held_until: $h.limit.held_until}]
  limit/hold {key: k, for_s: 3600} -> limit.held_by null
  admin limit/delete {key: k}
  as $n2 task/claim $t n2

== a key that is revoked: of a node leaves its schedule to the node's other key, until that is revoked too ${STRICT}
  ${keys("evil")}
  <a|b> = admin key/add evil {name: <a|b>}
  admin key/revoke {name: evil}
  as $a schedule/put {name: s, every_s: 60, overlap: queue, task: {title: t, description: d}}
  schedule/put {name: operators, every_s: 60, overlap: queue, task: {title: t, description: d}}
  ${fired("[]")}
  admin key/revoke {name: a}
  ${fired("[]")}
  GET task/count?creator_node=evil -> count 2
  admin key/revoke {name: b}
  ${fired(`[${REVOKED}]`)}
  ${fired(`[${REVOKED}, ${REVOKED}]`)}
  GET task/count?creator_node=evil -> count 2
  GET task/count -> count 6

== a key that is revoked: of no node leaves no schedule that goes on ${STRICT}
  <a|b> = admin key/add {name: <a|b>}
  as $a schedule/put {name: s, every_s: 60, overlap: queue, task: {title: t, description: d}}
  schedule/put {name: operators, every_s: 60, overlap: queue, task: {title: t, description: d}}
  ${fired("[]")}
  admin key/revoke {name: a}
  ${fired(`[${REVOKED}]`)}
  GET task/count -> count 3

-- a key that is bound to a node reviews for no creator that it is not ${STRICT}
  ${keys("worker", "friend", "boss")}
  t = task/create {review: creator}
  u = as $boss task/create {review: creator}
  as $worker task/claim $<t|u> worker
  as $worker task/complete $<t|u> worker
  as $friend task/review $<t|u> {verdict: pass} -> 403 not_reviewer
  as $worker task/review $t {verdict: pass} -> 403 own_work
  task/review $t {verdict: pass}
  as $boss task/review $u {verdict: pass}

== names with a key that is bound to a node: a unique key is that of the node, or of all others together ${STRICT}
  ${keys("evil", "boss")}
  fleet = admin key/add {name: fleet}
  taken = as $evil task/create {unique_key: daily, unique_for_s: 60, ${NEVER}}
  own = as $boss task/create {unique_key: daily, unique_for_s: 60} -> {deduplicated: absent, task_id: !$taken}
  hubs = task/create {unique_key: daily, unique_for_s: 60} -> {deduplicated: absent, task_id: !$taken}
  as $<boss|fleet|evil> task/create {unique_key: daily} -> {deduplicated: true, task_id: $<own|hubs|taken>}
  task/create {unique_key: daily} -> {deduplicated: true, task_id: $hubs}
  as $evil task/cancel $taken
  # For 60 s.
  as $evil task/create {unique_key: daily, unique_for_s: 60} -> deduplicated true
  tick 61s
  as $evil task/create {unique_key: daily} -> deduplicated absent

== names with a key that is bound to a node: a group is that of the node: nobody else keeps it from its end ${STRICT}
  ${keys("evil", "boss")}
  as $evil task/create {group: release-7, ${NEVER}}
  t = as $boss task/create {group: release-7} -> task.group release-7/boss
  as $boss GET group/release-7 -> {total: 1, done: false}
  as $boss task/claim $t boss
  as $boss task/complete $t boss
  as $boss GET group/release-7?wait=60 -> {total: 1, done: true}
  t = task/create {group: release-7} -> task.group release-7
  GET group/release-7 -> {total: 1, done: false}
  as $boss task/claim $t boss
  as $boss task/complete $t boss
  GET group/release-7?wait=60 -> {total: 1, done: true}
  until GET events?since=0&kind=group.ended -> events.data.group [release-7/boss, release-7]
  GET group/list?q=release -> groups.group [release-7, release-7/boss, release-7/evil]
  # Filters: the node's and the hub's; of all others those that they name.
  as $boss GET task/list?group=release-7 -> total 2
  GET task/list?group=<release-7|release-7%2Fevil> -> total 1
  as $boss GET events?since=0&kind=task.created&group=release-7 -> events #2
  GET events?since=0&kind=task.created&group=release-7 -> events #1
  # The full name is accepted from its owner alone; an administrator ends what the node began.
  as $boss task/create {group: release-7/boss}
  as $evil task/create {group: release-7/boss} -> 400 group
  task/create {group: release-7/boss} -> 400 group
  as $boss group/cancel {group: release-7/evil} -> cancelled 0
  group/cancel {group: release-7/evil} -> {cancelled: 1, left: 0}
  as $evil group/retry {group: release-7} -> {group: release-7/evil, retried: 1}
  as $boss group/cancel {group: none} -> 404 group_not_found
  as $boss GET group/none?wait=1 -> 404 group_not_found
  GET group/release-7%2Fevil -> total 1

== a task that a key sends to another node: waits in line with the others: by priority, type and room ${STRICT}
  ${keys("evil", "honest")}
  as $honest node/register honest {name: h, capabilities: [summarise], max_tasks: 1, auto_assign: false}
  as $evil task/create {for_node: honest, task_type: other} -> 409 requirements_not_met
  as $evil task/create {for_node: honest, limit_key: k} -> 400 limit_key
  as $evil task/create {for_node: honest, requires: {resources: {gpu: 1}}} -> 400 requires
  as $evil task/create {requires: {capabilities: ["node:honest"]}} -> 400 requires.capabilities
  ${Array.from(
    { length: GIFTS_OF_GIVER_MAX },
    (_, n) =>
      `as $evil task/create {for_node: honest, title: gift, priority: 1${n % 2 === 0 ? ", task_type: summarise" : ""}} -> assigned_node null`,
  ).join("\n")}
  as $evil task/create {for_node: honest<|, task_type: summarise>} -> 409 gifts_limit
  as $honest node honest -> tasks_assigned 0
  g = GET task/list?creator_node=evil&per_page=1
  as $evil task/update {task_id: $g.tasks.0.task_id, limit_key: k} -> 409 gifts_limit
  task/create {title: real-<0|2>, priority: <0|2>, task_type: summarise}
  admins = admin task/create {for_node: honest, title: operators, priority: 2} -> assigned_node honest
  as $honest task/next honest -> task.title operators
  # It is full.
  as $honest task/next honest -> task null
  as $honest task/complete $admins honest
  c = as $honest task/next honest {task_types: [summarise]} -> task {title: real-0, task_type: summarise}
  as $honest task/complete $c honest
  c = as $honest task/next honest {task_types: [summarise]} -> task {title: gift, task_type: summarise}
  as $honest task/complete $c honest
  c = as $honest task/next honest {task_types: [summarise]} -> task {title: gift, task_type: summarise}
  as $honest task/complete $c honest
  # There is room again.
  as $evil task/create {for_node: honest, task_type: summarise}
  as $evil node/register evil {name: e, capabilities: ["node:honest", summarise]}
  as $evil task/next evil {task_types: [summarise]} -> task.title real-2
  as $evil task/next evil -> task null

== a task that a key sends to another node: reaches one to which the balancer gives tasks ${STRICT}
  ${keys("evil", "honest")}
  as $honest node/register honest {name: h, auto_assign: true, max_tasks: 1}
  t = as $evil task/create {for_node: honest}
  tick 10s
  until task $t -> assigned_node honest

== the word of a node waits for it, and no other node has the word
  nodes other {capabilities: ["node:late"], auto_assign: false}
  t = task/create {requires: {capabilities: ["node:late"]}}
  task/next other -> task null
  task/claim $t other -> 409 requirements_not_met
  GET task/$t/explain -> reasons ~no_node
  nodes late {auto_assign: false}
  task/next late -> task.task_id $t
`);
