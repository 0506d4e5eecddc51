/**
 * Quotas of keys that are bound to a node (docs/quotas.md): what counts, what is refused, what gives room back.
 * quota-bytes.test.ts has how much each row counts.
 */
import { transcripts } from "../support/transcript.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

/** A key that is bound to n1, and n2 that does the tasks; `used` shows what counts for the key. */
const KEY = `
  k = admin key/add n1 {name: k}
  as $k node/register n1 {name: n1}
  nodes n2`;
const used = (tasks: number): string => `admin GET key/list -> keys [*, *, {used: {tasks: ${tasks}}}]`;
const full = (used: number, allowed: number): string =>
  `429 quota_exceeded {used: ${used}, allowed: ${allowed}}`;
const FULL = full(2, 2);

transcripts(`
== unfinished tasks: a third is refused, and each way to finish one gives room {quotaTasks: 2}
  ${KEY}
  as $k task/create
  ${[
    "task/claim $t n2; task/complete $t n2",
    "task/claim $t n2; task/fail $t n2 {retry: false}",
    "as $k task/cancel $t",
    "admin task/delete $t",
  ]
    .map(
      (finish) => `t = as $k task/create
  as $k task/create -> 429 quota_exceeded {used: 2, allowed: 2, header: {retry-after: "60"}}
  ${used(2)}
  ${finish}
  ${used(1)}`,
    )
    .join("\n")}

-- unfinished tasks: a retry counts as a creation; a return to open changes nothing {quotaTasks: 2}
  ${KEY}
  t = as $k task/create
  as $k task/cancel $t
  first, second = as $k task/create
  as $k task/retry $t -> ${FULL}
  task/claim $first n2
  task/release $first n2
  ${used(2)}
  as $k task/cancel $first
  as $k task/retry $t
  ${used(2)}

-- unfinished tasks: of the hub's secret count for nobody, also those that name the node as their creator {quotaTasks: 2}
  ${KEY}
  task/create {creator_node: <n1|n1|n1>}
  ${used(0)}
  as $k task/create

== unfinished tasks: of many at once exactly as many pass as there is room for {quotaTasks: 2}
  ${KEY}
  as $k task/create
  at once -> statuses {"200": 1, "429": 29}
  ${"+ as $k task/create\n".repeat(30)}
  ${used(2)}

-- unfinished tasks: each request of a batch is charged after those before it {quotaTasks: 2}
  ${KEY}
  t = as $k task/create
  as $k batch
  + task/create
  + task/create -> ${FULL}
  + task/cancel $t
  + task/create
  + task/create -> ${FULL}
  ${used(2)}

-- unfinished tasks: the refusal is not stored for a repeat with the same Idempotency-Key {quotaTasks: 2}
  ${KEY}
  t, u = as $k task/create
  as $k key r task/create -> ${FULL}
  as $k task/cancel $t
  as $k key r task/create
  replay
  ${used(2)}

== unfinished tasks: a quorum holds room for its copies until it is decided, and is refused as a whole {quotaTasks: 5}
  ${KEY}
  nodes n3
  as $k task/create {quorum: {results: 5}} -> 429 quota_exceeded {used: 0, allowed: 5, detail: "~needs room for 6 more"}
  t = as $k task/create {quorum: {results: 2, of: 3}, backoff_s: 0}
  ${used(3)}
  as $k task/create {quorum: {results: 2, of: 3}} -> ${full(3, 5)}
  until task $t -> quorum.copies #2
  q = task $t
  task/claim $q.quorum.copies.0 n2; task/complete $q.quorum.copies.0 n2 {result: {output: 1}}
  task/claim $q.quorum.copies.1 n3; task/complete $q.quorum.copies.1 n3 {result: {output: 2}}
  until task $t -> quorum.copies #3
  q = task $t
  ${used(3)}
  as $k task/create {quorum: {results: 2, of: 3}} -> ${full(3, 5)}
  nodes n4
  task/claim $q.quorum.copies.2 n4; task/complete $q.quorum.copies.2 n4 {result: {output: 1}}
  until task $t -> status completed
  ${used(0)}
  t = as $k task/create {quorum: {results: 2, of: 3}}
  as $k task/cancel $t
  ${used(0)}
  as $k task/create {quorum: {results: 2, of: 3}}
  as $k task/retry $t -> ${full(3, 5)}
  admin task/delete $t

-- unfinished tasks: the copies of a quorum must fit the bytes too, before there is any {quotaBytes: ${30 * KIB}}
  ${KEY}
  as $k task/create {description: x*4096, quorum: {results: 2, of: 9}} -> 429 quota_exceeded allowed ${30 * KIB}
  t = as $k task/create {description: x*4096, quorum: {results: 2, of: 3}}
  admin GET key/list -> keys.2.used.bytes ${16 * KIB}..${30 * KIB}
  as $k task/cancel $t
  sweep
  admin GET key/list -> keys.2.used.bytes 1..${16 * KIB}

-- unfinished tasks: one keeps its place while its result is reviewed; the task for the review needs none {quotaTasks: 2}
  ${KEY}
  ${["creator", "capability:check"]
    .map(
      (review) => `t = as $k task/create {review: ${review}, backoff_s: 0}
  u = as $k task/create
  as $k task/create -> ${FULL}
  task/claim $t n2; task/complete $t n2 {result: {lesson: one}}
  sweep
  ${used(2)}
  as $k task/create -> ${FULL}
  task/review $t {verdict: reject}
  ${used(2)}
  task/claim $t n2; task/complete $t n2 {result: {lesson: two}}
  task/review $t {verdict: pass}
  ${used(1)}
  as $k task/cancel $u
  ${used(0)}`,
    )
    .join("\n")}

-- bytes: what is over is refused; what ends something is not {quotaBytes: ${30 * KIB}}
  ${KEY}
  t, u = as $k task/create
  as $k task/claim $<t|u> n1
  f = as $k upload a.txt
  m = message/send n2 n1 {require_ack: true}
  as $k task/create {description: x*20000}
  as $k task/create {description: x*20000} -> 429 quota_exceeded allowed ${30 * KIB}
  as $k <upload a.txt|message/send n1 n2 {content: x*9000}|message/broadcast n1 {content: x*9000}> -> 429 quota_exceeded
  as $k node/heartbeat n1
  as $k message/receive n1
  as $k message/ack n1 {message_id: $m}
  as $k task/fail $u n1 {error: e*4000, retry: false}
  as $k task/complete $t n1 {result: {problem: x*9000}}
  over = admin GET key/list -> keys.2.used.bytes ${30 * KIB}..${60 * KIB}
  as $k task/<retry $u|next n1> -> ${full(0, 30 * KIB).replace("used: 0", "used: $over.keys.2.used.bytes")}
  as $k node/leave n1
  as $k node/heartbeat n1
  as $k file/delete {file_id: $f}
  admin GET key/list -> keys.2.used.bytes !$over.keys.2.used.bytes
  task/create {description: x*40000}

== bytes: retention gives room back
  ${KEY}
  as $k message/send n1 n2 {content: x*5000}
  as $k message/broadcast n1 {content: x*5000}
  t = as $k task/create
  as $k task/cancel $t
  admin GET key/list -> keys.2.used.bytes 10000..20000
  ${"tick 1d; sweep\n".repeat(9)}
  # What is left is the task, and events that others made meanwhile count for nobody.
  admin GET key/list -> keys.2.used {tasks: 0, bytes: 384..900}

== files: an upload over the quota ends with 429, and leaves nothing behind {quotaBytes: ${MIB}}
  ${KEY}
  as $k upload a.txt {content: x*${MIB / 2}}
  as $k upload a.txt {content: x*${8 * MIB}} -> 429 quota_exceeded allowed ${MIB}
  as $k upload a.txt {content: x*${MIB / 2}} -> 429 quota_exceeded allowed ${MIB}
  GET file/list -> total 1
  upload a.txt {content: x*${2 * MIB}}

== files: of several at once no more pass than there is room for {quotaBytes: ${MIB}}
  ${KEY}
  at once -> statuses {"200": 1..2, "429": 6..7}
  ${`+ as $k upload a.txt {content: x*${400 * KIB}}\n`.repeat(8)}
  admin GET key/list -> keys.2.used.bytes ${400 * KIB}..${MIB}
`);
