/**
 * The operations of A2A (its specification, 3.1) over the tasks of the hub. An answer is in the JSON of the protocol.
 *
 * A caller is its key: the node that it is bound to, else the key itself. It finds the tasks that it created through the
 * same card. A message creates one task, or answers the open question of one, however often it is sent within 24 hours,
 * at whichever hub (api/idempotency.ts).
 */
import { StreamResponse, Task } from "@a2a-js/sdk";
import { attemptBy, hashJson } from "../api/idempotency.ts";
import type { Body } from "../api/response-backpressure.ts";
import { type StreamText, lastEventIdOf } from "../api/stream.ts";
import { checkMaySendTo, parseNewTask, withDraft } from "../api/tasks.ts";
import * as limit from "../domain/limits.ts";
import type { Task as HubTask } from "../domain/model.ts";
import type { Settled } from "../domain/task/question.ts";
import { fileBytes } from "../domain/quota.ts";
import { isAsking } from "../domain/task/facet/questions.ts";
import { hasEnded, isFinished } from "../domain/task/state.ts";
import type { JsonObject } from "../http/json-body.ts";
import { Problem } from "../http/problem.ts";
import { frame } from "../http/sse.ts";
import { SECOND_MS } from "../lib/clock.ts";
import { withRoundedNumbers } from "../lib/exact-json.ts";
import { newId } from "../lib/ids.ts";
import type { StreamItem } from "../service/recent-events.ts";
import { type Session, HUB_PATH, nodePath } from "./session.ts";
import { extendedCard } from "./card.ts";
import { encodeTask, stateOf, updateOf } from "./encoding.ts";
import { Fault, malformed } from "./fault.ts";
import { type Content, answerIn, contentsOf, descriptionOf, titleOf } from "./message.ts";
import {
  checkPush,
  createPush,
  deletePush,
  getPush,
  listPushes,
  lookupIn,
  pushDraft,
  savePush,
} from "./push.ts";
import {
  type SendMessage,
  encodePageToken,
  parseGetTask,
  parseListTasks,
  parseSendMessage,
  parseTaskId,
} from "./requests.ts";

/** Puts one answer of a stream into the form of its binding. */
export type Wrap = (response: unknown) => unknown;

type Operation = (session: Session, params: JsonObject, wrap: Wrap) => Promise<unknown>;

/** An operation that streams answers a Response. */
const TABLE = {
  SendMessage: sendMessage,
  SendStreamingMessage: sendStreamingMessage,
  GetTask: getTask,
  // It may read thousands.
  ListTasks: (session, params) =>
    session.call.backpressure.runRead(session.call, () => listTasks(session, params)),
  CancelTask: cancelTask,
  SubscribeToTask: subscribeToTask,
  CreateTaskPushNotificationConfig: (session, params) => createPush(session, callerOf(session), params),
  GetTaskPushNotificationConfig: (session, params) => getPush(session, callerOf(session), params),
  ListTaskPushNotificationConfigs: (session, params) => listPushes(session, callerOf(session), params),
  DeleteTaskPushNotificationConfig: (session, params) => deletePush(session, callerOf(session), params),
  GetExtendedAgentCard: extendedCard,
} satisfies Readonly<Record<string, Operation>>;

export type OperationName = keyof typeof TABLE;

export const OPERATIONS: Readonly<Record<OperationName, Operation>> = TABLE;

function callerOf({ call: { key }, nodeId }: Session): string {
  const who = key?.nodeId ? `node ${key.nodeId}` : `key ${key?.keyId ?? ""}`;
  return `${who} ${pathOf(nodeId)}`;
}

const pathOf = (nodeId: string | null): string => (nodeId === null ? HUB_PATH : nodePath(nodeId));

async function sendMessage(session: Session, params: JsonObject): Promise<unknown> {
  const request = parseSendMessage(params);
  const { historyLength, returnImmediately } = request.configuration ?? {};
  const { call } = session;
  const acceptAndWait = async (signal: AbortSignal): Promise<string> => {
    const taskId = await accept(session, request, params);
    await endOrQuestion(session, taskId, signal);
    return taskId;
  };
  // A caller that may not wait is refused before its task is created.
  const taskId = await (returnImmediately === true
    ? accept(session, request, params)
    : call.hold(acceptAndWait));
  return { task: await show(session, taskId, historyLength ?? null) };
}

async function endOrQuestion({ call }: Session, taskId: string, signal: AbortSignal): Promise<void> {
  const { feed } = call.services;
  const find = async (): Promise<HubTask | null> => {
    const task = await feed.task(taskId);
    return hasEnded(task) || isAsking(task) ? task : null;
  };
  await feed.untilNews(taskId, find, limit.A2A_WAIT_SECONDS * SECOND_MS, signal);
}

async function sendStreamingMessage(session: Session, params: JsonObject, wrap: Wrap): Promise<Response> {
  const request = parseSendMessage(params);
  const taskId = await accept(session, request, params);
  return openWithSnapshot(session, taskId, request.configuration?.historyLength ?? null, wrap);
}

/** @returns the id of the task that the message created, or whose question it answers, now or when it was sent before */
async function accept(session: Session, asked: SendMessage, params: JsonObject): Promise<string> {
  const push = asked.configuration?.taskPushNotificationConfig ?? null;
  const sent = asked.message.taskId;
  if (push !== null) checkPush(session, push, "configuration.taskPushNotificationConfig.url");
  const taskId = await (sent ? answerQuestion(session, asked, sent, params) : create(session, asked, params));
  if (push === null) return taskId;
  const caller = callerOf(session);
  const { task } = await session.call.services.a2a.get(taskId, caller);
  // It is there already, from the same commit, unless the message was sent before with another config. The response
  // shows a task that has ended.
  if (!hasEnded(task)) await savePush(session, caller, taskId, push);
  return taskId;
}

/** @returns the id of the task that the message created, now or when it was sent before */
async function create(session: Session, asked: SendMessage, params: JsonObject): Promise<string> {
  const { message, metadata } = asked;
  const { call, shared, nodeId } = session;
  const description = descriptionOf(message);
  const fields = { ...withRoundedNumbers(metadata?.luxhub ?? {}), title: titleOf(description), description };
  const draft = await asParts(async () => parseNewTask(fields));
  await call.checkActsFor([draft.creator_node], "bound");
  await asParts(() => checkMaySendTo(call, nodeId, draft));
  const contents = contentsOf(message, shared.maxFileBytes, call.nodeOfKey);
  const { messageId } = message;
  const origin = { caller: callerOf(session), contextId: message.contextId || newId(), messageId };
  const attempt = attemptOf(
    session,
    messageId,
    hashJson({ message: params["message"], luxhub: metadata?.luxhub }),
  );
  const encode = ({ taskId }: HubTask): string => JSON.stringify({ task_id: taskId });
  const answer = await call.idempotency.run(attempt, async (transactFor) => {
    const push = pushOf(session, asked, origin.contextId);
    const of = { taskId: null, boundTo: call.nodeOfKey };
    const putting = call.services.webhooks.puttingPush((task: HubTask) => task, push, of);
    const transact = transactFor(encode, putting);
    using _uploads = await beginUploads(session, contents);
    const task = await call.services.files.saveWith(contents, (files) =>
      asParts(() =>
        withDraft(call, draft, (own, creation) =>
          call.services.tasks.createSent(transact, own, creation, { origin, nodeId, files }),
        ),
      ),
    );
    return encode(task);
  });
  return taskIdIn(answer);
}

/** The push config of a message, for a task of this context; null: it has none. */
function pushOf(session: Session, { configuration }: SendMessage, contextId: string) {
  const push = configuration?.taskPushNotificationConfig ?? null;
  const caller = callerOf(session);
  return push && ((taskId: string) => pushDraft(push, { taskId, caller, contextId }));
}

/** A message is handled once, by its id. */
function attemptOf({ call, nodeId }: Session, messageId: string, asked: string) {
  // With its content: the same id with another content is another message.
  const key = Bun.SHA256.hash(`${messageId} ${asked}`, "hex");
  // By the caller, which may have several keys. The name of a key has no colon.
  const who = call.key?.nodeId ? `node:${call.key.nodeId}` : (call.key?.keyId ?? "");
  const scope = [who, pathOf(nodeId), key].join(" ");
  // Without the variant: the answer is the same at every listener.
  return { ...attemptBy(call, pathOf(nodeId), key, asked), scope, asked };
}

/** @throws {Problem} a refusal that is replayed */
async function taskIdIn(answer: Response | Body): Promise<string> {
  const response = answer instanceof Response ? answer : new Response(answer);
  const stored: unknown = await response.json();
  if (response.ok) return (stored as { task_id: string }).task_id; // as the caller of idempotency.run() wrote it
  const { error, title, detail } = stored as { error: string; title: string; detail: string }; // Problem.toJSON()
  throw new Problem(response.status, error, title, detail);
}

/**
 * A message with the id of a task is the answer to its open question, the one that was asked first.
 * @throws {Fault} when the task waits for no answer
 */
async function answerQuestion(
  session: Session,
  asked: SendMessage,
  taskId: string,
  params: JsonObject,
): Promise<string> {
  const { call } = session;
  const { message } = asked;
  const { task, origin } = await call.services.a2a.get(taskId, callerOf(session));
  if (message.contextId && message.contextId !== origin.contextId)
    throw malformed("message.contextId", `is not that of the task, which is ${origin.contextId}`);
  const answer = answerIn(message);
  const attempt = attemptOf(session, message.messageId, hashJson({ message: params["message"] }));
  const encode = ({ question }: Settled): string => JSON.stringify({ task_id: question.taskId });
  const done = await call.idempotency.run(attempt, async (transactFor) => {
    const question = await call.services.a2a.question(taskId);
    if (!question) throw takesNoMessage(task, origin.contextId);
    const boundTo = call.nodeOfKey;
    const push = pushOf(session, asked, origin.contextId);
    const of = { taskId, boundTo };
    const putting = call.services.webhooks.puttingPush((answered: Settled) => answered.task, push, of);
    const transact = transactFor(encode, putting);
    const settled = await call.services.questions.answer(transact, {
      taskId,
      questionId: question.questionId,
      answer,
      nodeId: null,
      boundTo,
    });
    return encode(settled);
  });
  return taskIdIn(done);
}

/**
 * The files in a message are an upload: they take a place among the running ones, and must fit the quota of the caller's
 * node.
 * @throws {Problem} too_many_calls, overloaded
 * @throws {Rejection} quota_exceeded
 */
async function beginUploads({ call, shared }: Session, contents: readonly Content[]): Promise<Disposable> {
  const begun = new DisposableStack();
  if (contents.length === 0) return begun;
  try {
    begun.use(shared.uploads.enter(call.share()));
    if (call.key?.nodeId == null) return begun;
    const sizes = contents.map((content) => fileBytes({ ...content, sizeBytes: content.bytes.byteLength }));
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    begun.use(await call.services.quotas.beginUpload(call.key.nodeId, bytes));
    return begun;
  } catch (error) {
    begun.dispose();
    throw error;
  }
}

/** Names the fields of a refused task as the client sent them. The title is a part of the description. */
async function asParts<T>(make: () => Promise<T>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    const wrong = error instanceof Problem ? error.extras.errors : undefined;
    if (!wrong) throw error;
    const named = wrong
      .filter(({ path }) => path !== "title")
      .map(({ path, message }) => ({
        path: path === "description" ? "message.parts" : `metadata.luxhub.${path}`,
        message,
      }));
    const reasons = named.map(({ path, message }) => `${path}: ${message}`).join("; ");
    throw new Fault("RequestMalformedError", reasons, named);
  }
}

function takesNoMessage(task: HubTask, contextId: string): Fault {
  const what = hasEnded(task) ? "has ended" : "asks for no input";
  const detail = `Task ${task.taskId} ${what} and accepts no message now. Send one without taskId, and with contextId ${contextId}, to create another task of the same context.`;
  return new Fault("UnsupportedOperationError", detail);
}

async function show(session: Session, taskId: string, historyLength: number | null): Promise<unknown> {
  const { files, questions, ...sent } = await session.call.services.a2a.snapshot(taskId, callerOf(session));
  return Task.toJSON(encodeTask(sent, files, questions, historyLength, session.shared.publicUrl));
}

const taskJson = (task: Task): object => Task.toJSON(task) as object; // whose type is unknown

async function getTask(session: Session, params: JsonObject): Promise<unknown> {
  const { id, historyLength } = parseGetTask(params);
  return show(session, id, historyLength ?? null);
}

async function listTasks(session: Session, params: JsonObject): Promise<unknown> {
  const { a2a } = session.call.services;
  const { contextId, state, pageSize, historyLength, includeArtifacts, from, since } = parseListTasks(params);
  const page = await a2a.list(
    callerOf(session),
    (entry) =>
      (contextId === null || entry.contextId === contextId) && (state === null || stateOf(entry) === state),
    { from, since, most: pageSize },
  );
  const tasks: Task[] = [];
  let next = page.next;
  let answerBytes = 0;
  for (const [i, sent] of page.tasks.entries()) {
    const needsFiles = sent.task.files.length > 0 && (includeArtifacts || historyLength > 0);
    const files = needsFiles ? await a2a.files(sent.task.taskId) : [];
    const needsQuestions = isAsking(sent.task) || historyLength > 1;
    const questions = needsQuestions ? await a2a.questions(sent.task) : [];
    const task = encodeTask(sent, files, questions, historyLength, session.shared.publicUrl);
    tasks.push(includeArtifacts ? task : { ...task, artifacts: [] });
    // The page was cut by the bytes of its tasks, without those of their answers.
    answerBytes += questions.reduce((sum, { answer }) => sum + (answer?.length ?? 0), 0);
    if (answerBytes < limit.A2A_PAGE_MAX_BYTES || i === page.tasks.length - 1) continue;
    next = sent.task;
    break;
  }
  const nextPageToken = next === null ? "" : encodePageToken(next);
  // Fields that the protocol wants also when they are empty.
  const encoded = tasks.map((task) => ({
    ...(includeArtifacts ? { artifacts: [] } : {}),
    ...taskJson(task),
  }));
  return { tasks: encoded, nextPageToken, pageSize, totalSize: page.total };
}

async function cancelTask(session: Session, params: JsonObject): Promise<unknown> {
  const { id: taskId } = parseTaskId(params);
  const { services, transact, nodeOfKey } = session.call;
  const { task } = await services.a2a.get(taskId, callerOf(session));
  if (isFinished(task)) throw new Fault("TaskNotCancelableError", `Task ${taskId} has ended already.`);
  await services.tasks.cancel(transact, { taskId, nodeId: null, reason: null, boundTo: nodeOfKey });
  return show(session, taskId, null);
}

/** With Last-Event-ID it continues after that event, even if the task has ended meanwhile. */
async function subscribeToTask(session: Session, params: JsonObject, wrap: Wrap): Promise<Response> {
  const { id } = parseTaskId(params);
  const { call } = session;
  const { task, origin, lastId } = await call.services.a2a.snapshot(id, callerOf(session));
  const after = lastEventIdOf(call.exchange.request);
  if (after !== null && after <= lastId) {
    const selection = selectionOf(session, id);
    const { gap } = await selection.catchUp(after, 1);
    if (gap === null) {
      const textOf = textOfTask(session, { taskId: id, contextId: origin.contextId }, wrap);
      const opening = { selection, cursor: after, gatherMs: 0, textOf, endsWithLog: hasEnded(task) };
      return session.shared.openStream(call, opening);
    }
  } else if (hasEnded(task)) {
    const what = `Task ${id} has ended, so there is nothing to subscribe to. Ask for it with GetTask.`;
    throw new Fault("UnsupportedOperationError", what);
  }
  return openWithSnapshot(session, id, null, wrap);
}

const selectionOf = ({ call }: Session, taskId: string) =>
  call.services.feed.ofLog({ kinds: [], taskId, nodeId: null, groups: null, tag: null });

async function openWithSnapshot(
  session: Session,
  taskId: string,
  historyLength: number | null,
  wrap: Wrap,
): Promise<Response> {
  const { call, shared } = session;
  const { files, questions, lastId, ...sent } = await call.services.a2a.snapshot(taskId, callerOf(session));
  const value = encodeTask(sent, files, questions, historyLength, shared.publicUrl);
  const text = framed({ payload: { $case: "task", value } }, lastId, wrap);
  return shared.openStream(call, {
    selection: selectionOf(session, taskId),
    cursor: lastId,
    gatherMs: 0,
    first: { text, isLast: hasEnded(sent.task) },
    textOf: textOfTask(session, { taskId, contextId: sent.origin.contextId }, wrap),
  });
}

function textOfTask(session: Session, ids: { taskId: string; contextId: string }, wrap: Wrap) {
  const lookup = lookupIn(session.call.services, ids.taskId);
  return async (item: StreamItem): Promise<StreamText | null> => {
    if (item.kind !== "event") return null;
    const update = await updateOf(item.event, ids, lookup, session.shared.publicUrl);
    if (!update) return null;
    // Only the last has the id: a client that missed it gets all of them again.
    const text = update.responses
      .map((response, i) => framed(response, i === update.responses.length - 1 ? item.event.id : null, wrap))
      .join("");
    return { text, isLast: update.isLast };
  };
}

function framed(response: StreamResponse, id: number | null, wrap: Wrap): string {
  const data = JSON.stringify(wrap(StreamResponse.toJSON(response)));
  return frame({ ...(id === null ? {} : { id }), data });
}
