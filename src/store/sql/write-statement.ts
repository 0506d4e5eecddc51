/**
 * Builds write statements from data: a table, its columns, and for each column the type of its value, a function that
 * gets the value from a change, and the SQL expression. From this it makes the SQL for one row (SQLite) and for many rows
 * (PostgreSQL) when the program starts. Which change is written how stands in statements.ts. Must not: know a change of
 * the domain.
 */
import { must } from "../../lib/assert.ts";
import type { Param, ParamType } from "../store.ts";
import { PARTS_OF_TASKS, type Table as ConflictTable } from "./conflict-keys.ts";
import {
  type Columns,
  type Declared,
  type Encodable,
  type Expression,
  type NameIn,
  type Settable,
  type Table,
  type Value,
  valuesOf,
} from "./table.ts";
import type { TableName } from "./tables.ts";

export type WriteStatement = {
  /** For one row: the parameters are $1, $2, … */
  readonly sql: string;
  readonly types: readonly ParamType[];
  /**
   * For many rows, all different: `rows` is a table expression named p, with a column a1, a2, … for each parameter, and
   * `row_number`. null: the statement names no row, and is never batched.
   */
  readonly bulk: ((rows: string) => string) | null;
  /** A SELECT that is run for its effect: it cannot be part of a WITH clause. */
  readonly isSelect?: true;
};

export type Statement<C, T extends ConflictTable = ConflictTable> = WriteStatement & {
  readonly table: T;
  params(change: C): readonly Param[];
  /** Appends the parameters of one more row to `columns`, which has an array for each parameter. */
  addRow(columns: readonly Param[][], change: C): void;
};

export function text<C>(of: (change: C) => string | null, as: Expression = itself): Value<C> {
  return { type: "text", of, as };
}

export function whole<C>(of: (change: C) => number | bigint | null, as: Expression = itself): Value<C> {
  return { type: "bigint", of, as };
}

export function flag<C>(of: (change: C) => boolean): Value<C> {
  return whole((change) => Number(of(change)));
}

const itself: Expression = (place) => place;
export const added: Expression = (place, column) => `${column} + ${place}`;

export const adding = <C>(columns: Columns<C>): Columns<C> =>
  Object.fromEntries(
    Object.entries(columns).map(([name, value]) => [
      name,
      typeof value === "string" ? value : { ...value, as: added },
    ]),
  );

type WhoseRows<N extends TableName> = N extends (typeof PARTS_OF_TASKS)[number] ? "tasks" : N;
const whoseRows = <N extends TableName>(table: N): WhoseRows<N> =>
  (PARTS_OF_TASKS.some((part) => part === table) ? "tasks" : table) as WhoseRows<N>; // as its type says

export function insert<C, N extends TableName>(
  table: N,
  columns: Columns<C>,
  onConflict = "",
): Statement<C, WhoseRows<N>> {
  const into = `INSERT INTO ${table} (${Object.keys(columns).join(", ")})`;
  return statement(table, [columns], ([cells = []], rows) => {
    const values = cells.map(({ expression }) => expression).join(", ");
    const source =
      rows === null ? `VALUES (${values})` : `SELECT ${values} FROM ${rows} ORDER BY p.row_number`;
    return `${into} ${source}${onConflict}`;
  });
}

/** Only a new row gets `initial`. */
export function upsert<C, N extends TableName>(
  table: N,
  key: Columns<NoInfer<C>>,
  columns: Columns<C>,
  initial: Columns<C> = {},
): Statement<C, WhoseRows<N>> {
  const set = Object.keys(columns).map((column) => `${column} = excluded.${column}`);
  const onConflict = ` ON CONFLICT (${Object.keys(key).join(", ")}) DO UPDATE SET ${set.join(", ")}`;
  return insert(table, { ...key, ...columns, ...initial }, onConflict);
}

export function update<C, N extends TableName>(
  table: N,
  key: Columns<NoInfer<C>>,
  columns: Columns<C>,
): Statement<C, WhoseRows<N>> {
  return statement(table, [key, columns], ([keys = [], cells = []], rows) => {
    const set = cells.map(equals).join(", ");
    return `UPDATE ${table} SET ${set}${rows === null ? "" : ` FROM ${rows}`} WHERE ${keys.map(equals).join(" AND ")}`;
  });
}

export function remove<C, N extends TableName>(table: N, key: Columns<C>): Statement<C, WhoseRows<N>> {
  return statement(table, [key], ([keys = []], rows) => {
    const using = rows === null ? "" : ` USING ${rows}`;
    return `DELETE FROM ${table}${using} WHERE ${keys.map(equals).join(" AND ")}`;
  });
}

const settable = ({ columns }: { readonly columns: Declared }, without: readonly string[] = []): string[] =>
  Object.keys(columns).filter(
    (name) => !without.includes(name) && !("isGenerated" in must(columns[name], "it is")),
  );

export function add<C, N extends TableName, D extends Declared>(
  table: Table<N, D>,
  of: (change: C) => Encodable<D, Settable<D>>,
  onConflict = "",
): Statement<C, WhoseRows<N>> {
  return insert(table.name, valuesOf(table.columns, settable(table), of), onConflict);
}

/** What is set only `once` stays. */
export function save<C, N extends TableName, D extends Declared>(
  table: Table<N, D>,
  of: (change: C) => Encodable<D, Settable<D>>,
  once: readonly NameIn<D>[] = [],
): Statement<C, WhoseRows<N>> {
  const values = (names: readonly string[]): Columns<C> => valuesOf(table.columns, names, of);
  const replaced = settable(table, [...table.key, ...once]);
  return upsert(table.name, values(table.key), values(replaced), values(once));
}

/** Adds what a row counts to the row that has its key. */
export function tally<C, N extends TableName, D extends Declared>(
  table: Table<N, D>,
  of: (change: C) => Encodable<D, Settable<D>>,
): Statement<C, WhoseRows<N>> {
  const sums = settable(table, table.key).map(
    (column) => `${column} = ${table.name}.${column} + excluded.${column}`,
  );
  return add(table, of, ` ON CONFLICT (${table.key.join(", ")}) DO UPDATE SET ${sums.join(", ")}`);
}

/** Unless it is there. */
export function mark<C, N extends TableName, D extends Declared>(
  table: Table<N, D>,
  of: (change: C) => Encodable<D, Settable<D>>,
): Statement<C, WhoseRows<N>> {
  return add(table, of, ` ON CONFLICT (${table.key.join(", ")}) DO NOTHING`);
}

/** With the values that the change has in these fields. */
export function drop<N extends TableName, D extends Declared, const K extends NameIn<D>>(
  table: Table<N, D>,
  names: readonly K[],
): Statement<Encodable<D, K>, WhoseRows<N>> {
  return remove(
    table.name,
    table.set((change: Encodable<D, K>) => change, ...names),
  );
}

/** Its parameters are $1, $2, … in the order of `values`. */
export function customStatement<C, N extends TableName>(
  table: N,
  sql: string,
  values: readonly Value<C>[],
): Statement<C, WhoseRows<N>> {
  return { ...parametersOf(values), table: whoseRows(table), sql, bulk: null };
}

type Cell = { readonly column: string; readonly expression: string };

const equals = ({ column, expression }: Cell): string => `${column} = ${expression}`;

/** `textOf` makes the SQL from the cells of each group of columns; `rows` is null when the values are parameters. */
function statement<C, N extends TableName>(
  table: N,
  groups: readonly Columns<C>[],
  textOf: (groups: readonly (readonly Cell[])[], rows: string | null) => string,
): Statement<C, WhoseRows<N>> {
  const cells = (place: string): readonly (readonly Cell[])[] => {
    let n = 0;
    const cell = ([column, value]: [string, Value<C> | string]): Cell => ({
      column,
      expression: typeof value === "string" ? value : value.as(`${place}${++n}`, column),
    });
    return groups.map((group) => Object.entries(group).map(cell));
  };
  const values = groups.flatMap((group) => Object.values(group)).filter((value) => typeof value !== "string");
  const sql = textOf(cells("$"), null);
  return {
    ...parametersOf(values),
    table: whoseRows(table),
    sql,
    bulk: (rows) => textOf(cells("p.a"), rows),
  };
}

function parametersOf<C>(values: readonly Value<C>[]): Pick<Statement<C>, "types" | "params" | "addRow"> {
  const sources = values.map(({ of }) => of);
  return {
    types: values.map(({ type }) => type),
    params: (change) => sources.map((of) => of(change)),
    addRow(columns, change) {
      for (const [i, of] of sources.entries())
        must(columns[i], "a batch has a column for each parameter").push(of(change));
    },
  };
}
