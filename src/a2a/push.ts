/**
 * Push notifications of A2A (its specification, 3.1.7 to 3.1.10 and 4.3): the configs of a task, and their messages. A
 * config is a webhook (domain/webhook.ts) of one task, which only the creator of the task finds; it is deleted when the
 * task has ended. Delivery, its retries and the check of addresses are those of webhooks.
 */
import { StreamResponse, TaskPushNotificationConfig } from "@a2a-js/sdk";
import { Rejection } from "../domain/decision.ts";
import type { PushConfig, Webhook, WebhookDraft } from "../domain/model.ts";
import type { JsonObject } from "../http/json-body.ts";
import type { A2aTasks } from "../service/a2a-tasks.ts";
import type { Feed } from "../service/feed.ts";
import type { FileService } from "../service/files.ts";
import type { Content, Happened } from "../service/webhook-courier.ts";
import { type Lookup, updateOf } from "./encoding.ts";
import { Fault, malformed } from "./fault.ts";
import { type AskedPush, parsePushConfig, parsePushId, parseTaskOfPushes } from "./requests.ts";
import type { Session } from "./session.ts";

const A2A_TYPE = "application/a2a+json";

const nameOf = (taskId: string, configId: string): string => `a2a:${taskId}:${configId}`;

// ---- The operations. `caller` is who asks: it must have created the task.

export async function createPush(session: Session, caller: string, params: JsonObject): Promise<unknown> {
  const config = parsePushConfig(params);
  checkPush(session, config, "url");
  return savePush(session, caller, config.taskId, config);
}

/** @throws {Fault} when the hub must not call the URL. `path`: where the URL is in the request */
export function checkPush({ call }: Session, { url }: AskedPush, path: string): void {
  const refusal = call.services.webhooks.refusalOf(url, "push");
  if (refusal !== null) throw malformed(path, `must not be called: ${refusal}`);
}

/** Saves a config; the same one again changes nothing. */
export async function savePush(
  { call }: Session,
  caller: string,
  taskId: string,
  asked: AskedPush,
): Promise<unknown> {
  const { origin } = await call.services.a2a.get(taskId, caller);
  const draft = pushDraft(asked, { taskId, caller, contextId: origin.contextId });
  const boundTo = call.nodeOfKey;
  const { webhook } = await call.services.webhooks.putPush(call.transact, draft, boundTo);
  return encodeConfig(webhook);
}

export function pushDraft(
  asked: AskedPush,
  {
    taskId,
    caller,
    contextId,
  }: { readonly taskId: string; readonly caller: string; readonly contextId: string },
): WebhookDraft {
  const configId = asked.id || taskId;
  return {
    name: nameOf(taskId, configId),
    url: asked.url,
    format: "a2a",
    filter: { kinds: [], taskId, nodeId: null, creatorNode: null, group: null },
    push: {
      configId,
      caller,
      contextId,
      token: asked.token ?? "",
      authentication: asked.authentication
        ? { scheme: asked.authentication.scheme, credentials: asked.authentication.credentials ?? "" }
        : null,
    },
  };
}

async function findPush({ call }: Session, caller: string, params: JsonObject) {
  const { taskId, id } = parsePushId(params);
  await call.services.a2a.get(taskId, caller);
  const webhook = await call.services.webhooks.find(nameOf(taskId, id));
  return { taskId, id, webhook: webhook?.push?.caller === caller ? webhook : null };
}

export async function getPush(session: Session, caller: string, params: JsonObject): Promise<unknown> {
  const { taskId, id, webhook } = await findPush(session, caller, params);
  if (webhook) return encodeConfig(webhook);
  throw new Fault("TaskNotFoundError", `Task ${taskId} has no push notification config ${id}.`);
}

export async function listPushes({ call }: Session, caller: string, params: JsonObject): Promise<unknown> {
  const { taskId } = parseTaskOfPushes(params);
  await call.services.a2a.get(taskId, caller);
  const webhooks = await call.services.webhooks.pushesOf(taskId);
  const configs = webhooks.filter(({ push }) => push?.caller === caller).map(encodeConfig);
  return { configs, nextPageToken: "" };
}

export async function deletePush(session: Session, caller: string, params: JsonObject): Promise<unknown> {
  const { webhook } = await findPush(session, caller, params);
  const { services, transact } = session.call;
  if (webhook) await orNull(services.webhooks.delete(transact, webhook.name)); // it may have been deleted meanwhile
  return {};
}

function encodeConfig({ url, filter, push }: Webhook): unknown {
  return TaskPushNotificationConfig.toJSON({
    tenant: "",
    id: push?.configId ?? "",
    taskId: filter.taskId ?? "",
    url,
    token: push?.token ?? "",
    authentication: push?.authentication ?? undefined,
  });
}

// ---- The messages

export type PushParts = {
  readonly a2a: A2aTasks;
  readonly feed: Pick<Feed, "task">;
  readonly files: Pick<FileService, "get">;
  readonly publicUrl: () => string;
};

/** Encodes an event as what a stream of its task shows (StreamResponse); none if it changes nothing there. */
export async function encodePush(
  { url, push }: Webhook,
  happened: Happened,
  { a2a, feed, files, publicUrl }: PushParts,
): Promise<readonly Content[]> {
  const headers = headersOf(push);
  if (happened.kind === "test") return [{ url, headers, body: "{}" }];
  if (happened.kind === "gap" || happened.event.taskId === null) return [];
  const { event } = happened;
  const taskId = happened.event.taskId;
  const contextId = push?.contextId ?? (await a2a.contextOf(taskId)) ?? taskId;
  const lookup = lookupIn({ a2a, feed, files }, taskId);
  const update = await updateOf(event, { taskId, contextId }, lookup, publicUrl);
  return (update?.responses ?? []).map((response) => ({
    url,
    headers,
    body: JSON.stringify(StreamResponse.toJSON(response)),
  }));
}

export function lookupIn({ a2a, feed, files }: Omit<PushParts, "publicUrl">, taskId: string): Lookup {
  return {
    task: () => orNull(feed.task(taskId)),
    file: (fileId) => orNull(files.get(fileId)),
    question: () => a2a.question(taskId),
  };
}

function headersOf(push: PushConfig | null): Readonly<Record<string, string>> {
  const { token = "", authentication = null } = push ?? {};
  return {
    "Content-Type": A2A_TYPE,
    "User-Agent": "luxhub",
    ...(token === "" ? {} : { "X-A2A-Notification-Token": token }),
    ...(authentication && {
      Authorization: `${authentication.scheme} ${authentication.credentials}`.trim(),
    }),
  };
}

/** Null for what was deleted meanwhile. */
async function orNull<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof Rejection) return null;
    throw error;
  }
}
