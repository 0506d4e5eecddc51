/**
 * What a group commit is made of: a part loads and decides (store.ts), a transaction is parts whose changes are written
 * all or nothing, and a group is the transactions that share one commit. They are queued, decided, written and answered.
 * A part that a rule rejects writes nothing, and does not stop the other parts of its transaction.
 *
 * Four words for "no". Rejected: a rule said no, and the group goes on. Without room (SQLite): the transaction would have
 * taken space that must remain; it has written nothing, and the group goes on (if an earlier part of it has written, it is
 * at fault instead). At fault: it threw, and not because the
 * disk failed; on SQLite the group is rolled back and runs again without it. Refused: it gets an error of the store in
 * place of an answer.
 */
import type { Change } from "../domain/change.ts";
import { type Decision, Rejection, type Undecided } from "../domain/decision.ts";
import { GROUP_HEAVY_MAX, GROUP_MAX, LIGHT_MAX, QUEUE_MAX } from "../domain/limits.ts";
import { assert, must } from "../lib/assert.ts";
import { type Part, StoreBusy } from "./store.ts";

/** The decision of the last part is its answer. */
export type Transaction = {
  readonly parts: readonly Part[];
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
};

export type DecidedTransaction = {
  readonly transaction: Transaction;
  readonly decision: Decision<unknown> | Undecided;
};

/** Nothing of this group may be committed. */
export class TransactionFault extends Error {
  override readonly name = "TransactionFault";
  readonly transaction: Transaction;

  constructor(transaction: Transaction, cause: unknown) {
    super("A transaction failed.", { cause });
    this.transaction = transaction;
  }
}

/**
 * The transactions that wait, in two lines: light ones and heavy ones, each in order of arrival. A group is of one line,
 * and a group of heavy ones is small. The lines have turns: so a light transaction waits for one heavy group at most,
 * however many callers send large batches, and no batch waits for ever. On SQLite the event loop gives the turns, on
 * PostgreSQL Turns does.
 */
export class TransactionQueue {
  readonly light = new Line(GROUP_MAX);
  readonly heavy = new Line(GROUP_HEAVY_MAX);

  get length(): number {
    return this.light.parts + this.heavy.parts;
  }

  /** @throws {StoreBusy} when it is full */
  add(transaction: Transaction): void {
    if (this.length + transaction.parts.length > QUEUE_MAX)
      throw new StoreBusy("The write queue of the hub is full.");
    const weight = weightOf(transaction);
    (weight > LIGHT_MAX ? this.heavy : this.light).add(transaction, weight);
  }

  /** Those for which their group had no time are first in the next one. */
  putBack(transactions: readonly Transaction[]): void {
    for (const transaction of transactions.toReversed()) {
      const weight = weightOf(transaction);
      (weight > LIGHT_MAX ? this.heavy : this.light).putBack(transaction, weight);
    }
  }

  takeAll(): readonly Transaction[] {
    return [...this.light.take(Infinity), ...this.heavy.take(Infinity)];
  }
}

/** Of the two lines of a queue in turns, where both wait. */
export class Turns {
  readonly #queue: TransactionQueue;
  #isHeavysTurn = false;

  constructor(queue: TransactionQueue) {
    this.#queue = queue;
  }

  /** Bounded by their weight, but at least one. */
  peekGroup(): readonly Transaction[] {
    return this.#next().peek();
  }

  /** It is another than an earlier peekGroup() if some have arrived meanwhile. */
  takeGroup(): readonly Transaction[] {
    const line = this.#next();
    this.#isHeavysTurn = line === this.#queue.light;
    return line.take();
  }

  #next(): Line {
    const { light, heavy } = this.#queue;
    if (heavy.isEmpty) return light;
    return this.#isHeavysTurn || light.isEmpty ? heavy : light;
  }
}

/** A query of 32 parameters weighs as much as a part, because it looks up as many rows. */
const PARAMS_WEIGHT_SHIFT = 5;

export class Line {
  readonly #groupMax: number;
  #transactions: { readonly transaction: Transaction; readonly weight: number }[] = [];
  #weight = 0;
  #parts = 0;

  constructor(groupMax: number) {
    this.#groupMax = groupMax;
  }

  get isEmpty(): boolean {
    return this.#transactions.length === 0;
  }

  get parts(): number {
    return this.#parts;
  }

  add(transaction: Transaction, weight: number): void {
    this.#transactions.push({ transaction, weight });
    this.#count(transaction, weight);
  }

  putBack(transaction: Transaction, weight: number): void {
    this.#transactions.unshift({ transaction, weight });
    this.#count(transaction, weight);
  }

  #count(transaction: Transaction, weight: number): void {
    assert(transaction.parts.length > 0 && weight > 0, "a transaction has a part, which weighs something");
    this.#weight += weight;
    this.#parts += transaction.parts.length;
  }

  /** As many as are a group: at least one. */
  peek(): readonly Transaction[] {
    return this.#transactions.slice(0, this.#sizeOf(this.#groupMax)).map(({ transaction }) => transaction);
  }

  /** Of at most this weight together, but at least one. */
  take(most = this.#groupMax): readonly Transaction[] {
    const taken = this.#transactions.splice(0, this.#sizeOf(most));
    for (const { transaction, weight } of taken) {
      this.#weight -= weight;
      this.#parts -= transaction.parts.length;
    }
    assert(taken.length > 0 || this.isEmpty, "a group has a transaction while one waits");
    assert(this.#weight >= 0 && this.#parts >= 0, "what is taken was added");
    return taken.map(({ transaction }) => transaction);
  }

  #sizeOf(most: number): number {
    if (this.#weight <= most) return this.#transactions.length;
    let weight = 0;
    const end = this.#transactions.findIndex((one, at) => {
      weight += one.weight;
      return at > 0 && weight > most;
    });
    return end < 0 ? this.#transactions.length : end;
  }
}

const QUERY = "a load has a query under each of its names";

/** As far as its loads say it: each part weighs 1, and a lookup of many rows more. */
function weightOf({ parts }: Transaction): number {
  let weight = parts.length;
  for (const part of parts) {
    const load = part.load();
    for (const name in load) weight += must(load[name], QUERY).params.length >> PARAMS_WEIGHT_SHIFT;
  }
  return weight;
}

export type Written = { readonly changes: readonly Change[]; readonly eventIds: readonly number[] };

/**
 * In the order in which they are decided. While it is decided it may grow: what a decision wakes joins it. Iteration
 * comes to whatever has joined meanwhile, and a group that is decided again keeps it.
 */
export class Group implements Iterable<Transaction> {
  readonly #transactions: Transaction[];

  constructor(transactions: readonly Transaction[]) {
    this.#transactions = [...transactions];
  }

  get size(): number {
    return this.#transactions.length;
  }

  join(transactions: readonly Transaction[]): void {
    this.#transactions.push(...transactions);
  }

  from(transaction: Transaction): readonly Transaction[] {
    return this.#transactions.slice(this.#transactions.indexOf(transaction));
  }

  without(transaction: Transaction): Group {
    return new Group(this.#transactions.filter((one) => one !== transaction));
  }

  /** The iterator of an array also visits what is added during the iteration. */
  [Symbol.iterator](): Iterator<Transaction> {
    return this.#transactions.values();
  }
}

/** Before anybody is notified or answered. */
export type DecidedGroup = {
  readonly outcomes: readonly DecidedTransaction[];
  readonly written: readonly Written[];
};

/** An error of one affects neither the others nor the transactions. */
export function callEach<A extends readonly unknown[]>(
  listeners: readonly ((...given: A) => void)[],
  onFault: (error: unknown) => void,
  ...given: A
): void {
  for (const listener of listeners) {
    try {
      listener(...given);
    } catch (error) {
      onFault(error);
    }
  }
}

/** After the commit is on disk. */
export function answer({ transaction, decision }: DecidedTransaction): void {
  if (decision.kind === "accepted") transaction.resolve(decision.answer);
  else if (decision.kind === "rejected") transaction.reject(new Rejection(decision));
  else transaction.resolve(undefined);
}
