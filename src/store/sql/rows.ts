/** The records that several files decode from rows: tasks, nodes, messages, files, and the ledger. */
import { type Position, addResources } from "../../domain/lane.ts";
import { TREASURY } from "../../domain/lux.ts";
import type {
  Delivery,
  DeliveryStub,
  Failure,
  FileRecord,
  Kept,
  LedgerEntry,
  Message,
  Node,
  Requirements,
  Resources,
  Task,
  TaskResult,
  TaskState,
} from "../../domain/model.ts";
import { soundDelivery, soundEntry, soundFile, soundMessage, soundNode } from "../../domain/sound.ts";
import { shownFailure } from "../../domain/task/failure.ts";
import { must } from "../../lib/assert.ts";
import type { Param, Row } from "../store.ts";
import { FEW_NAMES, SUMMARY_NAMES } from "./few-terms.ts";
import { reader } from "./table.ts";
import {
  BEATS,
  DELIVERIES,
  FILES,
  LEDGER,
  MESSAGES,
  NODES,
  TASKS,
  TASK_FEATURES,
  TASK_RESULTS,
  TASK_SPECS,
} from "./tables.ts";

/** NULL becomes null. For columns of which a query computes the text. */
export const textOrNull = (value: Param | undefined): string | null => (value == null ? null : String(value));

// ---- Nodes

const { capabilities: CAPABILITIES } = NODES.columns;

/** Decodes each different list once, for a caller that reads the same nodes repeatedly. */
export class CapabilityLists {
  readonly #decoded = new Map<string, readonly string[]>();

  decode(stored: string): readonly string[] {
    let list = this.#decoded.get(stored);
    if (!list) this.#decoded.set(stored, (list = CAPABILITIES.decode(stored)));
    return list;
  }
}

export const capabilitiesOf = (row: Row): readonly string[] =>
  CAPABILITIES.decode(must(row["capabilities"], "a query of nodes names their capabilities"));

const NONE: Resources = {};

const registeredResources = (row: Row): Resources => {
  const stored = textOrNull(row["resources"]);
  return stored === null ? NONE : (JSON.parse(stored) as Resources); // only the rules write it
};

/** See USED of nodes.ts. */
const usedResources = (row: Row): Resources => {
  const held = textOrNull(row["used"]);
  if (held === null) return NONE;
  return held.split("\n").reduce<Resources>((sum, line) => {
    const gap = line.indexOf(" ");
    const { resources: each } = JSON.parse(line.slice(gap + 1)) as Requirements;
    const times = Number(line.slice(0, gap));
    return addResources(sum, Object.fromEntries(Object.entries(each).map(([name, n]) => [name, n * times])));
  }, {});
};

export const resourcesOf = (row: Row): Pick<Node, "resources" | "used"> => ({
  resources: registeredResources(row),
  used: usedResources(row),
});

const readNode = reader(
  { ...NODES.columns, ...BEATS.columns },
  [
    ...(["node_id", "name", "host", "port", "capabilities", "variant", "max_tasks", "auto_assign"] as const),
    ...(["draining", "online", "has_leases", "registered_at", "last_heartbeat_at", "lease_until"] as const),
    ...(["tasks_assigned", "tasks_completed", "lux_earned_micro", "idle_since", "entries"] as const),
    "balance_micro",
  ],
  { resources: registeredResources, used: usedResources },
);
export const toNode: (row: Row) => Node = readNode.to(soundNode);

// ---- Tasks

/** All columns of the view task_rows. */
export const TASK = {
  ...TASK_FEATURES.columns,
  ...TASK_SPECS.columns,
  ...TASK_RESULTS.columns,
  ...TASKS.columns,
};

/** Follows the id of an output in the list of a task's files. */
const OUTPUT_MARK = "+";

const filesIn = (row: Row): readonly string[] => {
  const stored = textOrNull(row["files"]);
  return stored === null ? [] : stored.split(",");
};

const idOf = (marked: string): string =>
  marked.endsWith(OUTPUT_MARK) ? marked.slice(0, -OUTPUT_MARK.length) : marked;

/** The failure is stored as JSON.stringify of a Failure. */
export function isFailedAs(kind: Failure["kind"]): string {
  const begins = `{"kind":"${kind}",`;
  return `substr(failure, 1, ${begins.length}) = '${begins}'`;
}

const scheduleOf = (row: Row): Task["schedule"] => {
  const name = textOrNull(row["schedule"]);
  if (name === null) return null;
  return { name, at: row["schedule_at"] == null ? null : Number(row["schedule_at"]) };
};

const readResult = TASK_RESULTS.reader("problem", "improvement", "lesson", "result_extra");

export const toResult = (row: Row): TaskResult | null => (row["problem"] === null ? null : readResult(row));

/** A plain lane has the name of the type, and is not stored. */
const laneOf = (row: Row): string => String(row["lane"] ?? row["task_type"]);

/** The code of `ready` of an open task that waits (encodeReady()). */
const WAITS = 0;

const readTask = reader(
  TASK,
  [
    ...(["seq", "task_id", "title", "description", "task_type", "priority", "creator_node"] as const),
    ...(["creator_verified", "creator_key", "status", "lux_reward_micro", "assigned_node"] as const),
    ...(["result_verified", "paid_seq", "balanced", "revoked_from", "attempts", "failures"] as const),
    ...(["restarts", "max_attempts", "backoff_ms", "timeout_ms", "max_run_ms", "run_until"] as const),
    ...(["lease_until", "epoch", "not_before", "expires_at", "depends_on", "unmet"] as const),
    ...(["has_dependents", "started_at", "progress", "failure", "earlier_failures"] as const),
    ...(["checkpoint_bytes", "has_output", "questions", "review", "quorum", "child"] as const),
    ...(["not_nodes", "limit_key", "counts_for", "unique_key"] as const),
    ...(["unique_until", "spent", "has_leases", "created_at", "updated_at"] as const),
    ...(["lent_bytes", "kept_bytes"] as const),
    ...FEW_NAMES,
  ],
  {
    result: toResult,
    scheduled: (row): boolean => row["ready"] !== null && Number(row["ready"]) === WAITS,
    schedule: scheduleOf,
    lane: laneOf,
    onDependency: (row): Task["onDependency"] => (row["on_dependency"] === "run" ? "run" : "fail"),
    files: (row): readonly string[] => filesIn(row).map(idOf),
    outputs: (row): readonly string[] =>
      filesIn(row)
        .filter((marked) => marked.endsWith(OUTPUT_MARK))
        .map(idOf),
    hasFeatures: (row): boolean => row["features_of"] !== null,
  },
);

export const toTask: (row: Row) => Task = readTask;

/** The columns of toTask(), of the view task_rows t. */
export const TASK_COLUMNS = `
  ${readTask.list.replaceAll(/\w+/g, "t.$&")}, t.problem, t.improvement, t.lesson, t.result_extra, t.ready, t.schedule,
  t.schedule_at, t.lane, t.on_dependency, t.features_of,
  (SELECT string_agg(file_id || mark, ',') FROM (
    SELECT file_id, CASE WHEN output = 1 THEN '${OUTPUT_MARK}' ELSE '' END AS mark
    FROM files f WHERE f.task_id = t.task_id ORDER BY f.seq) AS own) AS files`;

/** Nothing long, and no other table. */
export const toTaskSummary = reader(
  TASK,
  [
    ...(["seq", "task_id", "title", "task_type", "priority", "creator_node", "status"] as const),
    ...(["lux_reward_micro", "assigned_node", "attempts", "max_attempts", "not_before"] as const),
    ...(["expires_at", "unmet", "started_at", "progress", "failure", "questions", "review"] as const),
    ...(["quorum", "child", "created_at", "updated_at"] as const),
    ...SUMMARY_NAMES,
  ],
  { schedule: scheduleOf },
);
export const SUMMARY_COLUMNS = `${toTaskSummary.list}, schedule, schedule_at`;

export const toTaskState: ((row: Row) => TaskState) & { readonly list: string } = reader(TASK, [
  ...(["task_id", "title", "status", "assigned_node", "progress", "failure", "child", "updated_at"] as const),
]);

/** As everybody may read it. */
export function toShownFailure(row: Row): Failure {
  return must(shownFailure(readFailure(row)), "the query selects tasks that have failed");
}
const readFailure = reader(TASK, ["failure", "child"]);

/** Roughly what the task takes in memory. */
export function charsOf({ description, progress, failure, earlierFailures, dependsOn, tags }: Task): number {
  const idChars = dependsOn[0]?.length ?? 0;
  return (
    description.length +
    (progress?.length ?? 0) +
    (failure?.message?.length ?? 0) +
    earlierFailures.reduce((sum, { message }) => sum + (message?.length ?? 0), 0) +
    dependsOn.length * idChars +
    tags.reduce((sum, tag) => sum + tag.length, 0)
  );
}

// ---- Messages and files

export const toMessage: (row: Row) => Message = MESSAGES.reader().to(soundMessage);

const readDelivery = reader(
  { ...DELIVERIES.columns, ...MESSAGES.columns, seq: DELIVERIES.columns.seq },
  ["message_id", "from_node", "broadcast", "seq", "state", "deliveries", "lease_until"],
  { toNode: (row): string => String(row["delivered_to"]) },
);
export const toDeliveryStub: (row: Row) => DeliveryStub = readDelivery.to(soundDelivery);

export function toDelivery(row: Row): Delivery {
  return { ...toDeliveryStub(row), message: toMessage(row) };
}

const readFile = FILES.reader();

export function toFile(row: Row): FileRecord {
  const file = readFile(row);
  return soundFile({
    ...file,
    attached: file.taskId === null ? null : row["output"] === 1 ? "output" : "input",
  });
}

// ---- What rows share

export function keptOf(row: Row): { readonly kept?: Kept } {
  const payer = textOrNull(row["kept_by"]);
  return payer === null ? {} : { kept: { by: payer, bytes: Number(row["kept_bytes"]) } };
}

/** Of ledger l; the balance as text, because it may be large. */
export const LEDGER_COLUMNS = `
  l.seq, l.entry_id, l.from_account, l.to_account, l.node_id, l.n, l.amount_micro,
  CAST(l.balance_micro AS TEXT) AS balance_micro, l.kind, l.task_id, l.at, l.hash`;

const readEntry = reader(
  LEDGER.columns,
  ["seq", "entry_id", "node_id", "n", "balance_micro", "amount_micro", "kind", "task_id", "at", "hash"],
  {
    from: (row): LedgerEntry["from"] => (textOrNull(row["from_account"]) ?? TREASURY) as LedgerEntry["from"],
    to: (row): LedgerEntry["to"] =>
      (textOrNull(row["to_account"]) ?? `node:${String(row["node_id"])}`) as LedgerEntry["to"],
  },
);

export function toPosition({ priority, seq }: Row): Position {
  return { priority: Number(priority), seq: Number(seq) };
}

export const toLedgerEntry: (row: Row) => LedgerEntry = readEntry.to(soundEntry);
