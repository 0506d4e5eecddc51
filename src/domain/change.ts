/**
 * Every write there is: a closed union. Each change is one statement of store/sql/statements.ts.
 * A new kind of write is added here first; the compiler then names every place that must know it.
 */
import type { NewEvent } from "./event.ts";
import type {
  DeliveryState,
  FileRecord,
  KeyRecord,
  LedgerEntry,
  Message,
  Node,
  StoredAnswer,
  Task,
} from "./model.ts";

export type Change =
  /** What a node says of itself when it registers, which is a heartbeat too: a `node.beaten` comes with it. */
  | { readonly kind: "node.saved"; readonly node: Node }
  | {
      readonly kind: "node.beaten";
      readonly nodeId: string;
      readonly lastHeartbeatAt: number;
      readonly leaseUntil: number;
    }
  /** Online again after it was offline; what its heartbeat changes is `node.beaten`. */
  | { readonly kind: "node.returned"; readonly nodeId: string }
  | { readonly kind: "node.offline"; readonly nodeId: string }
  /** What a step adds to the running totals of one node. */
  | {
      readonly kind: "node.tallied";
      readonly nodeId: string;
      readonly assigned: number;
      readonly completed: number;
      readonly luxEarnedMicro: number;
      /** Entries in the LUX ledger, and what they add to the balance. */
      readonly entries: number;
      readonly balanceMicro: number;
      /** Not added: the moment of the step. */
      readonly idleSince: number;
    }
  | { readonly kind: "task.created"; readonly task: Task }
  /** The fields of a task that change in its life. */
  | { readonly kind: "task.moved"; readonly task: Task }
  | { readonly kind: "task.deleted"; readonly taskId: string }
  /** The running totals of all tasks by state; all are added to what is there. */
  | {
      readonly kind: "tasks.tallied";
      readonly open: number;
      readonly assigned: number;
      readonly completed: number;
    }
  | { readonly kind: "lux.entered"; readonly entry: LedgerEntry }
  | { readonly kind: "message.stored"; readonly message: Message }
  | {
      readonly kind: "delivery.queued";
      readonly messageId: string;
      readonly toNode: string;
      readonly broadcast: boolean;
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
  | { readonly kind: "file.saved"; readonly file: FileRecord }
  | { readonly kind: "file.deleted"; readonly fileId: string }
  | { readonly kind: "event.logged"; readonly event: NewEvent }
  | { readonly kind: "answer.stored"; readonly answer: StoredAnswer }
  | { readonly kind: "key.saved"; readonly key: KeyRecord }
  /** Every lease that runs starts anew: after a stop, a sleep or a jump of the clock nobody is blamed for it. */
  | { readonly kind: "node.leases.renewed"; readonly variant: Node["variant"]; readonly leaseUntil: number }
  | { readonly kind: "delivery.leases.renewed"; readonly leaseUntil: number }
  /** Stored answers that were live by the old reading of a clock that jumped are dated by the new one. */
  | {
      readonly kind: "answers.shifted";
      readonly after: number;
      readonly upTo: number;
      readonly movedMs: number;
    }
  /** Old rows go, at most `limit` of them: a sweep is short and comes again. */
  | {
      readonly kind: "deliveries.pruned";
      readonly broadcast: boolean;
      readonly before: number;
      readonly limit: number;
      readonly now: number;
    }
  | {
      readonly kind: "messages.pruned" | "events.pruned";
      readonly before: number;
      readonly limit: number;
      readonly now: number;
    }
  | { readonly kind: "answers.pruned"; readonly before: number; readonly limit: number };
