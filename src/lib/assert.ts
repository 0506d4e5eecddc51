/**
 * Assertions: what the hub relies on and checks while it runs. A broken invariant is a defect of the program, never the
 * fault of a caller, a disk or a network. Every break is counted, and reported with its place to whoever listens.
 *
 * Where the error goes: within a transaction it refuses that transaction, of which nothing is written. In a commit listener
 * it ends that listener's work for one commit, whose rows a later read finds. Where nothing catches it, the hub ends in
 * order, because its state cannot be trusted.
 *
 * Must not: stand where a check costs more than a few comparisons. Expensive invariants are checked by the tests (of the
 * row cache, and of the stored rows: store/sql/consistency.ts), by the torture runs and by `luxhub doctor`.
 */

/** A state that cannot be. `message`: what should hold, without any data of a caller. */
export class InvariantBroken extends Error {
  override readonly name = "InvariantBroken";
}

type Listener = (error: InvariantBroken) => void;

const listeners = new Set<Listener>();
let count = 0;

/** Calls the listener for each break in this process. Returns the way to remove it. */
export function onInvariantBroken(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** How many breaks this process has counted. */
export function invariantsBroken(): number {
  return count;
}

/** Counts and reports a break. For a place that repairs the state and goes on; others throw what this returns. */
export function broken(what: string): InvariantBroken {
  const error = new InvariantBroken(what);
  count++;
  for (const listener of listeners) listener(error);
  return error;
}

/** @throws {InvariantBroken} when the condition does not hold */
export function assert(condition: boolean, what: string): asserts condition {
  if (!condition) throw broken(what);
}

/** Returns a value that cannot be missing. @throws {InvariantBroken} when it is */
export function must<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw broken(what);
  return value;
}
