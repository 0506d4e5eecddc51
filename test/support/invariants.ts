/**
 * In tests a broken invariant is an error that nobody can swallow: it fails the test, whoever catches what was thrown.
 * Preloaded before every test file (environment.ts).
 */
import { type InvariantBroken, onInvariantBroken } from "../../src/lib/assert.ts";

let collected: InvariantBroken[] | null = null;

onInvariantBroken((error) => {
  if (collected) collected.push(error);
  else
    queueMicrotask(() => {
      throw error;
    });
});

/** Runs what breaks invariants on purpose. Returns what was broken meanwhile. */
export async function brokenDuring(run: () => unknown): Promise<readonly string[]> {
  const errors: InvariantBroken[] = [];
  collected = errors;
  try {
    await run();
  } finally {
    collected = null;
  }
  return errors.map(({ message }) => message);
}
