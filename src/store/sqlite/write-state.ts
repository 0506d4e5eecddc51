/**
 * Whether the database accepts writes, as a state machine: how a group of transactions ended says the next state,
 * whatever the state before it. A group that wrote nothing and refused nobody changes no state: it proves nothing.
 *
 * - `open`: writes succeed. The only state in which the store is writable.
 * - `reserve`: the disk has less free space than --min-free. The last group could write because it deletes, and a
 *   deletion may use the space that must remain. That does not prove that other writes succeed.
 * - `failing`: the last write was refused: it found no room, the disk failed, another process locked the file, or its
 *   group could not be rolled back.
 *
 * Damage is not among them, because it is final: the engine keeps it as the error that all later transactions get.
 */
export type WriteState = "open" | "reserve" | "failing";

/** How a group ended. `could not write`: one of its transactions found no room, or nothing of it could be written. */
export type WriteEnd = "wrote" | "used the reserve" | "could not write";

export const STATE_AFTER: Readonly<Record<WriteEnd, WriteState>> = {
  wrote: "open",
  "used the reserve": "reserve",
  "could not write": "failing",
};
