/** What the parts of the page share. */
import { useState } from "preact/hooks";

/** A value that parts of the page share. After a change of one that is drawn, the whole page is drawn again. */
export class Shared<T> {
  #value: T;
  readonly #followers = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  /** Calls all followers before it returns. */
  set value(value: T) {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const follower of [...this.#followers]) follower();
  }

  follow(follower: () => void): () => void {
    this.#followers.add(follower);
    return () => void this.#followers.delete(follower);
  }
}

let draw = (): void => {};
let isDue = false;

/** Draws the page now, and again after each change of what it shows. */
export function drawWith(drawing: () => void): void {
  draw = drawing;
  draw();
}

function drawSoon(): void {
  if (isDue) return;
  isDue = true;
  queueMicrotask(() => {
    isDue = false;
    draw();
  });
}

export function drawn<T>(value: T): Shared<T> {
  const shared = new Shared(value);
  shared.follow(drawSoon);
  return shared;
}

/** Runs now, and again after each change of one of the values. What a run returns ends it, before the next one. */
export function runAfter(values: readonly Shared<unknown>[], run: () => (() => void) | void): void {
  let end = run();
  for (const value of values)
    value.follow(() => {
      end?.();
      end = run();
    });
}

let ids = 0;

/** An id that no other element of the page has: Preact's own begin anew each time that the whole page is drawn. */
export function useUniqueId(): string {
  const [id] = useState(() => `id-${++ids}`);
  return id;
}
