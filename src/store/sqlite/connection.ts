/**
 * The prepared statements of the connection: runs queries and writes changes, in whatever transaction is open. Must not:
 * know of groups, of the cache, or of what is gathered.
 */
import type { Changes, Database, Statement } from "bun:sqlite";
import type { Change } from "../../domain/change.ts";
import { NO_ROW } from "../sql/query.ts";
import { statementsOf } from "../sql/statements.ts";
import type { Param, Query, Row } from "../store.ts";
import { rankTypes } from "./capability-index.ts";
import type { ChangeLog } from "./change-log.ts";

export class Connection {
  readonly #db: Database;
  readonly #log: Pick<ChangeLog, "note">;
  /** By text, and never dropped: so a query must bind what a caller chooses, and not write it into its text. */
  readonly #statements = new Map<string, Statement<Row, Param[]>>();

  constructor(db: Database, log: Pick<ChangeLog, "note">) {
    this.#db = db;
    this.#log = log;
  }

  /** Runs the SQL that a query has for SQLite. It may write temporary tables, but nothing to disk. */
  read<R>(query: Query<R>): R {
    const { sql, params } = query.onSqlite ?? query;
    if (sql === NO_ROW.sql) return query.shape([]);
    const rows = this.rows(sql, params);
    const otherwise = query.onSqlite?.otherwise;
    if (rows.length > 0 || !otherwise) return query.shape(rows);
    rankTypes(otherwise.ranks, (sql, params) => this.#statement(sql).run(...params).changes);
    return query.shape(this.rows(otherwise.sql, otherwise.params));
  }

  rows(sql: string, params: readonly Param[]): readonly Row[] {
    return this.#statement(sql).all(...params);
  }

  /** Returns the id of the row that it inserted. */
  write(change: Change): number {
    const { all, own } = statementsOf(change);
    let rowId = 0;
    for (const [i, statement] of all.entries()) {
      const params = statement.params(change);
      const { lastInsertRowid } = this.run(statement.sql, params);
      this.#log.note(statement.sql, params);
      if (i === own) rowId = Number(lastInsertRowid);
    }
    return rowId;
  }

  run(sql: string, params: readonly Param[]): Changes {
    return this.#statement(sql).run(...params);
  }

  #statement(sql: string): Statement<Row, Param[]> {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#db.prepare<Row, Param[]>(toSqlite(sql));
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/**
 * Rewrites the parameters $1, $2, … for SQLite. They become ?1, ?2, …, because SQLite numbers $1 by its first position in
 * the text. Each becomes an expression, because SQLite plans with the value of a bare parameter (for a partial index or
 * LIMIT) and then plans again at every binding, which costs 2-4 µs a statement. A statement has no other $, such as that of
 * a JSON path.
 */
function toSqlite(sql: string): string {
  return sql
    .replaceAll("LIMIT $", "LIMIT 0 + ?")
    .replaceAll("OFFSET $", "OFFSET 0 + ?")
    .replaceAll("$", "+?");
}
