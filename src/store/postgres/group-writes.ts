/**
 * Changes on their way to the database, gathered into as few statements as their order allows: changes of one kind go
 * together, and one of them waits for what it builds on (its row's earlier change, the message of its delivery).
 * Running totals are summed up first, since every task that moves changes the same row of them.
 */
import type { Change } from "../../domain/change.ts";
import type { Statements, Write } from "./bulk-statements.ts";
import type { Connection } from "./connection.ts";
import { type Statement, statementOf } from "../sql/statements.ts";
import type { Param } from "../store.ts";

/** `isFree`: it builds on no batch before it. */
type Batch = { readonly sql: string; readonly sets: (readonly Param[])[]; isFree: boolean };
type NodeTally = Extract<Change, { kind: "node.tallied" }>;
type BroadcastTally = Extract<Change, { kind: "broadcast.tallied" }>;
type TaskTally = Extract<Change, { kind: "tasks.tallied" }>;

/** Differs from store/sql/statements.ts because the ids of the log are given by the hub here (store/postgres/group-commit.ts says why). */
const LOG_EVENT = `
  INSERT INTO events (id, at, kind, node_id, task_id, data) VALUES ($1, $2, $3, $4, $5, $6)`;

export class Writes {
  readonly #batches: Batch[] = [];
  /** By a statement's text: the last batch of it. */
  readonly #last = new Map<string, number>();
  /** By a row: the last batch that has a change of it. */
  readonly #rows = new Map<string, number>();
  /** What comes now must come after this batch, whatever it is. */
  #barrier = -1;
  readonly #nodeTallies = new Map<string, NodeTally>();
  readonly #broadcastTallies = new Map<number, BroadcastTally>();
  #taskTally: TaskTally | null = null;

  get isEmpty(): boolean {
    const tallies = this.#nodeTallies.size + this.#broadcastTallies.size;
    return this.#batches.length === 0 && this.#taskTally === null && tallies === 0;
  }

  /** `eventId` is the id of an `event.logged`. */
  add(change: Change, eventId: number): void {
    if (change.kind === "tasks.tallied") this.#taskTally = plusTasks(this.#taskTally, change);
    else if (change.kind === "node.tallied") this.#tally(change);
    else if (change.kind === "broadcast.tallied")
      this.#broadcastTallies.set(change.seq, plusBroadcast(this.#broadcastTallies.get(change.seq), change));
    else this.#place(writeOf(change, eventId), placeOf(change));
  }

  /**
   * Sends everything, and `more`, which builds on none of it: what builds on nothing first. The promises are for the
   * answers, which the caller awaits together.
   */
  send(
    connection: Connection,
    statements: Statements,
    more: readonly Write[] = [],
  ): readonly Promise<void>[] {
    for (const tally of this.#nodeTallies.values()) this.#place(statementOf(tally), placeOf(tally));
    // No broadcast is seen, and so tallied, before the batch that published it was sent.
    for (const tally of this.#broadcastTallies.values()) this.#place(statementOf(tally), placeOf(tally));
    if (this.#taskTally) this.#place(statementOf(this.#taskTally), ANYWHERE);
    const free = this.#batches.filter(({ isFree }) => isFree);
    return [
      statements.writeTogether(connection, [...free, ...more]),
      ...this.#batches
        .filter(({ isFree }) => !isFree)
        .map(({ sql, sets }) => statements.write(connection, sql, sets)),
    ];
  }

  /** Totals are added to what is there: their order does not matter, but a node must be there first. */
  #tally(change: NodeTally): void {
    const { nodeId } = change;
    const before = this.#nodeTallies.get(nodeId);
    const sum = before ? plusNode(before, change) : change;
    if (!before || Number.isSafeInteger(sum.balanceMicro)) {
      this.#nodeTallies.set(nodeId, sum);
    } else {
      this.#place(statementOf(before), placeOf(before)); // more than a number carries
      this.#nodeTallies.set(nodeId, change);
    }
  }

  #place({ sql, params }: Statement, { rows, after }: Place): void {
    const newest = this.#batches.length - 1;
    let floor = rows === ALL ? newest : this.#barrier;
    if (rows !== ALL) for (const row of rows) floor = Math.max(floor, this.#rows.get(row) ?? -1);
    if (after !== null) floor = Math.max(floor, this.#rows.get(after) ?? -1);
    const last = this.#last.get(sql) ?? -1;
    const at = last > floor ? last : newest + 1;
    const batch = this.#batches[at] ?? { sql, sets: [], isFree: true };
    if (at > newest) this.#batches.push(batch);
    batch.sets.push(params);
    if (floor >= 0) batch.isFree = false;
    this.#last.set(sql, at);
    if (rows === ALL) this.#barrier = at;
    else for (const row of rows) this.#rows.set(row, at);
  }
}

/** The row that a change is of, by each name that changes know it by, and one that must have been written before it. */
type Place = { readonly rows: readonly string[] | typeof ALL; readonly after: string | null };

const ALL = "all rows";
const ANYWHERE: Place = { rows: [], after: null };

const rowOfNode = (nodeId: string): string => `node ${nodeId}`;
const rowOfTask = (taskId: string): string => `task ${taskId}`;
const rowOfBroadcast = (messageId: string): string => `broadcast ${messageId}`;
const rowOfMessage = (messageId: string): string => `message ${messageId}`;

function writeOf(change: Change, eventId: number): Statement {
  const statement = statementOf(change);
  if (change.kind !== "event.logged") return statement;
  return { sql: LOG_EVENT, params: [eventId, ...statement.params] };
}

function placeOf(change: Change): Place {
  switch (change.kind) {
    case "node.saved":
      return { rows: [rowOfNode(change.node.nodeId)], after: null };
    case "node.beaten":
    case "node.returned":
    case "node.offline":
    case "node.tallied":
      return { rows: [rowOfNode(change.nodeId)], after: null };
    case "task.created":
      return { rows: [rowOfTask(change.task.taskId)], after: null };
    case "task.moved":
      return { rows: [rowOfTask(change.task.taskId)], after: null };
    case "task.deleted":
      return { rows: [rowOfTask(change.taskId)], after: null };
    case "message.stored":
      return { rows: [rowOfMessage(change.message.messageId)], after: null };
    case "delivery.queued":
    case "delivery.moved":
      return {
        rows: [`delivery ${change.toNode} ${change.messageId}`],
        after: rowOfMessage(change.messageId),
      };
    case "broadcast.saved":
      return { rows: [rowOfBroadcast(change.messageId)], after: rowOfMessage(change.messageId) };
    case "broadcast.tallied":
      return ANYWHERE;
    case "file.saved":
      return { rows: [`file ${change.file.fileId}`], after: null };
    case "file.deleted":
      return { rows: [`file ${change.fileId}`], after: null };
    case "answer.stored":
      return { rows: [`answer ${change.answer.scope}`], after: null };
    case "key.saved":
      return { rows: [`key ${change.key.keyId}`], after: null };
    case "lux.entered": // a row that is entered once
    case "event.logged":
    case "tasks.tallied":
      return ANYWHERE;
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
      return { rows: ALL, after: null };
  }
}

function plusTasks(sum: TaskTally | null, more: TaskTally): TaskTally {
  if (!sum) return more;
  return {
    ...more,
    open: sum.open + more.open,
    assigned: sum.assigned + more.assigned,
    completed: sum.completed + more.completed,
  };
}

function plusBroadcast(sum: BroadcastTally | undefined, more: BroadcastTally): BroadcastTally {
  if (!sum) return more;
  const waiting = sum.waiting + more.waiting;
  const delivered = sum.delivered + more.delivered;
  return { ...more, waiting, delivered, acked: sum.acked + more.acked };
}

function plusNode(sum: NodeTally, more: NodeTally): NodeTally {
  return {
    ...more,
    assigned: sum.assigned + more.assigned,
    completed: sum.completed + more.completed,
    luxEarnedMicro: sum.luxEarnedMicro + more.luxEarnedMicro,
    entries: sum.entries + more.entries,
    balanceMicro: sum.balanceMicro + more.balanceMicro,
  };
}
