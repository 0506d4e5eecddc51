/** The types of the store's port: `bun check` fails when a verdict below is not what the compiler says. */
import { expect, test } from "bun:test";
import type { Answer, Committed, Transact } from "../../src/store/store.ts";

type Paid = { readonly lux: number };
type Verdict<T, Wanted> = T extends Wanted ? "compiles" : "is refused";

const copyOf = (answer: Committed<Paid>) => ({ ...answer });

test("neither a literal nor a copy of a committed answer passes for one", () => {
  const committed: Verdict<Committed<Paid>, Committed<Paid>> = "compiles";
  const literal: Verdict<Paid, Committed<Paid>> = "is refused";
  const copy: Verdict<ReturnType<typeof copyOf>, Committed<Paid>> = "is refused";
  const uncommitted: Verdict<Answer<Paid>, Committed<Paid>> = "is refused";
  expect([committed, literal, copy, uncommitted]).toHaveLength(4);
});

test("a Transact of one answer takes no decision of another", () => {
  const own: Verdict<Transact, Transact<Paid>> = "compiles";
  const other: Verdict<Transact<{ readonly id: string }>, Transact<Paid>> = "is refused";
  const narrower: Verdict<Transact<Paid>, Transact> = "is refused";
  expect([own, other, narrower]).toHaveLength(3);
});
