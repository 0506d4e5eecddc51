/** Retention of finished tasks and of files: what goes, when, and what stays although it is old. */
import { RETENTION_STEP_TASKS } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

/** A task that n1 has done; n1 may have been silent for long. */
const done = (task: string, fields = ""): string => `
  ${task} = task/create {${fields}}
  node/heartbeat n1
  task/claim $${task} n1
  task/complete $${task} n1`;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const STEP = RETENTION_STEP_TASKS;

transcripts(`
== --retain-tasks: deletes finished tasks so long after their end, with their files, and says so in events {retainTasksMs: ${DAY_MS}}
  nodes n1
  signin n1
  ${done("old", "lux_reward: 2")}
  upload a.txt {task_id: $old, node: n1}
  free = upload a.txt
  failed = task/create
  task/cancel $failed
  open = task/create
  tick 1439m; sweep
  ${done("late")}
  GET task/list -> total 4
  tick 2m; sweep
  GET task/list -> tasks.task_id [$late, $open]
  GET file/list -> files.file_id [$free]
  GET events?since=0&kind=task.deleted&task_id=$<old|failed> -> events [{data: {reason: retention}}]
  # What the node has earned and done stays.
  node n1 -> {tasks_completed: 2, lux_balance: 12}
  GET lux/ledger?node_id=n1 -> entries #2
  GET task/stats -> by_status {completed: 1, failed: 0}

== --retain-tasks: keeps a task on which an unfinished one depends, until that one is old, too {retainTasksMs: ${HOUR_MS}}
  nodes n1
  ${done("first")}
  second = task/create {depends_on: [$first]}
  tick 2h; sweep
  GET task/list -> tasks.task_id [$second, $first]
  node/heartbeat n1
  task/claim $second n1 -> context.inputs [{task_id: $first, status: completed}]
  task/complete $second n1
  tick 1m; sweep
  GET task/list -> tasks.task_id [$second]
  tick 2h; sweep
  GET task/list -> tasks []

-- --retain-tasks: keeps what one depends on that is in review: a rejected one needs its inputs again {retainTasksMs: ${HOUR_MS}}
  nodes n1 boss
  ${done("first")}
  ${done("second", "depends_on: [$first], creator_node: boss, review: creator, review_within_s: 86400")}
  tick 2h; sweep
  GET task/list -> tasks.task_id [$second, $first]
  task/review $second boss {verdict: reject}
  tick 1m; sweep
  node/heartbeat n1
  task/claim $second n1 -> context.inputs [{task_id: $first, status: completed}]

-- --retain-tasks: a task that is retried is not finished, however old it is {retainTasksMs: ${HOUR_MS}}
  t = task/create {retain_s: 60}
  task/cancel $t
  task/retry $t
  tick 2h; sweep
  GET task/list -> tasks.task_id [$t]

== --retain-tasks: deletes many, in steps, and leaves younger ones {retainTasksMs: ${HOUR_MS}}
  batch
  ${"+ task/create {group: old}\n".repeat(100)}
  batch
  ${"+ task/create {group: young}\n".repeat(10)}
  + task/create
  group/cancel {group: old}
  tick 2h; sweep
  group/cancel {group: young}
  tick 1m; sweep
  GET task/stats -> by_status {open: 1, failed: 10}

-- retain_s: of a task goes before what the hub says, shorter or longer {retainTasksMs: ${HOUR_MS}}
  nodes n1
  ${done("short", "retain_s: 60")}
  ${done("long", "retain_s: 7200")}
  ${done("usual")}
  ${done("now", "retain_s: 0")}
  tick 11s; sweep
  GET task/list -> tasks.task_id [$usual, $long, $short]
  tick 2m; sweep
  GET task/list -> tasks.task_id [$usual, $long]
  tick 1h; sweep
  GET task/list -> tasks [{task_id: $long, retain_s: 7200}]
  tick 1h; sweep
  GET task/list -> tasks []

-- retain_s: of many tasks ends at once, also behind old ones that must stay
  batch {requests: [${`{path: task/create, body: {title: t, description: d, retain_s: 0, group: needed}}, `.repeat(STEP + 5)}]}
  all = GET task/list?group=needed&per_page=50
  task/create {depends_on: $all.tasks.task_id, on_dependency: run, delay_s: 86400}
  task/create {unique_key: k, unique_for_s: 86400, retain_s: 0, group: needed}
  group/cancel {group: needed}
  tick 1s; sweep
  batch {requests: [${`{path: task/create, body: {title: t, description: d, retain_s: 0, group: free}}, `.repeat(6 * STEP)}]}
  group/cancel {group: free}
  tick 10s; sweep
  GET group/free -> 404 group_not_found
  GET group/needed -> total ${STEP + 6}

== retain_s: a unique key keeps its task {retainTasksMs: 60000}
  nodes n1
  ${done("t", "unique_key: k, unique_for_s: 3600")}
  tick 30m; sweep
  task/create {unique_key: k} -> task_id $t
  tick 1h; sweep
  GET task/list -> tasks []

-- retain_s: works on a hub that keeps all other tasks forever
  nodes n1
  ${done("t", "retain_s: 60")}
  ${done("other")}
  tick 365d; sweep
  GET task/list -> tasks.task_id [$other]

== --retain-files: deletes old files of no task and of finished tasks, and their bytes {retainFilesMs: ${DAY_MS}}
  nodes n1
  open = task/create
  ${done("ended")}
  input = upload a.txt {task_id: $open}
  upload a.txt {task_id: $ended}
  free = upload a.txt
  tick 1439m; sweep
  young = upload a.txt
  GET file/list -> total 4
  tick 2m; sweep
  GET file/list -> files.file_id [$young, $input]
  GET file/download/$free -> 404 file_not_found
  # From then on it counts from the end of its task.
  task/cancel $open
  tick 1m; sweep
  GET file/list -> total 2
  tick 1d; sweep
  GET file/list -> total 0
  GET task/list -> total 2

== status says what the data takes
  nodes n1
  ${done("t")}
  upload a.txt
  GET status -> storage {files_bytes: 16, finished_tasks: 1, database_bytes: !0}
`);
