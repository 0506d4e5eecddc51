/**
 * Graphs of tasks: up to 1,000 dependencies of one task, what a task still waits for, and task/retry with what failed
 * only because of the task.
 */
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

/** leaf <- part <- all, and another task that all depends on. */
const TREE = `
  leaf = task/create
  part = task/create {depends_on: [$leaf]}
  other = task/create
  all = task/create {depends_on: [$part, $other]}`;
const done = (name: string) => `task/claim $${name} n1; task/complete $${name} n1`;
const dependents = (count: number) =>
  `batch {requests: [${"{path: task/create, body: {title: t, description: d, depends_on: [$first]}}, ".repeat(count)}]}`;
const tasks = (count: number) =>
  `batch {requests: [${"{path: task/create, body: {title: t, description: d}}, ".repeat(count)}]}`;
const ids = (names: readonly string[], from: number, to: number) =>
  names
    .flatMap((name) =>
      Array.from({ length: to - from }, (_, i) => `$${name}.answers.${i + from}.body.task_id`),
    )
    .join();

transcripts(`
-- depends_on takes 1,000 tasks, and the task shows which of them it waits for
  nodes n1
  a = ${tasks(500)}
  b = ${tasks(500)}
  t = task/create {depends_on: [${ids(["a", "b"], 0, 500)}]}
  task $t -> {ready: false, depends_on: [${ids(["a", "b"], 0, 500)}], unmet: {count: 1000, task_ids: [${ids(["a"], 0, 20)}]}}
  first = task $a.answers.0.body.task_id
  second = task $a.answers.1.body.task_id
  ${done("first")}
  task $t -> unmet {count: 999, task_ids: [${ids(["a"], 1, 21)}]}
  task/cancel $second
  task $t -> {status: failed, unmet: {count: 0, task_ids: []}}
  task/retry $second {with_dependents: true} -> dependents {opened: 1, left: 0}
  task $t -> unmet {count: 999, task_ids: [${ids(["a"], 1, 21)}]}

-- depends_on takes no more, and names each that is unknown
  known = task/create
  task/create {depends_on: [${"$known, ".repeat(1_001)}]} -> 400 depends_on
  task/create {depends_on: [$known, ${NO_ID}, $known, x]} -> 400 depends_on.1 depends_on.3
  task/create {depends_on: [${Array.from({ length: 1_000 }, (_, i) => `x${i}`).join()}]} ->
    400 ${Array.from({ length: 100 }, (_, i) => `depends_on.${i}`).join(" ")}

-- only GET of one task shows what it waits for
  first = task/create
  made = task/create {depends_on: [$first]} -> task.unmet absent
  GET task/list -> tasks [{unmet: absent}, {unmet: absent}]
  task $first -> unmet {count: 0, task_ids: []}
  GET task/$made?wait=0.01 -> task.unmet {count: 1, task_ids: [$first]}

== a retry with dependents opens the whole tree again in one commit, and it can be done then
  nodes n1
  ${TREE}
  task/cancel $leaf
  task $<leaf|part|other|all> -> status <failed|failed|open|failed>
  task/retry $leaf {with_dependents: true} -> {task_id: $leaf, status: open, dependents: {opened: 2, left: 0}}
  task $<leaf|part|other|all> -> status open
  task $all -> unmet {count: 2, task_ids: [$part, $other]}
  events $all -> [task.created, task.failed, task.retried]
  ${done("<leaf|part|other|all>")}
  task/retry $leaf {with_dependents: true} -> 409 task_not_failed

== after a retry without dependents, and after the task was completed, opens what is left
  nodes n1
  ${TREE}
  task/cancel $leaf
  task/retry $leaf -> dependents absent
  ${done("<leaf|other>")}
  task $<leaf|part|all> -> status <completed|failed|failed>
  task/retry $part {with_dependents: true} -> dependents {opened: 1, left: 0}
  task $part -> {status: open, ready: true}
  task $all -> unmet {count: 1, task_ids: [$part]}
  ${done("<part|all>")}

-- a retry with dependents of a task that fails again at once opens none
  ${TREE}
  task/cancel $leaf
  task/retry $part {with_dependents: true} -> {status: failed, dependents: {opened: 0, left: 1}}
  task $<part|all> -> status failed
  task/retry $leaf {with_dependents: true} -> dependents {opened: 2, left: 0}

-- a retry leaves what also depends on another failure, and opens it with that one
  ${TREE}
  last = task/create {depends_on: [$all]}
  task/cancel $<leaf|other>
  task/retry $leaf {with_dependents: true} -> dependents {opened: 1, left: 0}
  task $<leaf|part|all|last> -> status <open|open|failed|failed>
  task/retry $other {with_dependents: true} -> dependents {opened: 2, left: 0}
  task $<part|other|all|last> -> status open

-- a retry leaves what depends on a deleted task, and what failed in another way
  a, b = task/create
  both = task/create {depends_on: [$a, $b]}
  cancelled = task/create {depends_on: [$a]}
  task/cancel $<cancelled|a>
  admin task/delete $b
  task/retry $a {with_dependents: true} -> dependents {opened: 0, left: 0}
  task $<both|cancelled> -> status failed

-- a retry opens at most 250 at a time, the oldest first, and says how many are left
  first = task/create
  c = ${dependents(300)}
  grandchild = task/create {depends_on: [$c.answers.0.body.task_id, $c.answers.299.body.task_id]}
  task/cancel $first
  until GET task/stats -> by_status.failed 302
  task/retry $first {with_dependents: true} -> dependents {opened: 250, left: 51}
  task $c.answers.<249|250>.body.task_id -> status <open|failed>
  task $grandchild -> status failed
  task/retry $first {with_dependents: true} -> dependents {opened: 51, left: 0}
  GET task/stats -> by_status {failed: 0, open: 302}
  task/retry $first {with_dependents: true} -> 409 task_not_failed

== in a batch, with the failure that comes before it in the same commit
  ${TREE}
  task/cancel $leaf
  batch {requests: [
    {path: task/retry, body: {task_id: $leaf, with_dependents: true}},
    {path: task/retry, body: {task_id: $part, with_dependents: true}},
    {path: task/retry, body: {task_id: $all}}]} -> answers.status [200, 409, 409]
  -> answers.0.body.dependents {opened: 2, left: 0}
  # Those that have not heard of the failure yet wait on.
  batch {requests: [
    {path: task/cancel, body: {task_id: $leaf}},
    {path: task/retry, body: {task_id: $leaf, with_dependents: true}}]} -> answers.1.body.dependents {opened: 0, left: 0}
  sweep
  task $<leaf|part|all> -> status open

-- the balancer of B gets what is ready at once
  nodes n1
  first = B task/create
  second = B task/create {depends_on: [$first]}
  task/cancel $first
  task/retry $first
  task/complete $first n1
  task/retry $first {with_dependents: true} -> dependents {opened: 1, left: 0}
  task $second -> assigned_node n1

-- with a key that is bound to a node opens only what that node has created
  nodes n1 n2
  robot = admin key/add n1 {name: robot}
  leaf = task/create {creator_node: n1}
  <own|theirs> = task/create {creator_node: <n1|n2>, depends_on: [$leaf]}
  task/cancel $leaf
  as $robot task/retry $leaf {with_dependents: true} -> dependents {opened: 1, left: 0}
  task $<leaf|own|theirs> -> status <open|open|failed>
  task/retry $leaf {with_dependents: true} -> dependents {opened: 1, left: 0}

-- with an Idempotency-Key is done once
  ${TREE}
  task/cancel $leaf
  key k task/retry $leaf {with_dependents: true}
  replay
  GET events?since=0&kind=task.retried -> events #3
`);
