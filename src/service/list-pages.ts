/**
 * Pages of a list: what is asked, what is answered, and the arithmetic between (decisions.md, Tasks list).
 *
 * A page is always whole, but never all in memory if it is large: then it comes in parts, each loaded when it is asked
 * for. How many rows there are and which of them are on the page is of one moment; each part is as it is when it is
 * loaded, and a row that has been deleted by then is left out.
 */
import {
  LIST_FAR_PAGES_MAX,
  LIST_NEAR_ROWS,
  LIST_PART_MAX_BYTES,
  LIST_UNMEASURED_MAX,
} from "../domain/limits.ts";
import { Budget } from "../lib/budget.ts";
import type { Sized, Slice } from "../store/sql/query.ts";
import type { Query, Read, Store } from "../store/store.ts";

/** `page` counts from 1. */
export type PageRequest = { readonly page: number; readonly perPage: number };

export type Page<T> = PageRequest & {
  readonly items: readonly T[];
  readonly total: number;
  /** How many pages there are; 0 of an empty list. */
  readonly pages: number;
  /** What of the page comes after `items`, in the same form; null when that is all of it. */
  readonly rest: AsyncGenerator<Page<T>> | null;
};

/** A list, and what to ask for its rows. */
export type PageSource<T> = {
  readonly total: number;
  /** A slice of the list at once. */
  readonly slice: (slice: Slice) => Query<readonly T[]>;
  /** What is in a slice, without loading it. */
  readonly sizes: (slice: Slice) => Query<readonly Sized[]>;
  /** Some rows by their ids, in any order. */
  readonly some: (ids: readonly string[]) => Query<readonly T[]>;
  /** The size of a row that is loaded. */
  readonly sizeOf: (row: T) => Sized;
};

type Head = Omit<Page<never>, "items" | "rest">;

/** Loads one page of a list whose rows are small, and found by their numbers; past the end nothing is read. */
export async function pageOf<T>(
  request: PageRequest,
  total: number,
  load: (slice: Slice) => Promise<readonly T[]>,
): Promise<Page<T>> {
  const { slice, head } = laidOut(request, total);
  return { ...head, items: slice.offset >= total ? [] : await load(slice), rest: null };
}

/** As many callers wait for pages from far into lists as may: the caller tries again later. */
export class PagesBusy extends Error {
  override readonly name = "PagesBusy";
}

/** The pages of lists whose rows may be large. */
export class Pages {
  readonly #store: Store;
  /** Whose turn it is to walk far into a list. */
  readonly #turn = new Budget(1);
  #waiting = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Loads one page, or the first part of it.
   * @param listed looks at the list, and tells what it is; null: there is none
   * @throws {PagesBusy} when the page is far into the list, and too many are asked for
   */
  async load<T>(
    request: PageRequest,
    listed: (read: Read) => Promise<PageSource<T> | null>,
  ): Promise<Page<T>> {
    if (laidOut(request, 0).slice.offset > LIST_NEAR_ROWS) await this.#takeTurn();
    return this.#store.readTogether(async (read) => {
      const source = await listed(read);
      const { slice, head } = laidOut(request, source?.total ?? 0);
      if (source === null || slice.offset >= source.total) return { ...head, items: [], rest: null };
      const near = fromNearerEnd(slice, source.total);
      // Measuring costs about as much as loading what is small: a few rows are loaded first and measured then.
      const rows = near.limit <= LIST_UNMEASURED_MAX ? await read(source.slice(near)) : null;
      const sizes = rows?.map(source.sizeOf) ?? (await read(source.sizes(near)));
      const [first = [], ...later] = partsOf(sizes);
      const items = rows?.slice(0, first.length) ?? (await inOrder(source, first, read));
      if (later.length === 0) return { ...head, items, rest: null };
      return { ...head, items, rest: restOf(head, source, later, (query) => this.#store.read(query)) };
    });
  }

  /**
   * Resolves in a turn of the event loop in which nobody else walks far: a store that is embedded serves nobody
   * meanwhile, so what else has arrived goes in between.
   */
  async #takeTurn(): Promise<void> {
    if (this.#waiting >= LIST_FAR_PAGES_MAX) throw new PagesBusy("Too many pages from far into lists wait.");
    this.#waiting++;
    await this.#turn.take(1);
    this.#waiting--;
    setImmediate(() => this.#turn.give(1));
  }
}

function laidOut({ page, perPage }: PageRequest, total: number): { slice: Slice; head: Head } {
  return {
    slice: { from: "newest", limit: perPage, offset: (page - 1) * perPage },
    head: { page, perPage, total, pages: Math.ceil(total / perPage) },
  };
}

/** The same rows, counted from the end of the list from which fewer are to be skipped. */
function fromNearerEnd(slice: Slice, total: number): Slice {
  const older = Math.max(total - slice.offset - slice.limit, 0);
  if (slice.offset <= older) return slice;
  return { from: "oldest", limit: Math.min(slice.limit, total - slice.offset), offset: older };
}

async function* restOf<T>(
  head: Head,
  source: PageSource<T>,
  parts: readonly (readonly string[])[],
  read: Read,
): AsyncGenerator<Page<T>> {
  for await (const items of partsFrom(parts, source, read)) yield { ...head, items, rest: null };
}

/** A list that has no pages: its first part, and the others. */
export type Parts<T> = {
  readonly items: readonly T[];
  /** What comes after `items`; null when that is all. */
  readonly rest: AsyncGenerator<readonly T[]> | null;
};

/** Loads the first part of the rows that were measured; the others are loaded when they are asked for. */
export async function inPartsOf<T>(
  measured: readonly Sized[],
  source: Pick<PageSource<T>, "some" | "sizeOf">,
  store: Store,
): Promise<Parts<T>> {
  const read: Read = (query) => store.read(query);
  const [first = [], ...later] = partsOf(measured);
  const items = first.length === 0 ? [] : await inOrder(source, first, read);
  return { items, rest: later.length === 0 ? null : partsFrom(later, source, read) };
}

async function* partsFrom<T>(
  parts: readonly (readonly string[])[],
  source: Pick<PageSource<T>, "some" | "sizeOf">,
  read: Read,
): AsyncGenerator<readonly T[]> {
  for (const ids of parts) yield await inOrder(source, ids, read);
}

async function inOrder<T>(
  source: Pick<PageSource<T>, "some" | "sizeOf">,
  ids: readonly string[],
  read: Read,
): Promise<readonly T[]> {
  const rows = new Map((await read(source.some(ids))).map((row) => [source.sizeOf(row).id, row]));
  return ids.flatMap((id) => rows.get(id) ?? []);
}

/** The ids in parts of a bounded size, each of at least one row. */
function partsOf(rows: readonly Sized[]): readonly (readonly string[])[] {
  const parts: string[][] = [];
  let left = 0;
  for (const { id, bytes } of rows) {
    if (parts.length === 0 || bytes > left) {
      parts.push([]);
      left = LIST_PART_MAX_BYTES;
    }
    parts.at(-1)?.push(id);
    left -= bytes;
  }
  return parts;
}
