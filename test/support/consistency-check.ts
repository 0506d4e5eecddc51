/** Checks the stored rows of a test's hub when it has closed: dear invariants, which the hub itself does not check. */
import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { codeOf } from "../../src/lib/reason.ts";
import { FACTS } from "../../src/store/sql/consistency.ts";
import { findChainFault } from "../../src/upkeep/ledger-chain.ts";

/** The query of a fact in the SQL of PostgreSQL, where it reads no other JSON than single fields. */
export function onPostgres(sql: string): string {
  return sql.replaceAll(/json_extract\((\w+), '\$\.(\w+)'\)/g, "($1::json ->> '$2')");
}

/** Facts for which that holds: the running totals of the quotas. */
const OF_QUOTAS = FACTS.filter(({ name }) => name === "usage" || name === "charges");

/** @throws {Error} when the quotas' totals of a database of PostgreSQL are not those of its rows. */
export async function checkQuotas(url: string): Promise<void> {
  await using database = new SQL(url, { max: 1 });
  for (const { name, sql } of OF_QUOTAS) {
    const faults: readonly unknown[] = await database.unsafe(onPostgres(sql));
    if (faults.length > 0)
      throw new Error(`After the test the ${name} are inconsistent: ${JSON.stringify(faults)}`);
  }
}

/** @throws {Error} when the rows of a SQLite database contradict each other. A file that a test has damaged is left out. */
export function checkConsistency(path: string): void {
  const db = new Database(path, { readonly: true });
  try {
    for (const { name, sql } of FACTS) {
      const faults = db.query(sql).values();
      if (faults.length > 0)
        throw new Error(`After the test the ${name} are inconsistent: ${faults.join("; ")}`);
    }
    const fault = findChainFault(db);
    if (fault !== null) throw new Error(`After the test the hash chain is broken: ${fault}`);
  } catch (error) {
    if (codeOf(error) !== "SQLITE_CORRUPT") throw error;
  } finally {
    db.close(true);
  }
}
