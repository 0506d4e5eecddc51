/**
 * The inbox: the open questions of workers, the most urgent first, each to be answered, and the results that wait for a
 * review; also the questions of one task.
 */
import { Fragment, type JSX, h } from "preact";
import { useState } from "preact/hooks";
import type { Event, OpenQuestion, PendingReview, Question } from "../../client/luxhub.ts";
import { commandOf, countOf } from "./format.ts";
import {
  Age,
  Empty,
  Fault,
  Field,
  Form,
  State,
  Verified,
  runAction,
  showNotice,
  useEvents,
  useLoad,
} from "./parts.tsx";
import { Verdict } from "./review.tsx";
import { to } from "./route.ts";
import { hasSecret, hub, mayAct } from "./session.ts";

const PAGE = 50;

/** The events that open or end a question. */
const KINDS: ReadonlySet<Event["kind"]> = new Set([
  "task.asked",
  "task.answered",
  "task.question_timed_out",
  "task.completed",
  "task.failed",
  "task.deleted",
] as const);

export function Questions(): JSX.Element {
  const [pages, setPages] = useState(1);
  const loaded = useLoad(`questions ${pages}`, async (from, signal) => {
    const questions: OpenQuestion[] = [];
    let total = 0;
    let cursor: string | undefined;
    for (let page = 0; page < pages; page++) {
      const read = await from.call("questions", { limit: PAGE, cursor }, { signal });
      questions.push(...read.questions);
      total = read.total;
      if (read.next_cursor === null) break;
      cursor = read.next_cursor;
    }
    return { questions, total };
  });
  useEvents(({ kind }) => KINDS.has(kind), loaded);
  const { value, error } = loaded;
  return (
    <>
      <header class="head">
        <h1>Questions {value && <small>{countOf(value.total)} open</small>}</h1>
      </header>
      <Fault text={error} />
      {value?.questions.length === 0 && (
        <Empty
          text="No worker waits for an answer. A worker asks about its task like this:"
          line={commandOf("task", "ask", "TASK", "Which colour?", "--node", "worker-1")}
        />
      )}
      {value?.questions.map((question) => (
        <section key={question.question_id}>
          <h2>
            <a href={to("tasks", question.task_id)}>{question.task_title}</a>
          </h2>
          <Asked question={question} />
        </section>
      ))}
      {value && value.questions.length < value.total && (
        <p class="buttons">
          <button type="button" data-do="more" onClick={() => setPages(pages + 1)}>
            Show more
          </button>
        </p>
      )}
      <Reviews />
    </>
  );
}

/** The results that wait until somebody has checked them, the most urgent first. */
function Reviews(): JSX.Element | null {
  const loaded = useLoad("reviews", (from, signal) => from.call("reviews", { limit: PAGE }, { signal }));
  useEvents(({ kind }) => /^task\.(?:review_|deleted)/.test(kind), loaded);
  const { value, error } = loaded;
  if (value === null || value.total === 0) return <Fault text={error} />;
  return (
    <section>
      <h2>
        Results in review{" "}
        <span>
          {value.reviews.length < value.total && "the most urgent of "}
          {countOf(value.total)}
        </span>
      </h2>
      {value.reviews.map((waiting) => (
        <InReview key={`${waiting.task_id} ${waiting.review.epoch}`} waiting={waiting} />
      ))}
    </section>
  );
}

function InReview({ waiting }: { waiting: PendingReview }): JSX.Element {
  const { task_id, title, assigned_node, lux_held, review } = waiting;
  return (
    <article class="question">
      <p>
        <a href={to("tasks", task_id)}>{title}</a>
      </p>
      <p class="quiet">
        done by {assigned_node}, to be checked by {review.by}
        {lux_held > 0 && `, ${countOf(lux_held)} LUX held`}
        {review.until !== null && (
          <>
            , until <time dateTime={review.until}>{new Date(review.until).toLocaleString()}</time>
          </>
        )}
      </p>
      <Verdict taskId={task_id} review={review} />
    </article>
  );
}

/** How many questions are open, as a link; nothing if there is none, or the caller may not read them. */
export function WaitingQuestions(): JSX.Element | null {
  const mayRead = hasSecret.value;
  const loaded = useLoad(`waiting ${mayRead}`, async (from, signal) =>
    mayRead ? (await from.call("questions", { limit: 1 }, { signal })).total : 0,
  );
  useEvents(({ kind }) => KINDS.has(kind), loaded);
  const { value } = loaded;
  if (value === null || value === 0) return null;
  const words = value === 1 ? "1 question waits" : `${countOf(value)} questions wait`;
  return (
    <p class="fault">
      <a href={to("questions")}>{words} for an answer</a>
    </p>
  );
}

/** The newest questions of a task, answered ones too. */
export function TaskQuestions({ questions }: { questions: readonly Question[] }): JSX.Element | null {
  if (questions.length === 0) return null;
  return (
    <section>
      <h2>Questions</h2>
      {questions.map((question) => (
        <Asked key={question.question_id} question={question} />
      ))}
    </section>
  );
}

function Asked({ question }: { question: Question }): JSX.Element {
  const { question: text, asked_by, asked_at, state, until, schema } = question;
  return (
    <article class="question">
      <pre class="text">{text}</pre>
      <p class="quiet">
        <State word={state} /> asked by {asked_by} <Age at={asked_at} />
        {state === "open" && (
          <>
            , until <time dateTime={until}>{new Date(until).toLocaleString()}</time>
          </>
        )}
      </p>
      {schema !== null && <pre class="text">{JSON.stringify(schema, null, 2)}</pre>}
      {state === "answered" && (
        <>
          <p>
            <b>Answer</b> {question.answered_by} <Verified is={question.verified} />
          </p>
          <pre class="text">{wordsOf(question.answer)}</pre>
        </>
      )}
      {state === "open" && mayAct.value && <Reply question={question} />}
    </article>
  );
}

function wordsOf(answer: unknown): string {
  return typeof answer === "string" ? answer : JSON.stringify(answer, null, 2);
}

function Reply({ question }: { question: Question }): JSX.Element {
  const { task_id, question_id, choices } = question;
  const send = (answer: unknown): Promise<boolean> =>
    runAction("Answered.", () => hub.value.call("task/answer", { task_id, question_id, answer }));
  const write = async (fields: Readonly<Record<string, string>>): Promise<void> => {
    const text = fields["answer"] ?? "";
    if (fields["json"] === undefined) return void (await send(text));
    let answer: unknown;
    try {
      answer = JSON.parse(text);
    } catch {
      return showNotice("The answer is not JSON.", true);
    }
    await send(answer);
  };
  return (
    <>
      {choices.length > 0 && (
        <p class="buttons">
          {choices.map((choice) => (
            <button
              key={choice}
              type="button"
              class="primary"
              data-do="choose"
              onClick={() => void send(choice)}
            >
              {choice}
            </button>
          ))}
        </p>
      )}
      <Form onSend={write}>
        <Field label={choices.length > 0 ? "Another answer" : "Answer"} name="answer" required rows={2} />
        <p class="buttons">
          <button type="submit" data-do="answer">
            Answer
          </button>
          <label class="check">
            <input type="checkbox" name="json" /> is JSON
          </label>
        </p>
      </Form>
    </>
  );
}
