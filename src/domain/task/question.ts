/**
 * Question rules: a worker asks a person, or another agent, about the task that it holds (human in the loop).
 *
 *             ask             answer
 *   (none) ---------> open ------------> answered
 *                      |
 *                      +---------------> timed_out
 *                       deadline, or its task ended first
 *
 * While a question of a task is open, the clocks of the task (`timeoutMs`, `maxRunMs`) stand still; they start again when
 * none is. A question that parks the task also gives it back: the task is not ready until none is open. A task that opens
 * in another way (its node went offline, release) keeps its questions and is ready: the next worker that asks the same
 * joins the open question.
 *
 * Invariant: `questions` of the task is null or `settled` exactly when it has no open question.
 */
import type { Candidate } from "../balancer.ts";
import type { Change } from "../change.ts";
import {
  type Accepted,
  type Decision,
  type Rejected,
  accept,
  nodeNotFound,
  preceded,
  reject,
  taskNotFound,
  taskSealed,
} from "../decision.ts";
import { OPEN_QUESTIONS_OF_TASK_MAX, QUESTIONS_OF_TASK_MAX } from "../limits.ts";
import type { Moment, Node, Question, Task } from "../model.ts";
import { grown } from "../quota.ts";
import { assignIfBalanced, returned, step } from "./core.ts";
import { heldBy } from "./holder.ts";
import { mayDecide } from "./creator.ts";
import { newLease, NO_LEASE } from "./facet/lease.ts";
import { isSealed } from "./failure.ts";
import { taskEvent } from "./log.ts";
import { notTheirCreation } from "./refusals.ts";
import type { CreatorRequest, HolderRequest } from "./request.ts";
import { must } from "../../lib/assert.ts";
import { isSameJson } from "../../lib/exact-json.ts";

export type AskRequest = HolderRequest &
  Pick<Question, "question" | "choices" | "schema"> & {
    readonly withinMs: number;
    readonly park: boolean;
  };

export type Settled = { readonly question: Question; readonly task: Task };

/**
 * A repeat by the same worker, and the same question by the next one, is the open question itself.
 * `open`: the open questions of the task.
 */
export function ask(
  task: Task | null,
  node: Node | null,
  open: readonly Question[],
  request: AskRequest,
  questionId: string,
  at: Moment,
): Decision<Question> {
  const known = open.find((question) => isSame(question, request));
  const isRepeat = known?.askedBy === request.nodeId && known.epoch === (request.epoch ?? known.epoch);
  // Also after it has parked the task, which its worker then no longer holds.
  if (task && known && isRepeat && task.questions?.state === "parked") return accept(known);
  const held = heldBy(task, node, request);
  if ("code" in held) return held;
  if (isSealed(held)) return taskSealed(held);
  if (known && !request.park) return accept(known);
  const count = held.questions?.asked ?? 0;
  if (!known && open.length >= OPEN_QUESTIONS_OF_TASK_MAX)
    return tooMany(held, OPEN_QUESTIONS_OF_TASK_MAX, "open");
  if (!known && count >= QUESTIONS_OF_TASK_MAX) return tooMany(held, QUESTIONS_OF_TASK_MAX, "asked");
  const question = known ?? newQuestion(held, request, questionId, at);
  const questions = {
    state: request.park ? ("parked" as const) : ("open" as const),
    asked: count + Number(!known),
    bytes: (held.questions?.bytes ?? 0) + (known ? 0 : bytesOf(question)),
  };
  const data = {
    question_id: question.questionId,
    until: new Date(question.until).toISOString(),
    parked: request.park,
  };
  const events = known ? [] : [taskEvent("task.asked", held, request.nodeId, at.now, data)];
  if (request.park) {
    const released = { reason: PARKED, parked: true };
    events.push(taskEvent("task.released", held, request.nodeId, at.now, released));
  }
  // The start time of a parked task has passed, and must not make it ready again.
  const patch = request.park ? { ...returned(held), notBefore: null, questions } : { ...NO_LEASE, questions };
  const { changes } = step(held, patch, at, events);
  const added: readonly Change[] = known ? [] : [{ kind: "question.asked", question }];
  return grown(task, accept(question, [...added, ...changes]));
}

const PARKED = "parked until its questions are answered";

function isSame(a: Pick<Question, "question" | "choices" | "schema">, b: typeof a): boolean {
  if (a.question !== b.question || a.choices.length !== b.choices.length) return false;
  if (a.choices.some((choice, i) => choice !== b.choices[i])) return false;
  return a.schema === b.schema || (a.schema !== null && b.schema !== null && isSameJson(a.schema, b.schema));
}

function newQuestion(task: Task, request: AskRequest, questionId: string, at: Moment): Question {
  const { question, choices, schema, nodeId, withinMs } = request;
  return {
    questionId,
    taskId: task.taskId,
    question,
    choices,
    schema,
    askedBy: nodeId,
    epoch: task.epoch,
    askedAt: at.now,
    until: at.now + withinMs,
    state: "open",
    answer: null,
    answeredBy: null,
    answeredAt: null,
    verified: false,
  };
}

export function bytesOf({ question, choices, schema, answer }: Question): number {
  const texts = [question, ...choices, schema ?? "", answer ?? ""];
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

export type AnswerRequest = CreatorRequest & {
  readonly questionId: string;
  readonly answer: string;
  readonly nodeId: string | null;
};

/**
 * The first answer counts. If it was the last open question, the task goes on: its lease starts again, or it is ready
 * again and the balancer may assign it.
 */
export function answer(
  rows: {
    readonly task: Task | null;
    readonly question: Question | null;
    readonly open: readonly Question[];
    readonly node: Node | null;
    readonly candidates: readonly Candidate[];
  },
  request: AnswerRequest,
  at: Moment,
): Decision<Settled> {
  const { task, question } = rows;
  if (!task) return taskNotFound(request.taskId);
  if (request.nodeId !== null && !rows.node) return nodeNotFound(request.nodeId);
  if (!mayDecide(task, request)) return notTheirCreation(task, request);
  if (!question) return questionNotFound(request);
  if (question.state === "answered") {
    const given = must(question.answer, "an answered question has an answer");
    const isRepeat = isSameJson(given, request.answer);
    return isRepeat ? accept({ question, task }) : answeredAlready(question);
  }
  if (question.state === "timed_out" || question.until <= at.now) return timedOutAlready(question);
  const answeredBy = request.nodeId ?? request.boundTo;
  const settled: Question = {
    ...question,
    state: "answered",
    answer: request.answer,
    answeredBy,
    answeredAt: at.now,
  };
  const isLast = rows.open.every(({ questionId }) => questionId === question.questionId);
  const data = { question_id: question.questionId, answered_by: answeredBy };
  const event = taskEvent("task.answered", task, task.assignedNode ?? question.askedBy, at.now, data);
  const goesOn = settle(task, settled, isLast, Buffer.byteLength(request.answer), event, at);
  const assigned = assignIfBalanced(goesOn, rows.candidates, at);
  return grown(task, accept({ question: settled, task: assigned.answer }, assigned.changes));
}

/** `openOfTask`: with this question. */
export type DueQuestion = { readonly question: Question; readonly openOfTask: number };

export function timeOutQuestions(
  due: readonly DueQuestion[],
  tasks: readonly Task[],
  at: Moment,
): Accepted<readonly Task[]> {
  const taskOf = new Map(tasks.map((task) => [task.taskId, task]));
  const openOf = new Map(due.map(({ question, openOfTask }) => [question.taskId, openOfTask]));
  const moved = new Map<string, Task>();
  const changes: Change[] = [];
  for (const { question } of due) {
    const { taskId } = question;
    const task = taskOf.get(taskId);
    if (!task) continue;
    const open = must(openOf.get(taskId), "each due question counts") - 1;
    openOf.set(taskId, open);
    const timedOut: Question = { ...question, state: "timed_out", answeredAt: at.now };
    const nodeId = task.assignedNode ?? question.askedBy;
    const data = { question_id: question.questionId };
    const event = taskEvent("task.question_timed_out", task, nodeId, at.now, data);
    const settled = settle(task, timedOut, open === 0, 0, event, at);
    taskOf.set(taskId, settled.answer);
    moved.set(taskId, settled.answer);
    changes.push(...settled.changes);
  }
  return accept([...moved.values()], changes);
}

/** `isLast`: no other question of the task is open. */
function settle(
  task: Task,
  question: Question,
  isLast: boolean,
  addedBytes: number,
  event: Change,
  at: Moment,
): Accepted<Task> {
  const settled: Change = { kind: "question.settled", question };
  const { questions } = task;
  if (questions === null || (!isLast && addedBytes === 0)) return accept(task, [settled, event]);
  const bytes = questions.bytes + addedBytes;
  const state = isLast ? ("settled" as const) : questions.state;
  const patch = { questions: { ...questions, state, bytes } };
  const isRunning = isLast && task.status === "assigned";
  const lease = isRunning ? newLease({ ...task, ...patch }, at) : null;
  return preceded([settled], step(task, { ...patch, ...lease }, at, [event]));
}

// ---- Refusals

export function questionNotFound({ taskId, questionId }: Pick<Question, "taskId" | "questionId">): Rejected {
  const detail = `Task ${taskId} has no question ${questionId}. Look its id up with GET /api/v1/task/${taskId}/questions.`;
  return reject("question_not_found", detail);
}

function answeredAlready({ questionId, answeredBy }: Question): Rejected {
  const answerer = answeredBy === null ? "" : ` by ${answeredBy}`;
  return reject(
    "question_answered",
    `Question ${questionId} was answered${answerer} before, and keeps that answer.`,
  );
}

function timedOutAlready({ questionId }: Question): Rejected {
  const detail = `Nobody waits for an answer to question ${questionId} any more: its deadline has passed, or its task has ended.`;
  return reject("question_timed_out", detail);
}

function tooMany({ taskId }: Task, most: number, what: "open" | "asked"): Rejected {
  const detail =
    what === "open"
      ? `Task ${taskId} has ${most} open questions, which is the limit. Wait for an answer to one of them.`
      : `Task ${taskId} has asked ${most} questions, which is the limit. Complete it, or let it fail.`;
  return reject("questions_limit", detail);
}
