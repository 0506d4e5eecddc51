/**
 * The activity log: readable lines ("worker-1 claimed …") about the events that this hub commits. Other hubs on the same
 * database log their own commits.
 *
 * Invariant: the number of lines is bounded, whatever is committed. Events are collected for ACTIVITY_WINDOW_MS;
 * related events (a node that goes offline and its tasks) share a line, and beyond ACTIVITY_LINES_MAX lines events are
 * only counted by kind.
 * Must not: show the content of a message, or wait for anything.
 */
import type { Notified } from "../domain/change.ts";
import type { EventKind, NewEvent } from "../domain/event.ts";
import type { SkipReason } from "../domain/schedule.ts";
import * as limit from "../domain/limits.ts";
import { toLux } from "../domain/lux.ts";
import type { Task } from "../domain/model.ts";
import { broken } from "../lib/assert.ts";
import type { Log, LogFields, LogLevel } from "../lib/log.ts";
import { printable } from "../lib/printable.ts";
import type { Store } from "../store/store.ts";

type Entry = {
  readonly event: NewEvent;
  readonly task: Task | null;
  readonly counts: Map<EventKind, number>;
};

export class ActivityLog {
  readonly #log: Log;
  readonly #isOn: boolean;
  /** By the key of related events; at most ACTIVITY_LINES_MAX. */
  #entries = new Map<unknown, Entry>();
  #counts = new Map<EventKind, number>();
  #isOverflowing = false;
  #timer: Timer | null = null;

  constructor(store: Store, log: Log) {
    this.#log = log;
    this.#isOn = log.has("warn");
    store.onCommit((changes, _, origin) => {
      if (origin === "own") this.#note(changes);
    });
  }

  #note(changes: readonly Notified[]): void {
    if (!this.#isOn) return;
    let task: Task | null = null;
    let left: string | null = null;
    for (const change of changes) {
      if (change.kind === "task.created" || change.kind === "task.moved") task = change.task;
      if (change.kind !== "event.logged") continue;
      const { event } = change;
      if (event.kind === "node.left") left = event.nodeId;
      if (event.kind === "node.offline" && event.nodeId === left) continue; // that it left says it
      this.#add(event, task?.taskId === event.taskId ? task : null);
    }
  }

  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const [entries, counts, isOverflowing] = [this.#entries, this.#counts, this.#isOverflowing];
    this.#entries = new Map();
    this.#counts = new Map();
    this.#isOverflowing = false;
    if (isOverflowing) {
      const last = [...entries.values()].at(-1);
      if (!last) return void broken("an activity log that overflows has lines");
      for (const [kind, count] of counts)
        this.#write(LEVELS[kind], summaryOf(kind, count), { event: kind, count }, last.event.at);
      return;
    }
    for (const entry of entries.values()) {
      const { event } = entry;
      this.#write(LEVELS[event.kind], textOf(entry), fieldsOf(entry), event.at);
    }
  }

  #add(event: NewEvent, task: Task | null): void {
    if (isSilent(event)) return;
    this.#timer ??= setTimeout(() => this.flush(), limit.ACTIVITY_WINDOW_MS).unref();
    count(this.#counts, event.kind);
    if (this.#isOverflowing) return;
    const key = keyOf(event);
    let entry = this.#entries.get(key);
    if (!entry) {
      this.#isOverflowing = this.#entries.size >= limit.ACTIVITY_LINES_MAX;
      entry = { event, task, counts: new Map() };
      this.#entries.set(key, entry);
    }
    count(entry.counts, event.kind);
  }

  /** The fields are only for a log collector. */
  #write(level: LogLevel = "info", text: string, fields: LogFields, at: number): void {
    this.#log.write(level, text, this.#log.format === "json" ? fields : {}, at);
  }
}

function count(counts: Map<EventKind, number>, kind: EventKind): void {
  counts.set(kind, (counts.get(kind) ?? 0) + 1);
}

function isSilent({ kind, data }: NewEvent): boolean {
  if (kind === "task.assigned") return data["by"] === "complete";
  return kind === "lux.paid" || kind === "hub.started" || kind === "transport.changed";
}

/** Related events share a line. */
function keyOf(event: NewEvent): unknown {
  const { kind, nodeId } = event;
  if (kind === "node.offline" || kind === "task.requeued") return `offline ${nodeId}`;
  if (kind === "node.registered" || kind === "node.online") return `online ${nodeId}`;
  return event;
}

const LEVELS: Partial<Record<EventKind, LogLevel>> = {
  "node.offline": "warn",
  "message.parked": "warn",
  "message.expired": "warn",
  "task.stuck": "warn",
  "budget.warning": "warn",
  "budget.exceeded": "warn",
  "usage.capped": "warn",
  "standby.lost": "warn",
};

function budgetOf({ scope, value, per }: NewEvent["data"]): string {
  return `${scope === "hub" ? "the hub" : `${scope} ${value ?? "(none)"}`} per ${per}`;
}

function pausedOf({ scope, value }: NewEvent["data"]): string {
  return scope === "hub" ? "the hub" : `${String(scope).replace("_", " ")} ${value ?? "(none)"}`;
}

function textOf(entry: Entry): string {
  const { event, task, counts } = entry;
  const { kind, nodeId, taskId, data } = event;
  const who = nodeId ?? "somebody";
  const title = task?.title ?? data["title"];
  const what = title === undefined ? "a task" : quoted(title);
  const id = `(task ${taskId})`;
  const message = `(message ${data["message_id"]})`;
  const requeued = counts.get("task.requeued") ?? 0;
  switch (kind) {
    case "budget.set":
      return `budget of ${budgetOf(data)} set`;
    case "budget.deleted":
      return `budget of ${budgetOf(data)} deleted`;
    case "budget.warning":
      return `budget of ${budgetOf(data)}: more than 80 % are used`;
    case "budget.exceeded":
      return `budget of ${budgetOf(data)} used up${data["on_limit"] === "pause" ? ": its tasks wait" : ""}`;
    case "usage.capped":
      return `${who} reported ${data["cost_usd"]} USD for ${what}, of which ${data["counted_usd"]} count ${id}`;
    case "usage.voided":
      return `usage of ${who} on ${data["day"]} voided: ${data["cost_usd"]} USD${reasonOf(data["reason"])}`;
    case "hub.paused":
      return `${pausedOf(data)} paused${reasonOf(data["reason"])}`;
    case "hub.resumed":
      return `${pausedOf(data)} resumed`;
    case "limit.set":
      return `limit of ${data["key"] ?? "(none)"} set`;
    case "limit.held":
      return `limit key ${data["key"] ?? "(none)"} held for ${data["for_s"]} s`;
    case "limit.deleted":
      return `limit of ${data["key"] ?? "(none)"} deleted`;
    case "note.changed":
      return `${who} wrote the note ${quoted(data["key"])}, version ${data["version"]}`;
    case "note.deleted":
      return `${who} deleted the note ${quoted(data["key"])}`;
    case "node.joined":
      return `${who} joined, with the key ${data["key"]}`;
    case "node.registered":
      return `${who} registered`;
    case "node.online":
      return `${who} online again`;
    case "node.offline":
      return `${who} offline${requeued === 0 ? "" : `, ${tasks(requeued)} open again`}`;
    case "task.requeued":
      return `${tasks(requeued)} of ${who} open again`;
    case "task.created":
      return nodeId === null ? `${what} created ${id}` : `${who} created ${what} ${id}`;
    case "task.assigned":
      if (data["by"] === "claim") return `${who} claimed ${what} ${id}`;
      if (data["by"] === "resume") return `${who} took ${what} again ${id}`;
      if (data["by"] === "next") return `${who} took ${what} ${id}`;
      return `${what} assigned to ${who}${byWhom(data["by"])} ${id}`;
    case "task.completed":
      return `${who} completed ${what}${rewardOf(task)} ${id}`;
    case "task.review_requested":
      return `the result of ${what} waits for a review ${id}`;
    case "task.review_passed":
      return `${data["reviewed_by"] ?? "somebody"} passed the result of ${what}${rewardOf(task)} ${id}`;
    case "task.review_rejected":
      return `${data["reviewed_by"] ?? "somebody"} rejected the result of ${what} ${id}`;
    case "task.revoked":
      return `${what} revoked from ${who}${reasonOf(data["reason"])} ${id}`;
    case "task.released":
      return `${what} of ${who} open again${reasonOf(data["reason"])} ${id}`;
    case "task.stuck":
      return `no registered node could ever take ${what}${reasonOf(data["missing"])} ${id}`;
    case "task.attempt_failed":
      return `${who} failed at ${what}${reasonOf(data["error"])} ${id}`;
    case "task.timed_out":
      return `${what} of ${who} timed out ${id}`;
    case "task.progress":
      return `${who} works on ${what}${reasonOf(data["note"])} ${id}`;
    case "task.asked":
      return `${who} asked about ${what} ${id}`;
    case "task.answered":
      return `${data["answered_by"] ?? "somebody"} answered a question about ${what} ${id}`;
    case "task.question_timed_out":
      return `a question about ${what} timed out ${id}`;
    case "task.failed":
      return `${what} failed${reasonOf(data["message"])} ${id}`;
    case "task.retried":
      return `${what} retried after it had failed ${id}`;
    case "task.updated":
      return `${what} changed: ${String(data["changed"]).replaceAll(",", ", ")} ${id}`;
    case "node.left":
      return `${who} left`;
    case "node.draining":
      return data["draining"] === true ? `${who} drains` : `${who} ended its drain`;
    case "node.updated":
      return `${who} changed its ${String(data["changed"]).replaceAll(",", ", ")}`;
    case "node.deleted":
      return `${who} deleted`;
    case "task.deleted":
      return `${what} deleted ${id}`;
    case "group.ended":
      return `no task of the group ${data["group"]} is unfinished`;
    case "schedule.saved":
      return `schedule ${data["name"]} saved${data["paused"] === true ? ", paused" : ""}`;
    case "schedule.deleted":
      return `schedule ${data["name"]} deleted`;
    case "schedule.skipped":
      return `schedule ${data["name"]} skipped ${data["at"]}: ${SKIPPED[String(data["reason"])]}`;
    case "webhook.saved":
    case "webhook.resumed":
    case "webhook.deleted":
      return `webhook ${data["name"]} ${kind.replace("webhook.", "")}`;
    case "webhook.suspended":
      return `webhook ${data["name"]} suspended, ${data["reason"] === "gone" ? "the receiver is gone" : `after ${data["attempts"]} attempts`}`;
    case "lux.signin":
      return `${who} signed in for ${data["amount"]} LUX`;
    case "message.sent":
      return `${data["from_node"]} sent one ${data["type"]} to ${nodeId === null ? several(Number(data["receivers"]), "node") : who} ${message}`;
    case "message.acked":
      return `${who} confirmed ${message}`;
    case "message.parked":
      return `${who} did not confirm a message: parked ${message}`;
    case "message.expired":
      return `${who} did not receive or confirm a message of ${data["from_node"]}: expired ${message}`;
    case "file.uploaded":
      return `${nodeId === null ? "" : `${nodeId} uploaded `}${quoted(data["name"])}${nodeId === null ? " uploaded" : ""}, ${data["size"]} bytes (file ${data["file_id"]})`;
    case "file.deleted":
      return `${quoted(data["name"])} deleted (file ${data["file_id"]})`;
    case "hub.promoted":
      return `this hub was promoted: it accepts writes, in term ${data["term"]}`;
    case "standby.following":
      return `the standby ${data["standby"]} follows`;
    case "standby.lost":
      return `the standby ${data["standby"]} does not follow any more: it lacks ${data["lag_entries"]} entries`;
    case "lux.paid":
    case "hub.started":
    case "transport.changed":
      return [kind.replaceAll(/[._]/g, " "), nodeId, taskId === null ? null : `${what} ${id}`]
        .filter(Boolean)
        .join(" ");
  }
}

const SKIPPED: Readonly<Record<string, string>> = {
  overlap: "its earlier task is not finished",
  missed: "no hub ran at that time",
  quota_exceeded: "the quota of its creator is used up",
  key_revoked: "the key that put it was revoked or has expired",
  mint_limit: "the key that put it has promised as much LUX today as it may",
} satisfies Record<SkipReason, string>;

/** If they do not follow from the kind's name. */
const SUMMARIES: Partial<Record<EventKind, readonly [things: string, done: string]>> = {
  "node.online": ["node", "online"],
  "task.requeued": ["task", "open again"],
  "message.acked": ["message", "confirmed"],
  "lux.signin": ["node", "signed in"],
};

function summaryOf(kind: EventKind, amount: number): string {
  const [thing = "", verb = ""] = SUMMARIES[kind] ?? kind.split(".");
  return `${several(amount, thing)} ${verb.replaceAll("_", " ")}`;
}

function fieldsOf({ event, task, counts }: Entry): LogFields {
  const { kind, nodeId, taskId, data } = event;
  const title = task?.title ?? data["title"];
  const fields: Record<string, LogFields[string]> = { event: kind };
  if (nodeId !== null) fields["node_id"] = nodeId;
  if (taskId !== null) fields["task_id"] = taskId;
  if (typeof title === "string") fields["title"] = cut(title);
  for (const [name, value] of Object.entries(data))
    if (name !== "title") fields[name] = typeof value === "string" ? cut(value) : value;
  if (kind === "task.completed") fields["lux_paid"] = toLux(task?.paidSeq == null ? 0 : task.luxRewardMicro);
  if (kind === "node.offline" || kind === "task.requeued")
    fields["tasks_requeued"] = counts.get("task.requeued") ?? 0;
  return fields;
}

function byWhom(by: unknown): string {
  return by === "balancer" ? " by the balancer" : "";
}

function rewardOf(task: Task | null): string {
  return task && task.luxRewardMicro > 0 ? ` for ${toLux(task.luxRewardMicro)} LUX` : "";
}

function reasonOf(reason: unknown): string {
  return typeof reason === "string" ? `, ${quoted(reason)}` : "";
}

function tasks(amount: number): string {
  return several(amount, "task");
}

function several(amount: number, thing: string): string {
  return amount === 1 ? `1 ${thing}` : `${amount} ${thing}s`;
}

function cut(text: string): string {
  return text.length <= limit.LOG_TEXT_MAX_CHARS ? text : `${text.slice(0, limit.LOG_TEXT_MAX_CHARS - 1)}…`;
}

/** On one line and without control characters. */
function quoted(text: unknown): string {
  return printable(JSON.stringify(cut(String(text))));
}
