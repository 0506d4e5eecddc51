/**
 * The change log. While it is kept, each group commit also writes an entry, one row of `changes`, in the same commit: the
 * statements that it ran, with their parameters. On a copy of the database that stands at the entry before, the same
 * statements make the same rows: none uses a clock or a random number, and none depends on an order that it does not name.
 * So a copy follows its original entry by entry, and an archive of the entries restores any moment.
 *
 * Invariant: entries are numbered without a gap; the log is kept while `changes` has a row, for whoever writes.
 */
import type { Database, Statement } from "bun:sqlite";
import { must } from "../../lib/assert.ts";
import { machineClock } from "../../lib/clock.ts";
import type { Param } from "../store.ts";

/** One group commit. */
export type Entry = {
  readonly n: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** JSON of `Body`. */
  readonly body: string;
};

/** A parameter in JSON: a whole number above 2^53 is its decimal text in an array. */
type JsonParam = string | number | null | readonly [string];

type Body = {
  /** Statements that no entry before has run: their number, and their text. */
  readonly texts?: readonly (readonly [number, string])[] | undefined;
  /** The number of a statement, and its parameters. */
  readonly writes?: readonly (readonly [number, ...JsonParam[]])[] | undefined;
  /** A migration: several statements without parameters. */
  readonly script?: string | undefined;
};

/** Only on SQLite: PostgreSQL has its own replication. */
export const CHANGE_TABLES = `
  CREATE TABLE changes (n INTEGER PRIMARY KEY, at INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
  CREATE TABLE change_texts (id INTEGER PRIMARY KEY, sql TEXT NOT NULL UNIQUE) STRICT;`;

const ADD_ENTRY = "INSERT INTO changes VALUES (?, ?, ?)";
const ADD_TEXT = "INSERT INTO change_texts VALUES (?, ?)";
const LAST = "SELECT max(n) AS n FROM changes";

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
  #writes: [number, ...JsonParam[]][] = [];

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
    this.#writes.push([this.#idOf(sql), ...params.map(toJson)]);
  }

  /** Writes the entry of the group, before its commit. Returns its size in bytes: 0 when it has written nothing. */
  write(): number {
    if (this.#writes.length === 0) return 0;
    const n = must(this.last, "what is noted is written while the log is kept") + 1;
    const body: Body = { ...(this.#texts.length > 0 ? { texts: this.#texts } : {}), writes: this.#writes };
    const text = JSON.stringify(body);
    for (const pair of this.#texts) this.#db.query(ADD_TEXT).run(...pair);
    this.#addEntry.run(n, machineClock.now(), pack(text));
    this.#at = n;
    this.#texts = [];
    this.#writes = [];
    return text.length;
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

const toJson = (param: Param): JsonParam => {
  if (typeof param !== "bigint") return param;
  return Number.isSafeInteger(Number(param)) ? Number(param) : [String(param)];
};

const fromJson = (param: JsonParam): Param =>
  typeof param === "object" && param !== null ? BigInt(param[0]) : param;

/** Keeps the log from now on, or no longer. The first entry has the number `first`, and is empty. */
export function keepChanges(db: Database, isKept: boolean, first = 1): void {
  db.transaction(() => {
    const { n } = must(db.query<{ n: number | null }, []>(LAST).get(), "an aggregate has a row");
    if (isKept === (n !== null)) return;
    if (isKept) db.query(ADD_ENTRY).run(first, machineClock.now(), pack("{}"));
    else db.run("DELETE FROM changes");
  }).immediate();
}

/** Notes a migration in the log, in its transaction. */
export function noteScript(db: Database, script: string): void {
  const { n } = must(db.query<{ n: number | null }, []>(LAST).get(), "an aggregate has a row");
  const body: Body = { script };
  if (n !== null) db.query(ADD_ENTRY).run(n + 1, machineClock.now(), pack(JSON.stringify(body)));
}

/** An entry does not follow the last one of the copy. */
export class EntryMissing extends Error {
  override readonly name = "EntryMissing";
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
    const { n: last } = must(db.query<{ n: number | null }, []>(LAST).get(), "an aggregate has a row");
    let n = must(last, "a copy has the entry at which it stands");
    for (const entry of entries) {
      if (entry.n !== ++n) throw new EntryMissing(`the copy has entry ${n - 1}, and ${entry.n} comes next`);
      const { texts = [], writes = [], script } = JSON.parse(entry.body) as Body; // only write() and noteScript() make one
      for (const pair of texts) db.query(ADD_TEXT).run(...pair);
      for (const [id, ...params] of writes) run(textOf(db, id), params.map(fromJson));
      if (script !== undefined) db.run(script);
      db.query(ADD_ENTRY).run(entry.n, entry.at, pack(entry.body));
    }
  }).immediate();
}

function textOf(db: Database, id: number): string {
  const row = db.query<{ sql: string }, [number]>("SELECT sql FROM change_texts WHERE id = ?").get(id);
  return must(row, "an entry before has the text of each statement").sql;
}
