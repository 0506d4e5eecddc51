/**
 * The inbox: the open questions of workers, the most urgent first, each to be answered, and the results that wait for a
 * review.
 */
import { Fragment, type JSX, h } from "preact";
import { useState } from "preact/hooks";
import type { OpenQuestion, PendingReview } from "../../client/luxhub.ts";
import { commandOf, countOf } from "./format.ts";
import { Empty, Fault, useEvents, useLoad } from "./parts.tsx";
import { Asked, QUESTION_KINDS } from "./question.tsx";
import { Verdict } from "./review.tsx";
import { to } from "./route.ts";

const PAGE = 50;

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
  useEvents(({ kind }) => QUESTION_KINDS.has(kind), loaded);
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
