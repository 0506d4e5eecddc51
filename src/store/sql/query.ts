/** Builds queries. Must not: know a table. */
import { must } from "../../lib/assert.ts";
import type { Param, ParamType, Query, ReadByKey, Row } from "../store.ts";
import type { ConflictKey } from "./conflict-keys.ts";

/** A read that many requests run, each with its own parameters $1, $2, …, which have the types `types`. */
export function byKey(types: readonly ParamType[], sql: string, isOrdered = false): ReadByKey {
  return { types, sql, isOrdered };
}

type Read = string | ReadByKey;
type Params = readonly Param[];
type Keys = readonly ConflictKey[];

export function query<R>(read: Read, params: Params, shape: Query<R>["shape"], reads: Keys): Query<R> {
  if (typeof read === "string") return { sql: read, params, shape, reads };
  return { sql: read.sql, byKey: read, params, shape, reads };
}

/** Finds no row: for a lookup whose key the caller left out. */
export const NO_ROW: Omit<Query<null>, "patch"> = query(`SELECT 1 AS none WHERE 1 = 0`, [], () => null, []);

/** Finds nothing: for an empty list of keys. */
export const NO_ROWS: Omit<Query<readonly never[]>, "patch"> = { ...NO_ROW, shape: () => [] };

export function one<R>(read: Read, params: Params, of: (row: Row) => R, reads: Keys): Query<R | null> {
  return query(read, params, ([row]) => (row ? of(row) : null), reads);
}

export function many<R>(read: Read, params: Params, of: (row: Row) => R, reads: Keys): Query<readonly R[]> {
  return query(read, params, (rows) => rows.map(of), reads);
}

/** Such as totals or aggregates without GROUP BY. */
export function always<R>(read: Read, params: Params, of: (row: Row) => R, reads: Keys): Query<R> {
  return query(read, params, ([row]) => of(must(row, "a query of totals has a row")), reads);
}

export function count(sql: string, params: Params, reads: Keys): Query<number> {
  return always(sql, params, ({ n }) => Number(n), reads);
}

/** Its LIMIT bounds the count. */
export function countRows(rows: string, params: Params, reads: Keys): Query<number> {
  return count(`SELECT count(*) AS n FROM (${rows}) AS counted`, params, reads);
}

/**
 * The values of an IN list, padded with the last value to the next power of two: lists of any length need only a few
 * different statements, which the engines keep prepared.
 */
export function padded<V extends Param>(values: readonly V[]): readonly V[] {
  const last = values.at(-1);
  if (last === undefined) return values;
  const length = 2 ** Math.ceil(Math.log2(values.length));
  return [...values, ...new Array<V>(length - values.length).fill(last)];
}

/** The placeholders $first, $first+1, … for a list of values; for an empty list NULL, which matches nothing. */
export function placeholders(values: readonly unknown[], first = 1): string {
  if (values.length === 0) return "NULL";
  return values.map((_, i) => `$${first + i}`).join(", ");
}

/** Returns its placeholder. */
export function bind(params: Param[], value: Param): string {
  params.push(value);
  return `$${params.length}`;
}

/** UNION ALL of several ordered ranges. Each is wrapped, so that it keeps its own ORDER BY and LIMIT. */
export function union(ranges: readonly string[]): string {
  return ranges.map((range, i) => `SELECT * FROM (${range}) AS r${i}`).join(" UNION ALL ");
}

/** Roughly. */
export type Sized = { readonly seq: number; readonly bytes: number };

/** The first of the two queries that load a list of large rows: it has the columns `seq` and `bytes`. */
export function sizes(sql: string, params: Params, reads: Keys): Query<readonly Sized[]> {
  return many(sql, params, (row) => ({ seq: Number(row["seq"]), bytes: Number(row["bytes"]) }), reads);
}

/** The second: loads rows by their numbers. `select` has a column seq and no WHERE. */
export function rowsBySeq<R>(
  select: string,
  seqs: readonly number[],
  order: string,
  of: (row: Row) => R,
  reads: Keys,
): Query<readonly R[]> {
  const filled = padded(seqs);
  return many(`${select} WHERE seq IN (${placeholders(filled)}) ORDER BY ${order}`, filled, of, reads);
}

/**
 * A page of a list: how many rows to skip (`offset`) and to return, counted from one end. The rows come newest first,
 * whichever end that is. Skipping costs time, so callers count from the nearer end.
 */
export type Slice = { readonly from: "newest" | "oldest"; readonly limit: number; readonly offset: number };

export const orderOf = ({ from }: Slice): string => `ORDER BY seq ${from === "newest" ? "DESC" : "ASC"}`;

/**
 * WHERE and ORDER BY for a slice of the rows numbered in the table `numbers`. $1 is the slice's limit, $2 its offset.
 * The second LIMIT and the DISTINCT change no result: without them PostgreSQL, which plans without the values of $1 and
 * $2, expects so many rows that it scans the table.
 */
export function pageRows(numbers: string, slice: Slice): string {
  const page = `SELECT seq FROM ${numbers} ${orderOf(slice)} LIMIT $1 OFFSET $2`;
  return `
    WHERE seq IN (SELECT DISTINCT seq FROM (${page}) AS page ORDER BY seq DESC LIMIT $1)
    ORDER BY seq DESC`;
}
