/** What is wrong with the hub, in sentences with a link to where it can be put right. Pure. */
import { countOf, durationOf, manyOf } from "./numbers.ts";

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

type TypeFacts = {
  readonly type: string | null;
  readonly open: number;
  readonly oldestS: number | null;
  readonly nodesOnline: number;
  readonly nodesRegistered: number;
};

type StuckFacts = {
  readonly type: string | null;
  readonly open: number;
  readonly oldestS: number | null;
  readonly nodesRegistered: number;
  /** What the closest node lacks; null: nothing, or there is no node. */
  readonly missing: string | null;
  readonly taskId: string | null;
};

export type Facts = {
  readonly isOnline: boolean;
  readonly canWrite: boolean;
  readonly diskWarning: string | null;
  readonly paused: readonly string[];
  readonly open: number;
  readonly running: number;
  readonly nodesOnline: number;
  readonly nodesDraining: number;
  readonly types: readonly TypeFacts[];
  readonly stuck: readonly StuckFacts[];
  /** In the last hour. */
  readonly done: number;
  readonly failed: number;
  readonly deadLetters: number | null;
  readonly webhooksSuspended: number;
};

/** So many failures, and such a part of what ended, are worth a look. */
const FAILED_MIN = 5;
const FAILED_PART = 0.1;

function say(tone: Finding["tone"], what: string, why: string, link: Link | null = null): Finding {
  return { tone, what, why, link };
}

function saysOf(count: number, one: string, many: string): string {
  return `${countOf(count)} ${count === 1 ? one : many}`;
}

function linkTo(words: string, view: string, query: Link["query"] = {}): Link {
  return { words, view, query };
}

export function findingsOf(facts: Facts): readonly Finding[] {
  const { open, running, nodesOnline, nodesDraining, done, failed, webhooksSuspended: hooks } = facts;
  const deadLetters = facts.deadLetters ?? 0;
  const openTasks = linkTo("Show them", "tasks", { status: "ready" });
  const waiting = `${saysOf(open, "task waits", "tasks wait")}.`;
  const findings: Finding[] = [];
  if (!facts.isOnline) findings.push(say("bad", "The hub cannot be reached.", "What is below may be old."));
  if (!facts.canWrite) {
    const why = "It serves reads, refuses changes, and tries again each second. Its log says why.";
    findings.push(say("bad", "The hub cannot write.", why));
  }
  if (facts.paused.length > 0) {
    const why = "What runs goes on; nothing more of it is handed out.";
    findings.push(say("wait", `Paused: ${facts.paused.join(", ")}.`, why));
  }
  if (open > 0 && nodesOnline === 0) findings.push(say("bad", waiting, "No node is online.", openTasks));
  else if (open > 0 && nodesOnline === nodesDraining) {
    const link = linkTo("Show the nodes", "nodes", { status: "draining" });
    findings.push(say("bad", waiting, "Every node that is online drains.", link));
  } else {
    const stuck = [...withoutNodes(facts.types), ...withoutAbilities(facts)];
    const why = "Nodes are online, but none has taken a task in the last hour.";
    const idle = say("wait", `${manyOf(open, "task")} open, and none runs.`, why, openTasks);
    findings.push(...(stuck.length === 0 && open > 0 && running === 0 && done === 0 ? [idle] : stuck));
  }
  const part = failed / (done + failed);
  if (failed >= FAILED_MIN && part > FAILED_PART) {
    const why = `${(100 * part).toFixed(1)} % of what has ended.`;
    const link = linkTo("Show them", "tasks", { status: "failed", last: "3600" });
    findings.push(say("bad", `${manyOf(failed, "task")} failed in the last hour.`, why, link));
  }
  if (facts.diskWarning !== null) findings.push(say("wait", "The disk fills up.", facts.diskWarning));
  if (deadLetters > 0) {
    const what = `${saysOf(deadLetters, "message was", "messages were")} never acknowledged.`;
    findings.push(say("wait", what, "", linkTo("Show the dead letters", "messages", { parked: "yes" })));
  }
  if (hooks > 0) {
    const what = `${saysOf(hooks, "webhook is", "webhooks are")} suspended.`;
    const why = "Their receivers have failed for too long.";
    findings.push(say("wait", what, why, linkTo("Show the webhooks", "control")));
  }
  if (findings.length > 0) return findings;
  const now = running === 0 ? "Nothing runs" : saysOf(running, "task runs", "tasks run");
  const turn = open === 0 ? "nothing waits for a node" : `${countOf(open)} wait for their turn`;
  return [say("good", "All is well.", `${now}, ${turn}.`)];
}

function oldestOf({ oldestS }: { readonly oldestS: number | null }): string {
  return oldestS === null ? "" : ` The oldest waits for ${durationOf(oldestS)}.`;
}

function offlineOf(count: number): string {
  return count === 1 ? "the node that can is offline" : `the ${countOf(count)} nodes that can are offline`;
}

function withoutNodes(types: readonly TypeFacts[]): readonly Finding[] {
  const stuck = types.filter(({ open, nodesOnline }) => open > 0 && nodesOnline === 0);
  const [first, ...others] = stuck.toSorted((a, b) => b.open - a.open);
  if (first === undefined) return [];
  const { type, nodesRegistered: able } = first;
  const open = stuck.reduce((sum, type) => sum + type.open, 0);
  const name = type === null ? "Tasks without a type" : `Type “${type}”`;
  const why = able === 0 ? "no node has this capability" : offlineOf(able);
  const names = others.map(({ type }) => type ?? "no type").join(", ");
  const alike = names && ` The same for ${names}.`;
  const what = `${saysOf(open, "task has no node that can take it", "tasks have no node that can take them")}.`;
  const query = { status: "ready", ...(type !== null && { type }) };
  return [
    say("bad", what, `${name}: ${why}.${oldestOf(first)}${alike}`, linkTo("Show them", "tasks", query)),
  ];
}

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
