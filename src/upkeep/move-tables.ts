/**
 * The rows of a move: every row of these tables is read on one side, written on the other, and read back.
 *
 * Invariant: each value is carried as text, whole numbers in decimal, so that no conversion can change a number. The digest
 * of what was read from one side equals that of what is read back from the other.
 */
import type { Tools } from "./upkeep.ts";

/** A table, and the columns that order its rows. */
export type Table = { readonly name: string; readonly key: readonly string[] };

/** The tables of both engines. Further tables of PostgreSQL are about its hubs (leader election), or hold files. */
export const TABLES: readonly Table[] = [
  { name: "identity", key: ["one"] },
  { name: "nodes", key: ["seq"] },
  { name: "beats", key: ["seq"] },
  { name: "tasks", key: ["seq"] },
  { name: "task_totals", key: ["one"] },
  { name: "ledger", key: ["entry_id"] },
  { name: "messages", key: ["seq"] },
  { name: "deliveries", key: ["seq", "to_node"] },
  { name: "broadcasts", key: ["seq"] },
  { name: "files", key: ["seq"] },
  { name: "events", key: ["id"] },
  { name: "answers", key: ["scope"] },
  { name: "keys", key: ["key_id"] },
];

/** Tables of PostgreSQL only. */
export const OTHER_POSTGRES_TABLES = ["blobs", "blob_chunks", "hubs", "turn", "schema_version"] as const;

/** Tables of one row, which every new database has. */
export const SINGLETONS: ReadonlySet<string> = new Set(["identity", "task_totals"]);

/** A value as text by the name of its column. */
export type TextRow = Readonly<Record<string, string | null>>;

/** A batch ends after this many characters or rows; a larger row is a batch of its own. */
export const BATCH_CHARS = 2 ** 20;
export const BATCH_ROWS = 2_000;

/** One end of a move, read as of one moment. */
export type Side = {
  /** The rows of a table by its key, some at a time. */
  batches(table: Table): AsyncGenerator<readonly TextRow[]>;
  count(table: Table): Promise<number>;
};

/** The end that is filled. */
export type Target = Side & { insert(table: Table, rows: readonly TextRow[]): Promise<void> };

/** The number of rows in a table, and the digest of them. */
export type Summary = { readonly table: string; readonly rows: number; readonly sha256: string };

class Digest {
  readonly #table: string;
  readonly #hash = new Bun.CryptoHasher("sha256");
  #rows = 0;

  constructor(table: string) {
    this.#table = table;
  }

  add(rows: readonly TextRow[]): void {
    for (const row of rows) this.#hash.update(`${JSON.stringify(Object.entries(row))}\n`);
    this.#rows += rows.length;
  }

  end(): Summary {
    return { table: this.#table, rows: this.#rows, sha256: this.#hash.digest("hex") };
  }
}

/** Copies every table into an empty target, reads it back there, and answers its summary. @throws {Error} one line when they differ */
export async function copyTables(from: Side, to: Target, tools: Tools): Promise<readonly Summary[]> {
  const copied: Summary[] = [];
  for (const table of TABLES) copied.push(await copyTable(from, to, table, tools));
  const read = await summarize(to, tools);
  const wrong = copied.find((one, i) => one.sha256 !== read[i]?.sha256);
  if (wrong) throw new Error(`what was written of the ${wrong.table} is not what was read; run it again`);
  return read;
}

async function copyTable(from: Side, to: Target, table: Table, tools: Tools): Promise<Summary> {
  const total = await from.count(table);
  const digest = new Digest(table.name);
  // The next batch is read while one is written.
  let writing: Promise<void> = Promise.resolve();
  let done = 0;
  for await (const rows of from.batches(table)) {
    await writing;
    tools.signal.throwIfAborted();
    writing = to.insert(table, rows);
    writing.catch(() => {}); // awaited above or below
    digest.add(rows);
    done += rows.length;
    tools.onProgress(`copying ${table.name}: ${done} of ${total}`);
  }
  await writing;
  return digest.end();
}

/** The summary of every table of a side. */
export async function summarize(side: Side, tools: Tools): Promise<readonly Summary[]> {
  const summaries: Summary[] = [];
  for (const table of TABLES) {
    const digest = new Digest(table.name);
    let done = 0;
    for await (const rows of side.batches(table)) {
      tools.signal.throwIfAborted();
      digest.add(rows);
      done += rows.length;
      tools.onProgress(`comparing ${table.name}: ${done}`);
    }
    summaries.push(digest.end());
  }
  return summaries;
}

/** The statement that reads a table: every value as text, in the order of its key. */
export function selectText({ name, key }: Table, columns: readonly string[]): string {
  const values = columns.map((column) => `CAST(t.${column} AS TEXT) AS ${column}`);
  return `SELECT ${values.join(", ")} FROM ${name} AS t ORDER BY ${key.map((column) => `t.${column}`).join(", ")}`;
}

/** Roughly the characters that a row takes in memory. */
export function sizeOf(row: TextRow): number {
  return Object.values(row).reduce((sum, value) => sum + (value?.length ?? 0), 0);
}
