/** The line of `luxhub group watch`: what it says of a group on A and on B, which does not say which tasks run. */
import { expect, test } from "bun:test";
import { progressOf } from "../../src/cli/group.ts";

const GROUP = { total: 4, unfinished: 3, by_status: { open: 1, assigned: 1, completed: 1, failed: 1 } };

const BAR = `[${"#".repeat(7)}${".".repeat(23)}] 1/4 (25%)`;

test("running tasks are those that a node holds; what waits for a review is in review", () => {
  expect(progressOf({ ...GROUP, in_review: 1 })).toBe(`${BAR}, 1 running, 1 in review, 1 failed`);
});

test("on variant B nothing is said of running tasks", () => {
  expect(progressOf({ ...GROUP, by_status: { pending: 3, completed: 0, failed: 1 } })).toBe(
    `${BAR}, 1 failed`,
  );
});
