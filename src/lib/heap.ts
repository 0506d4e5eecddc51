/** A binary heap (priority queue): the first item by an order, at O(log n) for each that is added or removed. */
export class Heap<T> {
  readonly #items: T[];
  readonly #before: (a: T, b: T) => boolean;

  /** The heap takes over the array `items`; `before` is a strict order. */
  constructor(items: T[], before: (a: T, b: T) => boolean) {
    this.#items = items;
    this.#before = before;
    for (let at = (items.length >> 1) - 1; at >= 0; at--) this.#sink(at);
  }

  /** The first item; undefined when the heap is empty. */
  get first(): T | undefined {
    return this.#items[0];
  }

  put(item: T): void {
    const items = this.#items;
    let at = items.push(item) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const other = items[above];
      if (other === undefined || !this.#before(item, other)) break;
      items[at] = other;
      at = above;
    }
    items[at] = item;
  }

  takeFirst(): T | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (last !== undefined && items.length > 0) {
      items[0] = last;
      this.#sink(0);
    }
    return first;
  }

  /** Restores the order after the first item has changed so that it may come later. */
  sinkFirst(): void {
    this.#sink(0);
  }

  #sink(from: number): void {
    const items = this.#items;
    const item = items[from];
    if (item === undefined) return;
    let at = from;
    for (;;) {
      let below = 2 * at + 1;
      let other = items[below];
      if (other === undefined) break;
      const right = items[below + 1];
      if (right !== undefined && this.#before(right, other)) {
        below += 1;
        other = right;
      }
      if (!this.#before(other, item)) break;
      items[at] = other;
      at = below;
    }
    items[at] = item;
  }
}
