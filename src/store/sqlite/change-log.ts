/**
 * The change log. While it is kept, each group commit also writes an entry, one row of `changes`, in the same commit: the
 * statements that it ran, with their parameters. On a copy of the database that stands at the entry before, the same
 * statements make the same rows: none uses a clock or a random number, and none depends on an order that it does not name.
 * So a copy follows its original entry by entry, and an archive of the entries restores any moment.
 *
 * Invariant: entries are numbered without a gap; the log is kept while `changes` has a row, for whoever writes.
 */
import type { Database, Statement } from "bun:sqlite";
import { EVENT_IDS_RAISED_BY } from "../../domain/limits.ts";
import { must } from "../../lib/assert.ts";
import { isoTime, machineClock } from "../../lib/clock.ts";
import type { Written } from "../pending-transaction.ts";
import { runStep } from "./schema-version.ts";
import { type Entry, EntryMissing, type Param, type Standing } from "../store.ts";

/** A parameter in JSON: a bigint is its decimal text in an array. */
type JsonParam = string | number | null | readonly [string];

type Body = {
  /** Statements that no entry before has run: their number, and their text. */
  readonly texts?: readonly (readonly [number, string])[] | undefined;
  /** The number of a statement, and its parameters. */
  readonly writes?: readonly (readonly [number, readonly JsonParam[]])[] | undefined;
  /** A migration: several statements without parameters, and the number of the schema that they make. */
  readonly script?: { readonly sql: string; readonly schema: number };
  /** Whose bytes a copy needs before it has their records. */
  readonly files?: readonly string[];
  /** The tasks that have new output, of which no event tells. */
  readonly outputs?: readonly string[];
};

/** A row of `changes`. */
type Stored = Omit<Entry, "body"> & { readonly body: Uint8Array };

/** What a copy does beside running the statements of an entry. */
export const alsoIn = ({ body }: Entry): Pick<Body, "files" | "outputs" | "script"> =>
  JSON.parse(body) as Body;

/** Only on SQLite: PostgreSQL has its own replication. */
export const CHANGE_TABLES = `
  CREATE TABLE changes (n INTEGER PRIMARY KEY, at INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
  CREATE TABLE change_texts (id INTEGER PRIMARY KEY, sql TEXT NOT NULL UNIQUE) STRICT;`;
export const STANDING_TABLE = `
  CREATE TABLE standing (one INTEGER PRIMARY KEY CHECK (one = 1), term INTEGER NOT NULL) STRICT;
  INSERT INTO standing VALUES (1, 1);`;

const ADD_ENTRY = "INSERT INTO changes VALUES (?, ?, ?)";
const ADD_TEXT = "INSERT INTO change_texts VALUES (?, ?)";
const LAST = "SELECT max(n) AS n FROM changes";
const STANDING = `SELECT term, n, at FROM standing
  LEFT JOIN (SELECT n, at FROM changes ORDER BY n DESC LIMIT 1) ON true`;
const RAISE_TERM = "UPDATE standing SET term = term + 1";
/** Nothing can have been handed out so often since a backup, or since the last entry of a copy. */
export const EPOCHS_RAISED_BY = 1_000_000;
/** What a running attempt has in them belongs to its lease, whose holder goes on with the raised epoch. */
const OF_LEASES = ["usage_reports", "outputs", "output_blocks", "questions"];
const HELD = "(task_id, epoch) IN (SELECT task_id, epoch FROM tasks WHERE status = 'assigned')";
const NOTE_PROMOTION = `
  INSERT INTO events (id, at, kind, node_id, task_id, data, verified, kept_bytes, kept_by)
  SELECT coalesce(max(id), 0) + ${EVENT_IDS_RAISED_BY}, ?, 'hub.promoted', NULL, NULL,
    json_object('term', (SELECT term FROM standing)), 0, 0, NULL
  FROM events`;
const RAISES: readonly (readonly [table: string, sql: string])[] = [
  ...OF_LEASES.map(
    (table) => [table, `UPDATE ${table} SET epoch = epoch + ${EPOCHS_RAISED_BY} WHERE ${HELD}`] as const,
  ),
  ["tasks", `UPDATE tasks SET epoch = epoch + ${EPOCHS_RAISED_BY}`],
  ["fencing", `UPDATE fencing SET last = last + ${EPOCHS_RAISED_BY}`],
];

/** Compressed, a body of 64 task cycles has a fifth of its bytes: writing the others takes five times as long as this. */
const pack = (body: string): Uint8Array => Bun.zstdCompressSync(body, { level: 1 });
export const unpack = (stored: Uint8Array): string => Buffer.from(Bun.zstdDecompressSync(stored)).toString();

export class ChangeLog {
  readonly #db: Database;
  readonly #last: Statement<{ n: number | null }, []>;
  readonly #addEntry: Statement;
  /** The number of the last entry; null while the log is not kept; undefined: another process may have written. */
  #at: number | null | undefined = undefined;
  /** By text. */
  #ids: Map<string, number> | null = null;
  #texts: [number, string][] = [];
  #writes: (readonly [number, readonly JsonParam[]])[] = [];

  constructor(db: Database) {
    this.#db = db;
    this.#last = db.prepare(LAST);
    this.#addEntry = db.prepare(ADD_ENTRY);
  }

  /** The number of the last entry; null while the log is not kept. */
  get last(): number | null {
    return this.#at === undefined ? (this.#at = this.#last.get()?.n ?? null) : this.#at;
  }

  /** Another process may have written. */
  forget(): void {
    this.clear();
    this.#at = undefined;
    this.#ids = null;
  }

  /** Notes a statement that this group has run. */
  note(sql: string, params: readonly Param[]): void {
    if (this.last === null) return;
    this.#writes.push([this.#idOf(sql), inJson(params)]);
  }

  /** Writes the entry of the group, before its commit. Returns its number; null when nothing is noted. */
  write(written: readonly Pick<Written, "changes">[]): number | null {
    if (this.#writes.length === 0) return null;
    const n = must(this.last, "what is noted is written while the log is kept") + 1;
    const files: string[] = [];
    const outputs = new Set<string>();
    for (const { changes } of written)
      for (const change of changes)
        if (change.kind === "file.saved") files.push(change.file.fileId);
        else if (change.kind === "output.appended") outputs.add(change.taskId);
    const body: Body = {
      ...(this.#texts.length > 0 && { texts: this.#texts }),
      writes: this.#writes,
      ...(files.length > 0 && { files }),
      ...(outputs.size > 0 && { outputs: [...outputs] }),
    };
    const text = JSON.stringify(body);
    for (const pair of this.#texts) this.#db.query(ADD_TEXT).run(...pair);
    this.#addEntry.run(n, machineClock.now(), pack(text));
    this.#at = n;
    this.#texts = [];
    this.#writes = [];
    return n;
  }

  /** After a group that was not committed. */
  clear(): void {
    if (this.#texts.length > 0) this.#ids = null;
    this.#at = undefined;
    this.#texts = [];
    this.#writes = [];
  }

  #idOf(sql: string): number {
    this.#ids ??= new Map(
      this.#db
        .query<{ id: number; sql: string }, []>("SELECT id, sql FROM change_texts")
        .all()
        .map(({ id, sql }) => [sql, id]),
    );
    const known = this.#ids.get(sql);
    if (known !== undefined) return known;
    const id = this.#ids.size + 1;
    this.#ids.set(sql, id);
    this.#texts.push([id, sql]);
    return id;
  }
}

type Plain = Exclude<Param, bigint>;
const arePlain = (params: readonly Param[]): params is readonly Plain[] =>
  params.every((param) => typeof param !== "bigint");

/** Most statements have no bigint: then there is nothing to copy. */
const inJson = (params: readonly Param[]): readonly JsonParam[] =>
  arePlain(params) ? params : params.map((param) => (typeof param === "bigint" ? [String(param)] : param));

const fromJson = (param: JsonParam): Param =>
  typeof param === "object" && param !== null ? BigInt(param[0]) : param;

/**
 * Keeps the log from now on, or no longer. The first entry is empty. Its number is the time, so that an archive tells the
 * entries of this log from those of an earlier one.
 */
export function keepChanges(db: Database, isKept: boolean, first = machineClock.now()): void {
  db.transaction(() => {
    const { n } = standingOf(db);
    if (isKept === (n !== null)) return;
    if (isKept) db.query(ADD_ENTRY).run(first, machineClock.now(), pack("{}"));
    else db.run("DELETE FROM changes");
  }).immediate();
}

export function standingOf(db: Database): Standing {
  return must(db.query<Standing, []>(STANDING).get(), "every database has a standing");
}

const HAS_LOG = "SELECT 1 FROM sqlite_schema WHERE name = 'changes'";

/** Of a database of any published version; null: it keeps no log. */
export function lastEntryOf(db: Database): Entry | null {
  if (db.query(HAS_LOG).get() === null) return null;
  const sql = "SELECT n, at, body FROM changes ORDER BY n DESC LIMIT 1";
  return unpacked(db.query<Stored, []>(sql).get());
}

export function entryAt(db: Database, n: number): Entry | null {
  return unpacked(db.query<Stored, [number]>("SELECT n, at, body FROM changes WHERE n = ?").get(n));
}

const unpacked = (row: Stored | null): Entry | null => row && { ...row, body: unpack(row.body) };

/** Notes a migration in the log, in its transaction. */
export function noteScript(db: Database, sql: string, schema: number): void {
  const last = lastEntryOf(db);
  const body: Body = { script: { sql, schema } };
  if (last !== null) db.query(ADD_ENTRY).run(last.n + 1, machineClock.now(), pack(JSON.stringify(body)));
}

/** @throws {EntryMissing} */
export function entriesAfter(
  db: Database,
  { n, at }: Pick<Entry, "n" | "at">,
  maxBytes: number,
): readonly Entry[] {
  const entries: Entry[] = [];
  let bytes = 0;
  const sql = "SELECT n, at, body FROM changes WHERE n >= ? ORDER BY n";
  for (const row of db.query<Stored, [number]>(sql).iterate(n)) {
    const entry = { ...row, body: unpack(row.body) };
    if (entries.length > 1 && bytes + entry.body.length > maxBytes) break;
    entries.push(entry);
    bytes += entry.body.length;
  }
  if (entries[0]?.n !== n || entries[0].at !== at)
    throw new EntryMissing(`the entry ${n} of ${isoTime(at)} is not, or no longer, here`);
  return entries.slice(1);
}

/**
 * Runs entries on a copy, each after the one before it, in one commit. @param run runs a statement of the hub
 * @throws {EntryMissing}; {Error} when one does not fit the copy: then none of them is there
 */
export function applyEntries(
  db: Database,
  entries: readonly Entry[],
  run: (sql: string, params: readonly Param[]) => void,
): void {
  db.transaction(() => {
    let n = must(standingOf(db).n, "a copy has the entry at which it stands");
    for (const entry of entries) {
      if (entry.n !== ++n) throw new EntryMissing(`the copy has entry ${n - 1}, and ${entry.n} comes next`);
      const { texts = [], writes = [], script } = JSON.parse(entry.body) as Body; // only write() and noteScript() make one
      for (const pair of texts) db.query(ADD_TEXT).run(...pair);
      for (const [id, params] of writes) run(textOf(db, id), params.map(fromJson));
      if (script !== undefined) runStep(db, script.sql, script.schema);
      db.query(ADD_ENTRY).run(entry.n, entry.at, pack(entry.body));
    }
  }).immediate();
}

/** A new term, in an entry of its own. */
export function promoteCopy(db: Database, log: ChangeLog, at: number): void {
  db.transaction(() => {
    db.run(RAISE_TERM);
    for (const sql of [RAISE_TERM, ...raiseEpochs(db)]) log.note(sql, []);
    db.run(NOTE_PROMOTION, [at]);
    log.note(NOTE_PROMOTION, [at]);
    log.write([]);
  }).immediate();
}

/**
 * Fencing tokens that were handed out after a backup, or after the last entry of a copy, would be handed out again, and
 * their old holders could complete the task: so all are raised. An old schema may lack some. Returns the statements.
 */
export function raiseEpochs(db: Database): readonly string[] {
  const has = db.query("SELECT 1 FROM pragma_table_info(?) WHERE name IN ('epoch', 'last')");
  const statements = RAISES.flatMap(([table, sql]) => (has.get(table) === null ? [] : [sql]));
  for (const sql of statements) db.run(sql);
  return statements;
}

function textOf(db: Database, id: number): string {
  const row = db.query<{ sql: string }, [number]>("SELECT sql FROM change_texts WHERE id = ?").get(id);
  return must(row, "an entry before has the text of each statement").sql;
}
