/**
 * Facet: several nodes do copies of a task, which is not handed out itself (../quorum.ts). Its copies are created when it
 * waits for nothing any more, by a chore (../family.ts).
 */
import type { Change } from "../../change.ts";
import type { Quorum, Task } from "../../model.ts";
import { touchedFamily } from "../log.ts";
import { isFinished, isWaiting } from "../state.ts";
import type { Effect, Facet } from "./facet.ts";

export const quorum: Facet = {
  name: "quorum",
  created(task, at) {
    if (task.quorum === null) return null;
    return { changes: [quorate(task.taskId, task.quorum), ...(due(task, at.now)?.changes ?? [])] };
  },
  opened: (_before, after, at) => due(after, at.now),
  ended: (before) =>
    before.quorum === null || isFinished(before) ? null : { changes: [touchedFamily(before.taskId)] },
  waits: (task) => task.quorum !== null,
  explains: (task) =>
    task.status === "open" && task.quorum !== null
      ? [{ code: "quorum", detail: "Several nodes do its copies: see quorum.copies.", until: null }]
      : [],
};

function due(task: Task, now: number): Effect | null {
  if (task.quorum === null || task.status !== "open" || isWaiting(task, now)) return null;
  return { changes: [touchedFamily(task.taskId)] };
}

export function quorate(taskId: string, quorum: Quorum): Change {
  return { kind: "task.quorate", taskId, quorum };
}

/** A retry begins a new round. */
export function nextRound(quorum: Quorum): Quorum {
  return { ...quorum, state: "pending", round: quorum.round + 1, copies: [], agreed: [] };
}
