/** Reads a long table in pages, with other work in between. */
import { nextTick } from "./event-loop.ts";

/** `read` gets the last row of the page before; null: it reads the first page. */
export async function* pagesOf<R>(
  size: number,
  read: (last: R | null) => Promise<readonly R[]>,
): AsyncGenerator<readonly R[], void, undefined> {
  for (let last: R | null = null; ;) {
    const rows: readonly R[] = await read(last);
    yield rows;
    const end = rows.at(-1);
    if (end === undefined || rows.length < size) return;
    last = end;
    await nextTick();
  }
}

/** `next` null: there is no further part. */
export async function* partsOf<P extends { readonly next: number | null }>(
  read: (after: number) => Promise<P>,
): AsyncGenerator<P, void, undefined> {
  let after: number | null = 0;
  while (after !== null) {
    const part: P = await read(after);
    yield part;
    after = part.next;
    if (after !== null) await nextTick();
  }
}
