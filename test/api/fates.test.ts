/**
 * The delivery status of messages (docs/messages.md Messages, docs/events.md): states in history, paging back, parked
 * messages and redrive, retention. fate-streams.test.ts has the streams.
 */
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

const send = (name: string, from: string, to: string, fields = "") =>
  `${name} = message/send {from_node: ${from}, to_node: ${to}, content: x, ${fields}}`;
/** Takes what waits for a node and never confirms it, until nothing comes back any more. */
const wearOut = (nodeId: string) => `message/receive ${nodeId} {count: 1000}; tick 30s; sweep\n`.repeat(6);
const state = (name: string, deliveries: number) => `
  GET message/history?node_id=<n1|n2> -> messages [{state: ${name}, deliveries: ${deliveries}, recipients: null}]
  GET agent/messages?node_id=n1 -> messages [{state: ${name}, deliveries: ${deliveries}}]`;

transcripts(`
== the state of a message follows it, for its sender and its recipient alike
  nodes n1 n2
  ${send("m", "n2", "n1", "require_ack: true")}
  ${state("waiting", 0)}
  message/receive n1
  ${state("delivered", 1)}
  tick 30s; sweep
  ${state("waiting", 1)}
  message/receive n1
  message/ack n1 {message_id: $m}
  ${state("acked", 2)}

== the state of a message is delivered when it wanted no ACK, parked when it was never confirmed
  nodes n1 n2
  ${send("m", "n2", "n1")}
  ${send("m", "n2", "n1", "require_ack: true")}
  ${wearOut("n1")}
  GET message/history?node_id=n2 -> messages [{state: parked, deliveries: 6}, {state: delivered, deliveries: 1}]

== the state of a broadcast is that of the node that asks; its sender counts the recipients
  nodes n1 n2 n3 op
  m = message/broadcast {from_node: op, content: x}
  message/receive <n1|n2>
  message/ack n2 {message_id: $m}
  GET message/history?node_id=<n1|n2|n3> -> messages [{state: <delivered|acked|waiting>, deliveries: <1|1|0>, recipients: null}]
  GET message/history?node_id=op -> messages [{state: null, deliveries: null}]
  -> messages.0.recipients {waiting: 1, delivered: 1, acked: 1, parked: 0}

== before reaches everything that is kept, in history and agent/messages
  nodes n1 n2
  message/send {from_node: <op|n2|n2|op|n2|n2|op>, to_node: n1, content: m<0|1|2|3|4|5|6>}
  p = GET <message/history|agent/messages>?node_id=n1&<count|limit>=3 -> messages.content [m6, m5, m4];
  p = GET <message/history|agent/messages>?node_id=n1&<count|limit>=3&before=$p.messages.2.id -> messages.content [m3, m2, m1];
  p = GET <message/history|agent/messages>?node_id=n1&<count|limit>=3&before=$p.messages.2.id -> messages.content [m0];
  GET <message/history|agent/messages>?node_id=n1&before=$p.messages.0.id -> messages []

-- before bounds since from the other side, and names a message that is kept
  nodes n1
  <a|b|c|d|e> = message/send {from_node: op, to_node: n1, content: <a|b|c|d|e>}
  GET agent/messages?node_id=n1&since=$b&before=$e -> messages.content [d, c]
  GET <message/history|agent/messages>?node_id=n1&before=${NO_ID} -> 404 message_not_found
  GET <message/history|agent/messages>?node_id=n1&before=${"x".repeat(200)} -> 400 before

== message/parked lists parked messages, oldest first and paged, and message/redrive takes them up again
  nodes n1 n2
  <a|b|c|d|e> = message/send {from_node: n2, to_node: n1, content: x, require_ack: true}
  ${wearOut("n1")}
  GET message/parked?node_id=n1 -> {messages: [{id: $a}, {id: $b}, {id: $c}, {id: $d}, {id: $e}], page: 1, total: 5, pages: 1}
  GET message/parked?node_id=n1&per_page=2&page=<1|3|4> -> {messages: [<{id: $a}, {id: $b}|{id: $e}|>], total: 5, pages: 3}
  message/redrive n1 {message_id: $a}
  GET message/parked?node_id=n1 -> messages.id [$b, $c, $d, $e]
  message/receive n1 -> messages [{id: $a, deliveries: 1, redelivered: false}]
  message/redrive n1 {message_id: $a} -> 409 message_not_parked
  message/redrive n2 {message_id: $b} -> 403 not_your_message
  message/redrive n1 {message_id: ${NO_ID}} -> 404 message_not_found
  message/redrive ghost {message_id: $b} -> 404 node_not_found
  message/redrive n1 {message_id: 5} -> 400 message_id
  GET message/parked?node_id=ghost -> 404 node_not_found

== message/parked of all nodes, oldest first, with the nodes that have the most; a bound key sees its own
  nodes n1 n2 n3
  <a|b|c|d> = message/send {from_node: op, to_node: <n1|n2|n1|n3>, content: x, require_ack: true}
  ${wearOut("n1")}
  ${wearOut("n2")}
  GET message/parked -> messages [{id: $a, to_node: n1}, {id: $b, to_node: n2}, {id: $c, to_node: n1}]
  -> {total: 3, by_node: [{node_id: n1, count: 2}, {node_id: n2, count: 1}]}
  GET message/parked?per_page=2&page=2 -> messages.id [$c]
  GET message/parked?node_id=n1 -> by_node absent
  k = admin key/add n2 {name: k}
  as $k GET message/parked -> messages.id [$b]

== redrive wakes a receive that waits
  nodes n1
  ${send("m", "op", "n1", "require_ack: true")}
  ${wearOut("n1")}
  w = & message/receive n1 {blocking: true, timeout: 300}
  message/redrive n1 {message_id: $m}
  $w -> messages.id [$m]

== within a minute after its retention, each unreceived or unconfirmed message has an event {retainMs: 86400000}
  nodes n1 n2 n3
  ${send("never", "op", "n1")}
  ${send("unconfirmed", "op", "n2", "require_ack: true")}
  ${send("taken", "op", "n3")}
  ${send("confirmed", "op", "n3", "require_ack: true")}
  message/receive <n2|n3>
  message/ack n3 {message_id: $confirmed}
  all = message/broadcast {from_node: op, content: x}
  message/receive n3
  tick 86370s; sweep
  GET events?since=0&kind=message.expired -> events []
  tick 60s; sweep
  GET events?since=0&kind=message.expired -> events #4
  -> events.data.message_id ~$<never|unconfirmed|all>
  -> events.data.message_id !~$taken
  GET events?since=0&kind=message.expired&node_id=<n1|n2> -> events #2
  GET agent/messages?node_id=n1 -> messages []
  message/receive n1 -> messages []
`);
