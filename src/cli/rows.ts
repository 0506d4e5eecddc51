/** How records of the hub are shown to people: as the cells of a row, or as lines. */
import type { AnswerOf, Node, Task, Variant } from "../client/luxhub.ts";
import { ageOf, bold, plain, timeText } from "./table.ts";

export const NODE_HEAD = ["NODE", "STATUS", "TASKS", "DONE", "LUX", "LAST SEEN", "CAPABILITIES", "NAME"];

export function nodeRow(node: Node) {
  return [
    node.node_id,
    node.draining ? `${node.status}, draining` : node.status,
    node.tasks_assigned,
    node.tasks_completed,
    node.lux_balance,
    ageOf(node.last_heartbeat),
    String(node.capabilities),
    node.name,
  ] as const;
}

export const TASK_HEAD = ["TASK", "STATUS", "PRIORITY", "TYPE", "NODE", "AGE", "TITLE"];

export function taskRow({ task_id, status, priority, task_type, assigned_node, created_at, title }: Task) {
  return [task_id, status, priority, task_type, assigned_node, ageOf(created_at), title] as const;
}

export function taskLine({ task_id, status, assigned_node }: Task): string {
  return `${task_id}  ${status}${assigned_node === null ? "" : `  ${assigned_node}`}`;
}

export function lessonText(record: AnswerOf<"lessons">["lessons"][number]): string {
  const { lesson, at, task_id, task_type, node_id, title } = record;
  const type = task_type === null ? "" : ` (${task_type})`;
  const about = `${timeText(at)}  task ${plain(task_id)} by ${plain(node_id)}`;
  const lines = [about, ...lesson.split("\n").map(plain)].map((line) => `  ${line}`);
  return [`${bold(plain(title))}${plain(type)}`, ...lines].join("\n");
}

type Message = {
  readonly id: string;
  readonly from_node: string;
  readonly to_node: string | null;
  readonly type: string;
  readonly sent_at: string;
  readonly content: string;
  readonly state?: string | null;
};

export function messageText({ id, from_node, to_node, type, sent_at, content, state }: Message): string {
  const nodes = `${from_node} -> ${to_node ?? "all"}`;
  return plain(`${[timeText(sent_at), nodes, type, ...(state ? [state] : []), id].join("  ")}\n${content}`);
}

type Pause = { readonly scope: string; readonly value: string | null };

export function pauseName({ scope, value }: Pause): string {
  return scope === "hub" ? "the hub" : `${scope.replace("_", " ")} ${value ?? "(none)"}`;
}

export function budgetName({ scope, value, per }: Pause & { readonly per: string }): string {
  return `${scope === "hub" ? "hub" : `${scope} ${value ?? "(none)"}`} per ${per}`;
}

export function budgetRow({ spent, ...budget }: AnswerOf<"budget/list">["budgets"][number]) {
  return [
    budgetName(budget),
    budget.paused ? "paused" : budget.state,
    spent.cost_usd,
    budget.cost_usd,
    spent.without_cost,
    spent.input_tokens + spent.output_tokens,
    budget.tokens,
    budget.on_limit,
  ] as const;
}

export function limitRow(limit: AnswerOf<"limit/list">["limits"][number]) {
  const { running_now, running, last_minute, per_minute, held_until, held_by } = limit;
  return [limit.key || "(none)", running_now, running, last_minute, per_minute, held_until, held_by] as const;
}

export function webhookRow(webhook: AnswerOf<"webhook/list">["webhooks"][number]) {
  const { name, state, cursor, attempts, last_error, last_delivered_at, url } = webhook;
  const fault = attempts === 0 ? null : `${attempts} failed: ${last_error ?? ""}`;
  return [name, state, cursor, last_delivered_at && timeText(last_delivered_at), fault, url] as const;
}

export function scheduleRow(schedule: AnswerOf<"schedule/list">["schedules"][number]) {
  const { name, cron, tz, every_s, paused, next_at, last_at, task } = schedule;
  const times = cron === null ? `every ${every_s} s` : `${cron} ${tz}`;
  const next = paused ? "paused" : next_at === null ? "ended" : timeText(next_at);
  return [name, times, next, last_at && timeText(last_at), task.title] as const;
}

type Copy = AnswerOf<"status", Variant>["copy"];

/** Of a second copy of the hub: who follows, and how far behind it is. */
export function copyLines(copy: Copy): readonly string[] {
  if (copy === undefined) return [];
  const at = copy.hub === null ? "" : `: ${copy.hub} accepts writes`;
  return [
    ...(copy.role === "first"
      ? []
      : [`this hub is ${copy.role === "standby" ? "a standby" : "superseded"}${at}`]),
    ...copy.standbys.map(({ name, url, following, lag_entries, lag_s, since, fault }) => {
      const who = copy.role === "standby" ? "it" : `the standby ${name}${url === null ? "" : ` (${url})`}`;
      if (since === null) return `${who} has not followed yet`;
      const does = following ? "follows" : "does NOT follow";
      const reason = fault === null ? "" : `: ${fault}`;
      return `${who} ${does} since ${timeText(since)}, ${lag_entries} entries and ${lag_s} s behind${reason}`;
    }),
  ];
}

/** False: what was to follow does not. */
export function isCopySound(copy: Copy): boolean {
  if (copy === undefined) return true;
  return (
    copy.role !== "superseded" && copy.standbys.every(({ following, since }) => following || since === null)
  );
}
