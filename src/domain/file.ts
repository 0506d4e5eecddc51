/** File rules: the record of an upload (specification 2, File). The bytes are in the blob store (blobs/). */
import { type Decision, type Rejected, accept, nodeNotFound, reject, taskNotFound } from "./decision.ts";
import { FILES_OF_TASK_MAX } from "./limits.ts";
import type { FileRecord, Node, Task } from "./model.ts";

/** Bytes of one file id in the answer of its task: a UUID, the quotes and a comma. */
export const FILE_ID_BYTES = 39;

/**
 * Records an upload whose bytes are on disk. The task and node that it names must exist, and the task have room.
 * `boundTo`: the node of the caller's key, if it is bound to one: then the task must be one that the node created or holds.
 */
export function upload(
  file: FileRecord,
  task: Task | null,
  node: Node | null,
  boundTo: string | null,
): Decision<FileRecord> {
  if (file.taskId !== null && !task) return taskNotFound(file.taskId);
  if (boundTo !== null && task && task.creatorNode !== boundTo && task.assignedNode !== boundTo)
    return notTaskOf(boundTo, task);
  if (file.nodeId !== null && !node) return nodeNotFound(file.nodeId);
  if (task && task.files.length >= FILES_OF_TASK_MAX) return taskFull(task);
  return accept(file, [{ kind: "file.saved", file }, fileEvent("file.uploaded", file, file.uploadedAt)]);
}

/** Removes the record; the caller removes the bytes after the commit. */
export function remove(file: FileRecord | null, fileId: string, now: number): Decision<FileRecord> {
  if (!file) return fileNotFound(fileId);
  return accept(file, [{ kind: "file.deleted", fileId }, fileEvent("file.deleted", file, now)]);
}

function notTaskOf(nodeId: string, { taskId }: Task): Rejected {
  const detail = `This key acts for ${nodeId} only, and task ${taskId} is neither assigned to it nor made by it.`;
  return reject("key_bound_to_other_node", detail);
}

function taskFull({ taskId, files }: Task): Rejected {
  const detail = `Task ${taskId} has ${files.length} files, and may have ${FILES_OF_TASK_MAX}. Delete one of them with POST /api/v1/file/delete, or put several into one archive.`;
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
