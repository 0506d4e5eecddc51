/** What is wrong with the hub, and what holds its tasks back, as lines with one action each. Pure. */
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { countOf, durationOf, manyOf } from "./numbers.ts";

type Link = {
  readonly words: string;
  readonly view: string;
  readonly query: Readonly<Record<string, string>>;
};

export type Held = AnswerOf<"stats/types", Variant>["held"][number];

/** The part of the hub in a pair; undefined: there is no second copy. */
export type Copy = AnswerOf<"status", Variant>["copy"];

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
  readonly copy: Copy;
};

/** So many failures, and such a part of what ended, are worth a look. */
const FAILED_MIN = 5;
const FAILED_PART = 0.1;
/** Types that a line names. */
const NAMED = 4;

type Code = Held["code"];

/** What holds tasks back, and where a person can change that; without a page their list is shown. */
const HELD: readonly (readonly [Code, Finding["tone"], what: string, link?: Link])[] = [
  ["no_node", "bad", "no node takes them"],
  [
    "nodes_offline",
    "bad",
    "the nodes that take them are offline",
    linkTo("Show the nodes", "nodes", { status: "offline" }),
  ],
  [
    "nodes_draining",
    "bad",
    "the nodes that take them drain",
    linkTo("Show the nodes", "nodes", { status: "draining" }),
  ],
  ["budget", "bad", "budget used up", linkTo("Show the budgets", "cost")],
  ["paused", "wait", "paused", linkTo("Resume …", "control")],
  ["limit", "wait", "at a limit", linkTo("Change the limit", "control")],
  ["rate", "wait", "at a rate, or held", linkTo("Change the limit", "control")],
  ["question", "wait", "wait for an answer", linkTo("Open the inbox", "inbox")],
  ["depends_on", "quiet", "wait for other tasks"],
  ["quorum", "quiet", "wait for their copies"],
  ["not_before", "quiet", "wait for their time, or after a failure"],
];

export const HELD_WORDS = HELD.map(([code, , what]) => [code, what] as const);

export function toneOf(code: Code): Finding["tone"] {
  return HELD.find(([word]) => word === code)?.[1] ?? "quiet";
}

function linkTo(words: string, view: string, query: Link["query"] = {}): Link {
  return { words, view, query };
}

/** A line without an action of its own leads to its list. */
function line(
  tone: Finding["tone"],
  what: string,
  why: string,
  count: Link | null = null,
  link: Link | null = count && { ...count, words: "Show them" },
): Finding {
  return { tone, count, what, why, since: null, link };
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

function heldLine(held: Held, opens: Facts["opens"]): Finding {
  const [code, tone, what, change] = HELD.find(([word]) => word === held.code) ?? [
    held.code,
    "quiet",
    held.code,
  ];
  const list = linkTo(`${countOf(held.count)}${held.exact ? "" : "+"}`, "tasks", { status: code });
  const action = change && opens(change.view) ? change : undefined;
  return { ...line(tone, what, causesOf(held), list, action), since: held.oldest_at };
}

type Standby = NonNullable<Copy>["standbys"][number];

export function lagOf({ lag_entries: lag, lag_s }: Standby): string {
  return `${lag === 1 ? "1 entry" : `${countOf(lag)} entries`}, ${durationOf(lag_s)}`;
}

/** What a person must know of the second copy: of a first hub only what is wrong. */
function copyLines(copy: Copy, opens: Facts["opens"]): readonly Finding[] {
  if (copy === undefined) return [];
  const { role, term, standbys } = copy;
  const first = copy.hub ?? "another hub";
  if (role === "superseded") {
    const how = "To make this hub its standby: stop it, luxhub join --data DIR, luxhub serve.";
    return [line("bad", "This hub was superseded", `${first} accepts writes. ${how}`)];
  }
  return standbys.flatMap((standby) => {
    const { name, following, since, fault } = standby;
    const control = (words: string): Link | null => (opens("control") ? linkTo(words, "control") : null);
    const sayAs = (...[tone, what, why]: [Finding["tone"], string, string]): Finding => ({
      ...line(tone, what, why, null, control(role === "standby" ? "Promote …" : "Show the copy")),
      since,
    });
    if (role === "standby" && fault !== null)
      return sayAs(
        "bad",
        "This standby does not follow",
        `What you see of ${first} is ${durationOf(standby.lag_s)} old. ${fault}`,
      );
    if (role === "standby") {
      const lag = following ? `lag: ${lagOf(standby)}` : "it begins to follow";
      return sayAs("quiet", "This hub is a standby", `of ${first}, which accepts writes; ${lag}`);
    }
    if (since === null) {
      const before = term > 1 ? ", or luxhub join --data DIR on that of the first before" : "";
      const how = `Run its line on its machine${before}; then luxhub serve.`;
      return sayAs("wait", `The standby ${name} has not followed yet`, how);
    }
    const lost = `Without this hub you would lose what it lacks: ${lagOf(standby)}.`;
    return following ? [] : sayAs("bad", `The standby ${name} does not follow`, lost);
  });
}

/** What ends by itself is one line. */
function quietly(lines: readonly Finding[]): readonly Finding[] {
  const quiet = lines.filter(({ tone }) => tone === "quiet");
  if (quiet.length < 2) return lines;
  const parts = quiet.map(({ what, count }) => `${count?.words} ${what}`);
  return [
    ...lines.filter(({ tone }) => tone !== "quiet"),
    line("quiet", "wait, and need nobody", parts.join(", ")),
  ];
}

const TONES: readonly Finding["tone"][] = ["bad", "wait", "quiet", "good"];

export function findingsOf(facts: Facts): readonly Finding[] {
  const { free, running, done, failed, deadLetters, questions, reviews, webhooksSuspended: hooks } = facts;
  const inbox = linkTo(countOf(questions + reviews), "inbox");
  const waits = [
    questions > 0 && manyOf(questions, "question"),
    reviews > 0 && `${manyOf(reviews, "result")} in review`,
  ];
  const part = failed / (done + failed);
  // The line of the inbox tells of them.
  const isTold = ({ code }: Held): boolean => code !== "question" || questions === 0;
  const held = quietly(facts.held.filter(isTold).map((reason) => heldLine(reason, facts.opens)));
  const findings: readonly (Finding | false)[] = [
    !facts.isOnline && line("bad", "The hub cannot be reached", "What is below may be old."),
    !facts.canWrite &&
      line("bad", "The hub cannot write", "It serves reads, and tries again each second. Its log says why."),
    ...copyLines(facts.copy, facts.opens),
    ...held,
    failed >= FAILED_MIN &&
      part > FAILED_PART &&
      line(
        "bad",
        "failed in the last hour",
        `${(100 * part).toFixed(1)} % of what has ended`,
        linkTo(countOf(failed), "tasks", { status: "failed", last: "3600" }),
      ),
    free > 0 &&
      running === 0 &&
      done === 0 &&
      line(
        "wait",
        "could run, and none does",
        "Nodes are online, but none has taken a task in the last hour.",
        linkTo(countOf(free), "tasks", { status: "ready" }),
      ),
    questions + reviews > 0 &&
      line("wait", "wait for a person", waits.filter(Boolean).join(", "), inbox, {
        ...inbox,
        words: "Open the inbox",
      }),
    deadLetters > 0 &&
      line(
        "wait",
        "dead letters",
        "never acknowledged",
        linkTo(countOf(deadLetters), "messages", { parked: "yes" }),
      ),
    facts.diskWarning !== null && line("wait", "The disk fills up", facts.diskWarning),
    hooks > 0 &&
      line(
        "wait",
        `${manyOf(hooks, "webhook")} suspended`,
        "Their receivers have failed for too long.",
        null,
        linkTo("Show the webhooks", "control"),
      ),
  ];
  const lines = findings.filter((finding) => finding !== false);
  if (lines.length > held.length || held.some(({ tone }) => tone !== "quiet"))
    return lines.toSorted((a, b) => TONES.indexOf(a.tone) - TONES.indexOf(b.tone));
  const now = running === 0 ? "Nothing runs" : `${manyOf(running, "task")} running`;
  return [
    line("good", "All is well", `${now}, ${free === 0 ? "none in line" : `${countOf(free)} in line`}.`),
    ...held,
  ];
}
