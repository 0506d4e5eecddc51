/**
 * Messages: one mailbox for each node, used by message/* and agent/*; delivery, ACKs, history. test/contract/mail.test.ts
 * has the mailboxes of each engine, concurrency.test.ts simultaneous receives.
 */
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

/** Contents that must come back as they are. */
const STRANGE = ['{"a":1}', " \n\t", "🦊\u2028", "\u0001", "' OR 1=1 --", "ä".repeat(128 * 1024)].map(
  (text) => JSON.stringify(text).replace("\u2028", "\\u2028"),
);

transcripts(`
== <message/send|agent/message>: puts a message into the recipient's mailbox
  nodes n1 n2
  m = <message/send|agent/message> op n1 {type: task, require_ack: true} -> {message_id: *, transport: *}
  message/receive n2 -> messages []
  message/receive n1 -> {count: 1, transport: $m.transport, messages: [{
    id: $m, from_node: op, to_node: n1, content: hello, type: task, require_ack: true, reply_to: null, thread: $m,
    verified: false, redelivered: false, deliveries: 1, sent_at: +0s}]}
  <message/send|agent/message> op n1
  message/receive n1 -> messages [{type: text, require_ack: false}]
  message/receive n1 -> {count: 0, messages: [], transport: $m.transport}

-- <message/send|agent/message>: requires a registered recipient; the sender may be any valid node_id
  nodes n1
  <message/send|agent/message> ghost n1
  <message/send|agent/message> ghost ghost -> 404 node_not_found
  <message/send|agent/message> {from_node: "a b", to_node: n1} -> 400 from_node
  <message/send|agent/message> {content: null} -> 400 from_node to_node content
  <message/send|agent/message> op n1 {type: <broadcast|alert|update|""|TEXTS|5|true>} -> 400 type
  <message/send|agent/message> op n1 {require_ack: <"true"|1|0>} -> 400 require_ack
  <message/send|agent/message> op n1 {content: <5|[x]|{a: 1}|x*262145|ä*131073>} -> 400 content
  message/receive n1 -> messages.from_node [ghost]

== <message/broadcast|agent/broadcast>: goes to every online node except the sender, and to none that comes later
  nodes a b c
  node/leave c
  <message/broadcast|agent/broadcast> b {content: all} -> {receivers: [a], transport: *}
  nodes c d
  message/receive a -> messages [{from_node: b, content: all, type: broadcast}]
  message/receive <b|c|d> -> messages []
  node/leave <b|c|d>
  <message/broadcast|agent/broadcast> a -> receivers []

-- <message/broadcast|agent/broadcast>: names every bad field
  <message/broadcast|agent/broadcast> {content: null} -> 400 from_node content
  <message/broadcast|agent/broadcast> op {type: <text|task|status|""|5>} -> 400 type
  <message/broadcast|agent/broadcast> op {type: <broadcast|alert|update>} -> receivers []

== receive: takes messages out in order, 10 by default, as they were sent
  nodes n1
  message/send op n1 {content: <0|1|2|3|4|5|6|7|8|9|10|11|12>x}
  message/receive n1 {count: 2} -> messages.content [0x, 1x]
  message/receive n1 -> messages.content [2x, 3x, 4x, 5x, 6x, 7x, 8x, 9x, 10x, 11x]
  message/receive n1 {count: 1000} -> messages.content [12x]
  ${STRANGE.map((content) => `message/send op n1 {content: ${content}}`).join("\n")}
  message/receive n1 -> messages.content [${STRANGE.join(", ")}]

-- receive: refuses values out of range (<A|B>)
  <|B >message/receive n1 {count: <0|-1|1001|1.5|"5"|true>} -> 400 count
  <|B >message/receive n1 {timeout: <-1|301|300.001|"5">} -> 400 timeout
  <|B >message/receive n1 {blocking: <"true"|1|0>} -> 400 blocking
  <|B >message/receive {} -> 400 node_id
  <|B >message/receive n1 {count: 1000, timeout: 300} -> 404 node_not_found
  <|B >message/receive n1 {blocking: true, timeout: 300} -> 404 node_not_found

== receive: blocks only if it is told to, until its timeout or until a message arrives
  nodes n1
  message/receive n1 {<timeout: 300|blocking: true, timeout: 0|blocking: true, timeout: 0.1>} -> messages []
  w = & message/receive n1 {blocking: true, timeout: 300}
  $w waits
  message/send op n1 {content: now}
  $w -> messages.content [now]
  message/send op n1
  message/receive n1 {blocking: true, timeout: 300, count: 5} -> messages #1

== an ACK: a message stays with its receiver for 30 s, then is redelivered, marked, without a request
  nodes n1
  m = message/send op n1 {require_ack: true}
  message/receive n1 -> messages [{id: $m, redelivered: false, deliveries: 1}]
  pass 20s
  message/receive n1 {blocking: true, timeout: 0.1} -> messages []
  w = & message/receive n1 {blocking: true, timeout: 300}
  pass 10s
  sweep
  $w -> messages [{id: $m, redelivered: true, deliveries: 2, require_ack: true}]

== an ACK: ends the redelivery; a message without require_ack is gone once it is handed out
  nodes n1
  acked, open = message/send op n1 {require_ack: true}
  message/send op n1
  message/receive n1 -> messages #3
  message/ack n1 {message_id: $acked}
  tick 30s
  until message/receive n1 -> messages.id [$open]
  GET events?since=0&kind=message.acked -> events #1

-- an ACK: a message is redelivered 5 times, then parked, and an event says so
  nodes n1
  m = message/send op n1 {require_ack: true, content: stubborn}
  message/receive n1 -> messages #1
  tick 30s; node/heartbeat n1; until message/receive n1 -> messages [{deliveries: <2|3|4|5|6>}]
  tick 30s
  until GET events?since=0&kind=message.parked -> events [{node_id: n1, data: {message_id: $m}}]
  message/receive n1 -> messages []
  GET message/history?node_id=n1 -> messages.content [stubborn]
  message/ack n1 {message_id: $m}

== an ACK: is for the recipient, on <message|agent>/ack; a repeat succeeds
  nodes n1 n2
  m = message/send n2 n1 {require_ack: true}
  message/receive n1
  <message|agent>/ack n1 {message_id: ${NO_ID}} -> 404 message_not_found
  <message|agent>/ack ghost {message_id: $m} -> 404 node_not_found
  <message|agent>/ack n2 {message_id: $m} -> 403 not_your_message
  <message|agent>/ack n1 {message_id: $m}
  <message|agent>/ack n1 {message_id: $m}
  GET events?since=0&kind=message.acked -> events #1
  <message|agent>/ack {} -> 400 node_id message_id
  <message|agent>/ack {node_id: 1, message_id: ""} -> 400 node_id message_id
  m = message/broadcast op
  message/receive n1 -> messages.id [$m]
  <message|agent>/ack n1 {message_id: $m}
  m = message/send op n1
  message/receive n1
  <message|agent>/ack n1 {message_id: $m}
  message/receive n2 -> messages #1

-- message/* and agent/* use one mailbox
  B nodes n1
  m = agent/message op n1 {content: "via A", require_ack: true}
  B message/broadcast op {content: "via B"}
  GET agent/messages?node_id=n1 -> messages.content ["via B", "via A"]
  message/receive n1 -> messages.content ["via A", "via B"]
  agent/ack n1 {message_id: $m}
  GET message/history?node_id=n1 -> messages.content ["via B", "via A"]

-- history: is kept for 7 days
  nodes n1
  message/send op n1 {content: taken}
  message/receive n1
  message/send op n1 {content: waits}
  tick 1h
  message/send op n1 {content: later}
  tick 166h
  sweep
  GET message/history?node_id=n1 -> messages.content [later, waits, taken]
  tick 30m
  tick 31m
  sweep
  GET message/history?node_id=n1 -> messages.content [later]

-- history: is kept for --retain, waiting messages as well {retainMs: 3600000}
  nodes n1
  message/send op n1 {content: waits}
  tick 61m
  message/send op n1 {content: later}
  sweep
  message/receive n1 -> messages.content [later]

== history: shows what a node sent and received, newest first, 50 by default
  nodes n1 n2 n3
  message/send n1 n2 {content: sent}
  message/send n2 n1 {content: got}
  message/send n2 n3 {content: "not mine"}
  message/broadcast n3 {content: "to all"}
  message/broadcast n1 {content: "from me"}
  message/send n1 n1 {content: "to myself"}
  message/receive n1
  GET message/history?node_id=n1 -> {count: 5, transport: *, messages: [
    {content: "to myself"}, {content: "from me", from_node: n1, type: broadcast}, {content: "to all"}, {content: got},
    {content: sent, from_node: n1, to_node: n2, type: text}]}
  GET message/history?node_id=n1&count=2 -> messages.content ["to myself", "from me"]
  batch
  ${"+ message/send n2 n1\n".repeat(50)}
  GET message/history?node_id=n1 -> messages #50
  GET message/history?node_id=n1&count=1000 -> messages #55

-- history: requires a registered node and a count from 1 to 1000, agent/messages a limit above 0
  GET <message/history|agent/messages>?node_id=ghost -> 404 node_not_found
  GET message/history -> 400 node_id
  GET message/history?count=<0|1001|-1|1.5|x> -> 400 node_id count
  GET agent/messages?limit=0&since=%00 -> 400 node_id limit since

== agent/messages: reads messages without taking them out
  nodes n1 n2
  message/send n2 n1 {content: one}
  agent/broadcast n2 {content: two}
  GET <agent/messages|agent/messages>?node_id=n1 -> {count: 2, messages: [{content: two}, {content: one}]}
  node/heartbeat n1 -> messages_waiting 2
  message/receive n1 -> messages.content [one, two]
  GET agent/messages?node_id=n1 -> messages.content [two, one]

== agent/messages: continues after a message id, and has a limit
  nodes n1
  <a|b|c|d|e> = message/send op n1 {content: m<0|1|2|3|4>}
  GET agent/messages?node_id=n1&since=$b -> messages.content [m4, m3, m2]
  GET agent/messages?node_id=n1&since=$e -> messages []
  GET agent/messages?node_id=n1&since=$a&limit=2 -> messages.content [m2, m1]
  GET agent/messages?node_id=n1&limit=2 -> messages.content [m4, m3]

-- the event log names messages, never their content
  nodes n1 n2
  m = message/send op n1 {content: secret-word, require_ack: true}
  agent/broadcast op {content: secret-word}
  message/receive n1
  message/ack n1 {message_id: $m}
  GET events?since=0 -> events !~secret-word
  GET events?since=0&kind=message.<sent|acked> -> events #<2|1>

== waiting and leased messages and the history survive a restart
  nodes n1
  message/send op n1 {content: taken, require_ack: true}
  message/receive n1
  message/send op n1 {content: <first|second>}
  restart
  message/receive n1 -> messages.content [first, second]
  GET message/history?node_id=n1 -> messages.content [second, first, taken]
  tick 30s
  until message/receive n1 -> messages.content [taken]
`);
