/** What the store declares of each change: the statement that writes it, its write set, and what the row cache does. */
import type { Change } from "../../domain/change.ts";
import type { ConflictKey, Table } from "./conflict-keys.ts";
import type { Statement } from "./write-statement.ts";

export type Of<K extends Change["kind"]> = Change & { readonly kind: K };

export type Writes = { readonly [K in Change["kind"]]: Write<Of<K>> };

/**
 * The rows that SQLite may hold in memory (store/sqlite/row-cache.ts), as far as changes touch them. What is computed from
 * other rows is here with those.
 */
export type CachedRows = {
  /** The task is the whole row as it is after the change. */
  writeTask(change: Of<"task.created" | "task.moved">): void;
  patchNode(change: Of<"node.beaten" | "node.tallied">): void;
  patchUsage(change: Of<"usage.tallied">): void;
  patchSpending(change: Of<"spending.summed">): void;
  setLedgerHead(change: Of<"lux.entered">): void;
  clearTasks(): void;
  clearGate(): void;
  clearUsage(): void;
  /** Evicts the tasks, nodes, takers and best tasks that the write set of the change names. */
  evict(change: Change): void;
};

type CachedTable =
  | "tasks"
  | "files"
  | "nodes"
  | "beats"
  | "quota_usage"
  | "usage_sums"
  | "budgets"
  | "pauses"
  | "limits"
  | "ledger";

/**
 * The statement of a change, and what the row cache does after it: for a table of which rows are cached, the compiler
 * demands that. `rowId`: of a new row.
 */
type Stored<C> =
  | {
      readonly statement: Statement<C, CachedTable>;
      cache(rows: CachedRows, change: C, rowId: number): void;
    }
  | { readonly statement: Statement<C, Exclude<Table, CachedTable>>; readonly cache?: never };

export const leave = (): void => {};
export const evict = (rows: CachedRows, change: Change): void => rows.evict(change);

export type Write<C> = Stored<C> & {
  /** Another statement for some changes of this kind; null: use `statement`. */
  instead?(change: C): Statement<C> | null;
  /** Statements of other tables, whose rows belong to this one: written after it, or before it. */
  readonly beside?: readonly Beside<C>[];
  /** The row it changes: changes of one row are written in order. Absent for a new row and for a sum. */
  row?(change: C): ConflictKey;
  /** More conflict keys of the rows it writes. */
  keys?(change: C): readonly ConflictKey[];
  /** A row that must be written before this one. */
  after?(change: C): ConflictKey;
  /**
   * Merges two changes of one row; null when a sum would be too large. Such changes commute with those of other kinds, but
   * for the one that makes the row, and sweeps.
   */
  sum?(earlier: C, later: C): C | null;
  /** Its rows cannot be named, so no change is reordered across it. */
  readonly isSweep?: true;
  /**
   * It removes rows, so its part of a transaction may use the space that must remain on a full disk. "alone": only if the
   * part has no other change.
   */
  readonly frees?: true | "alone";
};

export type Beside<C> = {
  readonly statement: Statement<C>;
  readonly isFirst?: true;
  /** For which changes; without it for all of the kind. */
  when?(change: C): boolean;
};
