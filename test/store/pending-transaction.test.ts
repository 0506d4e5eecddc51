/** The queue of the group commit: what a group is made of. */
import { expect, test } from "bun:test";
import { GROUP_HEAVY_MAX, GROUP_MAX, LIGHT_MAX, QUEUE_MAX } from "../../src/domain/limits.ts";
import { accept } from "../../src/domain/decision.ts";
import { type Transaction, TransactionQueue, Turns } from "../../src/store/pending-transaction.ts";
import { type Load, StoreBusy } from "../../src/store/store.ts";
import { dependenciesById } from "../../src/store/sql/tasks.ts";

const nothing = (): void => {};

/** A transaction of so many parts. */
function transaction(parts: number, load: Load = {}): Transaction {
  const part = { load: () => load, decide: () => accept(null) };
  return { parts: Array.from({ length: parts }, () => part), resolve: nothing, reject: nothing };
}

function queueOf(transactions: readonly Transaction[]): TransactionQueue {
  const queue = new TransactionQueue();
  for (const one of transactions) queue.add(one);
  return queue;
}

/** The groups until nothing waits, each as the places of its transactions. */
function groupsOf(transactions: readonly Transaction[]): readonly (readonly number[])[] {
  const queue = queueOf(transactions);
  const turns = new Turns(queue);
  const groups: number[][] = [];
  while (queue.length > 0) {
    const first = turns.peekGroup();
    const taken = turns.takeGroup();
    expect(taken).toEqual(first);
    groups.push(taken.map((one) => transactions.indexOf(one)));
  }
  return groups;
}

test("light transactions share a group, in order of arrival", () =>
  expect(groupsOf([transaction(1), transaction(LIGHT_MAX), transaction(1)])).toEqual([[0, 1, 2]]));

test("a group of light transactions has a limit", () => {
  const [first = [], ...rest] = groupsOf(Array.from({ length: GROUP_MAX + 1 }, () => transaction(1)));
  expect([first.length, rest]).toEqual([GROUP_MAX, [[GROUP_MAX]]]);
});

test("where light and heavy ones wait, their groups come in turns", () => {
  const transactions = [transaction(500), transaction(500), transaction(1), transaction(500), transaction(1)];
  expect(groupsOf(transactions)).toEqual([[2, 4], [0], [1], [3]]);
  const queue = queueOf(transactions);
  const turns = new Turns(queue);
  turns.takeGroup();
  queue.add(transaction(1)); // however many light ones come
  expect(turns.takeGroup()).toEqual([transactions[0] ?? transaction(0)]);
});

test("heavy transactions share a group up to its limit", () => {
  const transactions = Array.from({ length: 4 }, () => transaction(GROUP_HEAVY_MAX / 2));
  expect(groupsOf(transactions)).toEqual([
    [0, 1],
    [2, 3],
  ]);
});

test("a lookup of many rows is as heavy as many parts", () => {
  const ids = Array.from({ length: 1_000 }, (_, i) => `t${i}`);
  const create = transaction(1, { dependencies: dependenciesById(ids) });
  const small = transaction(1, { dependencies: dependenciesById(ids.slice(0, 100)) });
  expect(groupsOf([create, small, transaction(1)])).toEqual([[1, 2], [0]]);
});

test("the queue counts the parts that wait, and refuses more than its limit", () => {
  const queue = queueOf([transaction(QUEUE_MAX - 1), transaction(1)]);
  expect(queue.length).toBe(QUEUE_MAX);
  expect(() => queue.add(transaction(1))).toThrow(StoreBusy);
  expect(queue.takeAll().length).toBe(2);
  expect(queue.length).toBe(0);
});
