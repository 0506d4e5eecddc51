/**
 * The formats of webhooks (docs/webhooks.md). Only ntfy shows more than an event has: the title of the task, and the
 * text of a question, because a person is to answer it.
 */
import type { EventKind, LoggedEvent } from "../domain/event.ts";
import { NTFY_ACTIONS_MAX, NTFY_MESSAGE_MAX_CHARS } from "../domain/limits.ts";
import type { Question, Task, Webhook, WebhookFormat } from "../domain/model.ts";
import { must } from "../lib/assert.ts";
import { isoTime } from "../lib/clock.ts";
import type { AnswerTokens } from "../service/answer-tokens.ts";
import type { Content, Encode, Happened } from "../service/webhook-courier.ts";
import { encodeEvent } from "./response-schemas.ts";

const JSON_HEADERS = { "Content-Type": "application/json", "User-Agent": "luxhub" } as const;

export type NtfyLookup = {
  readonly task: (taskId: string) => Promise<Task | null>;
  readonly question: (taskId: string, questionId: string) => Promise<Question | null>;
};

/** What is sent of a task has the headers of its trace. */
export function encoderOf(
  encoders: Readonly<Record<WebhookFormat, Encode>>,
  taskOf: NtfyLookup["task"],
): Encode {
  return async (webhook, happened) => {
    const contents = await encoders[webhook.format](webhook, happened);
    const taskId = happened.kind === "event" ? happened.event.taskId : null;
    const task = taskId === null || contents.length === 0 ? null : await taskOf(taskId);
    if (task === null || task.traceparent === null) return contents;
    const { traceparent, tracestate } = task;
    const trace = { traceparent, ...(tracestate === null ? {} : { tracestate }) };
    return contents.map((content) => ({ ...content, headers: { ...content.headers, ...trace } }));
  };
}

export const encodeLuxhub: Encode = async ({ url }, happened) => [
  { url, headers: JSON_HEADERS, body: JSON.stringify(envelopeOf(happened)) },
];

function envelopeOf(happened: Happened): object {
  if (happened.kind === "event") {
    const { event } = happened;
    return { type: event.kind, timestamp: isoTime(event.at), data: encodeEvent(event) };
  }
  const timestamp = isoTime(happened.at);
  if (happened.kind === "test") return { type: "test", timestamp, data: {} };
  const { after, resumedAt } = happened.gap;
  return { type: "gap", timestamp, data: { after, resumed_at: resumedAt } };
}

// ---- ntfy

type Look = { readonly priority: 2 | 3 | 4; readonly tag: string; readonly title: string };

/** What a person wants to hear of, unless the webhook names kinds. */
const FOR_PEOPLE: Partial<Record<EventKind, Look>> = {
  "task.asked": { priority: 4, tag: "question", title: "Question" },
  "task.completed": { priority: 3, tag: "white_check_mark", title: "Completed" },
  "task.failed": { priority: 4, tag: "x", title: "Failed" },
  "group.ended": { priority: 3, tag: "checkered_flag", title: "Group ended" },
  "budget.warning": { priority: 3, tag: "warning", title: "Budget warning" },
  "budget.exceeded": { priority: 4, tag: "no_entry", title: "Budget exceeded" },
  "webhook.suspended": { priority: 4, tag: "no_bell", title: "Webhook suspended" },
};

export function ntfyEncoder(lookup: NtfyLookup, tokens: AnswerTokens, publicUrl: () => string): Encode {
  return async (webhook, happened) => {
    if (happened.kind === "test")
      return [ntfyContent(webhook, { title: "Test", message: "The hub can reach this topic.", priority: 3 })];
    if (happened.kind === "gap")
      return [
        ntfyContent(webhook, { title: "Events were missed", message: "Look at the hub.", priority: 4 }),
      ];
    const { event } = happened;
    const look = FOR_PEOPLE[event.kind];
    if (!look && webhook.filter.kinds.length === 0) return [];
    const { priority, tag, title } = look ?? { priority: 3, tag: "bell", title: event.kind };
    const task = event.taskId === null ? null : await lookup.task(event.taskId);
    const question = await questionOf(event, lookup);
    const notification = {
      title: task ? `${title}: ${task.title}` : title,
      message: cut(messageOf(event, question)),
      priority,
      tags: [tag],
      click: `${publicUrl()}/#/${event.taskId === null ? "events" : `tasks/${encodeURIComponent(event.taskId)}`}`,
      ...(question && { actions: await buttonsOf(question, tokens, publicUrl()) }),
    };
    return [ntfyContent(webhook, notification)];
  };
}

/** ntfy takes the topic as a field, so that titles need no escaping in a header. */
function ntfyContent({ url, secret }: Webhook, notification: object): Content {
  const { origin, pathname, search } = new URL(url);
  const [, base = "", topic = ""] = must(/^(.*\/)([^/]*)$/.exec(pathname), "a path has a slash");
  return {
    url: `${origin}${base}${search}`,
    headers: { ...JSON_HEADERS, ...(secret === null ? {} : { Authorization: `Bearer ${secret}` }) },
    body: JSON.stringify({ topic, ...notification }),
  };
}

async function questionOf({ kind, taskId, data }: LoggedEvent, lookup: NtfyLookup): Promise<Question | null> {
  if (kind !== "task.asked" || taskId === null) return null;
  const question = await lookup.question(taskId, String(data["question_id"]));
  return question?.state === "open" ? question : null;
}

function messageOf(event: LoggedEvent, question: Question | null): string {
  if (question) {
    const { choices } = question;
    const list =
      choices.length > NTFY_ACTIONS_MAX ? `\n\n${choices.map((choice) => `- ${choice}`).join("\n")}` : "";
    return question.question + list;
  }
  const message = event.data["message"] ?? event.data["error"];
  if (typeof message === "string") return message;
  const facts = Object.entries({ node: event.nodeId, ...event.data });
  return (
    facts
      .filter(([, value]) => value !== null)
      .map(([name, value]) => `${name}: ${value}`)
      .join(", ") || event.kind
  );
}

/** With more choices than buttons there is none: half of the choices would mislead. */
async function buttonsOf(question: Question, tokens: AnswerTokens, base: string): Promise<readonly object[]> {
  if (question.choices.length > NTFY_ACTIONS_MAX) return [];
  return Promise.all(
    question.choices.map(async (label, choice) => ({
      action: "http",
      label,
      url: `${base}/api/v1/task/answer-by-token`,
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token: await tokens.issue(question, choice) }),
      clear: true,
    })),
  );
}

function cut(text: string): string {
  const chars = [...text];
  return chars.length <= NTFY_MESSAGE_MAX_CHARS
    ? text
    : `${chars.slice(0, NTFY_MESSAGE_MAX_CHARS).join("")}…`;
}
