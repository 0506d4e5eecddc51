/** New tasks with files as their inputs, and tasks that are sent to one node, or came through A2A. */
import type { Candidate } from "../balancer.ts";
import type { Change } from "../change.ts";
import { type Decision, type Rejected, accept, nodeNotFound } from "../decision.ts";
import { attach, upload } from "../file.ts";
import { takesType, wordOf } from "../lane.ts";
import { GIFTS_OF_GIVER_MAX } from "../limits.ts";
import type { FileRecord, Moment, Node, Task, TaskOrigin } from "../model.ts";
import { create, take } from "./core.ts";
import { isReady } from "./facets.ts";
import type { Dependency } from "./facet/dependencies.ts";
import type { TaskDraft } from "./new-task.ts";
import * as refuse from "./refusals.ts";

export type Created = Task & { readonly deduplicated?: true };

export type NamedRows = {
  readonly candidates: readonly Candidate[];
  readonly dependencies: readonly Dependency[];
  readonly files: readonly FileRecord[];
};

/** `boundTo`: see attach() (domain/file.ts). */
export function createWith(
  draft: TaskDraft,
  taskId: string,
  rows: NamedRows,
  boundTo: string | null,
  at: Moment,
): Decision<Task> {
  const attached = attach(rows.files, taskId, boundTo);
  if (attached.kind === "rejected") return attached;
  const files = rows.files.map(({ fileId }) => fileId);
  const created = create(draft, taskId, rows.candidates, at, rows.dependencies, files);
  return accept(created.answer, [...created.changes, ...attached.changes]);
}

export type Sent = {
  readonly origin: TaskOrigin | null;
  readonly nodeId: string | null;
  /**
   * Null: the node has the task at once. Else a key of another node sends it, and how many of its tasks wait for the
   * node: the task is open and waits too, in line with the others (reservedFor()).
   */
  readonly gifts?: number | null;
  /** Their bytes are on disk. */
  readonly files: readonly FileRecord[];
};

/** A node to which the balancer gives tasks gets this one from it too. */
export function reservedFor(draft: TaskDraft, nodeId: string, node: Node | null): TaskDraft {
  const requires = { capabilities: [wordOf(nodeId)], resources: {} };
  return { ...draft, requires, balanced: draft.balanced || (node?.autoAssign ?? false) };
}

/** For a key of another node. */
function refusesGift(node: Node, { taskType }: TaskDraft, gifts: number): Rejected | null {
  if (!takesType(node, taskType)) return refuse.typeNotTaken(node, taskType);
  return gifts < GIFTS_OF_GIVER_MAX
    ? refuse.unavailable(node)
    : refuse.giftsLimit(node.nodeId, GIFTS_OF_GIVER_MAX);
}

export function createSent(
  draft: TaskDraft,
  { origin, nodeId, files, gifts = null }: Sent,
  taskId: string,
  rows: NamedRows & { readonly node: Node | null },
  boundTo: string | null,
  at: Moment,
): Decision<Task> {
  const candidates = nodeId === null ? rows.candidates : [];
  const created = createWith(draft, taskId, { ...rows, candidates }, boundTo, at);
  if (created.kind === "rejected") return created;
  const changes: Change[] = [...created.changes];
  if (origin) changes.push({ kind: "task.sent", taskId, origin });
  let task = created.answer;
  for (const file of files) {
    const owner = file.nodeId === null ? null : { nodeId: file.nodeId };
    // Nobody holds the task yet, so each file is an input.
    const attached = upload({ ...file, taskId }, { ...task, assignedNode: null }, owner);
    if (attached.kind === "rejected") return attached;
    changes.push(...attached.changes);
    task = { ...task, files: [...task.files, file.fileId] };
  }
  if (nodeId === null) return accept(task, changes);
  if (rows.node && !isReady(task, at.now)) return refuse.notReadyForNode();
  if (gifts !== null) {
    const refused = rows.node ? refusesGift(rows.node, draft, gifts) : nodeNotFound(nodeId);
    return refused ?? accept(task, changes);
  }
  const taken = take(task, rows.node, { taskId, nodeId, by: "assign" }, at);
  if (taken.kind === "rejected") return taken;
  // The row is written once, as it is after the assignment.
  const assigned = changes.map((change): Change =>
    change.kind === "task.created" ? { ...change, task: taken.answer } : change,
  );
  return accept(taken.answer, [...assigned, ...taken.changes.filter(({ kind }) => kind !== "task.moved")]);
}
