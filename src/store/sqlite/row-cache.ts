/**
 * A write-through cache of rows by id: tasks that are not finished, and nodes. The hub is the only writer of its
 * database, so what it read or wrote last is what a row holds. It has two generations: when the younger one is full, the
 * older one is dropped.
 *
 * Invariant: a row that is kept equals what its query reads. A change either says the new row, or the rows in its write
 * set are forgotten. After a rollback, or a commit of another process, the engine clears it.
 */
import type { Change } from "../../domain/change.ts";
import { CACHED_NODES, CACHED_TASKS, CACHED_TASK_MAX_CHARS } from "../../domain/limits.ts";
import type { Node, Task } from "../../domain/model.ts";
import { EVERYTHING, type Table, keyOf } from "../sql/conflict-keys.ts";
import { patchNode } from "../sql/nodes.ts";
import { writeOf, writeSetOf } from "../sql/statements.ts";
import type { Query } from "../store.ts";

/** The tables that the rows are read from. */
const TABLES: ReadonlySet<Table> = new Set(["tasks", "files", "nodes", "beats"]);

/** The conflict keys of the rows, up to the id. */
const OF_TASK = [keyOf.task(""), keyOf.filesOfTask("")];
const OF_NODE = keyOf.node("");

export class RowCache {
  /** Reads from the database. */
  readonly read: <R>(query: Query<R>) => R;
  readonly #tasks = new Generations<Task>(CACHED_TASKS);
  readonly #nodes = new Generations<Node>(CACHED_NODES);

  constructor(read: RowCache["read"]) {
    this.read = read;
  }

  load<R>(query: Query<R>): R {
    const { row } = query;
    if (row === undefined) return this.read(query);
    const known = row.table === "tasks" ? this.#tasks.get(row.id) : this.#nodes.get(row.id);
    // Only taskById and nodeById have a row: R is Task | null, or Node | null.
    if (known !== undefined) return known as R;
    const value = this.read(query);
    if (value !== null && row.table === "tasks") this.#keepTask(value as Task);
    else if (value !== null) this.#nodes.set(row.id, value as Node);
    return value;
  }

  /** After a change was written or gathered. `rowId`: of a new row. */
  apply(change: Change, rowId: number): void {
    switch (change.kind) {
      case "task.created":
        this.#keepTask({ ...change.task, seq: rowId });
        break;
      case "task.moved":
        this.#keepTask(change.task);
        break;
      case "node.beaten":
      case "node.tallied": {
        const node = this.#nodes.get(change.nodeId);
        const after = node && patchNode(node, change);
        if (after) this.#nodes.set(change.nodeId, after);
        break;
      }
      default:
        if (TABLES.has(writeOf(change).statement.table)) this.#forget(change);
    }
  }

  clear(): void {
    this.#tasks.clear();
    this.#nodes.clear();
  }

  #keepTask(task: Task): void {
    const { taskId, status, description, progress, failure } = task;
    const chars = description.length + (progress?.length ?? 0) + (failure?.message?.length ?? 0);
    if (status === "completed" || status === "failed" || chars > CACHED_TASK_MAX_CHARS)
      this.#tasks.delete(taskId);
    else this.#tasks.set(taskId, task);
  }

  #forget(change: Change): void {
    for (const key of writeSetOf(change)) {
      if (key === EVERYTHING) return this.clear();
      for (const prefix of OF_TASK) if (key.startsWith(prefix)) this.#tasks.delete(key.slice(prefix.length));
      if (key.startsWith(OF_NODE)) this.#nodes.delete(key.slice(OF_NODE.length));
    }
  }
}

/** A bounded map: it keeps the rows that were used last, at least `most` and at most twice as many. */
class Generations<V> {
  readonly #most: number;
  #young = new Map<string, V>();
  #old = new Map<string, V>();

  constructor(most: number) {
    this.#most = most;
  }

  get(id: string): V | undefined {
    const young = this.#young.get(id);
    if (young !== undefined) return young;
    const old = this.#old.get(id);
    if (old !== undefined) this.set(id, old);
    return old;
  }

  set(id: string, row: V): void {
    this.#young.set(id, row);
    if (this.#young.size < this.#most) return;
    this.#old = this.#young;
    this.#young = new Map();
  }

  delete(id: string): void {
    this.#young.delete(id);
    this.#old.delete(id);
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
  }
}
