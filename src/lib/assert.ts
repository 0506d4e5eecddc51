/**
 * Assertions: what the hub relies on and checks while it runs. A broken invariant is a defect of the program, never the
 * fault of a caller, a disk or a network.
 *
 * Within a transaction the error refuses that transaction. In a commit listener it ends that listener's work for one
 * commit, whose rows a later read finds. Where nothing catches it, the hub ends in order, because its state cannot be
 * trusted.
 *
 * Must not: cost more than a few comparisons. The tests, the torture runs and `luxhub doctor` check expensive invariants
 * (store/sql/consistency.ts).
 */

/** `message`: what should hold, without any data of a caller. */
export class InvariantBroken extends Error {
  override readonly name = "InvariantBroken";
}

type Listener = (error: InvariantBroken) => void;

const listeners = new Set<Listener>();
let count = 0;

export function onInvariantBroken(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export function invariantsBroken(): number {
  return count;
}

/** For a place that repairs the state and goes on; others throw what this returns. */
export function broken(what: string): InvariantBroken {
  const error = new InvariantBroken(what);
  count++;
  for (const listener of listeners) listener(error);
  return error;
}

export function assert(condition: boolean, what: string): asserts condition {
  if (!condition) throw broken(what);
}

export function must<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw broken(what);
  return value;
}
