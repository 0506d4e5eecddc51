/**
 * The right to mint: how much LUX a key may promise per UTC day, as rewards of the tasks that are created with it
 * (docs/quotas.md). Nobody funds a reward, so a key without a limit can mint any amount.
 *
 * What a key has promised on a day is a sum, which only grows: a task that is deleted or never completed gives nothing
 * back, else a key could mint, delete and mint again. It is written in the commit of the task.
 */
import type { Change } from "./change.ts";
import { type Decision, reject } from "./decision.ts";
import { toLux } from "./lux.ts";
import type { KeyRecord, Minted } from "./model.ts";

/** Null: any amount. */
export function mintLimitOf({ mintMicro, nodeId }: KeyRecord, isStrict: boolean): number | null {
  return mintMicro ?? (isStrict && nodeId !== null ? 0 : null);
}

export function mint<A>(decision: Decision<A>, before: Minted, limitMicro: number): Decision<A> {
  if (decision.kind === "rejected") return decision;
  const micro = decision.changes.reduce((sum, change) => sum + promisedBy(change), 0);
  if (micro === 0) return decision;
  if (before.micro + micro > limitMicro) {
    const detail = `The key ${before.keyId} may promise ${toLux(limitMicro)} LUX per UTC day as rewards, has promised ${toLux(before.micro)} today, and this request promises ${toLux(micro)} more. Lower the reward, wait until midnight UTC, or ask the operator for a key with a larger --mint.`;
    return reject("mint_limit", detail);
  }
  return { ...decision, changes: [...decision.changes, { kind: "lux.minted", ...before, micro }] };
}

function promisedBy(change: Change): number {
  if (change.kind === "task.created") return change.task.luxRewardMicro;
  return change.kind === "task.edited" ? change.raisedMicro : 0;
}
