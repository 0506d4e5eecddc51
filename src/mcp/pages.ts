/** Pages of lists that fit into a result: as many rows as fit, and a cursor after the last of them. */
import { MCP_LIST_DEFAULT, MCP_LIST_MAX, MCP_RESULT_MAX_BYTES } from "../domain/limits.ts";
import type { JsonObject } from "../http/json-body.ts";
import { countOf } from "./arguments.ts";
import { type ToolResult, lengthOf } from "./result.ts";
import type { Session } from "./session.ts";
import { plural, recordsOf, sentences } from "./shapes.ts";

type List = {
  readonly path: string;
  readonly query: JsonObject;
  /** The arguments of the tool, for their `limit`. */
  readonly limit?: unknown;
  /** The field of the request that has the size of a page. */
  readonly size?: string;
  readonly name: string;
  readonly row: (record: JsonObject) => JsonObject;
  /** What the result says: of no rows, after "3 tasks", and of more rows. */
  readonly none: string;
  readonly thing: string;
  readonly about: string;
  readonly more?: string;
};

const MORE = "There are more: call again with cursor next_cursor.";

export async function listed(session: Session, list: List): Promise<ToolResult> {
  const { path, query, limit, size = "per_page", name, row, none, thing, about, more = MORE } = list;
  const { rows, next } = await pageThatFits(countOf(limit, MCP_LIST_DEFAULT, MCP_LIST_MAX), async (most) => {
    const page = await session.ask("GET", path, { ...query, [size]: String(most) });
    return { rows: recordsOf(page[name]).map(row), next: page["next_cursor"] };
  });
  const count = rows.length === 0 ? none : `${plural(rows.length, thing)}${about}`;
  return { say: sentences(count, next !== null && more), [name]: rows, next_cursor: next };
}

/** `next`: the cursor of the next page; null: this is the last one. */
type Page = { readonly rows: readonly JsonObject[]; readonly next: unknown };

/** What a result says beside its rows. */
export const REST_BYTES = 1_200;

/** Asks for a page of `most` rows, or of fewer until they fit. One row always does. */
export async function pageThatFits(most: number, ask: (most: number) => Promise<Page>): Promise<Page> {
  const page = await ask(most);
  const fitting = countThatFits(page.rows);
  return fitting >= page.rows.length ? page : pageThatFits(fitting, ask);
}

/** How many of the rows fit into one result, at least one. */
export function countThatFits(rows: readonly JsonObject[]): number {
  let roomLeft = MCP_RESULT_MAX_BYTES - REST_BYTES;
  const over = rows.findIndex((row) => (roomLeft -= lengthOf(row)) < 0);
  return over === -1 ? rows.length : Math.max(over, 1);
}
