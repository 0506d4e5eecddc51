/** The transactions of a group commit, which an engine decides and writes in one: queued, decided, written, answered. */
import type { Change, Notified } from "../domain/change.ts";
import { type Decision, Rejection, type Undecided } from "../domain/decision.ts";
import type { CommitListener, Load, Origin } from "./store.ts";

export type Job = {
  readonly load: Load;
  readonly decide: (rows: never) => Decision<unknown> | Undecided;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
};

export type Outcome = { readonly job: Job; readonly decision: Decision<unknown> | Undecided };

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
