/** What is wrong with the hub, and what holds its tasks back, as lines with one action each. Pure. */
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { countOf, manyOf } from "./numbers.ts";

type Link = {
  readonly words: string;
  readonly view: string;
  readonly query: Readonly<Record<string, string>>;
};

export type Held = AnswerOf<"stats/types", Variant>["held"][number];

export type Finding = {
  /** `bad`: something is broken; `wait`: something needs somebody; `quiet`: it ends by itself. */
  readonly tone: "bad" | "wait" | "quiet" | "good";
  /** How many, as a link to their list. */
  readonly count: Link | null;
  readonly what: string;
  readonly why: string;
  readonly since: string | null;
  readonly link: Link | null;
};

export type Facts = {
  readonly isOnline: boolean;
  readonly canWrite: boolean;
  readonly diskWarning: string | null;
  readonly held: readonly Held[];
  readonly free: number;
  readonly running: number;
  /** Whether the caller may open a page. */
  readonly opens: (view: string) => boolean;
  /** In the last hour. */
  readonly done: number;
  readonly failed: number;
  readonly questions: number;
  readonly reviews: number;
  readonly deadLetters: number;
  readonly webhooksSuspended: number;
};

/** So many failures, and such a part of what ended, are worth a look. */
const FAILED_MIN = 5;
const FAILED_PART = 0.1;
/** Types that a line names. */
const NAMED = 4;

type Code = Held["code"];

/** What holds tasks back, and where a person can change that; without a view only their list can be shown. */
const HELD: Readonly<Record<Code, readonly [Finding["tone"], what: string, view?: string, words?: string]>> =
  {
    no_node: ["bad", "no node takes them"],
    nodes_offline: ["bad", "the nodes that take them are offline", "nodes", "Show the nodes"],
    nodes_draining: ["bad", "the nodes that take them drain", "nodes", "Show the nodes"],
    budget: ["bad", "budget used up", "cost", "Show the budgets"],
    paused: ["wait", "paused", "control", "Resume …"],
    limit: ["wait", "at a limit", "control", "Change the limit"],
    rate: ["wait", "at a rate, or held", "control", "Change the limit"],
    question: ["wait", "wait for an answer", "inbox", "Open the inbox"],
    depends_on: ["quiet", "wait for other tasks"],
    quorum: ["quiet", "wait for their copies"],
    not_before: ["quiet", "wait for their time, or after a failure"],
  };

export const HELD_WORDS: readonly (readonly [Code, string])[] = Object.entries(HELD).map(
  ([code, [, what]]) => [code as Code, what] as const,
);

const NODES: Readonly<Record<string, string>> = { nodes_offline: "offline", nodes_draining: "draining" };

function linkTo(words: string, view: string, query: Link["query"] = {}): Link {
  return { words, view, query };
}

function say(finding: Partial<Finding> & Pick<Finding, "tone" | "what">): Finding {
  return { count: null, why: "", since: null, link: null, ...finding };
}

/** The types of the causes, and the first of the sentences. */
function causesOf({ causes }: Held): string {
  const types = causes.flatMap(({ task_type, count }) =>
    task_type === null ? [] : [`${task_type} ${countOf(count)}`],
  );
  const more = types.length > NAMED ? " …" : "";
  const sentence = causes.find(({ detail }) => detail !== null)?.detail ?? "";
  return [types.slice(0, NAMED).join(", ") + more, sentence].filter(Boolean).join(". ");
}

function lineOf(held: Held, opens: Facts["opens"]): Finding {
  const { code, count, exact, oldest_at: since } = held;
  const [tone, what, view, words] = HELD[code];
  const listed = linkTo(`${countOf(count)}${exact ? "" : "+"}`, "tasks", { status: code });
  const nodes = NODES[code];
  const link =
    view !== undefined && words !== undefined && opens(view)
      ? linkTo(words, view, nodes === undefined ? {} : { status: nodes })
      : null;
  return say({
    tone,
    count: listed,
    what,
    why: causesOf(held),
    since,
    link: link ?? { ...listed, words: "Show them" },
  });
}

const TONES: readonly Finding["tone"][] = ["bad", "wait", "quiet", "good"];

export function findingsOf(facts: Facts): readonly Finding[] {
  const { free, running, done, failed, deadLetters, questions, reviews, webhooksSuspended: hooks } = facts;
  const findings: Finding[] = [];
  if (!facts.isOnline)
    findings.push(say({ tone: "bad", what: "The hub cannot be reached", why: "What is below may be old." }));
  if (!facts.canWrite) {
    const why = "It serves reads, refuses changes, and tries again each second. Its log says why.";
    findings.push(say({ tone: "bad", what: "The hub cannot write", why }));
  }
  findings.push(...facts.held.map((held) => lineOf(held, facts.opens)));
  const part = failed / (done + failed);
  if (failed >= FAILED_MIN && part > FAILED_PART) {
    const count = linkTo(countOf(failed), "tasks", { status: "failed", last: "3600" });
    const why = `${(100 * part).toFixed(1)} % of what has ended`;
    const link = { ...count, words: "Show them" };
    findings.push(say({ tone: "bad", count, what: "failed in the last hour", why, link }));
  }
  if (free > 0 && running === 0 && done === 0) {
    const count = linkTo(countOf(free), "tasks", { status: "ready" });
    const why = "Nodes are online, but none has taken a task in the last hour.";
    findings.push(say({ tone: "wait", count, what: "could run, and none does", why }));
  }
  if (questions + reviews > 0) {
    const count = linkTo(countOf(questions + reviews), "inbox");
    const why = [
      questions > 0 && manyOf(questions, "question"),
      reviews > 0 && `${manyOf(reviews, "result")} in review`,
    ];
    const link = { ...count, words: "Open the inbox" };
    findings.push(
      say({ tone: "wait", count, what: "wait for a person", why: why.filter(Boolean).join(", "), link }),
    );
  }
  if (deadLetters > 0) {
    const count = linkTo(countOf(deadLetters), "messages", { parked: "yes" });
    findings.push(
      say({
        tone: "wait",
        count,
        what: "dead letters",
        why: "never acknowledged",
        link: { ...count, words: "Show them" },
      }),
    );
  }
  if (facts.diskWarning !== null)
    findings.push(say({ tone: "wait", what: "The disk fills up", why: facts.diskWarning }));
  if (hooks > 0) {
    const link = linkTo("Show the webhooks", "control");
    const what = `${manyOf(hooks, "webhook")} suspended`;
    findings.push(say({ tone: "wait", what, why: "Their receivers have failed for too long.", link }));
  }
  if (findings.length > 0) return findings.toSorted((a, b) => TONES.indexOf(a.tone) - TONES.indexOf(b.tone));
  const now = running === 0 ? "Nothing runs" : `${manyOf(running, "task")} running`;
  const turn = free === 0 ? "nothing waits" : `${countOf(free)} in line`;
  return [say({ tone: "good", what: "All is well", why: `${now}, ${turn}.` })];
}
