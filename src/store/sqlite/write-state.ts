/**
 * Whether the database accepts writes, as a state machine: the state follows from how each group of transactions ended.
 * A group that commits without a write changes no state, because it proves nothing. Only `damaged` is final: from the
 * other three an end leads to the same state.
 *
 * - `open`: writes succeed. The only state in which the store is writable.
 * - `reserve`: the disk has less free space than --min-free. The last group could write because it deletes, and a
 *   deletion may use the space that must remain. That does not prove that other writes succeed.
 * - `failing`: the last write was refused: it found no room, the disk failed, another process locked the file, or its
 *   group could not be rolled back.
 * - `damaged`: the file does not hold what was written to it. Nothing is written any more.
 */
export type WriteState = "open" | "reserve" | "failing" | "damaged";

/** How a group ended. `could not write`: one of its transactions found no room, or nothing of it could be written. */
export type WriteEnd = "wrote" | "used the reserve" | "could not write" | "found damage";

export const NEXT_STATE: Readonly<Record<WriteState, Readonly<Record<WriteEnd, WriteState>>>> = {
  open: {
    wrote: "open",
    "used the reserve": "reserve",
    "could not write": "failing",
    "found damage": "damaged",
  },
  reserve: {
    wrote: "open",
    "used the reserve": "reserve",
    "could not write": "failing",
    "found damage": "damaged",
  },
  failing: {
    wrote: "open",
    "used the reserve": "reserve",
    "could not write": "failing",
    "found damage": "damaged",
  },
  damaged: {
    wrote: "damaged",
    "used the reserve": "damaged",
    "could not write": "damaged",
    "found damage": "damaged",
  },
};
