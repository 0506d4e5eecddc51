/** The queue of the group commit: what a group is made of. */
import { expect, test } from "bun:test";
import { GROUP_HEAVY_MAX, GROUP_MAX, LIGHT_MAX, QUEUE_MAX } from "../../src/domain/limits.ts";
import { accept } from "../../src/domain/decision.ts";
import { type Job, JobQueue } from "../../src/store/pending-transaction.ts";
import { type Load, StoreBusy } from "../../src/store/store.ts";
import { dependenciesById } from "../../src/store/sql/tasks.ts";

const nothing = (): void => {};

/** A transaction of so many members. */
function job(members: number, load: Load = {}): Job {
  const member = { load, decide: () => accept(null) };
  return { members: Array.from({ length: members }, () => member), resolve: nothing, reject: nothing };
}

function queueOf(jobs: readonly Job[]): JobQueue {
  const queue = new JobQueue();
  for (const one of jobs) queue.add(one);
  return queue;
}

/** The groups until nothing waits, each as the places of its transactions. */
function groupsOf(jobs: readonly Job[]): readonly (readonly number[])[] {
  const queue = queueOf(jobs);
  const groups: number[][] = [];
  while (queue.length > 0) {
    const first = queue.firstGroup();
    const taken = queue.takeGroup();
    expect(taken).toEqual(first);
    groups.push(taken.map((one) => jobs.indexOf(one)));
  }
  return groups;
}

test("light transactions share a group, in order of arrival", () =>
  expect(groupsOf([job(1), job(LIGHT_MAX), job(1)])).toEqual([[0, 1, 2]]));

test("a group of light transactions has a limit", () => {
  const [first = [], ...rest] = groupsOf(Array.from({ length: GROUP_MAX + 1 }, () => job(1)));
  expect([first.length, rest]).toEqual([GROUP_MAX, [[GROUP_MAX]]]);
});

test("where light and heavy ones wait, their groups come in turns", () => {
  const jobs = [job(500), job(500), job(1), job(500), job(1)];
  expect(groupsOf(jobs)).toEqual([[2, 4], [0], [1], [3]]);
  const queue = queueOf(jobs);
  queue.takeGroup();
  queue.add(job(1)); // however many light ones come
  expect(queue.takeGroup()).toEqual([jobs[0] ?? job(0)]);
});

test("heavy transactions share a group up to its limit", () => {
  const jobs = Array.from({ length: 4 }, () => job(GROUP_HEAVY_MAX / 2));
  expect(groupsOf(jobs)).toEqual([
    [0, 1],
    [2, 3],
  ]);
});

test("a lookup of many rows is as heavy as many members", () => {
  const ids = Array.from({ length: 1_000 }, (_, i) => `t${i}`);
  const create = job(1, { dependencies: dependenciesById(ids) });
  const small = job(1, { dependencies: dependenciesById(ids.slice(0, 100)) });
  expect(groupsOf([create, small, job(1)])).toEqual([[1, 2], [0]]);
});

test("the queue counts the members that wait, and refuses more than its limit", () => {
  const queue = queueOf([job(QUEUE_MAX - 1), job(1)]);
  expect(queue.length).toBe(QUEUE_MAX);
  expect(() => queue.add(job(1))).toThrow(StoreBusy);
  expect(queue.takeAll().length).toBe(2);
  expect(queue.length).toBe(0);
});
