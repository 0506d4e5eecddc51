/**
 * The end of an event-loop tick, when the I/O that is ready has been read. Work that runs together there takes less
 * processor time than piece by piece between two reads of sockets.
 *
 * What a caller queues by lastInTick() runs before the sockets are polled again: a client that ends its side of the
 * connection after a request is answered before Bun hears of that and closes the connection.
 */
import { assert, must } from "./assert.ts";

/** Bounds how long one tick lasts; a group commit takes several of these groups. */
const TOGETHER = 512;

type Group = PromiseWithResolvers<void> & { size: number };

const groups: Group[] = [];
/** Null before the end of the tick. */
let lastWork: (() => void)[] | null = null;

/** In groups of TOGETHER, in FIFO order. */
export function endOfTick(): Promise<void> {
  let group = groups.at(-1);
  if (group === undefined) atEndOfTick();
  if (group === undefined || group.size === TOGETHER) {
    group = { ...Promise.withResolvers<void>(), size: 0 };
    groups.push(group);
  }
  group.size++;
  return group.promise;
}

function atEndOfTick(): void {
  setImmediate(() => {
    const group = groups.shift();
    if (groups.length > 0) atEndOfTick();
    lastWork = [];
    group?.resolve();
  });
  setImmediate(() => {
    const work = must(lastWork, "the end of a tick began before its last work");
    lastWork = null;
    for (const run of work) run();
  });
}

/** If the end of this tick is over or has not begun, in the next immediate. */
export function lastInTick(work: () => void): void {
  if (lastWork) lastWork.push(work);
  else setImmediate(work);
}

export function nextTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * A turn is a macrotask, at whose end the engine runs only what this caller continues with. At most `perTick` in one
 * tick, in FIFO order.
 */
export class Turns {
  readonly #perTick: number;
  #waiting: (() => void)[] = [];
  #next = 0;
  #scheduled = 0;

  constructor(perTick: number) {
    assert(perTick > 0, "a tick gives at least one turn");
    this.#perTick = perTick;
  }

  next(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    this.#schedule();
    return promise;
  }

  #schedule(): void {
    if (this.#scheduled >= Math.min(this.#perTick, this.#waiting.length - this.#next)) return;
    this.#scheduled++;
    setImmediate(() => this.#give());
  }

  #give(): void {
    this.#scheduled--;
    this.#waiting[this.#next++]?.();
    if (this.#next === this.#waiting.length) {
      this.#waiting = [];
      this.#next = 0;
    } else this.#schedule();
  }
}
