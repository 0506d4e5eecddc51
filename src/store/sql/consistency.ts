/**
 * Consistency checks: each invariant of the stored rows, as a query that finds its violations. SQLite's integrity check
 * covers pages and indexes; only these say whether a balance is the sum of its payments.
 */
import { IS_CANCELLED } from "./groups.ts";

/** `sql` returns one row with one text for each violation, SHOWN at most. */
export type Fact = { readonly name: string; readonly holds: string; readonly sql: string };

const SHOWN = 5;
/** What a task knows of its questions. */
const QUESTIONS = "coalesce(json_extract(questions, '$.state'), 'none')";
/** The state of its last result. */
const REVIEW = "coalesce(json_extract(review, '$.check.state'), 'none')";
const NOT_ASKING = `${QUESTIONS} <> 'open'`;

/** The totals of a group, and what a task adds to each. */
const GROUPED = {
  open: "status = 'open'",
  assigned: "status = 'assigned'",
  completed: "status = 'completed'",
  failed: "status = 'failed' AND NOT is_cancelled",
  cancelled: "is_cancelled",
  in_review: "review_until IS NOT NULL",
  lux: "lux_reward_micro / 1000000",
  lux_micro: "lux_reward_micro % 1000000",
  paid: "paid / 1000000",
  paid_micro: "paid % 1000000",
};

/** Later than any stored time. */
const NEVER = Number.MAX_SAFE_INTEGER;

export const FACTS: readonly Fact[] = [
  {
    name: "ledger",
    holds: "every balance is the sum of its payments",
    sql: `
      SELECT 'node ' || node_id || ': entry ' || n || ' says ' || balance_micro || ', the sum is ' || total
      FROM (
        SELECT node_id, n, balance_micro, sum(amount_micro) OVER own AS total, row_number() OVER own AS place
        FROM ledger WHERE node_id IS NOT NULL
        WINDOW own AS (PARTITION BY node_id ORDER BY n ROWS UNBOUNDED PRECEDING))
      WHERE balance_micro <> total OR n <> place LIMIT ${SHOWN}`,
  },
  {
    name: "accounts",
    holds:
      "every entry of the ledger moves LUX from one account to another, none is missing, and what is held back are the rewards of results in review",
    sql: `
      SELECT 'of the entries 1 to ' || max(seq) || ' there are ' || count(*) FROM ledger
      HAVING count(*) > 0 AND (min(seq) <> 1 OR max(seq) <> count(*))
      UNION ALL
      SELECT 'entry ' || seq || ' moves ' || amount_micro || ' from ' || coalesce(from_account, 'treasury') || ' to '
        || coalesce(to_account, 'node:' || node_id) FROM ledger
      WHERE amount_micro <= 0 OR coalesce(from_account, 'treasury') = to_account
        OR from_account NOT LIKE 'held:%' OR (to_account <> 'treasury' AND to_account NOT LIKE 'held:%')
      UNION ALL
      SELECT 'entry ' || seq || ' has no hash, and an earlier one has one' FROM ledger
      WHERE hash IS NULL AND seq > (SELECT min(seq) FROM ledger WHERE hash IS NOT NULL)
      UNION ALL
      SELECT account || ' has ' || sum(amount) || ' millionths too many or too few' FROM (
        SELECT to_account AS account, amount_micro AS amount FROM ledger WHERE to_account LIKE 'held:%'
        UNION ALL SELECT from_account, -amount_micro FROM ledger WHERE from_account LIKE 'held:%'
        UNION ALL SELECT 'held:' || task_id, -lux_reward_micro FROM task_rows
          WHERE review_until IS NOT NULL AND coalesce(json_extract(review, '$.check.unpaid'), 0) = 0)
      GROUP BY account HAVING sum(amount) <> 0
      LIMIT ${SHOWN}`,
  },
  {
    name: "entries",
    holds: "every node's balance and number of payments are those of its newest payment",
    sql: `
      SELECT 'node ' || n.node_id || ': its balance or number of payments is not that of its newest payment' FROM nodes n
      LEFT JOIN (SELECT node_id, max(n) AS newest FROM ledger WHERE node_id IS NOT NULL GROUP BY node_id) c ON c.node_id = n.node_id
      LEFT JOIN ledger l ON l.node_id = n.node_id AND l.n = c.newest
      WHERE n.entries <> coalesce(c.newest, 0) OR n.balance_micro <> coalesce(l.balance_micro, 0) LIMIT ${SHOWN}`,
  },
  {
    name: "payments",
    holds: "every reward was paid once, to the node that completed the task, and after its review",
    sql: `
      SELECT 'task ' || task_id || ' was paid ' || count(*) || ' times' FROM ledger
      WHERE kind = 'reward' GROUP BY task_id HAVING count(*) > 1
      UNION ALL
      SELECT 'task ' || t.task_id || ' was not paid, or names an entry that did not pay it' FROM task_rows t
      LEFT JOIN ledger l ON l.seq = t.paid_seq
      WHERE (t.paid_seq IS NOT NULL AND (t.status <> 'completed' OR t.lux_reward_micro = 0))
        -- --self-reward off: it may have been a task of its own
        OR (t.status = 'completed' AND t.lux_reward_micro > 0 AND t.paid_seq IS NULL AND t.creator_key IS NULL
          AND t.review_until IS NULL AND t.quorum IS NULL
          AND t.creator_node IS NOT t.assigned_node)
        OR (t.paid_seq IS NOT NULL AND (l.task_id IS NOT t.task_id OR l.kind IS NOT 'reward'))
      UNION ALL
      SELECT 'task ' || t.task_id || ' differs from its payment' FROM ledger l
      JOIN task_rows t ON t.task_id = l.task_id
      WHERE l.kind = 'reward'
        AND (t.status <> 'completed' OR t.review_until IS NOT NULL OR t.assigned_node <> l.node_id OR t.lux_reward_micro <> l.amount_micro)
      LIMIT ${SHOWN}`,
  },
  {
    name: "nodes",
    holds: "every node's totals are those of its tasks and payments, or more for completed tasks (retention)",
    sql: `
      SELECT 'node ' || n.node_id || ': its totals differ from its tasks and payments' FROM nodes n
      LEFT JOIN (
        SELECT assigned_node, sum(status = 'assigned') AS held, sum(status = 'completed') AS done
        FROM task_rows WHERE assigned_node IS NOT NULL GROUP BY assigned_node) t ON t.assigned_node = n.node_id
      LEFT JOIN (
        SELECT node_id, sum(amount_micro) AS earned FROM ledger
        WHERE kind = 'reward' GROUP BY node_id) l ON l.node_id = n.node_id
      WHERE n.tasks_assigned <> coalesce(t.held, 0) OR n.tasks_completed < coalesce(t.done, 0)
        OR n.lux_earned_micro <> coalesce(l.earned, 0) LIMIT ${SHOWN}`,
  },
  {
    name: "beats",
    holds: "every node has a last heartbeat, every last heartbeat has a node, no deleted node is online",
    sql: `
      SELECT 'node ' || node_id || ' has no last heartbeat' FROM nodes WHERE seq NOT IN (SELECT seq FROM beats)
      UNION ALL
      SELECT 'the last heartbeat ' || seq || ' has no node' FROM beats
      WHERE seq NOT IN (SELECT seq FROM nodes)
      UNION ALL
      SELECT 'node ' || node_id || ' is deleted but online' FROM nodes WHERE deleted = 1 AND online = 1
      LIMIT ${SHOWN}`,
  },
  {
    name: "tasks",
    holds: "every task's state, node and result agree, and the totals are their counts",
    sql: `
      SELECT 'task ' || task_id || ' is ' || status || ', but its node or result disagrees' FROM task_rows
      WHERE status NOT IN ('open', 'assigned', 'completed', 'failed')
        OR (status IN ('open', 'failed')) <> (assigned_node IS NULL)
        OR (status = 'completed') <> (problem IS NOT NULL)
        OR (result_verified = 1 AND status <> 'completed')
        OR (result_extra IS NOT NULL AND (problem IS NULL OR NOT json_valid(result_extra)))
        OR (assigned_node IS NOT NULL AND assigned_node NOT IN (SELECT node_id FROM nodes))
      UNION ALL
      SELECT 'the total of ' || status || ' tasks is ' || said || ', but there are ' || counted FROM (
        SELECT 'open' AS status, open AS said, (SELECT count(*) FROM task_rows WHERE status = 'open') AS counted
        FROM task_totals
        UNION ALL
        SELECT 'assigned', assigned, (SELECT count(*) FROM task_rows WHERE status = 'assigned') FROM task_totals
        UNION ALL
        SELECT 'completed', completed, (SELECT count(*) FROM task_rows WHERE status = 'completed') FROM task_totals
        UNION ALL
        SELECT 'failed', failed, (SELECT count(*) FROM task_rows WHERE status = 'failed') FROM task_totals)
      WHERE said <> counted LIMIT ${SHOWN}`,
  },
  {
    name: "rows",
    holds: "every task has a specification, and what belongs to it has a task and agrees with it",
    sql: `
      SELECT 'task ' || task_id || ' has no specification' FROM tasks WHERE seq NOT IN (SELECT task_seq FROM task_specs)
      UNION ALL
      SELECT 'a row of task ' || task_seq || ' has no task' FROM (
        SELECT task_seq FROM task_specs UNION SELECT task_seq FROM task_results UNION SELECT task_seq FROM task_features)
      WHERE task_seq NOT IN (SELECT seq FROM tasks)
      UNION ALL
      SELECT 'the features of task ' || task_id || ' are of an earlier state' FROM task_features f
      JOIN tasks t ON t.seq = f.task_seq
      WHERE (f.status, f.updated_at) <> (t.status, t.updated_at) OR f.assigned_node IS NOT t.assigned_node
      LIMIT ${SHOWN}`,
  },
  {
    name: "groups",
    holds: "the totals of every group are the sums over its tasks",
    sql: `
      SELECT 'group ' || task_group || ': its totals are not those of its tasks' FROM (
        SELECT task_group, ${Object.keys(GROUPED).join(", ")} FROM group_totals
        UNION ALL
        SELECT task_group, ${Object.values(GROUPED)
          .map((value) => `-sum(${value})`)
          .join(", ")} FROM (
          SELECT *, status = 'failed' AND ${IS_CANCELLED} AS is_cancelled,
            CASE WHEN status <> 'completed' THEN 0 WHEN paid_seq IS NOT NULL THEN lux_reward_micro
              ELSE coalesce(quorum ->> '$.paidMicro', 0) END AS paid
          FROM task_rows WHERE task_group IS NOT NULL)
        GROUP BY task_group)
      GROUP BY task_group
      HAVING count(*) <> 2 OR ${Object.keys(GROUPED)
        .map((column) => `sum(${column}) IS NOT 0`)
        .join(" OR ")} LIMIT ${SHOWN}`,
  },
  {
    name: "leases",
    holds:
      "only an assigned task has a lease, and each with a timeout or max_run_s and without an open question has one; only an open one waits for its time",
    sql: `
      SELECT 'task ' || task_id || ' is ' || status || ', and its lease or its wait is not' FROM task_rows
      WHERE (lease_until IS NOT NULL) <>
          (status = 'assigned' AND (timeout_ms IS NOT NULL OR max_run_ms IS NOT NULL) AND ${NOT_ASKING})
        OR (run_until IS NOT NULL) <> (status = 'assigned' AND max_run_ms IS NOT NULL AND ${NOT_ASKING})
        OR lease_until > run_until
        OR (ready IS NULL) <> (status <> 'open') OR (ready = 2) <> (ready > 0 AND lane IS NOT NULL)
        OR (ready = 0
          AND (status <> 'open' OR (not_before IS NULL AND unmet = 0 AND quorum IS NULL AND ${QUESTIONS} <> 'parked')))
        OR due_at IS NOT nullif(min(
          coalesce(CASE WHEN ready = 0 AND unmet = 0 THEN not_before END, ${NEVER}),
          coalesce(CASE WHEN status IN ('open', 'assigned') THEN expires_at END, ${NEVER})), ${NEVER})
        OR (unmet > 0 AND (status <> 'open' OR ready <> 0)) LIMIT ${SHOWN}`,
  },
  {
    name: "checkpoints",
    holds: "every checkpoint is that of an unfinished or failed task, which says its size",
    sql: `
      SELECT 'the checkpoint of task ' || c.task_id || ' is not the one that the task has' FROM checkpoints c
      LEFT JOIN task_rows t ON t.task_id = c.task_id
      WHERE t.task_id IS NULL OR t.status = 'completed' OR t.checkpoint_bytes <> octet_length(c.data)
      UNION ALL
      SELECT 'task ' || task_id || ' has no checkpoint, and says that it has one' FROM task_rows
      WHERE checkpoint_bytes > 0 AND task_id NOT IN (SELECT task_id FROM checkpoints)
      LIMIT ${SHOWN}`,
  },
  {
    name: "output",
    holds:
      "every attempt's output has its last block, which ends where it says; only a task that says so has output",
    sql: `
      SELECT 'the output of task ' || o.task_id || ' (' || o.epoch || ') has ' || o.bytes
        || ' bytes, and its last block ends elsewhere' FROM outputs o
      WHERE o.bytes <> coalesce((
        SELECT b.start + octet_length(b.data) FROM output_blocks b
        WHERE b.task_id = o.task_id AND b.epoch = o.epoch ORDER BY b.n DESC LIMIT 1), 0)
      UNION ALL
      SELECT 'output of task ' || task_id || ' (' || epoch || ') has no record' FROM output_blocks b
      WHERE NOT EXISTS (SELECT 1 FROM outputs o WHERE o.task_id = b.task_id AND o.epoch = b.epoch)
      UNION ALL
      SELECT 'output of task ' || o.task_id || ' has no task that says so' FROM outputs o
      LEFT JOIN task_rows t ON t.task_id = o.task_id WHERE coalesce(t.has_output, 0) = 0
      UNION ALL
      SELECT 'task ' || task_id || ' has no output, and says that it has some' FROM task_rows
      WHERE has_output = 1 AND task_id NOT IN (SELECT task_id FROM outputs)`,
  },
  {
    name: "questions",
    holds:
      "a task says that it waits for an answer exactly if it has an open question, and a parked one is open and not ready",
    sql: `
      SELECT 'question ' || question_id || ' is of no task, or its answer is not what its state says' FROM questions
      WHERE task_id NOT IN (SELECT task_id FROM task_rows)
        OR (state = 'answered') <> (answer IS NOT NULL) OR (state = 'open') <> (answered_at IS NULL)
      UNION ALL
      SELECT 'task ' || t.task_id || ' is ' || t.status || ', and its questions are ' || ${QUESTIONS} FROM task_rows t
      LEFT JOIN (
        SELECT task_id, count(*) AS asked, sum(state = 'open') AS open FROM questions GROUP BY task_id) q
        ON q.task_id = t.task_id
      WHERE (t.questions IS NOT NULL OR q.asked IS NOT NULL) AND (
        coalesce(q.asked, 0) <> coalesce(json_extract(t.questions, '$.asked'), 0)
        OR (coalesce(q.open, 0) > 0) <> (${QUESTIONS} IN ('open', 'parked'))
        OR (t.status IN ('completed', 'failed') AND coalesce(q.open, 0) > 0)
        OR (${QUESTIONS} = 'parked' AND (t.status <> 'open' OR t.ready <> 0)))`,
  },
  {
    name: "reviews",
    holds:
      "a task has a deadline of its review exactly while its completed result waits for one, and a rejected one is not completed",
    sql: `
      SELECT 'task ' || task_id || ' is ' || status || ', and its review is ' || ${REVIEW} FROM task_rows
      WHERE review IS NOT NULL AND (
        (review_until IS NOT NULL) <> (${REVIEW} = 'pending')
        OR (status = 'completed') <> (${REVIEW} IN ('pending', 'passed')))
        OR (review IS NULL AND review_until IS NOT NULL)
      UNION ALL
      SELECT 'task ' || t.task_id || ' is ' || t.status || ', and its quorum is ' || json_extract(t.quorum, '$.state') FROM task_rows t
      WHERE t.quorum IS NOT NULL AND ((t.status = 'completed') <> (json_extract(t.quorum, '$.state') = 'agreed')
        OR (t.status = 'open' AND t.ready <> 0) OR t.status = 'assigned')
      UNION ALL
      SELECT 'task ' || c.task_id || ' is sealed, and nobody decides about it any more' FROM task_rows c
      LEFT JOIN task_rows p ON p.task_id = c.parent_task
      WHERE json_extract(c.child, '$.sealed') = 1 AND coalesce(p.status, 'failed') <> 'open'
        AND c.parent_task NOT IN (SELECT task_id FROM family_checks)
      UNION ALL
      SELECT 'the node ' || assigned_node || ' has ' || count(*) || ' copies of task ' || parent_task FROM task_rows
      WHERE json_extract(child, '$.as') = 'copy' AND assigned_node IS NOT NULL
      GROUP BY assigned_node, parent_task, json_extract(child, '$.epoch') HAVING count(*) > 1
      UNION ALL
      SELECT 'task ' || task_id || ' does not say what it was created for' FROM task_rows
      WHERE (child IS NULL) <> (parent_task IS NULL) OR json_extract(child, '$.of') <> parent_task
      LIMIT ${SHOWN}`,
  },
  {
    name: "spending",
    holds:
      "what a task has spent is the sum of its usage reports, and every sum of a day has all of that day",
    sql: `
      SELECT 'task ' || t.task_id || ' has not spent what its usage reports say' FROM task_rows t
      LEFT JOIN (
        SELECT task_id, count(*) AS n, sum(cost_micro IS NULL) AS unpriced, sum(coalesce(cost_micro, 0)) AS cost,
          sum(input_tokens) AS input, sum(output_tokens) AS output, sum(cached_tokens) AS cached
        FROM usage_reports GROUP BY task_id) r ON r.task_id = t.task_id
      WHERE (t.spent IS NULL) <> (r.n IS NULL)
        OR (t.spent ->> '$.reports') <> r.n OR (t.spent ->> '$.unpriced') <> r.unpriced
        OR (t.spent ->> '$.costMicro') <> r.cost OR (t.spent ->> '$.inputTokens') <> r.input
        OR (t.spent ->> '$.outputTokens') <> r.output OR (t.spent ->> '$.cachedTokens') <> r.cached
      UNION ALL
      SELECT 'usage was reported of task ' || task_id || ', which there is not' FROM usage_reports
      WHERE task_id NOT IN (SELECT task_id FROM task_rows)
      UNION ALL
      SELECT 'on day ' || day || ' the sums of the nodes, creators, types and models are not that of the hub' FROM (
        SELECT day, scope, sum(reports) AS n, sum(unpriced) AS unpriced, sum(cost_micro) AS cost,
          sum(input_tokens) AS input, sum(output_tokens) AS output, sum(cached_tokens) AS cached
        FROM usage_sums WHERE scope IN ('hub', 'node', 'creator', 'type', 'model')
          AND day >= (SELECT min(day) FROM node_sums)
        GROUP BY day, scope)
      GROUP BY day HAVING count(*) <> 5 OR min(n) <> max(n) OR min(unpriced) <> max(unpriced)
        OR min(cost) <> max(cost) OR min(input) <> max(input) OR min(output) <> max(output)
        OR min(cached) <> max(cached)
      UNION ALL
      SELECT 'day ' || n.day || ', ' || n.scope || ' ' || n.value || ': the nodes have more than the sum of all' FROM (
        SELECT day, scope, value, sum(reports) AS n, sum(cost_micro) AS cost FROM node_sums GROUP BY day, scope, value) n
      LEFT JOIN usage_sums s ON s.scope = n.scope AND s.value = n.value AND s.day = n.day
      WHERE s.reports IS NULL OR s.reports < n.n OR s.cost_micro < n.cost
      LIMIT ${SHOWN}`,
  },
  {
    name: "advisory",
    holds:
      "every advisory lease is of an online node, and of no task or one that this node holds; both say so; no fencing number is larger than the last one",
    sql: `
      SELECT 'lease ' || l.fencing || ' is not of a node that is online and has leases' FROM leases l
      LEFT JOIN nodes n ON n.node_id = l.node_id
      WHERE n.node_id IS NULL OR n.online = 0 OR n.has_leases = 0
      UNION ALL
      SELECT 'lease ' || l.fencing || ' is for a task that its node does not hold' FROM leases l
      LEFT JOIN task_rows t ON t.task_id = l.task_id
      WHERE l.task_id <> '' AND (t.task_id IS NULL OR t.status <> 'assigned' OR t.assigned_node <> l.node_id
        OR t.has_leases = 0)
      UNION ALL
      SELECT 'task ' || task_id || ' is ' || status || ', and says that it has leases' FROM task_rows
      WHERE has_leases = 1 AND status <> 'assigned'
      UNION ALL
      SELECT 'a lease has the fencing number ' || fencing || ', and ' || last || ' is the last one'
      FROM leases, fencing WHERE leases.fencing > fencing.last
      LIMIT ${SHOWN}`,
  },
  {
    name: "webhooks",
    holds:
      "every webhook that has failed says since when, one that is suspended waits for nothing, and a push has its task",
    sql: `
      SELECT 'webhook ' || name || ' is ' || state || ' after ' || attempts || ' failed attempts' FROM webhooks
      WHERE state NOT IN ('active', 'suspended') OR (attempts = 0) <> (failing_since IS NULL)
        OR (attempts = 0) <> (last_error IS NULL) OR (next_at IS NOT NULL AND (attempts = 0 OR state = 'suspended'))
        OR (state = 'suspended' AND (attempts = 0 OR push IS NOT NULL))
      UNION ALL
      SELECT 'webhook ' || name || ' is the push of another task than its filter names' FROM webhooks
      WHERE (push IS NULL) <> (push_task_id IS NULL)
        OR (push_task_id IS NOT NULL AND push_task_id IS NOT (filter ->> '$.taskId'))
      LIMIT ${SHOWN}`,
  },
  {
    name: "dependencies",
    holds:
      "every task waits for as many others as it counts, all of them unfinished or just ended; one that failed through others knows the cause",
    sql: `
      SELECT 'task ' || task_id || ' waits for ' || unmet || ' others, ' || n || ' are listed' FROM (
        SELECT t.task_id, t.unmet, (SELECT count(*) FROM dependencies d WHERE d.task_id = t.task_id) AS n FROM task_rows t
        WHERE t.depends_on IS NOT NULL)
      WHERE unmet <> n
      UNION ALL
      SELECT 'task ' || d.task_id || ' waits for ' || d.depends_on || ', which will not tell it' FROM dependencies d
      WHERE d.task_id NOT IN (SELECT task_id FROM task_rows) OR NOT EXISTS (
        SELECT 1 FROM task_rows t WHERE t.task_id = d.depends_on AND (status IN ('open', 'assigned') OR review_until IS NOT NULL)
          AND has_dependents = 1
        UNION ALL SELECT 1 FROM settlements s WHERE s.task_id = d.depends_on)
      UNION ALL
      SELECT 'task ' || task_id || ' is ' || status || ', and what its failure comes from is not' FROM task_rows
      WHERE (broken_by IS NOT NULL) <> (status = 'failed' AND json_extract(failure, '$.kind') = 'dependency')
      LIMIT ${SHOWN}`,
  },
  {
    name: "messages",
    holds: "every message has a delivery, and every delivery has a message",
    sql: `
      SELECT 'a delivery to ' || to_node || ' has no message' FROM deliveries d
      WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.seq = d.seq)
      UNION ALL
      SELECT 'message ' || message_id || ' has no delivery' FROM messages m
      WHERE to_node IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.to_node = m.to_node AND d.seq = m.seq)
      LIMIT ${SHOWN}`,
  },
  {
    name: "broadcasts",
    holds: "every broadcast's counts equal those of its deliveries",
    sql: `
      SELECT 'broadcast ' || m.message_id || ' has no count' FROM messages m
      WHERE m.to_node IS NULL AND m.seq NOT IN (SELECT seq FROM broadcasts)
      UNION ALL
      SELECT 'broadcast ' || b.seq || ': its counts differ from its deliveries' FROM broadcasts b
      LEFT JOIN deliveries d ON d.seq = b.seq
      WHERE b.write_until IS NULL
      GROUP BY b.seq, b.waiting, b.delivered, b.acked
      HAVING b.waiting <> coalesce(sum(d.state = 'waiting'), 0)
        OR b.delivered <> coalesce(sum(d.state = 'gone'), 0) OR b.acked <> coalesce(sum(d.state = 'acked'), 0)
        OR b.seq NOT IN (SELECT seq FROM messages WHERE to_node IS NULL)
      LIMIT ${SHOWN}`,
  },
  {
    name: "totals",
    holds: "the totals of the files are their number and their bytes",
    sql: `
      SELECT 'the totals are ' || said.files || ' files of ' || said.bytes || ' bytes, but there are '
        || counted.files || ' of ' || counted.bytes
      FROM file_totals said, (SELECT count(*) AS files, coalesce(sum(size_bytes), 0) AS bytes FROM files) counted
      WHERE said.files <> counted.files OR said.bytes <> counted.bytes LIMIT ${SHOWN}`,
  },
  {
    name: "usage",
    holds: "what counts against the quota of each node is what its rows count",
    sql: `
      SELECT 'node ' || node_id || ': its usage differs from its rows by ' || sum(tasks) || ' tasks and '
        || sum(bytes) || ' bytes' FROM (
        SELECT node_id, tasks, bytes FROM quota_usage
        UNION ALL
        SELECT creator_node, -sum(CASE WHEN child IS NOT NULL THEN 0
          WHEN status IN ('open', 'assigned') OR review_until IS NOT NULL
          THEN 1 + coalesce(CAST(json_extract(quorum, '$.results') AS INTEGER), 0) ELSE 0 END), -sum(kept_bytes) FROM task_rows
          WHERE kept_bytes > 0 GROUP BY creator_node
        UNION ALL
        SELECT node_id, 0, -sum(kept_bytes) FROM files WHERE kept_bytes > 0 GROUP BY node_id
        UNION ALL
        SELECT node_id, 0, -sum(bytes) FROM task_charges GROUP BY node_id
        UNION ALL
        SELECT node_id, 0, -sum(kept_bytes) FROM node_sums WHERE kept_bytes > 0 GROUP BY node_id
        UNION ALL
        SELECT node_id, 0, -sum(kept_bytes) FROM outputs WHERE kept_bytes > 0 GROUP BY node_id
        UNION ALL
        SELECT from_node, 0, -sum(kept_bytes) FROM messages WHERE kept_bytes > 0 GROUP BY from_node
        UNION ALL
        SELECT coalesce(kept_by, node_id), 0, -sum(kept_bytes) FROM events WHERE kept_bytes > 0 GROUP BY 1
        ${["schedules", "webhooks", "notes"].map((table) => `UNION ALL SELECT kept_by, 0, -sum(kept_bytes) FROM ${table} WHERE kept_by IS NOT NULL GROUP BY kept_by`).join(" ")}) AS counted
      GROUP BY node_id HAVING sum(tasks) <> 0 OR sum(bytes) <> 0 LIMIT ${SHOWN}`,
  },
  {
    name: "charges",
    holds: "what others have added to a task is what counts against their quotas for it",
    sql: `
      SELECT 'task ' || task_id || ': its charges differ by ' || sum(bytes) || ' bytes' FROM (
        SELECT task_id, lent_bytes AS bytes FROM task_rows WHERE lent_bytes > 0
        UNION ALL SELECT task_id, -bytes FROM task_charges) AS counted
      GROUP BY task_id HAVING sum(bytes) <> 0 LIMIT ${SHOWN}`,
  },
  {
    name: "answers",
    holds: "the totals of the stored answers are their bytes",
    sql: `
      SELECT 'the answers of a key have ' || counted.bytes || ' bytes, and not ' || coalesce(said.bytes, 0)
      FROM (SELECT key_id, sum(bytes) AS bytes FROM answers GROUP BY key_id) counted
      LEFT JOIN answer_totals said USING (key_id) WHERE counted.bytes <> coalesce(said.bytes, 0)
      UNION ALL
      SELECT 'a key has no answers, and not ' || bytes || ' bytes' FROM answer_totals
      WHERE bytes <> 0 AND key_id NOT IN (SELECT key_id FROM answers)
      LIMIT ${SHOWN}`,
  },
  {
    name: "events",
    holds: "the event log has no gap",
    sql: `
      SELECT 'of the events ' || min(id) || ' to ' || max(id) || ' there are ' || count(*) FROM events
      HAVING count(*) > 0 AND max(id) - min(id) + 1 <> count(*)
      UNION ALL
      SELECT 'event ' || id || ' cannot be read' FROM events WHERE NOT json_valid(data)
      LIMIT ${SHOWN}`,
  },
  {
    name: "invitations",
    holds: "an invitation that was used has made a key for its node, and no other has",
    sql: `
      SELECT 'invitation ' || i.invitation_id || ' of ' || i.node_id FROM invitations i
      LEFT JOIN keys k ON k.key_id = i.key_id AND k.node_id = i.node_id
      WHERE (i.used_at IS NULL) <> (i.key_id IS NULL) OR (i.used_at IS NOT NULL AND k.key_id IS NULL)
      LIMIT ${SHOWN}`,
  },
];

/** The latest stored time, in epoch milliseconds; null when there is none. */
export const LATEST_TIME = `
  SELECT max(at) FROM (
    SELECT max(at) AS at FROM events UNION ALL SELECT max(at) FROM ledger UNION ALL
    SELECT max(updated_at) FROM task_rows UNION ALL SELECT max(uploaded_at) FROM files)`;
