/**
 * A table, declared once: the DDL of both engines, the records that rows decode to, and the columns of statements
 * follow from it. Must not: know a table.
 */
import { assert, must } from "../../lib/assert.ts";
import type { Param, ParamType, Row } from "../store.ts";

export type Dialect = "sqlite" | "postgresql";

/** The value of a column; `as` makes the SQL expression around its placeholder. */
export type Value<C> = {
  readonly type: ParamType;
  readonly of: (change: C) => Param;
  readonly as: Expression;
};
export type Expression = (place: string, column: string) => string;

/** Values by column name; a string is an SQL expression without a value. */
export type Columns<C> = { readonly [column: string]: Value<C> | string };

type Ddl = {
  readonly type: ParamType;
  /** SQLite has TEXT and INTEGER. */
  readonly postgres: string;
  readonly isNull: boolean;
  /** What follows the type: PRIMARY KEY, NOT NULL and so on. */
  readonly constraint: Readonly<Record<Dialect, string>>;
};
/** A column that holds one field of the record: its name in camel case, unless `field` names another. */
type Column<V> = Ddl & { encode(value: V): Param; decode(stored: Param): V };
/** A column that is computed from the record, and not read back. */
type Derived<In> = Ddl & { from(record: In): Param };
type AnyColumn = (Ddl & { encode(value: never): Param; decode(stored: Param): unknown }) | Derived<never>;

const both = (constraint: string): Ddl["constraint"] => ({ sqlite: constraint, postgresql: constraint });
const notNull = { isNull: false, constraint: both(" NOT NULL") };

// The casts below are safe: the tables are STRICT, and only the rules write to them.
/** Text that nothing compares. */
export const text = <V extends string = string>(): Column<NoInfer<V>> => ({
  ...{ type: "text", postgres: "TEXT", ...notNull },
  encode: (value) => value,
  decode: (stored) => stored as V,
});
/** Text that is compared: byte by byte, on both engines. */
export const id = <V extends string = string>(): Column<NoInfer<V>> => ({
  ...text<V>(),
  postgres: 'TEXT COLLATE "C"',
});
/** A whole number of 53 bits. */
export const whole = <V extends number = number>(): Column<NoInfer<V>> => ({
  ...{ type: "bigint", postgres: "BIGINT", ...notNull },
  encode: (value) => value,
  decode: (stored) => Number(stored) as V,
});
/** A whole number of 32 bits. */
export const int = <V extends number = number>(): Column<NoInfer<V>> => ({
  ...whole<V>(),
  postgres: "INTEGER",
});
/** A sum that may be larger; a query that decodes it reads it as text. */
export const big = (): Column<bigint> => ({
  ...{ type: "bigint", postgres: "BIGINT", ...notNull },
  encode: (value) => value,
  decode: (stored) => BigInt(must(stored, "a sum is not NULL")),
});
export const flag = (): Column<boolean> => ({
  ...{ type: "bigint", postgres: "INTEGER", ...notNull },
  encode: (value) => (value ? 1 : 0),
  decode: (stored) => stored === 1,
});
/** `sound`: asserts what holds of each value. */
export const json = <V>(sound: (value: V) => V = (value) => value): Column<NoInfer<V>> => ({
  ...text(),
  encode: (value) => JSON.stringify(value),
  decode: (stored) => sound(JSON.parse(stored as string) as V),
});
/** ",a,b,", so that a search for ",a," finds a word, which has no comma; "" for none. */
export const words = (): Column<readonly string[]> => ({
  ...id(),
  encode: (list) => (list.length === 0 ? "" : `,${list.join(",")},`),
  decode: (stored) => (stored === "" ? [] : (stored as string).slice(1, -1).split(",")),
});
/** The ids of a list, in one text; NULL is none. */
export const ids = (): Column<readonly string[]> => ({
  ...maybe(text()),
  encode: (list) => (list.length === 0 ? null : list.join(",")),
  decode: (stored) => (stored === null ? [] : (stored as string).split(",")),
});

/** A number that the engine generates for each new row. */
export const rowNumber = (): Column<number> & { readonly isGenerated: true } => ({
  ...{ ...whole(), isGenerated: true },
  constraint: { sqlite: " PRIMARY KEY", postgresql: " GENERATED ALWAYS AS IDENTITY PRIMARY KEY" },
});
/** A number that is the key of the table; `check`: a condition. */
export const keyNumber = (check = ""): Column<number> => ({
  ...whole(),
  constraint: both(` PRIMARY KEY${check && ` CHECK (${check})`}`),
});
/** The key of a table of one row. */
export const theOne = (): Column<number> => ({ ...keyNumber("one = 1"), postgres: "INTEGER" });

export const maybe = <V>(of: Column<V>): Column<V | null> => ({
  ...{ ...of, isNull: true, constraint: both("") },
  encode: (value) => (value === null ? null : of.encode(value)),
  decode: (stored) => (stored === null ? null : of.decode(stored)),
});
/** The empty text is none. */
export const orBlank = (of: Column<string>): Column<string | null> => ({
  ...of,
  encode: (value) => of.encode(value ?? ""),
  decode: (stored) => (stored === "" ? null : of.decode(stored)),
});
/** NULL is the empty list. */
export const orNone = <V>(of: Column<readonly V[]>): Column<readonly V[]> => ({
  ...maybe(of),
  encode: (list) => (list.length === 0 ? null : of.encode(list)),
  decode: (stored) => (stored === null ? [] : of.decode(stored)),
});
/** A column that some statements leave out, and its value then. */
export const or = <C extends Ddl>(initial: number, of: C): C => ({
  ...of,
  constraint: both(` NOT NULL DEFAULT ${initial}`),
});
export const unique = <C extends Ddl>(of: C): C => ({ ...of, constraint: both(" NOT NULL UNIQUE") });
/** SQLite would check each such column in each write, which takes steps. */
export const unchecked = <C extends Ddl>(of: C): C => ({
  ...of,
  constraint: { sqlite: "", postgresql: " NOT NULL" },
});
/** The field is a term that few tasks have (TASK_FIELDS of domain/task/fields.ts). */
export const term = <C extends Ddl>(of: C): C & { readonly isTerm: true } => ({ ...of, isTerm: true });
/** The field has another name than the column. */
export const as = <F extends string, V>(field: F, of: Column<V>): Column<V> & { readonly field: F } => ({
  ...of,
  field,
});
export const from = <V, In>(of: Column<V>, value: (record: In) => V): Derived<In> => {
  const { type, postgres, isNull, constraint, encode } = of;
  return { type, postgres, isNull, constraint, from: (record) => encode(value(record)) };
};

type Camel<S extends string> = S extends `${infer A}_${infer B}` ? `${A}${Capitalize<Camel<B>>}` : S;
export type FieldOf<N extends string, C> = C extends { readonly field: infer F extends string }
  ? F
  : C extends { readonly decode: unknown }
    ? Camel<N>
    : never;
type ValueOf<C> = C extends { decode(stored: Param): infer V } ? V : never;
type InputOf<N extends string, C> = C extends { from(record: infer In): Param }
  ? In
  : { readonly [F in FieldOf<N, C>]: ValueOf<C> };
type Intersection<U> = (U extends unknown ? (each: U) => void : never) extends (whole: infer I) => void
  ? I
  : never;

export type Declared = { readonly [name: string]: AnyColumn };
export type NameIn<D> = keyof D & string;
export type Decoded<D, N extends NameIn<D> = NameIn<D>> = {
  readonly [Name in N as FieldOf<Name, D[Name]>]: ValueOf<D[Name]>;
};
export type Encodable<D, N extends NameIn<D>> = Intersection<{ [Name in N]: InputOf<Name, D[Name]> }[N]>;

/** The columns that a statement sets: all that the engine does not generate. */
export type Settable<D> = {
  [N in NameIn<D>]: D[N] extends { readonly isGenerated: true } ? never : N;
}[NameIn<D>];

type Options = {
  /** Absent: the first column says PRIMARY KEY itself. */
  readonly key?: readonly string[];
  /** On SQLite: a row is found by its number, because it is long or its key says nothing about its age. */
  readonly hasRowId?: true;
  readonly checks?: readonly string[];
  /** By name: the columns in parentheses, and the condition. What is in square brackets is only for PostgreSQL. */
  readonly indexes?: Readonly<Record<string, string>>;
  /** Further indexes of one engine. */
  readonly indexesOf?: Partial<Readonly<Record<Dialect, Readonly<Record<string, string>>>>>;
};

export type Table<Name extends string = string, D extends Declared = Declared> = {
  readonly name: Name;
  readonly columns: D;
  readonly key: readonly string[];
  readonly options: Options;
  /** The columns of a statement: each gets its value from the record that `of` finds in a change. */
  set<C, const N extends NameIn<D>>(of: (change: C) => Encodable<D, N>, ...names: readonly N[]): Columns<C>;
  /** Decodes these columns; without names all but those that the engine generates. */
  reader<const N extends NameIn<D> = Settable<D>>(...names: readonly N[]): Reader<Decoded<D, N>>;
};

const NAME = /^[a-z][a-z0-9_]*$/;
const IS_DECLARED = "the column is declared";

/** The field of the record that a column holds. */
export const fieldOf = (name: string, column: object): string =>
  "field" in column
    ? String(column.field)
    : name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

export function table<const Name extends string, const D extends Declared>(
  name: Name,
  columns: D,
  options: Options = {},
): Table<Name, D> {
  const names = Object.keys(columns);
  assert(
    names.every((each) => NAME.test(each)),
    "a column is a plain name",
  );
  return {
    ...{ name, columns, options, key: options.key ?? names.slice(0, 1) },
    set: (of, ...chosen) => valuesOf(columns, chosen, of),
    reader: (...chosen) => reader(columns, chosen.length > 0 ? chosen : readableIn(columns)),
  };
}

const readableIn = (columns: Declared): never[] =>
  Object.keys(columns).filter((name) => {
    const column = must(columns[name], IS_DECLARED);
    return "decode" in column && !("isGenerated" in column);
  }) as never[]; // the default of reader()

/** The values of columns, from a record that a change has, and that has their fields. */
export function valuesOf<C>(
  columns: Declared,
  names: readonly string[],
  of: (change: C) => unknown,
): Columns<C> {
  return Object.fromEntries(names.map((name) => [name, valueOf(name, must(columns[name], IS_DECLARED), of)]));
}

function valueOf<C>(name: string, column: AnyColumn, of: (change: C) => unknown): Value<C> {
  const { type } = column;
  const as = (place: string): string => place;
  if ("from" in column) return { type, as, of: (change) => column.from(of(change) as never) };
  const field = fieldOf(name, column);
  return { type, as, of: (change) => column.encode((of(change) as Record<string, never>)[field] as never) };
}

export type Reader<R> = ((row: Row) => R) & {
  /** The columns that it reads, for a SELECT. */
  readonly list: string;
  to<T>(of: (record: R) => T): Reader<T>;
};

function readerOf<R>(list: string, decode: (row: Row) => R): Reader<R> {
  return Object.assign((row: Row) => decode(row), {
    list,
    to: <T>(of: (record: R) => T) => readerOf(list, (row) => of(decode(row))),
  });
}

const NAMED = "a row has every column that it is decoded from";

/** The value of a column that a query must name and that is not NULL. */
function stored(value: Param | undefined): Param {
  return must(value, NAMED);
}

/** The value of a column that a query must name. */
function storedOrNull(value: Param | undefined): Param {
  assert(value !== undefined, NAMED);
  return value;
}

/**
 * Decodes some columns of a row, and computes more fields from it. The code is made at the first row: a loop over the
 * columns of a task takes 1.1 us, its code 0.2 us.
 */
export function reader<
  D extends Declared,
  const N extends NameIn<D>,
  X extends object = Record<never, never>,
>(
  columns: D,
  names: readonly N[],
  computed: { readonly [F in keyof X]: (row: Row) => X[F] } | null = null,
): Reader<Decoded<D, N> & NoInfer<X>> {
  const made = Object.entries<(row: Row) => unknown>(computed ?? {});
  type Decode = (row: Row) => Decoded<D, N> & X;
  const declared: Declared = columns;
  const compile = (): Decode => {
    const decoders = names.map((name) => {
      const column = must(declared[name], IS_DECLARED);
      assert("decode" in column, "a derived column is not read back");
      return { name, field: fieldOf(name, column), decode: column.decode, read: column.isNull ? "n" : "s" };
    });
    const fields = decoders.map(({ name, field, read }, i) => `${field}: d[${i}](${read}(row.${name}))`);
    const more = made.map(([field], i) => `${field}: c[${i}](row)`);
    const make = new Function("d", "c", "s", "n", `return (row) => ({ ${[...fields, ...more].join(", ")} })`);
    const decode: unknown = make(
      ...[decoders.map(({ decode }) => decode), made.map(([, compute]) => compute), stored, storedOrNull],
    );
    return decode as Decode; // made above from the columns that its type is made from
  };
  let decode: Decode | null = null;
  return readerOf(names.join(", "), (row) => (decode ??= compile())(row));
}

export function ddlOf({ name, columns, key, options }: Table, dialect: Dialect): readonly string[] {
  const isSqlite = dialect === "sqlite";
  const lines = Object.entries(columns).map(([column, { type, postgres, constraint }]) => {
    const sqlite = type === "text" ? "TEXT" : "INTEGER";
    return `${column} ${isSqlite ? sqlite : postgres}${constraint[dialect]}`;
  });
  if (options.key) lines.push(`PRIMARY KEY (${key.join(", ")})`);
  for (const check of options.checks ?? []) lines.push(`CHECK (${check})`);
  const kind = options.key && !options.hasRowId ? " STRICT, WITHOUT ROWID" : " STRICT";
  const indexes = Object.entries({ ...options.indexes, ...options.indexesOf?.[dialect] });
  return [
    `CREATE TABLE ${name} (\n  ${lines.join(",\n  ")}\n)${isSqlite ? kind : ""}`,
    ...indexes.map(([index, on]) => {
      const [, isUnique, place] = must(/^(UNIQUE )?(\(.*)$/s.exec(on), "an index has columns");
      const where = must(place, "an index has columns").replaceAll(/\[(.*?)\]/g, isSqlite ? "" : "$1");
      return `CREATE ${isUnique ?? ""}INDEX ${index} ON ${name} ${where}`;
    }),
  ];
}
