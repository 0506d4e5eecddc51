/** Hubs on one database that were started with different secrets: each logs a warning, and shows no secret. */
import { SQL } from "bun";
import { describe, expect, test } from "bun:test";
import { SECRETS_COMPARE_EVERY_MS } from "../../src/domain/limits.ts";
import { SECRET, TestClock, type TestHub, startHub } from "../support/hub.ts";
import { POSTGRES_MISSING, newSchema, sharedServer } from "../support/postgres.ts";
import { until } from "../api/scene.ts";

const reason = POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`;
if (POSTGRES_MISSING === null) await sharedServer();

const OTHER = "another secret of an operator";

/** What the log of a hub says about secrets, in order. */
const said = ({ logged }: TestHub): readonly string[] =>
  logged
    .flatMap((text) => text.trimEnd().split("\n"))
    .map((line): string => JSON.parse(line).message)
    .filter((message) => /secret/i.test(message));

describe.skipIf(POSTGRES_MISSING !== null)(`the secrets of two hubs${reason}`, () => {
  test("that differ are a warning at both until one of them ends, and no secret is stored or logged", async () => {
    const { url: database, remove } = await newSchema();
    const clock = new TestClock();
    const pass = async (...hubs: readonly TestHub[]): Promise<void> => {
      clock.pass(SECRETS_COMPARE_EVERY_MS);
      for (const hub of hubs) await hub.sweep();
    };
    const WARNING =
      "another hub on the database has a different LUXHUB_SECRET: each hub accepts only its own";
    try {
      await using a = await startHub({ database, clock });
      await using b = await startHub({ database, clock });
      await pass(a, b);
      expect([said(a), said(b)]).toEqual([[], []]);

      const c = await startHub({ database, clock, secret: OTHER });
      await until("the new hub says so by itself", async () => said(c).length > 0);
      await pass(a, b, c);
      for (const hub of [a, b, c]) await until("every hub says so once", async () => said(hub).length === 1);
      for (const hub of [a, b, c]) expect(said(hub)).toEqual([WARNING]);

      const sql = new SQL(database, { max: 1 });
      const rows: readonly { marks: string }[] = await sql`SELECT marks FROM hubs WHERE marks IS NOT NULL`;
      await sql.close();
      expect(new Set(rows.map(({ marks }) => marks)).size).toBe(2);
      for (const { marks } of rows) expect(marks).toMatch(/^[0-9a-f]{32} [0-9a-f]{32}$/);
      const hashes = [SECRET, OTHER].map((word) => Bun.SHA256.hash(word, "hex").slice(0, 32));
      for (const word of [SECRET, OTHER, ...hashes]) {
        expect(rows.map(({ marks }) => marks).join()).not.toContain(word);
        expect([...a.logged, ...c.logged].join()).not.toContain(word);
      }

      await c.close();
      await pass(a, b);
      for (const hub of [a, b]) {
        await until("it is over", async () => said(hub).length === 2);
        expect(said(hub)).toEqual([WARNING, "all hubs on the database have the same secrets again"]);
      }
    } finally {
      await remove();
    }
  });
});
