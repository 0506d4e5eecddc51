/** What waits for a person: the questions of workers, and the results that wait for a review. */
import { Fragment, type VNode, h } from "preact";
import { useState } from "preact/hooks";
import type { Event, OpenQuestion, PendingReview, Question, Review } from "../../client/luxhub.ts";
import { parseExact } from "../../lib/exact-json.ts";
import { type Action, Actions, type Fields, Form, act } from "./action.tsx";
import { Field } from "./field.tsx";
import { type AnyTask, commandOf, countOf } from "./format.ts";
import { pagesOf, useLoad } from "./load.ts";
import {
  Age,
  Button,
  Empty,
  Fault,
  Head,
  Section,
  State,
  TaskLink,
  Verified,
  Text,
  Until,
} from "./parts.tsx";
import { pulse } from "./pulse.ts";
import { type Ask, call, mayAct } from "./session.ts";

const PAGE = 50;

async function loadQuestions(ask: Ask, pages: number) {
  const questions: OpenQuestion[] = [];
  let total = 0;
  for await (const page of pagesOf((cursor) => ask("questions", { limit: PAGE, cursor }))) {
    questions.push(...page.questions);
    ({ total } = page);
    if (questions.length >= pages * PAGE) break;
  }
  return { questions, total };
}

export function Questions(): VNode {
  const [pages, setPages] = useState(1);
  const { value, error } = useLoad(
    `questions ${pages}`,
    (ask) => loadQuestions(ask, pages),
    ({ kind }) => QUESTION_KINDS.has(kind),
  );
  return (
    <>
      <Head error={error}>
        Inbox {value && <small>{countOf(value.total + (pulse.value.reviews ?? 0))}</small>}
      </Head>
      {value?.questions.length === 0 && (
        <Empty
          text="No worker waits for an answer. A worker asks about its task like this:"
          line={commandOf("task ask TASK 'Which colour?' --node worker-1")}
        />
      )}
      {value?.questions.map((question) => (
        <Section
          key={question.question_id}
          title={<TaskLink task={{ task_id: question.task_id, title: question.task_title }} />}
        >
          <Asked question={question} />
        </Section>
      ))}
      {value && value.questions.length < value.total && (
        <p class="buttons">
          <Button label="Show more" name="more" onClick={() => setPages(pages + 1)} />
        </p>
      )}
      <Reviews />
    </>
  );
}

function Reviews(): VNode | null {
  const concerns = /^task\.(?:review_|deleted)/;
  const { value, error } = useLoad("reviews", (ask) => ask("reviews", { limit: PAGE }), concerns);
  if (value === null || value.total === 0) return <Fault text={error} />;
  const { reviews, total } = value;
  return (
    <Section
      title="Results in review"
      note={`${reviews.length < total ? "the most urgent of " : ""}${countOf(total)}`}
    >
      {reviews.map((waiting) => (
        <InReview key={`${waiting.task_id} ${waiting.review.epoch}`} waiting={waiting} />
      ))}
    </Section>
  );
}

function InReview({ waiting }: { waiting: PendingReview }): VNode {
  const { task_id, assigned_node, lux_held, review } = waiting;
  return (
    <article class="question">
      <p>
        <TaskLink task={waiting} />
      </p>
      <p class="quiet">
        done by {assigned_node}, to be checked by {review.by}
        {lux_held > 0 && `, ${countOf(lux_held)} LUX held`}
        <Until at={review.until} />
      </p>
      <Verdict taskId={task_id} review={review} />
    </article>
  );
}

// ---- A question

/** The events that open or end a question. */
const QUESTION_KINDS: ReadonlySet<Event["kind"]> = new Set([
  "task.asked",
  "task.answered",
  "task.question_timed_out",
  "task.completed",
  "task.failed",
  "task.deleted",
] as const);

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
      <Text value={text} />
      <p class="quiet">
        <State word={state} /> asked by {asked_by} <Age at={asked_at} />
        {state === "open" && <Until at={until} />}
      </p>
      {schema !== null && <Text value={schema} />}
      {state === "answered" && (
        <>
          <p>
            <b>Answer</b> {question.answered_by} <Verified is={question.verified} />
          </p>
          <Text value={question.answer} />
        </>
      )}
      {state === "open" && mayAct() && <Reply question={question} />}
    </article>
  );
}

function Reply({ question }: { question: Question }): VNode {
  const { task_id, question_id, choices } = question;
  const send = (answer: unknown): Promise<unknown> => call("task/answer", { task_id, question_id, answer });
  const choose = (choice: string): Action =>
    act("choose", choice, () => send(choice), "Answered.", { look: "primary" });
  return (
    <>
      {choices.length > 0 && (
        <p class="buttons">
          <Actions actions={choices.map(choose)} />
        </p>
      )}
      <Form
        action={act("answer", "Answer", (fields) => send(answerOf(fields)), "Answered.", {
          ask: (fields) => {
            const answer = answerOf(fields);
            const isExpected = choices.length === 0 || choices.some((choice) => choice === answer);
            return isExpected ? null : { text: "The answer is none of the choices.", yes: "Send it" };
          },
        })}
        fields={[
          {
            name: "answer",
            label: choices.length > 0 ? "Another answer" : "Answer",
            required: true,
            rows: 2,
          },
          { name: "json", label: "is JSON", type: "check" },
        ]}
      />
    </>
  );
}

function answerOf({ answer = "", json }: Fields): unknown {
  if (json === undefined) return answer;
  try {
    return parseExact(answer);
  } catch {
    throw new Error("The answer is not JSON.");
  }
}

// ---- A review

export function ReviewOf({ task, review }: { task: AnyTask; review: Review }): VNode {
  const { by, state, until, note, reviewed_by, reviewed_at, timed_out } = review;
  return (
    <Section title="Review">
      <p>
        {state !== null && <State word={state} />} by {by}
        {state === "pending" && <Until at={until} />}
        {reviewed_at !== null && (
          <>
            {" "}
            {reviewed_by ?? (timed_out ? "at the deadline" : "")} <Age at={reviewed_at} />
          </>
        )}
      </p>
      {note !== null && <Text value={note} />}
      {state === "pending" && <Verdict taskId={task.task_id} review={review} />}
    </Section>
  );
}

/** Passes or rejects the result that is shown: not one that came since. */
function Verdict(props: { taskId: string; review: Pick<Review, "epoch"> }): VNode | null {
  const [note, setNote] = useState("");
  if (!mayAct()) return null;
  const decide = (verdict: "pass" | "reject") => (): Promise<unknown> =>
    call("task/review", {
      task_id: props.taskId,
      verdict,
      note: note.trim() || undefined,
      epoch: props.review.epoch ?? undefined,
    });
  return (
    <>
      <Field label="Note for the worker" name="note" onInput={setNote} />
      <p class="buttons">
        <Actions
          actions={[
            act("pass", "Pass", decide("pass"), "Passed.", { look: "primary" }),
            act("reject", "Reject", decide("reject"), "Rejected.", { look: "danger" }),
          ]}
        />
      </p>
    </>
  );
}
