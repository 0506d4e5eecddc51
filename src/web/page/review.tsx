/** How the result of a task is checked, and the form that passes or rejects it. */
import { Fragment, type JSX, h } from "preact";
import type { Review } from "../../client/luxhub.ts";
import type { AnyTask } from "./format.ts";
import { Age, Field, Form, State, runAction } from "./parts.tsx";
import { hub, mayAct } from "./session.ts";

export function ReviewOf({ task, review }: { task: AnyTask; review: Review }): JSX.Element {
  const { by, state, until, note, reviewed_by, reviewed_at, timed_out } = review;
  return (
    <section>
      <h2>Review</h2>
      <p>
        {state !== null && <State word={state} />} by {by}
        {state === "pending" && until !== null && (
          <>
            , until <time dateTime={until}>{new Date(until).toLocaleString()}</time>
          </>
        )}
        {reviewed_at !== null && (
          <>
            {" "}
            {reviewed_by ?? (timed_out ? "at the deadline" : "")} <Age at={reviewed_at} />
          </>
        )}
      </p>
      {note !== null && <pre class="text">{note}</pre>}
      {state === "pending" && <Verdict taskId={task.task_id} review={review} />}
    </section>
  );
}

/** Passes or rejects the result that is shown: not one that came since. */
export function Verdict(props: { taskId: string; review: Pick<Review, "epoch"> }): JSX.Element | null {
  if (!mayAct()) return null;
  const { taskId: task_id, review } = props;
  const decide = async (form: HTMLFormElement | null, verdict: "pass" | "reject"): Promise<void> => {
    const note = form === null ? "" : String(new FormData(form).get("note") ?? "").trim();
    const asked = { task_id, verdict, note: note || undefined, epoch: review.epoch ?? undefined };
    await runAction(verdict === "pass" ? "Passed." : "Rejected.", () => hub.value.call("task/review", asked));
  };
  const button = (word: string, verdict: "pass" | "reject"): JSX.Element => (
    <button
      type="button"
      class={verdict === "pass" ? "primary" : "danger"}
      data-do={verdict}
      onClick={({ currentTarget }) => void decide(currentTarget.form, verdict)}
    >
      {word}
    </button>
  );
  return (
    <Form onSend={() => {}}>
      <Field label="Note for the worker" name="note" />
      <p class="buttons">
        {button("Pass", "pass")} {button("Reject", "reject")}
      </p>
    </Form>
  );
}
