/** Runs migrations that the test defines: which copy is kept, and what is left when a step fails. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Schema } from "../../src/store/sql/schema.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { isAsMigrated, schemaVersion } from "../../src/store/sqlite/schema-version.ts";

const FIRST = "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1);";
const SECOND = "ALTER TABLE a ADD COLUMN y TEXT; UPDATE a SET y = 'second';";
const THIRD = "CREATE INDEX a_y ON a (y);";

/** A schema whose version counts its parts; a database of each earlier one gets the parts that it lacks. */
const made = (...parts: readonly string[]): Schema => ({
  version: parts.length,
  create: () => parts.join(""),
  steps: Object.fromEntries(parts.slice(1).map((_, i) => [i + 1, () => parts.slice(i + 1).join("")])),
});

let folder = "";
let path = "";
let db: Database;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "luxhub-migrate-"));
  path = join(folder, "luxhub.db");
  db = new Database(path);
  db.run("PRAGMA journal_mode = WAL");
});

afterEach(() => {
  db.close();
  rmSync(folder, { recursive: true });
});

const copies = (): readonly string[] => readdirSync(folder).filter((name) => /bak|partial/.test(name));
const rowsOf = (of: Database): unknown => of.query("SELECT * FROM a").all();

/** What a copy holds, read on its own. */
function copied(name: string): { version: number; rows: unknown; check: unknown } {
  const copy = new Database(join(folder, name), { readonly: true });
  try {
    return {
      version: schemaVersion(copy),
      rows: rowsOf(copy),
      check: copy.query("PRAGMA integrity_check").values(),
    };
  } finally {
    copy.close();
  }
}

test("a new database gets every step and no copy", () => {
  expect(migrate(db, path, made(FIRST, SECOND))).toBeNull();
  expect([schemaVersion(db), rowsOf(db)]).toEqual([2, [{ x: 1, y: "second" }]]);
  expect(copies()).toEqual([]);
});

test("a database of this schema is not changed", () => {
  migrate(db, path, made(FIRST));
  expect(migrate(db, path, made(FIRST))).toBeNull();
  expect(rowsOf(db)).toEqual([{ x: 1 }]); // the step did not run again
  expect(copies()).toEqual([]);
});

test("a migration stores the checksum of the schema", () => {
  expect(isAsMigrated(db)).toBe(false);
  migrate(db, path, made(FIRST));
  expect(isAsMigrated(db)).toBe(true);
  migrate(db, path, made(FIRST, SECOND));
  expect(isAsMigrated(db)).toBe(true);
  db.run("ALTER TABLE a RENAME COLUMN y TO z");
  expect(isAsMigrated(db)).toBe(false);
});

test("an older database is copied, and migrated by the steps that it lacks", () => {
  migrate(db, path, made(FIRST));
  db.run("INSERT INTO a VALUES (7)"); // in the log, not in the file yet
  const copy = `${path}.schema-1.bak`;
  expect(migrate(db, path, made(FIRST, SECOND, THIRD))).toEqual({ from: 1, to: 3, copy });
  expect([schemaVersion(db), rowsOf(db)]).toEqual([
    3,
    [
      { x: 1, y: "second" },
      { x: 7, y: "second" },
    ],
  ]);
  expect(copies()).toEqual(["luxhub.db.schema-1.bak"]);
  expect(copied("luxhub.db.schema-1.bak")).toEqual({
    version: 1,
    rows: [{ x: 1 }, { x: 7 }],
    check: [["ok"]],
  });
});

test("a failing step changes nothing, and the copy is kept", () => {
  migrate(db, path, made(FIRST));
  const faulty = made(FIRST, SECOND, "INSERT INTO none VALUES (1)");
  expect(() => migrate(db, path, faulty)).toThrow("no such table: none");
  expect([schemaVersion(db), rowsOf(db)]).toEqual([1, [{ x: 1 }]]);
  expect(copies()).toEqual(["luxhub.db.schema-1.bak"]);
  expect(migrate(db, path, made(FIRST, SECOND))).toMatchObject({ from: 1, to: 2 }); // and it can be tried again
});

test("a database that cannot be copied is not changed", () => {
  migrate(db, path, made(FIRST));
  writeFileSync(join(folder, "in-the-way"), "");
  const blocked = join(folder, "in-the-way", "luxhub.db"); // in no directory
  expect(() => migrate(db, blocked, made(FIRST, SECOND))).toThrow();
  expect([schemaVersion(db), rowsOf(db)]).toEqual([1, [{ x: 1 }]]);
});

test("the remains of an interrupted copy are replaced", () => {
  migrate(db, path, made(FIRST));
  for (const end of ["", "-journal"]) writeFileSync(`${path}.schema-1.bak.partial${end}`, "half of a copy");
  writeFileSync(`${path}.schema-1.bak`, "an older one");
  expect(migrate(db, path, made(FIRST, SECOND))).not.toBeNull();
  expect(copies()).toEqual(["luxhub.db.schema-1.bak"]);
  expect(copied("luxhub.db.schema-1.bak").version).toBe(1);
});

test("a database of a newer luxhub is refused and not changed", () => {
  migrate(db, path, made(FIRST, SECOND, THIRD));
  expect(() => migrate(db, path, made(FIRST, SECOND))).toThrow(
    "The database is of a newer luxhub (schema 3, this one knows 2). Run that one.",
  );
  expect(schemaVersion(db)).toBe(3);
  expect(copies()).toEqual([]);
});

test("a database whose schema has no step is refused and not changed", () => {
  migrate(db, path, made(FIRST));
  expect(() => migrate(db, path, { ...made(FIRST, SECOND), steps: {} })).toThrow(
    "was never published (schema 1)",
  );
  expect(schemaVersion(db)).toBe(1);
  expect(copies()).toEqual([]);
});
