/**
 * The rows of a hub as text, which is how they get from one engine to the other: every row of these tables is read from
 * the one, written to the other, and read back.
 *
 * Invariant: each value travels as text, whole numbers in decimal, so that no conversion can change a number. The digest
 * of the rows read equals the digest of the rows read back.
 */
import type { Tools } from "./upkeep.ts";

/** A table, and the columns that order its rows. */
export type Table = { readonly name: string; readonly key: readonly string[] };

export const TABLES: readonly Table[] = [
  { name: "identity", key: ["one"] },
  { name: "nodes", key: ["seq"] },
  { name: "beats", key: ["seq"] },
  { name: "tasks", key: ["seq"] },
  ...["task_specs", "task_results", "task_features"].map((name) => ({ name, key: ["task_seq"] })),
  { name: "task_totals", key: ["one"] },
  { name: "dependencies", key: ["task_id", "depends_on"] },
  { name: "checkpoints", key: ["task_id"] },
  { name: "questions", key: ["seq"] },
  { name: "usage_reports", key: ["task_id", "epoch", "seq"] },
  { name: "usage_sums", key: ["scope", "value", "day"] },
  { name: "node_sums", key: ["day", "node_id", "scope", "value"] },
  { name: "budgets", key: ["scope", "value", "per"] },
  { name: "pauses", key: ["scope", "value"] },
  { name: "limits", key: ["limit_key"] },
  { name: "limit_uses", key: ["limit_key", "second"] },
  { name: "outputs", key: ["task_id", "epoch"] },
  { name: "output_blocks", key: ["task_id", "epoch", "n"] },
  { name: "settlements", key: ["task_id"] },
  ...["group_totals", "group_endings"].map((name) => ({ name, key: ["task_group"] })),
  { name: "family_checks", key: ["task_id"] },
  { name: "ledger", key: ["seq"] },
  { name: "mints", key: ["key_id", "day"] },
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
  { name: "periods", key: ["step_ms", "at"] },
  { name: "answers", key: ["scope"] },
  { name: "schedules", key: ["name"] },
  { name: "webhooks", key: ["name"] },
  { name: "keys", key: ["key_id"] },
  { name: "invitations", key: ["token_hash"] },
  { name: "quota_usage", key: ["node_id"] },
  { name: "task_charges", key: ["task_id", "node_id"] },
];

/** Totals that triggers keep: they follow from the tables that are copied. */
export const DERIVED_TABLES = ["answer_totals"] as const;

/** Tables of PostgreSQL only: for the bytes of files, leader election and the schema's version. */
export const OTHER_POSTGRES_TABLES = ["blobs", "blob_chunks", "hubs", "turn", "schema_version"] as const;

/** Tables of one row, which every new database has. */
export const SINGLETONS: ReadonlySet<string> = new Set(["identity", "task_totals", "file_totals", "fencing"]);

/** Values as text, by column. */
export type TextRow = Readonly<Record<string, string | null>>;

/** A batch ends after this many characters or rows; a larger row is a batch of its own. */
export const BATCH_CHARS = 2 ** 20;
export const BATCH_ROWS = 2_000;

/** The rows of one engine, as of one moment. */
export type Rows = {
  /** The rows of a table in the order of its key, in batches. */
  batches(table: Table): AsyncGenerator<readonly TextRow[]>;
};

/** An empty engine that takes rows. */
export type RowTarget = Rows & { insert(table: Table, rows: readonly TextRow[]): Promise<void> };

/** Copies every row into an empty target and reads it back. @throws {Error} one line if a row differs */
export async function copyTables(from: Rows, to: RowTarget, tools: Tools): Promise<void> {
  for (const table of TABLES) {
    // Reads the next batch while one is written.
    let writing: Promise<void> = Promise.resolve();
    const digest = await digestOf(from, table, "copying", tools, async (rows) => {
      await writing;
      writing = to.insert(table, rows);
      writing.catch(() => {}); // the awaits throw it
    });
    await writing;
    if (digest !== (await digestOf(to, table, "comparing", tools)))
      throw new Error(`the copied rows of ${table.name} differ from the source; run it again`);
  }
}

/** The SHA-256 of a table's rows, each of which `take` gets too. It does not depend on where batches end. */
async function digestOf(
  side: Rows,
  table: Table,
  doing: string,
  { onProgress, signal }: Tools,
  take: (rows: readonly TextRow[]) => Promise<void> = async () => {},
): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  let done = 0;
  for await (const rows of side.batches(table)) {
    signal.throwIfAborted();
    await take(rows);
    hash.update(`${JSON.stringify(rows).slice(1, -1)},`);
    done += rows.length;
    onProgress(`${doing} ${table.name}: ${done} rows`);
  }
  return hash.digest("hex");
}

/** Returns the SQL that reads a table: every value as text, in the order of the key. */
export function selectText({ name, key }: Table, columns: readonly string[]): string {
  const values = columns.map((column) => `CAST(t.${column} AS TEXT) AS ${column}`);
  return `SELECT ${values.join(", ")} FROM ${name} AS t ORDER BY ${key.map((column) => `t.${column}`).join(", ")}`;
}

export function sizeOf(row: TextRow): number {
  return Object.values(row).reduce((sum, value) => sum + (value?.length ?? 0), 0);
}
