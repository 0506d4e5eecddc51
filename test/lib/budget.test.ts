/** A shared budget: never more given out than there is but to one alone, and who waits is served in order. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Budget, BudgetSpent } from "../../src/lib/budget.ts";

/** Who has been served so far, by number. */
function ask(budget: Budget, amounts: readonly number[]): readonly number[] {
  const served: number[] = [];
  for (const [i, amount] of amounts.entries()) void budget.take(amount).then(() => served.push(i));
  return served;
}

test("gives what there is, then keeps waiting, in order, also those who ask for little", async () => {
  const budget = new Budget(10);
  const served = ask(budget, [6, 4, 5, 1, 1]);
  await Bun.sleep(0);
  expect([served, budget.taken, budget.isScarce]).toEqual([[0, 1], 10, true]);
  budget.give(4);
  await Bun.sleep(0);
  expect([served, budget.taken]).toEqual([[0, 1], 6]); // 5 do not fit yet, and 1 does not go before them
  budget.give(1);
  await Bun.sleep(0);
  expect([served, budget.taken, budget.isScarce]).toEqual([[0, 1, 2], 10, true]);
  budget.give(6);
  await Bun.sleep(0);
  expect([served, budget.taken, budget.isScarce]).toEqual([[0, 1, 2, 3, 4], 6, false]);
});

test("more than there is at all goes to one alone", async () => {
  const budget = new Budget(10);
  const served = ask(budget, [50, 1]);
  await Bun.sleep(0);
  expect([served, budget.taken]).toEqual([[0], 50]);
  budget.give(50);
  await Bun.sleep(0);
  expect([served, budget.taken]).toEqual([[0, 1], 1]);
});

test("what is there already is counted without waiting", async () => {
  const budget = new Budget(10);
  ask(budget, [2]);
  budget.give(-100);
  const served = ask(budget, [1]);
  await Bun.sleep(0);
  expect([served, budget.taken]).toEqual([[], 102]);
  budget.give(102);
  await Bun.sleep(0);
  expect([served, budget.taken]).toEqual([[0], 1]);
});

test("what is asked for now is given now or not at all, and never before who waits", async () => {
  const budget = new Budget(10);
  expect([budget.takeNow(8), budget.takeNow(3), budget.takeNow(2)]).toEqual([true, false, true]);
  const served = ask(budget, [5]);
  budget.give(4);
  expect([budget.takeNow(1), budget.taken]).toEqual([false, 6]);
  budget.give(1);
  await Bun.sleep(0);
  expect([served, budget.taken]).toEqual([[0], 10]);
});

test("who waits only so long gets it in time, or nothing is taken and the next is looked at", async () => {
  const budget = new Budget(10);
  await budget.takeWithin(8, 1);
  const late = budget.takeWithin(5, 10);
  const next = budget.takeWithin(2, 10_000);
  await expect(late).rejects.toBeInstanceOf(BudgetSpent);
  await next;
  expect([budget.taken, budget.isScarce]).toEqual([10, false]);
  const last = budget.takeWithin(10, 10_000);
  budget.give(10);
  await last;
  expect(budget.taken).toBe(10);
});

test("when it is drained nobody is held up by a limit of time any more", async () => {
  const budget = new Budget(10);
  await budget.take(8);
  const late = budget.takeWithin(5, 10_000);
  const patient = budget.take(2);
  budget.drain();
  await expect(late).rejects.toBeInstanceOf(BudgetSpent);
  await patient;
  await expect(budget.takeWithin(1, 10_000)).rejects.toBeInstanceOf(BudgetSpent);
  budget.give(1);
  await budget.takeWithin(1, 10_000); // what is there is given as before
  expect([budget.taken, budget.isScarce]).toEqual([10, false]);
});

test("whatever is taken and given back, all are served and nothing is left", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 15 }), { maxLength: 40 }), async (amounts) => {
      const budget = new Budget(10);
      let most = 0;
      await Promise.all(
        amounts.map(async (amount) => {
          await budget.take(amount);
          if (budget.taken !== amount) most = Math.max(most, budget.taken);
          await Bun.sleep(0);
          budget.give(amount);
        }),
      );
      expect(most).toBeLessThanOrEqual(10);
      expect([budget.taken, budget.isScarce]).toEqual([0, false]);
    }),
    { numRuns: 50, seed: 1 },
  );
});
