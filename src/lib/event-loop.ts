/**
 * The end of an event-loop tick, when the I/O that is ready has been read. Work that came in one tick and runs together
 * there takes less processor time than work that runs piece by piece between two reads of sockets.
 *
 * What it queues by lastInTick() runs in the same tick, before the sockets are polled again: a caller who ends its side
 * of the connection after a request is answered before Bun hears of that and closes the connection.
 */

let current: Promise<void> | null = null;
/** What runs last in this tick; null before the end of the tick. */
let lastWork: (() => void)[] | null = null;

/** Resolves at the end of this tick, for all callers together. */
export function endOfTick(): Promise<void> {
  return (current ??= new Promise((resolve) => {
    setImmediate(() => {
      current = null;
      lastWork = [];
      resolve();
    });
    setImmediate(() => {
      const work = lastWork ?? [];
      lastWork = null;
      for (const run of work) run();
    });
  }));
}

/** Runs `work` after what the end of this tick started; if that is over or has not begun, in the next immediate. */
export function lastInTick(work: () => void): void {
  if (lastWork) lastWork.push(work);
  else setImmediate(work);
}
