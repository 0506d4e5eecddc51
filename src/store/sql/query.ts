/** What queries are built from: their forms, lists of parameters, pages of lists. Must not: know a table. */
import type { Param, Query, Row } from "../store.ts";

/** Finds nothing: for what a caller did not name. */
export const NOTHING: Query<null> = { sql: `SELECT 1 AS none WHERE 1 = 0`, params: [], shape: () => null };

/** `reads` of a query: see the port. */
type Reads = readonly string[];

export function one<R>(
  sql: string,
  params: readonly Param[],
  of: (row: Row) => R,
  reads?: Reads,
): Query<R | null> {
  return { sql, params, shape: (rows) => (rows[0] ? of(rows[0]) : null), ...(reads && { reads }) };
}

export function many<R>(
  sql: string,
  params: readonly Param[],
  of: (row: Row) => R,
  reads?: Reads,
): Query<readonly R[]> {
  return { sql, params, shape: (rows) => rows.map(of), ...(reads && { reads }) };
}

/** A query that always has one row with a column `n`. */
export function count(sql: string, params: readonly Param[], reads?: Reads): Query<number> {
  return { sql, params, shape: (rows) => Number(rows[0]?.["n"]), ...(reads && { reads }) };
}

/**
 * The values of an IN list, filled up with the last of them to the next power of two: a list of any length is one of
 * few statements, so that the statements an engine keeps prepared stay few.
 */
export function filledUp<V extends Param>(values: readonly V[]): readonly V[] {
  const last = values.at(-1);
  if (last === undefined) return values;
  const length = 2 ** Math.ceil(Math.log2(values.length));
  return [...values, ...new Array<V>(length - values.length).fill(last)];
}

/** $first, $first+1, … for a list of values, in their order; for an empty one NULL, which nothing is in. */
export function places(values: readonly unknown[], first = 1): string {
  if (values.length === 0) return "NULL";
  return values.map((_, i) => `$${first + i}`).join(", ");
}

/** Appends a parameter and gives its place. */
export function bind(params: Param[], value: Param): string {
  params.push(value);
  return `$${params.length}`;
}

/** One table from several ordered ranges; each is wrapped, for ORDER BY and LIMIT to stay its own. */
export function union(ranges: readonly string[]): string {
  return ranges.map((range, i) => `SELECT * FROM (${range}) AS r${i}`).join(" UNION ALL ");
}

/** A row of a list that is not loaded yet: its number, and about how many bytes it holds. */
export type Sized = { readonly seq: number; readonly bytes: number };

/** A query with the columns `seq` and `bytes`: the first of the two that load a list whose rows may be large. */
export function sizes(sql: string, params: readonly Param[]): Query<readonly Sized[]> {
  return many(sql, params, (row) => ({ seq: Number(row["seq"]), bytes: Number(row["bytes"]) }));
}

/** The second: the rows that were measured, by their numbers. `select` has a column seq, and no WHERE yet. */
export function rowsBySeq<R>(
  select: string,
  seqs: readonly number[],
  order: string,
  of: (row: Row) => R,
): Query<readonly R[]> {
  const filled = filledUp(seqs);
  return many(`${select} WHERE seq IN (${places(filled)}) ORDER BY ${order}`, filled, of);
}

/**
 * A part of a list: how many rows to skip and how many to give, counted from one of its ends. Rows are given newest
 * first whichever end it is. What is skipped costs time: callers count from the end that is nearer.
 */
export type Slice = { readonly from: "newest" | "oldest"; readonly limit: number; readonly offset: number };

/** The order in which a slice is counted. */
export const orderOf = ({ from }: Slice): string => `ORDER BY seq ${from === "newest" ? "DESC" : "ASC"}`;

/**
 * The rows of a slice, newest first, of all whose numbers `numbers` holds. $1 is the slice's limit, $2 its offset.
 * The second LIMIT and DISTINCT, which the numbers are anyway, are for PostgreSQL: it plans without a look at $1 and $2,
 * and would expect so many rows that it walked through the table for them.
 */
export function pageRows(numbers: string, slice: Slice): string {
  const page = `SELECT seq FROM ${numbers} ${orderOf(slice)} LIMIT $1 OFFSET $2`;
  return `
    WHERE seq IN (SELECT DISTINCT seq FROM (${page}) AS page ORDER BY seq DESC LIMIT $1)
    ORDER BY seq DESC`;
}
