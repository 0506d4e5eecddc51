/** What the store declares of each change: the statement that writes it, its write set, and what the row cache does. */
import type { Change } from "../../domain/change.ts";
import type { ConflictKey } from "./conflict-keys.ts";
import type { Statement } from "./write-statement.ts";

export type Of<K extends Change["kind"]> = Change & { readonly kind: K };

export type Writes = { readonly [K in Change["kind"]]: Write<Of<K>> };

/** The statement and the write set of a change. */
export type Write<C> = {
  readonly statement: Statement<C>;
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
