/**
 * LUX: an append-only ledger (specification 4, LUX economy). Every entry moves LUX from one account to another. An entry
 * that goes to a node has the sum of the node's entries up to itself, so the newest one has the balance. Amounts are
 * whole millionths of a LUX.
 *
 * The entries are a hash chain: each has the SHA-256 of itself and of the hash before it, so an export can be verified
 * without the hub. `transfer` alone makes entries. It needs the newest entry (LedgerHead): transactions are serial, so
 * no other entry can come between.
 */
import { assert } from "../lib/assert.ts";
import { DAY_MS, isoTime, utcDayStart } from "../lib/clock.ts";
import type { Change } from "./change.ts";
import { type Decision, type Rejected, accept, nodeNotFound, reject } from "./decision.ts";
import type { NewEvent } from "./event.ts";
import { BALANCE_MAX_MICRO, MICRO_PER_LUX } from "./limits.ts";
import type { HeldAccount, LedgerEntry, LedgerHead, Node, Receipt, Task } from "./model.ts";

export const TREASURY = "treasury";

export function heldAccount(taskId: string): HeldAccount {
  return `held:${taskId}`;
}

export const EMPTY_LEDGER: LedgerHead = { seq: 0, hash: null };

export const GENESIS_HASH = "0".repeat(64);

export type HashedEntry = Pick<
  LedgerEntry,
  "seq" | "id" | "from" | "to" | "amountMicro" | "kind" | "taskId" | "at"
>;

/** Of nine lines joined by line feeds: docs/concepts.md documents them. */
export function hashOfEntry(entry: HashedEntry, prevHash: string): string {
  const { seq, id, at, kind, from, to, amountMicro, taskId } = entry;
  const amount = toLux(amountMicro).toFixed(6);
  const lines = [prevHash, seq, id, isoTime(at), kind, from, to, amount, taskId ?? ""];
  return Bun.SHA256.hash(lines.join("\n"), "hex");
}

/** `entry` stands behind `before`; null: no fault. */
export function chainFault(
  entry: HashedEntry & Pick<LedgerEntry, "hash">,
  before: LedgerHead,
): string | null {
  const { seq, hash } = entry;
  if (seq !== before.seq + 1) return `entry ${seq} stands behind entry ${before.seq}`;
  if (hash === null)
    return before.hash === null ? null : `entry ${seq} has no hash, and an earlier one has one`;
  if (hash === hashOfEntry(entry, before.hash ?? GENESIS_HASH)) return null;
  return `entry ${seq} is not the one that its hash was made of`;
}

type Account = HeldAccount | typeof TREASURY;

/** A node, with its number of entries and its balance; or another account. */
type Recipient = Pick<Node, "nodeId" | "entries" | "balanceMicro"> | Account;

type Moved = Pick<LedgerEntry, "id" | "amountMicro" | "kind" | "taskId" | "at">;

/**
 * Its caller saves it (`lux.entered`) and adds what goes to a node to its totals. The entry is the head for a further
 * transfer of the same transaction.
 */
export function transfer(head: LedgerHead, what: Moved, to: Account, from?: Account): LedgerEntry;
export function transfer(
  head: LedgerHead,
  what: Moved,
  to: Recipient,
  from?: Account,
): LedgerEntry | Rejected;
export function transfer(
  head: LedgerHead,
  what: Moved,
  to: Recipient,
  from: Account = TREASURY,
): LedgerEntry | Rejected {
  assert(Number.isSafeInteger(what.amountMicro), "an entry moves whole millionths");
  const seq = head.seq + 1;
  const account = typeof to === "string" ? to : (`node:${to.nodeId}` as const);
  const hashed = { ...what, seq, from, to: account };
  const hash = hashOfEntry(hashed, head.hash ?? GENESIS_HASH);
  if (typeof to === "string") return { ...hashed, nodeId: null, n: null, balanceMicro: null, hash };
  const balanceMicro = to.balanceMicro + BigInt(what.amountMicro);
  return (
    refusesLux(to, what.amountMicro) ?? {
      ...hashed,
      nodeId: to.nodeId,
      n: to.entries + 1,
      balanceMicro,
      hash,
    }
  );
}

export function refusesLux(
  { nodeId, balanceMicro }: Pick<Node, "nodeId" | "balanceMicro">,
  amountMicro: number,
): Rejected | null {
  if (balanceMicro + BigInt(amountMicro) <= BALANCE_MAX_MICRO) return null;
  return reject("lux_balance_limit", `Node ${nodeId} has reached the maximum LUX balance.`);
}

/** 0: the entry holds LUX back, or returns it. */
export function paidBy({ nodeId, amountMicro }: Pick<LedgerEntry, "nodeId" | "amountMicro">): number {
  return nodeId === null ? 0 : amountMicro;
}

export function receiptOf({ id, amountMicro, hash }: LedgerEntry): Receipt {
  return { entryId: id, amountMicro, hash };
}

export type SignIn = {
  readonly luxEarnedMicro: number;
  readonly already: boolean;
  readonly balanceMicro: bigint;
  readonly nextSigninAt: number;
};

/** Rounded to the nearest number of JSON. */
export function toLux(micro: number | bigint): number {
  return Number(micro) / MICRO_PER_LUX;
}

/** Null for more than 6 decimals. */
export function toMicro(lux: number): number | null {
  const micro = Math.round(lux * MICRO_PER_LUX);
  return micro / MICRO_PER_LUX === lux ? micro : null;
}

/** Later sign-ins were dated by a wrong clock, and do not count. */
export function signinHorizon(now: number): number {
  return utcDayStart(now) + 2 * DAY_MS;
}

export type NewEntry = { readonly entryId: string; readonly head: LedgerHead };

/**
 * Another sign-in of the day is accepted and pays nothing, and so is any if `amountMicro` is 0.
 * @param lastSigninAt the latest sign-in before `signinHorizon`
 */
export function signIn(
  node: Node | null,
  lastSigninAt: number | null,
  request: NewEntry & { readonly nodeId: string; readonly amountMicro: number },
  now: number,
): Decision<SignIn> {
  if (!node) return nodeNotFound(request.nodeId);
  const { nodeId, balanceMicro, idleSince } = node;
  // A sign-in of tomorrow counts as well: a clock set back over midnight must not pay a day twice.
  if (lastSigninAt !== null && lastSigninAt >= utcDayStart(now)) {
    const nextSigninAt = utcDayStart(lastSigninAt) + DAY_MS;
    return accept({ luxEarnedMicro: 0, already: true, balanceMicro, nextSigninAt });
  }
  const nextSigninAt = utcDayStart(now) + DAY_MS;
  const { amountMicro } = request;
  if (amountMicro === 0) return accept({ luxEarnedMicro: 0, already: false, balanceMicro, nextSigninAt });
  const what = { id: request.entryId, amountMicro, kind: "signin", taskId: null, at: now } as const;
  const entry = transfer(request.head, what, node);
  if ("code" in entry) return entry;
  const total = { assigned: 0, completed: 0, luxEarnedMicro: 0, entries: 1, balanceMicro: amountMicro };
  const answer = {
    luxEarnedMicro: amountMicro,
    already: false,
    balanceMicro: balanceMicro + BigInt(amountMicro),
    nextSigninAt,
  };
  return accept(answer, [
    { kind: "node.tallied", nodeId, ...total, idleSince },
    { kind: "lux.entered", entry },
    { kind: "event.logged", event: paidEvent("lux.signin", entry, nodeId) },
  ]);
}

/** `paysOwn`: for tasks of one's own (--self-reward); left out: yes. */
export type Claimant = { readonly keyId?: string | null; readonly paysOwn?: boolean };

export function isUnpaid(
  { creatorNode, creatorKey }: Task,
  { nodeId }: Node,
  { keyId = null, paysOwn = true }: Claimant,
): boolean {
  return !paysOwn && (creatorNode === nodeId || (keyId !== null && keyId === creatorKey));
}

export function payReward(
  node: Node,
  { taskId, luxRewardMicro: amountMicro }: Task,
  { entryId, head }: NewEntry,
  now: number,
  from: Account = TREASURY,
): Decision<LedgerEntry | null> {
  if (amountMicro === 0) return accept(null);
  const entry = transfer(head, { id: entryId, amountMicro, kind: "reward", taskId, at: now }, node, from);
  if ("code" in entry) return entry;
  return accept(entry, [
    { kind: "lux.entered", entry },
    { kind: "event.logged", event: paidEvent("lux.paid", entry, node.nodeId) },
  ]);
}

/** It pays nobody yet. */
export function holdReward(task: Task, entry: NewEntry, now: number): readonly Change[] {
  return moveReward("hold", task, TREASURY, heldAccount(task.taskId), entry, now);
}

export function returnHeld(task: Task, entry: NewEntry, now: number): readonly Change[] {
  return moveReward("return", task, heldAccount(task.taskId), TREASURY, entry, now);
}

function moveReward(
  kind: "hold" | "return",
  { taskId, luxRewardMicro: amountMicro }: Task,
  from: Account,
  to: Account,
  { entryId, head }: NewEntry,
  now: number,
): readonly Change[] {
  if (amountMicro === 0) return [];
  const entry = transfer(head, { id: entryId, amountMicro, kind, taskId, at: now }, to, from);
  return [{ kind: "lux.entered", entry }];
}

function paidEvent(
  kind: "lux.paid" | "lux.signin",
  { at, taskId, amountMicro }: LedgerEntry,
  nodeId: string,
): NewEvent {
  return { kind, at, nodeId, taskId, data: { amount: toLux(amountMicro) } };
}
