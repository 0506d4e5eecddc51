/**
 * The output of a task while it runs: task/output, task/<id>/output with its waits, and its stream. What is kept of an
 * attempt test/domain/output.test.ts tests.
 */
import { transcripts } from "../support/transcript.ts";

const held = (fields = "") => `
  nodes n1
  t = task/create {backoff_s: 0, ${fields}}
  task/claim $t n1`;

transcripts(`
== task/output appends at an offset in bytes; a repeat succeeds, and a gap says where the output continues
  ${held()}
  task/output $t n1 {offset: 0, data: "Grüße\\n"} -> next_offset 8
  task/output $t n1 {offset: 8, data: "\\u001b[1mbold\\u001b[0m\\r\\n"} -> next_offset 22
  task/output $t n1 {offset: 0, data: "Grüße\\n"} -> next_offset 22
  task/output $t n1 {offset: 23, data: x} -> 409 wrong_offset expected 22
  GET task/$t/output -> {task_id: $t, status: assigned, data: "Grüße\\n\\u001b[1mbold\\u001b[0m\\r\\n"}
  -> {offset: 0, next_offset: 22, dropped: 0, size: 22, ended: false}
  GET task/$t/output?from=8 -> {offset: 8, data: "\\u001b[1mbold\\u001b[0m\\r\\n"}

-- task/output is the holder's, in its lease, and of a running task
  ${held()}
  nodes n2
  task/output $t n1 {offset: 0, data: x, epoch: 7} -> 409 stale_lease
  task/output $t n2 {offset: 0, data: x} -> 403 not_assigned_to_node
  task/output $t n3 {offset: 0, data: x} -> 404 node_not_found
  task/output n1 {task_id: none, offset: 0, data: x} -> 404 task_not_found
  task/release $t n1
  task/output $t n1 {offset: 0, data: x} -> 409 task_not_assigned
  task/claim $t n1
  task/complete $t n1
  task/output $t n1 {offset: 0, data: x} -> 409 task_completed
  GET task/$t/output -> {attempt: null, data: "", size: 0, ended: true, attempts: []}
  k = admin key/add n2 {name: k}
  as $k task/output $t n1 {offset: 0, data: x} -> 403 key_bound_to_other_node

-- task/output takes 1 to 65,536 bytes of text
  ${held()}
  task/output $t n1 {offset: -1, data: ""} -> 400 offset data
  task/output $t n1 -> 400 offset data
  task/output $t n1 {offset: 0, data: "\\u0000"} -> 400 data
  task/output $t n1 {offset: 0, data: é*32769} -> 400 data
  task/output $t n1 {offset: 0, data: é*32768} -> next_offset 65536
  GET task/$t/output?<from=-1|attempt=x|wait=301> -> 400 <from|attempt|wait>

== task/output may be part of a batch, each piece after the one before
  ${held()}
  batch {requests: [${["0, data: a", "1, data: bc", "9, data: x", "3, data: d*40000", "40003, data: e"].map(
    (piece) => `{path: task/output, body: {task_id: $t, node_id: n1, offset: ${piece}}}`,
  )}]} -> answers.status [200, 200, 409, 200, 200]
  GET task/$t/output?from=40000 -> {size: 40004, data: ddde}

== task/output is no event, and needs the secret on both variants
  ${held()}
  log = GET events
  task/output $t n1 {offset: 0, data: secret}
  GET events -> cursor $log.cursor
  anon GET task/$t/output -> 401 unauthorized
  anon B stream 1 task/$t/output/stream -> 401 unauthorized

== task/<id>/output says how much is no longer kept, and goes on with the end {outputHeadBytes: 32768, outputTailBytes: 16384}
  ${held()}
  task/output $t n1 {offset: <0|60000|120000|180000|240000>, data: <a|b|c|d|e>*60000}
  GET task/$t/output -> {size: 300000, offset: 0, data: a*32768, next_offset: 32768, dropped: 0}
  GET task/$t/output?from=32768 -> {offset: 250848..283616, dropped: 218080..250848, next_offset: 300000, data: !~d}

== task/<id>/output keeps the last three attempts, each from its beginning
  nodes n1
  t = task/create {backoff_s: 0}
  <c1|c2|c3|c4> = task/claim $t n1; task/output $t n1 {offset: 0, data: "attempt <1|2|3|4>"}; task/fail $t n1
  GET task/$t/output -> {attempt: $c4.lease.epoch, data: "attempt 4", ended: true}
  -> attempts.attempt [$c2.lease.epoch, $c3.lease.epoch, $c4.lease.epoch]
  GET task/$t/output?attempt=0&from=3 -> {attempt: $c2.lease.epoch, offset: 0, data: "attempt 2"}
  GET task/$t/output?attempt=$c3.lease.epoch&from=8 -> {offset: 8, data: "3"}

== task/<id>/output waits for more, for the end of the attempt, for the next attempt, and for the end of the task
  ${held()}
  one = & GET task/$t/output?wait=60
  task/output $t n1 {offset: 0, data: one}
  $one -> {data: one, ended: false}
  two = & GET task/$t/output?from=3&wait=60
  task/output $t n1 {offset: 3, data: two}
  $two -> {attempt: 1, offset: 3, data: two, next_offset: 6}
  end = & GET task/$t/output?attempt=1&from=6&wait=60
  task/fail $t n1
  $end -> {attempt: 1, data: "", next_offset: 6, ended: true}
  next = & GET task/$t/output?attempt=2&wait=60
  c = task/claim $t n1
  task/output $t n1 {offset: 0, data: again}
  $next -> {attempt: $c.lease.epoch, data: again, ended: false}
  last = & GET task/$t/output?attempt=$c.lease.epoch&from=5&wait=60
  task/complete $t n1
  $last -> {status: completed, ended: true}
  GET task/$t/output?attempt=$c.lease.epoch&from=5&wait=300 -> ended true

== task/<id>/output is gone with its task, also at the end of its retention
  ${held("retain_s: 60")}
  task/output $t n1 {offset: 0, data: x*40000}
  w = & GET task/$t/output?from=40000&wait=60
  task/complete $t n1
  $w -> {size: 40000, ended: true}
  tick 61s; sweep
  until GET task/$t/output -> 404 task_not_found
  t = task/create
  task/claim $t n1
  task/output $t n1 {offset: 0, data: x*40000}
  w = & GET task/$t/output?from=40000&wait=60
  admin task/delete $t
  $w -> 404 task_not_found
  GET task/$t/output -> 404 task_not_found

== task/<id>/output is there after a restart, with other settings too
  ${held()}
  task/output $t n1 {offset: <0|60000>, data: <a|b>*60000}
  restart {outputHeadBytes: 1, outputTailBytes: 1}
  GET task/$t/output -> {size: 120000, data: ~aabb}
  task/output $t n1 {offset: 120000, data: c*20000}
  GET task/$t/output?from=16384 -> {dropped: 65537..120000, data: ~ccc}

== the stream shows what comes, attempt by attempt, until the task is finished, and resumes exactly
  ${held()}
  one = & stream 1 task/$t/output/stream
  task/output $t n1 {offset: 0, data: one}
  $one -> events [{kind: output, data: {offset: 0, next_offset: 3, dropped: 0, data: one}}]
  two = & stream 1 task/$t/output/stream {after: $one.events.0.id}
  task/output $t n1 {offset: 3, data: two}
  $two -> events.data [{offset: 3, data: two}]
  three = & stream 3 task/$t/output/stream {after: $two.events.0.id}
  task/fail $t n1
  c = task/claim $t n1
  task/output $t n1 {offset: 0, data: again}
  task/complete $t n1
  $three -> events [{id: 5.$c.lease.epoch, data: {attempt: $c.lease.epoch, node_id: n1, data: again}}, {kind: end, data: {status: completed}}]
  stream 9 task/$t/output/stream?attempt=1 -> events.data.data [onetwo, again, absent]
  stream 1 task/$t/output/stream?attempt=$c.lease.epoch {after: 2} -> events.data [{offset: 2, data: ain}]
  stream 1 task/$t/output/stream?attempt=$c.lease.epoch&from=4 -> events.data [{offset: 4, data: n}]

== the stream of no task is 404, and ends when its task is deleted
  ${held()}
  stream 1 task/none/output/stream -> 404 task_not_found
  s = & stream 9 task/$t/output/stream
  admin task/delete $t
  $s -> events []

-- the stream ends when the hub stops
  ${held()}
  s = & stream 9 task/$t/output/stream
  restart
  $s -> events []
`);
