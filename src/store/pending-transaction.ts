/** The transactions of a group commit, which an engine decides and writes in one: queued, decided, written, answered. */
import type { Change, Notified } from "../domain/change.ts";
import { type Decision, Rejection, type Undecided } from "../domain/decision.ts";
import { GROUP_HEAVY_MAX, GROUP_MAX, LIGHT_MAX, QUEUE_MAX } from "../domain/limits.ts";
import { type CommitListener, type Member, type Origin, StoreBusy } from "./store.ts";

/** A transaction: its members, of which the last one's decision is its answer. */
export type Job = {
  readonly members: readonly Member[];
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
};

/** `decision`: the last member's. */
export type Outcome = { readonly job: Job; readonly decision: Decision<unknown> | Undecided };

/** A transaction of a group threw while it was decided or written: nothing of the group may be committed. */
export class JobFault extends Error {
  override readonly name = "JobFault";
  readonly job: Job;

  constructor(job: Job, cause: unknown) {
    super("A transaction failed.", { cause });
    this.job = job;
  }
}

/**
 * The transactions that wait, in two lines: light ones and heavy ones, each in order of arrival. Where both wait, groups
 * are made of them in turns, and a group of heavy ones is small. So whoever sends one request waits for one such group at
 * most, however many callers send large batches, and no batch waits for ever.
 */
export class JobQueue {
  readonly #light = new Line(GROUP_MAX);
  readonly #heavy = new Line(GROUP_HEAVY_MAX);
  #isHeavysTurn = false;

  /** How many members wait. */
  get length(): number {
    return this.#light.members + this.#heavy.members;
  }

  /** @throws {StoreBusy} when it is full */
  add(job: Job): void {
    if (this.length + job.members.length > QUEUE_MAX) throw new StoreBusy("Too much work waits.");
    const weight = weightOf(job);
    (weight > LIGHT_MAX ? this.#heavy : this.#light).add(job, weight);
  }

  /** The transactions of the next group: bounded by their weight, but at least one. */
  firstGroup(): readonly Job[] {
    return this.#next().first();
  }

  /** Removes and returns the transactions of firstGroup(). */
  takeGroup(): readonly Job[] {
    const line = this.#next();
    this.#isHeavysTurn = line === this.#light;
    return line.take();
  }

  takeAll(): readonly Job[] {
    return [...this.#light.take(Infinity), ...this.#heavy.take(Infinity)];
  }

  #next(): Line {
    if (this.#heavy.members === 0) return this.#light;
    return this.#isHeavysTurn || this.#light.members === 0 ? this.#heavy : this.#light;
  }
}

/** A query of 32 parameters weighs as much as a member: it looks up as many rows. */
const PARAMS_WEIGHT_SHIFT = 5;

/** Transactions in order of arrival, with their weights. */
class Line {
  readonly #groupMax: number;
  #jobs: { readonly job: Job; readonly weight: number }[] = [];
  #weight = 0;
  members = 0;

  /** @param groupMax the weight of a group */
  constructor(groupMax: number) {
    this.#groupMax = groupMax;
  }

  add(job: Job, weight: number): void {
    this.#jobs.push({ job, weight });
    this.#weight += weight;
    this.members += job.members.length;
  }

  /** The oldest, as many as are a group: at least one. */
  first(): readonly Job[] {
    return this.#jobs.slice(0, this.#count(this.#groupMax)).map(({ job }) => job);
  }

  /** Removes and returns the oldest, of at most this weight together, but at least one. */
  take(most = this.#groupMax): readonly Job[] {
    const taken = this.#jobs.splice(0, this.#count(most));
    for (const { job, weight } of taken) {
      this.#weight -= weight;
      this.members -= job.members.length;
    }
    return taken.map(({ job }) => job);
  }

  #count(most: number): number {
    if (this.#weight <= most) return this.#jobs.length;
    let weight = 0;
    const end = this.#jobs.findIndex((one, at) => {
      weight += one.weight;
      return at > 0 && weight > most;
    });
    return end < 0 ? this.#jobs.length : end;
  }
}

/** What a transaction costs, as far as its loads say it: each member weighs 1, and a lookup of many rows more. */
function weightOf({ members }: Job): number {
  let weight = members.length;
  for (const { load } of members)
    for (const name in load) weight += (load[name]?.params.length ?? 0) >> PARAMS_WEIGHT_SHIFT;
  return weight;
}

export type Written = { readonly changes: readonly Change[]; readonly eventIds: readonly number[] };

/** A committed group, before anybody is notified or answered. */
export type Group = { readonly outcomes: readonly Outcome[]; readonly written: readonly Written[] };

/** Notifies the listeners of a transaction that is on disk. An error of one listener does not affect the others. */
export function notify(
  listeners: readonly CommitListener[],
  { changes, eventIds }: { readonly changes: readonly Notified[]; readonly eventIds: readonly number[] },
  origin: Origin,
  onFault: (error: unknown) => void,
): void {
  for (const listener of listeners) {
    try {
      listener(changes, eventIds, origin);
    } catch (error) {
      onFault(error);
    }
  }
}

/** Answers a transaction, after its commit is on disk. */
export function answer({ job, decision }: Outcome): void {
  if (decision.kind === "accepted") job.resolve(decision.answer);
  else if (decision.kind === "rejected") job.reject(new Rejection(decision));
  else job.resolve(undefined);
}
