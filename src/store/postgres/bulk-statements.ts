/**
 * Many runs of one statement as one: what costs is the statement, not the row. The bulk form is made from the text of
 * the single one, so that every statement is written once (store/sql/, store/sql/statements.ts); its parameters become columns of
 * values. The types of the columns are learned from the first runs, which are sent one by one unless they are many. Writes
 * in bulk that do not build on one another are sent as one statement, too: a message and its answer cost as much as some
 * rows.
 *
 * Must not: change what a statement means, or the order of its runs. Runs that touch one row twice are the caller's to
 * keep apart: a bulk UPDATE would do one of them.
 */
import { type Connection, type Result, query } from "./connection.ts";
import type { Param, Row } from "../store.ts";

type Params = readonly Param[];

/**
 * The types that our statements take, by the number that the server has for them. All whole numbers are BIGINT: the driver
 * says INTEGER of a number that is small, and the next may be large. (Where a column is INTEGER, the server converts.)
 */
const TYPE_NAMES: Readonly<Record<number, string>> = {
  20: "bigint",
  23: "bigint",
  701: "bigint",
  25: "text",
};

/** A bulk statement carries about so much at most. */
const BULK_MAX_CHARS = 4 * 1024 * 1024;

/** Runs of a statement that are sent one by one, if they are the first, for the server to tell the types. */
const FIRST_RUNS_MAX = 16;

/** Different statements that are made of several; the server keeps a plan of each. What comes beyond goes one by one. */
const TOGETHER_MAX = 64;

/** A statement that writes, and the parameters of its runs, which touch different rows. */
export type Write = { readonly sql: string; readonly sets: readonly Params[] };

export class Statements {
  /** By text: the types of the parameters; null for one that cannot be run in bulk. */
  readonly #types = new Map<string, readonly string[] | null>();
  readonly #bulk = new Map<string, string | null>();
  readonly #bulkReads = new Map<string, string>();
  /** By the statements that it is made of: each has a number, in the order of their first runs. */
  readonly #together = new Map<string, string>();
  readonly #numbers = new Map<string, number>();

  /** Sends a read for each set of parameters; promises the rows of each, in their order. */
  async read(
    connection: Connection,
    sql: string,
    sets: readonly Params[],
  ): Promise<readonly (readonly Row[])[]> {
    const types = sets.length > 1 ? this.#types.get(sql) : undefined;
    if (!types) return this.#oneByOne(connection, sql, sets);
    let bulk = this.#bulkReads.get(sql);
    if (bulk === undefined) this.#bulkReads.set(sql, (bulk = bulkRead(sql, types)));
    const rows = await query(connection, bulk, columnsOf(types, sets));
    const found = sets.map((): Row[] => []);
    for (const row of rows) found[Number(row["batch_set"]) - 1]?.push(row);
    return found;
  }

  /** Sends a write for each set of parameters, which touch different rows. */
  async write(connection: Connection, sql: string, sets: readonly Params[]): Promise<void> {
    const types = sets.length > 1 ? this.#typesFor(sql, sets) : null;
    const bulk = types ? this.#bulkWrite(sql, types) : null;
    if (!types || bulk === null) {
      await this.#oneByOne(connection, sql, sets);
      return;
    }
    await Promise.all(sliced(sets).map((slice) => query(connection, bulk, columnsOf(types, slice))));
  }

  /** Sends writes none of which builds on another, in whatever order. */
  async writeTogether(connection: Connection, writes: readonly Write[]): Promise<void> {
    const [apart, parts] = this.#parted(writes);
    const text = parts.length > 1 ? this.#textOf(parts) : null;
    if (text === null) await Promise.all(writes.map(({ sql, sets }) => this.write(connection, sql, sets)));
    else {
      const columns = parts.flatMap((part) => columnsOf(part.types, part.sets));
      const sent = query(connection, text, columns);
      await Promise.all([sent, ...apart.map(({ sql, sets }) => this.write(connection, sql, sets))]);
    }
  }

  /** Those that have to be sent by themselves, and those that can be sent as one. */
  #parted(writes: readonly Write[]): readonly [apart: readonly Write[], parts: readonly Part[]] {
    const apart: Write[] = [];
    const parts: Part[] = [];
    for (const write of writes) {
      const types = this.#types.get(write.sql);
      const bulk = types ? this.#bulkWrite(write.sql, types) : null;
      if (types && bulk !== null && sliced(write.sets).length === 1) parts.push({ ...write, types, bulk });
      else apart.push(write);
    }
    const numberOf = ({ sql }: Part): number => this.#numbers.get(sql) ?? 0;
    return [apart, parts.toSorted((a, b) => numberOf(a) - numberOf(b))];
  }

  /** The one statement; null when there are too many different ones. */
  #textOf(parts: readonly Part[]): string | null {
    const key = parts.map(({ sql }) => this.#numbers.get(sql)).join();
    let text = this.#together.get(key);
    if (text === undefined) {
      if (this.#together.size === TOGETHER_MAX) return null;
      this.#together.set(key, (text = together(parts)));
    }
    return text;
  }

  async #oneByOne(connection: Connection, sql: string, sets: readonly Params[]): Promise<readonly Result[]> {
    const results = await Promise.all(sets.map((params) => query(connection, sql, params)));
    if (!this.#types.has(sql)) {
      this.#types.set(sql, typesOf(results[0]));
      this.#numbers.set(sql, this.#numbers.size);
    }
    return results;
  }

  /** What is known of a statement; of one that comes in numbers before it has been sent once, what its values tell. */
  #typesFor(sql: string, sets: readonly Params[]): readonly string[] | null {
    const known = this.#types.get(sql);
    return known === undefined && sets.length > FIRST_RUNS_MAX ? typesOfValues(sets) : (known ?? null);
  }

  #bulkWrite(sql: string, types: readonly string[]): string | null {
    let bulk = this.#bulk.get(sql);
    if (bulk === undefined) this.#bulk.set(sql, (bulk = bulkWrite(sql, types)));
    return bulk;
  }
}

/** A write whose bulk form is known. */
type Part = Write & { readonly types: readonly string[]; readonly bulk: string };

function typesOf(result: Result | undefined): readonly string[] | null {
  const types = (result?.statement?.types ?? []).map((type) => TYPE_NAMES[type]);
  return types.length > 0 && types.every((name) => name !== undefined) ? types : null;
}

/** As the driver declares such values; null when there is a column of which they tell nothing. */
function typesOfValues([first = [], ...others]: readonly Params[]): readonly string[] | null {
  const types: string[] = [];
  for (let i = 0; i < first.length; i++) {
    const value = first[i] ?? others.find((params) => params[i] !== null)?.[i] ?? null;
    if (value === null) return null;
    types.push(typeof value === "string" ? "text" : "bigint");
  }
  return types.length > 0 ? types : null;
}

/** The values of each parameter over all sets, each column in the words of an array: much cheaper than the driver's. */
function columnsOf(types: readonly string[], sets: readonly Params[]): readonly string[] {
  return types.map((type, i) => {
    const values = sets.map((params) => params[i] ?? null);
    if (type === "text" && !values.includes(null)) return textsOf(values);
    return `{${values.map((value) => wordOf(type, value)).join(",")}}`;
  });
}

const TO_ESCAPE = /["\\]/;

/** An array of texts, worded as a whole: NUL is in no text that is stored, and parts them meanwhile. */
function textsOf(values: Params): string {
  const texts = values.join("\0");
  if (texts.split("\0").length !== values.length) {
    return `{${values.map((value) => wordOf("text", value)).join(",")}}`;
  }
  return `{"${escaped(texts).replaceAll("\0", '","')}"}`;
}

function wordOf(type: string, value: Param): string {
  if (value === null) return "NULL";
  return type === "text" ? `"${escaped(String(value))}"` : String(value);
}

function escaped(text: string): string {
  return TO_ESCAPE.test(text) ? text.replaceAll("\\", "\\\\").replaceAll('"', '\\"') : text;
}

/** The sets as rows of a table `p` with the columns a1, a2, …; `batch_set` counts them from 1. */
function table(types: readonly string[]): string {
  const columns = types.map((type, i) => `$${i + 1}::${type}[]`);
  const names = types.map((_, i) => `a${i + 1}`);
  return `unnest(${columns.join(", ")}) WITH ORDINALITY AS p(${names.join(", ")}, batch_set)`;
}

const ofTable = (sql: string): string => sql.replaceAll(/\$(\d+)/g, "p.a$1");

function bulkRead(sql: string, types: readonly string[]): string {
  const one = ofTable(sql);
  // What has no order of its own needs none here: counting rows costs as much as finding one.
  if (!isOrdered(sql)) {
    return `
    SELECT p.batch_set::integer, found.* FROM ${table(types)} CROSS JOIN LATERAL (${one}) AS found`;
  }
  return `
    SELECT p.batch_set::integer, found.* FROM ${table(types)} CROSS JOIN LATERAL (
      SELECT row_number() OVER () AS batch_order, one.* FROM (${one}) AS one) AS found
    ORDER BY 1, 2`;
}

/** Whether a read says the order of its rows: outside all brackets. */
function isOrdered(sql: string): boolean {
  let outside = sql;
  for (let before = ""; before !== outside;) {
    before = outside;
    outside = before.replaceAll(/\([^()]*\)/g, "");
  }
  return /\bORDER BY\b/.test(outside);
}

/** The writes as one statement: each but a SELECT, of which there is one at most, as a part that is run beside it. */
function together(parts: readonly Part[]): string {
  let used = 0;
  let main = "SELECT 1";
  const beside: string[] = [];
  for (const { bulk, types } of parts) {
    const text = bulk.replaceAll(/\$(\d+)/g, (_, n: string) => `$${Number(n) + used}`);
    used += types.length;
    if (SELECT.test(text)) main = text;
    else beside.push(`w${beside.length} AS (${text})`);
  }
  return `WITH ${beside.join(", ")} ${main}`;
}

const SELECT = /^\s*SELECT [^;]+$/;
const INSERT = /^\s*(INSERT INTO [^()]+\([^()]+\))\s*VALUES\s*\(/;
const UPDATE = /^\s*(UPDATE .+?)\s(WHERE .+)$/s;
const DELETE = /^\s*(DELETE FROM \w+)\s(WHERE \w+ = \$1)\s*$/;

function bulkWrite(sql: string, types: readonly string[]): string | null {
  if (SELECT.test(sql)) return ofTable(`${sql} FROM `) + table(types);
  const update = UPDATE.exec(sql);
  if (update) return ofTable(`${update[1]} FROM `) + table(types) + ofTable(` ${update[2]}`);
  const remove = DELETE.exec(sql);
  if (remove) return `${remove[1]} USING ${table(types)}${ofTable(` ${remove[2]}`)}`;
  const insert = INSERT.exec(sql);
  if (!insert) return null;
  const start = insert[0].length;
  const end = closing(sql, start);
  const rows = `SELECT ${ofTable(sql.slice(start, end))} FROM ${table(types)} ORDER BY p.batch_set`;
  return `${insert[1]} ${rows}${ofTable(sql.slice(end + 1))}`;
}

/** Where the bracket closes that was opened before `start`. */
function closing(sql: string, start: number): number {
  let depth = 1;
  for (let at = start; at < sql.length; at++) {
    if (sql[at] === "(") depth++;
    else if (sql[at] === ")" && --depth === 0) return at;
  }
  throw new Error("a statement with a bracket that does not close");
}

function sliced(sets: readonly Params[]): readonly (readonly Params[])[] {
  const slices: (readonly Params[])[] = [];
  let from = 0;
  let chars = 0;
  for (const [at, params] of sets.entries()) {
    let more = 0;
    for (const value of params) more += typeof value === "string" ? value.length : 8;
    if (at > from && chars + more > BULK_MAX_CHARS) {
      slices.push(sets.slice(from, at));
      from = at;
      chars = 0;
    }
    chars += more;
  }
  return [...slices, sets.slice(from)];
}
