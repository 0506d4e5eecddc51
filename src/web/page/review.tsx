/** How the result of a task is checked, and the form that passes or rejects it. */
import type { JSX } from "preact";
import type { Review } from "../../client/luxhub.ts";
import type { AnyTask } from "./format.ts";
import { Age, Field, Form, State, runAction } from "./parts.tsx";
import { hub, mayAct } from "./session.ts";

export function ReviewOf({ task, review }: { task: AnyTask; review: Review }): JSX.Element {
  const { by, state, until, note, reviewed_by, reviewed_at, timed_out } = review;
  const decide = async (verdict: "pass" | "reject", given: string): Promise<void> => {
    await runAction(verdict === "pass" ? "Passed." : "Rejected.", () =>
      hub.value.tasks.review({
        task_id: task.task_id,
        verdict,
        note: given || undefined,
        epoch: review.epoch ?? undefined,
      }),
    );
  };
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
      {state === "pending" && mayAct.value && (
        <Form onSend={({ note: given = "" }) => decide("pass", given)}>
          <Field label="Note for whoever does it again" name="note" />
          <p class="buttons">
            <button type="submit" class="primary" data-do="pass">
              Pass
            </button>
            <button
              type="button"
              data-do="reject"
              onClick={(event) => {
                const field = event.currentTarget.form?.elements.namedItem("note");
                void decide("reject", field instanceof HTMLInputElement ? field.value.trim() : "");
              }}
            >
              Reject
            </button>
          </p>
        </Form>
      )}
    </section>
  );
}
