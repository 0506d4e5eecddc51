/**
 * Families: a task and the tasks that the hub creates for it, its children. A child checks the result of its
 * parent (a review by a capability, review.ts), or is one of its copies (a quorum, quorum.ts).
 *
 * The commit that makes one of them need the other marks the family (touchedFamily() of log.ts): a result waits for a
 * review, a child ends, a parent is deleted. Then one transaction looks at parent and children, does what follows, and
 * removes the mark. So a crash between the two loses nothing, and a task without a family costs nothing.
 */
import type { Change } from "../change.ts";
import { DESCRIPTION_MAX_BYTES, REVIEW_NOTE_MAX_CHARS, TITLE_MAX_CHARS } from "../limits.ts";
import type { Moment, Task } from "../model.ts";
import { countedLike } from "../quota.ts";
import { type Accounts, type ReviewVerdict, settleFor } from "./review.ts";
import { checkQuorum } from "./quorum.ts";
import { create, endFor } from "./core.ts";
import { verdictOf } from "./facet/child.ts";
import { isFinished, isInReview } from "./state.ts";
import { DEFAULT_TERMS } from "./template.ts";
import { must } from "../../lib/assert.ts";

/** `parent` null: deleted. `ids`: for what is created. */
export type Family = {
  readonly taskId: string;
  readonly parent: Task | null;
  readonly children: readonly Task[];
  readonly ids: readonly string[];
};

export function checkFamilies(
  families: readonly Family[],
  accounts: Accounts,
  at: Moment,
): readonly Change[] {
  return families.flatMap((family) => {
    const { taskId, parent, children, ids } = family;
    const copies = children.filter(({ child }) => child?.as === "copy");
    const isQuorum = copies.length > 0 || (parent !== null && parent.quorum !== null);
    const changes = isQuorum
      ? checkQuorum(parent, copies, ids, accounts, at)
      : checkReview(family, accounts, at);
    return [{ kind: "family.checked", taskId } as const, ...changes];
  });
}

function checkReview({ parent, children, ids }: Family, accounts: Accounts, at: Moment): readonly Change[] {
  const [taskId, entryId] = ids;
  const pending = parent !== null && isInReview(parent) ? parent : null;
  const epoch = pending?.review?.check?.epoch;
  const current = children.find(({ child }) => child?.epoch === epoch);
  const changes: Change[] = children
    .filter((child) => child !== current && !isFinished(child))
    .flatMap((child) => endFor(child, "There is nothing to review any more.", at).changes);
  if (pending === null) return changes;
  if (!current) return [...changes, ...createReview(pending, must(taskId, "a family has ids"), at)];
  const { result } = current;
  const sent = result && verdictOf(result);
  if (result === null || sent === null) return changes; // it is not done, or nobody did it: the deadline decides
  const given: ReviewVerdict = {
    verdict: sent.verdict,
    note: (sent.note ?? result.improvement).slice(0, REVIEW_NOTE_MAX_CHARS),
    by: current.assignedNode,
    timedOut: false,
  };
  return [...changes, ...settleFor(accounts, pending, given, must(entryId, "a family has ids"), at).changes];
}

function createReview(task: Task, taskId: string, at: Moment): readonly Change[] {
  const { review, assignedNode } = task;
  const check = must(review?.check, "a task in review has a check");
  const draft = {
    ...DEFAULT_TERMS,
    title: `Review: ${task.title}`.slice(0, TITLE_MAX_CHARS),
    description: upToBytes(`${instructionsFor(task)}${task.description}`, DESCRIPTION_MAX_BYTES),
    taskType: must(review, "a task in review has terms").by.slice("capability:".length),
    priority: task.priority,
    creatorNode: task.creatorNode,
    creatorVerified: task.creatorVerified,
    creatorKey: task.creatorKey,
    balanced: task.balanced,
    retainMs: task.retainMs,
    notBefore: null,
    expiresAt: check.until,
    dependsOn: [task.taskId], // so its worker gets the result
    schedule: null,
    child: {
      of: task.taskId,
      as: "review",
      group: task.group,
      epoch: check.epoch,
      notKey: check.keyId,
      sealed: false,
      compare: null,
    },
    notNodes: assignedNode === null ? [] : [assignedNode],
  } as const;
  const { status, hasDependents } = task;
  const dependency = { taskId: task.taskId, status, hasDependents, brokenBy: null };
  return countedLike(task, create(draft, taskId, [], at, [dependency]).changes);
}

const instructionsFor = ({ taskId }: Task): string =>
  `Check the result of task ${taskId}, which is in context.inputs. Complete this task with a result that also has, ` +
  `beside its texts or in "output", "verdict": "pass" or "reject", and "note": what is wrong, for the worker who does it again.\n\nThat task was:\n\n`;

/** Without the last character if it is cut in two. */
function upToBytes(text: string, max: number): string {
  const bytes = Buffer.from(text);
  return bytes.length <= max
    ? text
    : bytes
        .subarray(0, max)
        .toString()
        .replace(/\uFFFD$/, "");
}
