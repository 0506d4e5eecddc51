/** LUX (domain/lux.ts): exact amounts over their whole range, one sign-in a UTC day, a balance that cannot overflow. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { BALANCE_MAX_MICRO, LUX_REWARD_MAX, MICRO_PER_LUX } from "../../src/domain/limits.ts";
import {
  EMPTY_LEDGER,
  type SignIn,
  payReward,
  signIn,
  signinHorizon,
  toLux,
  toMicro,
} from "../../src/domain/lux.ts";
import type { LedgerEntry, Node } from "../../src/domain/model.ts";
import { node, sketch, task } from "./samples.ts";

const MICRO_MAX = LUX_REWARD_MAX * MICRO_PER_LUX;

/** 1234567 -> "1.234567": the number as a caller writes it, without arithmetic. */
function decimal(units: number, decimals: number): string {
  const digits = String(units).padStart(decimals + 1, "0");
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

describe("amounts", () => {
  test("every amount with 6 decimals is parsed exactly and encoded as it was", () => {
    const amount = fc.oneof(
      fc.integer({ min: 0, max: MICRO_MAX }),
      fc.integer({ min: MICRO_MAX - 10_000_000, max: MICRO_MAX }),
      fc.integer({ min: 0, max: 10_000_000 }),
    );
    fc.assert(
      fc.property(amount, (micro) => {
        const written: unknown = JSON.parse(decimal(micro, 6));
        expect(toMicro(Number(written))).toBe(micro);
        expect(toLux(micro)).toBe(Number(written));
        expect(toLux(BigInt(micro))).toBe(Number(written));
      }),
      { numRuns: 3_000, seed: 1 },
    );
  });

  // Above 2^29 LUX the numbers JSON can carry lie further apart than the seventh decimal.
  test("refuses an amount with seven decimals", () => {
    const tenths = fc
      .integer({ min: 0, max: 2 ** 29 * MICRO_PER_LUX - 1 })
      .chain((micro) => fc.integer({ min: 1, max: 9 }).map((last) => `${decimal(micro, 6)}${last}`));
    fc.assert(
      fc.property(tenths, (written) => expect(toMicro(Number(written))).toBeNull()),
      { numRuns: 3_000, seed: 1 },
    );
  });

  const rows: readonly (readonly [number, number | null])[] = [
    [0, 0],
    [1, 1_000_000],
    [0.000001, 1],
    [0.0000001, null],
    [0.1, 100_000],
    [0.1 + 0.2, null],
    [0.3, 300_000],
    [1.0000005, null],
    [LUX_REWARD_MAX, MICRO_MAX],
    [LUX_REWARD_MAX - 0.000001, MICRO_MAX - 1],
  ];
  for (const [lux, micro] of rows) test(`${lux} LUX`, () => expect(toMicro(lux)).toBe(micro));
});

describe("sign-in", () => {
  type Account = Pick<Node, "entries" | "balanceMicro">;
  const NEW: Account = { entries: 0, balanceMicro: 0n };
  const day = (hours: number, date = 15): number => Date.UTC(2025, 5, date, hours);
  const midnight = day(0, 16);
  const ask = (lastSigninAt: number | null, now: number, account: Account = NEW) =>
    signIn(
      node("n1", account),
      lastSigninAt,
      { nodeId: "n1", entryId: "e", head: EMPTY_LEDGER, amountMicro: 10_000_000 },
      now,
    );
  const words = (answer: SignIn): string =>
    `${answer.luxEarnedMicro} ${answer.already} ${answer.balanceMicro} ${new Date(answer.nextSigninAt).toISOString()}`;
  const paid = (at: number, before: Account): void => {
    const balance = before.balanceMicro + 10_000_000n;
    const next = `${new Date(at).toISOString().slice(0, 8)}${String(new Date(at).getUTCDate() + 1)}T00:00:00.000Z`;
    expect(sketch(ask(null, at, before), words)).toEqual([
      `answers 10000000 false ${balance} ${next}`,
      `n1 0 0 0`,
      `ledger n1 #${before.entries + 1} signin 10000000 ${balance}`,
      'lux.signin n1 null {"amount":10}',
    ]);
  };

  test("the first sign-in pays", () => paid(day(12), NEW));
  test("pays on top of the balance", () => paid(day(12), { entries: 41, balanceMicro: 123n }));

  const rows: readonly (readonly [string, number | null, number, "pays" | "already"])[] = [
    ["again in the same moment", day(12), day(12), "already"],
    ["again on the day", day(0), day(23), "already"],
    ["in the last millisecond of the day", day(0), midnight - 1, "already"],
    ["at the next midnight", day(23), midnight, "pays"],
    ["a minute after a late one", midnight - 1, midnight, "pays"],
    ["days later", day(12, 1), day(12), "pays"],
    ["the clock set back within the day", day(12), day(1), "already"],
    ["the clock set back over midnight", day(0), day(23, 14), "already"],
    ["the clock set back by a day and a bit", day(23), day(0, 14), "already"],
  ];
  for (const [name, last, now, outcome] of rows)
    test(name, () => {
      const decision = ask(last, now, { entries: 1, balanceMicro: 5n });
      expect(decision).toMatchObject({ kind: "accepted", answer: { already: outcome === "already" } });
      if (decision.kind === "accepted" && outcome === "already") {
        expect(decision.changes).toEqual([]);
        expect(decision.answer).toMatchObject({ luxEarnedMicro: 0, balanceMicro: 5n });
      }
    });

  test("says when it pays next: after the last paid day", () => {
    const nextOf = (last: number | null, now: number): unknown => {
      const decision = ask(last, now);
      return decision.kind === "accepted" && new Date(decision.answer.nextSigninAt).toISOString();
    };
    expect(nextOf(null, day(12))).toBe("2025-06-16T00:00:00.000Z");
    expect(nextOf(day(1), day(12))).toBe("2025-06-16T00:00:00.000Z");
    expect(nextOf(day(1), day(23, 14))).toBe("2025-06-16T00:00:00.000Z");
  });

  test("sign-ins later than tomorrow, dated by a wrong clock, are beyond the horizon", () => {
    expect(signinHorizon(day(12))).toBe(day(0, 17));
    expect(signinHorizon(day(0))).toBe(day(0, 17));
    expect(signinHorizon(midnight - 1)).toBe(day(0, 17));
  });

  test("an unknown node earns nothing", () => {
    expect(
      sketch(
        signIn(
          null,
          null,
          { nodeId: "n1", entryId: "e", head: EMPTY_LEDGER, amountMicro: 10_000_000 },
          day(12),
        ),
        words,
      ),
    ).toBe("node_not_found");
  });

  test("never pays twice on one UTC day, even if the clock goes back", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 4 * 86_400_000 }), { maxLength: 30 }), (times) => {
        const entries: LedgerEntry[] = [];
        for (const now of times) {
          const last = entries.length === 0 ? null : Math.max(...entries.map((entry) => entry.at));
          const decision = ask(last, now, {
            entries: entries.length,
            balanceMicro: entries.at(-1)?.balanceMicro ?? 0n,
          });
          if (decision.kind !== "accepted") throw new Error("rejected");
          for (const change of decision.changes)
            if (change.kind === "lux.entered") entries.push(change.entry);
        }
        const days = entries.map((entry) => Math.floor(entry.at / 86_400_000));
        expect(new Set(days).size).toBe(days.length);
        expect(entries.map(({ n }) => n)).toEqual(entries.map((_, i) => i + 1));
        expect(entries.at(-1)?.balanceMicro ?? 0n).toBe(10_000_000n * BigInt(entries.length));
      }),
      { seed: 1 },
    );
  });
});

describe("the balance limit", () => {
  const reward = task("t", { luxRewardMicro: 7 });
  const pay = (balanceMicro: bigint) =>
    sketch(
      payReward(node("n1", { entries: 8, balanceMicro }), reward, { entryId: "e", head: EMPTY_LEDGER }, 1),
      String,
    );
  test("accepts the last payment that fits", () => {
    expect(pay(BALANCE_MAX_MICRO - 7n)).toContain(`ledger n1 #9 reward 7 ${BALANCE_MAX_MICRO}`);
  });
  test("rejects a payment that does not fit", () =>
    expect(pay(BALANCE_MAX_MICRO - 6n)).toBe("lux_balance_limit"));
  test("rejects a sign-in that does not fit", () => {
    const asked = { nodeId: "n1", entryId: "e", head: EMPTY_LEDGER, amountMicro: 10_000_000 };
    const rich = node("n1", { entries: 1, balanceMicro: BALANCE_MAX_MICRO });
    const decision = signIn(rich, null, asked, 1);
    expect(decision).toMatchObject({ kind: "rejected", code: "lux_balance_limit" });
  });
  test("leaves room in 64 bits for one more reward of any size", () => {
    expect(BALANCE_MAX_MICRO + BigInt(MICRO_MAX)).toBeLessThan(2n ** 63n);
  });
});

test("the first reward is the node's first entry", () => {
  expect(
    sketch(
      payReward(node("n1"), task("t", { luxRewardMicro: 7 }), { entryId: "e", head: EMPTY_LEDGER }, 1),
      String,
    ),
  ).toContain("ledger n1 #1 reward 7 7");
});

test("a reward of 0 is no payment", () => {
  expect(sketch(payReward(node("n1"), task("t"), { entryId: "e", head: EMPTY_LEDGER }, 1), String)).toEqual([
    "answers null",
  ]);
});
