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
  /** Messages that nobody has confirmed; null if the key may not know. */
  readonly deadLetters: number | null;
  /** Webhooks that the hub no longer delivers, because their receivers failed. */
  readonly webhooksSuspended: number;
};

/** So many failures, and such a part of what ended, are worth a look. */
const FAILED_MIN = 5;
const FAILED_PART = 0.1;

/** At least one: that nothing is wrong is a finding too. The worst comes first. */
export function findingsOf(facts: Facts): readonly Finding[] {
  const { open, running, nodesOnline, nodesDraining, done, failed, deadLetters } = facts;
  const found: Finding[] = [];
  const openTasks = { words: "Show them", view: "tasks", query: { status: "ready" } };
  if (!facts.isOnline) {
    found.push({
      tone: "bad",
      what: "The hub cannot be reached.",
      why: "What is below may be old.",
      link: null,
    });
  }
  if (!facts.canWrite) {
    const why = "It serves reads, refuses changes, and tries again each second. Its log says why.";
    found.push({ tone: "bad", what: "The hub cannot write.", why, link: null });
  }
  if (facts.paused.length > 0) {
    const why = "What runs goes on; nothing more of it is handed out.";
    found.push({ tone: "wait", what: `Paused: ${facts.paused.join(", ")}.`, why, link: null });
  }
  if (open > 0 && nodesOnline === 0) {
    const why = "No node is online.";
    found.push({
      tone: "bad",
      what: `${manyOf(open, "task")} ${open === 1 ? "waits" : "wait"}.`,
      why,
      link: openTasks,
    });
  } else if (open > 0 && nodesOnline === nodesDraining) {
    const link = { words: "Show the nodes", view: "nodes", query: { status: "draining" } };
    const why = "Every node that is online drains.";
    found.push({ tone: "bad", what: `${manyOf(open, "task")} ${open === 1 ? "waits" : "wait"}.`, why, link });
  } else {
    const stuck = [...withoutNodes(facts.types), ...withoutAbilities(facts)];
    const why = "Nodes are online, but none has taken a task in the last hour.";
    const idle: Finding = {
      tone: "wait",
      what: `${manyOf(open, "task")} open, and none runs.`,
      why,
      link: openTasks,
    };
    found.push(...(stuck.length === 0 && open > 0 && running === 0 && done === 0 ? [idle] : stuck));
  }
  if (failed >= FAILED_MIN && failed > FAILED_PART * (done + failed)) {
    const part = `${((100 * failed) / (done + failed)).toFixed(1)} % of what has ended.`;
    const link = { words: "Show them", view: "tasks", query: { status: "failed", last: "3600" } };
    found.push({ tone: "bad", what: `${manyOf(failed, "task")} failed in the last hour.`, why: part, link });
  }
  if (facts.diskWarning !== null)
    found.push({ tone: "wait", what: "The disk fills up.", why: facts.diskWarning, link: null });
  if (deadLetters !== null && deadLetters > 0) {
    const what = `${manyOf(deadLetters, "message")} ${deadLetters === 1 ? "was" : "were"} never confirmed.`;
    const link = { words: "Show the dead letters", view: "messages", query: { parked: "yes" } };
    found.push({ tone: "wait", what, why: "", link });
  }
  const { webhooksSuspended: hooks } = facts;
  if (hooks > 0) {
    const what = `${manyOf(hooks, "webhook")} ${hooks === 1 ? "is" : "are"} suspended.`;
    const link = { words: "Show the webhooks", view: "control", query: {} };
    found.push({ tone: "wait", what, why: "Their receivers have failed for too long.", link });
  }
  if (found.length > 0) return found;
  const now = running === 0 ? "Nothing runs" : `${manyOf(running, "task")} ${running === 1 ? "runs" : "run"}`;
  const waiting = open === 0 ? "nothing waits for a node" : `${countOf(open)} wait for their turn`;
  return [{ tone: "good", what: "All is well.", why: `${now}, ${waiting}.`, link: null }];
}

/** A sentence names one type, and counts the others. */
function withoutNodes(types: readonly TypeFacts[]): readonly Finding[] {
  const stuck = types.filter(({ open, nodesOnline }) => open > 0 && nodesOnline === 0);
  const [first, ...others] = stuck.toSorted((a, b) => b.open - a.open);
  if (first === undefined) return [];
  const { type, nodesRegistered, oldestS } = first;
  const open = stuck.reduce((sum, one) => sum + one.open, 0);
  const name = type === null ? "Tasks without a type" : `Type “${type}”`;
  const why =
    nodesRegistered === 0
      ? "no node has this capability"
      : nodesRegistered === 1
        ? "the node that can is offline"
        : `the ${countOf(nodesRegistered)} nodes that can are offline`;
  const more =
    others.length === 0 ? "" : ` The same for ${others.map((one) => one.type ?? "no type").join(", ")}.`;
  const age = oldestS === null ? "" : ` The oldest waits for ${durationOf(oldestS)}.`;
  return [
    {
      tone: "bad",
      what: `${manyOf(open, "task")} ${open === 1 ? "has" : "have"} no node that can take ${open === 1 ? "it" : "them"}.`,
      why: `${name}: ${why}.${age}${more}`,
      link: { words: "Show them", view: "tasks", query: { status: "ready", ...(type !== null && { type }) } },
    },
  ];
}

/** Tasks of a type that online nodes take, but that require more than these have. */
function withoutAbilities({ types, stuck }: Facts): readonly Finding[] {
  const untaken = new Set(types.flatMap(({ type, nodesOnline }) => (nodesOnline === 0 ? [type] : [])));
  const lanes = stuck.filter(({ type }) => !untaken.has(type));
  const [first] = lanes;
  if (first === undefined) return [];
  const { missing, nodesRegistered: able, oldestS, taskId } = first;
  const open = lanes.reduce((sum, lane) => sum + lane.open, 0);
  const why =
    missing !== null
      ? `The node that comes closest lacks ${missing}.`
      : able === 1
        ? "The node that can is offline."
        : `The ${countOf(able)} nodes that can are offline.`;
  const age = oldestS === null ? "" : ` The oldest waits for ${durationOf(oldestS)}.`;
  return [
    {
      tone: "bad",
      what: `${manyOf(open, "task")} ${open === 1 ? "requires" : "require"} what no online node has.`,
      why: `${why}${age}`,
      link: taskId === null ? null : { words: "Show the first", view: "tasks", id: taskId, query: {} },
    },
  ];
}
