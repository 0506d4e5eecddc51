/** Pages of a list: what is asked, what is answered, and the arithmetic between (decisions.md, Tasks list). */
import type { Slice } from "../store/queries.ts";

/** `page` counts from 1. */
export type PageRequest = { readonly page: number; readonly perPage: number };

export type Page<T> = PageRequest & {
  readonly items: readonly T[];
  readonly total: number;
  /** How many pages there are; 0 of an empty list. */
  readonly pages: number;
};

/** Loads one page; past the end nothing is read. */
export async function pageOf<T>(
  request: PageRequest,
  total: number,
  load: (slice: Slice) => Promise<readonly T[]>,
): Promise<Page<T>> {
  const { page, perPage } = request;
  const offset = (page - 1) * perPage;
  const items = offset >= total ? [] : await load({ limit: perPage, offset });
  return { items, page, perPage, total, pages: Math.ceil(total / perPage) };
}
