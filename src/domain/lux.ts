/**
 * LUX: an append-only ledger (decisions.md LUX). A balance is never edited: each entry carries the sum of all
 * entries of its node up to itself, so the newest entry tells the balance and the rows prove it. Each names the entry
 * of its node before it, and the node its newest: the ledger is kept in order of arrival, and read along that chain.
 * Amounts are whole millionths of a LUX: integers, exact.
 */
import { DAY_MS, utcDayStart } from "../lib/clock.ts";
import { type Decision, accept, nodeNotFound, reject } from "./decision.ts";
import { BALANCE_MAX_MICRO, MICRO_PER_LUX, SIGNIN_LUX } from "./limits.ts";
import type { LastEntry, LedgerEntry, Node, Task } from "./model.ts";

type Payment = Omit<LedgerEntry, "previousId" | "n" | "balanceMicro" | "at">;

export type SignIn = {
  readonly luxEarnedMicro: number;
  readonly already: boolean;
  readonly balanceMicro: bigint;
  /** Epoch milliseconds of the next UTC midnight. */
  readonly nextSigninAt: number;
};

/** Millionths to LUX: the nearest number JSON can carry. */
export function toLux(micro: number | bigint): number {
  return Number(micro) / MICRO_PER_LUX;
}

/** LUX to millionths, or null when it has more than 6 decimals. */
export function toMicro(lux: number): number | null {
  const micro = Math.round(lux * MICRO_PER_LUX);
  return micro / MICRO_PER_LUX === lux ? micro : null;
}

/** Sign-ins from here on were dated by a clock that was wrong, and lock nobody out of the days before them. */
export function signinHorizon(now: number): number {
  return utcDayStart(now) + 2 * DAY_MS;
}

/**
 * Pays 10 LUX once a UTC day; a second sign-in on the day earns 0 and says so.
 * @param lastSigninAt the latest before `signinHorizon`
 */
export function signIn(
  node: Node | null,
  lastSigninAt: number | null,
  asked: { nodeId: string; entryId: string },
  now: number,
): Decision<SignIn> {
  if (!node) return nodeNotFound(asked.nodeId);
  const last = node.lastEntry;
  const balanceMicro = last?.balanceMicro ?? 0n;
  // Tomorrow's counts too: a clock set back over midnight must not pay a day for a second time.
  if (lastSigninAt !== null && lastSigninAt >= utcDayStart(now)) {
    const nextSigninAt = utcDayStart(lastSigninAt) + DAY_MS;
    return accept({ luxEarnedMicro: 0, already: true, balanceMicro, nextSigninAt });
  }
  const nextSigninAt = utcDayStart(now) + DAY_MS;
  const amountMicro = SIGNIN_LUX * MICRO_PER_LUX;
  const entry = {
    id: asked.entryId,
    nodeId: node.nodeId,
    amountMicro,
    kind: "signin",
    taskId: null,
  } as const;
  const paid = pay(entry, last, now);
  if (paid.kind === "rejected") return paid;
  const nothing = { assigned: 0, completed: 0, luxEarnedMicro: 0, held: null, unfiled: null } as const;
  const { idleSince } = node;
  return accept(
    {
      luxEarnedMicro: amountMicro,
      already: false,
      balanceMicro: paid.answer?.balanceMicro ?? 0n,
      nextSigninAt,
    },
    [
      { kind: "node.tallied", nodeId: node.nodeId, ...nothing, idleSince, lastEntry: paid.answer },
      ...paid.changes,
    ],
  );
}

/**
 * The changes of the ledger that pay a task's reward; none when it has none. The answer is the newest entry then, which
 * the caller has the node told.
 */
export function payReward(
  nodeId: string,
  task: Task,
  last: LastEntry,
  entryId: string,
  now: number,
): Decision<LastEntry> {
  if (task.luxRewardMicro === 0) return accept(last);
  const amountMicro = task.luxRewardMicro;
  return pay({ id: entryId, nodeId, amountMicro, kind: "reward", taskId: task.taskId }, last, now);
}

function pay(payment: Payment, last: LastEntry, now: number): Decision<LastEntry> {
  const { nodeId, taskId, amountMicro } = payment;
  const balanceMicro = (last?.balanceMicro ?? 0n) + BigInt(amountMicro);
  if (balanceMicro > BALANCE_MAX_MICRO) {
    return reject("lux_balance_limit", `Node ${nodeId} holds as much LUX as the hub can count.`);
  }
  const kind = payment.kind === "reward" ? "lux.paid" : "lux.signin";
  const newest = { id: payment.id, n: (last?.n ?? 0) + 1, balanceMicro };
  return accept(newest, [
    { kind: "lux.entered", entry: { ...payment, ...newest, previousId: last?.id ?? null, at: now } },
    { kind: "event.logged", event: { kind, at: now, nodeId, taskId, data: { amount: toLux(amountMicro) } } },
  ]);
}
