/**
 * Bulk statements: many rows or many reads by key in one statement, and many statements in one message, because on
 * PostgreSQL a message costs more than a row. Parameters travel as one typed array for each column (unnest). The texts
 * are made from the declarations in store/sql/ and kept, so that the server plans each once.
 *
 * Must not: change the order of rows, or write one row twice in a batch, because a bulk UPDATE would drop one of the two.
 */
import { must } from "../../lib/assert.ts";
import type { WriteStatement } from "../sql/write-statement.ts";
import type { Param, ParamType, ReadByKey, Row } from "../store.ts";
import { type Connection, query } from "./connection.ts";

type Params = readonly Param[];

/** An array for each parameter, with a value for each row. The rows differ. */
export type Batch = { readonly statement: WriteStatement; readonly columns: readonly Params[] };

const BULK_MAX_CHARS = 4 * 1024 * 1024;

/** Combinations of statements that a connection sends as one; the server keeps a plan of each. Others go one by one. */
const COMBINATIONS_MAX = 64;

/** The rows of each set, in the order of the sets. */
export async function readMany(
  connection: Connection,
  read: ReadByKey,
  sets: readonly Params[],
): Promise<readonly (readonly Row[])[]> {
  const rows = await query(connection, readText(read), arraysOf(read.types, transposed(sets)));
  const found = sets.map((): Row[] => []);
  for (const row of rows) found[Number(row["set_number"]) - 1]?.push(row);
  return found;
}

/** More would hold many rows in memory at once. */
const READS_TOGETHER_MAX = 128;

/** As the requests of a batch do: one statement for those of one text. */
export class ReadsTogether {
  readonly #connection: Connection;
  /** Asked for, and not sent yet. */
  readonly #gathering = new Map<ReadByKey, { sets: Params[]; found: Promise<readonly (readonly Row[])[]> }>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async rowsOf(read: ReadByKey, params: Params): Promise<readonly Row[]> {
    let group = this.#gathering.get(read);
    if (!group || group.sets.length === READS_TOGETHER_MAX) {
      const sets: Params[] = [];
      // In a microtask: behind those who ask in this one.
      const found = Promise.resolve().then(() => {
        if (this.#gathering.get(read)?.sets === sets) this.#gathering.delete(read);
        return this.#send(read, sets);
      });
      this.#gathering.set(read, (group = { sets, found }));
    }
    const at = group.sets.push(params) - 1;
    return must((await group.found)[at], "a bulk read returns rows for each set of parameters");
  }

  async #send(read: ReadByKey, sets: readonly Params[]): Promise<readonly (readonly Row[])[]> {
    if (sets.length > 1) return readMany(this.#connection, read, sets);
    return [await query(this.#connection, read.sql, sets[0])];
  }
}

/** As one statement, as far as they fit into one. */
export function writeTogether(
  connection: Connection,
  batches: readonly Batch[],
): readonly Promise<unknown>[] {
  const fitting = batches.flatMap((batch) => {
    const arrays = batch.statement.bulk && fittingArrays(batch);
    return arrays ? [{ batch, arrays, number: numberOf(batch.statement) }] : [];
  });
  fitting.sort((a, b) => a.number - b.number);
  const text =
    fitting.length > 1
      ? combinedText(
          connection,
          fitting.map(({ batch }) => batch.statement),
        )
      : null;
  if (text === null) return batches.flatMap((batch) => writeAlone(connection, batch));
  const params = fitting.flatMap(({ arrays }) => arrays);
  const together = new Set(fitting.map(({ batch }) => batch));
  const others = batches.filter((batch) => !together.has(batch));
  return [query(connection, text, params), ...others.flatMap((batch) => writeAlone(connection, batch))];
}

/** In as many statements as its size needs. */
export function writeAlone(connection: Connection, batch: Batch): readonly Promise<unknown>[] {
  const { statement } = batch;
  const text = writeText(statement);
  if (text === null) return rowsOf(batch).map((params) => query(connection, statement.sql, params));
  const arrays = fittingArrays(batch);
  if (arrays) return [query(connection, text, arrays)];
  return sliced(rowsOf(batch)).map((slice) =>
    query(connection, text, arraysOf(statement.types, transposed(slice))),
  );
}

/** Null: it does not fit into one statement. */
function fittingArrays({ statement, columns }: Batch): readonly string[] | null {
  const arrays = arraysOf(statement.types, columns);
  const chars = arrays.reduce((sum, array) => sum + array.length, 0);
  return chars > BULK_MAX_CHARS && must(columns[0], "a long batch has a column").length > 1 ? null : arrays;
}

const READ_TEXTS = new Map<ReadByKey, string>();

function readText(read: ReadByKey): string {
  let text = READ_TEXTS.get(read);
  if (text === undefined) READ_TEXTS.set(read, (text = bulkRead(read)));
  return text;
}

/** Rows are numbered only for a read that orders them: numbering costs as much as finding a row. */
function bulkRead({ sql, types, isOrdered }: ReadByKey): string {
  let one = sql;
  for (let n = types.length; n > 0; n--) one = one.replaceAll(`$${n}`, `p.a${n}`);
  const head = `SELECT p.row_number::integer AS set_number, found.* FROM ${unnested(types, 1)} CROSS JOIN LATERAL`;
  if (!isOrdered) return `${head} (${one}) AS found`;
  return `${head} (SELECT row_number() OVER () AS place, one.* FROM (${one}) AS one) AS found ORDER BY 1, 2`;
}

/** Null: it has none. */
const WRITE_TEXTS = new Map<WriteStatement, string | null>();
/** By the numbers of the statements in it. Of each connection, because the server keeps the plans of each. */
const COMBINATIONS = new WeakMap<Connection, Map<string, string | null>>();
/** Counts the statements in the order of their first use. */
const NUMBERS = new Map<WriteStatement, number>();

function numberOf(statement: WriteStatement): number {
  let number = NUMBERS.get(statement);
  if (number === undefined) NUMBERS.set(statement, (number = NUMBERS.size));
  return number;
}

function writeText(statement: WriteStatement): string | null {
  let text = WRITE_TEXTS.get(statement);
  if (text === undefined) WRITE_TEXTS.set(statement, (text = bulkWrite([statement])));
  return text;
}

/** Null: there is no such form, or the connection has had too many combinations. */
function combinedText(connection: Connection, statements: readonly WriteStatement[]): string | null {
  let texts = COMBINATIONS.get(connection);
  if (!texts) COMBINATIONS.set(connection, (texts = new Map()));
  const key = statements.map(numberOf).join();
  let text = texts.get(key);
  if (text !== undefined) return text;
  if (texts.size >= COMBINATIONS_MAX) return null;
  texts.set(key, (text = bulkWrite(statements)));
  return text;
}

/** Of several, each is in a WITH clause, but for a SELECT, of which there is one at most. */
function bulkWrite(statements: readonly WriteStatement[]): string | null {
  let first = 1;
  let main = "SELECT 1";
  const parts: string[] = [];
  for (const { bulk, types, isSelect } of statements) {
    const text = bulk?.(unnested(types, first)) ?? null;
    if (text === null || statements.length === 1) return text;
    first += types.length;
    if (isSelect) main = text;
    else parts.push(`w${parts.length} AS (${text})`);
  }
  return `WITH ${parts.join(", ")} ${main}`;
}

/** The parameters from $first on, each an array, as the columns a1, a2, … of a table p. */
function unnested(types: readonly ParamType[], first: number): string {
  const arrays = types.map((type, i) => `$${first + i}::${type}[]`);
  const names = types.map((_, i) => `a${i + 1}`);
  return `unnest(${arrays.join(", ")}) WITH ORDINALITY AS p(${names.join(", ")}, row_number)`;
}

/** Each column as the text of an array: much cheaper than the driver's arrays. */
function arraysOf(types: readonly ParamType[], columns: readonly Params[]): readonly string[] {
  // unnest() fills up the shorter arrays with NULL, so a column of NULLs may be empty; the first one gives the length.
  return columns.map((column, i) => arrayOf(types[i] === "text", column, i > 0));
}

function arrayOf(isText: boolean, column: Params, mayBeEmpty: boolean): string {
  let nulls = 0;
  for (const value of column) if (value === null) nulls++;
  if (nulls === column.length && mayBeEmpty) return "{}";
  if (isText) return arrayOfText(column);
  return `{${(nulls === 0 ? column : column.map((value) => value ?? "NULL")).join()}}`;
}

/**
 * An array in JSON is one of PostgreSQL, but for its braces, and for escapes other than those of a quote and a
 * backslash.
 */
function arrayOfText(column: Params): string {
  const json = JSON.stringify(column);
  return `{${OTHER_ESCAPE.test(json) ? column.map(quoted).join() : json.slice(1, -1)}}`;
}

const OTHER_ESCAPE = /\\[^"\\]/;

function quoted(value: Param): string {
  return value === null ? "NULL" : `"${String(value).replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

function rowsOf({ statement, columns }: Batch): readonly Params[] {
  // Of a statement without parameters there is one row.
  return statement.types.length === 0 ? [[]] : transposed(columns);
}

function transposed(lists: readonly Params[]): readonly Params[] {
  return must(lists[0], "what is transposed has a list").map((_, i) => lists.map((list) => list[i] ?? null));
}

function sliced(rows: readonly Params[]): readonly (readonly Params[])[] {
  const slices: (readonly Params[])[] = [];
  let from = 0;
  let chars = 0;
  for (const [at, params] of rows.entries()) {
    let more = 0;
    for (const value of params) more += typeof value === "string" ? value.length : 8;
    if (at > from && chars + more > BULK_MAX_CHARS) {
      slices.push(rows.slice(from, at));
      from = at;
      chars = 0;
    }
    chars += more;
  }
  return [...slices, rows.slice(from)];
}
