/** The transactions of a group commit, which an engine decides and writes in one: queued, decided, written, answered. */
import type { Change, Notified } from "../domain/change.ts";
import { type Decision, Rejection, type Undecided } from "../domain/decision.ts";
import { GROUP_MAX, QUEUE_MAX } from "../domain/limits.ts";
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

/** The transactions that wait, bounded by the number of their members. */
export class JobQueue {
  #jobs: Job[] = [];
  #members = 0;

  /** How many members wait. */
  get length(): number {
    return this.#members;
  }

  /** @throws {StoreBusy} when it is full */
  add(job: Job): void {
    if (this.#members + job.members.length > QUEUE_MAX) throw new StoreBusy("Too much work waits.");
    this.#jobs.push(job);
    this.#members += job.members.length;
  }

  /** The oldest transactions with at most GROUP_MAX members together, but at least one transaction. */
  firstGroup(): readonly Job[] {
    let members = 0;
    const end = this.#jobs.findIndex((job, at) => {
      members += job.members.length;
      return at > 0 && members > GROUP_MAX;
    });
    return end < 0 ? [...this.#jobs] : this.#jobs.slice(0, end);
  }

  /** Removes and returns the transactions of firstGroup(). */
  takeGroup(): readonly Job[] {
    if (this.#members <= GROUP_MAX) return this.takeAll();
    const group = this.#jobs.splice(0, this.firstGroup().length);
    for (const { members } of group) this.#members -= members.length;
    return group;
  }

  takeAll(): readonly Job[] {
    const jobs = this.#jobs;
    this.#jobs = [];
    this.#members = 0;
    return jobs;
  }
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
