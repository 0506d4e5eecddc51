/**
 * Write statements: for each change of domain/change.ts, the statement that writes it and its write set. Each column is
 * declared once; write-statement.ts makes the SQL of both engines from it.
 */
import { CLOCK_JUMP_MS } from "../../domain/limits.ts";
import type { Change } from "../../domain/change.ts";
import { dueAt } from "../../domain/task/facet/start-time.ts";
import { retainUntil } from "../../domain/task/retention.ts";
import type { Kept, Spending, SumKey, UsageReport, WebhookProgress } from "../../domain/model.ts";
import { TREASURY } from "../../domain/lux.ts";
import { plus } from "../../domain/task/facet/spending.ts";
import { addTotals } from "../../domain/task/facet/group.ts";
import { headOf } from "../../domain/note.ts";
import { must } from "../../lib/assert.ts";
import { isGlob } from "../../lib/globs.ts";
import { type ConflictKey, EVERYTHING, keyOf } from "./conflict-keys.ts";
import { PRUNE_MINUTES, PRUNE_PERIODS } from "./minutes.ts";
import { CUT_OUTPUT, ERASE_OUTPUT, REFUND_OUTPUT, REMOVE_OUTPUT } from "./output.ts";
import {
  PRUNE_ANSWERS,
  PRUNE_BROADCAST_COUNTS,
  PRUNE_BROADCASTS,
  PRUNE_DELIVERIES,
  PRUNE_EVENTS,
  PRUNE_MESSAGES,
  REFUND_EVENTS,
  REFUND_MESSAGES,
  TRIM_ANSWERS,
  TRIM_ANSWERS_OF_KEY,
} from "./retention.ts";
import { PRUNE_NODE_SUMS, PRUNE_SUMS, REFUND_SUMS, SUM_COLUMNS } from "./spending.ts";
import { REFUND_CHARGES, REMOVE_CHARGES } from "./usage.ts";
import {
  encodeCapabilities,
  encodeChoices,
  encodeDependsOn,
  encodeOriginIds,
  encodeResources,
  encodeTags,
} from "./rows.ts";
import { bytesOf, encodeLane, encodeReady, keyIdOf } from "./tables.ts";
import type { Columns } from "./table.ts";
import {
  type Statement,
  added,
  customStatement,
  flag,
  insert,
  remove,
  text,
  update,
  upsert,
  whole,
} from "./write-statement.ts";

type Of<K extends Change["kind"]> = Change & { readonly kind: K };

const HAS_RESULT = "a result is written of a task that has one";

/** The statement and the write set of a change. */
export type Write<C> = {
  readonly statement: Statement<C>;
  /** Another statement for some changes of this kind; null: use `statement`. */
  instead?(change: C): Statement<C> | null;
  /** Statements of other tables, whose rows belong to this one: written after it, or before it. */
  readonly beside?: readonly Beside<C>[];
  /** The row it changes: changes of one row are written in order. Absent for a new row and for a sum. */
  row?(change: C): ConflictKey;
  /** More conflict keys of the rows it writes. */
  keys?(change: C): readonly ConflictKey[];
  /** A row that must be written before this one. */
  after?(change: C): ConflictKey;
  /**
   * Merges two changes of one row; null when a sum would be too large. Such changes commute with those of other kinds, but
   * for the one that makes the row, and sweeps.
   */
  sum?(earlier: C, later: C): C | null;
  /** Its rows cannot be named, so no change is reordered across it. */
  readonly isSweep?: true;
  /**
   * It removes rows, so its part of a transaction may use the space that must remain on a full disk. "alone": only if the
   * part has no other change.
   */
  readonly frees?: true | "alone";
};

type Beside<C> = {
  readonly statement: Statement<C>;
  readonly isFirst?: true;
  /** For which changes; without it for all of the kind. */
  when?(change: C): boolean;
};

type OfNode = { readonly nodeId: string };
type OfTask = Pick<Of<"task.created">, "task">;
type OfDelivery = { readonly toNode: string; readonly messageId: string };

const NODE_ID: Columns<OfNode> = { node_id: text(({ nodeId }) => nodeId) };
const TASK_ID: Columns<OfTask> = { task_id: text(({ task }) => task.taskId) };

const SCOPE: Columns<Pick<Of<"answer.stored">, "answer">> = { scope: text(({ answer }) => answer.scope) };
const DELIVERY_ID: Columns<Of<"delivery.moved">> = {
  seq: whole(({ seq }) => seq),
  to_node: text(({ toNode }) => toNode),
};
/** 0, which the table refuses, when there is no such node; for a NULL, SQLite would generate a number. */
const NODE_SEQ: Columns<OfNode> = {
  seq: text(
    ({ nodeId }) => nodeId,
    (nodeId) => `coalesce((SELECT seq FROM nodes WHERE node_id = ${nodeId}), 0)`,
  ),
};

const seqOf = (id: string): string => `(SELECT seq FROM messages WHERE message_id = ${id})`;
const MESSAGE_SEQ: Columns<{ readonly messageId: string }> = {
  seq: text(({ messageId }) => messageId, seqOf),
};

/** The columns of a webhook that deliveries change. */
function progressColumns<C>(of: (change: C) => WebhookProgress): Columns<C> {
  return {
    cursor_id: whole((change) => of(change).cursor),
    state: text((change) => of(change).state),
    attempts: whole((change) => of(change).attempts),
    failing_since: whole((change) => of(change).failingSince),
    next_at: whole((change) => of(change).nextAt),
    last_error: text((change) => of(change).lastError),
    delivered_at: whole((change) => of(change).deliveredAt),
  };
}

/** The columns of a task that change. */
const TASK_STATE: Columns<OfTask> = {
  status: text(({ task }) => task.status),
  assigned_node: text(({ task }) => task.assignedNode),
  revoked_from: text(({ task }) => task.revokedFrom),
  attempts: whole(({ task }) => task.attempts),
  failures: whole(({ task }) => task.failures),
  restarts: whole(({ task }) => task.restarts),
  counts_for: text(({ task }) => task.countsFor),
  run_until: whole(({ task }) => task.runUntil),
  lease_until: whole(({ task }) => task.leaseUntil),
  epoch: whole(({ task }) => task.epoch),
  not_before: whole(({ task }) => task.notBefore),
  expires_at: whole(({ task }) => task.expiresAt),
  unmet: whole(({ task }) => task.unmet),
  ready: whole(({ task }) => encodeReady(task)),
  due_at: whole(({ task }) => dueAt(task)),
  started_at: whole(({ task }) => task.startedAt),
  progress: text(({ task }) => task.progress),
  failure: text(({ task }) => task.failure && JSON.stringify(task.failure)),
  failed_node: text(({ task }) => (task.status === "failed" && task.failure ? task.failure.nodeId : null)),
  updated_at: whole(({ task }) => task.updatedAt),
};

const seqOfTask = (taskId: string): string => `(SELECT seq FROM tasks WHERE task_id = ${taskId})`;
/** The key of the rows that belong to a task. */
function ofTaskRow<C>(of: (change: C) => string): Columns<C> {
  return { task_seq: text(of, seqOfTask) };
}
const TASK_SEQ: Columns<OfTask> = ofTaskRow(({ task }) => task.taskId);
/** Of a task that was inserted just before. The statement for one row is SQLite's, which then knows the number. */
const NEW_TASK_SEQ: Columns<OfTask> = {
  task_seq: text(
    ({ task }) => task.taskId,
    (place) => (place.startsWith("$") ? "last_insert_rowid()" : seqOfTask(place)),
  ),
};
const TASK_ID_SEQ: Columns<{ readonly taskId: string }> = ofTaskRow(({ taskId }) => taskId);

/** What the indexes of features need of a task's state. */
const COPIED = ["status", "updated_at", "assigned_node"] as const;

/** The features of a task that its changes of state change. The others have changes of their own. */
const FEATURE_STATE: Columns<OfTask> = {
  status: text(({ task }) => task.status),
  updated_at: whole(({ task }) => task.updatedAt),
  assigned_node: text(({ task }) => task.assignedNode),
  earlier_failures: text(({ task: { earlierFailures: earlier } }) =>
    earlier.length === 0 ? null : JSON.stringify(earlier),
  ),
  checkpoint_bytes: whole(({ task }) => task.checkpointBytes),
  retain_until: whole(({ task }) => retainUntil(task)),
  has_output: flag(({ task }) => task.hasOutput),
  questions: text(({ task }) => task.questions && JSON.stringify(task.questions)),
  spent: text(({ task }) => task.spent && JSON.stringify(task.spent)),
  max_cost_micro: whole(({ task }) => task.maxCostMicro),
  kept_bytes: whole(({ task }) => task.keptBytes),
  lent_bytes: whole(({ task }) => task.lentBytes),
};

/** Writes the features of a task that has some. */
function writeFeatures(columns: Columns<OfTask>): readonly Beside<OfTask & { readonly isFirst?: true }>[] {
  return [
    {
      when: ({ task, isFirst }) => task.hasFeatures && isFirst === true,
      statement: upsert("task_features", TASK_SEQ, columns),
    },
    // Three quarters of the steps of an upsert.
    {
      when: ({ task, isFirst }) => task.hasFeatures && isFirst === undefined,
      statement: update("task_features", TASK_SEQ, columns),
    },
  ];
}

/** Sets one feature of a task, which may be its first. */
function setFeature<C extends { readonly taskId: string }>(columns: Columns<C>): Statement<C> {
  const names = Object.keys(columns);
  const values = Object.values(columns).filter((value) => typeof value !== "string");
  const insertFrom = (from: string, place: string): string => `
    INSERT INTO task_features (task_seq, ${[...COPIED, ...names].join(", ")})
    SELECT seq, ${[...COPIED, ...names.map((_, i) => `${place}${i + 2}`)].join(", ")} FROM ${from}
    ON CONFLICT (task_seq) DO UPDATE SET ${names.map((name) => `${name} = excluded.${name}`).join(", ")}`;
  return {
    ...customStatement("task_features", insertFrom("tasks WHERE task_id = $1", "$"), [
      text<C>(({ taskId }) => taskId),
      ...values,
    ]),
    bulk: (rows) => insertFrom(`${rows} JOIN tasks ON tasks.task_id = p.a1 WHERE TRUE`, "p.a"),
  };
}

/** What a row counts, and for whom. */
function keptColumns<C>(of: (change: C) => { readonly kept?: Kept }): Columns<C> {
  return {
    kept_by: text((change) => of(change).kept?.by ?? null),
    kept_bytes: whole((change) => of(change).kept?.bytes ?? 0),
  };
}

/** The columns of an event, except its id. */
export const EVENT: Columns<Pick<Of<"event.logged">, "event">> = {
  at: whole(({ event }) => event.at),
  kind: text(({ event }) => event.kind),
  node_id: text(({ event }) => event.nodeId),
  task_id: text(({ event }) => event.taskId),
  data: text(({ event }) => JSON.stringify(event.data)),
  verified: flag(({ event }) => event.verified === true),
  kept_bytes: whole(({ event }) => event.keptBytes ?? 0),
  kept_by: text(({ event }) => event.keptBy ?? null),
};

const ofNode = ({ nodeId }: OfNode): ConflictKey => keyOf.node(nodeId);
const ofDependent = ({ taskId }: { readonly taskId: string }): ConflictKey => keyOf.dependencies(taskId);
const addDependencies = (taskId: string, dependsOn: string, from: string): string =>
  `INSERT INTO dependencies (task_id, depends_on) SELECT ${taskId}, ${dependsOn} FROM ${from}`;
/** One statement for all that a task waits for, a JSON array. Differs because each engine reads JSON in its own way. */
const ADD_DEPENDENCIES: Statement<Of<"dependencies.added">> = {
  ...customStatement("dependencies", addDependencies("$1", "value", "json_each($2)"), [
    text(({ taskId }) => taskId),
    text(({ dependsOn }) => JSON.stringify(dependsOn)),
  ]),
  bulk: (rows) => addDependencies("p.a1", "json_array_elements_text(p.a2::json)", rows),
};
const ofOutput = ({ taskId }: { readonly taskId: string }): ConflictKey => keyOf.outputs(taskId);

const SUM: Columns<SumKey & Spending> = {
  scope: text(({ scope }) => scope),
  value: text(({ value }) => value),
  day: whole(({ day }) => day),
  reports: whole(({ reports }) => reports),
  unpriced: whole(({ unpriced }) => unpriced),
  input_tokens: whole(({ inputTokens }) => inputTokens),
  output_tokens: whole(({ outputTokens }) => outputTokens),
  cached_tokens: whole(({ cachedTokens }) => cachedTokens),
  cost_micro: whole(({ costMicro }) => costMicro),
};
/** Adds these columns to those of the row that there is. */
const addingTo = (table: string, key: string, columns: readonly string[]): string =>
  ` ON CONFLICT (${key}) DO UPDATE SET ${columns.map((column) => `${column} = ${table}.${column} + excluded.${column}`).join(", ")}`;

const REPORT_FIELDS = {
  seq: "seq",
  model: "model",
  input_tokens: "inputTokens",
  output_tokens: "outputTokens",
  cached_tokens: "cachedTokens",
  cost_micro: "costMicro",
} as const satisfies Readonly<Record<string, keyof UsageReport>>;
/** `place` makes the four values of all reports, `field` one of each report. */
const addReports = (place: string, field: (name: keyof UsageReport) => string, from: string): string => `
  INSERT INTO usage_reports (task_id, epoch, node_id, at, ${Object.keys(REPORT_FIELDS).join(", ")})
  SELECT ${[1, 2, 3, 4].map((n) => `${place}${n}`).join(", ")}, ${Object.values(REPORT_FIELDS).map(field).join(", ")}
  FROM ${from}`;
/** One statement for all reports of a request, a JSON array. Differs because each engine reads JSON in its own way. */
const ADD_REPORTS: Statement<Of<"usage.reported">> = {
  ...customStatement(
    "usage_reports",
    addReports("$", (name) => `value ->> '${name}'`, "json_each($5)"),
    [
      text(({ taskId }) => taskId),
      whole(({ epoch }) => epoch),
      text(({ nodeId }) => nodeId),
      whole(({ at }) => at),
      text(({ reports }) => JSON.stringify(reports)),
    ],
  ),
  bulk: (rows) => {
    const field = (name: keyof UsageReport): string =>
      name === "model" ? `r.value ->> '${name}'` : `CAST(r.value ->> '${name}' AS BIGINT)`;
    return addReports("p.a", field, `${rows}, json_array_elements(p.a5::json) AS r (value)`);
  },
};

type OfGroup = Of<"group.tallied">;
const GROUP: Columns<OfGroup> = { task_group: text(({ group }) => group) };
const groupCounts = (as?: typeof added): Columns<OfGroup> => ({
  open: whole(({ open }) => open, as),
  assigned: whole(({ assigned }) => assigned, as),
  completed: whole(({ completed }) => completed, as),
  failed: whole(({ failed }) => failed, as),
  cancelled: whole(({ cancelled }) => cancelled, as),
  in_review: whole(({ inReview }) => inReview, as),
  lux: whole(({ lux }) => lux, as),
  lux_micro: whole(({ luxMicro }) => luxMicro, as),
  paid: whole(({ paid }) => paid, as),
  paid_micro: whole(({ paidMicro }) => paidMicro, as),
});
const later = (value: string, column: string): string =>
  `CASE WHEN ${value} > ${column} THEN ${value} ELSE ${column} END`;
/** Of a step that adds a task, which may be the first. */
const ADD_TO_GROUP: Statement<OfGroup> = insert(
  "group_totals",
  {
    ...GROUP,
    ...groupCounts(),
    first_created_at: whole(({ firstCreatedAt }) => firstCreatedAt),
    last_created_at: whole(({ lastCreatedAt }) => lastCreatedAt),
    last_updated_at: whole(({ lastUpdatedAt }) => lastUpdatedAt),
  },
  `${addingTo("group_totals", "task_group", Object.keys(groupCounts()))}, last_created_at = excluded.last_created_at,
    last_updated_at = ${later("excluded.last_updated_at", "group_totals.last_updated_at")}`,
);
const EMPTY_GROUP: Columns<OfGroup> = {
  ...GROUP,
  ...{ open: "0", assigned: "0", completed: "0", failed: "0", cancelled: "0" },
};

const LEASE_ID: Columns<Pick<Of<"lease.saved">, "lease">> = {
  node_id: text(({ lease }) => lease.nodeId),
  name: text(({ lease }) => lease.name),
  task_id: text(({ lease }) => lease.taskId ?? ""),
};
const TOKEN_HASH: Columns<Pick<Of<"invitation.saved">, "invitation">> = {
  token_hash: text(({ invitation }) => invitation.tokenHash),
};
const ofInvitation = ({ invitation }: Pick<Of<"invitation.saved">, "invitation">): ConflictKey =>
  keyOf.invitation(invitation.tokenHash);
/** Changes of leases of one node on one name are written in order. */
const ofLease = ({ lease }: Pick<Of<"lease.saved">, "lease">): ConflictKey =>
  keyOf.leases(lease.nodeId, lease.name);

const ofTask = ({ task }: OfTask): ConflictKey => keyOf.task(task.taskId);

const queueBroadcast = (messageId: string, toNodes: string, from: string): string => `
  INSERT INTO deliveries (seq, to_node, state, deliveries, broadcast)
  SELECT ${seqOf(messageId)}, ${toNodes}, 'waiting', 0, 1 FROM ${from}`;
/** One statement for all recipients, who are a JSON array. Differs because each engine reads JSON in its own way. */
const QUEUE_BROADCAST: Statement<Of<"deliveries.queued">> = {
  ...customStatement("deliveries", queueBroadcast("$1", "value", "json_each($2)"), [
    text(({ messageId }) => messageId),
    text(({ toNodes }) => JSON.stringify(toNodes)),
  ]),
  bulk: (rows) => queueBroadcast("p.a1", "json_array_elements_text(p.a2::json)", rows),
};

/** A delivery is in its recipient's mailbox, and comes after its message. */
const OF_DELIVERY: Pick<Write<OfDelivery>, "row" | "keys" | "after"> = {
  row: ({ toNode, messageId }) => keyOf.delivery(toNode, messageId),
  keys: ({ toNode }) => [keyOf.mailbox(toNode)],
  after: ({ messageId }) => keyOf.message(messageId),
};

/** Adds a node to those that may not have the other copies, once. */
const EXCLUDE_FROM_COPIES: Statement<Of<"copies.excluded">> = customStatement(
  "task_features",
  `UPDATE task_features SET not_nodes = coalesce(not_nodes, ',') || $3 || ','
    WHERE parent_task = $1 AND task_seq <> ${seqOfTask("$2")}
      AND replace(coalesce(not_nodes, ''), ',' || $3 || ',', '') = coalesce(not_nodes, '')`,
  [text(({ of }) => of), text(({ taskId }) => taskId), text(({ nodeId }) => nodeId)],
);

const WRITES: { readonly [K in Change["kind"]]: Write<Of<K>> } = {
  "node.saved": {
    row: ({ node }) => ofNode(node),
    keys: ({ node }) => [keyOf.registration(node.nodeId)],
    statement: upsert(
      "nodes",
      { node_id: text(({ node }) => node.nodeId) },
      {
        name: text(({ node }) => node.name),
        host: text(({ node }) => node.host),
        port: whole(({ node }) => node.port),
        capabilities: text(({ node }) => encodeCapabilities(node.capabilities)),
        resources: text(({ node }) => encodeResources(node.resources)),
        variant: text(({ node }) => node.variant),
        max_tasks: whole(({ node }) => node.maxTasks),
        auto_assign: flag(({ node }) => node.autoAssign),
        registered_at: whole(({ node }) => node.registeredAt),
        online: "1",
        deleted: "0",
      },
      {
        idle_since: whole(({ node }) => node.idleSince),
        tasks_assigned: "0",
        tasks_completed: "0",
        lux_earned_micro: "0",
      },
    ),
  },
  "node.beaten": {
    row: ofNode,
    statement: upsert("beats", NODE_SEQ, {
      last_heartbeat_at: whole(({ lastHeartbeatAt }) => lastHeartbeatAt),
      lease_until: whole(({ leaseUntil }) => leaseUntil),
    }),
    sum: (_, later) => later,
  },
  "node.returned": { row: ofNode, statement: update("nodes", NODE_ID, { online: "1" }) },
  "node.offline": { row: ofNode, statement: update("nodes", NODE_ID, { online: "0" }) },
  "node.drained": {
    row: ofNode,
    statement: update("nodes", NODE_ID, { draining: flag(({ draining }) => draining) }),
  },
  "node.leased": {
    row: ofNode,
    statement: update("nodes", NODE_ID, { has_leases: flag(({ hasLeases }) => hasLeases) }),
  },
  "node.deleted": {
    row: ofNode,
    keys: ({ nodeId }) => [keyOf.registration(nodeId), keyOf.registrations],
    statement: update("nodes", NODE_ID, { online: "0", draining: "0", deleted: "1" }),
  },
  "node.tallied": {
    row: ofNode,
    statement: update("nodes", NODE_ID, {
      tasks_assigned: whole(({ assigned }) => assigned, added),
      tasks_completed: whole(({ completed }) => completed, added),
      lux_earned_micro: whole(({ luxEarnedMicro }) => luxEarnedMicro, added),
      entries: whole(({ entries }) => entries, added),
      balance_micro: whole(({ balanceMicro }) => balanceMicro, added),
      idle_since: whole(({ idleSince }) => idleSince),
    }),
    sum: (earlier, later) => {
      const sum = {
        ...later,
        assigned: earlier.assigned + later.assigned,
        completed: earlier.completed + later.completed,
        luxEarnedMicro: earlier.luxEarnedMicro + later.luxEarnedMicro,
        entries: earlier.entries + later.entries,
        balanceMicro: earlier.balanceMicro + later.balanceMicro,
      };
      return Number.isSafeInteger(sum.balanceMicro) ? sum : null;
    },
  },
  "task.created": {
    row: ofTask,
    statement: insert("tasks", {
      ...TASK_ID,
      title: text(({ task }) => task.title),
      task_type: text(({ task }) => task.taskType),
      priority: whole(({ task }) => task.priority),
      creator_node: text(({ task }) => task.creatorNode),
      creator_verified: flag(({ task }) => task.creatorVerified),
      lux_reward_micro: whole(({ task }) => task.luxRewardMicro),
      balanced: flag(({ task }) => task.balanced),
      created_at: whole(({ task }) => task.createdAt),
      timeout_ms: whole(({ task }) => task.timeoutMs),
      max_run_ms: whole(({ task }) => task.maxRunMs),
      limit_key: text(({ task }) => task.limitKey),
      lane: text(({ task }) => encodeLane(task)),
      ...TASK_STATE,
    }),
    beside: [
      {
        statement: insert("task_specs", {
          ...NEW_TASK_SEQ,
          max_attempts: whole(({ task }) => task.maxAttempts),
          backoff_ms: whole(({ task }) => task.backoffMs),
          description: text(({ task }) => task.description),
          depends_on: text(({ task }) => encodeDependsOn(task.dependsOn)),
        }),
      },
      {
        when: ({ task }) => task.hasFeatures,
        statement: insert("task_features", {
          ...NEW_TASK_SEQ,
          creator_key: text(({ task }) => task.creatorKey),
          task_group: text(({ task }) => task.group),
          tags: text(({ task }) => encodeTags(task.tags)),
          requires: text(({ task }) => task.requires && JSON.stringify(task.requires)),
          schedule: text(({ task }) => task.schedule?.name ?? null),
          schedule_at: whole(({ task }) => task.schedule?.at ?? null),
          retain_ms: whole(({ task }) => task.retainMs),
          unique_key: text(({ task }) => task.uniqueKey),
          unique_until: whole(({ task }) => task.uniqueUntil),
          on_dependency: text(({ task }) => (task.onDependency === "fail" ? null : task.onDependency)),
          ...FEATURE_STATE,
        }),
      },
    ],
  },
  "schedule.saved": {
    row: ({ schedule }) => keyOf.schedule(schedule.name),
    statement: upsert(
      "schedules",
      { name: text(({ schedule }) => schedule.name) },
      {
        timing: text(({ schedule }) => JSON.stringify(schedule.timing)),
        task: text(({ schedule }) => JSON.stringify(schedule.task)),
        creator_node: text(({ schedule }) => schedule.task.creatorNode),
        overlap: text(({ schedule }) => schedule.overlap),
        catch_up: text(({ schedule }) => schedule.catchUp),
        jitter_ms: whole(({ schedule }) => schedule.jitterMs),
        until: whole(({ schedule }) => schedule.until),
        paused: flag(({ schedule }) => schedule.paused),
        next_at: whole(({ schedule }) => schedule.nextAt),
        last_task_id: text(({ schedule }) => schedule.lastTaskId),
        last_at: whole(({ schedule }) => schedule.lastAt),
        skip_logged_at: whole(({ schedule }) => schedule.skipLoggedAt),
        ...keptColumns<Of<"schedule.saved">>(({ schedule }) => schedule),
        updated_at: whole(({ schedule }) => schedule.updatedAt),
      },
      { created_at: whole(({ schedule }) => schedule.createdAt) },
    ),
  },
  "schedule.deleted": {
    row: ({ name }) => keyOf.schedule(name),
    statement: remove("schedules", { name: text(({ name }) => name) }),
  },
  "webhook.saved": {
    row: ({ webhook }) => keyOf.webhook(webhook.name),
    statement: upsert(
      "webhooks",
      { name: text(({ webhook }) => webhook.name) },
      {
        webhook_id: text(({ webhook }) => webhook.webhookId),
        revision: whole(({ webhook }) => webhook.revision),
        url: text(({ webhook }) => webhook.url),
        format: text(({ webhook }) => webhook.format),
        filter: text(({ webhook }) => JSON.stringify(webhook.filter)),
        push: text(({ webhook }) => webhook.push && JSON.stringify(webhook.push)),
        push_task_id: text(({ webhook }) => (webhook.push ? webhook.filter.taskId : null)),
        secret: text(({ webhook }) => webhook.secret),
        ...progressColumns<Of<"webhook.saved">>(({ webhook }) => webhook),
        ...keptColumns<Of<"webhook.saved">>(({ webhook }) => webhook),
        updated_at: whole(({ webhook }) => webhook.updatedAt),
      },
      { created_at: whole(({ webhook }) => webhook.createdAt) },
    ),
  },
  "webhook.moved": {
    row: ({ name }) => keyOf.webhook(name),
    statement: update(
      "webhooks",
      { name: text(({ name }) => name) },
      progressColumns<Of<"webhook.moved">>(({ progress }) => progress),
    ),
  },
  "webhook.deleted": {
    row: ({ name }) => keyOf.webhook(name),
    statement: remove("webhooks", { name: text(({ name }) => name) }),
  },
  "task.sent": {
    row: ({ taskId }) => keyOf.task(taskId),
    statement: setFeature({
      a2a_caller: text(({ origin }) => origin.caller),
      a2a_ids: text(({ origin }) => encodeOriginIds(origin)),
    }),
  },
  "task.moved": {
    row: ofTask,
    keys: ({ task }) => (task.assignedNode === null ? [] : [keyOf.held(task.assignedNode)]),
    statement: update("tasks", TASK_ID, {
      ...TASK_STATE,
      result_verified: flag(({ task }) => task.resultVerified),
      paid_seq: whole(({ task }) => task.paidSeq),
    }),
    beside: [
      {
        when: ({ task }) => task.result !== null,
        statement: insert(
          "task_results",
          {
            ...TASK_SEQ,
            problem: text(({ task }) => must(task.result, HAS_RESULT).problem),
            improvement: text(({ task }) => must(task.result, HAS_RESULT).improvement),
            lesson: text(({ task }) => must(task.result, HAS_RESULT).lesson),
            result_extra: text(({ task }) => must(task.result, HAS_RESULT).extra),
          },
          " ON CONFLICT (task_seq) DO NOTHING",
        ),
      },
      ...writeFeatures(FEATURE_STATE),
    ],
  },
  "task.charged": {
    row: ({ taskId, nodeId }) => keyOf.charge(taskId, nodeId),
    statement: insert(
      "task_charges",
      {
        task_id: text(({ taskId }) => taskId),
        node_id: text(({ nodeId }) => nodeId),
        bytes: whole(({ bytes }) => bytes),
      },
      ` ON CONFLICT (task_id, node_id) DO UPDATE SET bytes = task_charges.bytes + excluded.bytes`,
    ),
    sum: (earlier, later) => ({ ...later, bytes: earlier.bytes + later.bytes }),
  },
  "charges.refunded": { isSweep: true, statement: REFUND_CHARGES },
  "charges.removed": { isSweep: true, frees: true, statement: REMOVE_CHARGES },
  "task.edited": {
    row: ofTask,
    statement: update("tasks", TASK_ID, {
      title: text(({ task }) => task.title),
      priority: whole(({ task }) => task.priority),
      lux_reward_micro: whole(({ task }) => task.luxRewardMicro),
      limit_key: text(({ task }) => task.limitKey),
      lane: text(({ task }) => encodeLane(task)),
    }),
    beside: [
      {
        statement: update("task_specs", TASK_SEQ, { description: text(({ task }) => task.description) }),
      },
      ...writeFeatures({ ...FEATURE_STATE, tags: text(({ task }) => encodeTags(task.tags)) }),
    ],
  },
  "task.reviewed": {
    row: ({ taskId }) => keyOf.task(taskId),
    keys: () => [keyOf.dependents],
    statement: update("task_features", TASK_ID_SEQ, {
      review: text(({ review }) => JSON.stringify(review)),
      review_until: whole(({ review: { check } }) => (check?.state === "pending" ? check.until : null)),
    }),
  },
  "result.removed": {
    row: ({ taskId }) => keyOf.task(taskId),
    statement: remove("task_results", TASK_ID_SEQ),
  },
  "task.related": {
    row: ({ taskId }) => keyOf.task(taskId),
    statement: update("task_features", TASK_ID_SEQ, {
      parent_task: text(({ child }) => child.of),
      child: text(({ child }) => JSON.stringify(child)),
      not_nodes: text(({ notNodes }) => encodeTags(notNodes)),
    }),
  },
  "task.quorate": {
    row: ({ taskId }) => keyOf.task(taskId),
    statement: update("task_features", TASK_ID_SEQ, { quorum: text(({ quorum }) => JSON.stringify(quorum)) }),
  },
  "copies.excluded": { isSweep: true, statement: EXCLUDE_FROM_COPIES },
  "family.touched": {
    row: ({ taskId }) => keyOf.family(taskId),
    statement: insert(
      "family_checks",
      { task_id: text(({ taskId }) => taskId) },
      ` ON CONFLICT (task_id) DO NOTHING`,
    ),
    sum: (_, later) => later,
  },
  "family.checked": {
    isSweep: true, // so that it stays before or behind what is summed
    frees: true,
    statement: remove("family_checks", { task_id: text(({ taskId }) => taskId) }),
  },
  "task.deleted": {
    frees: true,
    row: ({ taskId }) => keyOf.task(taskId),
    statement: remove("tasks", { task_id: text(({ taskId }) => taskId) }),
    beside: (["task_specs", "task_results", "task_features"] as const).map((table) => ({
      isFirst: true,
      statement: remove(table, TASK_ID_SEQ),
    })),
  },
  "checkpoint.saved": {
    row: ({ taskId }) => keyOf.checkpoint(taskId),
    statement: upsert(
      "checkpoints",
      { task_id: text(({ taskId }) => taskId) },
      {
        data: text(({ checkpoint }) => checkpoint.data),
        epoch: whole(({ checkpoint }) => checkpoint.epoch),
        node_id: text(({ checkpoint }) => checkpoint.nodeId),
        at: whole(({ checkpoint }) => checkpoint.at),
      },
    ),
  },
  "checkpoint.removed": {
    row: ({ taskId }) => keyOf.checkpoint(taskId),
    statement: remove("checkpoints", { task_id: text(({ taskId }) => taskId) }),
  },
  "output.begun": {
    row: ofOutput,
    statement: insert("outputs", {
      task_id: text(({ taskId }) => taskId),
      epoch: whole(({ attempt }) => attempt.epoch),
      node_id: text(({ attempt }) => attempt.nodeId),
      bytes: whole(({ attempt }) => attempt.bytes),
      kept_bytes: whole(({ attempt }) => attempt.keptBytes),
      begun_at: whole(({ attempt }) => attempt.begunAt),
      at: whole(({ attempt }) => attempt.at),
    }),
  },
  "output.grown": {
    row: ofOutput,
    statement: update(
      "outputs",
      { task_id: text(({ taskId }) => taskId), epoch: whole(({ epoch }) => epoch) },
      {
        bytes: whole(({ bytes }) => bytes),
        kept_bytes: whole(({ keptBytes }) => keptBytes),
        at: whole(({ at }) => at),
      },
    ),
  },
  "output.appended": {
    row: ofOutput,
    statement: insert(
      "output_blocks",
      {
        task_id: text(({ taskId }) => taskId),
        epoch: whole(({ epoch }) => epoch),
        n: whole(({ n }) => n),
        start: whole(({ start }) => start),
        data: text(({ data }) => data),
      },
      ` ON CONFLICT (task_id, epoch, n) DO UPDATE SET data = output_blocks.data || excluded.data`,
    ),
  },
  "output.cut": { row: ofOutput, frees: true, statement: CUT_OUTPUT },
  "output.refunded": { isSweep: true, statement: REFUND_OUTPUT },
  "output.removed": { row: ofOutput, frees: true, statement: REMOVE_OUTPUT },
  "output.erased": { row: ofOutput, frees: true, statement: ERASE_OUTPUT },
  "question.asked": {
    row: ({ question }) => keyOf.questions(question.taskId),
    statement: insert("questions", {
      question_id: text(({ question }) => question.questionId),
      task_id: text(({ question }) => question.taskId),
      question: text(({ question }) => question.question),
      choices: text(({ question }) => encodeChoices(question.choices)),
      schema: text(({ question }) => question.schema),
      asked_by: text(({ question }) => question.askedBy),
      epoch: whole(({ question }) => question.epoch),
      asked_at: whole(({ question }) => question.askedAt),
      until: whole(({ question }) => question.until),
      state: text(({ question }) => question.state),
    }),
  },
  "question.settled": {
    row: ({ question }) => keyOf.questions(question.taskId),
    statement: update(
      "questions",
      { question_id: text(({ question }) => question.questionId) },
      {
        state: text(({ question }) => question.state),
        answer: text(({ question }) => question.answer),
        answered_by: text(({ question }) => question.answeredBy),
        answered_at: whole(({ question }) => question.answeredAt),
        verified: flag(({ question }) => question.verified),
      },
    ),
  },
  "questions.closed": {
    row: ({ taskId }) => keyOf.questions(taskId),
    statement: update(
      "questions",
      { task_id: text(({ taskId }) => taskId), state: "'open'" },
      { state: "'timed_out'", answered_at: whole(({ at }) => at) },
    ),
  },
  "questions.removed": {
    frees: true,
    row: ({ taskId }) => keyOf.questions(taskId),
    statement: remove("questions", { task_id: text(({ taskId }) => taskId) }),
  },
  "usage.reported": { row: ({ taskId }) => keyOf.reports(taskId), statement: ADD_REPORTS },
  "usage.removed": {
    row: ({ taskId }) => keyOf.reports(taskId),
    statement: remove("usage_reports", { task_id: text(({ taskId }) => taskId) }),
  },
  "spending.summed": {
    row: ({ scope, value, day }) => keyOf.spending(scope, value, day),
    statement: insert("usage_sums", SUM, addingTo("usage_sums", "scope, value, day", SUM_COLUMNS)),
    sum: (earlier, later) => ({ ...later, ...plus(earlier, later) }),
  },
  "node.summed": {
    row: ({ nodeId, scope, value, day }) => keyOf.nodeSum(nodeId, scope, value, day),
    keys: ({ nodeId, day }) => [keyOf.nodeSums(nodeId, day)],
    statement: insert(
      "node_sums",
      {
        ...SUM,
        node_id: text(({ nodeId }) => nodeId),
        kept_bytes: whole(({ keptBytes }) => keptBytes),
      },
      addingTo("node_sums", "day, node_id, scope, value", [...SUM_COLUMNS, "kept_bytes"]),
    ),
    sum: (earlier, later) => ({
      ...later,
      ...plus(earlier, later),
      keptBytes: earlier.keptBytes + later.keptBytes,
    }),
  },
  "node.sums.removed": {
    frees: true,
    isSweep: true,
    keys: ({ nodeId, day }) => [keyOf.nodeSums(nodeId, day)],
    statement: customStatement("node_sums", `DELETE FROM node_sums WHERE node_id = $1 AND day = $2`, [
      text(({ nodeId }) => nodeId),
      whole(({ day }) => day),
    ]),
  },
  "sums.refunded": { isSweep: true, statement: REFUND_SUMS },
  "node.sums.pruned": { isSweep: true, frees: true, statement: PRUNE_NODE_SUMS },
  "sums.pruned": { isSweep: true, frees: true, statement: PRUNE_SUMS },
  "pause.saved": {
    row: ({ pause }) => keyOf.pause(pause),
    statement: upsert(
      "pauses",
      { scope: text(({ pause }) => pause.scope), value: text(({ pause }) => pause.value) },
      { reason: text(({ pause }) => pause.reason), at: whole(({ pause }) => pause.at) },
    ),
  },
  "pause.deleted": {
    frees: true,
    row: ({ key }) => keyOf.pause(key),
    statement: remove("pauses", { scope: text(({ key }) => key.scope), value: text(({ key }) => key.value) }),
  },
  "limit.saved": {
    row: ({ limit }) => keyOf.limit(limit.key),
    statement: upsert(
      "limits",
      { limit_key: text(({ limit }) => limit.key) },
      {
        running: whole(({ limit }) => limit.running),
        per_minute: whole(({ limit }) => limit.perMinute),
        held_at: whole(({ limit }) => limit.hold?.at ?? null),
        held_until: whole(({ limit }) => limit.hold?.until ?? null),
        held_by: text(({ limit }) => limit.hold?.by ?? null),
      },
    ),
  },
  "limit.deleted": {
    frees: true,
    row: ({ key }) => keyOf.limit(key),
    statement: remove("limits", { limit_key: text(({ key }) => key) }),
  },
  "limit.used": {
    row: ({ key, second }) => keyOf.limitUses(key, second),
    statement: insert(
      "limit_uses",
      { limit_key: text(({ key }) => key), second: whole(({ second }) => second), uses: "1" },
      ` ON CONFLICT (limit_key, second) DO UPDATE SET uses = limit_uses.uses + 1`,
    ),
  },
  "limit.uses.removed": {
    frees: true,
    isSweep: true,
    statement: customStatement("limit_uses", `DELETE FROM limit_uses WHERE limit_key = $1 AND second < $2`, [
      text(({ key }) => key),
      whole(({ before }) => before),
    ]),
  },
  "tasks.counted": {
    isSweep: true,
    statement: customStatement(
      "tasks",
      `UPDATE tasks SET counts_for = $1 WHERE status = 'assigned' AND coalesce(limit_key, task_type) = $1`,
      [text(({ key }) => key)],
    ),
  },
  "budget.saved": {
    row: ({ budget }) => keyOf.budget(budget),
    statement: upsert(
      "budgets",
      {
        scope: text(({ budget }) => budget.scope),
        value: text(({ budget }) => budget.value),
        per: text(({ budget }) => budget.per),
      },
      {
        cost_micro: whole(({ budget }) => budget.costMicro),
        tokens: whole(({ budget }) => budget.tokens),
        on_limit: text(({ budget }) => budget.onLimit),
        warned_in: whole(({ budget }) => budget.warnedIn),
        exceeded_in: whole(({ budget }) => budget.exceededIn),
      },
    ),
  },
  "budget.deleted": {
    row: ({ key }) => keyOf.budget(key),
    statement: remove("budgets", {
      scope: text(({ key }) => key.scope),
      value: text(({ key }) => key.value),
      per: text(({ key }) => key.per),
    }),
  },
  "task.depended": {
    row: ({ taskId }) => keyOf.task(taskId),
    keys: () => [keyOf.dependents],
    statement: update("tasks", { task_id: text(({ taskId }) => taskId) }, { has_dependents: "1" }),
  },
  "task.leased": {
    row: ({ taskId }) => keyOf.task(taskId),
    statement: setFeature({ has_leases: flag(({ hasLeases }) => hasLeases) }),
  },
  "task.broken": {
    row: ({ taskId }) => keyOf.task(taskId),
    statement: setFeature({ broken_by: text(({ brokenBy }) => brokenBy) }),
  },
  "dependencies.added": { row: ofDependent, statement: ADD_DEPENDENCIES },
  "dependency.met": {
    row: ofDependent,
    statement: remove("dependencies", {
      task_id: text(({ taskId }) => taskId),
      depends_on: text(({ dependsOn }) => dependsOn),
    }),
  },
  "dependencies.dropped": {
    row: ofDependent,
    statement: remove("dependencies", { task_id: text(({ taskId }) => taskId) }),
  },
  "dependency.settled": {
    row: ({ taskId }) => keyOf.settlement(taskId),
    statement: upsert(
      "settlements",
      { task_id: text(({ taskId }) => taskId) },
      { outcome: text(({ outcome }) => outcome) },
    ),
  },
  "settlement.removed": {
    row: ({ taskId }) => keyOf.settlement(taskId),
    statement: remove("settlements", { task_id: text(({ taskId }) => taskId) }),
  },
  // Once for all tasks of a group that a group commit ends.
  "group.touched": {
    row: ({ group }) => keyOf.groupEnding(group),
    statement: insert(
      "group_endings",
      { task_group: text(({ group }) => group) },
      ` ON CONFLICT (task_group) DO NOTHING`,
    ),
    sum: (_, later) => later,
  },
  "group.checked": {
    isSweep: true, // so that it stays before or behind what is summed
    frees: true,
    statement: remove("group_endings", { task_group: text(({ group }) => group) }),
  },
  "group.tallied": {
    row: ({ group }) => keyOf.group(group),
    statement: update("group_totals", GROUP, {
      ...groupCounts(added),
      last_updated_at: whole(({ lastUpdatedAt }) => lastUpdatedAt, later),
    }),
    instead: ({ adds }) => (adds ? ADD_TO_GROUP : null),
    beside: [{ when: ({ removes }) => removes, statement: remove("group_totals", EMPTY_GROUP) }],
    sum: (earlier, later) => ({
      ...later,
      ...addTotals(earlier, later),
      adds: earlier.adds || later.adds,
      removes: earlier.removes || later.removes,
    }),
  },
  "tasks.tallied": {
    statement: update(
      "task_totals",
      { one: "1" },
      {
        open: whole(({ open }) => open, added),
        assigned: whole(({ assigned }) => assigned, added),
        completed: whole(({ completed }) => completed, added),
        failed: whole(({ failed }) => failed, added),
      },
    ),
    sum: (earlier, later) => ({
      ...later,
      open: earlier.open + later.open,
      assigned: earlier.assigned + later.assigned,
      completed: earlier.completed + later.completed,
      failed: earlier.failed + later.failed,
    }),
  },
  "lux.entered": {
    keys: ({ entry: { nodeId } }) =>
      nodeId === null ? [keyOf.ledgerHead] : [keyOf.ledgerHead, keyOf.ledger(nodeId)],
    statement: insert("ledger", {
      seq: whole(({ entry }) => entry.seq),
      entry_id: text(({ entry }) => entry.id),
      from_account: text(({ entry: { from } }) => (from === TREASURY ? null : from)),
      to_account: text(({ entry: { to, nodeId } }) => (nodeId === null ? to : null)),
      node_id: text(({ entry }) => entry.nodeId),
      n: whole(({ entry }) => entry.n),
      amount_micro: whole(({ entry }) => entry.amountMicro),
      balance_micro: whole(({ entry }) => entry.balanceMicro),
      kind: text(({ entry }) => entry.kind),
      task_id: text(({ entry }) => entry.taskId),
      at: whole(({ entry }) => entry.at),
      hash: text(({ entry }) => entry.hash),
    }),
  },
  "lux.minted": {
    row: ({ keyId, day }) => keyOf.mint(keyId, day),
    statement: insert(
      "mints",
      {
        key_id: text(({ keyId }) => keyId),
        day: whole(({ day }) => day),
        micro: whole(({ micro }) => micro),
      },
      " ON CONFLICT (key_id, day) DO UPDATE SET micro = mints.micro + excluded.micro",
    ),
    sum: (earlier, later) => ({ ...earlier, micro: earlier.micro + later.micro }),
  },
  "message.stored": {
    row: ({ message }) => keyOf.message(message.messageId),
    statement: insert("messages", {
      message_id: text(({ message }) => message.messageId),
      from_node: text(({ message }) => message.fromNode),
      to_node: text(({ message }) => message.toNode),
      type: text(({ message }) => message.type),
      content: text(({ message }) => message.content),
      require_ack: flag(({ message }) => message.requireAck),
      reply_to: text(({ message }) => message.replyTo),
      thread: text(({ message }) => message.thread),
      verified: flag(({ message }) => message.verified),
      sent_at: whole(({ message }) => message.sentAt),
      kept_bytes: whole(({ keptBytes }) => keptBytes ?? 0),
    }),
  },
  "message.charged": {
    row: ({ messageId }) => keyOf.message(messageId),
    statement: update(
      "messages",
      { message_id: text(({ messageId }) => messageId) },
      { kept_bytes: whole(({ keptBytes }) => keptBytes) },
    ),
  },
  "delivery.queued": {
    ...OF_DELIVERY,
    statement: insert("deliveries", {
      ...MESSAGE_SEQ,
      to_node: text(({ toNode }) => toNode),
      state: "'waiting'",
      deliveries: "0",
      broadcast: "0",
    }),
  },
  "deliveries.queued": { isSweep: true, statement: QUEUE_BROADCAST },
  "delivery.moved": {
    ...OF_DELIVERY,
    statement: update("deliveries", DELIVERY_ID, {
      state: text(({ state }) => state),
      deliveries: whole(({ deliveries }) => deliveries),
      lease_until: whole(({ leaseUntil }) => leaseUntil),
    }),
  },
  "message.removed": {
    row: ({ messageId }) => keyOf.message(messageId),
    statement: remove("messages", { message_id: text(({ messageId }) => messageId) }),
  },
  "broadcast.saved": {
    row: ({ messageId }) => keyOf.broadcastOf(messageId),
    keys: () => ["publications"],
    after: ({ messageId }) => keyOf.message(messageId),
    statement: upsert(
      "broadcasts",
      MESSAGE_SEQ,
      { write_until: whole(({ writeUntil }) => writeUntil), waiting: whole(({ waiting }) => waiting) },
      { delivered: "0", acked: "0" },
    ),
  },
  // A broadcast is invisible, so its counts cannot change, before the batch that publishes it is sent.
  "broadcast.tallied": {
    row: ({ seq }) => keyOf.broadcast(seq),
    statement: update(
      "broadcasts",
      { seq: whole(({ seq }) => seq) },
      {
        waiting: whole(({ waiting }) => waiting, added),
        delivered: whole(({ delivered }) => delivered, added),
        acked: whole(({ acked }) => acked, added),
      },
    ),
    sum: (earlier, later) => ({
      ...later,
      waiting: earlier.waiting + later.waiting,
      delivered: earlier.delivered + later.delivered,
      acked: earlier.acked + later.acked,
    }),
  },
  "broadcast.trimmed": {
    isSweep: true,
    frees: true,
    statement: customStatement(
      "deliveries",
      `DELETE FROM deliveries WHERE (seq, to_node) IN (
        SELECT seq, to_node FROM deliveries WHERE seq = $1 ORDER BY to_node LIMIT $2)`,
      [whole(({ seq }) => seq), whole(({ limit }) => limit)],
    ),
  },
  "broadcast.removed": {
    row: ({ seq }) => keyOf.broadcast(seq),
    keys: () => ["publications"],
    statement: remove("broadcasts", { seq: whole(({ seq }) => seq) }),
  },
  "file.saved": {
    row: ({ file }) => keyOf.file(file.fileId),
    keys: ({ file }) => (file.taskId === null ? [] : [keyOf.filesOfTask(file.taskId)]),
    statement: insert("files", {
      file_id: text(({ file }) => file.fileId),
      name: text(({ file }) => file.name),
      size_bytes: whole(({ file }) => file.sizeBytes),
      sha256: text(({ file }) => file.sha256),
      content_type: text(({ file }) => file.contentType),
      metadata: text(({ file }) => file.metadata),
      node_id: text(({ file }) => file.nodeId),
      task_id: text(({ file }) => file.taskId),
      output: flag(({ file }) => file.attached === "output"),
      uploaded_at: whole(({ file }) => file.uploadedAt),
      kept_bytes: whole(({ file }) => file.keptBytes),
    }),
  },
  "file.attached": {
    row: ({ fileId }) => keyOf.file(fileId),
    keys: ({ taskId }) => [keyOf.filesOfTask(taskId)],
    statement: update(
      "files",
      { file_id: text(({ fileId }) => fileId) },
      { task_id: text(({ taskId }) => taskId), output: "0" },
    ),
  },
  "file.deleted": {
    frees: true,
    row: ({ fileId }) => keyOf.file(fileId),
    keys: () => [EVERYTHING], // the change does not name the task of the file
    statement: remove("files", { file_id: text(({ fileId }) => fileId) }),
  },
  "files.tallied": {
    statement: update(
      "file_totals",
      { one: "1" },
      { files: whole(({ files }) => files, added), bytes: whole(({ bytes }) => bytes, added) },
    ),
    sum: (earlier, later) => ({
      ...later,
      files: earlier.files + later.files,
      bytes: earlier.bytes + later.bytes,
    }),
  },
  "usage.tallied": {
    row: ({ nodeId }) => keyOf.usage(nodeId),
    statement: insert(
      "quota_usage",
      {
        node_id: text(({ nodeId }) => nodeId),
        tasks: whole(({ tasks }) => tasks),
        bytes: whole(({ bytes }) => bytes),
      },
      ` ON CONFLICT (node_id) DO UPDATE SET
        tasks = quota_usage.tasks + excluded.tasks, bytes = quota_usage.bytes + excluded.bytes`,
    ),
    sum: (earlier, later) => ({
      ...later,
      tasks: earlier.tasks + later.tasks,
      bytes: earlier.bytes + later.bytes,
    }),
  },
  "note.saved": {
    row: ({ note }) => keyOf.note(note.key),
    statement: upsert(
      "notes",
      { key: text(({ note }) => note.key) },
      {
        version: whole(({ note }) => note.version),
        node_id: text(({ note }) => note.nodeId),
        verified: flag(({ note }) => note.verified),
        bytes: whole(({ note }) => headOf(note).bytes),
        created_at: whole(({ note }) => note.createdAt),
        updated_at: whole(({ note }) => note.updatedAt),
        content: text(({ note }) => note.text),
        ...keptColumns<Of<"note.saved">>(({ note }) => note),
      },
    ),
  },
  "note.removed": {
    frees: true,
    row: ({ key }) => keyOf.note(key),
    statement: remove("notes", { key: text(({ key }) => key) }),
  },
  "lease.saved": {
    row: ofLease,
    statement: upsert("leases", LEASE_ID, {
      shared: flag(({ lease }) => lease.shared),
      is_glob: flag(({ lease }) => isGlob(lease.name)),
      fencing: whole(({ lease }) => lease.fencing),
      ttl_ms: whole(({ lease }) => lease.ttlMs),
      lease_until: whole(({ lease }) => lease.leaseUntil),
      acquired_at: whole(({ lease }) => lease.acquiredAt),
    }),
  },
  "lease.removed": { frees: true, row: ofLease, statement: remove("leases", LEASE_ID) },
  "leases.released": {
    isSweep: true,
    frees: true,
    statement: remove("leases", { task_id: text(({ taskId }) => taskId) }),
  },
  "leases.dropped": {
    isSweep: true,
    frees: true,
    statement: remove("leases", { node_id: text(({ nodeId }) => nodeId) }),
  },
  "leases.pruned": {
    isSweep: true,
    frees: true,
    statement: customStatement("leases", `DELETE FROM leases WHERE lease_until <= $1`, [
      whole(({ steady }) => steady),
    ]),
  },
  "leases.renewed": {
    isSweep: true,
    statement: customStatement("leases", `UPDATE leases SET lease_until = $1 + ttl_ms`, [
      whole(({ steady }) => steady),
    ]),
  },
  "fencing.drawn": {
    statement: update("fencing", { one: "1" }, { last: whole(({ fencing }) => fencing) }),
    sum: (_, later) => later,
  },
  "event.logged": {
    keys: ({ event }) => (event.kind === "node.registered" ? ["registrations"] : []),
    statement: insert("events", EVENT),
  },
  "minute.saved": {
    row: ({ at, hub }) => keyOf.minute(at, hub),
    statement: upsert(
      "minutes",
      { at: whole(({ at }) => at), hub: text(({ hub }) => hub) },
      { numbers: text(({ numbers }) => numbers) },
    ),
  },
  "period.saved": {
    row: ({ stepMs, at }) => keyOf.period(stepMs, at),
    statement: upsert(
      "periods",
      { step_ms: whole(({ stepMs }) => stepMs), at: whole(({ at }) => at) },
      { numbers: text(({ numbers }) => numbers) },
    ),
  },
  "periods.pruned": { isSweep: true, frees: true, statement: PRUNE_PERIODS },
  "minutes.pruned": { isSweep: true, frees: true, statement: PRUNE_MINUTES },
  "answer.stored": {
    row: ({ answer }) => keyOf.answer(answer.scope),
    // Not an insert: an expired answer may not be deleted yet.
    statement: upsert("answers", SCOPE, {
      body_hash: text(({ answer }) => answer.asked),
      status: whole(({ answer }) => answer.status),
      body: text(({ answer }) => answer.body),
      stored_at: whole(({ answer }) => answer.storedAt),
      key_id: text(({ answer }) => keyIdOf(answer)),
      bytes: whole(({ answer }) => bytesOf(answer)),
    }),
  },
  "key.saved": {
    row: ({ key }) => keyOf.key(key.keyId),
    statement: upsert(
      "keys",
      { key_id: text(({ key }) => key.keyId) },
      {
        hash: text(({ key }) => key.hash),
        variant: text(({ key }) => key.variant),
        node_id: text(({ key }) => key.nodeId),
        mint_micro: whole(({ key }) => key.mintMicro),
        expires_at: whole(({ key }) => key.expiresAt),
        revoked_at: whole(({ key }) => key.revokedAt),
      },
      // A full key is stored as "secret": an older luxhub knows that word, and refuses a role that it does not know.
      {
        role: text(({ key }) => (key.role === "full" ? "secret" : key.role)),
        created_at: whole(({ key }) => key.createdAt),
      },
    ),
  },
  "invitation.saved": {
    row: ofInvitation,
    statement: upsert(
      "invitations",
      TOKEN_HASH,
      {
        used_at: whole(({ invitation }) => invitation.usedAt),
        key_id: text(({ invitation }) => invitation.keyId),
      },
      {
        invitation_id: text(({ invitation }) => invitation.invitationId),
        node_id: text(({ invitation }) => invitation.nodeId),
        created_at: whole(({ invitation }) => invitation.createdAt),
        expires_at: whole(({ invitation }) => invitation.expiresAt),
      },
    ),
  },
  "invitation.deleted": { frees: true, row: ofInvitation, statement: remove("invitations", TOKEN_HASH) },
  "invitations.dropped": {
    isSweep: true,
    frees: true,
    statement: customStatement(
      "invitations",
      `DELETE FROM invitations WHERE node_id = $1 AND used_at IS NULL`,
      [text(({ nodeId }) => nodeId)],
    ),
  },
  "invitations.pruned": {
    isSweep: true,
    frees: true,
    statement: customStatement(
      "invitations",
      `DELETE FROM invitations WHERE coalesce(used_at, expires_at) <= $1`,
      [whole(({ before }) => before)],
    ),
  },
  "node.leases.renewed": {
    isSweep: true,
    statement: customStatement(
      "beats",
      `UPDATE beats SET lease_until = $1 WHERE seq IN (SELECT seq FROM nodes WHERE online = 1 AND variant = $2)`,
      [whole(({ leaseUntil }) => leaseUntil), text(({ variant }) => variant)],
    ),
  },
  "delivery.leases.renewed": {
    isSweep: true,
    statement: customStatement(
      "deliveries",
      `UPDATE deliveries SET lease_until = $1 WHERE state = 'leased'`,
      [whole(({ leaseUntil }) => leaseUntil)],
    ),
  },
  "task.leases.renewed": {
    isSweep: true,
    statement: customStatement(
      "tasks",
      `UPDATE tasks SET run_until = $1 + max_run_ms, lease_until = $1 +
        CASE WHEN timeout_ms IS NULL OR max_run_ms < timeout_ms THEN max_run_ms ELSE timeout_ms END
        WHERE lease_until IS NOT NULL`,
      [whole(({ steady }) => steady)],
    ),
  },
  "backoffs.restarted": {
    isSweep: true,
    statement: customStatement(
      "tasks",
      `UPDATE tasks SET not_before = not_before - updated_at + $1, updated_at = $1,
          due_at = CASE WHEN expires_at < not_before - updated_at + $1 THEN expires_at ELSE not_before - updated_at + $1 END
        WHERE ready = 0 AND unmet = 0 AND attempts > 0 AND not_before > updated_at
          AND updated_at > $1 + ${CLOCK_JUMP_MS}`,
      [whole(({ now }) => now)],
    ),
    beside: [
      {
        statement: customStatement(
          "task_features",
          `UPDATE task_features SET updated_at = (SELECT t.updated_at FROM tasks t WHERE t.seq = task_seq)
            WHERE status = 'open' AND updated_at > $1`,
          [whole(({ now }) => now)],
        ),
      },
    ],
  },
  "questions.restarted": {
    isSweep: true,
    statement: customStatement(
      "questions",
      `UPDATE questions SET until = until - asked_at + $1, asked_at = $1
        WHERE state = 'open' AND asked_at > $1 + ${CLOCK_JUMP_MS}`,
      [whole(({ now }) => now)],
    ),
  },
  "answers.shifted": {
    isSweep: true,
    statement: customStatement(
      "answers",
      `UPDATE answers SET stored_at = stored_at + $3 WHERE stored_at > $1 AND stored_at <= $2`,
      [whole(({ after }) => after), whole(({ upTo }) => upTo), whole(({ movedMs }) => movedMs)],
    ),
  },
  "broadcasts.abandoned": {
    isSweep: true,
    statement: customStatement(
      "broadcasts",
      `UPDATE broadcasts SET write_until = 0 WHERE write_until IS NOT NULL`,
      [],
    ),
  },
  "broadcasts.pruned": { isSweep: true, frees: true, statement: PRUNE_BROADCAST_COUNTS },
  "deliveries.pruned": {
    isSweep: true,
    frees: true,
    statement: PRUNE_DELIVERIES,
    instead: ({ broadcast }) => (broadcast ? PRUNE_BROADCASTS : null),
  },
  "messages.refunded": { isSweep: true, statement: REFUND_MESSAGES },
  "messages.pruned": { isSweep: true, frees: true, statement: PRUNE_MESSAGES },
  "events.refunded": { isSweep: true, statement: REFUND_EVENTS },
  "events.pruned": { isSweep: true, frees: true, statement: PRUNE_EVENTS },
  "answers.pruned": { isSweep: true, frees: true, statement: PRUNE_ANSWERS },
  // Once for all answers of a key that a group stores. It leaves the newest, which the group may read.
  "answers.trimmed": {
    frees: "alone", // beside a new answer it makes room only for that
    row: ({ keyId }) => keyOf.answersOf(keyId),
    after: ({ scope }) => keyOf.answer(scope),
    statement: TRIM_ANSWERS,
    instead: ({ keyId }) => (keyId === null ? null : TRIM_ANSWERS_OF_KEY),
    sum: (earlier, later) => ({ ...later, storedBytes: earlier.storedBytes + later.storedBytes }),
  },
};

/** How a change is written. */
export function writeOf(change: Change): Write<Change> {
  return WRITES[change.kind]; // Its functions take only changes of this kind.
}

/** The statements that write a change, in order, and which of them writes its own row. */
export function statementsOf(change: Change): {
  readonly all: readonly Statement<Change>[];
  readonly own: number;
} {
  const { statement, instead, beside } = writeOf(change);
  const own = instead?.(change) ?? statement;
  if (beside === undefined) return { all: [own], own: 0 };
  const used = beside.filter(({ when }) => when?.(change) ?? true);
  const before = used.flatMap(({ isFirst, statement }) => (isFirst ? [statement] : []));
  const after = used.flatMap(({ isFirst, statement }) => (isFirst ? [] : [statement]));
  return { all: [...before, own, ...after], own: before.length };
}

/** The write set of a change, as conflict keys. A caller that knows the row of the change (`Write.row`) passes it. */
export function writeSetOf(change: Change, row = writeOf(change).row?.(change)): readonly ConflictKey[] {
  const write = writeOf(change);
  if (write.isSweep) return [EVERYTHING];
  const set: ConflictKey[] = [write.statement.table];
  if (row !== undefined) set.push(row);
  if (write.keys) set.push(...write.keys(change));
  return set;
}
