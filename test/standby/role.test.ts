/** What a hub is when it starts (src/standby/role.ts); the real program is in test/e2e/second-copy.test.ts. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeDataDir } from "../../src/data-dir.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { openLog } from "../../src/lib/log.ts";
import { readCopyParts } from "../../src/standby/role.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { SQLITE_SCHEMA } from "../../src/store/sqlite/schema.ts";

test.each([
  [2, "first"],
  [3, "superseded"],
])("an update of a hub that was promoted once: its standby of term %i finds it a %s", async (term, role) => {
  const path = mkdtempSync(join(tmpdir(), "luxhub-role-"));
  await using standby = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => Response.json({ success: true, copy: { term } }),
  });
  try {
    const dir = makeDataDir(path);
    await openSqlite(dir.database, () => {}).close();
    {
      using db = new Database(dir.database);
      db.run("UPDATE standing SET term = 2");
      db.run(`PRAGMA user_version = ${SQLITE_SCHEMA.version - 1}`);
    }
    writeFileSync(dir.standbysFile, JSON.stringify({ two: { A: `http://127.0.0.1:${standby.port}` } }));
    const clock = systemClock();
    const log = openLog({ format: "json", level: "error" }, clock.now, () => {});
    const context = { clock, log, signal: new AbortController().signal };
    expect(
      (await readCopyParts(dir, { LUXHUB_SECRET: "secret-of-the-role-test" }, context)).role as string,
    ).toBe(role);
  } finally {
    rmSync(path, { recursive: true });
  }
});
