/** What is wrong with the hub, in sentences with a link to where it can be put right. Pure. */
import { countOf, durationOf, manyOf } from "./numbers.ts";

/** To a view, with its filters. */
type Link = {
  readonly words: string;
  readonly view: string;
  readonly id?: string;
  readonly query: Readonly<Record<string, string>>;
};

export type Finding = {
  /** `bad`: something is broken; `wait`: something needs somebody; `good`: nothing is wrong. */
  readonly tone: "bad" | "wait" | "good";
  readonly what: string;
  readonly why: string;
  readonly link: Link | null;
};

export type TypeFacts = {
  /** Null: tasks without a type. */
  readonly type: string | null;
  readonly open: number;
  /** How long the oldest open task has waited; null without any. */
  readonly oldestS: number | null;
  readonly nodesOnline: number;
  readonly nodesRegistered: number;
};

/** Open tasks that require what no online node has. */
export type StuckFacts = {
  readonly type: string | null;
  readonly open: number;
  readonly oldestS: number | null;
  /** Offline nodes that have it. */
  readonly nodesRegistered: number;
  /** What the closest node lacks; null: nothing, or there is no node. */
  readonly missing: string | null;
  readonly taskId: string | null;
};

export type Facts = {
  readonly isOnline: boolean;
  readonly canWrite: boolean;
  /** What the hub says about its disk. */
  readonly diskWarning: string | null;
  /** What is paused, in words. */
  readonly paused: readonly string[];
  readonly open: number;
  readonly running: number;
  readonly nodesOnline: number;
  readonly nodesDraining: number;
  /** The types of tasks, and the nodes for them. */
  readonly types: readonly TypeFacts[];
  readonly stuck: readonly StuckFacts[];
  /** In the last hour. */
  readonly done: number;
  readonly failed: number;
  /** Messages that nobody has acknowledged; null if the key may not know. */
  readonly deadLetters: number | null;
  /** Webhooks that the hub no longer delivers, because their receivers failed. */
  readonly webhooksSuspended: number;
};

/** So many failures, and such a part of what ended, are worth a look. */
const FAILED_MIN = 5;
const FAILED_PART = 0.1;

/** A finding; what has no link can be put right only outside the dashboard. */
function say(tone: Finding["tone"], what: string, why: string, link: Link | null = null): Finding {
  return { tone, what, why, link };
}

/** `1 task waits`, `2 tasks wait`. */
function saysOf(count: number, one: string, many: string): string {
  return `${countOf(count)} ${count === 1 ? one : many}`;
}

function linkTo(words: string, view: string, query: Link["query"] = {}): Link {
  return { words, view, query };
}

/** At least one: that nothing is wrong is a finding too. */
export function findingsOf(facts: Facts): readonly Finding[] {
  const { open, running, nodesOnline, nodesDraining, done, failed, webhooksSuspended: hooks } = facts;
  const deadLetters = facts.deadLetters ?? 0;
  const openTasks = linkTo("Show them", "tasks", { status: "ready" });
  const waiting = `${saysOf(open, "task waits", "tasks wait")}.`;
  const found: Finding[] = [];
  if (!facts.isOnline) found.push(say("bad", "The hub cannot be reached.", "What is below may be old."));
  if (!facts.canWrite) {
    const why = "It serves reads, refuses changes, and tries again each second. Its log says why.";
    found.push(say("bad", "The hub cannot write.", why));
  }
  if (facts.paused.length > 0) {
    const why = "What runs goes on; nothing more of it is handed out.";
    found.push(say("wait", `Paused: ${facts.paused.join(", ")}.`, why));
  }
  if (open > 0 && nodesOnline === 0) found.push(say("bad", waiting, "No node is online.", openTasks));
  else if (open > 0 && nodesOnline === nodesDraining) {
    const link = linkTo("Show the nodes", "nodes", { status: "draining" });
    found.push(say("bad", waiting, "Every node that is online drains.", link));
  } else {
    const stuck = [...withoutNodes(facts.types), ...withoutAbilities(facts)];
    const why = "Nodes are online, but none has taken a task in the last hour.";
    const idle = say("wait", `${manyOf(open, "task")} open, and none runs.`, why, openTasks);
    found.push(...(stuck.length === 0 && open > 0 && running === 0 && done === 0 ? [idle] : stuck));
  }
  const part = failed / (done + failed);
  if (failed >= FAILED_MIN && part > FAILED_PART) {
    const why = `${(100 * part).toFixed(1)} % of what has ended.`;
    const link = linkTo("Show them", "tasks", { status: "failed", last: "3600" });
    found.push(say("bad", `${manyOf(failed, "task")} failed in the last hour.`, why, link));
  }
  if (facts.diskWarning !== null) found.push(say("wait", "The disk fills up.", facts.diskWarning));
  if (deadLetters > 0) {
    const what = `${saysOf(deadLetters, "message was", "messages were")} never acknowledged.`;
    found.push(say("wait", what, "", linkTo("Show the dead letters", "messages", { parked: "yes" })));
  }
  if (hooks > 0) {
    const what = `${saysOf(hooks, "webhook is", "webhooks are")} suspended.`;
    const why = "Their receivers have failed for too long.";
    found.push(say("wait", what, why, linkTo("Show the webhooks", "control")));
  }
  if (found.length > 0) return found;
  const now = running === 0 ? "Nothing runs" : saysOf(running, "task runs", "tasks run");
  const turn = open === 0 ? "nothing waits for a node" : `${countOf(open)} wait for their turn`;
  return [say("good", "All is well.", `${now}, ${turn}.`)];
}

function oldestOf({ oldestS }: { readonly oldestS: number | null }): string {
  return oldestS === null ? "" : ` The oldest waits for ${durationOf(oldestS)}.`;
}

/** "the node that can is offline" */
function offlineOf(count: number): string {
  return count === 1 ? "the node that can is offline" : `the ${countOf(count)} nodes that can are offline`;
}

/** A sentence names one type, and counts the others. */
function withoutNodes(types: readonly TypeFacts[]): readonly Finding[] {
  const stuck = types.filter(({ open, nodesOnline }) => open > 0 && nodesOnline === 0);
  const [first, ...others] = stuck.toSorted((a, b) => b.open - a.open);
  if (first === undefined) return [];
  const { type, nodesRegistered: able } = first;
  const open = stuck.reduce((sum, one) => sum + one.open, 0);
  const name = type === null ? "Tasks without a type" : `Type “${type}”`;
  const why = able === 0 ? "no node has this capability" : offlineOf(able);
  const names = others.map((one) => one.type ?? "no type").join(", ");
  const more = names && ` The same for ${names}.`;
  const what = `${saysOf(open, "task has no node that can take it", "tasks have no node that can take them")}.`;
  const query = { status: "ready", ...(type !== null && { type }) };
  return [say("bad", what, `${name}: ${why}.${oldestOf(first)}${more}`, linkTo("Show them", "tasks", query))];
}

/** Tasks of a type that online nodes take, but that require more than these have. */
function withoutAbilities({ types, stuck }: Facts): readonly Finding[] {
  const untaken = new Set(types.flatMap(({ type, nodesOnline }) => (nodesOnline === 0 ? [type] : [])));
  const lanes = stuck.filter(({ type }) => !untaken.has(type));
  const [first] = lanes;
  if (first === undefined) return [];
  const { missing, nodesRegistered: able, taskId: id } = first;
  const open = lanes.reduce((sum, lane) => sum + lane.open, 0);
  const closest =
    missing === null ? `T${offlineOf(able).slice(1)}` : `The node that comes closest lacks ${missing}`;
  const what = `${saysOf(open, "task requires", "tasks require")} what no online node has.`;
  const link = id === null ? null : { ...linkTo("Show the first", "tasks"), id };
  return [say("bad", what, `${closest}.${oldestOf(first)}`, link)];
}
