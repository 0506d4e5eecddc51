/**
 * Review rules: the result of a task is checked before it is paid (escrow).
 *
 *               complete             pass, or the deadline with "pay"
 *   (no check) ----------> pending -----------------------------------> passed: its reward is paid
 *                             |
 *                             +--------------------------------------> rejected: the task is open again, or has failed
 *                              reject, or the deadline with "reject"
 *
 * While the review is pending the task is completed, its reward is held, and it has not ended (hasEnded() of state.ts): what
 * depends on it waits, its group goes on, and retention keeps it. A rejected task that is completed again is pending again.
 *
 * Invariant: each check is settled once, in the commit that pays the reward or opens the task.
 */
import type { Candidate } from "../balancer.ts";
import type { Change } from "../change.ts";
import {
  type Accepted,
  type Decision,
  type Rejected,
  accept,
  nodeNotFound,
  reject,
  taskNotFound,
} from "../decision.ts";
import { REVIEW_POSTPONED_MS } from "../limits.ts";
import { type NewEntry, heldAccount, payReward, returnHeld } from "../lux.ts";
import type { LedgerHead, Moment, Node, Review, ReviewCheck, Task, Verdict } from "../model.ts";
import { grown } from "../quota.ts";
import { assignIfBalanced, endAttempt, step } from "./core.ts";
import { reviewed, touchedReviewer } from "./facet/review.ts";
import { asHeld } from "./facet/reward.ts";
import { taskEvent } from "./log.ts";
import { ownWork } from "./refusals.ts";
import { must } from "../../lib/assert.ts";

/** `boundTo`, `keyId`: of the caller's key; null: none, or the secret that all share. */
export type ReviewRequest = {
  readonly taskId: string;
  readonly nodeId: string | null;
  readonly verdict: Verdict;
  readonly note: string | null;
  /** Null: the dispatch that waits. */
  readonly epoch: number | null;
  readonly boundTo: string | null;
  readonly keyId: string | null;
};

type ReviewRows = {
  readonly task: Task | null;
  readonly node: Node | null;
  /** Also if it is deleted. */
  readonly worker: Node | null;
  readonly candidates: readonly Candidate[];
};

/** A repeat by the same reviewer changes nothing. */
export function review(
  { task, node, worker, candidates }: ReviewRows,
  request: ReviewRequest,
  entry: NewEntry,
  at: Moment,
): Decision<Task> {
  if (!task) return taskNotFound(request.taskId);
  if (request.nodeId !== null && !node) return nodeNotFound(request.nodeId);
  const check = task.review?.check ?? null;
  if (task.review === null || check === null) return notInReview(task);
  const reviewer = request.nodeId ?? request.boundTo;
  const isOther = request.epoch !== null && request.epoch !== check.epoch;
  if (isOther) return otherResult(task, check);
  const refused = isOwnWork(task, check, reviewer, request)
    ? ownWork(task.taskId)
    : notReviewer(task, reviewer, request.boundTo);
  if (refused) return refused;
  if (check.state !== "pending") {
    const isRepeat = check.state === STATE_OF[request.verdict] && check.decidedBy === reviewer;
    return isRepeat && !check.timedOut ? accept(task) : decided(task, check);
  }
  const verdict = { verdict: request.verdict, note: request.note, by: reviewer, timedOut: false };
  const settled = settleReview(task, must(worker, "a completed task has a node"), verdict, entry, at);
  if (settled.kind === "rejected") return settled;
  return grown(task, assignIfBalanced(settled, candidates, at));
}

const STATE_OF = { pass: "passed", reject: "rejected" } as const satisfies Record<Verdict, string>;

function isOwnWork(
  task: Task,
  check: ReviewCheck,
  reviewer: string | null,
  { keyId }: Pick<ReviewRequest, "keyId">,
): boolean {
  // Of a rejected task.
  const worker = task.assignedNode ?? task.failure?.nodeId ?? null;
  return (reviewer !== null && reviewer === worker) || (keyId !== null && keyId === check.keyId);
}

/**
 * A caller that names no node and has no key of one is a person. For a task without a creator no key of a node reviews:
 * its holder was not asked to.
 */
function notReviewer(task: Task, reviewer: string | null, boundTo: string | null): Rejected | null {
  const { by } = must(task.review, "the task has a review");
  if (reviewer === null) return null;
  const isCreator =
    by === "creator" && (task.creatorNode === null ? boundTo === null : task.creatorNode === reviewer);
  if (isCreator || by === `node:${reviewer}`) return null;
  const creator = task.creatorNode ?? "whose key is bound to no node";
  const who = by === "creator" ? `the creator, ${creator}` : by.replace(":", " ");
  const detail = by.startsWith("capability:")
    ? `The result of task ${task.taskId} is reviewed by the node that gets the task for it. Take that one with POST /api/v1/task/next.`
    : `The result of task ${task.taskId} is reviewed by ${who}, and not by ${reviewer}.`;
  return reject("not_reviewer", detail);
}

/** `by` null: a person, or the deadline (`timedOut`). */
export type ReviewVerdict = {
  readonly verdict: Verdict;
  readonly note: string | null;
  readonly by: string | null;
  readonly timedOut: boolean;
};

function settleReview(
  task: Task,
  worker: Node,
  { verdict, note, by, timedOut }: ReviewVerdict,
  entry: NewEntry,
  at: Moment,
): Decision<Task> {
  const { review: terms, taskId } = task;
  const pending = must(terms?.check, "a task in review has a check");
  const state = STATE_OF[verdict];
  const check: ReviewCheck = { ...pending, state, note, decidedBy: by, decidedAt: at.now, timedOut };
  const after: Review = { ...must(terms, "a task in review has terms"), check };
  const data = { reviewed_by: by, ...(timedOut && { timed_out: true }) };
  const settled = [reviewed(taskId, after), ...touchedReviewer(task)];
  if (verdict === "reject") {
    const unsettled = { review: after, result: null, resultVerified: false };
    const message = note ?? (timedOut ? "Nobody reviewed its result in time." : "Its result was rejected.");
    const ended = endAttempt(task, { kind: "rejected", message, retry: true, data }, at, unsettled);
    const removed: Change = { kind: "result.removed", taskId };
    const returned = returnHeld(asHeld(task), entry, at.now);
    return accept(ended.answer, [...ended.changes, removed, ...settled, ...returned]);
  }
  const payment = payReward(worker, asHeld(task), entry, at.now, heldAccount(taskId));
  if (payment.kind === "rejected") return payment;
  const patch = { review: after, paidSeq: payment.answer?.seq ?? null };
  const event = taskEvent("task.review_passed", task, worker.nodeId, at.now, data);
  return step(task, patch, at, [...settled, event, ...payment.changes]);
}

export function timeOutReviews(
  due: readonly Task[],
  accounts: Accounts,
  entryIds: readonly string[],
  at: Moment,
): Accepted<readonly Task[]> {
  const steps = due.map((task, i) => {
    const { onTimeout } = must(task.review, "a task in review has terms");
    const verdict = onTimeout === "pay" ? ("pass" as const) : ("reject" as const);
    const entryId = must(entryIds[i], "each task has the id of an entry");
    return settleFor(accounts, task, { verdict, note: null, by: null, timedOut: true }, entryId, at);
  });
  return accept(
    steps.map(({ answer }) => answer),
    steps.flatMap(({ changes }) => changes),
  );
}

/** Nobody can be refused. A worker that cannot be paid now is paid later. */
export function settleFor(
  accounts: Accounts,
  task: Task,
  verdict: ReviewVerdict,
  entryId: string,
  at: Moment,
): Accepted<Task> {
  const entry = { entryId, head: accounts.head };
  const settled = settleReview(task, accounts.of(task), verdict, entry, at);
  if (settled.kind === "accepted") {
    accounts.follow(settled.changes);
    return settled;
  }
  const terms = must(task.review, "a task in review has terms");
  const check = { ...must(terms.check, "a task in review has a check"), until: at.now + REVIEW_POSTPONED_MS };
  return accept(task, [reviewed(task.taskId, { ...terms, check })]);
}

/** As the settlements of one transaction change them. */
export class Accounts {
  readonly #nodes: Map<string, Node>;
  #head: LedgerHead;

  constructor(nodes: readonly Node[], head: LedgerHead) {
    this.#nodes = new Map(nodes.map((node) => [node.nodeId, node]));
    this.#head = head;
  }

  get head(): LedgerHead {
    return this.#head;
  }

  of({ assignedNode }: Task): Node {
    return must(this.#nodes.get(must(assignedNode, "a completed task has a node")), "its node is loaded");
  }

  follow(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind === "lux.entered") this.#head = change.entry;
      const node = change.kind === "node.tallied" ? this.#nodes.get(change.nodeId) : undefined;
      if (change.kind !== "node.tallied" || !node) continue;
      const entries = node.entries + change.entries;
      const balanceMicro = node.balanceMicro + BigInt(change.balanceMicro);
      this.#nodes.set(node.nodeId, { ...node, entries, balanceMicro });
    }
  }
}

// ---- Refusals

function notInReview(task: Task): Rejected {
  const { taskId, review: terms, status } = task;
  const detail =
    terms === null
      ? `Task ${taskId} was created without review: its result is not reviewed.`
      : `Task ${taskId} is ${status}, and has no result to review yet.`;
  return reject("not_in_review", detail);
}

function decided({ taskId }: Task, { state, decidedBy, timedOut }: ReviewCheck): Rejected {
  const decider = timedOut ? " by its deadline" : decidedBy === null ? "" : ` by ${decidedBy}`;
  return reject("review_decided", `The result of task ${taskId} was ${state}${decider} before.`);
}

function otherResult({ taskId }: Task, { epoch }: ReviewCheck): Rejected {
  const detail = `Task ${taskId} has another result since, of epoch ${epoch}. Read that one before you review it.`;
  return reject("stale_lease", detail);
}
