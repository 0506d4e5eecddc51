/** Stores of published versions: they get the schema of a new store, their rows stay, and the work goes on from them. */
import { Database } from "bun:sqlite";
import { SQL } from "bun";
import { describe, expect, test } from "bun:test";
import { must } from "../../src/lib/assert.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { LuxService } from "../../src/service/lux.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { openPostgres } from "../../src/store/postgres/engine.ts";
import { POSTGRES_SCHEMA } from "../../src/store/postgres/schema.ts";
import { FACTS } from "../../src/store/sql/consistency.ts";
import { fileTotals } from "../../src/store/sql/files.ts";
import { nodeById } from "../../src/store/sql/nodes.ts";
import { query } from "../../src/store/sql/query.ts";
import { keepChanges } from "../../src/store/sqlite/change-log.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { SQLITE_SCHEMA } from "../../src/store/sqlite/schema.ts";
import { isAsMigrated, runStep } from "../../src/store/sqlite/schema-version.ts";
import type { Store } from "../../src/store/store.ts";
import { PostgresRows } from "../../src/upkeep/postgres-rows.ts";
import { SqliteRows } from "../../src/upkeep/sqlite-rows.ts";
import { copyTables } from "../../src/upkeep/tables.ts";
import { ANY_TASK } from "../../src/service/task-lists.ts";
import { oldStore } from "../support/old-stores.ts";
import { POSTGRES_MISSING, newSchema, sharedServer } from "../support/postgres.ts";
import { checkCopy, differences } from "../support/same-rows.ts";
import { TempDir } from "../e2e/program.ts";

const noFault = (error: unknown): never => {
  throw error;
};

/** A statement without its layout. */
const plain = (sql: string | null): string =>
  (sql ?? "")
    .replace(/--[^\n]*/g, " ")
    .replace(/"(\w+)"/g, "$1")
    .replace(/\s+/g, " ")
    .replace(/ ?([(),]) ?/g, "$1");

/** The tables by what they mean: not by the words of their CREATE statements, which a step may change. */
function sqliteCatalog(path: string): readonly string[] {
  using db = new Database(path, { readonly: true });
  const objects = db.query<{ type: string; name: string; sql: string | null }, []>(
    "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'",
  );
  const columns = db.query(
    `SELECT name, type, "notnull" OR pk > 0, dflt_value, pk FROM pragma_table_xinfo(?) ORDER BY cid`,
  );
  const keys = db.query(`SELECT "unique", origin, partial FROM pragma_index_list(?)`);
  return objects.all().flatMap(({ type, name, sql }) => {
    if (type !== "table") return [`${type} ${name} ${plain(sql)}`];
    const kind = /\) ?([A-Z, ]*)$/.exec(plain(sql))?.[1];
    const checks = [...plain(sql).matchAll(/CHECK\((.*?)\)[,)]/g)].map(([, check]) => check);
    const details = [kind, checks, columns.values(name), keys.values(name).map(String).toSorted()];
    return [`table ${name} ${JSON.stringify(details)}`];
  });
}

async function postgresCatalog(url: string): Promise<readonly string[]> {
  const sql = new SQL(url, { max: 1 });
  const mine = "current_schema()::regnamespace";
  const parts = [
    `SELECT relname, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attstorage, collname,
        pg_get_expr(adbin, adrelid)
      FROM pg_attribute JOIN pg_class c ON c.oid = attrelid LEFT JOIN pg_collation co ON co.oid = attcollation
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
      WHERE relnamespace = ${mine} AND relkind IN ('r', 'v') AND attnum > 0 AND NOT attisdropped`,
    `SELECT relname, pg_get_constraintdef(o.oid) FROM pg_constraint o JOIN pg_class c ON c.oid = conrelid WHERE relnamespace = ${mine}`,
    `SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()`,
    `SELECT tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid WHERE relnamespace = ${mine} AND NOT tgisinternal`,
    `SELECT proname, prosrc FROM pg_proc WHERE pronamespace = ${mine}`,
    `SELECT viewname, definition FROM pg_views WHERE schemaname = current_schema()`,
  ];
  const catalog: string[] = [];
  for (const part of parts) {
    const rows: readonly object[] = await sql.unsafe(part);
    for (const row of rows)
      catalog.push(
        plain(
          JSON.stringify(row)
            .replaceAll(/luxhub_\w+\./g, "")
            .replaceAll("\\n", " "),
        ),
      );
  }
  await sql.close();
  return catalog;
}

function factsBroken(path: string): readonly unknown[] {
  using db = new Database(path, { readonly: true });
  return FACTS.flatMap(({ sql }) => db.query(sql).values());
}

/** Every task can be read, and a new one is created, done and paid. */
async function work(store: Store): Promise<void> {
  const tasks = new TaskService(store, systemClock(), () => Bun.randomUUIDv7());
  const { rows } = await tasks.lists.page({ ...ANY_TASK }, { page: 1, perPage: 500 });
  const stored = await store.read(
    query("SELECT count(*) AS n FROM tasks", [], ([row]) => Number(row?.["n"]), []),
  );
  expect(rows.first.length).toBe(stored);
  expect(stored).toBeGreaterThan(5);
}

describe("sqlite", () => {
  test.each([
    ["0.1.0.sqlite", 1],
    ["56.sqlite", 56],
  ] as const)("%s", async (name, version) => {
    using dir = new TempDir();
    const path = dir.join("luxhub.db");
    using old = new Database(path);
    old.run(oldStore(name));
    old.close();
    const store = openSqlite(path, noFault);
    const migrated = { from: version, to: SQLITE_SCHEMA.version };
    if (version === SQLITE_SCHEMA.version) expect(store.migration).toBeNull();
    else expect(store.migration).toMatchObject(migrated);
    expect(factsBroken(path)).toEqual([]);
    const base = logFromNowOn(path);
    await work(store);
    if (version === 1) await work010(store);
    expect(factsBroken(path)).toEqual([]);
    await store.close();
    checkCopy(base, path);
    await openSqlite(dir.join("new.db"), noFault).close();
    expect(sqliteCatalog(path).toSorted()).toEqual(sqliteCatalog(dir.join("new.db")).toSorted());
  });
});

describe("a step makes the same rows on a copy, whose plans return rows in another order", () => {
  test.each([
    ["0.1.0.sqlite", 1],
    ["56.sqlite", 56],
  ] as const)("%s", (name, version) => {
    const step = must(SQLITE_SCHEMA.steps[version], "the version was published")();
    const [original, copy] = [false, true].map((isReversed) => {
      const db = new Database(":memory:", { strict: true });
      db.run(oldStore(name));
      db.run(`PRAGMA reverse_unordered_selects = ${isReversed}`);
      db.transaction(() => runStep(db, step, SQLITE_SCHEMA.version))();
      expect(isAsMigrated(db)).toBe(true);
      return db;
    }) as [Database, Database]; // one of each
    expect(differences(original, copy)).toEqual([]);
    copy.run("UPDATE identity SET database_id = 'another'");
    expect(differences(original, copy)).toHaveLength(1);
  });
});

/** The state at which the change log begins. */
function logFromNowOn(path: string): Buffer {
  using db = new Database(path);
  keepChanges(db, true);
  return db.serialize();
}

/** What was 0.1.0's is what it was, and goes on. */
async function work010(store: Store): Promise<void> {
  const tasks = new TaskService(store, systemClock(), () => Bun.randomUUIDv7());
  const lux = new LuxService(store, systemClock(), () => Bun.randomUUIDv7());
  const page = { page: 1, perPage: 500 };
  expect(await store.read(nodeById("a"))).toMatchObject({
    ...{ entries: 3, balanceMicro: 13_500_000n, tasksCompleted: 2, autoAssign: false },
  });
  expect(await store.read(nodeById("c"))).toMatchObject({ entries: 0, tasksAssigned: 1, autoAssign: true });
  expect((await lux.ledger("a", page)).rows.first.map(({ n }) => n)).toEqual([3, 2, 1]);
  expect(await store.read(fileTotals())).toEqual({ files: 3, bytes: 30 });
  const numbers = async (columns: string, from: string): Promise<unknown> =>
    store.read(
      query(`SELECT ${columns} FROM ${from}`, [], ([row]) => Object.values(row ?? {}).map(Number), []),
    );
  expect(await numbers("count(*), sum(bytes - octet_length(scope) - octet_length(body))", "answers")).toEqual(
    [1, 0],
  );
  expect(await numbers("waiting, delivered, acked", "broadcasts")).toEqual([2, 0, 0]);
  const held = await tasks.lists.page({ ...ANY_TASK, statuses: ["assigned"], nodeId: "b" }, page);
  const [task] = held.rows.first;
  expect(task).toMatchObject({ title: "held", status: "assigned" });
  const result = { problem: "p", improvement: "i", lesson: "l", extra: null };
  const asked = { taskId: task?.taskId ?? "", nodeId: "b", result, epoch: null, claimOnComplete: false };
  await tasks.complete(store.transact, asked);
  expect(await store.read(nodeById("b"))).toMatchObject({ tasksAssigned: 0, tasksCompleted: 1 });
}

describe.skipIf(POSTGRES_MISSING !== null)(
  `postgresql${POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`}`,
  () => {
    test("53.postgresql", async () => {
      using dir = new TempDir();
      const old = await newSchema(await sharedServer());
      const fresh = await newSchema(await sharedServer());
      const sql = new SQL(old.url, { max: 1 });
      await sql.unsafe(oldStore("53.postgresql"));
      await sql.close();
      const lines: unknown[] = [];
      const log = { info: (_: string, fields?: object) => void lines.push(fields), warn: () => {} };
      const store = await openPostgres(old.url, systemClock(), noFault, log);
      const schemas = { from: 53, to: POSTGRES_SCHEMA.version };
      expect(lines).toEqual([schemas, { ...schemas, seconds: expect.any(Number) }]);
      await work(store);
      await store.close();
      const from = await PostgresRows.snapshot(old.url);
      const copy = SqliteRows.create(dir.join("copy.db"));
      const tools = { clock: systemClock(), onProgress: () => {}, signal: new AbortController().signal };
      await copyTables(from, copy, tools);
      copy.commit();
      copy.close();
      await from.close();
      expect(factsBroken(dir.join("copy.db"))).toEqual([]);
      await (await openPostgres(fresh.url, systemClock(), noFault)).close();
      expect((await postgresCatalog(old.url)).toSorted()).toEqual(
        (await postgresCatalog(fresh.url)).toSorted(),
      );
      for (const { remove } of [old, fresh]) await remove();
    });
  },
);
