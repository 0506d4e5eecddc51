/**
 * Every kind of write: a decision returns changes, and the store writes each with one statement
 * (store/sql/statements.ts).
 */
import type { NewEvent } from "./event.ts";
import type {
  BroadcastTally,
  Budget,
  BudgetKey,
  Checkpoint,
  Child,
  DeliveryState,
  FileRecord,
  GroupTotals,
  Invitation,
  KeyRecord,
  Lease,
  LedgerEntry,
  Limit,
  Message,
  Minted,
  Node,
  OutputAttempt,
  OutputBlock,
  Question,
  Quorum,
  Review,
  Schedule,
  Spending,
  Note,
  Pause,
  PauseKey,
  StoredAnswer,
  SumKey,
  Task,
  TaskOrigin,
  Usage,
  UsageReport,
  Webhook,
  WebhookProgress,
} from "./model.ts";

/**
 * What a worker may wait for: a ready task of a lane, a gift (task/next.ts), or room under a limit. `some`: an open
 * task that not every node may have, so that all must look.
 */
export type Offer =
  | { readonly kind: "open"; readonly lane: string }
  | { readonly kind: "gift"; readonly nodeId: string }
  | { readonly kind: "key"; readonly key: string }
  | { readonly kind: "some" };

/** Of another hub's transaction a summary. `work.missed`: a notification may have been lost. */
export type Notified =
  | Change
  | { readonly kind: "output.changed"; readonly taskId: string }
  | { readonly kind: "work.offered"; readonly offer: Offer; readonly count: number }
  | { readonly kind: "work.missed" };

export type Outcome = "completed" | "failed" | "deleted";

export type Change =
  /** With a `node.beaten`, because a registration is also a heartbeat. */
  | { readonly kind: "node.saved"; readonly node: Node }
  | {
      readonly kind: "node.beaten";
      readonly nodeId: string;
      readonly lastHeartbeatAt: number;
      readonly leaseUntil: number;
    }
  | { readonly kind: "node.returned"; readonly nodeId: string }
  | { readonly kind: "node.offline"; readonly nodeId: string }
  | { readonly kind: "node.drained"; readonly nodeId: string; readonly draining: boolean }
  /** The totals stay: the node may register again. */
  | { readonly kind: "node.deleted"; readonly nodeId: string }
  | { readonly kind: "node.leased"; readonly nodeId: string; readonly hasLeases: boolean }
  | {
      readonly kind: "node.tallied";
      readonly nodeId: string;
      readonly assigned: number;
      readonly completed: number;
      readonly luxEarnedMicro: number;
      readonly entries: number;
      readonly balanceMicro: number;
      /** Replaced, not added. */
      readonly idleSince: number;
    }
  | { readonly kind: "task.created"; readonly task: Task }
  | { readonly kind: "schedule.saved"; readonly schedule: Schedule }
  | { readonly kind: "schedule.deleted"; readonly name: string }
  | { readonly kind: "webhook.saved"; readonly webhook: Webhook }
  | { readonly kind: "webhook.moved"; readonly name: string; readonly progress: WebhookProgress }
  | { readonly kind: "webhook.deleted"; readonly name: string }
  | { readonly kind: "task.sent"; readonly taskId: string; readonly origin: TaskOrigin }
  /**
   * `waitedMs`: how long a dispatched task had been ready; for the metrics. `grew`: the bytes that the caller adds to a
   * task that goes on; for charge(). Neither is stored. `isFirst`: the row of the task's features may be new
   * (store/sql/features.ts).
   */
  | {
      readonly kind: "task.moved";
      readonly task: Task;
      readonly waitedMs?: number;
      readonly grew?: number;
      readonly isFirst?: true;
    }
  /** Against the quota of another node than the creator (Task.lentBytes). */
  | {
      readonly kind: "task.charged";
      readonly taskId: string;
      readonly nodeId: string;
      readonly bytes: number;
    }
  /** In this order. */
  | { readonly kind: "charges.refunded" | "charges.removed"; readonly taskId: string }
  /** The terms of the creator, and by how much the reward is larger now. */
  | {
      readonly kind: "task.edited";
      readonly task: Task;
      readonly raisedMicro: number;
      readonly isFirst?: true;
    }
  /** Also the check of the last result. */
  | { readonly kind: "task.reviewed"; readonly taskId: string; readonly review: Review }
  | { readonly kind: "result.removed"; readonly taskId: string }
  | {
      readonly kind: "task.related";
      readonly taskId: string;
      readonly child: Child;
      readonly notNodes: readonly string[];
    }
  | { readonly kind: "task.quorate"; readonly taskId: string; readonly quorum: Quorum }
  | {
      readonly kind: "copies.excluded";
      readonly of: string;
      readonly taskId: string;
      readonly nodeId: string;
    }
  | { readonly kind: "family.touched" | "family.checked"; readonly taskId: string }
  | { readonly kind: "task.deleted"; readonly taskId: string; readonly frees?: string }
  | { readonly kind: "checkpoint.saved"; readonly taskId: string; readonly checkpoint: Checkpoint }
  | { readonly kind: "checkpoint.removed"; readonly taskId: string }
  | {
      readonly kind: "output.begun";
      readonly taskId: string;
      readonly attempt: OutputAttempt;
      readonly countedBytes: number;
    }
  | ({ readonly kind: "output.grown"; readonly taskId: string } & Pick<
      OutputAttempt,
      "epoch" | "bytes" | "keptBytes" | "at"
    >)
  | ({ readonly kind: "output.appended"; readonly taskId: string; readonly epoch: number } & OutputBlock)
  | {
      readonly kind: "output.cut";
      readonly taskId: string;
      readonly epoch: number;
      readonly first: number;
      readonly end: number;
    }
  /** Off the usage of their nodes, and then the attempts up to an epoch. */
  | {
      readonly kind: "output.refunded" | "output.removed" | "output.erased";
      readonly taskId: string;
      readonly upTo: number;
    }
  | { readonly kind: "question.asked"; readonly question: Question }
  | { readonly kind: "question.settled"; readonly question: Question }
  /** Of a task that has ended: they time out; of a deleted task: all go. */
  | { readonly kind: "questions.closed"; readonly taskId: string; readonly at: number }
  | { readonly kind: "questions.removed"; readonly taskId: string }
  | {
      readonly kind: "usage.reported";
      readonly taskId: string;
      readonly epoch: number;
      readonly nodeId: string;
      readonly at: number;
      readonly reports: readonly UsageReport[];
    }
  | { readonly kind: "usage.removed"; readonly taskId: string }
  | ({ readonly kind: "spending.summed" } & SumKey & Spending)
  | ({ readonly kind: "node.summed"; readonly nodeId: string; readonly keptBytes: number } & SumKey &
      Spending)
  | { readonly kind: "node.sums.removed"; readonly nodeId: string; readonly day: number }
  /** Off the usage of the nodes, then their sums, then the sums of all. */
  | {
      readonly kind: "sums.refunded" | "node.sums.pruned" | "sums.pruned";
      readonly before: number;
      readonly limit: number;
    }
  | { readonly kind: "budget.saved"; readonly budget: Budget }
  | { readonly kind: "budget.deleted"; readonly key: BudgetKey }
  | { readonly kind: "pause.saved"; readonly pause: Pause }
  | { readonly kind: "pause.deleted"; readonly key: PauseKey }
  | { readonly kind: "limit.saved"; readonly limit: Limit }
  | { readonly kind: "limit.deleted"; readonly key: string }
  | { readonly kind: "limit.used"; readonly key: string; readonly second: number }
  | { readonly kind: "limit.uses.removed"; readonly key: string; readonly before: number }
  | { readonly kind: "tasks.counted"; readonly key: string }
  | { readonly kind: "task.leased"; readonly taskId: string; readonly hasLeases: boolean }
  | { readonly kind: "task.depended"; readonly taskId: string }
  /** The task that must be retried first; null: it has not failed through its dependencies. */
  | { readonly kind: "task.broken"; readonly taskId: string; readonly brokenBy: string | null }
  | {
      readonly kind: "dependencies.added";
      readonly taskId: string;
      readonly dependsOn: readonly string[];
    }
  | { readonly kind: "dependency.met"; readonly taskId: string; readonly dependsOn: string }
  | { readonly kind: "dependencies.dropped"; readonly taskId: string; readonly count: number }
  | { readonly kind: "dependency.settled"; readonly taskId: string; readonly outcome: Outcome }
  | { readonly kind: "settlement.removed"; readonly taskId: string }
  | { readonly kind: "group.touched" | "group.checked"; readonly group: string }
  | ({
      readonly kind: "group.tallied";
      readonly group: string;
      readonly adds: boolean;
      readonly removes: boolean;
    } & GroupTotals)
  | {
      readonly kind: "tasks.tallied";
      readonly open: number;
      readonly assigned: number;
      readonly completed: number;
      readonly failed: number;
    }
  | { readonly kind: "lux.entered"; readonly entry: LedgerEntry }
  | ({ readonly kind: "lux.minted" } & Minted)
  | { readonly kind: "message.stored"; readonly message: Message; readonly keptBytes?: number }
  /** Of a broadcast that was written in several commits. */
  | { readonly kind: "message.charged"; readonly messageId: string; readonly keptBytes: number }
  | {
      readonly kind: "delivery.queued";
      readonly messageId: string;
      readonly toNode: string;
    }
  | {
      readonly kind: "deliveries.queued";
      readonly messageId: string;
      readonly toNodes: readonly string[];
    }
  | {
      readonly kind: "delivery.moved";
      readonly messageId: string;
      readonly seq: number;
      readonly toNode: string;
      readonly state: DeliveryState;
      readonly deliveries: number;
      readonly leaseUntil: number | null;
    }
  /** Null: it has ended, and its recipients can see it. */
  | {
      readonly kind: "broadcast.saved";
      readonly messageId: string;
      /** Steady clock; 0 to give it up. */
      readonly writeUntil: number | null;
      readonly waiting: number;
    }
  | ({ readonly kind: "broadcast.tallied"; readonly seq: number } & BroadcastTally)
  | { readonly kind: "broadcasts.abandoned" }
  /** Also removes the broadcast itself when no delivery is left. */
  | { readonly kind: "broadcast.trimmed"; readonly seq: number; readonly limit: number }
  | { readonly kind: "broadcast.removed"; readonly seq: number }
  | { readonly kind: "message.removed"; readonly messageId: string }
  | { readonly kind: "file.saved"; readonly file: FileRecord }
  | { readonly kind: "file.deleted"; readonly fileId: string }
  | { readonly kind: "file.attached"; readonly fileId: string; readonly taskId: string }
  | { readonly kind: "files.tallied"; readonly files: number; readonly bytes: number }
  | ({ readonly kind: "usage.tallied"; readonly nodeId: string } & Usage)
  | { readonly kind: "note.saved"; readonly note: Note }
  | { readonly kind: "note.removed"; readonly key: string }
  | { readonly kind: "lease.saved"; readonly lease: Lease }
  | { readonly kind: "lease.removed"; readonly lease: Lease }
  | { readonly kind: "leases.released"; readonly taskId: string }
  | { readonly kind: "leases.dropped"; readonly nodeId: string }
  | { readonly kind: "leases.pruned"; readonly steady: number }
  /** Every lease begins its time again. */
  | { readonly kind: "leases.renewed"; readonly steady: number }
  | { readonly kind: "fencing.drawn"; readonly fencing: number }
  | { readonly kind: "event.logged"; readonly event: NewEvent }
  /** Of one run of a hub in the minute that begins at `at`; replaced, not added. */
  | { readonly kind: "minute.saved"; readonly at: number; readonly hub: string; readonly numbers: string }
  /** The sum of a period of `stepMs` that begins at `at`; replaced, not added. */
  | { readonly kind: "period.saved"; readonly stepMs: number; readonly at: number; readonly numbers: string }
  | {
      readonly kind: "periods.pruned";
      readonly stepMs: number;
      readonly first: number;
      readonly last: number;
    }
  | { readonly kind: "minutes.pruned"; readonly first: number; readonly last: number }
  | { readonly kind: "answer.stored"; readonly answer: StoredAnswer }
  | { readonly kind: "key.saved"; readonly key: KeyRecord }
  | { readonly kind: "invitation.saved"; readonly invitation: Invitation }
  | { readonly kind: "invitation.deleted"; readonly invitation: Invitation }
  | { readonly kind: "invitations.dropped"; readonly nodeId: string }
  | { readonly kind: "invitations.pruned"; readonly before: number }
  /** So that a stop, a sleep or a clock jump costs none. */
  | { readonly kind: "node.leases.renewed"; readonly variant: Node["variant"]; readonly leaseUntil: number }
  | { readonly kind: "delivery.leases.renewed"; readonly leaseUntil: number }
  /** So that a stop, a sleep or a clock jump costs none. */
  | { readonly kind: "task.leases.renewed"; readonly steady: number }
  /** The wall clock was set back: what begins in the future begins at `now`. */
  | { readonly kind: "backoffs.restarted" | "questions.restarted"; readonly now: number }
  /** By a clock jump. */
  | {
      readonly kind: "answers.shifted";
      readonly after: number;
      readonly upTo: number;
      readonly movedMs: number;
    }
  | {
      readonly kind: "deliveries.pruned";
      readonly broadcast: boolean;
      readonly before: number;
      readonly limit: number;
      readonly now: number;
    }
  | {
      readonly kind: "messages.pruned" | "broadcasts.pruned" | "events.pruned";
      readonly before: number;
      readonly limit: number;
      readonly now: number;
    }
  /** Off the usage of their nodes; before the same step removes them. */
  | {
      readonly kind: "messages.refunded" | "events.refunded";
      readonly before: number;
      readonly limit: number;
      readonly now: number;
    }
  | { readonly kind: "answers.pruned"; readonly before: number; readonly limit: number }
  /**
   * Beyond `maxBytes`. `storedBytes`: what the commit stores. `scope`: of the answer that it stores last; "" if it
   * stores none.
   */
  | {
      readonly kind: "answers.trimmed";
      readonly keyId: string | null;
      readonly maxBytes: number;
      readonly storedBytes: number;
      readonly scope: string;
    };

/** The measure of what a change costs. A dependency is in two indexes. */
export function rowsOf(change: Change): number {
  if (change.kind === "dependencies.added") return 2 * change.dependsOn.length;
  if (change.kind === "dependencies.dropped") return 2 * change.count;
  if (change.kind === "usage.reported") return change.reports.length;
  return change.kind === "deliveries.queued" ? change.toNodes.length : 1;
}
