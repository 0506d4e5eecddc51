/** Budgets: what they keep from being handed out, and what they say when they are used up. */
import { BUDGETS_MAX } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

const budget = (fields: string) => `admin budget/set {per: day, ${fields}}`;
const usage = (cost: string) =>
  `usage: [{seq: 1, model: m, input_tokens: 100, output_tokens: 10, cost_usd: ${cost}}]`;

/** n1 spends so much on a task, and completes it. */
const spend = (cost: string, fields = "") => `
  s = task/create {${fields}}
  task/claim $s n1
  task/complete $s n1 {${usage(cost)}}`;

const ABOUT = "task_type: dear, creator_node: boss, group: import";
const many = Array.from(
  { length: BUDGETS_MAX },
  (_, i) => `{path: budget/set, body: {scope: type, value: t${i}, per: day, tokens: 1}}`,
);

transcripts(`
== a used up budget of a <hub|node|type|creator|group> keeps its tasks back from every way to hand one out
  nodes n1 boss {auto_assign: false}
  ${budget("scope: <hub|node|type|creator|group>, value: <null|n1|dear|boss|import>, cost_usd: 0.5")}
  ${spend("0.5", ABOUT)}
  t = task/create {${ABOUT}}
  task/next n1 -> task null
  task/<claim|assign> $t n1 -> 409 budget_exceeded
  task/batch-assign {assignments: [{task_id: $t, node_id: n1}]} -> results [{success: false, error: budget_exceeded}]
  task/create {for_node: n1, ${ABOUT}} -> 409 budget_exceeded
  # The balancer: at create, at registration, at a heartbeat, when asked.
  nodes n1
  B task/create {${ABOUT}} -> assigned_node null
  B task/batch-assign
  node/leave n1
  node/heartbeat n1
  sweep
  GET task/stats -> by_status {open: 2, assigned: 0}
  # A larger one opens all of them.
  ${budget("scope: <hub|node|type|creator|group>, value: <null|n1|dear|boss|import>, cost_usd: 5")}
  task/next n1 -> task *

-- a used up budget keeps nothing else back
  nodes n1 n2 boss
  ${budget("scope: <node|type|creator|group>, value: <n2|dear|boss|import>, cost_usd: 0")}
  ${budget("scope: hub, cost_usd: 0, on_limit: warn")}
  ${"task/create {priority: 0, <task_type: dear|creator_node: boss|group: import>}\n".repeat(40)}
  cheap = task/create {task_type: cheap}
  plain = task/create
  task/next n1 -> task.task_id $<cheap|plain>
  task/next n1 -> task null
  more = task/create {task_type: cheap}
  task/next n1 {task_types: [dear, cheap]} -> task.task_id $more
  task/create {task_type: cheap}
  task/next n2 -> task null

== a budget of a group counts the copies and reviews of its tasks, and keeps these back too
  nodes n1 n2
  q = task/create {group: import, priority: 0, quorum: {results: 2, of: 2}}
  until task $q -> quorum.copies #2
  q = task $q
  task/claim n1 {task_id: $q.quorum.copies.0}
  task/extend n1 {task_id: $q.quorum.copies.0, ${usage("0.25")}}
  r = task/create {group: import, priority: 0, review: capability:check}
  task/claim $r n1
  task/complete $r n1
  until GET task/list?task_type=check -> tasks #1
  check = GET task/list?task_type=check
  task/claim n2 {task_id: $check.tasks.0.task_id}
  task/release n2 {task_id: $check.tasks.0.task_id, ${usage("0.25")}}
  GET group/import -> usage {input_tokens: 200, cost_usd: 0.5}
  GET usage?by=group -> usage [{name: import, cost_usd: 0.5}]
  # Enough copies in both kinds of lanes to hide what is behind them.
  k = task/create {group: import, priority: 0, quorum: {results: 3}, limit_key: k}; until task $k -> quorum.copies #3<|||||>
  l = task/create {group: import, priority: 0, quorum: {results: 3}}; until task $l -> quorum.copies #3<|||||>
  k = task $k; l = task $l
  ${budget("scope: group, value: import, cost_usd: 0.5")}
  free = task/create
  limited = task/create {limit_key: k}
  task/next n1 -> task.task_id $<free|limited>
  task/next n1 -> task null
  task/claim n2 {task_id: $<check.tasks.0.task_id|k.quorum.copies.0|l.quorum.copies.0>} -> 409 budget_exceeded
  GET task/$<check.tasks.0.task_id|k.quorum.copies.0|l.quorum.copies.0>/explain -> reasons.code ~budget
  ${budget("scope: group, value: import, cost_usd: 5")}
  task/next n1 -> task *

-- a used up budget lets running tasks finish, and a node go on with what it holds
  nodes n1
  running, given = task/create
  task/claim $running n1
  task/assign $given n1
  ${budget("scope: hub, cost_usd: 0")}
  task/extend $running n1
  task/complete $running n1
  task/next n1 -> task.task_id $given

-- a used up budget gives a task that its own report has closed to nobody
  nodes n1
  t = B task/create {backoff_s: 0}
  ${budget("scope: hub, cost_usd: 0.5")}
  task/claim $t n1
  nodes n2
  task/release $t n1 {${usage("1")}} -> {assigned_node: null, status: open}

== a budget wakes a waiting worker when it is set again, deleted, or its period begins again
  nodes n1
  ${budget("scope: hub, cost_usd: 0.1")}
  ${spend("0.2")}
  a, b, c = task/create
  w = & task/next n1 {wait: 60}
  ${budget("scope: hub, cost_usd: 1")}
  $w -> task.task_id $a
  ${budget("scope: hub, cost_usd: 0.1")}
  w = & task/next n1 {wait: 60}
  admin budget/delete {scope: hub, per: day}
  $w -> task.task_id $b
  ${budget("scope: hub, cost_usd: 0.1")}
  w = & task/next n1 {wait: 60}
  jump 1d
  sweep
  $w -> task.task_id $c

== what a budget says is a warning at 80 % and once more at the limit, once in a period
  nodes n1
  ${budget("scope: hub, cost_usd: 1, on_limit: warn")}
  admin budget/set {scope: type, value: t, per: month, tokens: 200}
  ${spend("0.79")}
  GET events?since=0&kind=budget.warning,budget.exceeded -> events []
  ${spend("0.01", "task_type: t")}
  GET events?since=0&kind=budget.warning,budget.exceeded -> events.data.scope [hub]
  ${spend("0.1")}
  ${spend("null", "task_type: t")}
  ${spend("0.2")}
  ${spend("0.2")}
  GET events?since=0&kind=budget.warning,budget.exceeded -> [budget.warning, budget.exceeded, budget.exceeded]
  -> events.data [{scope: hub, value: null}, {scope: type, value: t}, {scope: hub, value: null}]
  -> events.2 {node_id: null, data: {per: day, on_limit: warn, limit_usd: 1, cost_usd: 1.1, without_cost: 1}}
  jump 1d
  ${spend("2")}
  GET events?since=0&kind=budget.exceeded -> events.data.scope [type, hub, hub]

-- what a budget says is shown in the list, with what is spent and how many costs are not known
  nodes n1
  ${spend("0.85")}
  ${spend("null")}
  ${budget("scope: node, value: n1, cost_usd: 1")}
  admin budget/set {scope: hub, per: total, cost_usd: 0.5, tokens: 1000}
  admin budget/set {scope: type, per: month, cost_usd: 1, tokens: 10000}
  admin GET budget/list -> budgets.spent ${"[X, X, *]".replaceAll("X", "{cost_usd: 0.85, without_cost: 1, reports: 2, input_tokens: 200}")}
  -> budgets [{scope: hub, value: null, per: total, state: exceeded, paused: true, since: null},
    {scope: node, value: n1, per: day, state: warning, paused: false, since: *},
    {scope: type, value: null, per: month, state: warning, since: ~-01}]
  GET events?since=0&kind=budget.warning,budget.exceeded,budget.set ->
    [budget.set, budget.warning, budget.set, budget.exceeded, budget.set, budget.warning]
  -> events.data.scope [node, node, hub, hub, type, type]
  admin budget/delete {scope: node, value: n1, per: day}
  admin budget/delete {scope: node, value: n1, per: day} -> 404 budget_not_found
  admin GET budget/list -> budgets #2

-- a budget needs an administrator, a limit, and a value that fits its scope
  budget/set {scope: hub, per: day, cost_usd: 1} -> 403 admin_key_required
  GET budget/list -> 403 admin_key_required
  admin budget/set {scope: hub, per: day} -> 400 cost_usd
  ${budget("scope: hub, cost_usd: 1, value: n1")} -> 400 value
  ${budget("scope: node, cost_usd: 1")} -> 400 value
  admin budget/set {scope: x, per: week, on_limit: stop, cost_usd: -1, tokens: 0.5} -> 400 scope per on_limit cost_usd tokens

-- there are so many budgets at most
  admin batch {requests: [${many}]}
  ${budget("scope: hub, tokens: 1")} -> 409 budgets_limit
  ${budget("scope: type, value: t7, tokens: 1")}
`);
