/** A transaction on its way through an engine that decides several in one commit: asked, decided, written, answered. */
import type { Change } from "../domain/change.ts";
import { type Decision, Rejection, type Undecided } from "../domain/decision.ts";
import type { Load } from "./store.ts";

export type Job = {
  readonly load: Load;
  readonly decide: (rows: never) => Decision<unknown> | Undecided;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
};

export type Outcome = { readonly job: Job; readonly decision: Decision<unknown> | Undecided };

export type Written = { readonly changes: readonly Change[]; readonly eventIds: readonly number[] };

/** What was decided and what was written, before anybody is told. */
export type Group = { readonly outcomes: readonly Outcome[]; readonly written: readonly Written[] };

/** Gives a transaction its answer, once what it decided is on disk. */
export function answer({ job, decision }: Outcome): void {
  if (decision.kind === "accepted") job.resolve(decision.answer);
  else if (decision.kind === "rejected") job.reject(new Rejection(decision));
  else job.resolve(undefined);
}
