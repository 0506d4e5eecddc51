/**
 * The store on SQLite: one file, one connection, one writer.
 *
 * Transactions that are asked for in one turn of the event loop are decided in order and written in one commit
 * (WAL, synchronous=FULL), and answered after it: the price of a flush to disk is shared by all who wait for it.
 * There are no savepoints: a rejection writes nothing, and if one of a group throws, the group is rolled back, that one
 * is refused, and the others run again as a group.
 *
 * Must not: hold a transaction open across an await, or decide anything.
 */
import { Database, type Statement } from "bun:sqlite";
import type { Change } from "../domain/change.ts";
import type { Decision, Undecided } from "../domain/decision.ts";
import { GROUP_MAX, QUEUE_MAX } from "../domain/limits.ts";
import { type Group, type Job, type Outcome, type Written, answer } from "./job.ts";
import { SQLITE_MIGRATIONS } from "./migrations.ts";
import { statementOf } from "./statements.ts";
import {
  type CommitListener,
  type Diagnosis,
  type Load,
  type Param,
  type Query,
  type Row,
  type Store,
  StoreBusy,
  StoreFull,
  type Transact,
  type Turn,
} from "./store.ts";

/** The WAL of older versions could lose a commit when a checkpoint met a writer. */
const SQLITE_OLDEST = [3, 51, 3] as const;
const CACHE_KIB = 16 * 1024;
/** 16 MiB of log before it is written back: pages that change in every commit are then written back once in many. */
const CHECKPOINT_PAGES = 4_096;
const BUSY_TIMEOUT_MS = 5_000;
const BUSY_RETRY_MS = 20;

/** One transaction of a group threw while it was decided or written. */
class MemberFault extends Error {
  override readonly name = "MemberFault";
  readonly job: Job;

  constructor(job: Job, cause: unknown) {
    super("A transaction failed.", { cause });
    this.job = job;
  }
}

/**
 * Opens (and if need be makes and migrates) the database in one file.
 * @param onFault hears what a commit listener throws: what is on disk stays, and the request is answered
 */
export function openSqlite(path: string, onFault: (error: unknown) => void): SqliteStore {
  return new SqliteStore(path, onFault);
}

export class SqliteStore implements Store {
  readonly engine = "sqlite";
  readonly #db: Database;
  readonly #statements = new Map<string, Statement<Row, Param[]>>();
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #listeners: CommitListener[] = [];
  readonly #onFault: (error: unknown) => void;
  #queue: Job[] = [];
  #scheduled = false;
  #closed = false;
  #turnTaken = false;

  constructor(path: string, onFault: (error: unknown) => void) {
    this.#onFault = onFault;
    this.#db = new Database(path, { create: true, strict: true });
    try {
      this.#prepareDatabase();
    } catch (error) {
      this.#db.close(true);
      throw error;
    }
    this.#begin = this.#db.prepare("BEGIN IMMEDIATE");
    this.#commit = this.#db.prepare("COMMIT");
  }

  readonly transact: Transact = <A>(load: Load, decide: Job["decide"]): Promise<A> => {
    if (this.#closed) return Promise.reject(new StoreBusy("The store is closed."));
    if (this.#queue.length >= QUEUE_MAX) return Promise.reject(new StoreBusy("Too much work waits."));
    return new Promise<A>((resolve, reject) => {
      // The answer's type is the caller's: what goes in as decide comes out as its answer.
      this.#queue.push({ load, decide, resolve: resolve as Job["resolve"], reject });
      this.#schedule();
    });
  };

  async read<R>(query: Query<R>): Promise<R> {
    return this.#run(query);
  }

  onCommit(listener: CommitListener): void {
    this.#listeners.push(listener);
  }

  /** There is no other hub on the file. */
  async turn(): Promise<Turn> {
    if (this.#turnTaken) return "ours";
    this.#turnTaken = true;
    return "ours after a gap";
  }

  async diagnose(): Promise<Diagnosis> {
    const pragma = (name: string): Param =>
      Object.values(this.#rows(`PRAGMA ${name}`, [])[0] ?? {})[0] ?? null;
    const pages = Number(pragma("page_count"));
    const pageSize = Number(pragma("page_size"));
    return {
      engineVersion: sqliteVersion(this.#db),
      sizeBytes: pages * pageSize,
      migration: Number(pragma("user_version")),
      queued: this.#queue.length,
      details: {
        journal_mode: String(pragma("journal_mode")),
        synchronous: pragma("synchronous") === 2 ? "full" : String(pragma("synchronous")),
        page_count: pages,
        page_size: pageSize,
        free_pages: Number(pragma("freelist_count")),
      },
    };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    while (this.#queue.length > 0) this.#flush();
    this.#db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    this.#db.close(true);
  }

  #prepareDatabase(): void {
    this.#db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    refuseOldSqlite(sqliteVersion(this.#db));
    patiently(() => this.#db.run("PRAGMA journal_mode = WAL"));
    this.#db.run("PRAGMA synchronous = FULL");
    this.#db.run(`PRAGMA cache_size = -${CACHE_KIB}`);
    this.#db.run("PRAGMA temp_store = MEMORY");
    this.#db.run(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    migrate(this.#db);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // After the I/O of this turn: every request that has arrived by then shares the commit.
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  #flush(): void {
    if (this.#queue.length === 0) return;
    const group = this.#queue.length > GROUP_MAX ? this.#queue.splice(0, GROUP_MAX) : this.#queue;
    if (group === this.#queue) this.#queue = [];
    for (let left: readonly Job[] = group; left.length > 0;) {
      const faulty = this.#commitGroup(left);
      left = faulty === null ? [] : left.filter((job) => job !== faulty); // the others have not been written yet
    }
  }

  /** Commits and answers a group: null. Or, when one of it is to blame, refuses that one, writes nothing, and names it. */
  #commitGroup(group: readonly Job[]): Job | null {
    try {
      this.#publish(this.#runGroup(group));
    } catch (error) {
      if (error instanceof MemberFault) {
        error.job.reject(toStoreError(error.cause));
        return error.job;
      }
      for (const job of group) job.reject(toStoreError(error));
    }
    return null;
  }

  /**
   * Decides and writes a group in one commit; on any error nothing of it is written.
   * @throws {MemberFault} when one of the group is to blame; anything else is the fault of the disk or of the file.
   */
  #runGroup(group: readonly Job[]): Group {
    const outcomes: Outcome[] = [];
    const written: Written[] = [];
    this.#begin.run();
    try {
      for (const job of group) {
        const decision = this.#decide(job);
        outcomes.push({ job, decision });
        if (decision.kind !== "accepted" || decision.changes.length === 0) continue;
        written.push({ changes: decision.changes, eventIds: this.#write(job, decision.changes) });
      }
      this.#commit.run();
    } catch (error) {
      if (this.#db.inTransaction) this.#db.run("ROLLBACK");
      throw error;
    }
    return { outcomes, written };
  }

  #decide(job: Job): Decision<unknown> | Undecided {
    try {
      return job.decide(this.#load(job.load));
    } catch (error) {
      throw new MemberFault(job, error);
    }
  }

  /** After the commit: first the news for who waits, then the answers. */
  #publish(group: Group): void {
    for (const { changes, eventIds } of group.written) this.#notify(changes, eventIds);
    for (const outcome of group.outcomes) answer(outcome);
  }

  #load(load: Load): never {
    const rows: Record<string, unknown> = {};
    for (const name in load) {
      const query = load[name];
      if (query) rows[name] = this.#run(query);
    }
    return rows as never; // Loaded<L>: the names and shapes are those of the caller's load
  }

  /** Writes the changes of one decision and answers the ids of its events. */
  #write(job: Job, changes: readonly Change[]): readonly number[] {
    const eventIds: number[] = [];
    try {
      for (const change of changes) {
        const { sql, params } = statementOf(change);
        const { lastInsertRowid } = this.#statement(sql).run(...params);
        if (change.kind === "event.logged") eventIds.push(Number(lastInsertRowid));
      }
    } catch (error) {
      throw new MemberFault(job, error);
    }
    return eventIds;
  }

  #notify(changes: readonly Change[], eventIds: readonly number[]): void {
    for (const listener of this.#listeners) {
      try {
        listener(changes, eventIds);
      } catch (error) {
        this.#onFault(error);
      }
    }
  }

  #run<R>(query: Query<R>): R {
    return query.shape(this.#rows(query.sql, query.params));
  }

  #rows(sql: string, params: readonly Param[]): readonly Row[] {
    return this.#statement(sql).all(...params);
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
 * $1 as SQLite should see it. ?1 because SQLite numbers $1 by where it first stands in the text. And as an expression,
 * because SQLite looks at the value of a bare parameter when it plans (for a partial index, for LIMIT) and then plans
 * anew at every binding, which costs 2-4 us a statement.
 */
function toSqlite(sql: string): string {
  return sql.replaceAll(/\b(LIMIT|OFFSET) \$(\d+)/g, "$1 (?$2 + 0)").replaceAll(/\$(\d+)/g, "+?$1");
}

/** Two processes that make the same new file wait for one another: SQLite's own timeout does not cover this pragma. */
function patiently(step: () => unknown): void {
  for (let waitedMs = 0; ; waitedMs += BUSY_RETRY_MS) {
    try {
      step();
      return;
    } catch (error) {
      if (codeOf(error) !== "SQLITE_BUSY" || waitedMs >= BUSY_TIMEOUT_MS) throw error;
      Bun.sleepSync(BUSY_RETRY_MS);
    }
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

function migrate(db: Database): void {
  // Looked at inside the transaction: another process may open the same new file at the same moment.
  db.transaction(() => {
    const version = db.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version ?? 0;
    const known = SQLITE_MIGRATIONS.length;
    if (version > known) {
      throw new Error(
        `The database is of a newer luxhub (schema ${version}, this one knows ${known}). Run that one.`,
      );
    }
    for (const step of SQLITE_MIGRATIONS.slice(version)) db.run(step);
    if (version < known) db.run(`PRAGMA user_version = ${known}`);
  }).immediate();
}

function sqliteVersion(db: Database): string {
  return db.query<{ v: string }, []>("SELECT sqlite_version() AS v").get()?.v ?? "0";
}

function refuseOldSqlite(version: string): void {
  const parts = version.split(".").map(Number);
  for (const [i, oldest] of SQLITE_OLDEST.entries()) {
    const part = parts[i] ?? 0;
    if (part > oldest) return;
    if (part < oldest) {
      throw new Error(`SQLite ${version} is too old: luxhub needs ${SQLITE_OLDEST.join(".")} or later.`);
    }
  }
}

function toStoreError(error: unknown): unknown {
  const code = codeOf(error);
  if (code === "SQLITE_FULL") return new StoreFull("The disk is full.", { cause: error });
  if (code === "SQLITE_BUSY")
    return new StoreBusy("The database is locked by another process.", { cause: error });
  return error;
}
