/** Verifies the hash chain of the ledger in a SQLite database: SQL cannot, because SQLite has no SHA-256. */
import type { Database } from "bun:sqlite";
import { EMPTY_LEDGER, chainFault } from "../domain/lux.ts";
import type { LedgerHead } from "../domain/model.ts";
import { LEDGER_COLUMNS, toLedgerEntry } from "../store/sql/rows.ts";
import type { Row } from "../store/store.ts";

const PART = `SELECT ${LEDGER_COLUMNS} FROM ledger l WHERE l.seq > ? ORDER BY l.seq LIMIT 1000`;

/** Of the first entry that does not follow from the one before it; null: all do. */
export function findChainFault(db: Database, onPart: (entries: number) => void = () => {}): string | null {
  const part = db.query<Row, [number]>(PART);
  for (let head: LedgerHead = EMPTY_LEDGER; ;) {
    const rows = part.all(head.seq);
    for (const row of rows) {
      const entry = toLedgerEntry(row);
      const fault = chainFault(entry, head);
      if (fault !== null) return fault;
      head = { seq: entry.seq, hash: entry.hash };
    }
    if (rows.length === 0) return null;
    onPart(head.seq);
  }
}
