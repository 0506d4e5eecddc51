/**
 * File rules: the record of an upload (specification 2, File). The bytes are in the blob store (blobs/).
 *
 * A file of a task is an output if, when it is attached, its node holds or has completed the task, or the last attempt
 * failed at it and no node holds the task. Every other is an input: what its creator attached, and what anybody else uploads for it. A file stays what it is: a later attempt gets the inputs,
 * and not what an earlier one has made.
 */
import type { Change } from "./change.ts";
import { type Decision, type Rejected, accept, nodeNotFound, reject, taskSealed } from "./decision.ts";
import { FILES_OF_TASK_MAX } from "./limits.ts";
import { isCancelled } from "./failure-kinds.ts";
import type { FileRecord, Node, Task } from "./model.ts";
import { fileBytes } from "./quota.ts";

/** In the answer of its task, which has it twice: a UUID, the quotes and a comma. */
export const FILE_ID_BYTES = 2 * 39;

/**
 * The bytes are on disk. A task or a node that its metadata names and that does not exist is plain metadata. `bound`:
 * the file is that node's, and the task must be one that the node created or holds.
 */
export function upload(
  named: FileRecord,
  task: Task | null,
  node: Pick<Node, "nodeId"> | null,
  bound: { readonly nodeId: string; readonly node: Node | null } | null = null,
): Decision<FileRecord> {
  if (bound) {
    const { nodeId } = bound;
    if (!bound.node) return nodeNotFound(nodeId);
    if (node && node.nodeId !== nodeId) return boundElsewhere(nodeId, `not for ${node.nodeId}`);
    if (task && task.creatorNode !== nodeId && workerOf(task) !== nodeId)
      return boundElsewhere(nodeId, `and task ${task.taskId} is neither assigned to it nor made by it`);
  }
  if (task?.child?.sealed) return taskSealed(task);
  if (task && task.files.length >= FILES_OF_TASK_MAX) return taskFull(task);
  const nodeId = bound?.nodeId ?? node?.nodeId ?? null;
  const isOutput = nodeId !== null && task !== null && workerOf(task) === nodeId;
  const attached = task && (isOutput ? "output" : "input");
  // As charge() of quota.ts sets it, which the response does not see.
  const keptBytes = bound ? fileBytes(named) : 0;
  const file: FileRecord = { ...named, taskId: task?.taskId ?? null, nodeId, attached, keptBytes };
  return accept(file, [
    { kind: "file.saved", file },
    { kind: "files.tallied", files: 1, bytes: file.sizeBytes },
    fileEvent("file.uploaded", file, file.uploadedAt),
  ]);
}

/** Its worker may have been killed, and send afterwards what the attempt has left. */
function workerOf({ assignedNode, failure }: Task): string | null {
  return assignedNode ?? (failure && !isCancelled(failure.kind) ? failure.nodeId : null);
}

/** Only then it counts against a quota. */
export function isVerified({ keptBytes }: Pick<FileRecord, "keptBytes">): boolean {
  return keptBytes > 0;
}

export function isFree({ taskId }: FileRecord): boolean {
  return taskId === null;
}

/** `boundTo`: only files of that node. */
export function attach(files: readonly FileRecord[], taskId: string, boundTo: string | null): Decision<null> {
  const other = boundTo === null ? undefined : files.find(({ nodeId }) => nodeId !== boundTo);
  if (boundTo !== null && other)
    return boundElsewhere(boundTo, `and ${other.fileId} is a file of another node`);
  return accept(
    null,
    files.map(({ fileId }): Change => ({ kind: "file.attached", fileId, taskId })),
  );
}

/** Removes the record; the caller removes the bytes after the commit. */
export function remove(file: FileRecord | null, fileId: string, now: number): Decision<FileRecord> {
  if (!file) return fileNotFound(fileId);
  return accept(file, [
    { kind: "file.deleted", fileId },
    { kind: "files.tallied", files: -1, bytes: -file.sizeBytes },
    ...(file.keptBytes > 0 && file.nodeId !== null
      ? [{ kind: "usage.tallied", nodeId: file.nodeId, tasks: 0, bytes: -file.keptBytes } as const]
      : []),
    fileEvent("file.deleted", file, now),
  ]);
}

function boundElsewhere(nodeId: string, what: string): Rejected {
  return reject("key_bound_to_other_node", `This key acts for ${nodeId} only, ${what}.`);
}

function taskFull({ taskId, files }: Task): Rejected {
  const detail = `Task ${taskId} has ${files.length} files, and ${FILES_OF_TASK_MAX} is the maximum. Delete one with POST /api/v1/file/delete, or put several into one archive.`;
  return reject("task_files_limit", detail);
}

export function fileNotFound(fileId: string): Rejected {
  return reject("file_not_found", `There is no file ${fileId}. Look its id up with GET /api/v1/file/list.`);
}

function fileEvent(kind: "file.uploaded" | "file.deleted", file: FileRecord, at: number) {
  const data = { file_id: file.fileId, name: file.name, size: file.sizeBytes };
  return {
    kind: "event.logged",
    event: { kind, at, nodeId: file.nodeId, taskId: file.taskId, data },
  } as const;
}
