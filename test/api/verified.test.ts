/** Who said it (docs/security.md): the data that the hub marks as verified, by the key that sent it. strict.test.ts has every call. */
import { transcripts } from "../support/transcript.ts";

/** Keys that are bound to n1 and to n2. */
const KEYS = `
  k = admin key/add n1 {name: k}
  other = admin key/add n2 {name: other}
  as $k node/register n1 {name: n1}
  as $other node/register n2 {name: n2}`;

transcripts(`
== what is verified: a message, wherever it is shown
  ${KEYS}
  known = as $k message/send n1 n2
  unknown = message/send n1 n2
  called = as $k agent/broadcast n1
  GET <message/history?node_id=n2|agent/messages?node_id=n2|message/history?node_id=n1> -> messages [
    {id: $called, verified: true}, {id: $unknown, verified: false}, {id: $known, verified: true}]
  as $other message/receive n2 -> messages [{verified: true}, {verified: false}, {verified: true}]

== what is verified: a result, by the key of its first completion
  ${KEYS}
  t, u = task/create
  task/claim $<t|u> n1
  as $k task/complete $t n1; task/complete $t n1
  task/complete $u n1; as $k task/complete $u n1
  task $<t|u> -> {status: completed, result: {lesson: *}, result_verified: <true|false>}

== what is verified: the creator of a task, by the key that created it
  ${KEYS}
  as $k task/create {<creator_node: null|creator_node: n1>} -> task {creator_node: n1, creator_verified: true}
  t = task/create {creator_node: n1} -> task {creator_node: n1, creator_verified: false}
  u = as $k task/create
  task $<t|u> -> {creator_node: n1, creator_verified: <false|true>}
  task/create -> task {creator_node: null, creator_verified: false}

== what is verified: a file, by the key that uploaded it
  ${KEYS}
  as $k upload a.txt {<node: n1|x: 1>} -> {node_id: n1, verified: true}
  GET file/list?per_page=1 -> files [{node_id: n1, verified: true}]
  upload a.txt {node: n1} -> {node_id: n1, verified: false}
  GET file/list?per_page=1 -> files [{node_id: n1, verified: false}]

== what is verified: with an Idempotency-Key, and in a batch with one
  ${KEYS}
  t = task/create {lux_reward: 2}
  as $k task/claim $t n1
  e = GET events?limit=1
  as $k key b batch
  + task/complete $t n1
  + message/send n1 n2
  replay
  GET events?since=$e.cursor -> events [{kind: task.completed, verified: true}, {kind: lux.paid, verified: true},
    {kind: message.sent, verified: true}]
  task $t -> result_verified true

== what is verified: only actions of the node itself, not of the balancer or an administrator {isStrict: true}
  k = admin key/add n1 {name: k}
  t = B task/create
  e = GET events?limit=1
  as $k B node/register n1 {name: n}
  as $k admin task/revoke $t
  as $k admin task/delete $t
  admin node/delete n1
  B task/batch-assign
  GET events?since=$e.cursor -> events [{kind: node.registered, verified: true}, {kind: node.online, verified: true},
    {kind: task.assigned, verified: false}, {kind: task.revoked, verified: false}, {kind: task.deleted, verified: false},
    {kind: node.deleted, verified: false}]

-- what is verified: no field of a request can set it
  ${KEYS}
  e = GET events?limit=1
  message/send n1 n2 {verified: true, result_verified: true}
  t = task/create {creator_node: n1, verified: true, result_verified: true}
  task/claim $t n1 {verified: true, result_verified: true}
  task/extend $t n1 {note: "\\"verified\\":true", verified: true}
  task/complete $t n1 {verified: true, result: {verified: true, result_verified: true, data: {verified: true}}}
  upload a.txt {node: n1, task_id: $t, verified: true} -> {verified: false, metadata: {verified: true}}
  task $t -> {result_verified: false, result: {verified: true, result_verified: true, data: {verified: true}}}
  GET events?since=$e.cursor -> events !~"verified":true
  GET message/history?node_id=n2 -> messages [{content: hello, verified: false}]

== an event of what a person did says with which key and, behind a proxy that names people, who (<alice|nobody>) {userHeader: X-Forwarded-User, trustProxy: [<{address: 127.0.0.0, prefix: 8}|{address: 10.0.0.0, prefix: 8}>]}
  k = admin key/add {name: office}
  nodes n1
  t = task/create {creator_node: n1}
  task/claim $t n1
  q = task/ask $t n1
  as $k with {X-Forwarded-User: alice} task/answer $t {question_id: $q, answer: Red}
  as $k with {X-Forwarded-User: alice} admin hub/pause
  as $k task/cancel $t
  GET events?since=0&kind=task.answered -> events [{by: <alice@office|"@office">, data: {author: absent}}]
  GET events?since=0&kind=hub.paused -> events [{by: <alice@office|"@office">}]
  GET events?since=0&kind=task.failed -> events [{by: "@office"}]

-- a strict hub: says what to do {isStrict: true}
  ${KEYS}
  node/heartbeat n1 -> 403 key_not_bound detail "~luxhub keys add NAME --node n1"
  node/drain n1 {drain: true} -> 403 key_not_bound detail ~X-Admin-Key

-- a strict hub: lets a key without a node administer, create, look and clean up {isStrict: true}
  ${KEYS}
  t = task/create
  admin task/assign $t n1
  admin task/revoke $t n2
  task/cancel $t
  task/retry $t
  admin task/delete $t
  f = upload a.txt
  file/delete {file_id: $f}
  GET <task/pull|message/history|message/parked|agent/messages|lux/ledger|task/list|events>?node_id=n1
  as $k GET task/pull?node_id=n2 -> 403 key_bound_to_other_node
  admin node/delete n2
`);
