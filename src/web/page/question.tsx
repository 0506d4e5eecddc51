/** A question of a worker, with the form for its answer; those of a task; and the link that says how many wait. */
import { Fragment, type VNode, h } from "preact";
import type { Event, Question } from "../../client/luxhub.ts";
import { parseExact } from "../../lib/exact-json.ts";
import { countOf } from "./format.ts";
import {
  Age,
  Button,
  Field,
  type Fields,
  Form,
  Moment,
  Section,
  State,
  Verified,
  askToConfirm,
  runAction,
  showNotice,
  useLoad,
} from "./parts.tsx";
import { to } from "./route.ts";
import { call, hasSecret, mayAct } from "./session.ts";

/** The events that open or end a question. */
export const QUESTION_KINDS: ReadonlySet<Event["kind"]> = new Set([
  "task.asked",
  "task.answered",
  "task.question_timed_out",
  "task.completed",
  "task.failed",
  "task.deleted",
] as const);

/** How many questions are open, as a link; nothing if there is none, or the caller may not read them. */
export function WaitingQuestions(): VNode | null {
  const mayRead = hasSecret();
  const loaded = useLoad(
    `waiting ${mayRead}`,
    async (ask) => (mayRead ? (await ask("questions", { limit: 1 })).total : 0),
    ({ kind }) => QUESTION_KINDS.has(kind),
  );
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
export function TaskQuestions({ questions }: { questions: readonly Question[] }): VNode | null {
  if (questions.length === 0) return null;
  return (
    <Section title="Questions">
      {questions.map((question) => (
        <Asked key={question.question_id} question={question} />
      ))}
    </Section>
  );
}

export function Asked({ question }: { question: Question }): VNode {
  const { question: text, asked_by, asked_at, state, until, schema } = question;
  return (
    <article class="question">
      <pre class="text">{text}</pre>
      <p class="quiet">
        <State word={state} /> asked by {asked_by} <Age at={asked_at} />
        {state === "open" && (
          <>
            , until <Moment at={until} />
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
      {state === "open" && mayAct() && <Reply question={question} />}
    </article>
  );
}

function wordsOf(answer: unknown): string {
  return typeof answer === "string" ? answer : JSON.stringify(answer, null, 2);
}

function Reply({ question }: { question: Question }): VNode {
  const { task_id, question_id, choices } = question;
  const send = (answer: unknown): Promise<boolean> =>
    runAction("Answered.", () => call("task/answer", { task_id, question_id, answer }));
  const write = async (fields: Fields): Promise<void> => {
    const text = fields["answer"] ?? "";
    let answer: unknown = text;
    try {
      if (fields["json"] !== undefined) answer = parseExact(text);
    } catch {
      return showNotice("The answer is not JSON.", true);
    }
    const isExpected = choices.length === 0 || choices.some((choice) => choice === answer);
    if (isExpected || (await askToConfirm("The answer is none of the choices.", "Send it")))
      await send(answer);
  };
  return (
    <>
      {choices.length > 0 && (
        <p class="buttons">
          {choices.map((choice) => (
            <Button key={choice} class="primary" data-do="choose" onClick={() => send(choice)}>
              {choice}
            </Button>
          ))}
        </p>
      )}
      <Form onSend={write}>
        <Field label={choices.length > 0 ? "Another answer" : "Answer"} name="answer" required rows={2} />
        <p class="buttons">
          <button data-do="answer">Answer</button>
          <label class="check">
            <input type="checkbox" name="json" /> is JSON
          </label>
        </p>
      </Form>
    </>
  );
}
