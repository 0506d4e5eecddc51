/** What a step of a task tells others: events, and marks for the chores. */
import type { Change } from "../change.ts";
import { type EventData, type EventKind, isOfCreator } from "../event.ts";
import type { Failure, Task } from "../model.ts";
import { shownFailure } from "./failure.ts";

/**
 * Names the creator, whose stream it must reach, unless it is about the creator anyway (isOfCreator); and group and
 * tags, by which events are selected.
 */
export function taskEvent(
  kind: EventKind,
  task: Task,
  nodeId: string | null,
  at: number,
  data: EventData,
): Change {
  const { taskId, creatorNode, group, tags } = task;
  const isNamed = creatorNode !== null && (creatorNode !== nodeId || !isOfCreator(kind));
  const named = isNamed ? { ...data, creator_node: creatorNode } : data;
  const ofGroup = group === null ? named : { ...named, group };
  const tagged = tags.length === 0 ? ofGroup : { ...ofGroup, tags: tags.join(",") };
  return { kind: "event.logged", event: { kind, at, nodeId, taskId, data: tagged } };
}

export function failedEvent(task: Task, holder: string | null, failure: Failure): Change {
  const { kind, at } = failure;
  const message = shownFailure({ ...task, failure })?.message ?? null;
  return taskEvent("task.failed", task, holder, at, { kind, message });
}

/** See family.ts. */
export function touchedFamily(taskId: string): Change {
  return { kind: "family.touched", taskId };
}
