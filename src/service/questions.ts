/** The use cases of questions, and the chore of their deadlines. */
import { Rejection, accept, taskNotFound } from "../domain/decision.ts";
import { QUESTIONS_COUNTED_MAX, SWEEP_BATCH } from "../domain/limits.ts";
import type { Moment, Question } from "../domain/model.ts";
import {
  type AnswerRequest,
  type AskRequest,
  type Settled,
  answer,
  ask,
  questionNotFound,
  timeOutQuestions,
} from "../domain/task/question.ts";
import type { Clock } from "../lib/clock.ts";
import type { NewId } from "../lib/ids.ts";
import { nodeById } from "../store/sql/nodes.ts";
import { candidatesIfBalanced } from "../store/sql/balancer.ts";
import { NO_ROW } from "../store/sql/query.ts";
import {
  type OpenPosition,
  type OpenQuestion,
  dueQuestions,
  openCount,
  openQuestions,
  openQuestionsOf,
  questionCountsOf,
  questionOf,
  questionsOf,
  tasksOfDueQuestions,
} from "../store/sql/questions.ts";
import { taskById } from "../store/sql/tasks.ts";
import type { Answer, Committed, Store, Transact } from "../store/store.ts";
import { uncommitted } from "../store/store.ts";
import type { Feed } from "./feed.ts";
import type { TaskService } from "./tasks.ts";
import { pageOfFound } from "./scan.ts";
import { UseCases } from "./use-cases.ts";

/** At most SWEEP_BATCH. Returns how many there were. */
export function timeOutSome(store: Store, at: () => Moment): Promise<number> {
  const { now } = at();
  const load = { due: dueQuestions(now, SWEEP_BATCH), tasks: tasksOfDueQuestions(now, SWEEP_BATCH) };
  return store.transact(load, ({ due, tasks }) =>
    accept(due.length, timeOutQuestions(due, tasks, at()).changes),
  );
}

/**
 * Oldest first. `version` grows with each change of any of them; `next`: the number of the first one on the next page.
 */
type QuestionsPage = {
  readonly questions: readonly Question[];
  readonly total: number;
  readonly version: number;
  readonly next: number | null;
};

/** `since` null: the call. With `questionId` the page has only this question, and the wait is for its end. */
type QuestionsAsked = {
  readonly taskId: string;
  readonly questionId: string | null;
  readonly from: number;
  readonly limit: number;
  readonly since: number | null;
};

/** The most urgent first. `total` counts at most QUESTIONS_COUNTED_MAX. */
type OpenPage = {
  readonly questions: readonly OpenQuestion[];
  readonly total: number;
  readonly next: OpenPosition | null;
};

export class QuestionService extends UseCases {
  readonly #newId: NewId;
  readonly #tasks: TaskService;
  readonly #feed: Feed;

  constructor(store: Store, clock: Clock, newId: NewId, tasks: TaskService, feed: Feed) {
    super(store, clock);
    this.#newId = newId;
    this.#tasks = tasks;
    this.#feed = feed;
  }

  /** A repeat gets the open question. One that is parked leaves room at its node. */
  async ask(transact: Transact<Question>, asked: AskRequest): Promise<Committed<Question>> {
    const { taskId, nodeId, park } = asked;
    const questionId = this.#newId();
    const load = { task: taskById(taskId), node: nodeById(nodeId), open: openQuestionsOf(taskId) };
    const question = await transact(load, ({ task, node, open }) =>
      ask(task, node, open, asked, questionId, this.at()),
    );
    if (park) await this.#tasks.fillIfPossible(nodeId);
    return question;
  }

  /**
   * Returns it when the wait is over too.
   * @throws {Rejection} question_not_found when its task is deleted meanwhile
   */
  async settled(question: Question, waitMs: number, signal: AbortSignal): Promise<Answer<Question>> {
    return uncommitted(await this.#settled(question.taskId, question.questionId, waitMs, signal));
  }

  async #settled(taskId: string, questionId: string, waitMs: number, signal: AbortSignal): Promise<Question> {
    const read = async (): Promise<Question> => {
      const found = await this.store.read(questionOf(taskId, questionId));
      if (!found) throw new Rejection(questionNotFound({ taskId, questionId }));
      return found;
    };
    const find = async (): Promise<Question | null> => {
      const found = await read();
      return found.state === "open" ? null : found;
    };
    if (waitMs === 0) return read();
    return (await this.#feed.untilNews(taskId, find, waitMs, signal)) ?? read();
  }

  async answer(transact: Transact<Settled>, asked: AnswerRequest): Promise<Committed<Settled>> {
    const { taskId, questionId, nodeId } = asked;
    // Whether the balancer may assign the task never changes, so it is read first.
    const before = await this.store.read(taskById(taskId));
    const load = {
      task: taskById(taskId),
      question: questionOf(taskId, questionId),
      open: openQuestionsOf(taskId),
      node: nodeId === null ? NO_ROW : nodeById(nodeId),
      candidates: candidatesIfBalanced(before, null),
      gate: before?.balanced ? this.gate() : NO_ROW,
    };
    return transact(load, ({ candidates, gate, ...rows }) =>
      answer({ ...rows, candidates: candidates.best }, asked, { ...this.at(), gate }),
    );
  }

  /** `choice`: from 0; nobody is known to have answered. */
  async choose(
    transact: Transact<Settled>,
    { taskId, questionId, choice }: { taskId: string; questionId: string; choice: number },
  ): Promise<Committed<Settled>> {
    const question = await this.store.read(questionOf(taskId, questionId));
    const chosen = question?.choices[choice];
    if (chosen === undefined) throw new Rejection(questionNotFound({ taskId, questionId }));
    const answer = JSON.stringify(chosen);
    return this.answer(transact, { taskId, questionId, answer, nodeId: null, boundTo: null });
  }

  /**
   * After a wait for a change.
   * @throws {Rejection} task_not_found, question_not_found
   */
  async ofTask(asked: QuestionsAsked, waitMs: number, signal: AbortSignal): Promise<QuestionsPage> {
    if (asked.questionId !== null) {
      await this.#page({ ...asked, from: 0, limit: 0 });
      const question = await this.#settled(asked.taskId, asked.questionId, waitMs, signal);
      const { total, version } = await this.#page({ ...asked, from: 0, limit: 0 });
      return { questions: [question], total, version, next: null };
    }
    const read = (): Promise<QuestionsPage> => this.#page(asked);
    if (waitMs === 0) return read();
    let since = asked.since;
    const find = async (): Promise<QuestionsPage | null> => {
      const page = await read();
      since ??= page.version;
      return page.version === since ? null : page;
    };
    return (await this.#feed.untilNews(asked.taskId, find, waitMs, signal)) ?? read();
  }

  #page({ taskId, from, limit }: QuestionsAsked): Promise<QuestionsPage> {
    return this.store.readTogether(async (read) => {
      if (!(await read(taskById(taskId)))) throw new Rejection(taskNotFound(taskId));
      const { asked, settled } = await read(questionCountsOf(taskId));
      const questions = await read(questionsOf(taskId, from, limit));
      const end = from + questions.length;
      const next = end < asked && questions.length > 0 ? end : null;
      return { questions, total: asked, version: asked + settled, next };
    });
  }

  /** The most urgent first. */
  async open(after: OpenPosition | null, limit: number): Promise<OpenPage> {
    return this.store.readTogether(async (read) => {
      const total = await read(openCount(QUESTIONS_COUNTED_MAX));
      const found = await read(openQuestions(after ?? { until: 0, seq: 0 }, limit + 1));
      const { rows: questions, next } = pageOfFound(found, limit, ({ question: { until }, seq }) => ({
        until,
        seq,
      }));
      return { questions, total, next };
    });
  }
}
