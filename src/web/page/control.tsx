/** What is handed out, and what is told to others: pauses, limits of keys, and webhooks. Needs the administrator key. */
import { Fragment, type VNode, h } from "preact";
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { commandOf, countOf, numberOf } from "./format.ts";
import {
  Age,
  Button,
  Delete,
  Empty,
  Field,
  type Fields,
  Form,
  Head,
  Section,
  Select,
  State,
  Table,
  runAction,
  runAsked,
  useLoad,
  whole,
} from "./parts.tsx";
import { pausedWords } from "./pulse.ts";
import { call } from "./session.ts";

const PAGE = 50;

type Pause = AnswerOf<"hub/pauses", Variant>["pauses"][number];
type Limit = AnswerOf<"limit/list", Variant>["limits"][number];

const SCOPES = [
  ["hub", "the whole hub"],
  ["type", "a type"],
  ["limit_key", "a limit key"],
  ["creator", "a creator"],
] as const;

/** The fields that name what a pause is about. */
function scopeOf(scope: string, value: string): { type?: string; limit_key?: string; creator_node?: string } {
  if (scope === "type") return { type: value };
  if (scope === "limit_key") return { limit_key: value };
  return scope === "creator" ? { creator_node: value } : {};
}

export function Control(): VNode {
  const loaded = useLoad(
    "control",
    async (ask) => {
      const [pauses, limits, { webhooks, total }] = await Promise.all([
        whole(async (page) => {
          const answer = await ask("hub/pauses", page);
          return { rows: answer.pauses, pages: answer.pages };
        }),
        whole(async (page) => {
          const answer = await ask("limit/list", page);
          return { rows: answer.limits, pages: answer.pages };
        }),
        ask("webhook/list", { per_page: PAGE }),
      ]);
      return { pauses, limits, webhooks, total };
    },
    /^(?:hub|limit|webhook)\./,
  );
  const { value, error } = loaded;
  return (
    <>
      <Head error={error}>Control</Head>
      {value && (
        <>
          <Pauses pauses={value.pauses} />
          <Limits limits={value.limits} />
          <Webhooks webhooks={value.webhooks} total={value.total} />
        </>
      )}
    </>
  );
}

function Pauses({ pauses }: { pauses: readonly Pause[] }): VNode {
  const pause = (fields: Fields): Promise<boolean> => {
    const { scope = "hub", value = "", reason } = fields;
    const words = SCOPES.find(([word]) => word === scope)?.[1] ?? scope;
    const question = `Pause ${scope === "hub" ? words : `${words}: ${value || "none"}`}? What runs goes on; nothing more of it is handed out.`;
    const asked = { ...scopeOf(scope, value), reason };
    return runAsked(question, "Pause", "Paused.", () => call("hub/pause", asked));
  };
  return (
    <Section title="Pauses">
      <Form class="filters" onSend={pause}>
        <Select label="Pause" name="scope" options={SCOPES} />
        <Field label="Which (not for the whole hub)" name="value" />
        <Field label="Reason" name="reason" />
        <button data-do="pause-hub">Pause</button>
      </Form>
      {pauses.length === 0 && <p class="quiet">Nothing is paused.</p>}
      <ul class="plain lines">
        {pauses.map((one) => (
          <li key={pausedWords(one)}>
            <span>
              <State word="paused" /> {pausedWords(one)} {one.reason}
            </span>
            <Age at={one.at} />
            <Button
              data-do="resume-hub"
              onClick={() =>
                void runAction("It goes on.", () => call("hub/resume", scopeOf(one.scope, one.value ?? "")))
              }
            >
              Resume
            </Button>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Limits({ limits }: { limits: readonly Limit[] }): VNode {
  const set = (fields: Fields): Promise<boolean> => {
    const { key = "", running, per_minute } = fields;
    const asked = {
      key,
      running: numberOf(running),
      per_minute: numberOf(per_minute),
    };
    return runAction("The limit is set.", () => call("limit/set", asked));
  };
  const of = (now: number, most: number | null): string =>
    most === null ? "any" : `${countOf(now)} of ${countOf(most)}`;
  return (
    <Section title="Limits">
      <Form class="filters" onSend={set}>
        <Field label="Key (limit key, or type)" name="key" />
        <Field label="Running at once" name="running" type="number" />
        <Field label="Started in a minute" name="per_minute" type="number" />
        <button data-do="set-limit">Set</button>
      </Form>
      {limits.length === 0 ? (
        <p class="quiet">There are no limits.</p>
      ) : (
        <Table
          label="Limits"
          rows={limits}
          keyOf={(limit) => limit.key}
          columns={[
            ["Key", (limit) => limit.key || <i>no type</i>, "names"],
            ["Running", (limit) => of(limit.running_now, limit.running), "number"],
            ["In the last minute", (limit) => of(limit.last_minute, limit.per_minute)],
            ["Held for", (limit) => <Age at={limit.held_until} />],
            ["Held by", (limit) => limit.held_by ?? "", "names"],
            [
              "Actions",
              (limit) => (
                <Delete
                  data-do="delete-limit"
                  ask={`Delete the limit of ${limit.key || "tasks without a type"}?`}
                  work={() => call("limit/delete", { key: limit.key })}
                />
              ),
              "buttons",
            ],
          ]}
        />
      )}
    </Section>
  );
}

type Hook = AnswerOf<"webhook/list", Variant>["webhooks"][number];

function Webhooks({ webhooks, total }: { webhooks: readonly Hook[]; total: number }): VNode {
  return (
    <Section
      title={<>Webhooks {total > webhooks.length && <span>the first {countOf(webhooks.length)}</span>}</>}
    >
      {webhooks.length === 0 ? (
        <Empty
          text="There are no webhooks. Add one from a shell:"
          line={commandOf("webhook put alerts https://example.org/hook --kind task.failed")}
        />
      ) : (
        <Table
          label="Webhooks"
          rows={webhooks}
          keyOf={(hook) => hook.name}
          columns={[
            ["State", (hook) => <State word={hook.state} />],
            ["Name", (hook) => hook.name, "names"],
            [
              "To",
              (hook) => (
                <>
                  {hook.url}
                  {hook.last_error !== null && <div class="why">{hook.last_error}</div>}
                </>
              ),
              "wide",
            ],
            ["Delivered", (hook) => <Age at={hook.last_delivered_at} />],
            ["Next try", (hook) => <Age at={hook.next_attempt_at} />],
            [
              "Actions",
              (hook) => (
                <>
                  <Button
                    data-do="test-webhook"
                    onClick={() =>
                      runAction("The test message was delivered.", () =>
                        call("webhook/test", { name: hook.name }),
                      )
                    }
                  >
                    Test
                  </Button>
                  {hook.state === "suspended" && (
                    <Button
                      data-do="resume-webhook"
                      onClick={() =>
                        runAction("It is delivered again.", () => call("webhook/resume", { name: hook.name }))
                      }
                    >
                      Resume
                    </Button>
                  )}
                  <Delete
                    data-do="delete-webhook"
                    ask={`Delete the webhook ${hook.name}?`}
                    work={() => call("webhook/delete", { name: hook.name })}
                  />
                </>
              ),
              "buttons",
            ],
          ]}
        />
      )}
    </Section>
  );
}
