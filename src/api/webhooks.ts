/** The endpoints of webhooks: webhook/*. They never show a secret, but the response of webhook/put that made it. */
import * as z from "zod/mini";
import { EVENT_KINDS } from "../domain/event.ts";
import * as limit from "../domain/limits.ts";
import { WEBHOOK_FORMATS, type Webhook, type WebhookFormat } from "../domain/model.ts";
import type { PutWebhook } from "../domain/webhook.ts";
import { type FieldError, invalidRequest } from "../http/problem.ts";
import { newId } from "../lib/ids.ts";
import { uncommitted } from "../store/store.ts";
import type { Attempt } from "../service/webhook-courier.ts";
import { SECRET_PREFIX } from "../service/webhooks.ts";
import type { JsonAnswer } from "./answer.ts";
import { type Endpoint, MUST_NOT_WAIT, readEndpoint, writeEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { count, encodePage, maybeTime, pageSchema, time } from "./response-schemas.ts";
import { about, flag, maybeString, maybeWhole, nullable, number, optional, string } from "./about.ts";

const NAME = "The name of the webhook.";
const REPLACES = "The name of the webhook; replaces a webhook of this name.";
const SECRET =
  "Signs the messages: `whsec_` and base64; with the format `ntfy`, an access token. If left out, the hub makes a secret for a new webhook; the response has the secret only if the hub made it.";

const put = writeEndpoint({
  path: "/api/v1/webhook/put",
  auth: "admin",
  summary: "Creates or replaces a webhook, which sends events to a URL",
  rejections: ["webhooks_limit"],
  answersSecret: true,
  input: () =>
    z.object({
      name: about(field.webhookName(), REPLACES),
      url: about(
        field.webhookUrl(),
        "The URL to which the webhook sends: http or https, without a user name, a password and a fragment.",
      ),
      kinds: z._default(field.webhookKinds(), []),
      task_id: optional(field.id(), "Only events of this task."),
      node_id: optional(field.nodeId(), "Only events of this node."),
      creator_node: optional(field.nodeId(), "Only events of the tasks that this node created."),
      group: optional(field.group(), "Only events of the tasks of this group."),
      format: z._default(field.word(WEBHOOK_FORMATS), "luxhub"),
      secret: optional(field.webhookSecret(), SECRET),
    }),
  answer: () =>
    z.strictObject({
      name: string(REPLACES),
      webhook: webhookSchema(),
      secret: optional(z.string(), SECRET),
    }),
  handle: ({ services, transact }, { name, url, format, secret = null, ...input }) => {
    const refusal = services.webhooks.refusalOf(url, "webhook");
    const errors: FieldError[] = [];
    if (refusal !== null) errors.push({ path: "url", message: `must not be called: ${refusal}` });
    if (format === "ntfy" && !/[^/]$/.test(new URL(url).pathname))
      errors.push({ path: "url", message: "must end with the topic of ntfy" });
    const fault = secret === null ? null : secretFault(secret, format);
    if (fault !== null) errors.push({ path: "secret", message: fault });
    if (errors.length > 0) throw invalidRequest(errors);
    const { kinds, task_id: taskId = null, node_id: nodeId = null, group = null } = input;
    const { creator_node: creatorNode = null } = input;
    const filter = { kinds, taskId, nodeId, creatorNode, group };
    return services.webhooks.put(transact, { name, url, format, filter, push: null }, secret);
  },
  encode: ({ webhook, secret }: PutWebhook) => ({
    name: webhook.name,
    webhook: encodeWebhook(webhook),
    ...(secret === null ? {} : { secret }),
  }),
});

function secretFault(secret: string, format: WebhookFormat): string | null {
  const { WEBHOOK_SECRET_MIN_BYTES: least, WEBHOOK_SECRET_MAX_BYTES: most } = limit;
  if (format === "ntfy") return /^[\w.~+/=-]+$/.test(secret) ? null : "must be an access token of ntfy";
  const key = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : null;
  const bytes = key !== null && /^[A-Za-z0-9+/]+={0,2}$/.test(key) ? Buffer.from(key, "base64").length : 0;
  return bytes >= least && bytes <= most
    ? null
    : `must be ${SECRET_PREFIX} and the base64 of ${least} to ${most} bytes`;
}

const list = readEndpoint({
  path: "/api/v1/webhook/list",
  readsMany: true,
  auth: "admin",
  summary: "All webhooks, by name, without their secrets",
  input: () => z.object(field.paging()),
  answer: () =>
    z.strictObject({ webhooks: about(z.array(webhookSchema()), "The webhooks, by name."), ...pageSchema() }),
  handle: ({ services, variant }, paging) =>
    services.webhooks.list(field.pageRequest(paging, variant.unpaged)),
  encode: (page) => encodePage("webhooks", page, encodeWebhook),
});

const test = writeEndpoint({
  path: "/api/v1/webhook/test",
  auth: "admin",
  summary: "Sends a test message to a webhook now, and returns the outcome",
  rejections: ["webhook_not_found"],
  notInBatch: MUST_NOT_WAIT,
  input: () => z.object({ name: about(field.anyWebhookName(), NAME) }),
  answer: () =>
    z.strictObject({
      name: string(NAME),
      delivered: flag("Whether the receiver returned a status of 200 to 299."),
      status: maybeWhole("The status of the receiver's response; null: there was none."),
      error: maybeString("Why the message was not delivered."),
      ms: number("How long the request took, in milliseconds."),
    }),
  handle: async ({ services, hold }, { name }) => {
    const webhook = await services.webhooks.get(name);
    const attempt = await hold((signal) => services.courier.test(webhook, newId(), signal));
    return uncommitted({ name, attempt });
  },
  encode: ({ name, attempt }: { readonly name: string; readonly attempt: Attempt }) => ({
    name,
    delivered: attempt.isDelivered,
    status: attempt.status,
    error: attempt.error,
    ms: Math.round(attempt.ms),
  }),
});

const WEBHOOK_ANSWER = {
  answer: () => z.strictObject({ name: string(NAME), webhook: webhookSchema() }),
  encode: (webhook: Webhook) => ({ name: webhook.name, webhook: encodeWebhook(webhook) }),
} as const;

const resume = writeEndpoint({
  ...WEBHOOK_ANSWER,
  path: "/api/v1/webhook/resume",
  auth: "admin",
  summary: "Makes a webhook deliver again, from its cursor or from another event",
  rejections: ["webhook_not_found"],
  input: () =>
    z.object({
      name: about(field.anyWebhookName(), NAME),
      after: optional(field.eventId(), "Continues after the event with this id, not after the cursor."),
    }),
  handle: ({ services, transact }, { name, after = null }) => services.webhooks.resume(transact, name, after),
});

const remove = writeEndpoint({
  ...WEBHOOK_ANSWER,
  path: "/api/v1/webhook/delete",
  auth: "admin",
  summary: "Deletes a webhook; undelivered events stay in the event log",
  rejections: ["webhook_not_found"],
  input: () => z.object({ name: about(field.anyWebhookName(), NAME) }),
  handle: ({ services, transact }, { name }) => services.webhooks.delete(transact, name),
});

export const webhookSchema = () =>
  z.strictObject({
    name: string("The name of the webhook; the name of a push config of A2A begins with `a2a:`."),
    url: string("The URL to which the webhook sends."),
    format: z.enum(WEBHOOK_FORMATS),
    kinds: z.array(z.enum(EVENT_KINDS)),
    task_id: maybeString("Only events of this task."),
    node_id: maybeString("Only events of this node."),
    creator_node: maybeString("Only events of the tasks that this node created."),
    group: maybeString("Only events of the tasks of this group."),
    state: about(
      z.enum(["active", "suspended"]),
      "`suspended`: the webhook sends nothing until webhook/resume.",
    ),
    cursor: about(count(), "The id of the last event that needs no delivery any more."),
    attempts: about(
      count(),
      "How often the delivery has failed since the last success, webhook/resume or change.",
    ),
    failing_since: nullable(
      time(),
      "When the first of the failed attempts was; null: the last attempt succeeded.",
    ),
    next_attempt_at: nullable(time(), "When the hub tries again."),
    last_error: maybeString("Why the last attempt failed."),
    last_delivered_at: nullable(time(), "When the hub last delivered a message of the webhook."),
    created_at: time(),
    updated_at: time(),
  });

function encodeWebhook(webhook: Webhook): JsonAnswer {
  const { filter } = webhook;
  return {
    name: webhook.name,
    url: webhook.url,
    format: webhook.format,
    kinds: [...filter.kinds],
    task_id: filter.taskId,
    node_id: filter.nodeId,
    creator_node: filter.creatorNode,
    group: filter.group,
    state: webhook.state,
    cursor: webhook.cursor,
    attempts: webhook.attempts,
    failing_since: maybeTime(webhook.failingSince),
    next_attempt_at: maybeTime(webhook.nextAt),
    last_error: webhook.lastError,
    last_delivered_at: maybeTime(webhook.deliveredAt),
    created_at: maybeTime(webhook.createdAt),
    updated_at: maybeTime(webhook.updatedAt),
  };
}

export const WEBHOOK_ENDPOINTS: readonly Endpoint[] = [put, list, test, resume, remove];
