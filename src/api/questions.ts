/** The endpoints of questions: task/ask, task/answer, task/<task_id>/questions, questions. */
import * as z from "zod/mini";
import * as limit from "../domain/limits.ts";
import type { Question } from "../domain/model.ts";
import type { Settled } from "../domain/task/question.ts";
import { SECOND_MS } from "../lib/clock.ts";
import { type Endpoint, BY_NODE, MUST_NOT_WAIT, readEndpoint, writeEndpoint } from "./endpoint.ts";
import { unauthorized } from "./error-table.ts";
import * as field from "./request-fields.ts";
import { encodeQuestion, questionSchema } from "./response-schemas.ts";
import { HOLDER_REJECTIONS, holderOf, ofHolder } from "./tasks.ts";
import { about, optional, string, whole } from "./about.ts";

export const openQuestionSchema = () =>
  z.extend(questionSchema(), {
    task_title: string("The title of the task."),
    creator_node: z.nullable(z.string()),
  });

const questionAnswer = () => z.strictObject({ question: questionSchema() });

const ask = writeEndpoint({
  ...BY_NODE,
  path: "/api/v1/task/ask",
  summary: "A node asks a person, or another agent, about a task that it holds",
  rejections: [...HOLDER_REJECTIONS, "questions_limit", "question_not_found", "task_sealed"],
  input: () =>
    z.extend(ofHolder(), {
      question: about(field.question(), "What the worker wants to know."),
      choices: z.optional(field.choices()),
      schema: z.optional(field.answerSchema()),
      within_s: optional(field.within(), "Seconds until the question times out; a day if left out."),
      park: optional(
        z.boolean(),
        "Gives the task back in the same commit; this is not an attempt. The task is not ready while a question about it is open.",
      ),
      wait: optional(
        field.waitSeconds(),
        "Seconds to wait for the answer; 0, the default, returns at once. The wait is no heartbeat.",
      ),
    }),
  exactNumbers: true,
  notInBatch: ({ wait = 0 }) => (wait > 0 ? MUST_NOT_WAIT : null),
  answer: questionAnswer,
  handle: async ({ services, transact, hold }, input) => {
    const { question, choices = [], schema = null, within_s, park = false, wait = 0, ...holder } = input;
    const withinMs = within_s ?? limit.QUESTION_DEFAULT_SECONDS * SECOND_MS;
    const draft = { ...holderOf(holder), question, choices, schema, withinMs, park };
    const openQuestion = await services.questions.ask(transact, draft);
    return wait > 0 ? hold((signal) => services.questions.settled(openQuestion, wait, signal)) : openQuestion;
  },
  encode: (question: Question) => ({ question: encodeQuestion(question) }),
});

const answer = writeEndpoint({
  ...BY_NODE,
  path: "/api/v1/task/answer",
  summary: "Answers a question of a task; the first answer counts",
  rejections: [
    "task_not_found",
    "node_not_found",
    "question_not_found",
    "key_bound_to_other_node",
    "question_answered",
    "question_timed_out",
  ],
  input: () =>
    z.object({
      task_id: field.id(),
      question_id: field.id(),
      answer: about(field.answer(), "The answer: any JSON but null, at most 16 KiB."),
      node_id: optional(field.nodeId(), "The node that answers."),
    }),
  exactNumbers: true,
  answer: questionAnswer,
  handle: (
    { services, transact, nodeOfKey: boundTo },
    { task_id: taskId, question_id: questionId, answer, node_id: nodeId = null },
  ) => services.questions.answer(transact, { taskId, questionId, answer, nodeId, boundTo }),
  encode: ({ question }: Settled) => ({ question: encodeQuestion(question) }),
});

const answerByToken = writeEndpoint({
  path: "/api/v1/task/answer-by-token",
  auth: "open",
  summary: "Answers a question with a choice, by a token from a notification",
  rejections: ["task_not_found", "question_not_found", "question_answered", "question_timed_out"],
  notInBatch: "needs no secret: send it alone",
  input: () => z.object({ token: about(field.answerToken(), "The token of a button in a notification.") }),
  answer: questionAnswer,
  handle: async ({ services, transact }, { token }) => {
    const granted = await services.answerTokens.redeem(token);
    if (!granted) throw unauthorized("The token is wrong, or the deadline of its question has passed.");
    return services.questions.choose(transact, granted);
  },
  encode: ({ question }: Settled) => ({ question: encodeQuestion(question) }),
});

const ofTask = readEndpoint({
  path: "/api/v1/task/:task_id/questions",
  auth: "public",
  summary: "The questions of a task with their answers; may wait until one changes",
  once: true,
  rejections: ["task_not_found", "question_not_found"],
  input: () =>
    z.object({
      task_id: field.id(),
      question_id: optional(
        field.id(),
        "Only this question: then `wait` ends when the question is answered or timed out.",
      ),
      wait: optional(
        field.queryWaitSeconds(),
        "Seconds to wait until a question is asked, answered or timed out; 0, the default, returns at once.",
      ),
      since: optional(
        field.questionsVersion(),
        "The `version` that the caller knows: a wait ends at once if there is a newer version.",
      ),
      cursor: optional(field.numberCursor(4), "The `next_cursor` of the page before."),
      limit: z.optional(field.queryCount(limit.QUESTIONS_PER_PAGE_MAX)),
    }),
  answer: () =>
    z.strictObject({
      questions: about(z.array(questionSchema()), "The questions of the task, oldest first."),
      total: whole("How many questions the task has."),
      version: whole("Grows with each question that is asked, answered or timed out."),
      next_cursor: z.nullable(z.string()),
    }),
  handle: ({ services, hold, exchange }, { task_id: taskId, wait = 0, ...input }) => {
    const { question_id: questionId = null, since = null, cursor: from = 0 } = input;
    const query = { taskId, questionId, from, limit: input.limit ?? limit.QUESTIONS_PER_PAGE_DEFAULT, since };
    const read = (signal: AbortSignal) => services.questions.ofTask(query, wait, signal);
    return wait === 0 ? read(exchange.request.signal) : hold(read);
  },
  encode: ({ questions, total, version, next }) => ({
    questions: questions.map(encodeQuestion),
    total,
    version,
    next_cursor: next === null ? null : String(next),
  }),
});

const open = readEndpoint({
  path: "/api/v1/questions",
  auth: "secret",
  summary: "The open questions of all tasks, the most urgent first",
  readsMany: true,
  input: () =>
    z.object({
      state: optional(field.word(["open"]), "Only `open`, which is also the default."),
      cursor: optional(field.openCursor(), "The `next_cursor` of the page before."),
      limit: z.optional(field.queryCount(limit.QUESTIONS_PER_PAGE_MAX)),
    }),
  answer: () =>
    z.strictObject({
      questions: about(
        z.array(openQuestionSchema()),
        "The open questions, the most urgent first, with the title and the creator of their tasks.",
      ),
      total: whole("How many are open, counted up to 10,000."),
      next_cursor: z.nullable(z.string()),
    }),
  handle: ({ services }, { cursor = null, limit: most = limit.QUESTIONS_PER_PAGE_DEFAULT }) =>
    services.questions.open(cursor, most),
  encode: ({ questions, total, next }) => ({
    questions: questions.map(({ question, taskTitle, creatorNode }) => ({
      ...encodeQuestion(question),
      task_title: taskTitle,
      creator_node: creatorNode,
    })),
    total,
    next_cursor: next && field.encodeOpenCursor(next),
  }),
});

export const QUESTION_ENDPOINTS: readonly Endpoint[] = [ask, answer, answerByToken, ofTask, open];
