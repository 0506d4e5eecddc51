/**
 * Quorum rules: several nodes do the same task, and its result is the one on which enough of them agree.
 *
 * The task itself is not handed out. Its copies are: children with `parent_task`, each for another node. First there are
 * as many as must agree. When some have ended and those that agree and those that still run cannot be enough, there are
 * more, up to `of`; then the task fails. What a copy's worker sends is sealed until the quorum is decided, so that
 * nobody can copy it.
 *
 * Everything is decided from the rows of the task and its copies at one moment (family.ts), so nothing is counted.
 */
import type { Change } from "../change.ts";
import { comparedText } from "../compare.ts";
import { payReward } from "../lux.ts";
import type { Child, Moment, Quorum, Task } from "../model.ts";
import { countedLike, recharged, usageTally } from "../quota.ts";
import type { Accounts } from "./review.ts";
import { create, end, endFor, step } from "./core.ts";
import { related } from "./facet/child.ts";
import { quorate } from "./facet/quorum.ts";
import { taskEvent } from "./log.ts";
import type { TaskDraft } from "./new-task.ts";
import { isFinished } from "./state.ts";
import { withTerms } from "./template.ts";
import { must } from "../../lib/assert.ts";

/** `ids`: for new copies and for payments. */
export function checkQuorum(
  parent: Task | null,
  copies: readonly Task[],
  ids: readonly string[],
  accounts: Accounts,
  at: Moment,
): readonly Change[] {
  const quorum = parent?.quorum ?? null;
  if (parent === null || quorum === null || isFinished(parent)) return close(copies, at);
  const round = copies.filter(({ child }) => child?.epoch === quorum.round);
  const running = round.filter((copy) => !isFinished(copy));
  const best = largestGroup(round, quorum);
  if (best.length >= quorum.results) return agree(parent, quorum, best, copies, ids, accounts, at);
  const notCreated = quorum.of - round.length;
  if (best.length + running.length + notCreated < quorum.results)
    return [...disagree(parent, quorum, round, best.length, at), ...close(copies, at)];
  const missing = quorum.results - best.length - running.length;
  return missing > 0 ? addCopies(parent, quorum, round, ids.slice(0, missing), at) : [];
}

/** The first first: of two groups the one that was complete first. */
function largestGroup(copies: readonly Task[], { compare }: Quorum): readonly Task[] {
  const done = copies.filter(({ status }) => status === "completed");
  const inOrder = done.toSorted((a, b) => a.updatedAt - b.updatedAt || a.seq - b.seq);
  const groups = Map.groupBy(inOrder, ({ result }) =>
    comparedText(must(result, "a completed task has a result"), compare),
  );
  let largest: readonly Task[] = [];
  for (const group of groups.values()) if (group.length > largest.length) largest = group;
  return largest;
}

function addCopies(
  parent: Task,
  quorum: Quorum,
  round: readonly Task[],
  ids: readonly string[],
  at: Moment,
): readonly Change[] {
  const { taskId, hasDependents } = parent;
  const dependsOn = [taskId, ...parent.dependsOn]; // so its worker gets the files of the task, and its inputs
  const child: Child = {
    of: taskId,
    as: "copy",
    group: parent.group,
    epoch: quorum.round,
    notKey: null,
    sealed: true,
    compare: quorum.compare,
  };
  const { creatorVerified, creatorKey, balanced, expiresAt } = parent;
  const draft: TaskDraft = {
    ...withTerms({ creatorVerified, creatorKey, balanced, expiresAt }, parent),
    luxRewardMicro: 0,
    group: null,
    notBefore: null,
    schedule: null,
    dependsOn,
    notNodes: [...new Set(round.flatMap(nodesOf))],
    child,
  };
  // The others have ended, and know that they have a dependent.
  const dependencies = dependsOn.map((id) => {
    const known = id !== taskId || hasDependents;
    return { taskId: id, status: "completed" as const, hasDependents: known, brokenBy: null };
  });
  const created = ids.flatMap((id) => create(draft, id, [], at, dependencies).changes);
  const after = recharged({ ...parent, quorum: { ...quorum, copies: [...quorum.copies, ...ids] } });
  const holdsLess: readonly Change[] =
    after.keptBytes === parent.keptBytes
      ? []
      : [{ kind: "task.moved", task: after }, ...usageTally(parent, after)];
  return [...holdsLess, ...countedLike(parent, created), quorate(taskId, must(after.quorum, "it has one"))];
}

function nodesOf({ assignedNode, notNodes, failure, earlierFailures }: Task): readonly string[] {
  const had = [assignedNode, failure?.nodeId, ...earlierFailures.map(({ nodeId }) => nodeId)];
  return [...had.flatMap((nodeId) => nodeId ?? []), ...notNodes];
}

/** The result is that of the first; what is left over of the reward goes to the first. */
function agree(
  parent: Task,
  before: Quorum,
  best: readonly Task[],
  copies: readonly Task[],
  ids: readonly string[],
  accounts: Accounts,
  at: Moment,
): readonly Change[] {
  const { assignedNode, result, resultVerified } = must(best[0], "a group has a first");
  const agreed = best.map((copy) => must(copy.assignedNode, "a completed copy has a node"));
  const share = Math.floor(parent.luxRewardMicro / best.length);
  const remainder = parent.luxRewardMicro - share * best.length;
  const paid = best.flatMap((copy, i) => {
    const entryId = must(ids[i], "each payment has an id");
    const changes = payShare(copy, i === 0 ? share + remainder : share, entryId, accounts, at);
    accounts.follow(changes);
    return changes;
  });
  const paidMicro = paid.reduce(
    (sum, change) => sum + (change.kind === "lux.entered" ? change.entry.amountMicro : 0),
    0,
  );
  const quorum: Quorum = { ...before, state: "agreed", agreed, paidMicro };
  const patch = { status: "completed", assignedNode, result, resultVerified, quorum } as const;
  const event = taskEvent("task.completed", parent, assignedNode, at.now, { agreed: best.length });
  return [
    ...step(parent, patch, at, [quorate(parent.taskId, quorum), event]).changes,
    ...paid,
    ...close(
      copies.filter((copy) => !best.includes(copy)),
      at,
    ),
  ];
}

/**
 * A copy's share is its reward. A node whose balance is full gets none, nor does the creator's node or key
 * (--self-reward off): that share is paid to nobody.
 */
function payShare(
  copy: Task,
  amountMicro: number,
  entryId: string,
  accounts: Accounts,
  at: Moment,
): readonly Change[] {
  if (copy.child?.unpaid) return unseal(copy);
  const rewarded: Task = { ...copy, luxRewardMicro: amountMicro };
  const payment = payReward(accounts.of(copy), rewarded, { entryId, head: accounts.head }, at.now);
  if (payment.kind === "rejected" || payment.answer === null) return unseal(copy);
  const patch = { luxRewardMicro: amountMicro, paidSeq: payment.answer.seq, updatedAt: copy.updatedAt };
  const { answer: after, changes } = step(copy, patch, at, payment.changes);
  return [{ kind: "task.edited", task: after, raisedMicro: 0 }, ...changes, ...unseal(copy)];
}

function disagree(
  parent: Task,
  quorum: Quorum,
  round: readonly Task[],
  most: number,
  at: Moment,
): readonly Change[] {
  const done = round.filter(({ status }) => status === "completed").length;
  const message = `Of ${round.length} copies ${done} were completed, of which at most ${most} agree; ${quorum.results} must.`;
  const ended = end(parent, { kind: "no_quorum", message, nodeId: null, at: at.now }, at);
  return [...ended.changes, quorate(parent.taskId, { ...quorum, state: "failed" })];
}

/** Also lets everybody read what the others have sent. */
function close(copies: readonly Task[], at: Moment): readonly Change[] {
  return copies.flatMap((copy) => [
    ...(isFinished(copy) ? [] : endFor(copy, "It is decided without this copy.", at).changes),
    ...unseal(copy),
  ]);
}

function unseal(copy: Task): readonly Change[] {
  const { child } = copy;
  return child?.sealed ? [related(copy, { ...child, sealed: false })] : [];
}
