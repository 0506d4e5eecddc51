/** What an error of SQLite means to the store. */
import { codeOf } from "../../lib/reason.ts";
import { StoreBusy, StoreDamaged, StoreFull } from "../store.ts";

const DAMAGE = /^SQLITE_(?:CORRUPT|NOTADB|IOERR_CORRUPTFS)/;
const DISK_FAULT = /^SQLITE_IOERR/;
/**
 * A COMMIT that failed so may be whole in the log: SQLite first writes it there, then flushes the log, then extends the
 * -shm file. If it was SQLITE_FULL, its last page is missing in the log.
 */
const LOGGED_FAULT = /^SQLITE_(?:IOERR|NOMEM)/;
/** SHMSIZE: SQLite could not extend its -shm file. */
const FULL_CODES: ReadonlySet<string> = new Set(["SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"]);

export function isDamage(error: unknown): boolean {
  return DAMAGE.test(codeOf(error));
}

/** No transaction is at fault. */
export function isDiskFault(error: unknown): boolean {
  return DISK_FAULT.test(codeOf(error));
}

export function mayBeLogged(error: unknown): boolean {
  return LOGGED_FAULT.test(codeOf(error));
}

export function toStoreError(error: unknown): unknown {
  const code = codeOf(error);
  if (DAMAGE.test(code)) return new StoreDamaged(error);
  if (FULL_CODES.has(code)) return new StoreFull("The disk is full.", { cause: error });
  if (code === "SQLITE_BUSY")
    return new StoreBusy("The database is locked by another process.", { cause: error });
  return error;
}

export function noRoom(): StoreFull {
  return new StoreFull("The disk has less free space than --min-free.");
}
