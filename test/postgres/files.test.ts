/** Large files through real hubs on one PostgreSQL: a file uploaded at one is read at another, and memory stays flat. */
import { SQL } from "bun";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { BlobsFull } from "../../src/blobs/blobs.ts";
import { openPostgresBlobs } from "../../src/blobs/postgres.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { codeOf } from "../../src/lib/reason.ts";
import { openPostgres } from "../../src/store/postgres/engine.ts";
import { ok } from "../api/scene.ts";
import { MIB, upload } from "../e2e/large-file.ts";
import { Hub, TempDir, until } from "../e2e/program.ts";
import { RawConnection, uploadOf } from "../e2e/raw.ts";
import { UNREAD_DOWNLOADS_MIB_MAX } from "../../tools/torture/overload.ts";
import { askAndReadNothing, measureUnreadDownloads } from "../../tools/torture/strangers.ts";
import { type TestHub, startHub } from "../support/hub.ts";
import { POSTGRES_MISSING, newSchema, sharedServer } from "../support/postgres.ts";
import { type Schema, dropSchemas, takeSchema } from "../support/schemas.ts";
import { GREW_MAX_MIB, measureLargeFile } from "../../tools/torture/large-files.ts";

/** More than the memory may grow by; the torture sends 1 GiB. */
const FILE_MIB = 96;

const reason = POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`;
const suite = POSTGRES_MISSING === null ? describe : describe.skip;
if (POSTGRES_MISSING === null) await sharedServer();

// The first three mostly wait, with hubs of their own.
suite(`files in PostgreSQL${reason}`, () => {
  const start = (dir: TempDir, name: string, url: string): Promise<Hub> =>
    Hub.start({ data: dir.join(name), env: { LUXHUB_DATABASE: url } });

  test.concurrent.skipIf(process.platform !== "linux")(
    `${FILE_MIB} MiB up at one hub and down at another leave the memory of both where it was`,
    async () => {
      using dir = new TempDir();
      const { url, remove } = await newSchema();
      await using a = await start(dir, "a", url);
      await using b = await start(dir, "b", url);
      const { isSame, grewMib } = await measureLargeFile([a, b], FILE_MIB);
      console.log(`${FILE_MIB} MiB up and down: ${grewMib.toFixed(0)} MiB`);
      expect(isSame).toBe(true);
      expect(grewMib).toBeLessThan(GREW_MAX_MIB);
      await remove();
    },
  );

  test.concurrent.skipIf(process.platform !== "linux")(
    "unread downloads without the secret are bounded, and do not delay callers with it",
    async () => {
      using dir = new TempDir();
      const { url, remove } = await newSchema();
      await using hub = await start(dir, "a", url);
      const { fileId, sha256 } = await upload(hub, 8);
      expect(await measureUnreadDownloads(hub, ["two"], 300)).toBeLessThan(UNREAD_DOWNLOADS_MIB_MAX);
      const crowd = await askAndReadNothing(hub.port, `/file/download/${fileId}`, 100);
      await Bun.sleep(500);
      const headers = { "X-Matrix-Secret": hub.secret };
      const mine = await fetch(`${hub.api}/file/download/${fileId}`, { headers });
      expect(Bun.SHA256.hash(await mine.arrayBuffer(), "hex")).toBe(sha256);
      crowd.hangUp();
      await remove();
    },
  );

  test.concurrent(
    "an aborted upload leaves nothing; one of a killed hub is swept after no hub has touched it for a minute",
    async () => {
      using dir = new TempDir();
      const { url, remove } = await newSchema();
      const sql = new SQL(url, { max: 1 });
      const chunks = async (): Promise<number> =>
        Number((await sql`SELECT count(*) AS n FROM blob_chunks`)[0].n);
      const { head, before } = uploadOf(8 * MIB);
      {
        await using hub = await start(dir, "a", url);
        for (const end of ["cut", "kill"] as const) {
          const connection = await RawConnection.open(hub.port);
          connection.send(head + before + "x".repeat(2 * MIB));
          await until(async () => (await chunks()) > 4);
          if (end === "kill") break;
          connection.cut();
          await until(async () => (await chunks()) === 0);
        }
      }
      await using next = await start(dir, "b", url);
      expect(await chunks()).toBeGreaterThan(4); // it may be that of another hub
      await sql`UPDATE blobs SET touched_at = touched_at - interval '61 seconds'`;
      await using last = await start(dir, "c", url);
      expect(await chunks()).toBe(0);
      expect((await last.get("/file/list")).body).toMatchObject({ total: 0 });
      expect((await next.get("/status")).status).toBe(200);
      await sql.close();
      await remove();
    },
  );

  test("a probe that fails in every step leaves no writer that is touched for ever", async () => {
    const { url, remove } = await newSchema();
    const store = await openPostgres(url, systemClock(), (error) => {
      throw error;
    });
    const blobs = openPostgresBlobs(url);
    const beside = new SQL(url, { max: 1 });
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
    await remove();
  });

  describe("a download over a bare socket", () => {
    let schema: Schema;
    let hub: TestHub;

    beforeAll(async () => {
      schema = await takeSchema();
      hub = await startHub({ database: schema.url });
    });

    afterAll(async () => {
      await hub.close();
      schema.giveBack();
      await dropSchemas();
    });

    type Raw = { readonly head: string; readonly bytes: number; readonly end: string };

    /** Reads until the connection ends; `end` is how: "FIN", or the error's code. */
    async function ask(port: number, path: string, version: string, ...headers: string[]): Promise<Raw> {
      const socket = connect(port, "127.0.0.1");
      const chunks: Buffer[] = [];
      let end = "";
      const closed = Promise.withResolvers<void>();
      socket.on("data", (bytes: Buffer) => chunks.push(bytes));
      socket.on("end", () => (end = "FIN"));
      socket.on("error", (error) => (end = codeOf(error)));
      socket.on("close", () => closed.resolve());
      const lines = [`GET ${path} HTTP/${version}`, "Host: hub", "Connection: close", ...headers, "", ""];
      socket.write(lines.join("\r\n"));
      await closed.promise;
      const answer = Buffer.concat(chunks);
      const at = answer.indexOf("\r\n\r\n");
      return {
        head: answer.subarray(0, at).toString("latin1").toLowerCase(),
        bytes: answer.length - at - 4,
        end,
      };
    }

    async function store(bytes: number): Promise<string> {
      const form = new FormData();
      form.set("file", new File([new Uint8Array(bytes)], "a"));
      return String((await ok(hub.post("/file/upload", form)))["url"]);
    }

    test.each(["1.0", "1.1"])(
      "by HTTP/%s has a Content-Length up to 64 KiB, also of a range",
      async (version) => {
        for (const size of [1, 1_000, 65_536]) {
          const path = await store(size);
          const whole = await ask(hub.port(), path, version);
          expect(whole).toMatchObject({ bytes: size, end: "FIN" });
          expect(whole.head).toStartWith("http/1.1 200");
          expect(whole.head).toContain(`\r\ncontent-length: ${size}`);
          expect(whole.head).not.toContain("transfer-encoding");
        }
        const path = await store(MIB);
        const atSeam = 256 * 1024 - 10; // the range is in two chunks
        const part = await ask(hub.port(), path, version, `Range: bytes=${atSeam}-${atSeam + 19}`);
        expect(part).toMatchObject({ bytes: 20, end: "FIN" });
        expect(part.head).toContain("\r\ncontent-length: 20");
      },
    );

    test.each(["1.0", "1.1"])(
      "by HTTP/%s that breaks off in the middle ends the connection by a reset",
      async (version) => {
        const path = await store(MIB);
        const sql = new SQL(schema.url, { max: 1 });
        await sql`DELETE FROM blob_chunks WHERE n = 2`;
        await sql.close();
        const cut = await ask(hub.port(), path, version);
        expect(cut.head).toStartWith("http/1.1 200");
        expect(cut.bytes).toBeGreaterThan(100_000);
        expect(cut.end).toBe("ECONNRESET");
      },
    );
  });
});
