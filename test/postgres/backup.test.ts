/**
 * Backup, restore and doctor of a hub on PostgreSQL by the real commands: the archive is that of a hub on SQLite, and
 * either engine restores it; under load, killed at any moment, from damaged archives and into a database in use.
 */
import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dataDirAt } from "../../src/data-dir.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { migrateWithin } from "../../src/store/postgres/migrate.ts";
import { oldStore } from "../support/old-stores.ts";
import { ArchiveReader } from "../../src/upkeep/archive.ts";
import { must } from "../../src/lib/assert.ts";
import { datedName, openBackup, placeOf } from "../../src/upkeep/backup-target.ts";
import { backUp } from "../../src/upkeep/backup.ts";
import { archivePiece, endOfArchive } from "../../src/upkeep/change-archive.ts";
import { PostgresRows } from "../../src/upkeep/postgres-rows.ts";
import { restore } from "../../src/upkeep/restore.ts";
import { backUpUnderLoad } from "../../tools/torture/backup.ts";
import { ok, pick } from "../api/scene.ts";
import { type Ended, Hub, TempDir, run, withoutProgress } from "../e2e/program.ts";
import { startHub } from "../support/hub.ts";
import { PROGRAM } from "../support/executable.ts";
import { SmallDisk, whyNoSmallDisk } from "../support/small-disk.ts";
import { POSTGRES_MISSING, newSchema, sharedServer } from "../support/postgres.ts";
import { LARGE, WRITES, fill, goesOn, killOften, seen, tablesIn, upload } from "./every-kind.ts";

const reason = POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`;
const suite = POSTGRES_MISSING === null ? describe : describe.skip;
if (POSTGRES_MISSING === null) await sharedServer();

const TOOLS = { clock: systemClock(), onProgress: () => {}, signal: new AbortController().signal };

/** An older version of the schema on SQLite. */

type Schema = Awaited<ReturnType<typeof newSchema>>;

let dir: TempDir;
/** The database of a hub, and one to restore into. */
let from: Schema;
let to: Schema;
let sql: SQL;

/** Runs the program for a hub on PostgreSQL, or on SQLite. */
async function luxhub(args: readonly string[], url: string | null): Promise<Ended> {
  const ended = await run(args, { env: url === null ? {} : { LUXHUB_DATABASE: url } });
  return { ...ended, stderr: withoutProgress(ended.stderr) };
}

async function succeeds(args: readonly string[], url: string | null): Promise<string> {
  const { code, stdout, stderr } = await luxhub(args, url);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

/** The one line that a refused command says. */
async function refusal(args: readonly string[], url: string | null): Promise<string> {
  const { code, stdout, stderr } = await luxhub(args, url);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^luxhub: [^\n]+\n$/);
  return stderr;
}

const writers = async (): Promise<number> => Number((await sql.unsafe(WRITES))[0]?.n);

suite(`a backup of a hub on PostgreSQL${reason}`, () => {
  beforeEach(async () => {
    dir = new TempDir();
    [from, to] = [await newSchema(), await newSchema()];
    sql = new SQL(to.url, { max: 1 });
  });

  afterEach(async () => {
    await sql.close();
    await Promise.all([from.remove(), to.remove()]);
    dir[Symbol.dispose]();
  });

  test("while two hubs write is one snapshot with everything that was acknowledged before it began", async () => {
    const options = { files: 16, fileBytes: 1024 * 1024, warmUpMs: 300, pauseMs: 10 };
    const databases = { from: from.url, to: to.url };
    const report = await backUpUnderLoad({ ...options, databases }, () => {});
    console.log(`backup under load: ${JSON.stringify(report)}`);
    expect(report.faults).toEqual([]);
    // It was under load: writers that stand still prove nothing.
    expect(report.writes.before).toBeGreaterThan(100);
    expect(report.writes.during).toBeGreaterThan(50);
    expect(report.deletedMeanwhile).toBeGreaterThan(0);
    expect(report.memoryMib).toBeLessThan(160);
  });

  test("is restored by either engine, and a backup of SQLite by PostgreSQL", async () => {
    const data = dir.join("data");
    let hub = await startHub({ dataDir: data, database: from.url });
    const scene = await fill(hub);
    const keyed = await ok(hub.admin("/key/add", { name: "ci" }));
    const before = await seen(hub, scene.files);
    const cursor = Number((await ok(hub.get("/events?since=0&limit=1000")))["cursor"]);
    writeFileSync(`${data}/secret`, "a-secret\n");
    const made = await succeeds(["backup", dir.join("a.tar"), "--data", data], from.url); // the hub runs
    expect(made).toMatch(/a\.tar: [\d.]+ MiB, 3 files, as of 2\S+Z\nIt does not contain the secrets/);
    await hub.close();

    const sqlite = dir.join("sqlite");
    await succeeds(["restore", dir.join("a.tar"), "--data", sqlite], null);
    expect(readFileSync(`${sqlite}/secret`, "utf8")).toBe("a-secret\n");
    await succeeds(["backup", dir.join("b.tar"), "--data", sqlite], null);
    hub = await startHub({ dataDir: sqlite, clock: hub.clock });
    expect(await seen(hub, scene.files)).toEqual(before);
    await hub.close();

    const again = dir.join("again");
    mkdirSync(again, { mode: 0o700 });
    writeFileSync(`${again}/secret`, "another\n", { mode: 0o600 });
    const restored = await succeeds(["restore", dir.join("b.tar"), "--data", again], to.url);
    expect(restored).toMatch(/^PostgreSQL: the hub as of 2\S+Z, 3 files\. Start it with: LUXHUB_DATABASE=/);
    expect(restored).toContain(`${again} keeps its own secret: the backup has another.\n`);
    expect(readFileSync(`${again}/secret`, "utf8")).toBe("another\n");
    expect(readdirSync(again).toSorted()).toEqual(["lock", "secret"]);
    const [epochs] = await sql`SELECT min(epoch)::int AS low, max(epoch)::int AS high FROM tasks`;
    expect(epochs.low).toBeGreaterThanOrEqual(2_000_000); // restored twice
    expect(epochs.high).toBeLessThan(2_000_100);
    hub = await startHub({ dataDir: again, database: to.url, clock: hub.clock });
    expect(await seen(hub, scene.files)).toEqual(before);
    await goesOn(hub, scene, cursor, String(keyed["secret"]), 2);
    await hub.close();
    const { stdout } = await luxhub(["doctor", "--data", again], to.url);
    expect(stdout).toMatch(/^ok +database +in PostgreSQL[\s\S]*\nok +files +3, /);
    expect(stdout).not.toMatch(/^BAD +(?!clock)\S/m); // the clock of these tests runs ahead
  });

  test("of SQLite, with what came after it, is restored by PostgreSQL as by SQLite", async () => {
    const [data, place] = [dir.join("data"), placeOf(`${dir.join("place")}/`)];
    await place.list(""); // creates the directory
    let hub = await startHub({ dataDir: data, database: null, backupTo: "x", backupChangesMs: 10_000 });
    await backUp(
      { dir: dataDirAt(data), url: null },
      (entry) => place.target(datedName({ at: Date.now(), entry })),
      "luxhub test",
      TOOLS,
    );
    const scene = await fill(hub);
    const before = await seen(hub, scene.files);
    await hub.close();
    const end = must(await endOfArchive(place, dataDirAt(data)), "the place leads to the log");
    const { signal } = TOOLS;
    expect(await archivePiece(end, dataDirAt(data), place, signal)).toBeGreaterThan(end);
    for (const url of [to.url, null]) {
      const again = dir.join(url === null ? "sqlite" : "again");
      const said = await succeeds(["restore", dir.join("place/"), "--data", again], url);
      expect(said).toContain(", 3 files. Start it with: ");
      hub = await startHub({ dataDir: again, database: url, clock: hub.clock });
      expect(await seen(hub, scene.files)).toEqual(before);
      await hub.close();
    }
  });

  test("names missing and damaged files, has the others, and the doctor finds them", async () => {
    const data = dir.join("data");
    const hub = await startHub({ dataDir: data, database: from.url });
    const files = [
      await upload(hub, "gone", null),
      await upload(hub, LARGE, null), // loses its second chunk
      await upload(hub, "other bytes", null),
      await upload(hub, "whole", null),
    ];
    const [gone = "", cut = "", other = "", whole = ""] = files;
    await hub.close();
    const harm = new SQL(from.url, { max: 1 });
    await harm`DELETE FROM blobs WHERE blob_id = ${gone}`;
    await harm`DELETE FROM blob_chunks WHERE blob_id = ${cut} AND n = 1`;
    await harm`UPDATE blob_chunks SET bytes = 'OTHER bytes' WHERE blob_id = ${other}`;
    await harm.close();
    const made = await luxhub(["backup", dir.join("a.tar"), "--data", data], from.url);
    expect([made.code, made.stderr]).toEqual([
      0,
      `luxhub: the bytes of 3 files are gone or damaged: ${gone}, ${cut}, ${other}\n`,
    ]);
    const ill = await luxhub(["doctor", "--data", data], from.url);
    expect([ill.code, ill.stdout]).toEqual([1, expect.stringContaining(`the bytes of ${gone} are gone`)]);
    expect(ill.stdout).toContain(`the bytes of ${cut}, ${other} are not what was uploaded`);
    expect(ill.stdout).toContain("2 problems");
    expect(readdirSync(data).filter((name) => name.includes("partial"))).toEqual([]);
    for (const url of [to.url, null]) {
      const again = dir.join(url === null ? "sqlite" : "again");
      await succeeds(["restore", dir.join("a.tar"), "--data", again], url);
      const there = await startHub({ dataDir: again, database: url });
      const download = (fileId: string) => fetch(`${there.base()}/api/v1/file/download/${fileId}`);
      expect(await (await download(whole)).text()).toBe("whole");
      expect(await (await download(other)).text()).toBe("OTHER bytes");
      await there.close();
    }
  });

  test("and a restore, killed at any moment, leave nothing that counts, and can be repeated", async () => {
    const data = dir.join("data");
    const hub = await startHub({ dataDir: data, database: from.url });
    const { files } = await fill(hub);
    for (let i = 0; i < 20; i++) files.push(await upload(hub, `${i} ${LARGE.slice(0, 200_000)}`, null));

    const archive = dir.join("hub.tar");
    const unfinished = (): readonly string[] =>
      readdirSync(dir.path).filter((name) => name.startsWith("hub.tar.") || name.startsWith("backup-"));
    const removeUnfinished = (): void => unfinished().forEach((name) => rmSync(dir.join(name)));
    await killOften(["backup", archive, "--data", data], {
      env: { LUXHUB_DATABASE: from.url },
      isUnderWay: () => unfinished().length > 0,
      look: async () => {
        expect(existsSync(archive)).toBe(false);
        expect((await hub.get("/status")).status).toBe(200);
        for (const name of unfinished()) expect(statSync(dir.join(name)).mode & 0o077).toBe(0);
        removeUnfinished();
      },
      undo: () => rmSync(archive),
    });
    // The hub goes on: a message comes back when its recipient has not confirmed it in time.
    let before: unknown;
    let after: unknown = await seen(hub, files);
    do {
      before = after;
      rmSync(archive, { force: true });
      await succeeds(["backup", archive, "--data", data], from.url);
      after = await seen(hub, files);
    } while (!Bun.deepEquals(before, after));
    expect(statSync(archive).mode & 0o777).toBe(0o600);
    expect(unfinished()).toEqual([]);
    await hub.close();

    const again = dir.join("again");
    const args = ["restore", archive, "--data", again];
    await killOften(args, {
      env: { LUXHUB_DATABASE: to.url },
      isUnderWay: () => existsSync(`${again}/.restoring`),
      look: async () => {
        while ((await writers()) > 0) await Bun.sleep(2); // until the server has noticed
        expect(await tablesIn(sql)).toEqual([]);
        const env = { LUXHUB_PORT: "0", LUXHUB_DATABASE: to.url };
        const start = await run(["serve", "--data", again], { env });
        expect([start.code, start.stderr]).toEqual([1, expect.stringContaining("was not finished")]);
        expect(await tablesIn(sql)).toEqual([]);
        rmSync(`${again}/.restoring`, { recursive: true });
      },
      undo: () => to.empty(),
    });
    await succeeds(args, to.url);
    expect(readdirSync(again).toSorted()).toEqual(["backup-lock", "lock"]);
    const restored = await startHub({ dataDir: again, database: to.url, clock: hub.clock });
    expect(await seen(restored, files)).toEqual(before);
    await restored.close();

    const sqlite = dir.join("sqlite");
    await killOften(["restore", archive, "--data", sqlite], {
      isUnderWay: () => existsSync(`${sqlite}/.restoring`),
      look: async () => {
        expect(existsSync(`${sqlite}/luxhub.db`)).toBe(false);
        const start = await run(["serve", "--data", sqlite], { env: { LUXHUB_PORT: "0" } });
        expect([start.code, start.stderr]).toEqual([1, expect.stringContaining("was not finished")]);
        rmSync(sqlite, { recursive: true });
      },
      undo: () => rmSync(sqlite, { recursive: true }),
    });
    await succeeds(["restore", archive, "--data", sqlite], null);
  });

  test("that is cut short, changed or of a newer luxhub leaves the database empty", async () => {
    const data = dir.join("data");
    const hub = await startHub({ dataDir: data, database: from.url });
    const { open } = await fill(hub);
    await ok(hub.post("/task/claim", { task_id: open, node_id: "n2" }));
    await ok(hub.complete(open, "n2"));
    await hub.close();
    const archive = dir.join("hub.tar");
    await succeeds(["backup", archive, "--data", data], from.url);
    const bytes = readFileSync(archive);
    const harmed = dir.join("harmed.tar");
    const again = dir.join("again");
    const says = async (what: Uint8Array): Promise<string> => {
      writeFileSync(harmed, what);
      const place = { dir: dataDirAt(again), url: to.url };
      const error: unknown = await restore(harmed, place, TOOLS).then(
        () => null,
        (reason: unknown) => reason,
      );
      if (!(error instanceof Error)) return "restored";
      expect(error.message).toStartWith(`${harmed} cannot be restored: `);
      expect(await tablesIn(sql)).toEqual([]);
      expect(readdirSync(again)).toEqual(["lock"]);
      return error.message;
    };
    let refused = 0;
    for (let i = 0; i < 10; i++) {
      const flipped = Uint8Array.from(bytes);
      const at = Math.floor(((i + 0.5) / 10) * bytes.length);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << (i % 8));
      if ((await says(flipped)) === "restored") await to.empty();
      else refused++;
    }
    expect(refused).toBeGreaterThan(6); // what is flipped between the files is nobody's
    for (const share of [0.3, 0.9])
      expect(await says(bytes.subarray(0, Math.floor(bytes.length * share)))).toContain("truncated");
    // A member of the archive that a newer luxhub has written.
    const replaced = (text: string, by: string): Uint8Array => {
      const at = bytes.lastIndexOf(text);
      expect(at).toBeGreaterThan(0);
      return Buffer.concat([bytes.subarray(0, at), Buffer.from(by), bytes.subarray(at + text.length)]);
    };
    expect(await says(replaced('"format": 1', '"format": 9'))).toContain(
      "it is of a newer luxhub (format 9, this one knows 1)",
    );
    expect(await says(bytes)).toBe("restored");
  });

  test("is refused without a hub, and a restore into a database in use, in one line without the password", async () => {
    const data = dir.join("data");
    const archive = dir.join("hub.tar");
    const away = "postgres://luxhub:geheim@127.0.0.1:1/luxhub";
    expect(await refusal(["backup", archive, "--data", data], from.url)).toContain(
      "there is no hub in the database",
    );
    for (const words of [["backup", archive], ["restore", archive], ["doctor"]])
      expect(await refusal([...words, "--data", data], away)).toBe(
        "luxhub: PostgreSQL cannot be reached: Failed to connect (127.0.0.1:1/luxhub, of --database or LUXHUB_DATABASE)\n",
      );
    const hub = await startHub({ dataDir: data, database: from.url });
    await succeeds(["backup", archive, "--data", data], from.url);
    expect(await refusal(["backup", archive, "--data", data], from.url)).toContain("already exists");
    expect(await refusal(["restore", archive, "--data", data], to.url)).toContain("using the data directory");
    const other = dir.join("other");
    expect(await refusal(["restore", archive, "--data", other], from.url)).toContain(
      "the database already holds a hub: nothing was done",
    );
    await hub.close();
    expect(await refusal(["restore", archive, "--data", other], from.url)).toContain("already holds a hub");
    expect(await refusal(["restore", dir.join("none.tar"), "--data", other], to.url)).toContain(
      "cannot read",
    );
    expect(await tablesIn(sql)).toEqual([]);
    await sql`CREATE TABLE tasks (of_somebody_else INT)`;
    expect(await refusal(["restore", archive, "--data", other], to.url)).toContain(
      'relation "tasks" already exists',
    );
    expect(await tablesIn(sql)).toEqual(["tasks"]);
    expect(readdirSync(other)).toEqual(["lock"]);
  });

  test("to a full disk, and a restore into a full database, are refused in one line and leave nothing", async () => {
    const data = dir.join("data");
    const hub = await startHub({ dataDir: data, database: from.url });
    await fill(hub);
    await hub.close();
    const archive = dir.join("hub.tar");
    await succeeds(["backup", archive, "--data", data], from.url);

    // Stands for a full disk of the server. A database of its own, because the trigger is for all schemas of one.
    const name = `luxhub_full_${process.pid}`;
    const server = new SQL(await sharedServer(), { max: 1 });
    await server.unsafe(`CREATE DATABASE ${name}`);
    const full = new URL(await sharedServer());
    full.pathname = `/${name}`;
    const inFull = new SQL(full.href, { max: 1 });
    await inFull.unsafe(`CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$;
      CREATE EVENT TRIGGER refuse ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION refuse()`);
    expect(await refusal(["restore", archive, "--data", dir.join("again")], full.href)).toBe(
      "luxhub: the disk of the database is full: make room, then run it again\n",
    );
    expect(await tablesIn(inFull)).toEqual([]);
    expect(readdirSync(dir.join("again"))).toEqual(["lock"]);
    await inFull.close();
    await server.unsafe(`DROP DATABASE ${name}`);
    await server.close();

    const why = await whyNoSmallDisk(dir.join("try"));
    if (why !== null) return console.log(`left out, a backup to a full disk: ${why}`);
    await using disk = await SmallDisk.mount(dir.join("disk"));
    const entries = new ArchiveReader(openBackup(archive));
    const rowsBytes = (await entries.next())?.header.size ?? 0;
    await entries.close();
    // There is no room for the rows, and then for those, and for those in the archive, but not for the files.
    for (const left of [0, 2 * rowsBytes + LARGE.length / 2]) {
      disk.free();
      disk.fill(left);
      const ended = await run(["backup", dir.join("disk", "hub.tar"), "--data", data], {
        command: disk.command(PROGRAM),
        env: { LUXHUB_DATABASE: from.url },
      });
      expect([ended.code, withoutProgress(ended.stderr)]).toEqual([
        1,
        `luxhub: cannot write ${dir.join("disk", "hub.tar")}: no space left on device\n`,
      ]);
      expect(readdirSync(disk.inside(disk.path))).toEqual(["ballast"]);
    }
  });

  test("of an older luxhub on SQLite is migrated first", async () => {
    const data = dir.join("data");
    mkdirSync(data, { mode: 0o700 });
    const old = new Database(`${data}/luxhub.db`);
    old.run(`${oldStore("0.1.0.sqlite")}; DELETE FROM files`); // whose bytes are not there
    old.close();
    await succeeds(["backup", dir.join("hub.tar"), "--data", data], null);
    await succeeds(["restore", dir.join("hub.tar"), "--data", dir.join("again")], to.url);
    const hub = await startHub({ dataDir: dir.join("again"), database: to.url });
    const events = await ok(hub.get("/events?since=0&limit=2"));
    expect(pick(events, "events", "kind")).toEqual(["hub.started", "node.registered"]);
    await hub.close();
  });

  test("keeps migrations off while it is read, and a restore keeps off hubs that start", async () => {
    const hub = await startHub({ dataDir: dir.join("data"), database: from.url });
    const alter = new SQL(from.url, { max: 1 });
    await alter.unsafe("SET lock_timeout = '20ms'");
    const rows = await PostgresRows.snapshot(from.url);
    await ok(hub.post("/node/register", { node_id: "a", name: "A" })); // hubs write
    const altering = alter.unsafe("ALTER TABLE tasks ADD COLUMN of_a_newer_luxhub INT");
    expect(await altering.catch(String)).toContain("lock timeout");
    await rows.close();
    await hub.close();
    await alter.close();

    const writing = await PostgresRows.intoEmpty(to.url);
    await sql.unsafe("SET lock_timeout = '20ms'");
    const starting = sql.begin((tx) => migrateWithin(tx));
    expect(await starting.catch(String)).toContain("a restore or a move into the database is running");
    await writing.close();
    expect(await tablesIn(sql)).toEqual([]);
  });

  test("goes through a pipe into another database", async () => {
    const data = dir.join("data");
    const hub = await startHub({ dataDir: data, database: from.url });
    const { files } = await fill(hub);
    const before = await seen(hub, files);
    await hub.close();
    const program = PROGRAM.map((word) => `'${word}'`).join(" ");
    const [a, b] = [`LUXHUB_DATABASE='${from.url}' ${program}`, `LUXHUB_DATABASE='${to.url}' ${program}`];
    const line = `${a} backup - --data '${data}' | ${b} restore - --data '${dir.join("again")}'`;
    const piped = Bun.spawn(["sh", "-c", line], { cwd: dir.path, stdout: "pipe", stderr: "ignore" });
    expect(await piped.stdout.text()).toContain("PostgreSQL: the hub as of");
    expect(await piped.exited).toBe(0);
    const again = await startHub({ dataDir: dir.join("again"), database: to.url, clock: hub.clock });
    expect(await seen(again, files)).toEqual(before);
    await again.close();
  });

  test("is made by one of two hubs at a time, by schedule, and each hub goes on", async () => {
    const place = dir.join("backups");
    const args = ["--backup-to", place, "--backup-every", "1s", "--backup-keep", "3"];
    const env = { LUXHUB_DATABASE: from.url };
    await using one = await Hub.start({ data: dir.join("one"), args, env });
    await using two = await Hub.start({ data: dir.join("two"), args, env });
    const made = (): number => `${one.program.stdout}${two.program.stdout}`.split("backup made").length - 1;
    while (made() < 4) await Bun.sleep(20);
    expect([(await one.stop()).code, (await two.stop()).code]).toEqual([0, 0]);
    expect(`${one.program.stdout}${two.program.stdout}`).not.toContain("backup failed");
    const names = readdirSync(place);
    expect(names.filter((name) => !/^luxhub-\d{8}T\d{6}Z\.tar$/.test(name))).toEqual([]);
    const newest = `${place}/${names.toSorted().at(-1)}`;
    const entries = new ArchiveReader(openBackup(newest));
    expect((await entries.next())?.header.name).toBe("luxhub.db");
    await entries.close();
    await succeeds(["restore", newest, "--data", dir.join("again")], to.url);
  });
});
