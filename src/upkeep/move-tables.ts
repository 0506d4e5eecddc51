/**
 * The rows of a move: every row of these tables is read from the source, written to the target, and read back.
 *
 * Invariant: each value travels as text, whole numbers in decimal, so that no conversion can change a number. The digest
 * of the rows in the source equals the digest of the rows read back from the target.
 */
import type { Tools } from "./upkeep.ts";

/** A table, and the columns that order its rows. */
export type Table = { readonly name: string; readonly key: readonly string[] };

export const TABLES: readonly Table[] = [
  { name: "identity", key: ["one"] },
  { name: "nodes", key: ["seq"] },
  { name: "beats", key: ["seq"] },
  { name: "tasks", key: ["seq"] },
  { name: "task_totals", key: ["one"] },
  { name: "dependencies", key: ["task_id", "depends_on"] },
  { name: "checkpoints", key: ["task_id"] },
  { name: "settlements", key: ["task_id"] },
  { name: "ledger", key: ["entry_id"] },
  { name: "messages", key: ["seq"] },
  { name: "deliveries", key: ["seq", "to_node"] },
  { name: "broadcasts", key: ["seq"] },
  { name: "files", key: ["seq"] },
  { name: "file_totals", key: ["one"] },
  { name: "notes", key: ["key"] },
  { name: "leases", key: ["node_id", "name", "task_id"] },
  { name: "fencing", key: ["one"] },
  { name: "events", key: ["id"] },
  { name: "minutes", key: ["at", "hub"] },
  { name: "answers", key: ["scope"] },
  { name: "keys", key: ["key_id"] },
  { name: "quota_usage", key: ["node_id"] },
];

/** Totals that triggers keep: they follow from the tables that are moved. */
export const DERIVED_TABLES = ["answer_totals"] as const;

/** Tables of PostgreSQL only: for the bytes of files, leader election and the schema's version. They are not moved. */
export const OTHER_POSTGRES_TABLES = ["blobs", "blob_chunks", "hubs", "turn", "schema_version"] as const;

/** Tables of one row, which every new database has. */
export const SINGLETONS: ReadonlySet<string> = new Set(["identity", "task_totals", "file_totals", "fencing"]);

/** Values as text, by column. */
export type TextRow = Readonly<Record<string, string | null>>;

/** A batch ends after this many characters or rows; a larger row is a batch of its own. */
export const BATCH_CHARS = 2 ** 20;
export const BATCH_ROWS = 2_000;

/** One end of a move, read from one snapshot. */
export type Side = {
  /** The rows of a table in the order of its key, in batches. */
  batches(table: Table): AsyncGenerator<readonly TextRow[]>;
  count(table: Table): Promise<number>;
};

/** The end that is written. */
export type Target = Side & { insert(table: Table, rows: readonly TextRow[]): Promise<void> };

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

/** Copies every table into an empty target, reads it back and returns its summary. @throws {Error} one line if they differ */
export async function copyTables(from: Side, to: Target, tools: Tools): Promise<readonly Summary[]> {
  const copied: Summary[] = [];
  for (const table of TABLES) copied.push(await copyTable(from, to, table, tools));
  const read = await summarize(to, tools);
  const wrong = copied.find((one, i) => one.sha256 !== read[i]?.sha256);
  if (wrong) throw new Error(`the copied rows of ${wrong.table} differ from the source; run it again`);
  return read;
}

async function copyTable(from: Side, to: Target, table: Table, tools: Tools): Promise<Summary> {
  const total = await from.count(table);
  const digest = new Digest(table.name);
  // Reads the next batch while one is written.
  let writing: Promise<void> = Promise.resolve();
  let done = 0;
  for await (const rows of from.batches(table)) {
    await writing;
    tools.signal.throwIfAborted();
    writing = to.insert(table, rows);
    writing.catch(() => {}); // the awaits throw it
    digest.add(rows);
    done += rows.length;
    tools.onProgress(`copying ${table.name}: ${done} of ${total}`);
  }
  await writing;
  return digest.end();
}

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

/** Returns the SQL that reads a table: every value as text, in the order of the key. */
export function selectText({ name, key }: Table, columns: readonly string[]): string {
  const values = columns.map((column) => `CAST(t.${column} AS TEXT) AS ${column}`);
  return `SELECT ${values.join(", ")} FROM ${name} AS t ORDER BY ${key.map((column) => `t.${column}`).join(", ")}`;
}

export function sizeOf(row: TextRow): number {
  return Object.values(row).reduce((sum, value) => sum + (value?.length ?? 0), 0);
}
