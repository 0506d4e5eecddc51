/** The change log of SQLite: a copy that runs its entries has the same rows. Each test's hub checks that too (hub.ts). */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { accept } from "../../src/domain/decision.ts";
import { must } from "../../src/lib/assert.ts";
import { ChangeLog, keepChanges } from "../../src/store/sqlite/change-log.ts";
import { PRUNE_SUMS } from "../../src/store/sql/spending.ts";
import { joinSqlite } from "../../src/store/sqlite/engine.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { isAsMigrated, schemaVersion } from "../../src/store/sqlite/schema-version.ts";
import { task } from "../domain/samples.ts";
import { SQLITE_SCHEMA } from "../../src/store/sqlite/schema.ts";
import { EntryMissing } from "../../src/store/store.ts";
import { firstStateOf } from "../support/new-database.ts";
import { catchUp, checkCopy, differences, inMemory } from "../support/same-rows.ts";
import { type Place, SQLITE, log, openFresh, outcome, prepareStores, write } from "./store-engines.ts";

await prepareStores();

const ENTRIES = "SELECT count(*) AS n FROM changes WHERE n > 1";

/** The file of a place, and what was in it at first. */
async function stateOf(place: Place): Promise<{ readonly path: string; readonly first: Buffer }> {
  const path = must(place.path, "SQLite has a file");
  return { path, first: must(await firstStateOf(path), "the place was provided") };
}

test("a group is one entry, what is refused or fails is in none, and a copy has the same rows", async () => {
  const { store, place } = await openFresh(SQLITE, () => {});
  const boom = store.transact({}, () => {
    throw new Error("boom");
  });
  await Promise.all([
    store.transact({}, log("one")),
    store.transact({}, log("two")),
    outcome(boom),
    write(store, { kind: "task.created", task: task("t1", { title: "\ud800 ≠ \u0000" }) }),
  ]);
  await store.transact({}, () => accept(null, []));
  expect(await place.look(ENTRIES)).toBe(1);
  await store.transact({}, log("three"));
  expect(await place.look(ENTRIES)).toBe(2);
  const { path, first } = await stateOf(place);
  checkCopy(first, path);
});

test("a command beside the hub adds its entries to the same log", async () => {
  const { store, place } = await openFresh(SQLITE);
  const { path, first } = await stateOf(place);
  await store.transact({}, log("hub"));
  const guest = joinSqlite(path);
  await guest.transact({}, log("guest"));
  await store.transact({}, log("hub again"));
  await guest.transact({}, log("guest again"));
  await guest.close();
  expect(await place.look(ENTRIES)).toBe(4);
  checkCopy(first, path);
});

test("while nobody follows, no entry is written; it begins and ends without a restart", async () => {
  const { store, place } = await openFresh(SQLITE);
  const { path } = await stateOf(place);
  const beside = (isKept: boolean): void => {
    using db = new Database(path);
    keepChanges(db, isKept, 41);
  };
  beside(false);
  await store.transact({}, log("unseen"));
  expect(await place.look("SELECT count(*) AS n FROM changes")).toBe(0);
  beside(true);
  await store.transact({}, log("seen"));
  expect(await place.look("SELECT max(n) AS n FROM changes")).toBe(42);
  beside(false);
  await store.transact({}, log("unseen again"));
  expect(await place.look("SELECT count(*) AS n FROM changes")).toBe(0);
});

test("a migration is an entry", async () => {
  const { store, place } = await openFresh(SQLITE);
  const { path, first } = await stateOf(place);
  await store.close();
  const step = (): string => "CREATE TABLE more (n INTEGER) STRICT; INSERT INTO more VALUES (7);";
  const { version, create } = SQLITE_SCHEMA;
  using db = new Database(path);
  migrate(db, path, { version: version + 1, create, steps: { [version]: step } });
  checkCopy(first, path);
  using copy = inMemory(first);
  catchUp(copy, db);
  expect([schemaVersion(copy), isAsMigrated(copy)]).toEqual([version + 1, true]);
});

test("a number above 2^53 stays exact", async () => {
  const { place } = await openFresh(SQLITE);
  const { path, first } = await stateOf(place);
  using db = new Database(path);
  const changes = new ChangeLog(db);
  const sql = "INSERT INTO usage_sums VALUES ($1, 'x', 1, 0, 0, 0, 0, 0, $2)";
  const params = ["s", 9_007_199_254_740_993n] as const;
  db.transaction(() => {
    db.query(sql.replaceAll("$", "?")).run(...params);
    changes.note(sql, params);
    changes.write([]);
  })();
  checkCopy(first, path);
});

test("a missing entry stops the copy as it was", async () => {
  const { store, place } = await openFresh(SQLITE);
  const { path, first } = await stateOf(place);
  for (const name of ["one", "two", "three"]) await store.transact({}, log(name));
  using copy = inMemory(first);
  using broken = inMemory(readFileSync(path));
  using original = new Database(path, { readonly: true });
  broken.run("DELETE FROM changes");
  original
    .query("SELECT n, at, body FROM changes WHERE n <> 3")
    .values()
    .forEach((row) =>
      broken.query("INSERT INTO changes VALUES (?, ?, ?)").run(...(row as [number, number, string])),
    );
  expect(() => catchUp(copy, broken)).toThrow(EntryMissing);
  using untouched = inMemory(first);
  expect(differences(copy, untouched)).toEqual([]);
});

const LIMITED = PRUNE_SUMS.sql;
const faults = {
  "an order that it does not name": LIMITED.replace("ORDER BY scope, value, day", ""),
  "a random number": `UPDATE usage_sums SET reports = abs(random()) WHERE day < $1 AND $2 > 0`,
  "a clock": `UPDATE usage_sums SET reports = unixepoch() WHERE day < $1 AND $2 > 0`,
};
for (const [name, sql] of Object.entries(faults))
  test(`a statement that uses ${name} is found`, async () => {
    const { store, place } = await openFresh(SQLITE);
    const { path, first } = await stateOf(place);
    const spent = { reports: 1, unpriced: 0, inputTokens: 0, outputTokens: 0, cachedTokens: 0, costMicro: 0 };
    for (const value of ["a", "b", "c"])
      await write(store, { kind: "spending.summed", scope: "node", value, day: 1, ...spent });
    checkCopy(first, path);
    expect(sql).not.toBe(LIMITED);
    Object.assign(PRUNE_SUMS, { sql });
    try {
      await write(store, { kind: "sums.pruned", before: 2, limit: 1 });
    } finally {
      Object.assign(PRUNE_SUMS, { sql: LIMITED });
    }
    expect(() => checkCopy(first, path)).toThrow(/usage_sums|reads a clock/);
  });
