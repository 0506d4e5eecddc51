/** Pages of lists that fit into a result: as many rows as fit, and a cursor after the last of them. */
import { MCP_RESULT_MAX_CHARS } from "../domain/limits.ts";
import type { JsonObject } from "../http/json-body.ts";
import { lengthOf } from "./result.ts";

/** `next`: the cursor of the next page; null: this is the last one. */
export type Page = { readonly rows: readonly JsonObject[]; readonly next: unknown };

/** What a result says beside its rows. */
const REST_CHARS = 1_500;

/** Asks for a page of `most` rows, or of fewer until they fit. One row always does. */
export async function pageThatFits(most: number, ask: (most: number) => Promise<Page>): Promise<Page> {
  const page = await ask(most);
  const fitting = countThatFits(page.rows);
  return fitting >= page.rows.length ? page : pageThatFits(fitting, ask);
}

/** How many of the rows fit into one result, at least one. */
export function countThatFits(rows: readonly JsonObject[]): number {
  let left = MCP_RESULT_MAX_CHARS - REST_CHARS;
  const over = rows.findIndex((row) => (left -= lengthOf(row)) < 0);
  return over === -1 ? rows.length : Math.max(over, 1);
}
