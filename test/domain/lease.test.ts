/** The rules of advisory leases: what they cost without one, the limit of all, and what cannot be had at once. */
import { EMPTY_LEDGER } from "../../src/domain/lux.ts";
import { describe, expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import { type LeaseRows, acquire, conflicts } from "../../src/domain/lease.ts";
import { LEASES_MAX } from "../../src/domain/limits.ts";
import type { Lease, Task } from "../../src/domain/model.ts";
import { expire, leave, remove as removeNode } from "../../src/domain/node.ts";
import { cancel } from "../../src/domain/task/creator.ts";
import { complete, fail, release, remove, revoke } from "../../src/domain/task/core.ts";
import { requeue, timeOut } from "../../src/domain/task/chores.ts";
import { dice } from "../support/dice.ts";
import { node, task } from "./samples.ts";

const AT = { now: 5_000, steady: 1_000 };
const ASKED = { name: "a", nodeId: "n1", taskId: null, shared: false, ttlMs: 10, epoch: null };
const LEASE: Lease = { ...ASKED, fencing: 3, leaseUntil: AT.steady + 1, acquiredAt: 1 };

function rows(patch: Partial<LeaseRows> = {}): LeaseRows {
  const totals = { all: 0, ofNode: 0, hasExpired: false };
  return { node: node("n1"), task: null, others: [], totals, lastFencing: 7, ...patch };
}

/** Every way in which a held task can end or be taken from its node. */
function endings(held: Task): readonly { readonly kind: string; readonly changes: readonly Change[] }[] {
  const one = node("n1", { tasksAssigned: 1 });
  const asked = { taskId: "t", nodeId: "n1", epoch: null };
  const result = { problem: "p", improvement: "i", lesson: "l", extra: null };
  const decisions = {
    complete: complete(
      held,
      one,
      { ...asked, result, claimOnComplete: false, entryId: "e", head: EMPTY_LEDGER, paid: null },
      AT,
    ),
    release: release(held, one, [], { ...asked, reason: null }, AT),
    fail: fail(held, one, [], { ...asked, error: "e", retry: true }, AT),
    failed: fail(held, one, [], { ...asked, error: "e", retry: false }, AT),
    revoke: revoke(held, node("n2"), [], { taskId: "t", nodeId: "n2", reason: null }, AT),
    cancel: cancel(held, null, { taskId: "t", boundTo: null, nodeId: null, reason: null }, AT),
    remove: remove(held, "t", AT.now),
    offline: requeue([held], AT),
    timeout: timeOut([{ ...held, timeoutMs: 1, leaseUntil: 1 }], AT),
  };
  return Object.entries(decisions).map(([kind, decision]) => ({
    kind,
    changes: decision.kind === "accepted" ? decision.changes : [],
  }));
}

const HELD = task("t", { status: "assigned", assignedNode: "n1", epoch: 1 });
const ABOUT_LEASES: readonly string[] = ["leases.released", "leases.dropped", "task.leased", "node.leased"];

describe("the end of a hand-out", () => {
  test("writes nothing about leases, unless the task has some", () => {
    for (const { kind, changes } of endings(HELD)) {
      expect([kind, changes.length > 0]).toEqual([kind, true]);
      expect([kind, changes.filter((change) => ABOUT_LEASES.includes(change.kind))]).toEqual([kind, []]);
    }
  });

  test("ends the leases of its task, once", () => {
    for (const { kind, changes } of endings({ ...HELD, hasLeases: true })) {
      const about = changes.flatMap(({ kind: one }) => (ABOUT_LEASES.includes(one) ? [String(one)] : []));
      const expected = kind === "remove" ? ["leases.released"] : ["leases.released", "task.leased"];
      expect([kind, about]).toEqual([kind, expected]);
      for (const change of changes)
        if (change.kind === "task.moved") expect([kind, change.task.hasLeases]).toEqual([kind, false]);
    }
  });

  test("the end of a node does the same", () => {
    for (const hasLeases of [false, true]) {
      const one = node("n1", { hasLeases });
      for (const decision of [expire([one], 1), leave(one, "n1", 1), removeNode(one, "n1", 1)]) {
        const changes = decision.kind === "accepted" ? decision.changes : [];
        const about = changes.flatMap(({ kind }) => (ABOUT_LEASES.includes(kind) ? [String(kind)] : []));
        expect(about).toEqual(hasLeases ? ["leases.dropped", "node.leased"] : []);
      }
    }
  });
});

describe("acquire", () => {
  test("marks the node and the task once", () => {
    const asked = { ...ASKED, taskId: "t" };
    const kinds = (decided: ReturnType<typeof acquire>) =>
      decided.kind === "accepted" ? decided.changes.map(({ kind }) => kind) : decided.code;
    const first = acquire(rows({ task: HELD }), asked, AT);
    expect(kinds(first)).toEqual(["fencing.drawn", "lease.saved", "task.leased", "node.leased"]);
    const marked = { task: { ...HELD, hasLeases: true }, node: node("n1", { hasLeases: true }) };
    expect(kinds(acquire(rows(marked), asked, AT))).toEqual(["fencing.drawn", "lease.saved"]);
  });

  test("removes what has expired in the same step, so that no renewal of all brings it back", () => {
    const expired = { ...LEASE, nodeId: "n2", leaseUntil: AT.steady };
    const decided = acquire(rows({ others: [expired] }), ASKED, AT);
    expect(decided.kind === "accepted" && decided.changes[0]).toEqual({
      kind: "leases.pruned",
      steady: AT.steady,
    });
  });

  test("is refused beyond the limit of all, but for what the node has", () => {
    const totals = { all: LEASES_MAX, ofNode: 1, hasExpired: false };
    expect(acquire(rows({ totals }), ASKED, AT)).toMatchObject({ code: "leases_limit" });
    expect(acquire(rows({ totals, others: [LEASE] }), ASKED, AT)).toMatchObject({
      answer: { fencing: 3, leaseUntil: AT.steady + 10 },
    });
  });

  test("never lets two that conflict be held at once, and draws ascending numbers", () => {
    const roll = dice(99);
    const names = ["a", "a/b", "a/*", "a/**", "**/b", "c"];
    let held: readonly Lease[] = [];
    let last = 0;
    for (let step = 0; step < 5_000; step++) {
      const nodeId = `n${roll(3)}`;
      const name = names[roll(names.length)] ?? "";
      const asked = { ...ASKED, name, nodeId, shared: roll(2) === 0, ttlMs: 1 + roll(40) };
      const at = { now: step, steady: step };
      const decided = acquire(rows({ node: node(nodeId), others: held, lastFencing: last }), asked, at);
      if (decided.kind === "rejected") {
        expect(decided.conflict?.holders.every((lease) => conflicts(lease, asked))).toBeTrue();
        continue;
      }
      const lease = decided.answer;
      held = [...held.filter((one) => one.name !== name || one.nodeId !== nodeId), lease];
      if (decided.changes.some(({ kind }) => kind === "fencing.drawn")) {
        expect(lease.fencing).toBe(last + 1);
        last = lease.fencing;
      }
      const live = held.filter(({ leaseUntil }) => leaseUntil > step);
      for (const [i, a] of live.entries())
        for (const b of live.slice(i + 1)) expect(conflicts(a, b)).toBeFalse();
    }
    expect(last).toBeGreaterThan(500);
  });
});
