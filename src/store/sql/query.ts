/** Builds queries: their forms, lists of parameters, pages of lists. Must not: know a table. */
import type { Param, ParamType, Query, ReadByKey, Row } from "../store.ts";
import type { ConflictKey } from "./conflict-keys.ts";

/** A read that many requests run, each with its own parameters $1, $2, …: `types` are theirs. */
export function byKey(types: readonly ParamType[], sql: string, isOrdered = false): ReadByKey {
  return { types, sql, isOrdered };
}

type Read = string | ReadByKey;
type Params = readonly Param[];
/** A read set, see the port. */
type Keys = readonly ConflictKey[];

export function query<R>(read: Read, params: Params, shape: Query<R>["shape"], reads: Keys): Query<R> {
  if (typeof read === "string") return { sql: read, params, shape, reads };
  return { sql: read.sql, byKey: read, params, shape, reads };
}

/** Finds nothing: for what a caller did not name. */
export const NOTHING: Query<null> = query(`SELECT 1 AS none WHERE 1 = 0`, [], () => null, []);

export function one<R>(read: Read, params: Params, of: (row: Row) => R, reads: Keys): Query<R | null> {
  return query(read, params, ([row]) => (row ? of(row) : null), reads);
}

export function many<R>(read: Read, params: Params, of: (row: Row) => R, reads: Keys): Query<readonly R[]> {
  return query(read, params, (rows) => rows.map(of), reads);
}

/** A query that always has one row with a column `n`. */
export function count(sql: string, params: Params, reads: Keys): Query<number> {
  return query(sql, params, (rows) => Number(rows[0]?.["n"]), reads);
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
export function sizes(sql: string, params: Params, reads: Keys): Query<readonly Sized[]> {
  return many(sql, params, (row) => ({ seq: Number(row["seq"]), bytes: Number(row["bytes"]) }), reads);
}

/** The second: the rows that were measured, by their numbers. `select` has a column seq, and no WHERE yet. */
export function rowsBySeq<R>(
  select: string,
  seqs: readonly number[],
  order: string,
  of: (row: Row) => R,
  reads: Keys,
): Query<readonly R[]> {
  const filled = filledUp(seqs);
  return many(`${select} WHERE seq IN (${places(filled)}) ORDER BY ${order}`, filled, of, reads);
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
 * The second LIMIT, and DISTINCT on numbers that are distinct, are for PostgreSQL: it plans without the values of $1 and $2,
 * and would else expect so many rows that it scans the table.
 */
export function pageRows(numbers: string, slice: Slice): string {
  const page = `SELECT seq FROM ${numbers} ${orderOf(slice)} LIMIT $1 OFFSET $2`;
  return `
    WHERE seq IN (SELECT DISTINCT seq FROM (${page}) AS page ORDER BY seq DESC LIMIT $1)
    ORDER BY seq DESC`;
}
