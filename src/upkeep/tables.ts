/**
 * The rows of a hub as text, which is how they get from one engine to the other.
 *
 * Invariant: each value travels as text, whole numbers in decimal, so that no conversion can change a number. The digest
 * of the rows read equals the digest of the rows read back.
 */
import { TABLES as DECLARED } from "../store/sql/tables.ts";
import type { Tools } from "./upkeep.ts";

/** With the columns that order its rows. */
export type Table = (typeof DECLARED)[number];

/** Kept by triggers: they follow from the tables that are copied. */
export const DERIVED_TABLES = ["answer_totals"] as const;

export const TABLES: readonly Table[] = DECLARED.filter(({ name }) =>
  DERIVED_TABLES.every((each) => each !== name),
);

export const columnsOf = ({ columns }: Table): readonly string[] => Object.keys(columns);

/** The change log and its term, which a database begins anew where it is moved to. */
export const OTHER_SQLITE_TABLES = ["changes", "change_texts", "standing"] as const;

/** For the bytes of files, leader election and the schema's version. */
export const OTHER_POSTGRES_TABLES = ["blobs", "blob_chunks", "hubs", "turn", "schema_version"] as const;

/** Every new database has their one row. */
export const SINGLETONS: ReadonlySet<string> = new Set(
  DECLARED.filter(({ columns }) => "one" in columns).map(({ name }) => name),
);

export type TextRow = Readonly<Record<string, string | null>>;

/** In characters or rows; a larger row is a batch of its own. */
export const BATCH_CHARS = 2 ** 20;
export const BATCH_ROWS = 2_000;

export type Rows = {
  batches(table: Table): AsyncGenerator<readonly TextRow[]>;
};

export type RowTarget = Rows & { insert(table: Table, rows: readonly TextRow[]): Promise<void> };

/** Also reads the rows back. @throws {Error} one line if a row differs */
export async function copyTables(from: Rows, to: RowTarget, tools: Tools): Promise<void> {
  for (const table of TABLES) {
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

/** `take` gets each row too. The digest does not depend on where batches end. */
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

/** Every value as text, in the order of the key. */
export function selectText({ name, key }: Table, columns: readonly string[]): string {
  const values = columns.map((column) => `CAST(t.${column} AS TEXT) AS ${column}`);
  return `SELECT ${values.join(", ")} FROM ${name} AS t ORDER BY ${key.map((column) => `t.${column}`).join(", ")}`;
}

export function sizeOf(row: TextRow): number {
  return Object.values(row).reduce((sum, value) => sum + (value?.length ?? 0), 0);
}
