/**
 * The delivery status of messages in streams: the events for the sender, and a stream that resumes too late.
 * fates.test.ts has the rest.
 */
import { transcripts } from "../support/transcript.ts";

const send = (fields = "") => `message/send {from_node: n2, to_node: n1, content: x, ${fields}}`;
const register = (from: number, to: number): string =>
  Array.from(
    { length: to - from },
    (_, i) => `{path: node/register, body: {node_id: n${from + i}, name: x}}`,
  ).join();

transcripts(`
== the sender's stream has the events of its messages: acked, parked, expired; the recipient's does not {retainMs: 3600000}
  nodes n1 n2
  acked = ${send("require_ack: true")}
  message/receive n1
  message/ack n1 {message_id: $acked}
  parked = ${send("require_ack: true")}
  # Six times.
  <|||||>message/receive n1; tick 30s; sweep
  # The messages are 3,480 s old: within the retention, whenever the hub itself sweeps.
  tick 3300s
  expired = ${send()}
  stream 2 agent/sse?node_id=n2 {after: 0} -> [message.acked, message.parked]
  -> events.data.data.message_id [$acked, $parked]
  stream 3 agent/sse?node_id=n1 {after: 0} -> [message, message, message]
  last = GET events?limit=1
  tick 3660s; sweep
  stream 2 agent/sse?node_id=n2 {after: $last.cursor} -> [message.expired, message.expired]
  -> events.data [{node_id: n1, data: {message_id: $parked, from_node: n2}}, {node_id: n1, data: {message_id: $expired}}]
  GET events?since=0&kind=message.expired -> events #2

== retention tells of every recipient of a broadcast to many, in bounded steps {retainMs: 3600000}
  batch {requests: [${register(0, 350)}]}
  batch {requests: [${register(350, 700)}]}
  message/broadcast {from_node: n0, content: x}
  tick 3660s; sweep
  GET events?since=0&limit=1000&kind=message.expired -> events #699
  GET events?since=0&limit=1000&kind=message.expired&node_id=n<1|450|699> -> events #1

== a stream that comes back from before the kept log begins with a gap, and then goes on without one {retainMs: 3600000}
  nodes n1 n2
  <||||>${send()}
  tick 3660s; sweep
  kept = GET events?since=0&limit=1
  ${send("content: new")}
  gap = stream 2 agent/sse?node_id=n1 {after: 2} -> [gap, message]
  -> events.data [{after: 2, resumed_at: $kept.cursor}, {content: new}]
  # From the gap's own id there is none, and none where the log goes on seamlessly.
  stream 1 agent/sse?node_id=n1 {after: $gap.events.0.id} -> [message]
  stream 1 agent/sse?node_id=n1 {after: $kept.cursor} -> [message]
`);
