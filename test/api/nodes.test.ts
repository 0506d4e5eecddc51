/**
 * Nodes: registration, heartbeats, listing, deletion. offline.test.ts tests missing heartbeats, variants.test.ts the
 * differences between the variants, races.test.ts simultaneous registrations.
 */
import { ENDPOINTS } from "../../src/api/routes.ts";
import { transcripts } from "../support/transcript.ts";

/** No node may be called as a path is: GET node/<id> would not reach it. */
const WORDS = ENDPOINTS.flatMap(({ path }) => /^\/api\/v1\/node\/([^:/]+)$/.exec(path)?.[1] ?? []);
const RESERVED = [...WORDS, ".", ".."].map((word) => `"${word}"`).join("|");

/** n1 has a completed task, one that it holds, a sign-in, and a message that waits for it. */
const WORKED = `
  nodes n1
  done = task/create {lux_reward: 2}
  task/assign $done n1
  task/complete $done n1
  signin n1
  message/send {from_node: op, to_node: n1, content: hello}
  held = task/create
  task/assign $held n1`;

/** b holds 2 tasks, d 3 and drains, e 2; c is offline; c and e have signed in. */
const PAGED = `
  nodes c a e b d gone
  nodes f {name: "Über Alpha"}
  admin node/delete gone
  t = task/create; task/assign $t <b|b|d|d|d|e|e>
  signin <c|e>
  node/leave c
  node/drain d {drain: true}`;
/** A list in one page, and in pages of two by number and by cursor. */
const ordered = (query: string, ids: string) => `
  GET node/list?${query}&per_page=6 -> {nodes: [${ids.replaceAll(/\w+/g, "{node_id: $&}")}], total: 6, next_cursor: null}
  GET node/list?${query}&per_page=2&page=2 -> nodes.node_id [${ids.split(", ").slice(2, 4)}]
  p = GET node/list?${query}&per_page=4&cursor= -> nodes.node_id [${ids.split(", ").slice(0, 4)}]
  GET node/list?${query}&per_page=4&cursor=$p.next_cursor -> {nodes: [{node_id: ${ids.split(", ")[4]}}, {node_id: ${ids.split(", ")[5]}}], next_cursor: null}`;

transcripts(`
== a registration creates a node, online at once, and answers the whole node
  node/register n1 {name: "Node One", host: 10.0.0.1, port: 8080, max_tasks: 3, auto_assign: true, capabilities: "coding, research"}
  -> {node_id: n1, status: online, created: true, heartbeat_interval: 60, offline_after: 180}
  -> node {name: "Node One", host: 10.0.0.1, port: 8080, max_tasks: 3, auto_assign: true, capabilities: "coding,research"}
  -> node {status: online, draining: false, lux_balance: 0, tasks_assigned: 0, tasks_completed: 0}
  node n1 -> {registered_at: +0s, last_heartbeat: +0s}
  GET events?since=0&node_id=n1 -> [node.registered, node.online]

-- a registration requires only a node_id and a name
  node/register n1 {name: n} -> node {host: null, port: null, capabilities: "", max_tasks: null}

== a second registration updates the node and keeps its LUX and counters
  nodes n1 {name: old, host: old, port: 1, capabilities: a, max_tasks: 9}
  t, u = task/create {lux_reward: 2}
  task/assign $<t|u> n1
  task/complete $t n1
  message/send {from_node: op, to_node: n1, content: x}
  before = node n1
  tick 5s
  # What a registration leaves out is not set any more.
  nodes n1 {name: new, capabilities: [b]}
  node n1 -> {name: new, host: null, port: null, capabilities: b, max_tasks: null, status: online}
  -> {lux_balance: 2, tasks_assigned: 1, tasks_completed: 1, registered_at: $before.registered_at, last_heartbeat: !$before.last_heartbeat}
  node/heartbeat n1 -> messages_waiting 1
  GET status -> nodes_count 1
  GET events?since=0&kind=node.registered -> events #1

-- any valid node_id and any name of up to 200 characters is accepted
  node/register {node_id: "<a|0|A-z_0.9:x|${"x".repeat(128)}|...|List|__proto__|null>", name: ${"🦊".repeat(100)}}
  GET node/list -> nodes #8

-- a registration on <A|B> names every bad field
  <|B >node/register {} -> 400 node_id name
  <|B >node/register {node_id: <""|" "|"a b"|a/b|ä|"a\\\\n"|${"x".repeat(129)}|5|null|[n1]>, name: n} -> 400 node_id
  <|B >node/register {node_id: <${RESERVED}>, name: n} -> 400 node_id
  <|B >node/register n1 {name: <""|"  "|${"x".repeat(201)}|5|null>} -> 400 name
  <|B >node/register n1 {name: n, port: <"80"|-1|65536|1.5>} -> 400 port
  <|B >node/register n1 {name: n, host: <5|[h]|{}>} -> 400 host
  <|B >node/register n1 {name: n, max_tasks: <0|-1|1.5|"3">} -> 400 max_tasks
  <|B >node/register n1 {name: n, auto_assign: <0|"true"|[]>} -> 400 auto_assign
  <|B >GET node/list -> nodes []
  node/register n1 {name: n, port: 0} -> node.port 0
  node/register n1 {name: n, port: 65535} -> node.port 65535

-- a registration with another profile is an event that names the fields, and without a change none
  nodes n1 {port: 1, capabilities: a}
  nodes n1 {port: 1, capabilities: [a]}
  B nodes n1 {name: new, host: h, max_tasks: 2, auto_assign: false}
  GET events?since=0&node_id=n1 -> [node.registered, node.online, node.updated]
  -> events.2.data {name: new, changed: "name,host,port,capabilities,variant,max_tasks,auto_assign"}

== a heartbeat answers its time of arrival, and the number of the node's tasks and messages
  nodes n1
  <t|u|v> = task/create; task/assign $<t|u|v> n1
  task/complete $v n1
  task/create
  message/send {from_node: op, to_node: n1, content: m<1|2|3>}
  tick 50s
  h = node/heartbeat n1 -> {node_id: n1, status: online, drain: false, heartbeat_interval: 60, tasks_assigned: 2, messages_waiting: 3}
  -> last_heartbeat +0s
  node n1 -> {last_heartbeat: $h.last_heartbeat, registered_at: -50s}
  GET events?since=0&kind=node.online -> events #1

-- a heartbeat of an unknown node is 404, and requires a node_id
  node/heartbeat ghost -> 404 node_not_found {detail: ~egister}
  GET status -> nodes_count 0
  node/heartbeat {node_id: <null|5|"a b"|"">} -> 400 node_id

== list and get show what each node owns and does
  nodes b a c
  t = task/create {lux_reward: 1.5}
  u = task/create
  task/assign $<t|u> <a|b>
  task/complete $t a
  signin c
  l = GET node/list -> nodes [{node_id: a, lux_balance: 1.5, tasks_assigned: 0, tasks_completed: 1, status: online},
    {node_id: b, lux_balance: 0, tasks_assigned: 1}, {node_id: c, lux_balance: 10, tasks_assigned: 0}]
  GET node/a -> node $l.nodes.0

-- list and get show none on an empty hub, and hundreds completely
  GET node/list -> nodes []
  <|B >GET node/ghost -> 404 node_not_found
  batch {requests: [${Array.from({ length: 300 }, (_, i) => `{path: node/register, body: {node_id: n${i}, name: n}}`)}]}
  GET node/list -> nodes #300
  GET status -> nodes_count 300

== the list shows on request what the nodes of a page do
  nodes n1 n2 n3
  a, b, c, d, e = task/create
  task/assign $<a|b|c|d|e> <n1|n1|n1|n1|n3>
  GET node/list?tasks=1 -> nodes.node_id [n1, n2, n3]
  -> tasks.task_id [$a, $b, $c, $e]
  -> tasks.3 {assigned_node: n3, status: assigned}
  GET node/list?tasks=1&per_page=2&page=2 -> tasks.task_id [$e]
  GET node/list?tasks=0 -> tasks absent

== pages of the list are in the order of ids, of load or of LUX
  ${PAGED}
  GET node/list?per_page=4 -> {page: 1, per_page: 4, total: 6, pages: 2}
  GET node/list?page=3 -> nodes []
  ${ordered("order=id", "a, b, c, d, e, f")}
  # c is offline.
  ${ordered("order=busy", "d, b, e, a, f, c")}
  ${ordered("order=lux", "c, e, a, b, d, f")}

== pages of the list are selected by state, and by the beginning of the node_id, the name or the host
  ${PAGED}
  GET node/list?status=<online|offline|draining>&order=id -> nodes.node_id [<a, b, d, e, f|c|d>]
  GET node/list?status=Online&order=busy -> nodes.node_id [d, b, e, a, f]
  GET node/list?order=id&q=<%C3%BCBER|A|alpha|b&status=offline> -> nodes.node_id [<f|a||>]
  nodes g {host: box-7.local}
  GET node/list?order=id&q=BOX-7 -> nodes.node_id [g]
  admin node/delete g
  GET node/list?order=lux&q=b&status=online -> {nodes: [{node_id: b}], total: 1, next_cursor: null}
  p = GET node/list?status=Online&order=busy&per_page=2&cursor= -> nodes.node_id [d, b]
  GET node/list?status=Online&order=busy&per_page=2&cursor=$p.next_cursor -> nodes.node_id [e, a]
  until GET stats/nodes -> {total: 6, by_status: {online: 5, offline: 1}, draining: 1, lux_balance: 20}

== stats/nodes follows registrations, payments and nodes that leave
  GET stats/nodes -> {total: 0, by_status: {online: 0, offline: 0}, draining: 0, lux_balance: 0}
  nodes n1
  until GET stats/nodes -> {total: 1, by_status: {online: 1}}
  t = task/create {lux_reward: 0.5}
  task/<assign|complete> $t n1
  node/leave n1
  until GET stats/nodes -> {total: 1, by_status: {online: 0, offline: 1}, lux_balance: 0.5}

-- bad fields of the list are named
  ${PAGED}
  GET node/list?status=busy -> 400 status
  GET node/list?order=name -> 400 order
  GET node/list?q=${"x".repeat(201)} -> 400 q
  GET node/list?<page|per_page>=0 -> 400 <page|per_page>
  GET node/list?per_page=50&page=201 -> 400 page
  GET node/list?cursor=<x|${Buffer.from("busy 9223372036854775808 a").toString("base64url")}> -> 400 cursor
  p = GET node/list?per_page=1&order=busy
  # Of another order.
  GET node/list?cursor=$p.next_cursor -> 400 cursor
  GET node/list?order=busy&page=1&cursor=$p.next_cursor -> 400 page
  GET node/list?per_page=50&page=200 -> nodes []
  GET node/list?per_page=&q= -> {nodes: *, page: absent, total: absent}

== delete on <A|B> removes the registration, and gives its tasks back
  ${WORKED}
  <|B >admin node/delete n1 -> node_id n1
  <|B >GET node/n1 -> 404 node_not_found
  <node/heartbeat n1|GET task/pull?node_id=n1|message/receive n1|admin node/delete n1> -> 404 node_not_found
  message/send {from_node: op, to_node: n1, content: x} -> 404 node_not_found
  GET node/list -> nodes []
  GET status -> {nodes_count: 0, tasks_count: 2}
  GET task/stats -> top_nodes []
  task $held -> {status: open, assigned_node: null, attempts: 0}
  task $done -> {status: completed, assigned_node: n1}
  GET events?node_id=n1&limit=2 -> events [{kind: task.released, data: {reason: "the node was deleted"}}, {kind: node.deleted, data: {name: n1}}]

-- delete leaves the ledger and the messages of a node, which still answer
  ${WORKED}
  nodes quiet
  admin node/delete <n1|quiet>
  GET lux/ledger?node_id=n1 -> entries.amount [10, 2]
  GET <message/history|agent/messages>?node_id=n1 -> messages.content [hello]
  GET lux/ledger?node_id=quiet -> {entries: [], total: 0}
  GET message/history?node_id=quiet -> messages []
  GET lux/ledger?node_id=ghost -> 404 node_not_found

== a new registration continues with the earned LUX and the waiting messages
  ${WORKED}
  GET task/stats -> top_nodes.node_id [n1]
  admin node/delete n1
  tick 5s
  node/register n1 {name: again} -> created true
  n = node n1 -> {name: again, lux_balance: 12, tasks_completed: 1, tasks_assigned: 0, registered_at: +0s}
  GET task/stats -> top_nodes.node_id [n1]
  node/heartbeat n1 -> messages_waiting 1
  signin n1 -> already_signed_in true
  task/<claim|complete> $held n1
  GET lux/ledger?node_id=n1 -> entries.amount [10, 2]

-- delete gives the tasks that came through B to others, however many
  nodes n1
  ${`B batch {requests: [${"{path: task/create, body: {title: t, description: d}}, ".repeat(300)}]}\n`.repeat(2)}
  nodes n2
  admin node/delete n1
  node n2 -> tasks_assigned 600
  GET events?since=0&limit=1000&kind=<task.released|task.requeued> -> events #<600|0>

-- delete makes room for another node under --max-nodes {maxNodes: 2}
  nodes n1 n2
  node/register n3 {name: n3} -> 409 nodes_limit
  admin node/delete n1
  node/register n3 {name: n3}
  node/register n1 {name: n1} -> 409 nodes_limit

-- delete wants the administrator key
  nodes n1
  node/delete n1 -> 403 admin_key_required
  admin node/delete -> 400 node_id
  node n1

-- --retain-nodes deletes nodes that are offline for so long and hold nothing, and no others {retainNodesMs: 86400000, offlineTasks: keep}
  nodes alive gone holder reader
  signin gone
  t = task/create
  task/assign $t holder
  message/send {from_node: op, to_node: reader, content: x}
  # All are offline.
  tick 12h; sweep
  node/heartbeat alive
  sweep
  GET node/list -> nodes.node_id [alive, gone, holder, reader]
  tick 721m; sweep
  GET node/list -> nodes.node_id [alive, holder, reader]
  GET events?since=0&kind=node.deleted -> events [{node_id: gone, data: {name: gone, reason: offline}}]
  GET lux/ledger?node_id=gone -> entries.amount [10]
  # Its next registration finds what it had earned.
  nodes gone
  node gone -> lux_balance 10
  message/receive reader
  tick 1441m; sweep
  GET node/list -> nodes.node_id [holder]
`);
