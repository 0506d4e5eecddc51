/**
 * Which rows a change touches, in words that a query uses to say what it reads: a table ("nodes"), or the rows of a
 * table that belong to one key ("nodes n1"). An engine that loads several transactions at once finds by them which of
 * those must look again after one before them was decided. A change says every word under which somebody may read it.
 */
import type { Change } from "../../domain/change.ts";
import type { Query } from "../store.ts";

/** The words for the rows of one key. */
export const rowsOf = {
  node: (nodeId: string): string => `nodes ${nodeId}`,
  /** That there is such a node: what it does meanwhile changes nothing of it. */
  registration: (nodeId: string): string => `registration ${nodeId}`,
  /** How many nodes there are. */
  registrations: "registrations",
  /** Which broadcasts can be seen. */
  publications: "publications",
  task: (taskId: string): string => `tasks ${taskId}`,
  filesOfTask: (taskId: string): string => `files ${taskId}`,
  ledger: (nodeId: string): string => `ledger ${nodeId}`,
  message: (messageId: string): string => `messages ${messageId}`,
  mailbox: (nodeId: string): string => `deliveries ${nodeId}`,
  answer: (scope: string): string => `answers ${scope}`,
} as const;

/** It changes too much to be named: everything is read again. */
export const EVERYTHING = "everything";

const TABLE = /\b(?:FROM|JOIN)\s+([a-z_]+)/g;

/** What a query reads: as it says itself, else all the tables in its text. */
export function readsOf({ sql, reads }: Query<unknown>): readonly string[] {
  return reads ?? [...new Set(Array.from(sql.matchAll(TABLE), ([, table]) => table ?? ""))];
}

/** What a change touches. */
export function touchesOf(change: Change): readonly string[] {
  switch (change.kind) {
    case "node.saved":
      return ["nodes", rowsOf.node(change.node.nodeId), rowsOf.registration(change.node.nodeId)];
    case "node.beaten":
      return ["beats", rowsOf.node(change.nodeId)];
    case "node.returned":
    case "node.offline":
    case "node.tallied":
      return ["nodes", rowsOf.node(change.nodeId)];
    case "task.created":
    case "task.moved":
      return ["tasks", rowsOf.task(change.task.taskId)];
    case "task.deleted":
      return ["tasks", rowsOf.task(change.taskId)];
    case "tasks.tallied":
      return ["task_totals"];
    case "lux.entered":
      return ["ledger", rowsOf.ledger(change.entry.nodeId)];
    case "message.stored":
      return ["messages", rowsOf.message(change.message.messageId)];
    case "delivery.queued":
    case "delivery.moved":
      return ["deliveries", rowsOf.mailbox(change.toNode)];
    case "file.saved":
      return ["files", ...(change.file.taskId === null ? [] : [rowsOf.filesOfTask(change.file.taskId)])];
    case "broadcast.saved":
      return ["broadcasts", rowsOf.publications];
    case "broadcast.tallied":
      return ["broadcasts"];
    case "event.logged": {
      const { kind } = change.event;
      return kind === "node.registered" ? ["events", rowsOf.registrations] : ["events"];
    }
    case "answer.stored":
      return ["answers", rowsOf.answer(change.answer.scope)];
    case "key.saved":
      return ["keys"];
    case "file.deleted": // whichever task it is attached to
    case "node.leases.renewed":
    case "delivery.leases.renewed":
    case "deliveries.pruned":
    case "broadcasts.abandoned":
    case "broadcast.trimmed":
    case "broadcast.removed":
    case "message.removed":
    case "messages.pruned":
    case "broadcasts.pruned":
    case "events.pruned":
    case "answers.pruned":
    case "answers.shifted":
      return [EVERYTHING];
  }
}
