/**
 * Fault injection for the disk: replaces the two calls that a failing disk affects (the COMMIT of
 * store/sqlite/engine.ts, the writes of blobs/disk.ts) by ones that can fail on demand. Everything else is real.
 */
import { Database, type SQLQueryBindings } from "bun:sqlite";
import type { DiskIo } from "../../src/blobs/disk.ts";
import type { Commit } from "../../src/store/sqlite/group-runner.ts";

export type CommitFault =
  | "SQLITE_FULL"
  | "SQLITE_IOERR_WRITE"
  | "SQLITE_IOERR_FSYNC"
  | "SQLITE_IOERR_SHMSIZE"
  | "SQLITE_IOERR_CORRUPTFS"
  | "SQLITE_NOMEM";

export class FailingDisk {
  /** The error of every COMMIT from now on; null: none. */
  commitFault: CommitFault | null = null;
  /** The error of every file write from now on; null: none. */
  fileFault: "ENOSPC" | "EDQUOT" | "EIO" | null = null;
  commits = 0;

  readonly commit: Commit = (commit) => {
    this.commits++;
    if (this.commitFault !== null) throw faultOf(this.commitFault);
    commit();
  };

  readonly io: DiskIo = {
    write: async (file, bytes) => {
      if (this.fileFault !== null) throw faultOf(this.fileFault);
      return (await file.write(bytes)).bytesWritten;
    },
    datasync: (file) => file.datasync(),
  };
}

/**
 * From now to the end of its `using` block, each ROLLBACK of this process fails and leaves the transaction open. That
 * happens when SQLite has no memory for the statement.
 */
export function failRollbacks(): Disposable {
  const { run } = Database.prototype;
  Database.prototype.run = function (this: Database, sql, ...bindings) {
    if (sql === "ROLLBACK") throw faultOf("SQLITE_NOMEM");
    return run.call(this, sql, ...bindings);
  };
  return { [Symbol.dispose]: () => void (Database.prototype.run = run) };
}

/**
 * The first insert into this table by a statement that is prepared within the `using` block fails, as one that finds a
 * damaged page; the next succeeds.
 */
export function failOneInsert(table: string): Disposable {
  const { prepare } = Database.prototype;
  let hasFailed = false;
  Database.prototype.prepare = function <R, P extends SQLQueryBindings | SQLQueryBindings[]>(
    this: Database,
    sql: string,
    given?: P,
  ) {
    const prepareHere = prepare.bind(this);
    const statement = prepareHere<R, P>(sql, given);
    if (!sql.startsWith(`INSERT INTO ${table} `)) return statement;
    const run = statement.run.bind(statement);
    statement.run = (...params) => {
      if (hasFailed) return run(...params);
      hasFailed = true;
      throw faultOf("SQLITE_CORRUPT");
    };
    return statement;
  };
  return { [Symbol.dispose]: () => void (Database.prototype.prepare = prepare) };
}

function faultOf(code: string): Error {
  return Object.assign(new Error(`injected ${code}`), { code });
}
