/** Large files through real hubs on one PostgreSQL: a file uploaded at one is read at another, and memory stays flat. */
import { SQL } from "bun";
import { describe, expect, test } from "bun:test";
import { MIB } from "../e2e/large-file.ts";
import { Hub, TempDir, until } from "../e2e/program.ts";
import { RawConnection, uploadOf } from "../e2e/raw.ts";
import { POSTGRES_MISSING, newSchema, sharedServer } from "../support/postgres.ts";
import { GREW_MAX_MIB, measureLargeFile } from "../torture/large-files.ts";

/** More than the memory may grow by; the torture sends 1 GiB. */
const FILE_MIB = 128;

const reason = POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`;
const suite = POSTGRES_MISSING === null ? describe : describe.skip;
if (POSTGRES_MISSING === null) await sharedServer();

suite(`files in PostgreSQL${reason}`, () => {
  const start = (dir: TempDir, name: string, url: string): Promise<Hub> =>
    Hub.start({ data: dir.join(name), env: { LUXHUB_DATABASE: url } });

  test.skipIf(process.platform !== "linux")(
    `${FILE_MIB} MiB up at one hub and down at another leave the memory of both where it was`,
    async () => {
      using dir = new TempDir();
      const { url, remove } = await newSchema();
      await using a = await start(dir, "a", url);
      await using b = await start(dir, "b", url);
      const { isSame, grewMib } = await measureLargeFile([a, b], FILE_MIB);
      expect(isSame).toBe(true);
      expect(grewMib).toBeLessThan(GREW_MAX_MIB);
      await remove();
    },
  );

  test("an aborted upload leaves nothing; one of a killed hub is swept after no hub has touched it for a minute", async () => {
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
  });
});
