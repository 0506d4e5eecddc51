/** The reads of the LUX ledger, in the SQL that SQLite 3.35+ and PostgreSQL 15+ share. */
import type { LedgerEntry } from "../../domain/model.ts";
import type { Query } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { byKey, many, one } from "./query.ts";
import { toLedgerEntry } from "./rows.ts";

const LEDGER_PAGE = `
  SELECT entry_id, node_id, n, amount_micro, CAST(balance_micro AS TEXT) AS balance, kind, task_id, at
  FROM ledger WHERE node_id = $1 AND n >= $2 AND n <= $3 ORDER BY n DESC`;

/** The entries of a node numbered `from` to `to` (inclusive), newest first. */
export function ledgerPage(nodeId: string, from: number, to: number): Query<readonly LedgerEntry[]> {
  return many(LEDGER_PAGE, [nodeId, from, to], toLedgerEntry, [keyOf.ledger(nodeId)]);
}

const LAST_SIGNIN = byKey(
  ["text", "bigint"],
  `SELECT at FROM ledger WHERE node_id = $1 AND kind = 'signin' AND (at / 86400000) < $2 / 86400000
    ORDER BY (at / 86400000) DESC LIMIT 1`,
);

/** When the node last signed in on a day before `before`, which is a UTC midnight. */
export function lastSigninAt(nodeId: string, before: number): Query<number | null> {
  return one(LAST_SIGNIN, [nodeId, before], (row) => Number(row["at"]), [keyOf.ledger(nodeId)]);
}
