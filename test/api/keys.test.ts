/**
 * Keys (docs/security.md): their endpoints, keys bound to a variant or a node, expiry, revoking, rotation, and the rate
 * limit on wrong secrets. rights.test.ts has what each kind of key may call; key-secrets.test.ts `luxhub keys`.
 */
import { SECRET_MAX_CHARS } from "../../src/domain/limits.ts";
import { SECRET } from "../support/hub.ts";
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

/** So many wrong secrets, each from an address that only the caller claims. */
const guesses = (count: number, headers = ""): string =>
  Array.from(
    { length: count },
    (_, i) => `${guess(`g${i}, X-Forwarded-For: 10.0.0.${i}${headers}`)} -> 401 unauthorized`,
  ).join("\n");
const guess = (secret: string): string => `with {X-Matrix-Secret: ${secret}} task/create`;

/** What n1 and n2 have; the key is bound to n1. */
const BOUND = `
  nodes n1 n2
  k = admin key/add n1 {name: k}`;

const CHALLENGE = JSON.stringify('Bearer realm="luxhub", X-Matrix-Secret realm="luxhub"');

transcripts(`
-- a secret: is read from its header only, where a bearer token is taken too (<A|B>)
  anon with {Cookie: X-Matrix-Secret=${SECRET}} B GET status?X-Matrix-Secret=${SECRET} -> 401 unauthorized
  anon with {Authorization: "<Bearer|bearer|BEARER > ${SECRET}"} <|B >GET task/pull?node_id=nobody -> 404 node_not_found
  with {Authorization: "Bearer wrong"} <|B >GET task/pull?node_id=nobody -> 404 node_not_found
  with {X-Matrix-Secret: wrong, Authorization: "Bearer ${SECRET}"} <|B >GET task/pull?node_id=nobody -> 401 unauthorized
  anon with {Authorization: "<Bearer wrong|Basic ${SECRET}|${SECRET}|Bearer|Bearer ${SECRET} x>"} <|B >GET task/pull?node_id=nobody ->
  401 unauthorized header {www-authenticate: ${CHALLENGE}, vary: "X-Matrix-Secret, Authorization, Accept-Encoding"}

-- a secret: a bearer token is a key as any other: it has a variant, an administrator key and an upload
  k = admin key/add {name: pinned, variant: B}
  anon with {Authorization: "Bearer $k.secret"} GET status -> variant B
  anon with {Authorization: "Bearer $k.secret"} admin task/delete {task_id: none} -> 404 task_not_found
  anon with {Authorization: "Bearer $k.secret"} upload a.txt

-- wrong secrets: the 20th in a minute is 429 until the window ends, on all listeners, and a right one is always accepted
  ${guesses(18)}
  B GET status
  with {X-Matrix-Secret: g} B GET status -> 401 unauthorized
  ${guess("<g|g|g>")} -> 429 too_many_wrong_secrets header.retry-after 1..60
  task/create
  with {X-Matrix-Secret: g, X-Forwarded-For: 10.9.9.9, Forwarded: for=10.9.9.9} task/create -> 429 too_many_wrong_secrets
  tick 60s
  ${guess("g")} -> 401 unauthorized

-- wrong secrets: a missing or empty one does not count, nor one on a path that does not exist
  ${`${guess('<null|"">')} -> 401 unauthorized
  anon GET status
  with {X-Matrix-Secret: wrong} nope -> 404 not_found
  task/create\n`.repeat(25)}
  ${guesses(19)}
  anon task/create -> 401 unauthorized
  ${guess("g")} -> 429 too_many_wrong_secrets
  anon task/create -> 401 unauthorized

-- wrong secrets: slow guessing is not limited
  ${guesses(30).replaceAll("\n", "\ntick 6s\n")}

-- wrong secrets: behind a trusted proxy count for the address of its client {trustProxy: [{address: 127.0.0.0, prefix: 8}]}
  ${Array.from({ length: 19 }, (_, i) => `${guess(`g, X-Forwarded-For: "10.0.0.${i}, 203.0.113.5"`)} -> 401 unauthorized`).join("\n")}
  ${guess("g, X-Forwarded-For: 203.0.113.5")} -> 429 too_many_wrong_secrets
  ${guess("g, X-Forwarded-For: 203.0.113.6")} -> 401 unauthorized
  ${guess("g")} -> 401 unauthorized

-- wrong secrets: count on a public path of A, which is answered nevertheless, and a right one in its dialect
  pinned = admin key/add {name: pinned, variant: B}
  with {X-Matrix-Secret: <g|${"x".repeat(2 * SECRET_MAX_CHARS)}>} GET status -> version "1.5"
  ${'with {X-Matrix-Secret: g} GET status -> version "1.5"\n'.repeat(18)}
  later = admin key/add {name: later, variant: B}
  as $<pinned|later> GET status -> version "1.0"
  ${guess("g")} -> 429 too_many_wrong_secrets

== keys: several are valid at once, so that a secret and an administrator key are rotated without downtime
  next = admin key/add {name: next}
  B GET status
  as $next B GET status
  chief = admin key/add {name: chief, role: admin}
  as $chief B GET status -> 401 unauthorized
  with {X-Admin-Key: $chief.secret} key/revoke {name: primary} -> key.state revoked
  until B GET status -> 401 unauthorized
  as $next admin task/delete {task_id: ${NO_ID}} -> 404 task_not_found
  as $next with {X-Admin-Key: $chief.secret} key/revoke {name: primary-admin}
  until as $next admin GET key/list -> 403 admin_key_required
  as $next with {X-Admin-Key: $chief.secret} GET key/list -> total 4

== keys: expire by the hub's clock
  k = admin key/add {name: short, expires_in_s: 7200}
  as $k B GET status
  tick 119m
  as $k B GET status
  tick 1m
  as $k B GET status -> 401 unauthorized
  admin GET key/list -> keys [*, *, {name: short, state: expired}]

== keys: one that is revoked is refused in both variants, pins none, and stays revoked
  k = admin key/add {name: gone, variant: B}
  as $k GET status -> variant B
  r = admin key/revoke {name: gone} -> {name: gone, key: {state: revoked}}
  tick 1s
  admin key/revoke {name: gone} -> key.revoked_at $r.key.revoked_at
  until as $k GET status -> variant A
  as $k GET task/pull?node_id=n1 -> 401 unauthorized
  as $k B GET status -> 401 unauthorized
  admin key/revoke {name: nobody} -> 404 key_not_found
  admin key/add {name: gone} -> 409 key_exists

-- keys: one that is pinned is answered in its variant on the other listener
  <a|b> = admin key/add {name: <a|b>, variant: <A|B>}
  as $a <|B >GET status -> {variant: A, version: "1.5"}
  as $b <|B >GET status -> {variant: B, version: "1.0"}
  as $a <|B >task/create {priority: p5, task_type: x} -> {status: open, task: {priority: 2}}
  t = as $b task/create {priority: p5, task_type: y} -> {status: pending, task: {priority: p5}}
  as $b node/register n {name: n, capabilities: [y]} -> {heartbeat_interval: 30, node: {capabilities: [y]}}
  task $t -> assigned_node n

== key endpoints: the secret is answered once; neither secrets nor hashes are listed
  k = admin key/add {name: robot, variant: b, node_id: n1, expires_in_s: 60} -> {secret: *, key: {
    name: robot, role: full, state: valid, variant: B, node_id: n1, mint_per_day: null, revoked_at: null, expires_at: +60s}}
  as $k GET status -> variant B
  admin GET key/list -> keys [{name: primary, role: full, state: valid}, {name: primary-admin, role: admin, state: valid},
    {name: robot, role: full, state: valid, node_id: n1, used: {tasks: 0, bytes: 0}, secret: absent}]
  -> keys !~$k.secret

-- key endpoints: all keys are listed, or a page of them (<A|B>)
  ${Array.from({ length: 61 }, (_, i) => `admin key/add {name: r${String(i).padStart(2, "0")}}`).join("\n")}
  admin <|B >GET key/list -> {page: 1, total: 63, pages: 1, keys: #63}
  admin <|B >GET key/list?page=2&per_page=50 -> {page: 2, per_page: 50, total: 63, pages: 2, keys: #13}
  admin <|B >GET key/list?page=4 -> keys.name [r58, r59, r60]
  admin <|B >GET key/list?page=5 -> keys []
  admin <|B >GET key/list?per_page=0 -> 400 per_page

-- key endpoints: a key that cannot be is 400, field by field, as is an Idempotency-Key, which would store the secret
  admin key/add {} -> 400 name
  admin key/add {name: <"a b"|a*65>} -> 400 name
  admin key/add {name: a, <role: king|variant: C|node_id: "/"|expires_in_s: 0|expires_at: -1s|expires_at: +5000d>} ->
  400 <role|variant|node_id|expires_in_s|expires_at|expires_at>
  admin key/add {name: a, expires_at: +5000d, expires_in_s: 1} -> 400 expires_in_s expires_at
  admin key/add {name: a, role: admin, node_id: n1, variant: A} -> 400 variant node_id
  admin key k key/add {name: a} -> 400 Idempotency-Key
  admin GET key/list -> total 2
  admin key/add {name: a}
  admin key k key/revoke {name: a}

== a bound key: makes keys of its node only, revokes none, and cannot reassign another's task
  ${BOUND}
  as $k admin key/add {name: x} -> 403 key_bound_to_other_node
  as $k admin key/add n2 {name: x} -> 403 key_bound_to_other_node
  as $k admin key/add n1 {name: x}
  as $k admin key/revoke {name: primary} -> 403 key_bound_to_other_node
  t = task/create
  task/assign $t n1
  as $k admin task/revoke $t n2 -> 403 key_bound_to_other_node

== a bound key: creates, cancels and retries as its node
  k = admin key/add n1 {name: k}
  t = as $k task/create -> task.creator_node n1
  as $k task/cancel $t -> task.failure {kind: cancelled, node_id: n1}
  as $k task/retry $t
  other = task/create
  as $k task/<cancel|retry> $other -> 403 key_bound_to_other_node

== a bound key: acts for its node only
  ${BOUND}
  <mine|theirs> = message/send op <n1|n2> {require_ack: true}
  f, g = upload a.txt {node: n1}
  h = upload a.txt {node: n2}
  ${["n2 -> 403 key_bound_to_other_node", "n1"]
    .map((line) => {
      const [node = "", wanted = ""] = line.split(/ (?=->)/);
      const message = node === "n1" ? "mine" : "theirs";
      return `t = task/create {creator_node: ${node}}
  failing = task/create {creator_node: ${node}}
  task/assign $failing ${node}
  as $k <node/register|node/heartbeat|node/drain|message/receive|signin> ${node} {name: n, drain: false} ${wanted}
  as $k task/create {creator_node: ${node}} ${wanted}
  as $k task/<claim|assign> $t ${node} ${wanted}
  as $k task/batch-assign {assignments: [{task_id: $t, node_id: ${node}}]} ${wanted}
  as $k task/<extend|release|claim> $t ${node} ${wanted}
  as $k task/complete $t ${node} ${wanted}
  as $k task/fail $failing ${node} {backoff_s: 0} ${wanted}
  as $k task/cancel $failing ${node} ${wanted}
  as $k task/retry $failing ${wanted}
  as $k GET <task/pull|agent/messages|message/history|lux/ledger>?node_id=${node} ${wanted}
  as $k <message|agent>/ack ${node} {message_id: $${message}} ${wanted}
  as $k <message/send|agent/message> ${node} n2 ${wanted}
  as $k <message|agent>/broadcast ${node} ${wanted}
  as $k upload a.txt {node: ${node}} ${wanted}`;
    })
    .join("\n")}
  as $k file/delete {file_id: $h} -> 403 key_bound_to_other_node
  as $k DELETE file/$h -> 403 key_bound_to_other_node
  as $k DELETE file/$f
  as $k file/delete {file_id: $g}
  as $k B GET node/list -> nodes #2

== a bound key: uploads belong to its node, and only to tasks that the node created or holds
  k = admin key/add n1 {name: k}
  as $k upload a.txt -> 404 node_not_found
  nodes n1 n2
  theirs = task/create {creator_node: n2}
  held = task/create {creator_node: n2}
  created = task/create {creator_node: n1}
  task/assign $theirs n2; task/assign $created n2; task/assign $held n1
  as $k upload a.txt {<task_id: $theirs|task_id: $theirs, node: n1|node: n2>} -> 403 key_bound_to_other_node
  as $k key u upload a.txt {task_id: $theirs} -> 403 key_bound_to_other_node
  GET file/list -> total 0
  as $k upload a.txt {<metadata: {}|task_id: $held|task_id: $created, node: n1>} -> {node_id: n1, task_id: <null|$held|$created>}
  as $k upload a.txt {node: somebody, task_id: else} -> {node_id: n1, task_id: null, metadata: {node: somebody}}
  f = upload a.txt
  as $k file/delete {file_id: $f} -> 403 key_bound_to_other_node
  upload a.txt {task_id: $theirs}

== a key of a node and its sessions: acts for one of them at a time, and for no node of another key
  nodes agent-1 agent-1.2 agent-1.7 agent-2
  k = admin key/add {name: sessions, node_id: agent-1.*}
  admin key/add agent-1.7 {name: other}
  as $k node/heartbeat agent-1
  as $k node/heartbeat agent-1.2 -> 403 key_bound_to_other_node
  as $k with {X-Node-Id: agent-1.2} node/heartbeat agent-1.2
  as $k with {X-Node-Id: agent-1.2} node/heartbeat agent-1 -> 403 key_bound_to_other_node
  as $k with {X-Node-Id: <agent-1.7|agent-2>} node/heartbeat <agent-1.7|agent-2> -> 403 key_bound_to_other_node
  as $k with {X-Node-Id: <agent-1.7|agent-1.x|agent-1.100>} node/heartbeat agent-1

== a viewer: sees tasks, results, events and files, and does no more; it may be bound to a node
  nodes n1 n2
  k = admin key/add {name: board, role: viewer}
  t = task/create
  task/claim $t n1
  task/complete $t n1
  f = upload a.txt
  as $k GET task/$t -> task.result.lesson *
  as $k GET events -> events !#0
  as $k GET poll?since=0 -> events !#0
  as $k GET file/download/$f -> text *
  as $k GET task/pull?node_id=n1
  as $k admin <node/heartbeat n1|task/create|GET message/history?node_id=n1|key/add {name: x}> -> 403 viewer_not_allowed
  own = admin key/add n1 {name: own, role: viewer}
  as $own GET task/pull?node_id=n1
  as $own GET task/pull?node_id=n2 -> 403 key_bound_to_other_node
  as $own node/heartbeat n1 -> 403 viewer_not_allowed

== the same Idempotency-Key of two keys is two requests
  k = admin key/add {name: second}
  t = key k1 task/create
  u = as $k key k1 task/create -> task_id !$t
  replay
  GET task/list -> total 2
`);
