/**
 * Idempotency-Key (docs/api.md): a repeat gets the first answer and has no second effect, whenever and however often it
 * is sent. stored-answers.test.ts has callers that hang up; keys.test.ts, that the keys of different callers are separate.
 */
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

const MIB = 1024 * 1024;

/** Each POST, and what must be there for it. */
const PREPARED = `
  nodes n1 n2
  f = upload a.txt
  <claimed|assigned|batched|done|revoked> = task/create
  task/claim $done n1; task/claim $revoked n1
  m, other = message/send op n1 {require_ack: true}`;
const EACH = `node/register n3 {name: n}
  node/heartbeat n1
  task/create {task_type: coding}
  task/claim $claimed n1
  task/assign $assigned n1
  task/complete $done n1
  task/revoke $revoked
  task/batch-assign {assignments: [{task_id: $batched, node_id: n1}]}
  task/delete $done
  message/send n2 n1
  agent/message n2 n1
  message/receive n1 {count: 1}
  message/broadcast n2
  agent/broadcast n2
  message/ack n1 {message_id: $m}
  agent/ack n1 {message_id: $other}
  signin n1
  file/delete {file_id: $f}`.split("\n");
const repeated = (line: string): string => `
  admin <|B >key k ${line}
  e = GET events?since=0&limit=1000
  replay
  GET events?since=0&limit=1000 -> cursor $e.cursor`;

/** So many calls at once. */
const times = (count: number, line: string): string => `+ ${line}\n`.repeat(count);

const metadata = (text: string): string => `{metadata: ${JSON.stringify(text)}}`;

transcripts(`
== a repeat: gets the first answer, marked as replayed, for 24 hours, and has no effect
  t = key k1 task/create
  tick 60s
  replay; replay
  GET task/list -> total 1
  key k2 task/create -> task_id !$t
  tick 23h
  replay key k1 task/create
  tick 59m
  sweep
  key k1 task/create -> task_id !$t
  GET task/list -> total 3
  replay

-- a repeat: without a key, or with GET, is another request, and has a request id of its own
  <task/create|task/create|key k1 GET task/list|key k1 GET task/list>
  GET task/list -> total 2
  with {X-Request-Id: first} key k1 task/create -> header.x-request-id first
  replay with {X-Request-Id: second} key k1 task/create
  -> header.x-request-id second

-- a repeat: gets the first answer, whatever has changed since
  nodes n1
  t = key k1 task/create
  task/claim $t n1
  replay key k1 task/create
  admin task/delete $t
  replay key k1 task/create
  GET task/list -> total 0

-- a repeat: in the other variant is refused: neither done twice nor answered in the first variant's words
  B key k1 task/create -> status pending
  key k1 task/create -> 422 idempotency_key_reused
  replay B key k1 task/create
  GET task/list -> total 1

-- a repeat: may use any key of visible ASCII
  key <x|0|a/b?c=d&e|"8e03978e-40d5"|${"x".repeat(255)}> task/create; replay
  GET task/list -> total 5

== a repeat: is replayed after a restart, unless the secret was replaced
  nodes n1
  key k1 task/create
  key k2 signin n1
  key k3 task/claim n1 {task_id: ${NO_ID}} -> 404 task_not_found
  restart
  replay key k1 task/create
  replay key k2 signin n1
  restart {secret: another}
  with {X-Matrix-Secret: another} key k1 task/create -> 422 idempotency_key_reused
  restart
  replay key k3 task/claim n1 {task_id: ${NO_ID}}
  GET task/list -> total 1
  node n1 -> lux_balance 10

== what is stored: an answer that depends on state, errors included
  nodes n1 n2
  t = task/create
  task/claim $t n2
  key k1 task/claim n1 {task_id: ${NO_ID}} -> 404 task_not_found
  key k2 task/claim $t n1 -> 409 task_not_open
  key k3 task/complete $t n1 -> 403 not_assigned_to_node
  key k4 node/heartbeat ghost -> 404 node_not_found
  key k5 message/send op ghost -> 404 node_not_found
  key k6 message/receive ghost -> 404 node_not_found
  key k7 message/ack n1 {message_id: ${NO_ID}} -> 404 message_not_found
  key k8 signin ghost -> 404 node_not_found
  key k9 file/delete {file_id: ${NO_ID}} -> 404 file_not_found
  nodes ghost
  admin task/revoke $t
  replay key k1 task/claim n1 {task_id: ${NO_ID}}
  replay key <k2|k3> task/<claim|complete> $t n1
  replay key <k4|k8|k6> <node/heartbeat|signin|message/receive> ghost
  replay key k5 message/send op ghost
  replay key k7 message/ack n1 {message_id: ${NO_ID}}
  replay key k9 file/delete {file_id: ${NO_ID}}

-- what is stored: not a 400 or any earlier refusal: the key stays free
  t = task/create
  with {X-Matrix-Secret: null} admin key k1 task/delete $t -> 401 unauthorized
  key k1 task/delete $t -> 403 admin_key_required
  with {Content-Type: multipart/form-data} admin key k1 task/delete '{}' -> 415 unsupported_media_type
  admin key k1 task/delete $t {x: ${"x".repeat(MIB)}} -> 413 body_too_large
  admin key k1 task/delete {} -> 400 task_id
  admin key k1 task/delete '{' -> 400 ""
  admin key k1 task/delete $t; replay

-- what is stored: is not replayed to a caller that the secret or the body would refuse
  key k1 task/create
  with {X-Matrix-Secret: wrong} key k1 task/create -> 401 unauthorized
  key k1 task/create {title: null, description: null} -> 400 title description

-- what is stored: the answer of every POST (<A|B>)
  ${PREPARED}
  ${EACH.map(repeated).join("")}

-- what is stored: no answer without a change: a repeat runs again
  nodes n1
  t = task/create
  task/claim $t n1
  key k1 task/claim $t n1
  task/complete $t n1
  key k1 task/claim $t n1 -> 409 task_completed
  key k2 message/receive n1 -> count 0
  message/send op n1
  key k2 message/receive n1 -> count 1

-- what is stored: only as much as --max-answers; the oldest are deleted, and their requests are done again {maxAnswersBytes: 204800}
  key <k0|k1|k2|k3> task/create {description: ${"x".repeat(60 * 1024)}}
  replay key <k3|k2|k1> task/create {description: ${"x".repeat(60 * 1024)}}
  key k0 task/create {description: ${"x".repeat(60 * 1024)}}

-- the body: is compared by value
  key k task/create '{"title":"t","description":"d/","lux_reward":1,"x":[{"a":1,"b":{"c":2,"d":3}}],"y":[1,2]}'
  replay key k task/create '{"title":"t","description":"d/","lux_reward":1,"y":[1,2],"x":[{"b":{"d":3,"c":2},"a":1}]}'
  replay key k task/create ' {\n"title" :"t",\t"description":"d/","lux_reward":1,"x":[{"a":1,"b":{"c":2,"d":3}}],"y":[1,2]}'
  replay key k task/create '{"title":"\\u0074","description":"d\\/","lux_reward":1.0,"x":[{"a":1,"b":{"c":2,"d":3}}],"y":[1,2]}'
  key k task/create '{"title":"T","description":"d/","lux_reward":1,"x":[{"a":1,"b":{"c":2,"d":3}}],"y":[1,2]}' ->
  422 idempotency_key_reused
  key k task/create '{"title":"t","description":"d/","lux_reward":<2,"x":[{"a":1,"b":{"c":2,"d":3}}],"y":[1,2]|
    1,"x":[["a",1]],"y":[1,2]|1,"x":[{"a":"1","b":{"c":2,"d":3}}],"y":[1,2]|
    1,"x":[{"a":1,"b":{"c":2,"d":3}}],"y":[2,1]|1,"x":[{"a":1,"b":{"c":2,"d":3}}],"y":[1,2],"z":1>}' ->
  422 idempotency_key_reused
  replay key k task/create '{"title":"t","description":"d/","lux_reward":1,"x":[{"a":1,"b":{"c":2,"d":3}}],"y":[1,2]}'
  GET task/list -> total 1

-- the body: of another path is another request
  nodes n1
  key k <message/send|agent/message|signin|node/heartbeat|message/broadcast> {from_node: op, to_node: n1, content: x, node_id: n1}
  message/receive n1 -> count 3

== an upload: is the same request if file and metadata are equal, whatever its boundary, and is stored once
  f = key k upload a.txt
  replay
  replay key k upload a.txt {metadata: <""|" {} ">}
  key k upload <a.txt {content: Content}|a.txt {content: ""}|b.txt {content: "content of a.txt"}|a.txt {type: text/html}|a.txt {a: 1}> -> 422 idempotency_key_reused
  GET file/list -> total 1
  GET file/download/$f -> text "content of a.txt"

-- an upload: compares metadata by value
  key k upload a.txt ${metadata('{"a":"é","b":{"n":9007199254740993,"m":[1,2]}}')}
  replay key k upload a.txt ${metadata('{ "b": {"m":[1, 2],"n":9007199254740993}, "a": "\\u00e9" }')}
  key k upload a.txt ${metadata('{"a":"é","b":{"n":9007199254740992,"m":[1,2]}}')} -> 422 idempotency_key_reused
  key k upload a.txt ${metadata('{"a":"é","b":{"n":9007199254740993,"m":[2,1]}}')} -> 422 idempotency_key_reused
  key k upload a.txt ${metadata('{"a":"é","b":{"n":"9007199254740993","m":[1,2]}}')} -> 422 idempotency_key_reused

-- an upload: that named a node before it was registered gets its first answer again (<A|B>)
  <|B >key k upload a.txt {node: late} -> node_id null
  nodes late
  replay
  GET file/list -> total 1

== at once: ten uploads with one key are stored once
  at once -> {statuses: {"200": 10}, different: 1, replayed: 9}
  ${times(10, "key k upload a.txt")}
  GET file/list -> total 1

== at once: 50 with one key make one task, send one message, take it once, and pay once
  nodes n1
  at once -> {statuses: {"200": 50}, different: 1, replayed: 49}
  ${times(50, "t = key k1 task/create {lux_reward: 3}")}
  GET task/list -> total 1
  at once -> {statuses: {"200": 50}, different: 1, replayed: 49}
  ${times(50, "key k2 message/send op n1")}
  at once -> {statuses: {"200": 50}, different: 1, replayed: 49}
  ${times(50, "key k3 message/receive n1 -> count 1")}
  message/receive n1 -> messages []
  task/claim $t n1
  at once -> {statuses: {"200": 50}, different: 1, replayed: 49}
  ${times(50, "key k4 task/complete $t n1")}
  at once -> {statuses: {"200": 50}, different: 1, replayed: 49}
  ${times(50, "key k5 signin n1")}
  node n1 -> {lux_balance: 13, tasks_completed: 1}

== at once: with one key and two bodies one body wins, the other is 422
  at once -> statuses {"200": 25, "422": 25}
  ${times(25, "key k task/create {title: <a|b>}")}
  GET task/list -> total 1

-- at once: 50 keys are 50 requests
  at once -> {statuses: {"200": 50}, replayed: 0}
  ${Array.from({ length: 50 }, (_, i) => `+ key k${i} task/create`).join("\n")}
  GET task/list -> total 50

= at once: the second waits for the first that still runs
  nodes n1
  <a|b> = & key k message/receive n1 {blocking: true, timeout: 60}
  $a waits
  message/send op n1
  $<a|b> -> count 1
  message/receive n1 -> messages []

= at once: the second waits no longer than the first, and keys of other callers delay nobody
  nodes n1
  a = & key slow message/receive n1 {blocking: true, timeout: 60}
  key quick message/receive n1 {blocking: true, timeout: 0} -> count 0
  message/send op n1
  $a -> count 1

= at once: a first request that is refused for its body frees the waiting ones
  at once -> {statuses: {"400": 1, "200": 2}, replayed: 1}
  + key k task/create {title: ""}
  + key k task/create
  + key k task/create
  GET task/list -> total 1
`);
