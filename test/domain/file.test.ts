/** Files, keys and the list of events: the small rules (domain/file.ts, key.ts, event.ts). */
import { describe, expect, test } from "bun:test";
import { EVENT_KINDS, TASK_EVENT_KINDS, isTaskEvent } from "../../src/domain/event.ts";
import { remove, upload } from "../../src/domain/file.ts";
import { FILES_OF_TASK_MAX } from "../../src/domain/limits.ts";
import { isValid } from "../../src/domain/key.ts";
import type { FileRecord, KeyRecord } from "../../src/domain/model.ts";
import { NOW, node, sketch, task } from "./samples.ts";

const FILE: FileRecord = {
  fileId: "f",
  name: "a.txt",
  sizeBytes: 3,
  sha256: "00",
  contentType: "text/plain",
  metadata: '{"secret":1}',
  nodeId: null,
  taskId: null,
  attached: null,
  uploadedAt: NOW,
  keptBytes: 0,
};

describe("files", () => {
  const data = '{"file_id":"f","name":"a.txt","size":3}';
  const words = (file: FileRecord): string => file.fileId;
  test("upload on its own", () => {
    expect(sketch(upload(FILE, null, null), words)).toEqual([
      "answers f",
      "file.saved",
      "files +1 +3",
      `file.uploaded null null ${data}`,
    ]);
  });
  test("upload for a task and a node", () => {
    const file = { ...FILE, taskId: "t", nodeId: "n1" };
    expect(sketch(upload(file, task("t"), node("n1")), words)).toContain(`file.uploaded n1 t ${data}`);
  });
  test("upload for a task or a node that does not exist", () => {
    const file = { ...FILE, taskId: "t", nodeId: "n1" };
    expect(sketch(upload(file, null, null), words)).toContain(`file.uploaded null null ${data}`);
    expect(sketch(upload(file, task("t"), null), words)).toContain(`file.uploaded null t ${data}`);
  });
  test("is an output of the node that holds the task or, if none does, at which its last attempt failed", () => {
    const failedAt = (nodeId: string, kind: "offline" | "cancelled") =>
      ({ failure: { kind, message: null, nodeId, at: NOW } }) as const;
    for (const [of, attached] of [
      [{ assignedNode: "n1" }, "output"],
      [failedAt("n1", "offline"), "output"],
      [{ ...failedAt("n1", "offline"), assignedNode: "n2" }, "input"],
      [failedAt("n2", "offline"), "input"],
      [failedAt("n1", "cancelled"), "input"],
      [{}, "input"],
    ] as const)
      expect(upload(FILE, { ...task("t"), ...of }, node("n1"))).toMatchObject({ answer: { attached } });
  });
  test("upload with a key that is bound to a node", () => {
    const bound = { nodeId: "n1", node: node("n1") };
    const file = { ...FILE, taskId: "t", nodeId: "n1" };
    const mine = { ...task("t"), creatorNode: "n1" };
    const held = { ...task("t"), assignedNode: "n1" };
    const theirs = { ...task("t"), creatorNode: "n2", assignedNode: "n2" };
    const logged = (taskId: string | null) => `file.uploaded n1 ${taskId} ${data}`;
    expect(sketch(upload(FILE, null, null, bound), words)).toContain(logged(null));
    expect(sketch(upload(file, null, null, bound), words)).toContain(logged(null));
    expect(sketch(upload(file, mine, node("n1"), bound), words)).toContain(logged("t"));
    expect(sketch(upload(file, held, null, bound), words)).toContain(logged("t"));
    expect(sketch(upload(file, theirs, null, bound), words)).toBe("key_bound_to_other_node");
    expect(sketch(upload(file, null, node("n2"), bound), words)).toBe("key_bound_to_other_node");
    expect(sketch(upload(FILE, null, null, { ...bound, node: null }), words)).toBe("node_not_found");
  });
  test("upload for a task with the maximum number of files, or one fewer", () => {
    const file = { ...FILE, taskId: "t" };
    const withFiles = (count: number) => ({ ...task("t"), files: new Array<string>(count).fill("f") });
    expect(sketch(upload(file, withFiles(FILES_OF_TASK_MAX), null), words)).toBe("task_files_limit");
    expect(sketch(upload(file, withFiles(FILES_OF_TASK_MAX - 1), null), words)).toContain("file.saved");
  });
  test("remove", () => {
    expect(sketch(remove(FILE, "f", NOW), words)).toEqual([
      "answers f",
      "file.deleted",
      "files -1 -3",
      `file.deleted null null ${data}`,
    ]);
    expect(sketch(remove(null, "f", NOW), words)).toBe("file_not_found");
  });
});

test("a key is valid until it expires, and not once revoked", () => {
  const key: KeyRecord = {
    keyId: "k",
    role: "full",
    hash: "",
    variant: null,
    nodeId: null,
    mintMicro: null,
    createdAt: 0,
    expiresAt: null,
    revokedAt: null,
  };
  const rows: readonly (readonly [Partial<KeyRecord>, boolean])[] = [
    [{}, true],
    [{ expiresAt: NOW + 1 }, true],
    [{ expiresAt: NOW }, false],
    [{ revokedAt: NOW }, false],
    [{ revokedAt: 1, expiresAt: NOW + 1 }, false],
  ];
  for (const [patch, expected] of rows) expect(isValid({ ...key, ...patch }, NOW)).toBe(expected);
});

test("the kinds of events, and those of tasks, for which poll waits", () => {
  expect<readonly string[]>(EVENT_KINDS).toEqual(
    (
      "node.joined node.registered node.updated node.online node.offline node.draining node.left node.deleted task.created " +
      "task.assigned task.stuck task.requeued task.revoked task.released task.progress task.asked task.answered " +
      "task.question_timed_out task.attempt_failed task.timed_out task.failed task.retried task.updated task.completed task.review_requested task.review_passed task.review_rejected task.deleted group.ended schedule.saved schedule.skipped schedule.deleted webhook.saved webhook.deleted webhook.suspended webhook.resumed budget.set budget.deleted hub.paused hub.resumed limit.set limit.held limit.deleted budget.warning budget.exceeded usage.capped usage.voided lux.paid lux.signin message.sent message.acked " +
      "message.parked message.expired file.uploaded file.deleted note.changed note.deleted " +
      "hub.started hub.promoted standby.following standby.lost transport.changed"
    ).split(" "),
  );
  expect(TASK_EVENT_KINDS).toHaveLength(20);
  expect(TASK_EVENT_KINDS.every(isTaskEvent)).toBe(true);
});
