/**
 * What GET agent/sse and GET events/stream show, and where they begin (docs/events.md). stream.test.ts has their bytes,
 * their end, and streams that break off at random.
 */
import { transcripts } from "../support/transcript.ts";
import { VARIANTS } from "./scene.ts";

const send = (content: string, to = "n1") =>
  `message/send {from_node: op, to_node: ${to}, content: ${content}}`;
/** As JSON writes them. */
const CONTENTS = [
  "line one\\nline two\\n\\nline four\\n",
  "carriage\\r\\nreturn\\r",
  "data: forged\\n\\nid: 999999\\nevent: task.created\\ndata: {}\\n\\n",
  '\\u2028\\u2029\\u0085 Grüße 🚀 \\"quoted\\" \\\\ \\t \\u0001',
  "",
  ": no comment",
  "next",
];
const KINDS = ["message.sent", "LUX.signin"];

transcripts(`
${VARIANTS.map(
  (variant) => `
== the stream of a node at ${variant} has its messages and the events of its tasks, as the mailbox and the log have them
  nodes n1 n2
  s = & ${variant === "B" ? "B " : ""}stream 7 agent/sse?node_id=n1
  m = message/send {from_node: n2, to_node: n1, content: hi, type: task, require_ack: true}
  t, moved = task/create
  task/assign $t n1
  task/complete $t n1
  own = task/create {creator_node: n1}
  task/assign $moved n1
  admin task/revoke $moved n2
  ${send("ho")}
  $s -> [message, task.assigned, task.completed, task.created, task.assigned, task.revoked, message]
  -> events.0.data {id: $m, from_node: n2, to_node: n1, content: hi, type: task, require_ack: true}
  -> events.0.data {reply_to: null, thread: $m, verified: false, sent_at: *}
  -> events.1.data {id: $s.events.1.id, kind: task.assigned, at: *, node_id: n1, task_id: $t, verified: false, data: {by: assign}}
  -> events.3.data.task_id $own
  GET events?since=0&task_id=$t -> {events: [{kind: task.created}, $s.events.1.data, $s.events.2.data]}
  message/receive n1 {count: 9} -> messages.content [hi, ho]`,
).join("\n")}

== a stream starts now, without earlier messages
  nodes n1
  ${send("before")}
  task/create {creator_node: n1}
  s = & stream 1 agent/sse?node_id=n1
  ${send("after")}
  $s -> events.data.content [after]

== a stream has only the events of its node, and none of the kinds that no stream shows
  nodes n1 n2
  one = & stream 1 agent/sse?node_id=n1
  two = & stream 3 agent/sse?node_id=n2
  message/send {from_node: n1, to_node: n2, content: "for two"}
  t = task/create {lux_reward: 3}
  task/claim $t n2
  task/complete $t n2
  signin n1
  nodes n1 n3
  task/create {creator_node: elsewhere}
  agent/message {from_node: n2, to_node: n1, content: "for one"}
  $one -> events.data.content ["for one"]
  $two -> [message, task.assigned, task.completed]

== a stream gets every broadcast, except of its own node; several of one node get the same
  nodes n1 n2 n3
  <one|also|two|three> = & stream <2|2|1|1> agent/sse?node_id=<n1|n1|n2|n3>
  m = message/broadcast {from_node: n2, content: "to all", type: alert}
  $three -> events [{kind: message, data: {id: $m, from_node: n2, to_node: null, content: "to all", type: alert, require_ack: false}}]
  agent/broadcast {from_node: n1, content: again}
  $two -> events.data.content [again]
  agent/broadcast {from_node: n3, content: third}
  $one -> events.data.content ["to all", third]
  # One event tells of all deliveries.
  $also -> events.id $one.events.id
  -> events.0.id $three.events.0.id

== a stream shows the creator the events of its task, live and after a reconnect
  nodes boss n1
  s = & stream 4 agent/sse?node_id=boss
  t = task/create {creator_node: boss}
  task/claim $t n1
  task/fail $t n1 {retry: false}
  $s -> [task.created, task.assigned, task.attempt_failed, task.failed]
  -> events.1.data {node_id: n1, data: {by: claim, creator_node: boss}}
  stream 3 agent/sse?node_id=boss {after: $s.events.0.id} -> events [$s.events.1, $s.events.2, $s.events.3]

-- any content stays one line of JSON
  nodes n1
  s = & stream 7 agent/sse?node_id=n1
  ${send(`"<${CONTENTS.join("|")}>"`)}
  GET message/history?node_id=n1 -> messages #7
  $s -> events.data.content [${CONTENTS.map((content) => `"${content}"`)}]

-- a stream is refused for an unregistered node, an invalid node_id, a missing or wrong secret, and an invalid filter
  nodes n1
  <|B >stream 1 agent/sse?node_id=n9 -> 404 node_not_found
  stream 1 agent/sse?<|node_id=|node_id=a%20b|node_id=${"x".repeat(129)}|node=n1> -> 400 node_id
  anon stream 1 agent/sse?node_id=n1 -> 401 unauthorized
  agent/sse?node_id=n1 -> 405 method_not_allowed
  stream 1 events/stream?since=-1 -> 400 since
  stream 1 events/stream?kind=<task.created,task.eaten|task.created,> -> 400 kind
  stream 1 events/stream?node_id=a%20b -> 400 node_id
  anon B stream 1 events/stream -> 401 unauthorized

== the stream of the whole log shows past and new events that match its filter, and goes on from any place
  nodes n1 n2
  now = GET events
  t, u, v = task/create
  task/claim $t n1
  task/claim $u n2
  task/complete $u n2
  message/send {from_node: n1, to_node: n2, content: x}
  signin n1
  <done|said|second|mine|both> = & stream <2|2|3|1|2> events/stream?<kind=task.completed|kind=${KINDS}|node_id=n2|task_id=$t|node_id=n2&kind=task.assigned,task.completed>
  task/claim $v n2
  task/complete $v n2
  task/complete $t n1
  message/send {from_node: n1, to_node: n2, content: x}
  signin n1
  message/send {from_node: n1, to_node: n2, content: x}
  $<done|said|second|mine|both> -> [<task.completed, task.completed|message.sent, message.sent|task.assigned, task.completed, message.sent|task.completed|task.assigned, task.completed>]
  all = GET events?since=$now.cursor&limit=1000
  anon stream 13 events/stream?since=$now.cursor -> events.data $all.events
  stream 3 events/stream?since=0&kind=${KINDS} -> [message.sent, lux.signin, message.sent]
  B stream 3 events/stream?since=$all.events.9.id -> events.data [$all.events.10, $all.events.11, $all.events.12]
  stream 2 events/stream<?since=0|> {after: $all.events.9.id} -> events.data [$all.events.10, $all.events.11]

== the stream of the whole log reports a gap for events that are no longer stored {retainMs: 3600000}
  nodes n1
  <||||>task/create
  tick 3660s; sweep
  task/create
  kept = GET events?since=0&limit=1000
  stream 2 events/stream?since=2 -> events [{kind: gap, data: {after: 2, resumed_at: $kept.events.0.id}}, {id: $kept.events.0.id}]

== reconnecting with Last-Event-ID resumes after it: no gap, no repeat; at the end, or beyond it: only new events
  nodes n1 n2
  <|||>${send("a")}; ${send("b", "n2")}; task/create {creator_node: n1}
  all = stream 8 agent/sse?node_id=n1 {after: 0} -> [message, task.created, message, task.created, message, task.created, message, task.created]
  stream 8 agent/sse?node_id=n1 {after: 1} -> events.id $all.events.id
  stream 4 agent/sse?node_id=n1 {after: $all.events.3.id} -> events [$all.events.4, $all.events.5, $all.events.6, $all.events.7]
  stream 1 agent/sse?node_id=n1 {after: $all.events.6.id} -> events [$all.events.7]
  <end|beyond> = & stream 2 agent/sse?node_id=n1 {after: <$all.events.7.id|1000000>}
  ${send("<one|two>")}
  $<end|beyond> -> events.data.content [one, two]

-- with what is no id of the hub a stream starts now
  nodes n1
  ${send("before")}
  s = & stream 1 agent/sse?node_id=n1 {after: "<|abc|-1|1.5|1e3|0x1|${"9".repeat(40)}>"}; ${send("after")}; $s -> events.data.content [after]

== a stream resumes after a restart of the hub
  nodes n1
  s = & stream 1 agent/sse?node_id=n1
  ${send("one")}
  $s -> events.data.content [one]
  ${send("two")}
  restart
  s = & stream 2 agent/sse?node_id=n1 {after: $s.events.0.id}
  ${send("three")}
  $s -> events.data.content [two, three]
`);
