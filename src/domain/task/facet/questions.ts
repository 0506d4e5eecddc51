/**
 * Facet: the questions of a task (../question.ts). One that parks the task keeps it from being handed out. Nobody can
 * answer the open questions of a task that has ended.
 */
import type { Effect, Facet } from "./facet.ts";
import type { Task } from "../../model.ts";

export const questions: Facet = {
  name: "questions",
  ended(before, after, at): Effect | null {
    const { taskId, questions: asked } = before;
    if (asked === null) return null;
    const closed = isAsking(before) ? [{ kind: "questions.closed", taskId, at: at.now } as const] : [];
    if (after === null) return { changes: [{ kind: "questions.removed", taskId }] };
    return { patch: { questions: { ...asked, state: "settled" } }, changes: closed };
  },
  waits: ({ questions: asked }) => asked?.state === "parked",
  explains: ({ status, questions: asked }) =>
    status === "open" && asked?.state === "parked"
      ? [{ code: "question", detail: "It waits for the answer to a question.", until: null }]
      : [],
};

/** Whether it waits for the answer to a question. */
export function isAsking({ questions: asked }: Pick<Task, "questions">): boolean {
  return asked !== null && asked.state !== "settled";
}
