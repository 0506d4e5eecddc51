/** Formats values for people: ages, sizes, states, commands to paste. */
import type { Node, Task, TaskSummary, Variant } from "../../client/luxhub.ts";
import { countOf, durationOf, manyOf, numberOf } from "./numbers.ts";
import { timeOf } from "./times.ts";

export { countOf, durationOf, manyOf, numberOf };

export type AnyTask = Task<Variant>;
export type Summary = TaskSummary<Variant>;
export type AnyNode = Node<Variant>;

export function oneOf<T extends string>(words: readonly T[], text: string | undefined): T | undefined {
  return words.find((word) => word === text);
}

/** `3 min`; for a moment that is to come, `in 3 min`. */
export function ageOf(iso: string | null, now: number): string {
  if (iso === null) return "–";
  const seconds = Math.round((now - Date.parse(iso)) / 1_000);
  return seconds < -1 ? `in ${durationOf(-seconds)}` : durationOf(Math.max(0, seconds));
}

export function sizeOf(bytes: number): string {
  for (const [unit, size] of [
    ["GiB", 2 ** 30],
    ["MiB", 2 ** 20],
    ["KiB", 2 ** 10],
  ] as const)
    if (bytes >= size) return `${(bytes / size).toFixed(bytes >= size * 10 ? 0 : 1)} ${unit}`;
  return `${bytes} B`;
}

const CENTS = { minimumFractionDigits: 2, maximumFractionDigits: 2 };

/** The cost of a sum of usage, to the cent: a cost that nobody knows is not zero. */
export function costOf(sum: { readonly cost_usd: number | null; readonly reports: number }): string {
  if (sum.cost_usd === null) return sum.reports === 0 ? "0 USD" : "unknown";
  return sum.cost_usd > 0 && sum.cost_usd < 0.01
    ? "< 0.01 USD"
    : `${sum.cost_usd.toLocaleString("en", CENTS)} USD`;
}

/** Variant B says `pending` of what is open or assigned. */
export function stateOf({
  status,
  assigned_node,
  ready,
}: Pick<Summary, "status" | "assigned_node" | "ready">): string {
  if (status === "pending") return assigned_node !== null ? "assigned" : ready ? "open" : "waiting";
  return status === "open" && !ready ? "waiting" : status;
}

const PRIORITIES = { 0: "high", 1: "medium", 2: "low" } as const;

export function priorityOf({ priority }: Pick<Summary, "priority">): string {
  return typeof priority === "number" ? PRIORITIES[priority] : priority;
}

/** Why a task that is open may not be handed out, or what the node that holds it says; empty: nothing is known. */
export function noteOf(task: Summary): string {
  const { unmet_count, waiting_for, not_before, ready, progress } = task;
  const state = stateOf(task);
  if (state === "assigned") return waiting_for === null ? (progress ?? "") : "waits for an answer";
  if (state !== "waiting") return "";
  if (unmet_count > 0) return `waits for ${unmet_count === 1 ? "a task" : manyOf(unmet_count, "task")}`;
  if (waiting_for !== null) return "waits for an answer";
  return !ready && not_before !== null ? `starts at ${timeOf(not_before)}` : "";
}

export function capabilitiesOf({ capabilities }: AnyNode): readonly string[] {
  return typeof capabilities === "string" ? capabilities.split(",").filter(Boolean) : capabilities;
}

export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A request as a curl command. The secret comes from the environment: what is copied is pasted elsewhere too. */
export function curlOf(path: string, body?: object): string {
  const url = quoted(`${new URL(".", location.href).href}api/v1/${path}`);
  const data = body === undefined ? "" : ` -d ${quoted(JSON.stringify(body))}`;
  return `curl -H "X-Matrix-Secret: $LUXHUB_SECRET" ${url}${data}`;
}

export function commandOf(words: string): string {
  return `luxhub ${words} --url ${quoted(new URL(".", location.href).href)}`;
}
