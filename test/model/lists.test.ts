/** The lists by node and by filter, the top nodes and the ledger are right after random steps, on both engines. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { FACTS } from "../../src/store/sql/consistency.ts";
import { openPostgres } from "../../src/store/postgres/engine.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { newDataDir } from "../support/hub.ts";
import { POSTGRES_MISSING, newSchema } from "../support/postgres.ts";
import { Lists } from "./lists.ts";

/** More than the suite plays: LUXHUB_TEST_SEEDS=100 */
const SEEDS = Number(process.env["LUXHUB_TEST_SEEDS"] ?? 1);
const reason = POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`;

function fault(error: unknown): never {
  throw error;
}

for (let seed = 1; seed <= SEEDS; seed++)
  test(`lists, top nodes and ledger on sqlite (seed ${seed})`, async () => {
    const folder = newDataDir();
    const path = join(folder, "db");
    const store = openSqlite(path, fault);
    await new Lists([store], seed).play(35);
    await store.close();
    const db = new Database(path);
    for (const { name, sql } of FACTS) expect([name, db.query(sql).values()]).toEqual([name, []]);
    db.close();
    rmSync(folder, { recursive: true });
  });

describe.skipIf(POSTGRES_MISSING !== null)(`on postgresql${reason}`, () => {
  for (let seed = 1; seed <= SEEDS; seed++)
    test(`lists, top nodes and ledger at two hubs (seed ${seed})`, async () => {
      const schema = await newSchema();
      const open = () => openPostgres(schema.url, systemClock(), fault);
      const stores = await Promise.all([open(), open()]);
      await new Lists(stores, seed).play(8);
      for (const store of stores) await store.close();
      await schema.remove();
    });
});
