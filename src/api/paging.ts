/** What a caller's paging fields ask for (decisions.md, Tasks list). */
import { PER_PAGE_DEFAULT } from "../domain/limits.ts";
import type { PageRequest } from "../service/list-pages.ts";

/** `unpaged` is how many a page holds when the caller says nothing of paging at all. */
export function pageRequest(
  asked: { readonly page?: number | undefined; readonly per_page?: number | undefined },
  unpaged: number,
): PageRequest {
  if (asked.page === undefined && asked.per_page === undefined) return { page: 1, perPage: unpaged };
  return { page: asked.page ?? 1, perPage: asked.per_page ?? PER_PAGE_DEFAULT };
}
