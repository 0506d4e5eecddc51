/**
 * The fields that the creator of a task sends, each declared once. From this table follow the type TaskTemplate, the
 * requests and the records of the API with their texts, the draft of a task or of a schedule, task/update, and the flags
 * of `luxhub task add`, `task update` and `schedule put`. The order is that of the flags and of the records.
 *
 * Must not: import a schema library, or know how a field is stored (store/sql).
 */
import * as limit from "../limits.ts";
import { SECOND_MS } from "../../lib/clock.ts";

/** What the values of a field are, by name, with the bounds of each. api/task-fields.ts has the JSON of each. */
export type Kinds = {
  /** Not blank, in UTF-16 units. */
  readonly line: { readonly max: number };
  /** Not blank, in bytes of UTF-8. */
  readonly text: { readonly max: number };
  /** "" is none, null in a record. */
  readonly type: unknown;
  readonly node: unknown;
  readonly priority: unknown;
  readonly lux: unknown;
  readonly usd: unknown;
  readonly whole: { readonly min: number; readonly max: number };
  /** Seconds in JSON, milliseconds here. */
  readonly seconds: { readonly min: number; readonly max: number };
  /** A date in JSON, epoch milliseconds here. */
  readonly moment: unknown;
  readonly word: { readonly words: readonly string[] };
  readonly ids: { readonly max: number };
  readonly group: unknown;
  readonly tags: unknown;
  readonly requires: unknown;
  readonly limitKey: unknown;
  readonly reviewer: unknown;
  readonly quorum: unknown;
  readonly traceparent: unknown;
  readonly tracestate: unknown;
};

export type KindOf<I extends keyof Kinds> = { [K in I]: { readonly is: K } & Kinds[K] }[I];
export type Kind = KindOf<keyof Kinds>;

/** How a record shows a field: "always" (null: there is none), or "if set". */
type Shown = "always" | "if set";

export type TaskField = {
  readonly kind: Kind;
  /** Its name in Task; without it the field is a part of something there, or says what to do with the task. */
  readonly key?: string;
  readonly required?: true;
  readonly fallback?: string | number | null | readonly string[];
  /** task/update takes it; "clearable": null takes it away. */
  readonly patch?: "value" | "clearable";
  /** What names a moment, another task, a file or a node is in no schedule. */
  readonly shown?: { readonly schedule?: Shown; readonly task?: Shown; readonly summary?: true };
  /** Not a message of A2A. */
  readonly createOnly?: true;
  readonly text: string;
  /** Where it means something else. */
  readonly texts?: { readonly create?: string; readonly update?: string; readonly task?: string };
  /** The flags of its value, as the help shows them (cli/command.ts): each with its help, and with its words if they are few. */
  readonly flags?: Readonly<Record<string, string | readonly [help: string, words: readonly string[]]>>;
  readonly scheduled?: string;
  readonly updated?: TaskField["flags"];
};

const seconds = (min: number, max: number) => ({ is: "seconds", min, max }) as const;
const line = (max: number) => ({ is: "line", max }) as const;

export const TASK_FIELDS = {
  title: {
    key: "title",
    kind: line(limit.TITLE_MAX_CHARS),
    required: true,
    patch: "value",
    shown: { schedule: "always", task: "always", summary: true },
    text: "What to do, in one line.",
    updated: { "title TEXT": "a new title" },
  },
  description: {
    key: "description",
    kind: { is: "text", max: limit.DESCRIPTION_MAX_BYTES },
    required: true,
    patch: "value",
    shown: { schedule: "always", task: "always" },
    text: "What to do; at most 64 KiB of UTF-8.",
    flags: { "-d description TEXT": "what to do, if the title does not say it all; - reads standard input" },
  },
  task_type: {
    key: "taskType",
    kind: { is: "type" },
    fallback: "",
    shown: { schedule: "always", task: "always", summary: true },
    text: "The hub compares it with the capabilities of nodes. A task without a type fits every node.",
    flags: { "type TYPE": "the type: the capability that a node needs for the task" },
  },
  priority: {
    key: "priority",
    kind: { is: "priority" },
    fallback: 1,
    patch: "value",
    shown: { schedule: "always", task: "always", summary: true },
    text: "The urgency. In requests 0, `p0` or `high` is the first to be handed out; 1, `p1` or `medium` (the default); 2, `p2` or `low`; `p5` is background work.",
    texts: { task: "The urgency." },
    flags: { "priority P": ["p0 (first), p1, p2 or p5; also high, medium, low", ["p0", "p1", "p2", "p5"]] },
  },
  lux_reward: {
    key: "luxRewardMicro",
    kind: { is: "lux" },
    fallback: 0,
    patch: "value",
    shown: { schedule: "always", task: "always", summary: true },
    text: "LUX for the node that completes the task, with at most 6 decimals.",
    texts: { update: "The new reward. To lower a reward, send the administrator key too." },
    flags: { "reward N": "LUX for the node that completes the task" },
    updated: { "reward N": "the new reward; a lower reward needs LUXHUB_ADMIN_KEY" },
  },
  creator_node: {
    key: "creatorNode",
    kind: { is: "node" },
    fallback: null,
    shown: { schedule: "always", task: "always", summary: true },
    text: "The node that created the task; this node need not be registered.",
    flags: { "creator NODE": "the node that creates the task; the event stream of this node shows the task" },
  },
  for_node: {
    kind: { is: "node" },
    createOnly: true,
    text: "Assigns the task to this node, which must be online. The task must be ready. If the node gives the task back or goes offline, other nodes may take the task. With a key of another node the task waits in line for this node.",
    flags: { "for NODE": "assign the task to this node, which must be online" },
  },
  files: {
    kind: { is: "ids", max: limit.FILES_OF_TASK_MAX },
    text: "The ids of uploaded files that belong to no task: the files become inputs of the task in the same commit.",
    flags: { "file FILE…": "upload this file as an input of the task; repeatable" },
  },
  depends_on: {
    kind: { is: "ids", max: limit.DEPENDENCIES_MAX },
    text: "The ids of the tasks that must be completed first.",
    flags: { "after ID…": "start the task after the task ID is completed; repeatable" },
  },
  on_dependency: {
    kind: { is: "word", words: ["fail", "run"] },
    text: "`fail` (if left out): the task fails when a task in `depends_on` fails or is deleted. `run`: the task starts when all tasks in `depends_on` have ended: completed, failed or deleted.",
    flags: {
      "on-dependency fail|run":
        "fail (the default): fail when a task of --after fails; run: start when all of them have ended",
    },
  },
  unique_key: {
    kind: line(limit.UNIQUE_KEY_MAX_CHARS),
    createOnly: true,
    text: "While an unfinished task has this key, task/create makes no other task with the key, and returns the existing task (`deduplicated`).",
    flags: {
      "unique-key KEY": "create no task if an unfinished task has this key, and print the id of that task",
    },
  },
  unique_for_s: {
    kind: seconds(1, limit.TASK_AHEAD_MAX_SECONDS),
    createOnly: true,
    text: "Seconds from the creation for which the task holds its `unique_key`, finished or not.",
    flags: { "unique-for TIME": "how long the task holds its key, finished or not" },
  },
  delay_s: {
    kind: seconds(0, limit.TASK_AHEAD_MAX_SECONDS),
    shown: { schedule: "always" },
    text: "Seconds until the task may be handed out.",
    flags: { "delay TIME": "start the task no sooner than TIME from now, such as 30s or 2h" },
    scheduled: "start each task no sooner than TIME after its time of the schedule",
  },
  not_before: {
    key: "notBefore",
    kind: { is: "moment" },
    patch: "clearable",
    text: "The task is not handed out before this time.",
    texts: {
      update: "The task is not handed out before this time. A time in the past, or null: at once.",
    },
    updated: { "not-before TIME": "the earliest start: a time from now, ISO 8601, or none (at once)" },
  },
  expires_at: {
    key: "expiresAt",
    kind: { is: "moment" },
    patch: "clearable",
    text: "If the task is not completed by this time, the task fails.",
    texts: {
      update: "If the task is not completed by this time, the task fails; null: the task does not expire.",
    },
    flags: { "expires TIME": "when the task fails unless it is completed: a time from now, or ISO 8601" },
    updated: { "expires TIME": "when the tasks fail unless they are completed; none: never" },
  },
  timeout_s: {
    key: "timeoutMs",
    kind: seconds(1, limit.TASK_TIMEOUT_MAX_SECONDS),
    fallback: null,
    shown: { schedule: "always", task: "always" },
    text: "Seconds that a node may hold the task without task/extend or task/complete.",
    flags: { "timeout TIME": "how long a node may hold the task without extending its lease" },
  },
  max_run_s: {
    key: "maxRunMs",
    kind: seconds(1, limit.TASK_RUN_MAX_SECONDS),
    fallback: null,
    shown: { schedule: "always", task: "always" },
    text: "Seconds that one attempt may take in all, extended or not; then the attempt has timed out.",
    flags: { "max-run TIME": "how long one attempt may take, including all extensions" },
  },
  /** 0: until the next sweep. */
  retain_s: {
    key: "retainMs",
    kind: seconds(0, limit.RETAIN_TASK_MAX_SECONDS),
    fallback: null,
    shown: { schedule: "always", task: "if set" },
    text: "Seconds that the hub keeps the task after its end, instead of `--retain-tasks`; only on tasks that were created with it.",
    flags: { "retain TIME": "how long the hub keeps the task after its end (see serve --retain-tasks)" },
  },
  /** This and the next two are the ReviewTerms. */
  review: {
    kind: { is: "reviewer" },
    shown: { schedule: "if set" },
    text: "Who checks the result before the reward is paid: `creator` (without a creator, any node except the worker), `node:<node_id>`, or `capability:<word>`: the hub creates a task of that type for another node.",
    flags: { "review WHO": "who reviews the result: creator, node:ID or capability:WORD" },
  },
  review_within_s: {
    kind: seconds(1, limit.REVIEW_MAX_SECONDS),
    shown: { schedule: "if set" },
    text: "Seconds until the result counts as `on_review_timeout` says; 604,800 (a week) if left out.",
    flags: { "review-within TIME": "how long a result waits for its review (7d)" },
  },
  on_review_timeout: {
    kind: { is: "word", words: ["pay", "reject"] },
    shown: { schedule: "if set" },
    text: "What happens when nobody has reviewed the result in time: `pay` (if left out) or `reject`.",
    flags: {
      "on-review-timeout WORD": [
        "what happens without a review in time: pay (the default) or reject",
        ["pay", "reject"],
      ],
    },
  },
  quorum: {
    kind: { is: "quorum" },
    shown: { schedule: "if set" },
    text: "Several nodes do the task. The task completes when `results` (2 to 9) copies agree. `of` is the maximum number of copies (`results` to 15); if left out, as many as make `results` a majority.",
    flags: {
      "quorum N[/M]":
        "several nodes do the task: N results must agree, of at most M (default: N is a majority of M)",
      "compare WHAT": "which part of the results must agree: output (the default) or json:/POINTER[,…]",
    },
  },
  max_cost_usd: {
    key: "maxCostMicro",
    kind: { is: "usd" },
    fallback: null,
    shown: { schedule: "always", task: "always" },
    text: "Dollars that all attempts of the task together may cost; the attempt that exceeds this amount ends the task permanently (kind `budget`). Null: no limit.",
    flags: { "max-cost USD": "how many dollars all attempts together may cost" },
  },
  /** Null: it has failed after FAILURES_DEFAULT_MAX failures and timeouts. */
  max_attempts: {
    key: "maxAttempts",
    kind: { is: "whole", min: 1, max: limit.ATTEMPTS_MAX },
    fallback: null,
    shown: { schedule: "always", task: "always", summary: true },
    text: "The task fails after this many attempts; by default after 10 failures and timeouts.",
    flags: {
      "max-attempts N": "after how many attempts the task fails permanently (10 failures and timeouts)",
    },
  },
  /** It doubles with each further attempt. */
  backoff_s: {
    key: "backoffMs",
    kind: seconds(0, limit.BACKOFF_MAX_SECONDS),
    fallback: limit.BACKOFF_DEFAULT_SECONDS * SECOND_MS,
    shown: { schedule: "always", task: "always" },
    text: "Seconds from a failed attempt until the task is open again (5 by default); doubles with each attempt, up to an hour.",
    flags: { "backoff TIME": "the delay before the second attempt (5s); doubles with each attempt" },
  },
  group: {
    key: "group",
    kind: { is: "group" },
    fallback: null,
    shown: { schedule: "if set", task: "if set", summary: true },
    text: "The name of the group of tasks; NAME/NODE of a group of a node's keys.",
    texts: {
      create:
        "The group that the task joins. A group exists from its first task on. With a key that is bound to a node, the group is NAME/NODE.",
      task: "The group of the task; only on a task of a group.",
    },
    flags: { "group NAME": "the group of the task" },
    scheduled: "the group of the tasks",
  },
  tags: {
    key: "tags",
    kind: { is: "tags" },
    fallback: [],
    patch: "value",
    shown: { schedule: "if set", task: "if set", summary: true },
    text: "The words by which to find the task; left out if there are none.",
    texts: {
      create: "Up to 16 words by which to find the task, without commas.",
      update: "The new tags of the task, in place of all old tags; `[]`: none.",
    },
    flags: { "tag WORD…": "a word by which to find the task; repeatable" },
    scheduled: "a tag of the tasks; repeatable",
    updated: { "tag WORD…": "a tag that replaces all current tags; repeatable; none: no tags" },
  },
  requires: {
    key: "requires",
    kind: { is: "requires" },
    fallback: null,
    shown: { schedule: "if set", task: "if set" },
    text: "What a node must have to get the task: all words in `capabilities`, and enough of each resource.",
    flags: {
      "requires LIST":
        "what a node must have: words and amounts of resources, such as cuda12,gpu=1,vram_gib=10",
    },
  },
  /** Null: the type. */
  limit_key: {
    key: "limitKey",
    kind: { is: "limitKey" },
    fallback: null,
    patch: "clearable",
    shown: { schedule: "if set", task: "if set" },
    text: "The key whose limit (limit/set) applies to the task; if left out, the `task_type`.",
    texts: { update: "The key whose limit applies to the task; null: its `task_type`." },
    flags: { "limit-key KEY": "the key of the limit; default: the type" },
    updated: { "limit-key KEY": "the key of the limit; none: the type" },
  },
  traceparent: {
    key: "traceparent",
    kind: { is: "traceparent" },
    fallback: null,
    shown: { schedule: "if set", task: "if set" },
    text: "The trace to which the task belongs (W3C Trace Context), which workers and webhooks get; if left out, that of the request's header `traceparent`.",
  },
  tracestate: {
    key: "tracestate",
    kind: { is: "tracestate" },
    fallback: null,
    shown: { schedule: "if set", task: "if set" },
    text: "What tracing systems keep beside `traceparent`.",
  },
} as const satisfies Readonly<Record<string, TaskField>>;

export type TaskFields = typeof TASK_FIELDS;
export type FieldName = keyof TaskFields;
export type FieldsWith<P> = { [N in FieldName]: TaskFields[N] extends P ? N : never }[FieldName];

export type TemplateName = FieldsWith<{ readonly key: string; readonly shown: { readonly schedule: Shown } }>;
export type SummaryName = FieldsWith<{ readonly key: string; readonly shown: { readonly summary: true } }>;
