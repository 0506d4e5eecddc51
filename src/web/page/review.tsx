/** How the result of a task is checked, and the form that passes or rejects it. */
import { Fragment, type VNode, h } from "preact";
import { useState } from "preact/hooks";
import type { Review } from "../../client/luxhub.ts";
import type { AnyTask } from "./format.ts";
import { Age, Button, Field, Moment, Section, State, runAction } from "./parts.tsx";
import { call, mayAct } from "./session.ts";

export function ReviewOf({ task, review }: { task: AnyTask; review: Review }): VNode {
  const { by, state, until, note, reviewed_by, reviewed_at, timed_out } = review;
  return (
    <Section title="Review">
      <p>
        {state !== null && <State word={state} />} by {by}
        {state === "pending" && until !== null && (
          <>
            , until <Moment at={until} />
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
    </Section>
  );
}

/** Passes or rejects the result that is shown: not one that came since. */
export function Verdict(props: { taskId: string; review: Pick<Review, "epoch"> }): VNode | null {
  const [note, setNote] = useState("");
  if (!mayAct()) return null;
  const { taskId: task_id, review } = props;
  const decide = (verdict: "pass" | "reject", done: string): Promise<boolean> => {
    const asked = { task_id, verdict, note: note.trim() || undefined, epoch: review.epoch ?? undefined };
    return runAction(done, () => call("task/review", asked));
  };
  return (
    <>
      <Field label="Note for the worker" name="note" onInput={setNote} />
      <p class="buttons">
        <Button class="primary" data-do="pass" onClick={() => decide("pass", "Passed.")}>
          Pass
        </Button>
        <Button class="danger" data-do="reject" onClick={() => decide("reject", "Rejected.")}>
          Reject
        </Button>
      </p>
    </>
  );
}
