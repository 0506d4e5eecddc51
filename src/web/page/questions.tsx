/**
 * The inbox: the open questions of workers, the most urgent first, each to be answered, and the results that wait for a
 * review.
 */
import { Fragment, type VNode, h } from "preact";
import { useState } from "preact/hooks";
import type { OpenQuestion, PendingReview } from "../../client/luxhub.ts";
import { commandOf, countOf } from "./format.ts";
import { Button, Empty, Fault, Head, Moment, Section, TaskLink, pagesOf, useLoad } from "./parts.tsx";
import { Asked, QUESTION_KINDS } from "./question.tsx";
import { Verdict } from "./review.tsx";

const PAGE = 50;

export function Questions(): VNode {
  const [pages, setPages] = useState(1);
  const loaded = useLoad(
    `questions ${pages}`,
    async (ask) => {
      const questions: OpenQuestion[] = [];
      let total = 0;
      const load = (cursor: string | undefined) => ask("questions", { limit: PAGE, cursor });
      for await (const page of pagesOf(load)) {
        questions.push(...page.questions);
        ({ total } = page);
        if (questions.length >= pages * PAGE) break;
      }
      return { questions, total };
    },
    ({ kind }) => QUESTION_KINDS.has(kind),
  );
  const { value, error } = loaded;
  return (
    <>
      <Head error={error}>Questions {value && <small>{countOf(value.total)} open</small>}</Head>
      {value?.questions.length === 0 && (
        <Empty
          text="No worker waits for an answer. A worker asks about its task like this:"
          line={commandOf("task ask TASK 'Which colour?' --node worker-1")}
        />
      )}
      {value?.questions.map((question) => (
        <section key={question.question_id}>
          <h2>
            <TaskLink task={{ task_id: question.task_id, title: question.task_title }} />
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
function Reviews(): VNode | null {
  const loaded = useLoad("reviews", (ask) => ask("reviews", { limit: PAGE }), /^task\.(?:review_|deleted)/);
  const { value, error } = loaded;
  if (value === null || value.total === 0) return <Fault text={error} />;
  return (
    <Section
      title={
        <>
          Results in review{" "}
          <span>
            {value.reviews.length < value.total && "the most urgent of "}
            {countOf(value.total)}
          </span>
        </>
      }
    >
      {value.reviews.map((waiting) => (
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
