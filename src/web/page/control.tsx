/** What is handed out, and what is told to others: pauses, limits of keys, and webhooks. Needs the administrator key. */
import { type ComponentChildren, Fragment, type JSX, h } from "preact";
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { commandOf, countOf } from "./format.ts";
import {
  Age,
  Button,
  Empty,
  Field,
  type Fields,
  Form,
  Head,
  Select,
  State,
  Table,
  runAsked,
  runAction,
  useEvents,
  useLoad,
  whole,
} from "./parts.tsx";
import { pausedWords } from "./pulse.ts";
import { hub } from "./session.ts";

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

export function Control(): JSX.Element {
  const loaded = useLoad("control", async (from, signal) => {
    const [pauses, limits, { webhooks, total }] = await Promise.all([
      whole(async (page) => {
        const answer = await from.call("hub/pauses", page, { signal });
        return { rows: answer.pauses, pages: answer.pages };
      }),
      whole(async (page) => {
        const answer = await from.call("limit/list", page, { signal });
        return { rows: answer.limits, pages: answer.pages };
      }),
      from.call("webhook/list", { per_page: PAGE }, { signal }),
    ]);
    return { pauses, limits, webhooks, total };
  });
  useEvents(({ kind }) => /^(?:hub|limit|webhook)\./.test(kind), loaded);
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

function Pauses({ pauses }: { pauses: readonly Pause[] }): JSX.Element {
  const pause = (fields: Fields): Promise<boolean> => {
    const { scope = "hub", value = "", reason = "" } = fields;
    const words = SCOPES.find(([word]) => word === scope)?.[1] ?? scope;
    const question = `Pause ${scope === "hub" ? words : `${words}: ${value || "none"}`}? What runs goes on; nothing more of it is handed out.`;
    const asked = { ...scopeOf(scope, value), reason: reason || undefined };
    return runAsked(question, "Pause", "Paused.", () => hub.value.call("hub/pause", asked));
  };
  return (
    <section>
      <h2>Pauses</h2>
      <Form class="filters" onSend={pause}>
        <Select label="Pause" name="scope" options={SCOPES} />
        <Field label="Which (not for the whole hub)" name="value" />
        <Field label="Reason" name="reason" />
        <button type="submit" data-do="pause-hub">
          Pause
        </button>
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
                void runAction("It goes on.", () =>
                  hub.value.call("hub/resume", scopeOf(one.scope, one.value ?? "")),
                )
              }
            >
              Resume
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Limits({ limits }: { limits: readonly Limit[] }): JSX.Element {
  const set = (fields: Fields): Promise<boolean> => {
    const { key = "", running, per_minute } = fields;
    const asked = {
      key,
      running: running ? Number(running) : undefined,
      per_minute: per_minute ? Number(per_minute) : undefined,
    };
    return runAction("The limit is set.", () => hub.value.call("limit/set", asked));
  };
  const remove = (key: string): Promise<boolean> =>
    runAsked(`Delete the limit of ${key || "tasks without a type"}?`, "Delete", "Deleted.", () =>
      hub.value.call("limit/delete", { key }),
    );
  const of = (now: number, most: number | null): string =>
    most === null ? "any" : `${countOf(now)} of ${countOf(most)}`;
  return (
    <section>
      <h2>Limits</h2>
      <Form class="filters" onSend={set}>
        <Field label="Key (limit key, or type)" name="key" />
        <Field label="Running at once" name="running" type="number" />
        <Field label="Started in a minute" name="per_minute" type="number" />
        <button type="submit" data-do="set-limit">
          Set
        </button>
      </Form>
      {limits.length === 0 ? (
        <p class="quiet">There are no limits.</p>
      ) : (
        <Table label="Limits" head={["Key", "Running", "In the last minute", "Held for", "Actions"]}>
          {limits.map((limit) => (
            <tr key={limit.key}>
              <td class="names">{limit.key || <i>no type</i>}</td>
              <td class="number">{of(limit.running_now, limit.running)}</td>
              <td>{of(limit.last_minute, limit.per_minute)}</td>
              <td>
                <Age at={limit.held_until} />
              </td>
              <td class="buttons">
                <Button class="danger" data-do="delete-limit" onClick={() => remove(limit.key)}>
                  Delete
                </Button>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

type Hook = AnswerOf<"webhook/list", Variant>["webhooks"][number];

function Webhooks({ webhooks, total }: { webhooks: readonly Hook[]; total: number }): JSX.Element {
  const remove = (name: string): Promise<boolean> =>
    runAsked(`Delete the webhook ${name}?`, "Delete", "Deleted.", () =>
      hub.value.call("webhook/delete", { name }),
    );
  const button = (word: string, action: string, act: () => unknown, tone?: string): ComponentChildren => (
    <Button class={tone} data-do={action} onClick={() => act()}>
      {word}
    </Button>
  );
  return (
    <section>
      <h2>Webhooks {total > webhooks.length && <span>the first {countOf(webhooks.length)}</span>}</h2>
      {webhooks.length === 0 ? (
        <Empty
          text="There are no webhooks. Add one from a shell:"
          line={commandOf("webhook", "put", "alerts", "https://example.org/hook", "--kind", "task.failed")}
        />
      ) : (
        <Table label="Webhooks" head={["State", "Name", "To", "Delivered", "Next try", "Actions"]}>
          {webhooks.map((hook) => (
            <tr key={hook.name}>
              <td>
                <State word={hook.state} />
              </td>
              <td class="names">{hook.name}</td>
              <td class="wide">
                {hook.url}
                {hook.last_error !== null && <div class="why">{hook.last_error}</div>}
              </td>
              <td>
                <Age at={hook.last_delivered_at} />
              </td>
              <td>
                <Age at={hook.next_attempt_at} />
              </td>
              <td class="buttons">
                {button("Test", "test-webhook", () =>
                  runAction("The test message was delivered.", () =>
                    hub.value.call("webhook/test", { name: hook.name }),
                  ),
                )}
                {hook.state === "suspended" &&
                  button("Resume", "resume-webhook", () =>
                    runAction("It is delivered again.", () =>
                      hub.value.call("webhook/resume", { name: hook.name }),
                    ),
                  )}
                {button("Delete", "delete-webhook", () => remove(hook.name), "danger")}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}
