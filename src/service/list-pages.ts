/**
 * Paging of lists whose rows may be large. A query of sizes finds which rows are on the page and how large they are. Then
 * the rows are loaded in parts of LIST_PART_MAX_BYTES, each when the caller has read the part before it.
 *
 * The sizes and the first part are from one snapshot. A row that is deleted before its part is loaded is left out.
 */
import { LIST_NEAR_ROWS, LIST_PART_MAX_BYTES } from "../domain/limits.ts";
import type { Sized, Slice } from "../store/sql/query.ts";
import type { Query, Read, Store } from "../store/store.ts";
import { Scans } from "./scan.ts";

/** Null at the end. */
export type NextPart<T> = () => Promise<readonly T[] | null>;

/**
 * `next` null: there are no further parts. It has no toJSON(), with which JSON.stringify would take twice as long for
 * the whole answer.
 */
export class Rows<T> {
  readonly first: readonly T[];
  readonly next: NextPart<T> | null;

  constructor(first: readonly T[], next: NextPart<T> | null = null) {
    this.first = first;
    this.next = next;
  }

  map<U>(of: (row: T) => U): Rows<U> {
    const { next } = this;
    return new Rows(this.first.map(of), next && (async () => (await next())?.map(of) ?? null));
  }
}

type RowsBySeq<T> = (seqs: readonly number[]) => Query<readonly T[]>;

/** `readLater` loads the other rows. */
export async function loadRows<T>(
  sizes: readonly Sized[],
  rowsBySeq: RowsBySeq<T>,
  read: Read,
  readLater: Read = read,
): Promise<Rows<T>> {
  const [first, ...later] = partsOf(sizes);
  if (!first) return new Rows([]);
  const rows = await read(rowsBySeq(first));
  if (later.length === 0) return new Rows(rows);
  return new Rows(rows, async () => {
    const seqs = later.shift();
    return seqs ? readLater(rowsBySeq(seqs)) : null;
  });
}

/** Of at least one row. */
function partsOf(sizes: readonly Sized[]): readonly (readonly number[])[] {
  const parts: number[][] = [];
  let left = 0;
  for (const { seq, bytes } of sizes) {
    if (parts.length === 0 || bytes > left) {
      parts.push([]);
      left = LIST_PART_MAX_BYTES;
    }
    parts.at(-1)?.push(seq);
    left -= bytes;
  }
  return parts;
}

/** Up to the one that reaches `maxBytes`. */
export function upToBytes(sizes: readonly Sized[], maxBytes: number): readonly Sized[] {
  let sum = 0;
  const end = sizes.findIndex(({ bytes }) => (sum += bytes) >= maxBytes);
  return end === -1 ? sizes : sizes.slice(0, end + 1);
}

/** `before` is the number of the row above it. */
export type Position = { readonly before: number };

export const START: Position = { before: Number.MAX_SAFE_INTEGER };

/** `page` and `total` are null if they were not counted, `next` at the end of the list. */
export type CursorPage<T> = {
  readonly rows: Rows<T>;
  readonly page: number | null;
  readonly perPage: number;
  readonly total: number | null;
  readonly next: Position | null;
};

/** `page` counts from 1. */
export type PageRequest = { readonly page: number; readonly perPage: number };

/** `pages`: 0 for an empty list. `lastSeq` null: not known. */
export type Page<T> = PageRequest & {
  readonly rows: Rows<T>;
  readonly total: number;
  readonly pages: number;
  readonly lastSeq: number | null;
};

export type PageSource<T> = {
  readonly total: number;
  readonly sizes: (slice: Slice) => Query<readonly Sized[]>;
  readonly rowsBySeq: RowsBySeq<T>;
};

export function pageOf<T>(
  request: PageRequest,
  total: number,
  rows: Rows<T>,
  lastSeq: number | null = null,
): Page<T> {
  return { ...request, total, pages: Math.ceil(total / request.perPage), rows, lastSeq };
}

/** The list is loaded whole, because it is small. */
export function pageOfAll<T>(request: PageRequest, all: readonly T[]): Page<T> {
  const from = (request.page - 1) * request.perPage;
  return pageOf(request, all.length, new Rows(all.slice(from, from + request.perPage)));
}

export class ListPages {
  readonly #store: Store;
  /** SQLite blocks the event loop while it skips rows, so far pages are loaded one per tick. */
  readonly #farPages = new Scans();

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Or the first part of it.
   * @param list null: there is no such list
   * @throws {PagesBusy}
   */
  async load<T>(request: PageRequest, list: (read: Read) => Promise<PageSource<T> | null>): Promise<Page<T>> {
    const offset = (request.page - 1) * request.perPage;
    if (offset > LIST_NEAR_ROWS) await this.#farPages.turn();
    return this.#store.readTogether(async (read) => {
      const source = await list(read);
      const total = source?.total ?? 0;
      if (!source || offset >= total) return pageOf(request, total, new Rows<T>([]));
      const sizes = await read(source.sizes(nearerSlice(offset, request.perPage, total)));
      const readLater: Read = (query) => this.#store.read(query);
      const rows = await loadRows(sizes, source.rowsBySeq, read, readLater);
      return pageOf(request, total, rows, sizes.at(-1)?.seq);
    });
  }
}

/** From the end of the list from which it skips fewer rows. */
function nearerSlice(offset: number, limit: number, total: number): Slice {
  const older = Math.max(total - offset - limit, 0);
  if (offset <= older) return { from: "newest", limit, offset };
  return { from: "oldest", limit: Math.min(limit, total - offset), offset: older };
}
