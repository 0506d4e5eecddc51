/**
 * Encodes tasks of the hub for A2A (docs/a2a.md): the state, the client's message and the answered questions as the
 * history, the result and the files as artifacts; and an event of the log as the change that it made.
 */
import {
  type Artifact,
  type Message,
  type Part,
  Role,
  type StreamResponse,
  type Task,
  TaskState,
} from "@a2a-js/sdk";
import type { LoggedEvent } from "../domain/event.ts";
import type { FileRecord, Question, Task as HubTask, TaskResult } from "../domain/model.ts";
import { hasEnded, isInReview } from "../domain/task/state.ts";
import { isAsking } from "../domain/task/facet/questions.ts";
import { isSealed } from "../domain/task/failure.ts";
import { parseExact } from "../lib/exact-json.ts";
import type { SentEntry, SentTask } from "../service/a2a-tasks.ts";
import { isInputFile } from "./message.ts";

type PublicUrl = () => string;

type Ids = { readonly taskId: string; readonly contextId: string };

export function stateOf({
  status,
  failureKind,
  isAsking,
  isInReview,
}: Pick<SentEntry, "status" | "failureKind" | "isAsking" | "isInReview">): TaskState {
  if (isAsking) return TaskState.TASK_STATE_INPUT_REQUIRED;
  if (status === "open") return TaskState.TASK_STATE_SUBMITTED;
  if (status === "failed") return failedState(failureKind);
  // In review it may be open again: a state from which nothing follows would be wrong.
  const isDone = status === "completed" && !isInReview;
  return isDone ? TaskState.TASK_STATE_COMPLETED : TaskState.TASK_STATE_WORKING;
}

const failedState = (kind: unknown): TaskState =>
  kind === "cancelled" ? TaskState.TASK_STATE_CANCELED : TaskState.TASK_STATE_FAILED;

/**
 * @param files its files, if artifacts are to be shown
 * @param questions the open ones, and the answered ones that its history shows, each oldest first
 */
export function encodeTask(
  { task, origin }: SentTask,
  files: readonly FileRecord[] | null,
  questions: readonly Question[],
  historyLength: number | null,
  publicUrl: PublicUrl,
): Task {
  const ids = { taskId: task.taskId, contextId: origin.contextId };
  const artifacts = (files ?? []).filter(isArtifact).map((file) => fileArtifact(file, publicUrl));
  if (files && task.result && !isInReview(task)) artifacts.push(resultArtifact(task.result));
  const failureKind = task.failure?.kind ?? null;
  const { status: word } = task;
  const waits = { isAsking: isAsking(task), isInReview: isInReview(task) };
  const state = stateOf({ status: word, failureKind, ...waits });
  const open = questions.find((question) => question.state === "open");
  const history = [
    messageOf({ task, origin }, files ?? [], publicUrl),
    ...questions.flatMap((question) => exchangeOf(ids, question)),
  ];
  return {
    id: task.taskId,
    contextId: origin.contextId,
    status: status(ids, state, open ? questionText(open) : statusTextOf(task), task.updatedAt),
    artifacts,
    history: history.slice(Math.max(0, history.length - (historyLength ?? history.length))),
    metadata: undefined,
  };
}

/** A question with its answer; the hub does not keep the id of the message that answered. */
function exchangeOf(ids: Ids, question: Question): readonly Message[] {
  if (question.answer === null) return [];
  const answer = parseExact(question.answer);
  const part = typeof answer === "string" ? textPart(answer) : dataPart(answer);
  return [
    message(Role.ROLE_AGENT, ids, question.questionId, [textPart(questionText(question))]),
    message(Role.ROLE_USER, ids, `${question.questionId}-answer`, [part]),
  ];
}

function questionText({ question, choices }: Question): string {
  return choices.length === 0
    ? question
    : `${question}\n\n${choices.map((choice) => `- ${choice}`).join("\n")}`;
}

const IN_REVIEW = "The result waits for its review.";

function statusTextOf(task: HubTask): string | null {
  const { status: word, progress, failure } = task;
  if (isInReview(task)) return IN_REVIEW;
  if (word === "failed") return failure && (failure.message ?? failure.kind);
  return word === "assigned" ? progress : null;
}

/** What the protocol wants in each record, and the hub does not use. */
const UNUSED = { metadata: undefined, extensions: [] };

function message(role: Role, ids: Ids, messageId: string, parts: Part[]): Message {
  return { ...ids, ...UNUSED, role, messageId, parts, referenceTaskIds: [] };
}

/** The client's message from the stored task: its parts as one text, and its files by their URL. */
function messageOf({ task, origin }: SentTask, files: readonly FileRecord[], publicUrl: PublicUrl): Message {
  const { contextId, messageId } = origin;
  const sent = files.filter((file) => isInputFile(file.metadata)).map((file) => filePart(file, publicUrl));
  const ids = { taskId: task.taskId, contextId };
  return message(Role.ROLE_USER, ids, messageId, [textPart(task.description), ...sent]);
}

function status(ids: Ids, state: TaskState, text: string | null, at: number): Task["status"] {
  const words =
    text === null ? undefined : message(Role.ROLE_AGENT, ids, `${ids.taskId}-${at}`, [textPart(text)]);
  return { state, message: words, timestamp: new Date(at).toISOString() };
}

const isArtifact = ({ attached }: FileRecord): boolean => attached === "output";

function part(content: NonNullable<Part["content"]>, mediaType: string, filename = ""): Part {
  return { content, mediaType, filename, metadata: undefined };
}

const textPart = (value: string): Part => part({ $case: "text", value }, "text/plain");

const dataPart = (value: unknown): Part => part({ $case: "data", value }, "application/json");

function filePart({ fileId, name, contentType }: FileRecord, publicUrl: PublicUrl): Part {
  const value = `${publicUrl()}/api/v1/file/download/${fileId}`;
  return part({ $case: "url", value }, contentType, name);
}

function fileArtifact(file: FileRecord, publicUrl: PublicUrl): Artifact {
  return {
    ...UNUSED,
    artifactId: file.fileId,
    name: file.name,
    description: "",
    parts: [filePart(file, publicUrl)],
    metadata: { size: file.sizeBytes, sha256: file.sha256 },
  };
}

/**
 * First the worker's `output`, if it is data; then its `output` as a text, else the three texts of a result, for people.
 * At the end the rest of the result, for programs.
 */
function resultArtifact({ problem, improvement, lesson, extra }: TaskResult): Artifact {
  const further = parseExact(extra ?? "{}") as Record<string, unknown>; // the hub stores JSON objects only
  const { output, ...others } = further;
  const texts = `Problem: ${problem}\n\nImprovement: ${improvement}\n\nLesson: ${lesson}`;
  const isShown = output != null && output !== "";
  const isText = typeof output === "string" && isShown;
  const result = { problem, improvement, lesson, ...(isShown ? others : further) };
  return {
    ...UNUSED,
    artifactId: "result",
    name: "result",
    description: "",
    parts: [
      ...(isShown && !isText ? [dataPart(output)] : []),
      textPart(isText ? output : texts),
      dataPart(result),
    ],
  };
}

// ---- What an event changed

export type Update = { readonly responses: readonly StreamResponse[]; readonly isLast: boolean };

/** Loads data that an event does not contain; null if the task or the file was deleted. */
export type Lookup = {
  readonly task: () => Promise<HubTask | null>;
  readonly file: (fileId: string) => Promise<FileRecord | null>;
  /** The open question that was asked first. */
  readonly question: () => Promise<Question | null>;
};

export async function updateOf(
  event: LoggedEvent,
  ids: Ids,
  { task, file, question }: Lookup,
  publicUrl: PublicUrl,
): Promise<Update | null> {
  const { kind, at, data } = event;
  const now = (state: TaskState, said: unknown = null): StreamResponse =>
    statusUpdate(ids, status(ids, state, typeof said === "string" ? said : null, at));
  const goesOn = (response: StreamResponse): Update => ({ responses: [response], isLast: false });
  switch (kind) {
    case "task.asked": {
      const open = await question();
      return open && goesOn(now(TaskState.TASK_STATE_INPUT_REQUIRED, questionText(open)));
    }
    case "task.answered":
    case "task.question_timed_out": {
      const after = await task();
      if (!after || hasEnded(after)) return null;
      const open = await question();
      if (open) return goesOn(now(TaskState.TASK_STATE_INPUT_REQUIRED, questionText(open)));
      const { status: word } = after;
      return goesOn(now(stateOf({ status: word, failureKind: null, isAsking: false, isInReview: false })));
    }
    case "task.released":
      // A question that parks the task comes with an event of its own.
      return data["parked"] === true ? null : goesOn(now(TaskState.TASK_STATE_SUBMITTED));
    case "task.created":
    case "task.revoked":
    case "task.retried":
      return goesOn(now(TaskState.TASK_STATE_SUBMITTED));
    case "task.attempt_failed":
    case "task.review_rejected":
    case "task.timed_out":
    case "task.requeued": {
      const failure = (await task())?.failure;
      // The last attempt: the event that it has failed follows.
      const isEnd = failure?.at === at && (await task())?.status === "failed";
      return isEnd ? null : goesOn(now(TaskState.TASK_STATE_SUBMITTED, data["error"]));
    }
    case "task.assigned":
      return goesOn(now(TaskState.TASK_STATE_WORKING));
    case "task.progress":
      return goesOn(now(TaskState.TASK_STATE_WORKING, data["note"]));
    case "file.uploaded": {
      const uploaded = await file(String(data["file_id"]));
      return uploaded && isArtifact(uploaded)
        ? goesOn(artifactUpdate(ids, fileArtifact(uploaded, publicUrl)))
        : null;
    }
    case "task.review_requested":
      return goesOn(now(TaskState.TASK_STATE_WORKING, IN_REVIEW));
    case "task.review_passed":
    case "task.completed": {
      const review = (await task())?.review ?? null;
      if (kind === "task.completed" && review !== null) return null; // its review follows
      const after = await task();
      const result = after && !isSealed(after) ? after.result : null;
      const artifacts = result ? [artifactUpdate(ids, resultArtifact(result))] : [];
      return { responses: [...artifacts, now(TaskState.TASK_STATE_COMPLETED)], isLast: true };
    }
    case "task.failed":
      return { responses: [now(failedState(data["kind"]), data["message"] ?? data["kind"])], isLast: true };
    case "task.deleted":
      return { responses: [now(TaskState.TASK_STATE_CANCELED, "The task was deleted.")], isLast: true };
    default:
      return null;
  }
}

function statusUpdate({ taskId, contextId }: Ids, state: Task["status"]): StreamResponse {
  const value = { taskId, contextId, status: state, metadata: undefined };
  return { payload: { $case: "statusUpdate", value } };
}

function artifactUpdate({ taskId, contextId }: Ids, artifact: Artifact): StreamResponse {
  const value = { taskId, contextId, artifact, append: false, lastChunk: true, metadata: undefined };
  return { payload: { $case: "artifactUpdate", value } };
}
