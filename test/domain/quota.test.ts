/** What a request with a bound key counts and may exceed (domain/quota.ts), kind by kind. */
import { describe, expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import { accept, reject } from "../../src/domain/decision.ts";
import type { EventData, EventKind } from "../../src/domain/event.ts";
import * as limit from "../../src/domain/limits.ts";
import type { FileRecord } from "../../src/domain/model.ts";
import { type Quotas, charge, fileBytes, usageBy } from "../../src/domain/quota.ts";
import { message, task } from "./samples.ts";

const PLENTY: Quotas = { tasks: 10, bytes: 1_000_000 };
/** Of a task with the texts of samples.ts. */
const TASK_BYTES = limit.KEPT_TASK_BYTES + "TitleDescription".length;
const NONE = { tasks: 0, bytes: 0 };
/** Of an event without data. */
const EVENT_BYTES = limit.KEPT_EVENT_BYTES + "{}".length;

function event(kind: EventKind, data: EventData = {}, nodeId: string | null = "n1"): Change {
  return { kind: "event.logged", event: { kind, at: 0, nodeId, taskId: null, data } };
}

const file: FileRecord = {
  fileId: "f1",
  name: "a.txt",
  sizeBytes: 1,
  sha256: "",
  contentType: "text/plain",
  metadata: "{}",
  nodeId: "n1",
  taskId: null,
  attached: null,
  uploadedAt: 0,
  keptBytes: 0,
};

const created: Change = { kind: "task.created", task: task("t1", { creatorNode: "n1" }) };
const stored: Change = { kind: "message.stored", message: message("m1"), keptBytes: 900 };

/** What the changes of a request with a key of n1 add to its usage. */
function countedFor(changes: readonly Change[]): unknown {
  const decision = charge(accept("answer", changes), "n1", NONE, PLENTY);
  if (decision.kind !== "accepted") return decision.kind;
  expect(decision.answer).toBe("answer");
  const last = decision.changes.at(-1);
  return last?.kind === "usage.tallied" ? { tasks: last.tasks, bytes: last.bytes } : null;
}

test.each<[string, Change, unknown]>([
  ["an open task", created, { tasks: 1, bytes: TASK_BYTES }],
  [
    "a task that waits",
    { kind: "task.created", task: task("t1", { creatorNode: "n1", dependsOn: ["a", "b"], unmet: 1 }) },
    {
      tasks: 1,
      bytes: TASK_BYTES + 2 * limit.KEPT_DEPENDENCY_ID_BYTES + limit.KEPT_DEPENDENCY_BYTES,
    },
  ],
  [
    "a task that failed at once",
    { kind: "task.created", task: task("t1", { creatorNode: "n1", status: "failed" }) },
    { tasks: 0, bytes: TASK_BYTES },
  ],
  ["a task of another creator", { kind: "task.created", task: task("t1") }, null],
  [
    "a file",
    { kind: "file.saved", file },
    { tasks: 0, bytes: limit.KEPT_FILE_BYTES + 7 + limit.KEPT_BLOCK_BYTES },
  ],
  ["a file of another node", { kind: "file.saved", file: { ...file, nodeId: "n2" } }, null],
  ["a message", stored, { tasks: 0, bytes: 900 }],
  [
    "a broadcast that is whole",
    { kind: "message.charged", messageId: "m1", keptBytes: 9 },
    { tasks: 0, bytes: 9 },
  ],
  ["an event", event("task.assigned", { by: "next" }), { tasks: 0, bytes: limit.KEPT_EVENT_BYTES + 13 }],
  ["an event about another node", event("task.assigned", {}, "n2"), { tasks: 0, bytes: EVENT_BYTES }],
  ["an event about no node", event("limit.held", {}, null), { tasks: 0, bytes: EVENT_BYTES }],
  ["a heartbeat", { kind: "node.beaten", nodeId: "n1", lastHeartbeatAt: 1, leaseUntil: 2 }, null],
])("%s counts", (_, change, counted) => {
  expect(countedFor([change])).toEqual(counted);
});

test("a file counts whole blocks", () => {
  const of = (sizeBytes: number): number =>
    fileBytes({ sizeBytes, name: "", metadata: "" }) - limit.KEPT_FILE_BYTES;
  expect([0, 1, 4_096, 4_097].map(of)).toEqual([4_096, 4_096, 4_096, 8_192]);
});

describe("over the quota", () => {
  const full: Quotas = { tasks: 0, bytes: 100 };
  const over = (changes: readonly Change[]) =>
    charge(accept(null, changes), "n1", { tasks: 0, bytes: 100 }, full);
  const kindOf = (...changes: readonly Change[]): string => over(changes).kind;

  test.each<[string, readonly Change[]]>([
    ["create", [created]],
    ["send", [stored]],
    ["upload", [{ kind: "file.saved", file }]],
    ["claim", [event("task.assigned", { by: "claim" })]],
    ["next", [event("task.assigned", { by: "next" })]],
    ["note", [event("task.progress", { note: "x" })]],
    ["retry that fails at once", [event("task.retried"), event("task.failed")]],
    ["create of a failed task", [created, event("task.failed")]],
    ["new profile", [event("node.updated")]],
    ["drain", [event("node.draining")]],
    ["register", [event("node.registered"), event("node.online")]],
    ["daily bonus", [event("lux.signin"), event("lux.paid")]],
    ["hold", [event("limit.held", {}, null)]],
    ["usage beyond twice the quota", [{ kind: "usage.tallied", nodeId: "n1", tasks: 0, bytes: 101 }]],
  ])("%s is refused", (_, changes) => {
    expect(over(changes)).toMatchObject({
      kind: "rejected",
      code: "quota_exceeded",
      quota: { allowed: expect.any(Number) },
    });
  });

  test.each<[string, readonly Change[]]>([
    ["complete", [event("task.completed"), event("lux.paid")]],
    ["complete of an open task on B", [event("task.assigned", { by: "complete" }), event("task.completed")]],
    ["fail", [event("task.attempt_failed"), event("task.failed")]],
    ["release", [event("task.released"), event("task.assigned", { by: "balancer" }, "n2")]],
    ["release that uses up a budget", [event("budget.exceeded", {}, null), event("task.released")]],
    ["cancel", [event("task.failed")]],
    ["ack", [event("message.acked")]],
    ["usage up to twice the quota", [{ kind: "usage.tallied", nodeId: "n1", tasks: 0, bytes: 100 }]],
    ["leave", [event("node.left"), event("node.offline"), event("task.released")]],
    [
      "delete of a file",
      [event("file.deleted"), { kind: "usage.tallied", nodeId: "n1", tasks: 0, bytes: -9_000 }],
    ],
    ["heartbeat", [{ kind: "node.beaten", nodeId: "n1", lastHeartbeatAt: 1, leaseUntil: 2 }]],
  ])("%s is not, though it counts", (_, changes) => {
    expect(kindOf(...changes)).toBe("accepted");
  });

  test("a node may come back, up to twice the quota", () => {
    const back = (bytes: number) =>
      charge(accept(null, [event("node.online")]), "n1", { tasks: 0, bytes }, { tasks: 0, bytes: 1_000 })
        .kind;
    expect([900, 1_500, 1_900, 2_000].map(back)).toEqual(["accepted", "accepted", "rejected", "rejected"]);
  });

  test("exactly the rest still fits", () => {
    const bytes = TASK_BYTES;
    const at = (quotas: Quotas) =>
      charge(accept(null, [created]), "n1", { tasks: 1, bytes: 10 }, quotas).kind;
    expect(at({ tasks: 2, bytes: 10 + bytes })).toBe("accepted");
    expect(at({ tasks: 1, bytes: 10 + bytes })).toBe("rejected");
    expect(at({ tasks: 2, bytes: 9 + bytes })).toBe("rejected");
  });

  test("a refusal stays what it is", () => {
    const rejected = reject("task_not_open", "x");
    expect(charge(rejected, "n1", NONE, full)).toBe(rejected);
  });
});

test("keys that have quotas", () => {
  const all = new Map([["n1", { tasks: 1, bytes: 2 }]]);
  expect(usageBy({ role: "full", nodeId: "n1" }, all)).toEqual({ tasks: 1, bytes: 2 });
  expect(usageBy({ role: "full", nodeId: "n2" }, all)).toEqual(NONE);
  expect(usageBy({ role: "full", nodeId: null }, all)).toBeUndefined();
  expect(usageBy({ role: "viewer", nodeId: "n1" }, all)).toBeUndefined();
});
