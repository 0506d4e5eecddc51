/**
 * The inbox: the open questions of workers, the most urgent first, each to be answered, and the results that wait for a
 * review.
 */
import { Fragment, type JSX, h } from "preact";
import { useState } from "preact/hooks";
import type { OpenQuestion, PendingReview } from "../../client/luxhub.ts";
import { commandOf, countOf } from "./format.ts";
import { Button, Empty, Fault, Head, Moment, pagesOf, useEvents, useLoad } from "./parts.tsx";
import { Asked, QUESTION_KINDS } from "./question.tsx";
import { Verdict } from "./review.tsx";
import { to } from "./route.ts";

const PAGE = 50;

export function Questions(): JSX.Element {
  const [pages, setPages] = useState(1);
  const loaded = useLoad(`questions ${pages}`, async (from, signal) => {
    const questions: OpenQuestion[] = [];
    let total = 0;
    const load = (cursor: string | undefined) => from.call("questions", { limit: PAGE, cursor }, { signal });
    for await (const page of pagesOf(load)) {
      questions.push(...page.questions);
      ({ total } = page);
      if (questions.length >= pages * PAGE) break;
    }
    return { questions, total };
  });
  useEvents(({ kind }) => QUESTION_KINDS.has(kind), loaded);
  const { value, error } = loaded;
  return (
    <>
      <Head error={error}>Questions {value && <small>{countOf(value.total)} open</small>}</Head>
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
          <Button data-do="more" onClick={() => setPages(pages + 1)}>
            Show more
          </Button>
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
            , until <Moment at={review.until} />
          </>
        )}
      </p>
      <Verdict taskId={task_id} review={review} />
    </article>
  );
}
