/**
 * Schedules over HTTP: what is stored and refused, that a task comes at each time however often the hub restarts, and whose
 * schedules a bound key changes.
 */
import { SCHEDULES_OF_NODE_MAX, SCHEDULES_REWIND_EVERY_MS } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

const TASK = "title: Wiki, description: Archive.";
const put = (fields = "", task = "") =>
  `schedule/put {name: s, every_s: 3600, task: {${TASK} ${task}}, ${fields}}`;
const step = (ref: string, fields = "") => `{ref: ${ref}, ${fields}${fields && ", "}task: {${TASK}}}`;
const cron = (expression: string) => `schedule/put {name: s, cron: "${expression}", task: {${TASK}}}`;
const rewind = `tick ${SCHEDULES_REWIND_EVERY_MS / 1_000}s; sweep; tick 1h; sweep`;

transcripts(`
== a schedule creates its task at each time, which shows the schedule
  s = ${put("overlap: queue", "task_type: backup, priority: 0")}
  tick 3630s; sweep
  tick 1h; sweep
  l = GET task/list -> tasks.schedule [{name: s, at: *}, {name: s, at: $s.schedule.next_at}]
  -> tasks.0 {title: Wiki, task_type: backup, schedule: {at: -30s}}
  GET schedule/list -> schedules [{last_task_id: $l.tasks.0.task_id, paused: false}]
  task/create -> task.schedule absent

-- a schedule skips a time while its task is unfinished, and says so once in the log of events
  nodes n1
  ${put()}
  tick 1h; sweep
  tick 1h; sweep
  l = GET task/list -> tasks #1
  node/heartbeat n1
  task/<claim|complete> n1 {task_id: $l.tasks.0.task_id}
  tick 1h; sweep
  GET task/list -> tasks #2
  GET events?since=0&kind=schedule.skipped -> events.data [{name: s, reason: overlap}]

-- a schedule skips a time while the result of its task waits for a review, which may open the task again
  nodes n1 boss
  ${put("", ", creator_node: boss, review: creator")}
  tick 1h; sweep
  l = GET task/list -> tasks #1
  node/heartbeat n1
  task/<claim|complete> n1 {task_id: $l.tasks.0.task_id}
  tick 1h; sweep
  GET task/list -> tasks #1
  task/review boss {task_id: $l.tasks.0.task_id, verdict: pass}
  tick 1h; sweep
  GET task/list -> tasks #2

== a schedule with a pipeline creates all its tasks at each time, in a group of their own, in one commit
  s = schedule/put {name: s, every_s: 3600, overlap: queue, tasks: [${step("a")}, ${step("b", "needs: [a]")}, ${step("c", "needs: [a, b], on_dependency: run")}]}
  -> schedule.tasks.2 {ref: c, needs: [a, b], on_dependency: run, task: {title: Wiki}}
  -> schedule.task.title Wiki
  tick 3630s; sweep
  l = GET task/list -> tasks.depends_on [#2, #1, []]
  -> tasks.ready [false, false, true]
  -> tasks.1.depends_on.0 $l.tasks.2.task_id
  -> tasks.schedule [{name: s}, {name: s}, {name: s}]
  GET schedule/list -> schedules [{last_task_id: $l.tasks.0.task_id}]
  tick 1h; sweep
  GET group/list -> groups.total [3, 3]
  schedule/run {name: s} -> task.depends_on #2

-- what a pipeline needs comes before it, once, and a task is no pipeline
  schedule/put {name: s, every_s: 3600, tasks: [${step("a", "needs: [b]")}, ${step("b")}]} -> 400 tasks.0.needs
  schedule/put {name: s, every_s: 3600, tasks: [${step("a")}, ${step("a")}]} -> 400 tasks.1.ref
  schedule/put {name: s, every_s: 3600, tasks: [${step("a")}], task: {${TASK}}} -> 400 task
  schedule/put {name: s, every_s: 3600, tasks: []} -> 400 tasks
  schedule/put {name: s, every_s: 3600} -> 400 task

== a schedule fires once for each time, however often its hub restarts between them
  ${put("overlap: queue")}
  ${"tick 15m; sweep; sweep; restart\n".repeat(10)}
  GET task/list -> tasks #2

== a schedule is replaced by a put; the same put again neither moves its time nor logs an event
  s = ${put()}
  tick 1m
  ${put()} -> schedule $s.schedule
  ${put("", ", title: Mail")} -> schedule {next_at: $s.schedule.next_at, task: {title: Mail}}
  GET events?since=0&kind=schedule.saved -> events #2
  ${put("paused: true")} -> schedule.next_at null
  tick 2h; sweep
  GET task/list -> tasks []

-- a schedule comes again when the clock was set back by years, also over a restart
  jump 730d
  ${put()}
  ${put("name: other")}
  jump -730d
  ${rewind}
  GET task/list -> tasks #2
  jump 730d
  sweep
  ${put("name: third")}
  jump -730d
  restart
  ${rewind}
  GET task/list -> tasks.schedule.name ~third

-- a schedule runs by hand, also while it is paused, and in a batch with its put
  ${put("paused: true")}
  schedule/run {name: s} -> task {schedule: {name: s, at: null}, ready: true}
  <|B >batch {requests: [
    {path: schedule/put, body: {name: other, every_s: 3600, task: {${TASK}}}},
    {path: schedule/run, body: {name: other}}]} -> answers.status [200, 200]
  GET task/list -> tasks #3

-- a schedule that is listed says everything of its task, and can be put back as it is (<A|B>)
  <|B >schedule/put {name: s, cron: @hourly, task: {${TASK}, requires: {capabilities: [cuda12], resources: {gpu: 1}},
    limit_key: api, group: nightly, tags: [a], max_attempts: 3}}
  l = <|B >GET schedule/list -> schedules.0.task {limit_key: api, group: nightly, tags: [a], max_attempts: 3}
  -> schedules.0.task.requires {capabilities: [cuda12], resources: {gpu: 1}}
  <|B >schedule/put {name: s, cron: @hourly, task: $l.schedules.0.task, paused: true}
  <|B >schedule/put {name: s, cron: @hourly, task: $l.schedules.0.task, paused: false}
  <|B >GET schedule/list -> schedules [{task: $l.schedules.0.task, next_at: $l.schedules.0.next_at, paused: false}]
  <|B >schedule/run {name: s} -> task {requires: {capabilities: [cuda12]}, limit_key: api}

-- on B the task of a schedule goes to a node at once
  B nodes n1
  B ${put()}
  tick 1h
  node/heartbeat n1
  sweep
  GET task/list -> tasks.assigned_node [n1]
  t = schedule/run {name: s}
  task $t -> assigned_node n1

-- on B the task of a schedule goes to no node whose budget is used up
  B nodes n1 n2
  admin budget/set {scope: node, value: n1, per: day, tokens: 1}
  t = task/create
  task/claim $t n1
  task/extend $t n1 {usage: [{seq: 1, model: m, input_tokens: 5, output_tokens: 5}]}
  B ${put()}
  t = schedule/run {name: s}; task $t -> assigned_node <n2|n2|n2>
  node/drain n2 {drain: true}
  t = schedule/run {name: s}
  task $t -> assigned_node null

== a schedule is deleted; its tasks stay
  ${put()}
  tick 1h; sweep
  schedule/delete {name: s}
  tick 1h; sweep
  GET schedule/list -> schedules []
  GET task/list -> tasks #1
  schedule/<run|delete> {name: s} -> 404 schedule_not_found

-- a schedule with wrong fields is refused, each field with its reason
  ${put('cron: "0 9 * * *"')} -> 400 every_s
  schedule/put {name: s, task: {${TASK}}} -> 400 cron
  ${cron("* * * * * *")} -> 400 cron
  schedule/put {name: s, cron: @daily, tz: Mars/Base, task: {${TASK}}} -> 400 tz
  ${put("tz: UTC")} -> 400 tz
  ${put("every_s: 0")} -> 400 every_s
  ${put('name: ""')} -> 400 name
  ${put("", ", depends_on: []")} -> 400 task.depends_on
  ${put("", ", unique_key: k")} -> 400 task.unique_key
  ${put("", ", titel: x")} -> 400 task.titel
  ${put("task: null")} -> 400 task
  ${put("task: []")} -> 400 task
  ${put("", `, description: ${"x".repeat(16_385)}`)} -> 400 task.description
  ${put("overlap: maybe")} -> 400 overlap
  GET schedule/list -> schedules []

-- a schedule whose cron expression is wrong is refused, with the field that is wrong
  ${cron("<60|H> 5 * * *")} -> 400 cron ~minute
  ${cron("0 24 * * *")} -> 400 cron ~hour
  ${cron("0 0 <L|15W|?> * *")} -> 400 cron ~month
  ${cron("0 0 1 NOV-FEB *")} -> 400 cron ~month
  ${cron("0 0 * * <5#3|FRI-MON>")} -> 400 cron ~week
  ${cron("<0 0 0 * * *|@every 5m|@reboot>")} -> 400 cron ~five
  ${cron("0 0 30 2 *")} -> 400 cron ~years

-- a schedule of one node cannot be changed with the key of another, and each key has its share
  <n1|n2> = admin key/add <n1|n2> {name: <n1|n2>}
  as $n1 ${put()} -> schedule.task.creator_node n1
  as $n2 ${put()} -> 403 key_bound_to_other_node
  as $n2 schedule/<run|delete> {name: s} -> 403 key_bound_to_other_node
  tick 1h; sweep
  GET task/list -> tasks [{creator_node: n1, creator_verified: true}]
  ${Array.from({ length: SCHEDULES_OF_NODE_MAX - 1 }, (_, i) => `as $n1 ${put(`name: s${i}`)}`).join("\n")}
  as $n1 ${put("name: more")} -> 409 schedules_limit
  as $n1 ${put("name: s1")}
  as $n2 ${put("name: more")}

-- a pipeline for which the quota has room in part creates none of its tasks, by itself and by hand {quotaTasks: 2}
  k = admin key/add n1 {name: n1}
  as $k schedule/put {name: s, every_s: 3600, tasks: [${step("a")}, ${step("b", "needs: [a]")}, ${step("c", "needs: [a]")}]}
  tick 1h; sweep
  as $k schedule/run {name: s} -> 429 quota_exceeded
  GET task/list -> tasks []
  GET group/list -> groups []
  GET events?since=0&kind=schedule.skipped -> events.data.reason [quota_exceeded]

-- the key of a pipeline is revoked: its tasks come no more, and its times are skipped
  k = admin key/add n1 {name: n1}
  as $k schedule/put {name: s, every_s: 3600, overlap: queue, tasks: [${step("a")}, ${step("b", "needs: [a]")}]}
  tick 1h; sweep
  GET task/list -> tasks.creator_verified [true, true]
  admin key/revoke {name: n1}
  tick 1h; sweep
  GET task/list -> tasks #2
  GET events?since=0&kind=schedule.skipped -> events.data.reason [key_revoked]

-- a pipeline comes again when the clock was set back, and misses its times as a task does
  jump 730d
  schedule/put {name: s, every_s: 3600, overlap: queue, tasks: [${step("a")}, ${step("b", "needs: [a]")}]}
  jump -730d
  ${rewind}
  GET task/list -> tasks #2
  jump 730d
  sweep
  GET group/list -> groups.total [2, 2]

-- a schedule of a node without room in its quota skips the time {quotaTasks: 1}
  k = admin key/add n1 {name: n1}
  as $k ${put("overlap: queue")}
  tick 1h; sweep
  tick 1h; sweep
  GET task/list -> tasks #1
  GET events?since=0&kind=schedule.skipped -> events.data.reason [quota_exceeded]
`);
