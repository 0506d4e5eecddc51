/** Calls at the same moment, at one hub and at two: one wins, and nothing is done twice. concurrency.test.ts has the rest. */
import { transcripts } from "../support/transcript.ts";
import { RESULT } from "./scene.ts";

const nodes = (count: number): readonly string[] => Array.from({ length: count }, (_, i) => `n${i}`);
const registered = (count: number): string => `nodes ${nodes(count).join(" ")} {auto_assign: false}`;
/** A call by each of so many nodes. */
const each = (count: number, call: (node: string, i: number) => string): string =>
  nodes(count)
    .map((node, i) => `+ ${call(node, i)}`)
    .join("\n");
const draft = "{path: task/create, body: {title: t, description: d, unique_key: only}}";

transcripts(`
== of 4,000 creates with one unique key, one makes a task and all answer with it
  at once -> statuses {"200": 48}
  ${each(8, () => `batch {requests: [${`${draft}, `.repeat(490)}]}`)}
  ${each(40, () => "task/create {unique_key: only}")}
  task/create {unique_key: only} -> deduplicated true
  GET task/stats -> total 1

== of 60 creations with the keys of one node, as many pass as its quota has room for {quotaTasks: 7}
  <k1|k2> = admin key/add n1 {name: <k1|k2>}
  at once -> statuses {"200": 7, "429": 53}
  ${each(60, (_, i) => `as $k${(i % 2) + 1} task/create`)}
  GET task/stats -> total 7

== of 20 creations with one file, exactly one gets it
  f = upload a.txt
  at once -> statuses {"200": 1, "400": 19}
  ${each(20, () => "task/create {files: [$f]}")}
  GET task/stats -> total 1

== of 20 nodes that acquire overlapping leases, exactly one wins
  ${registered(20)}
  at once -> statuses {"200": 1, "409": 19}
  ${each(20, (node, i) => `lease/acquire ${node} {name: ${i % 2 ? "a/*" : "a/b"}}`)}

== of 20 writes of a note with one version, exactly one wins
  note/put {key: counter, text: "0"}
  at once -> statuses {"200": 1, "409": 19}
  ${each(20, (node) => `note/put ${node} {key: counter, text: x, if_version: 1}`)}

== 20 registrations of one node create one node, 30 sign-ins pay it once, and 20 heartbeats bring it online once
  at once -> statuses {"200": 20}
  ${each(20, () => "node/register n1 {name: n, auto_assign: true}")}
  GET node/list -> nodes #1
  GET events?since=0&kind=node.online -> events #1
  at once -> statuses {"200": 30}
  ${each(30, () => "signin n1")}
  node n1 -> lux_balance 10
  node/leave n1
  t = B task/create
  at once -> statuses {"200": 20}
  ${each(20, () => "node/heartbeat n1")}
  GET events?since=0&kind=node.online -> events #2
  events $t -> [task.created, task.assigned]

== of 50 claims exactly one wins
  ${registered(50)}
  t = task/create
  at once -> statuses {"200": 1, "409": 49}
  ${each(50, (node) => `task/claim $t ${node}`)}
  events $t -> [task.created, task.assigned]

== of 50 nodes that complete an open task of B, one succeeds and is paid; repeats of it pay nothing more
  ${registered(50)}
  t = task/create {lux_reward: 5}
  at once -> statuses {"200": 1, "403": 49}
  ${each(50, (node) => `B task/complete $t ${node}`)}
  done = task $t -> status completed
  at once -> statuses {"200": 30}
  ${each(30, () => "task/complete $t {node_id: $done.assigned_node}")}
  node $done.assigned_node -> {lux_balance: 5, tasks_completed: 1}

== of 20 results one is kept
  nodes n1
  t = task/create
  task/claim $t n1
  at once -> statuses {"200": 1, "409": 19}
  ${each(20, (_, i) => `task/complete $t n1 {result: {lesson: "lesson ${i}"}}`)}
  task $t -> result {problem: "${RESULT.problem}", lesson: ~lesson}

== 200 tasks created on B are spread evenly
  nodes a b c d
  at once -> statuses {"200": 200}
  ${each(200, () => "B task/create")}
  node <a|b|c|d> -> tasks_assigned 50

== runs of the balancer assign each task once
  at once
  ${each(100, () => "task/create")}
  nodes a b {max_tasks: 40}
  at once -> statuses {"200": 8}
  ${each(8, () => "B task/batch-assign")}
  node <a|b> -> tasks_assigned 40
  GET events?since=0&kind=task.assigned&limit=1000 -> events #80
`);
