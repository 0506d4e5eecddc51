/** The reads of the LUX ledger, in the SQL that SQLite 3.35+ and PostgreSQL 15+ share. */
import type { LedgerEntry } from "../../domain/model.ts";
import type { Query } from "../store.ts";
import { rowsOf } from "./conflict-keys.ts";
import { many, one } from "./query.ts";
import { toLedgerEntry } from "./rows.ts";

// The last n of the page is $2. The walk begins at the next entry from there on that has a mark, or at the newest.
const LEDGER_PAGE = `
  WITH RECURSIVE walk AS (
    SELECT * FROM ledger WHERE entry_id = coalesce(
      (SELECT entry_id FROM ledger WHERE node_id = $1 AND n >= $2 AND n % 64 = 0 ORDER BY n LIMIT 1),
      (SELECT last_entry FROM nodes WHERE node_id = $1))
    UNION ALL
    SELECT l.* FROM walk JOIN ledger l ON l.entry_id = walk.previous WHERE walk.n > $3 AND l.n < walk.n)
  SELECT entry_id, previous, node_id, n, amount_micro, CAST(balance_micro AS TEXT) AS balance, kind, task_id, at
  FROM walk WHERE n <= $2 AND n >= $3 ORDER BY n DESC`;

/** The entries of a node with the numbers `from` to `to`, newest first. */
export function ledgerPage(nodeId: string, from: number, to: number): Query<readonly LedgerEntry[]> {
  return many(LEDGER_PAGE, [nodeId, to, from], toLedgerEntry);
}

/** The latest sign-in of the days before one: `before` is a UTC midnight. */
export function lastSigninAt(nodeId: string, before: number): Query<number | null> {
  const sql = `
    SELECT at FROM ledger WHERE node_id = $1 AND kind = 'signin' AND (at / 86400000) < $2 / 86400000
    ORDER BY (at / 86400000) DESC LIMIT 1`;
  return one(sql, [nodeId, before], (row) => Number(row["at"]), [rowsOf.ledger(nodeId)]);
}
