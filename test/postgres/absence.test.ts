/**
 * After the database was unavailable or refused writes: no node loses its lease, and nothing is left behind. The first
 * test starts a server of its own and stops it.
 */
import { SQL } from "bun";
import { describe, expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { BlobsFull } from "../../src/blobs/blobs.ts";
import { openPostgresBlobs } from "../../src/blobs/postgres.ts";
import { LEADER_LEASE_MS } from "../../src/domain/limits.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { openPostgres } from "../../src/store/postgres/engine.ts";
import { POSTGRES_MISSING, POSTGRES_PROGRAMS, PostgresServer, newSchema } from "../support/postgres.ts";

const noFault = (error: unknown): void => {
  throw error;
};

const canStart = POSTGRES_PROGRAMS !== null;
const noServer = canStart ? "" : " (skipped: no PostgreSQL of our own can be started here)";

test.skipIf(!canStart)(
  `leader election: the leader after an outage of the database is elected after a gap, also when nobody wrote meanwhile${noServer}`,
  async () => {
    const server = await PostgresServer.start(tmpdir());
    const a = await openPostgres(server.url, systemClock(), noFault);
    expect(await a.lead()).toBe("elected after a gap"); // nobody was there before it
    expect(await a.lead()).toBe("leader");
    const b = await openPostgres(server.url, systemClock(), noFault);
    expect(await b.lead()).toBe("follower");
    await server.down();
    await Bun.sleep(LEADER_LEASE_MS + 1_000); // the time that is waited for is what is tested
    await server.up();
    const results = [await a.lead(), await b.lead()]; // whose tick comes first is elected
    expect(results.toSorted()).toEqual(["elected after a gap", "follower"]);
    expect(await (results[0] === "follower" ? b : a).lead()).toBe("leader");
    expect(a.writable).toBe(true);
    await a.close();
    await b.close();
    await server.remove();
  },
);

const reason = POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`;

describe.skipIf(POSTGRES_MISSING !== null)(`refused writes of files${reason}`, () => {
  test("a probe that fails in every step leaves no writer that is touched for ever", async () => {
    const schema = await newSchema();
    const store = await openPostgres(schema.url, systemClock(), noFault);
    const blobs = openPostgresBlobs(schema.url);
    const beside = new SQL(schema.url, { max: 1 });
    await beside.unsafe(`
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$;
      CREATE TRIGGER refuse BEFORE INSERT ON blob_chunks FOR EACH STATEMENT EXECUTE FUNCTION refuse();
      CREATE TRIGGER refuse BEFORE DELETE ON blobs FOR EACH STATEMENT EXECUTE FUNCTION refuse();`);
    await expect(blobs.probe()).rejects.toThrow(BlobsFull);
    expect(blobs.writable).toBe(false);
    await beside.unsafe(`
      DROP TRIGGER refuse ON blob_chunks;
      DROP TRIGGER refuse ON blobs;
      UPDATE blobs SET touched_at = touched_at - interval '2 minutes';`);
    expect(await blobs.sweepUnfinished()).toBe(1);
    await blobs.probe();
    expect(blobs.writable).toBe(true);
    expect(await beside.unsafe(`SELECT blob_id FROM blobs`)).toHaveLength(0);
    await beside.close();
    await blobs.close();
    await store.close();
    await schema.remove();
  });
});
