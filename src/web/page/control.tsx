/** Pauses, limits of keys, and webhooks. Needs the administrator key. */
import { Fragment, type VNode, h } from "preact";
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { type Action, Actions, Form, act, deletion } from "./action.tsx";
import { commandOf, countOf, numberOf } from "./format.ts";
import { List, type ListOf } from "./list.tsx";
import { useLoad, whole } from "./load.ts";
import { Age, Empty, Head, Section, State, Why } from "./parts.tsx";
import { pausedWords } from "./pulse.ts";
import { call } from "./session.ts";

const PAGE = 50;

export function Control(): VNode {
  const { value, error } = useLoad(
    "control",
    async (ask) => {
      const [pauses, limits, hooks] = await Promise.all([
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
      return { pauses, limits, hooks };
    },
    /^(?:hub|limit|webhook)\./,
  );
  return (
    <>
      <Head error={error}>Control</Head>
      {value && (
        <>
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

function resumeOf({ scope, value }: Pause): Action {
  return act("resume-hub", "Resume", () => call("hub/resume", scopeOf(scope, value ?? "")), "It goes on.");
}

const PAUSES: ListOf<Pause> = {
  look: "lines",
  keyOf: pausedWords,
  item: (pause) => (
    <>
      <span>
        <State word="paused" /> {pausedWords(pause)} {pause.reason}
      </span>
      <Age at={pause.at} />
      <Actions actions={[resumeOf(pause)]} />
    </>
  ),
};

function questionOf(scope: string, value: string): string {
  const words = SCOPES.find(([word]) => word === scope)?.[1] ?? scope;
  const what = scope === "hub" ? words : `${words}: ${value || "none"}`;
  return `Pause ${what}? What runs goes on; nothing more of it is handed out.`;
}

function Pauses({ pauses }: { pauses: readonly Pause[] }): VNode {
  return (
    <Section title="Pauses">
      <Form
        isRow
        action={act(
          "pause-hub",
          "Pause",
          ({ scope = "hub", value = "", reason }) => call("hub/pause", { ...scopeOf(scope, value), reason }),
          "Paused.",
          { ask: ({ scope = "hub", value = "" }) => ({ text: questionOf(scope, value), yes: "Pause" }) },
        )}
        fields={[
          { name: "scope", label: "Pause", options: SCOPES },
          { name: "value", label: "Which (not for the whole hub)" },
          { name: "reason", label: "Reason" },
        ]}
      />
      <List list={PAUSES} rows={pauses} empty="Nothing is paused." />
    </Section>
  );
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
  actions: ({ key }) => [
    deletion("delete-limit", `Delete the limit of ${key || "tasks without a type"}?`, () =>
      call("limit/delete", { key }),
    ),
  ],
};

function Limits({ limits }: { limits: readonly Limit[] }): VNode {
  return (
    <Section title="Limits">
      <Form
        isRow
        action={act(
          "set-limit",
          "Set",
          ({ key = "", running, per_minute }) =>
            call("limit/set", { key, running: numberOf(running), per_minute: numberOf(per_minute) }),
          "The limit is set.",
        )}
        fields={[
          { name: "key", label: "Key (limit key, or type)" },
          { name: "running", label: "Running at once", type: "number" },
          { name: "per_minute", label: "Started in a minute", type: "number" },
        ]}
      />
      <List list={LIMITS} rows={limits} empty="There are no limits." />
    </Section>
  );
}

// ---- Webhooks

type Hooks = AnswerOf<"webhook/list", Variant>;

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

function Webhooks({ webhooks, total }: Hooks): VNode {
  const none = (
    <Empty
      text="There are no webhooks. Add one from a shell:"
      line={commandOf("webhook put alerts https://example.org/hook --kind task.failed")}
    />
  );
  return (
    <Section title="Webhooks" note={total > webhooks.length && `the first ${countOf(webhooks.length)}`}>
      <List list={WEBHOOKS} rows={webhooks} empty={none} />
    </Section>
  );
}
