/** Fault injection for a lost database: a transact of which one caller does not learn the outcome. */
import type { Decision } from "../../src/domain/decision.ts";
import {
  type Load,
  type Loaded,
  type Part,
  OutcomeUnknown,
  type Store,
  type Transact,
} from "../../src/store/store.ts";

/** `next()` commits the next transaction of `transact`, and then throws OutcomeUnknown. */
export function losingOutcome(store: Store): { readonly transact: Transact; readonly next: () => void } {
  let isLost = false;
  const transact = async (
    load: Load,
    decide: (rows: Loaded<Load>) => Decision<unknown>,
    before?: readonly Part[],
  ): Promise<unknown> => {
    const answer: unknown = await store.transact(load, decide, before);
    if (!isLost) return answer;
    isLost = false;
    throw new OutcomeUnknown("the database was lost");
  };
  return { transact: transact as Transact, next: () => (isLost = true) };
}
