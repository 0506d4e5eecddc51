/** What the tools answer as text: short, for a model to read. The structured content has the fields of HTTP. */
import type { CallToolResult } from "@modelcontextprotocol/server";
import { MCP_DEPENDENCIES_MAX } from "../domain/limits.ts";
import type { JsonObject } from "../http/json-body.ts";

/** The answer of a tool: for the model, for programs, and what is neither (a file). */
export type ToolAnswer = {
  readonly text: string;
  readonly data: JsonObject;
  readonly more?: CallToolResult["content"];
};

/** Without fields that say nothing: null, and empty lists. */
export function compact(record: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(record).filter(
      ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
    ),
  );
}

/** The same of a task, with the first of many dependencies: a model would read each id. */
export function compactTask({ depends_on, unmet, ...task }: JsonObject): JsonObject {
  const all = Array.isArray(depends_on) ? depends_on : [];
  const more = all.length > MCP_DEPENDENCIES_MAX ? { depends_on_count: all.length } : {};
  const isWaiting = Number(recordOf(unmet)["count"]) > 0;
  return compact({
    ...task,
    depends_on: all.slice(0, MCP_DEPENDENCIES_MAX),
    ...more,
    ...(isWaiting ? { unmet } : {}),
  });
}

export function isRecord(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function recordOf(value: unknown): JsonObject {
  return isRecord(value) ? value : {};
}

export function recordsOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

export function plural(amount: unknown, thing: string): string {
  return amount === 1 ? `1 ${thing}` : `${amount} ${thing}s`;
}

/** One line of a list. */
export function taskLine(task: JsonObject, self: string | null): string {
  const { task_id: id, title, status, priority, task_type: type, assigned_node: node } = task;
  const holder = node === null ? "" : node === self ? ", yours" : `, of ${node}`;
  const waits = status === "open" && task["ready"] === false ? ", not ready" : "";
  return `${id} [${status}${holder}${waits}] ${priority}${type === null ? "" : `, type ${type}`}: ${title}`;
}

/** All that a worker or a creator wants to know. */
export function taskText(task: JsonObject, self: string | null): string {
  const lines = [taskLine(task, self), String(task["description"])];
  const add = (label: string, value: unknown): void => {
    if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) return;
    lines.push(
      `${label}: ${Array.isArray(value) ? value.join(", ") : typeof value === "object" ? JSON.stringify(value) : String(value)}`,
    );
  };
  add("creator", task["creator_node"]);
  const dependsOn = Array.isArray(task["depends_on"]) ? task["depends_on"] : [];
  add("depends on (completed when it is ready)", firstOf(dependsOn));
  const unmet = recordOf(task["unmet"]);
  if (Number(unmet["count"]) > 0) add(`waits for ${plural(unmet["count"], "task")}`, unmet["task_ids"]);
  add("input files (file_get)", task["inputs"]);
  add("output files (of its worker, or of earlier attempts)", task["outputs"]);
  if (Number(task["attempts"]) > 0) add("failed attempts so far", task["attempts"]);
  add("time limit in s, restarted by task_progress", task["timeout_s"]);
  add("time limit in s of the whole attempt", task["max_run_s"]);
  add("not before", task["not_before"]);
  add("expires at", task["expires_at"]);
  add("progress", task["progress"]);
  add("last failure", task["failure"]);
  add("result", task["result"]);
  return lines.join("\n");
}

function firstOf(ids: readonly unknown[]): readonly unknown[] {
  const others = ids.length - MCP_DEPENDENCIES_MAX;
  return others <= 0 ? ids : [...ids.slice(0, MCP_DEPENDENCIES_MAX), `and ${others} more`];
}

export function nodeLine(node: JsonObject, self: string | null): string {
  const skills = Array.isArray(node["capabilities"]) ? node["capabilities"].join(", ") : "";
  const you = node["node_id"] === self ? " (you)" : "";
  const name = node["name"] === node["node_id"] ? "" : ` "${node["name"]}"`;
  const drains = node["draining"] === true ? ", draining" : "";
  return (
    `${node["node_id"]}${you}${name} [${node["status"]}${drains}] holds ${node["tasks_assigned"]}, ` +
    `completed ${node["tasks_completed"]}${skills === "" ? "" : `; takes ${skills}`}`
  );
}

export function messageText(message: JsonObject): string {
  const again = message["redelivered"] === true ? ", again" : "";
  return `${message["id"]} from ${message["from_node"]} at ${message["sent_at"]}${again}:\n${message["content"]}`;
}

/** What to do after a refusal, by its code, where the detail does not say it to a model. */
const ADVICE: Readonly<Record<string, string>> = {
  task_not_found: "Check the task_id: task_list shows the tasks.",
  task_not_open: "Another node has it. Call task_next for an open task.",
  task_not_ready: "It waits for its start time or for other tasks. Call task_next for a task that is ready.",
  task_not_assigned: "You do not hold it. Call task_claim first, or task_next for another task.",
  not_assigned_to_node: "It is no longer yours: drop it and call task_next.",
  stale_lease: "You have lost it meanwhile: drop it and call task_next.",
  task_completed: "It is done: read its result with task_get. Call task_next for another task.",
  task_failed: "It has ended as failed: drop it and call task_next.",
  node_draining: "Finish what you hold; node_update {drain: false} ends the drain.",
  node_not_found: "node_list shows the nodes.",
  message_not_found: "mail_check shows the messages that wait for you.",
  not_your_message: "Acknowledge only what mail_check showed to you.",
  file_not_found: "Check the file_id: task_get shows the files of a task.",
  key_bound_to_other_node: "Your key may not do this for another node: ask the operator of the hub.",
  key_not_bound: "Ask the operator of the hub for a key of your node.",
  task_files_limit: "Put several files into one archive.",
  outcome_unknown: "Check with task_get or task_list whether it took effect before you call again.",
};

/** A refusal: what is wrong, and what to do next, which is a tool and no endpoint of HTTP. */
export function refusalText(problem: JsonObject): string {
  const code = String(problem["error"]);
  const detail = String(problem["detail"]);
  const advice = ADVICE[code];
  if (advice === undefined) return `${code}: ${detail}`;
  const sentences = detail.split(/(?<=\.) /).filter((sentence) => !sentence.includes("/api/v1/"));
  return [`${code}:`, ...sentences, advice].join(" ");
}
