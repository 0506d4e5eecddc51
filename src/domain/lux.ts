/**
 * LUX: an append-only ledger (specification 4, LUX economy). No entry is ever edited. Each has the sum of its node's
 * entries up to itself, so the newest entry has the balance. Amounts are whole millionths of a LUX.
 */
import { DAY_MS, utcDayStart } from "../lib/clock.ts";
import { type Decision, accept, nodeNotFound, reject } from "./decision.ts";
import { BALANCE_MAX_MICRO, MICRO_PER_LUX, SIGNIN_LUX } from "./limits.ts";
import type { LedgerEntry, Node, Task } from "./model.ts";

type Payment = Omit<LedgerEntry, "n" | "balanceMicro" | "at">;

/** A node's number of entries, and its balance. */
type Account = Pick<Node, "entries" | "balanceMicro">;

export type SignIn = {
  readonly luxEarnedMicro: number;
  readonly already: boolean;
  readonly balanceMicro: bigint;
  /** Epoch milliseconds of the next UTC midnight. */
  readonly nextSigninAt: number;
};

/** Millionths to LUX, rounded to the nearest number of JSON. */
export function toLux(micro: number | bigint): number {
  return Number(micro) / MICRO_PER_LUX;
}

/** LUX to millionths; null for more than 6 decimals. */
export function toMicro(lux: number): number | null {
  const micro = Math.round(lux * MICRO_PER_LUX);
  return micro / MICRO_PER_LUX === lux ? micro : null;
}

/** Sign-ins from here on were dated by a wrong clock, and do not count. */
export function signinHorizon(now: number): number {
  return utcDayStart(now) + 2 * DAY_MS;
}

/**
 * Pays 10 LUX once a UTC day; another sign-in on the same day is accepted and pays nothing.
 * @param lastSigninAt the latest sign-in before `signinHorizon`
 */
export function signIn(
  node: Node | null,
  lastSigninAt: number | null,
  asked: { nodeId: string; entryId: string },
  now: number,
): Decision<SignIn> {
  if (!node) return nodeNotFound(asked.nodeId);
  const { balanceMicro, idleSince } = node;
  // A sign-in of tomorrow counts as well: a clock set back over midnight must not pay a day twice.
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
  const paid = pay(entry, node, now);
  if (paid.kind === "rejected") return paid;
  const earned = {
    assigned: 0,
    completed: 0,
    luxEarnedMicro: 0,
    entries: 1,
    balanceMicro: amountMicro,
  } as const;
  return accept({ luxEarnedMicro: amountMicro, already: false, balanceMicro: paid.answer, nextSigninAt }, [
    { kind: "node.tallied", nodeId: node.nodeId, ...earned, idleSince },
    ...paid.changes,
  ]);
}

/** Pays a task's reward, if it has one. The answer is the node's new balance. */
export function payReward(node: Node, task: Task, entryId: string, now: number): Decision<bigint> {
  if (task.luxRewardMicro === 0) return accept(node.balanceMicro);
  const { nodeId } = node;
  const amountMicro = task.luxRewardMicro;
  return pay({ id: entryId, nodeId, amountMicro, kind: "reward", taskId: task.taskId }, node, now);
}

function pay(payment: Payment, account: Account, now: number): Decision<bigint> {
  const { nodeId, taskId, amountMicro } = payment;
  const balanceMicro = account.balanceMicro + BigInt(amountMicro);
  if (balanceMicro > BALANCE_MAX_MICRO) {
    return reject("lux_balance_limit", `Node ${nodeId} has reached the maximum LUX balance.`);
  }
  const kind = payment.kind === "reward" ? "lux.paid" : "lux.signin";
  return accept(balanceMicro, [
    { kind: "lux.entered", entry: { ...payment, n: account.entries + 1, balanceMicro, at: now } },
    { kind: "event.logged", event: { kind, at: now, nodeId, taskId, data: { amount: toLux(amountMicro) } } },
  ]);
}
