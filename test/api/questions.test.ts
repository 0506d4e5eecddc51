/**
 * Questions of workers: task/ask, task/answer, task/<id>/questions and questions; and what an open question does to the
 * clocks of its task, its readiness and its context.
 */
import { OPEN_QUESTIONS_OF_TASK_MAX, QUESTION_MAX_SECONDS } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

/** A task that n1 holds. */
const held = (fields = "", name = "t") => `
  ${name} = task/create {backoff_s: 0, creator_node: boss, ${fields}}
  task/claim $${name} n1`;

/** The question that is asked, as `$q.id`. */
const ask = (fields = "", name = "q") => `${name} = task/ask $t n1 {${fields}}`;
const answer = (value: string, name = "q", fields = "") =>
  `task/answer $t {question_id: $${name}, answer: ${value}, ${fields}}`;

transcripts(`
== task/ask stores a question, which GET questions lists until it is answered
  nodes n1
  ${held("title: Choose")}
  ${ask("choices: [red, blue], schema: {type: object, properties: {big: {const: 12345678901234567890}}}, within_s: 60")}
  -> question {task_id: $t, question: Which?, choices: [red, blue], schema: {properties: {big: {const: *}}}, until: +60s}
  -> question {asked_by: n1, state: open, answer: null, answered_by: null, answered_at: null, verified: false}
  task $t -> waiting_for answer
  GET questions?state=open -> {total: 1, next_cursor: null}
  -> questions [{question_id: $q, task_title: Choose, creator_node: boss, until: $q.question.until}]
  ${answer("{colour: red}", "q", "node_id: n1")}
  -> question {state: answered, answer: {colour: red}, answered_by: n1, answered_at: *}
  GET questions -> {questions: [], total: 0}
  task $t -> waiting_for null
  events $t -> [task.created, task.assigned, task.asked, task.answered]

== task/ask with wait returns when it is answered, and when the wait is over
  nodes n1
  ${held()}
  ${ask("wait: 0.01")} -> question.state open
  # The same question.
  w = & task/ask $t n1 {wait: 60}
  ${answer("7")}
  $w -> question {question_id: $q, state: answered, answer: 7}

-- the same question is the open one, also for the next worker, and a new one after its answer
  nodes n1 n2
  ${held()}
  ${ask("choices: [a]")}
  task/ask $t n1 {choices: [a]} -> question $q.question
  task/ask $t n1 {choices: [b]} -> question.question_id !$q
  task/release $t n1
  task/claim $t n2
  task/ask $t n2 {choices: [a]} -> question $q.question
  ${answer("a")}
  task/ask $t n2 {choices: [a]} -> question {asked_by: n2, state: open, question_id: !$q}

-- task/ask is refused to others than the holder, with an old epoch, and beyond the limit
  nodes n1 n2
  ${held()}
  task/ask $t n2 -> 403 not_assigned_to_node
  task/ask $t n1 {epoch: 0} -> 409 stale_lease
  task/ask n1 {task_id: none} -> 404 task_not_found
  task/ask $t n3 -> 404 node_not_found
  task/ask $t n1 {question: " ", choices: [${"a, ".repeat(21)}]} -> 400 question choices
  task/ask $t n1 {within_s: ${QUESTION_MAX_SECONDS + 1}, schema: []} -> 400 within_s schema
  ${Array.from({ length: OPEN_QUESTIONS_OF_TASK_MAX }, (_, i) => `task/ask $t n1 {question: ${i}?}`).join("\n")}
  task/ask $t n1 {question: more?} -> 409 questions_limit
  task/ask $t n1 {question: 3?}
  task/release $t n1
  task/ask $t n1 -> 409 task_not_assigned

-- task/ask may be in a batch if it does not wait
  nodes n1
  ${held()}
  batch {requests: [
    {path: task/ask, body: {task_id: $t, node_id: n1, question: ?}},
    {path: task/ask, body: {task_id: $t, node_id: n1, question: ?, wait: 1}},
    {path: task/cancel, body: {task_id: $t}}]} -> answers.status [200, 400, 200]
  GET questions -> total 0

== the first answer counts: the same again succeeds, another is refused
  nodes n1
  ${held()}
  ${ask()}
  ${answer("{a: 1, b: [true]}")}
  ${answer("{b: [true], a: 1}")} -> question.answer {a: 1, b: [true]}
  ${answer("{a: 2}")} -> 409 question_answered

-- task/answer is refused for what there is not, and without an answer
  nodes n1
  ${held()}
  ${ask()}
  task/answer {task_id: none, question_id: $q, answer: 1} -> 404 task_not_found
  task/answer $t {question_id: none, answer: 1} -> 404 question_not_found
  ${answer("1", "q", "node_id: n9")} -> 404 node_not_found
  ${answer("null")} -> 400 answer
  ${answer("x".repeat(16_384))} -> 400 answer

-- a key that is bound to a node answers for tasks that its node created, and is verified
  nodes n1 boss other
  ${held()}
  ${ask()}
  <other|boss> = admin key/add <other|boss> {name: <other|boss>}
  as $other ${answer("yes")} -> 403 key_bound_to_other_node
  as $boss ${answer("yes")} -> question.answered_by boss
  GET task/$t/questions -> questions [{answered_by: boss, verified: true}]
  GET events?since=0&kind=task.answered -> events [{node_id: n1, verified: true}]
  -> events.0.data {question_id: $q, answered_by: boss, creator_node: boss}

== the clocks of a task stand still while a question is open, and start again at the answer
  nodes n1
  ${held("timeout_s: 60, max_run_s: 100")}
  tick 50s
  ${ask()}
  ${ask("question: And?", "and")}
  task/extend $t n1 -> lease.expires_at null
  tick 150s
  node/heartbeat n1
  sweep
  task $t -> {status: assigned, attempts: 0}
  ${answer("1")}
  task/extend $t n1 -> lease.expires_at null
  ${answer("1", "and")}
  tick 55s
  sweep
  task $t -> status assigned
  tick 6s
  node/heartbeat n1
  sweep
  task $t -> {status: open, attempts: 1}

== a dead worker's task opens again, with its questions; the clocks of the next one wait for them too
  nodes n1 n2
  ${held("timeout_s: 60")}
  ${ask()}
  tick 181s
  node/heartbeat n2
  sweep
  task $t -> {status: open, ready: true, attempts: 1, waiting_for: answer}
  task/next n2 -> {task: {task_id: $t}, lease: {expires_at: null}, context: {answers: [{question_id: $q, state: open}]}}
  ${answer("late")}
  GET task/$t?context=1 -> context.answers [{state: answered, answer: late}]
  task/extend $t n2 -> lease.expires_at *

== park gives the task back without an attempt, and the answer makes it ready for the next worker
  nodes n1 {max_tasks: 1}
  nodes n2
  ${held("timeout_s: 60")}
  c = task/claim $t n1
  ${ask("park: true, epoch: $c.lease.epoch")}
  task $t -> {status: open, ready: false, attempts: 0, assigned_node: null, waiting_for: answer}
  # A repeat.
  task/ask $t n1 {park: true, epoch: $c.lease.epoch} -> question $q.question
  events $t -> [task.created, task.assigned, task.asked, task.released]
  task/claim $t n2 -> 409 task_not_ready
  GET task/pull?node_id=n2 -> tasks []
  # Room for another task.
  other = task/create
  task/next n1 -> task.task_id $other
  tick 150s
  node/heartbeat n2
  sweep
  task/next n2 -> task null
  w = & task/next n2 {wait: 60}
  ${answer("[x]")}
  $w -> {task: {task_id: $t, attempts: 0, waiting_for: null}, context: {answers: [{state: answered, answer: [x]}]}}

== a parked task waits for all open questions, and the balancer assigns it at the last answer
  B nodes n1
  t = B task/create -> assigned_node n1
  ${ask()}
  ${ask("question: And?, park: true", "and")}
  ${answer("1")}
  task $t -> {status: open, ready: false}
  ${answer("1", "and")}
  task $t -> {status: assigned, assigned_node: n1}

-- an open question can park the task later
  nodes n1
  ${held()}
  ${ask()}
  task/ask $t n1 {park: true} -> question $q.question
  task $t -> {status: open, ready: false}
  events $t -> [task.created, task.assigned, task.asked, task.released]

== a deadline times the question out: the worker decides
  nodes n1
  ${held()}
  parked = task $t
  ${ask("within_s: 30, park: true", "other")}
  ${held("timeout_s: 300")}
  ${ask("within_s: 30")}
  ${ask("question: Longer?", "longer")} -> question.until +1d
  w = & GET task/$t/questions?wait=60&question_id=$q
  tick 31s
  ${answer("1")} -> 409 question_timed_out
  node/heartbeat n1
  sweep
  $w -> questions [{state: timed_out, answer: null, answered_by: null, answered_at: *}]
  task $t -> {status: assigned, waiting_for: answer}
  task $parked -> {status: open, ready: true, waiting_for: null}
  events $parked -> [task.created, task.assigned, task.asked, task.released, task.question_timed_out]
  task/answer $parked {question_id: $other, answer: 1} -> 409 question_timed_out
  GET questions -> total 1

-- the end of its task ends a question too
  nodes n1
  ${held()}
  ${ask()}
  task/complete $t n1
  ${answer("1")} -> 409 question_timed_out
  ${held()}
  ${ask("park: true")}
  w = & GET task/$t/questions?wait=60
  task/cancel $t
  ${answer("1")} -> 409 question_timed_out
  $w -> questions.state [timed_out]
  GET questions -> total 0
  task/retry $t
  task $t -> {status: open, ready: true}
  admin task/delete $t
  GET task/$t/questions -> 404 task_not_found

== task/<id>/questions waits for a change, and pages
  nodes n1
  ${held()}
  ${ask("question: 1?")}
  v = GET task/$t/questions
  w = & GET task/$t/questions?wait=60&since=$v.version
  ${ask("question: 2?", "second")}
  $w -> questions.question [1?, 2?]
  ${answer("1")}
  # What has changed since then returns at once.
  GET task/$t/questions?wait=60&since=$w.version -> questions.state [answered, open]
  GET task/$t/questions?limit=1 -> {total: 2, next_cursor: "1"}
  GET task/$t/questions?limit=1&cursor=1 -> {questions: [{question: 2?}], next_cursor: null}
  GET task/$t/questions?question_id=none -> 404 question_not_found
  GET task/none/questions?wait=60 -> 404 task_not_found

== questions are listed by their deadline, in pages
  nodes n1
  ${held()}
  task/ask $t n1 {question: h<5|1|3|2|4>, within_s: <18000|3600|10800|7200|14400>}
  p = GET questions?limit=2 -> {total: 5, questions: [{question: h1}, {question: h2}]}
  p = GET questions?limit=2&cursor=$p.next_cursor -> {total: 5, questions: [{question: h3}, {question: h4}]}
  GET questions?limit=2&cursor=$p.next_cursor -> {total: 5, questions: [{question: h5}]}
  GET questions?cursor=nonsense&state=closed -> 400 cursor state

== the events of a question reach the streams of the worker and of the creator, without texts
  nodes n1 boss
  ${held()}
  ${ask("question: secret")}
  ${answer('"secret answer"')}
  events $t -> events !~secret
  -> events.2 {kind: task.asked, node_id: n1, data: {question_id: $q, creator_node: boss, parked: false}}
  -> events.3 {kind: task.answered, node_id: n1, data: {answered_by: null, creator_node: boss}}
`);
