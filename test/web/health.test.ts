/** What the overview says about a hub, and where its links lead. */
import { expect, test } from "bun:test";
import { type Facts, findingsOf } from "../../src/web/page/health.ts";

const WELL: Facts = {
  isOnline: true,
  canWrite: true,
  diskWarning: null,
  paused: [],
  open: 0,
  running: 0,
  nodesOnline: 2,
  nodesDraining: 0,
  types: [],
  stuck: [],
  done: 100,
  failed: 0,
  deadLetters: 0,
  webhooksSuspended: 0,
};

/** The tone, the sentence, and the link of each finding. */
function said(facts: Partial<Facts>): readonly string[] {
  return findingsOf({ ...WELL, ...facts }).map(({ tone, what, why, link }) =>
    [
      tone,
      what,
      why,
      link && `${link.view}${link.id === undefined ? "" : `/${link.id}`}?${new URLSearchParams(link.query)}`,
    ]
      .filter(Boolean)
      .join(" | "),
  );
}

test("a hub where nothing is wrong is well, and says what it does", () => {
  expect(said({})).toEqual(["good | All is well. | Nothing runs, nothing waits for a node."]);
  expect(said({ running: 1, open: 1_200 })).toEqual([
    "good | All is well. | 1 task runs, 1,200 wait for their turn.",
  ]);
});

test("nothing is said to be well while the hub cannot be reached or cannot write", () => {
  expect(said({ isOnline: false, canWrite: false }).map((line) => line.split(" | ").slice(0, 2))).toEqual([
    ["bad", "The hub cannot be reached."],
    ["bad", "The hub cannot write."],
  ]);
});

test("a pause is said: what waits then waits for a person", () => {
  expect(said({ paused: ["the whole hub", "type crawl"] })).toEqual([
    "wait | Paused: the whole hub, type crawl. | What runs goes on; nothing more of it is handed out.",
  ]);
});

test("open tasks that no node takes are named with the reason, and their list is linked", () => {
  expect(said({ open: 30, nodesOnline: 0 })).toEqual([
    "bad | 30 tasks wait. | No node is online. | tasks?status=ready",
  ]);
  expect(said({ open: 1, nodesDraining: 2 })).toEqual([
    "bad | 1 task waits. | Every node that is online drains. | nodes?status=draining",
  ]);
  expect(said({ open: 30, done: 0 })).toEqual([
    "wait | 30 tasks open, and none runs. | Nodes are online, but none has taken a task in the last hour. | tasks?status=ready",
  ]);
});

test("a type that no online node takes is named, with how long its oldest task waits", () => {
  const gpu = { type: "gpu", open: 1_180, oldestS: 2_050, nodesOnline: 0, nodesRegistered: 0 };
  const well = { ...gpu, type: "crawl", nodesOnline: 3 };
  expect(said({ open: 1_200, types: [well, gpu] })).toEqual([
    "bad | 1,180 tasks have no node that can take them. | Type “gpu”: no node has this capability. The oldest waits for 34 min. | tasks?status=ready&type=gpu",
  ]);
  const asleep = { ...gpu, type: null, open: 1, oldestS: null, nodesRegistered: 2 };
  expect(said({ open: 1, types: [asleep] })).toEqual([
    "bad | 1 task has no node that can take it. | Tasks without a type: the 2 nodes that can are offline. | tasks?status=ready",
  ]);
  const [both] = said({ open: 1_181, types: [asleep, gpu] });
  expect(both).toContain("1,181 tasks have no node");
  expect(both).toContain("The same for no type.");
});

test("tasks that require what no online node has are counted, with what is missing", () => {
  const gpu = {
    type: "crawl",
    open: 150,
    oldestS: 60,
    nodesRegistered: 0,
    missing: "the word gpu",
    taskId: "t1",
  };
  const crawl = { type: "crawl", open: 500, oldestS: 60, nodesOnline: 3, nodesRegistered: 3 };
  expect(said({ open: 500, types: [crawl], stuck: [gpu, { ...gpu, open: 50 }] })).toEqual([
    "bad | 200 tasks require what no online node has. | The node that comes closest lacks the word gpu. The oldest waits for 1 min. | tasks/t1?",
  ]);
  const asleep = { ...gpu, open: 1, oldestS: null, nodesRegistered: 2, missing: null };
  expect(said({ open: 500, types: [crawl], stuck: [asleep] })).toEqual([
    "bad | 1 task requires what no online node has. | The 2 nodes that can are offline. | tasks/t1?",
  ]);
  // That no node takes the type is said already.
  expect(said({ open: 500, types: [{ ...crawl, nodesOnline: 0 }], stuck: [gpu] })).toHaveLength(1);
});

test("failures are said from five on, if they are more than a tenth", () => {
  expect(said({ done: 0, failed: 4 })[0]).toStartWith("good");
  expect(said({ done: 100, failed: 11 })[0]).toStartWith("good");
  expect(said({ done: 90, failed: 11 })).toEqual([
    "bad | 11 tasks failed in the last hour. | 10.9 % of what has ended. | tasks?status=failed&last=3600",
  ]);
});

test("a filling disk and dead letters come after what is broken", () => {
  expect(said({ diskWarning: "Half is taken.", deadLetters: 1, open: 1, nodesOnline: 0 })).toEqual([
    "bad | 1 task waits. | No node is online. | tasks?status=ready",
    "wait | The disk fills up. | Half is taken.",
    "wait | 1 message was never acknowledged. | messages?parked=yes",
  ]);
  expect(said({ webhooksSuspended: 2 })).toEqual([
    "wait | 2 webhooks are suspended. | Their receivers have failed for too long. | control?",
  ]);
});
