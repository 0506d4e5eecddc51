/**
 * Facet: the questions of a task (../question.ts). One that parks the task keeps it from being handed out. Nobody can
 * answer the open questions of a task that has ended.
 */
import type { Effect, Facet } from "./facet.ts";
import type { Task } from "../../model.ts";

export const questions: Facet = {
  name: "questions",
  ended(before, after, at): Effect | null {
    if (before.questions === null) return null;
    const { taskId } = before;
    if (after === null) return { changes: [{ kind: "questions.removed", taskId }] };
    const patch = { questions: { ...before.questions, state: "settled" } } as const;
    if (!isAsking(before)) return { patch };
    return { patch, changes: [{ kind: "questions.closed", taskId, at: at.now }] };
  },
  waits: isParked,
  explains: (task) =>
    task.status === "open" && isParked(task)
      ? [{ code: "question", detail: "It waits for the answer to a question.", until: null }]
      : [],
};

export function isAsking({ questions }: Pick<Task, "questions">): boolean {
  return questions !== null && questions.state !== "settled";
}

function isParked({ questions }: Pick<Task, "questions">): boolean {
  return questions?.state === "parked";
}
