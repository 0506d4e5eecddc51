/** Questions of workers with their answers, and reviews of results: as they stand, and as a person decides on them. */
import { Fragment, type VNode, h } from "preact";
import { useState } from "preact/hooks";
import type { Event, Question, Review } from "../../client/luxhub.ts";
import { parseExact } from "../../lib/exact-json.ts";
import { type Action, Actions, type Fields, Form, act } from "./action.tsx";
import { Field } from "./field.tsx";
import { type AnyTask, countOf } from "./format.ts";
import { Age, Section, State, Until, Verified } from "./parts.tsx";
import { Text } from "./prose.tsx";
import { call, mayAct, mayActFor } from "./session.ts";

// ---- A question

/** @param events of the task: they say which person has answered */
export function TaskQuestions(props: {
  questions: readonly Question[];
  events: readonly Event[];
}): VNode | null {
  const { questions, events } = props;
  if (questions.length === 0) return null;
  const by = new Map(events.map((event) => [event.data["question_id"], event.by]));
  return (
    <Section title="Questions">
      {questions.map((question) => (
        <Asked key={question.question_id} question={question} by={by.get(question.question_id)} />
      ))}
    </Section>
  );
}

export function Asked({ question, by }: { question: Question; by?: string | null | undefined }): VNode {
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
            <b>Answer</b> {question.answered_by ?? by} <Verified is={question.verified} />
          </p>
          <Text value={question.answer} />
        </>
      )}
      {state === "open" && <Reply question={question} />}
    </article>
  );
}

export function Reply({ question }: { question: Question }): VNode | null {
  if (!mayAct()) return null;
  const { task_id, question_id, choices } = question;
  const send = (answer: unknown): Promise<unknown> => call("task/answer", { task_id, question_id, answer });
  const choose = (choice: string): Action => act("choose", choice, () => send(choice), "Answered.");
  return (
    <>
      {choices.length > 0 && (
        <p class="choices">
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

/** @param by the person who has decided */
export function ReviewOf(props: { task: AnyTask; review: Review; by?: string | null | undefined }): VNode {
  const { task, review, by: person } = props;
  const { by, state, until, note, reviewed_by, reviewed_at, timed_out } = review;
  return (
    <Section title="Review">
      <p>
        {state !== null && <State word={state} />} by {by}
        {state === "pending" && <Until at={until} />}
        {reviewed_at !== null && (
          <>
            {" "}
            {reviewed_by ?? (timed_out ? "at the deadline" : person)} <Age at={reviewed_at} />
          </>
        )}
      </p>
      {note !== null && <Text value={note} />}
      {state === "pending" && <Verdict task={task} review={review} />}
    </Section>
  );
}

/** Passes or rejects the result that is shown: not one that came since. */
export function Verdict(props: {
  task: AnyTask;
  review: Pick<Review, "epoch" | "by">;
  /** What the result earns once it has passed. */
  held?: number;
}): VNode | null {
  const { task, review, held = 0 } = props;
  const [note, setNote] = useState("");
  const [, named] = /^node:(.+)$/.exec(review.by) ?? [];
  if (!mayActFor(review.by === "creator" ? task.creator_node : named)) return null;
  const decide = (verdict: "pass" | "reject") => (): Promise<unknown> =>
    call("task/review", {
      task_id: task.task_id,
      verdict,
      note: note.trim() || undefined,
      epoch: review.epoch ?? undefined,
    });
  return (
    <div class="verdict">
      <Field label="Note for the worker" name="note" onInput={setNote} />
      <Actions
        actions={[
          act("pass", held > 0 ? `Pass, pay ${countOf(held)} LUX` : "Pass", decide("pass"), "Passed.", {
            look: "primary",
          }),
          act("reject", "Reject", decide("reject"), "Rejected.", { look: "danger" }),
        ]}
      />
    </div>
  );
}
