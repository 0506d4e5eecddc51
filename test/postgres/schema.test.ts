/** Opening a database that cannot be used: one of another schema, or one that the server refuses. */
import { SQL } from "bun";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/lib/clock.ts";
import { LOCK } from "../../src/store/postgres/migrate.ts";
import { POSTGRES_SCHEMA } from "../../src/store/postgres/schema.ts";
import { oldStore } from "../support/old-stores.ts";
import { type PostgresStore, joinPostgres, openPostgres } from "../../src/store/postgres/engine.ts";
import { POSTGRES_MISSING, newSchema, sharedServer } from "../support/postgres.ts";

const NEWEST = POSTGRES_SCHEMA.version;

describe.skipIf(POSTGRES_MISSING !== null)(
  `a database${POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`}`,
  () => {
    let schema: { url: string; remove(): Promise<void> };
    let sql: SQL;

    beforeEach(async () => {
      schema = await newSchema(await sharedServer());
      sql = new SQL(schema.url, { max: 1 });
    });

    afterEach(async () => {
      await sql.close();
      await schema.remove();
    });

    const open = (url = schema.url): Promise<PostgresStore> =>
      openPostgres(url, systemClock(), (error) => {
        throw error;
      });
    const join = (): Promise<PostgresStore> => joinPostgres(schema.url, systemClock());
    const version = async (): Promise<unknown> =>
      (await sql`SELECT max(version) AS n FROM schema_version`)[0]?.n;

    test("forgets hubs that ended long ago, and no others", async () => {
      await (await open()).close();
      await sql`INSERT INTO hubs VALUES ('old', 7, clock_timestamp() - interval '25 hours'),
        ('young', 7, clock_timestamp() - interval '23 hours')`;
      await (await join()).close();
      const marks = async (): Promise<unknown> =>
        (await sql`SELECT hub_id FROM hubs ORDER BY hub_id`).map((row: { hub_id: string }) => row.hub_id);
      expect(await marks()).toEqual(["old", "young"]);
      await (await open()).close();
      expect(await marks()).toEqual(["young"]);
    });

    test("of an older schema is not migrated while a hub runs on it", async () => {
      await sql.unsafe(oldStore("53.postgresql"));
      await sql.unsafe("UPDATE turn SET until = clock_timestamp() + interval '5 seconds'");
      await expect(open()).rejects.toThrow(
        "a hub of an older luxhub is running on the database: stop all of them",
      );
      await expect(join()).rejects.toThrow(`the database is of schema 53, and this luxhub knows ${NEWEST}`);
      expect(await version()).toBe(53);
      await sql.unsafe("UPDATE turn SET until = clock_timestamp()");
      await expect(join()).rejects.toThrow("the database is of schema 53");
      await (await open()).close();
      expect(await version()).toBe(NEWEST);
      await (await join()).close();
      await sql`UPDATE schema_version SET version = version + 1`;
      await expect(open()).rejects.toThrow("The database is of a newer luxhub");
      await expect(join()).rejects.toThrow(`the database is of schema ${NEWEST + 1}`);
    });

    test("of an older schema is migrated after a group that began before has ended", async () => {
      await sql.unsafe(oldStore("53.postgresql"));
      const frozen = new SQL(schema.url, { max: 1 });
      const group = await frozen.reserve();
      await group.unsafe(`BEGIN; ${LOCK.write}`);
      const opening = open();
      const waits = async (): Promise<boolean> =>
        (
          await sql`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
          AND objid = current_schema()::regnamespace::oid`
        ).length > 0;
      while (!(await waits())) await Bun.sleep(5);
      expect(await version()).toBe(53);
      await group.unsafe("UPDATE turn SET holder = 'frozen'; COMMIT");
      await (await opening).close();
      expect(await version()).toBe(NEWEST);
      await group.release();
      await frozen.close();
    });

    test("of a build that was never published is refused, and not changed", async () => {
      await sql.unsafe(oldStore("53.postgresql"));
      await sql`UPDATE schema_version SET version = 52`;
      await expect(open()).rejects.toThrow("was never published (schema 52)");
      expect(await version()).toBe(52);
    });

    test("without a hub is not changed by a command", async () => {
      await expect(join()).rejects.toThrow("there is no hub in the database");
      const tables = await sql`SELECT count(*)::int AS n FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace`;
      expect(tables[0]?.n).toBe(0);
    });

    test("that cannot be opened: one line that names PostgreSQL", async () => {
      const nowhere = new URL(schema.url);
      nowhere.pathname = "/luxhub_that_is_not_there";
      await expect(open(nowhere.href)).rejects.toThrow(
        `PostgreSQL cannot be used: database "luxhub_that_is_not_there" does not exist (${nowhere.host}/luxhub_that_is_not_there, of`,
      );
      nowhere.port = "1";
      await expect(open(nowhere.href)).rejects.toThrow(
        `PostgreSQL cannot be reached: Failed to connect (${nowhere.host}/luxhub_that_is_not_there, of --database`,
      );
    });
  },
);
