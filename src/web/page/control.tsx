/** The second copy, pauses, limits of keys, and webhooks. Needs the administrator key. */
import { Fragment, type VNode, h } from "preact";
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { EVENT_KINDS } from "../../domain/event.ts";
import { type Action, type Fields, FormButton, type FormOf, act, deletion, making } from "./action.tsx";
import { Copies, useCopy } from "./copies.tsx";
import { showDialog } from "./dialog.tsx";
import { countOf, numberOf, oneOf } from "./format.ts";
import { List, type ListOf } from "./list.tsx";
import { useLoad, whole } from "./load.ts";
import { Age, Head, Paste, Section, State, Why } from "./parts.tsx";
import { pausedWords } from "./pulse.ts";
import { call } from "./session.ts";

const PAGE = 50;

export function Control(): VNode {
  const { value, error, reload } = useLoad(
    "control",
    async (ask) => {
      const [{ copy }, pauses, limits, hooks] = await Promise.all([
        ask("status", {}),
        whole(
          (place) => ask("hub/pauses", place),
          (page) => page.pauses,
        ),
        whole(
          (place) => ask("limit/list", place),
          (page) => page.limits,
        ),
        ask("webhook/list", { per_page: PAGE }),
      ]);
      return { copy, pauses, limits, hooks };
    },
    /^(?:hub|standby|limit|webhook)\./,
  );
  useCopy(value?.copy, reload);
  return (
    <>
      <Head error={error}>Control</Head>
      {value && (
        <>
          <Copies copy={value.copy} />
          <Pauses pauses={value.pauses} />
          <Limits limits={value.limits} />
          <Webhooks {...value.hooks} />
        </>
      )}
    </>
  );
}

// ---- Pauses

type Pause = AnswerOf<"hub/pauses", Variant>["pauses"][number];

const SCOPES = [
  ["hub", "the whole hub"],
  ["type", "a type"],
  ["limit_key", "a limit key"],
  ["creator", "a creator"],
] as const;

function scopeOf(scope: string, value: string): { type?: string; limit_key?: string; creator_node?: string } {
  if (scope === "type") return { type: value };
  if (scope === "limit_key") return { limit_key: value };
  return scope === "creator" ? { creator_node: value } : {};
}

function resumeOf({ scope, value, reason }: Pause): Action {
  const what = scopeOf(scope, value ?? "");
  return act("resume-hub", "Resume", () => call("hub/resume", what), "It goes on.", {
    undo: () => call("hub/pause", { ...what, reason: reason ?? undefined }),
  });
}

const PAUSES: ListOf<Pause> = {
  label: "Pauses",
  keyOf: pausedWords,
  columns: [
    ["Paused", pausedWords, "names"],
    ["Reason", ({ reason }) => reason, "wide"],
    ["Since", ({ at }) => <Age at={at} />],
  ],
  actions: (pause) => [resumeOf(pause)],
};

function questionOf(scope: string, value: string): string {
  const words = SCOPES.find(([word]) => word === scope)?.[1] ?? scope;
  const what = scope === "hub" ? words : `${words}: ${value || "none"}`;
  return `Pause ${what}? What runs goes on; nothing more of it is handed out.`;
}

function Pauses({ pauses }: { pauses: readonly Pause[] }): VNode {
  return (
    <Section title="Pauses" note={<FormButton label="Pause" name="open-pause" form={pausing} />}>
      <List list={PAUSES} rows={pauses} empty="Nothing is paused." />
    </Section>
  );
}

function pausing(): FormOf {
  return {
    action: act(
      "pause-hub",
      "Pause",
      ({ scope = "hub", value = "", reason }) => call("hub/pause", { ...scopeOf(scope, value), reason }),
      "Paused.",
      {
        look: "primary",
        ask: ({ scope = "hub", value = "" }) => ({ text: questionOf(scope, value), yes: "Pause" }),
        undo: ({ scope = "hub", value = "" }) => call("hub/resume", scopeOf(scope, value)),
      },
    ),
    fields: [
      [
        { name: "scope", label: "Pause", options: SCOPES },
        { name: "value", label: "Which (not for the whole hub)" },
      ],
      { name: "reason", label: "Reason" },
    ],
  };
}

// ---- Limits

type Limit = AnswerOf<"limit/list", Variant>["limits"][number];

function ofMost(now: number, most: number | null): string {
  return most === null ? "any" : `${countOf(now)} of ${countOf(most)}`;
}

const LIMITS: ListOf<Limit> = {
  label: "Limits",
  keyOf: ({ key }) => key,
  columns: [
    ["Key", ({ key }) => key || <i>no type</i>, "names"],
    ["Running", (limit) => ofMost(limit.running_now, limit.running), "number"],
    ["In the last minute", (limit) => ofMost(limit.last_minute, limit.per_minute)],
    ["Held for", (limit) => <Age at={limit.held_until} />],
    ["Held by", (limit) => limit.held_by, "names"],
  ],
  actions: ({ key, running, per_minute }) => [
    deletion(
      "delete-limit",
      `Delete the limit of ${key || "tasks without a type"}?`,
      () => call("limit/delete", { key }),
      {
        undo: () =>
          call("limit/set", { key, running: running ?? undefined, per_minute: per_minute ?? undefined }),
      },
    ),
  ],
};

function Limits({ limits }: { limits: readonly Limit[] }): VNode {
  return (
    <Section title="Limits" note={<FormButton label="Set a limit" name="open-limit" form={limiting} />}>
      <List list={LIMITS} rows={limits} empty="There are no limits." />
    </Section>
  );
}

function limiting(): FormOf {
  return {
    action: act(
      "set-limit",
      "Set",
      ({ key = "", running, per_minute }) =>
        call("limit/set", { key, running: numberOf(running), per_minute: numberOf(per_minute) }),
      "The limit is set.",
      { look: "primary" },
    ),
    fields: [
      { name: "key", label: "Key (limit key, or type)" },
      [
        { name: "running", label: "Running at once", type: "number" },
        { name: "per_minute", label: "Started in a minute", type: "number" },
      ],
    ],
  };
}

// ---- Webhooks

type Hooks = AnswerOf<"webhook/list", Variant>;

const FORMATS = ["luxhub", "ntfy", "a2a"] as const;

const WEBHOOKS: ListOf<Hooks["webhooks"][number]> = {
  label: "Webhooks",
  keyOf: ({ name }) => name,
  columns: [
    ["State", (hook) => <State word={hook.state} />],
    ["Name", (hook) => hook.name, "names"],
    ["To", (hook) => [hook.url, <Why text={hook.last_error} />], "wide"],
    ["Delivered", (hook) => <Age at={hook.last_delivered_at} />],
    ["Next try", (hook) => <Age at={hook.next_attempt_at} />],
  ],
  actions: ({ name, state }) => [
    act("test-webhook", "Test", () => call("webhook/test", { name }), "The test message was delivered."),
    state === "suspended" &&
      act("resume-webhook", "Resume", () => call("webhook/resume", { name }), "It is delivered again."),
    deletion("delete-webhook", `Delete the webhook ${name}?`, () => call("webhook/delete", { name })),
  ],
};

type Made = AnswerOf<"webhook/put", Variant>;

function Webhooks({ webhooks, total }: Hooks): VNode {
  return (
    <Section
      title="Webhooks"
      note={
        <>
          {total > webhooks.length && `the first ${countOf(webhooks.length)} `}
          <FormButton label="Add a webhook" name="open-webhook" form={() => adding(webhooks)} />
        </>
      }
    >
      <List list={WEBHOOKS} rows={webhooks} empty="There are no webhooks." />
    </Section>
  );
}

function adding(webhooks: Hooks["webhooks"]): FormOf {
  const put = ({ name = "", url = "", kinds = "", format, group, secret }: Fields): Promise<Made> => {
    const words = kinds.split(",").flatMap((kind) => kind.trim() || []);
    const known = words.flatMap((word) => oneOf(EVENT_KINDS, word) ?? []);
    const wrong = words.find((word) => oneOf(EVENT_KINDS, word) === undefined);
    if (wrong !== undefined) throw new Error(`${wrong} is no kind of event. The page Events lists them.`);
    return call("webhook/put", { name, url, kinds: known, format: oneOf(FORMATS, format), group, secret });
  };
  const show = ({ name, secret }: Made): void => {
    const body = (
      <>
        <p>The receiver checks the messages with it. It is shown only once.</p>
        <Paste text={secret ?? ""} />
      </>
    );
    if (secret !== undefined) showDialog({ title: `The secret of ${name}`, body, close: "Done" });
  };
  return {
    action: {
      ...making(["put-webhook", "Add", "The webhook is added."], put, show),
      ask: ({ name = "" }) =>
        webhooks.some((hook) => hook.name === name)
          ? { text: `Replace the webhook ${name}?`, yes: "Replace" }
          : null,
    },
    fields: [
      [
        { name: "name", label: "Name", required: true },
        { name: "url", label: "URL", required: true },
      ],
      [
        { name: "kinds", label: "Kinds, with commas (empty: all)", value: "task.failed" },
        { name: "group", label: "Only of the group" },
      ],
      [
        { name: "format", label: "Format", options: FORMATS },
        { name: "secret", label: "Secret (empty: the hub makes one)", type: "password" },
      ],
    ],
  };
}
