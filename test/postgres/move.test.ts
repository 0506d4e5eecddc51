/**
 * Moves a hub with rows of every kind from SQLite into PostgreSQL and back by the real command: its callers see the same
 * and can continue. A killed move can be repeated, and a move that would overwrite something is refused.
 */
import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { makeDataDir } from "../../src/data-dir.ts";
import { hashOfEntry } from "../../src/domain/lux.ts";
import { must } from "../../src/lib/assert.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { POSTGRES_SCHEMA } from "../../src/store/postgres/schema.ts";
import { openPostgres } from "../../src/store/postgres/engine.ts";
import { compareNoMore } from "../support/new-database.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { type Moved, moveFromPostgres, moveToPostgres } from "../../src/upkeep/move.ts";
import {
  DERIVED_TABLES,
  OTHER_POSTGRES_TABLES,
  OTHER_SQLITE_TABLES,
  TABLES,
} from "../../src/upkeep/tables.ts";
import { ok, pick } from "../api/scene.ts";
import { type Ended, Hub, TempDir, run } from "../e2e/program.ts";
import { TestClock, startHub } from "../support/hub.ts";
import { POSTGRES_MISSING, newSchema, sharedServer } from "../support/postgres.ts";
import { LARGE, WRITES, fill, goesOn, killOften, seen, tablesIn, upload } from "./every-kind.ts";

const reason = POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`;
const suite = POSTGRES_MISSING === null ? describe : describe.skip;
if (POSTGRES_MISSING === null) await sharedServer();

/** An odd number of micro-LUX past what a number of JavaScript holds exactly. */
const BIG = 4_503_599_627_370_496_001n;

/** Adds a sign-in of the node `big` to the ledger and its hash chain. */
function enterSignin(db: Database, id: string, n: bigint, at: number): void {
  const newest = "SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1";
  const head = must(db.query<{ seq: number; hash: string }, []>(newest).get(), "the hub has paid before");
  const seq = head.seq + 1;
  const what = { id, amountMicro: Number(BIG), kind: "signin", taskId: null, at } as const;
  const hash = hashOfEntry({ ...what, seq, from: "treasury", to: "node:big" }, head.hash);
  db.run(
    `INSERT INTO ledger VALUES (${seq}, '${id}', NULL, NULL, 'big', ${n}, ${BIG}, ${n * BIG}, 'signin', NULL, ${at},
      '${hash}')`,
  );
}

let dir: TempDir;
let schema: Awaited<ReturnType<typeof newSchema>>;
let sql: SQL;

/** What a hub on PostgreSQL says of the database that a move has left. */
const UNUSED = "this hub is on PostgreSQL and does not use the SQLite database in its data directory";

/** What a move that takes longer than some seconds says meanwhile. */
const PROGRESS = /^(?:checking|copying|comparing) .*\n/gm;

/** Its standard error is without the progress. */
async function move(direction: "to" | "from", data: string, url = schema.url): Promise<Ended> {
  const env = { LUXHUB_DATABASE: url };
  const ended = await run(["move", `--${direction}`, "postgres", "--data", data], { env });
  return { ...ended, stderr: ended.stderr.replace(PROGRESS, "") };
}

/** The one line that a refused move says. */
async function refusal(ending: Promise<Ended>): Promise<string> {
  const { code, stdout, stderr } = await ending;
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  const lines = stderr.trimEnd().split("\n");
  expect(lines).toHaveLength(1);
  return lines[0] ?? "";
}

const TOOLS = { clock: systemClock(), onProgress: () => {}, signal: new AbortController().signal };

/** A move in this process. */
async function moveHere(direction: "to" | "from", data: string): Promise<Moved> {
  return direction === "to"
    ? moveToPostgres(makeDataDir(data), schema.url, TOOLS)
    : moveFromPostgres(data, schema.url, TOOLS);
}

/** Why a move in this process is refused, as the command says it behind its own name. */
async function refusalHere(direction: "to" | "from", data: string): Promise<string> {
  const error: unknown = await moveHere(direction, data).then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof Error)) throw new Error("it was not refused");
  expect(error.message).not.toContain("\n");
  return error.message;
}

async function number(text: string): Promise<number> {
  return Number((await sql.unsafe(text))[0]?.n);
}

suite(`luxhub move${reason}`, () => {
  beforeEach(async () => {
    dir = new TempDir();
    schema = await newSchema();
    sql = new SQL(schema.url, { max: 1 });
  });

  afterEach(async () => {
    await sql.close();
    await schema.remove();
    dir[Symbol.dispose]();
  });

  test("carries every table and column that both engines have", async () => {
    const store = await openPostgres(schema.url, systemClock(), () => {});
    await store.close();
    await openSqlite(dir.join("db"), () => {}).close();
    const db = new Database(dir.join("db"), { readonly: true });
    const there: readonly { t: string; c: string }[] =
      await sql`SELECT table_name AS t, column_name AS c FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
        WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'`;
    const columns = (name: string): string[] =>
      there
        .filter(({ t }) => t === name)
        .map(({ c }) => c)
        .toSorted();
    const tables = TABLES.map(({ name }) => name).toSorted();
    const here = db.query("SELECT name FROM sqlite_schema WHERE type = 'table'").values().flat().map(String);
    expect(here.toSorted()).toEqual([...tables, ...DERIVED_TABLES, ...OTHER_SQLITE_TABLES].toSorted());
    const inPostgres = new Set(there.map(({ t }) => t));
    expect([...inPostgres].toSorted()).toEqual(
      [...tables, ...DERIVED_TABLES, ...OTHER_POSTGRES_TABLES].toSorted(),
    );
    for (const { name, key } of TABLES) {
      const info = db
        .query<{ name: string; pk: number }, [string]>("SELECT name, pk FROM pragma_table_info(?)")
        .all(name);
      expect(columns(name)).toEqual(info.map((column) => column.name).toSorted());
      const primary = info.filter(({ pk }) => pk > 0).toSorted((a, b) => a.pk - b.pk);
      expect([...key]).toEqual(primary.map((column) => column.name));
    }
    db.close();
  });

  test("a hub with rows of every kind is the same there and back, and continues", async () => {
    const data = dir.join("data");
    const clock = new TestClock();
    let hub = await startHub({ dataDir: data, clock });
    const scene = await fill(hub);
    const keyed = await ok(hub.admin("/key/add", { name: "ci", variant: "B" }));
    await ok(hub.admin("/key/add", { name: "gone" }));
    await ok(hub.admin("/key/revoke", { name: "gone" }));
    await ok(hub.admin("/key/add", { name: "short", expires_in_s: 3_600 }));
    await hub.close();
    // As no caller gets there, but the columns hold it.
    const db = new Database(data + "/luxhub.db");
    compareNoMore(db.filename);
    enterSignin(db, "e1", 1n, 86_400_000);
    enterSignin(db, "e2", 2n, 172_800_001);
    db.run("UPDATE events SET verified = id % 2");
    db.run("UPDATE messages SET verified = seq % 2");
    db.run("UPDATE tasks SET result_verified = 1 WHERE status = 'completed'");
    db.close();

    hub = await startHub({ dataDir: data, clock });
    const before = await seen(hub, scene.files);
    const cursor = Number((await ok(hub.get("/events?since=0&limit=1000")))["cursor"]);
    await hub.close();
    const ended = new Database(data + "/luxhub.db");
    ended.run(
      "INSERT INTO settlements SELECT task_id, 'completed' FROM tasks WHERE status = 'completed' LIMIT 1",
    );
    ended.run("INSERT INTO group_endings VALUES ('moved')");
    ended.run("INSERT INTO family_checks VALUES ('moved')");
    ended.run("INSERT INTO periods VALUES (600000, 0, '{}')");
    ended.close();
    const moved = await move("to", data);
    expect(moved).toMatchObject({ code: 0, stderr: "" });
    for (const { name } of TABLES) expect(moved.stdout).toMatch(new RegExp(`^${name} +[1-9]`, "m")); // none is empty
    expect(moved.stdout).toMatch(
      /\ndeliveries +\d+\n[\s\S]*\n3 files, \d+\.\d KiB; [\d.]+ LUX in the ledger;/,
    );
    const [balance] = await sql`SELECT max(balance_micro)::text AS n FROM ledger WHERE node_id = 'big'`;
    expect(balance.n).toBe(String(2n * BIG));
    expect(await refusal(move("to", data))).toContain("is in PostgreSQL already: nothing was done");
    // What a move leaves that is killed before it has renamed all: nothing takes the old state for the hub's.
    const names = readdirSync(data).filter((name) => name.startsWith("luxhub.db.moved"));
    expect(names).toEqual(["luxhub.db.moved"]);
    for (const isRenamed of [true, false]) {
      if (!isRenamed) renameSync(`${data}/luxhub.db.moved`, `${data}/luxhub.db`);
      for (const args of [
        ["keys", "list"],
        ["keys", "revoke", "k1"],
        ["keys", "add", "k9"],
        ["backup", dir.join("stale.tar")],
        ["doctor"],
        ["serve"],
      ])
        expect([args, (await run([...args, "--data", data], { env: { LUXHUB_PORT: "0" } })).code]).toEqual([
          args,
          5,
        ]);
    }
    expect(existsSync(dir.join("stale.tar"))).toBe(false);
    expect(await refusal(move("to", data))).toContain(
      "the database already holds this hub: nothing was done",
    );
    const listed = await run(["keys", "list", "--data", data], { env: { LUXHUB_DATABASE: schema.url } });
    expect(listed.code).toBe(0);

    hub = await startHub({ dataDir: data, database: schema.url, clock });
    expect(await seen(hub, scene.files)).toEqual(before);
    await goesOn(hub, scene, cursor, String(keyed["secret"]));
    expect(await refusalHere("to", data)).toContain("using the data directory");
    expect(await refusalHere("from", dir.join("other"))).toContain("a hub is running on the database");
    const then = await seen(hub, scene.files);
    await hub.close();
    expect(hub.logged.join("")).toContain(UNUSED);

    expect(await refusalHere("from", data)).toMatch(/luxhub\.db already exists: move it away first/);
    renameSync(data + "/luxhub.db", data + "/luxhub.db.before");
    expect(await move("from", data)).toMatchObject({ code: 0, stderr: "" });
    expect((await run(["keys", "list", "--data", data])).code).toBe(0);
    expect(await problems(data)).toEqual([]);
    hub = await startHub({ dataDir: data, clock });
    expect(await seen(hub, scene.files)).toEqual(then);
    const task = await hub.addTask({ title: "the next" });
    await ok(hub.post("/task/claim", { task_id: task, node_id: "n1" }));
    await hub.send("n1", "n2");
    const ids = pick(await ok(hub.get(`/events?since=${cursor}&limit=1000`)), "events", "id").map(Number);
    expect(ids).toEqual(ids.map((_, i) => cursor + 1 + i));
    await hub.close();
  });

  test("a hub on PostgreSQL marks its directory, in which an old SQLite database may be", async () => {
    const data = dir.join("data");
    await (await startHub({ dataDir: data })).close();
    const keys = (env = {}): Promise<Ended> => run(["keys", "add", "k", "--data", data], { env });
    expect((await keys()).code).toBe(0);
    expect((await keys({ LUXHUB_DATABASE: schema.url })).code).toBe(5); // it is on SQLite
    await using hub = await Hub.start({ data, env: { LUXHUB_DATABASE: schema.url } });
    expect((await keys()).code).toBe(5);
    await hub.stop();
    expect((await keys()).code).toBe(5);
  });

  test("a move killed anywhere leaves no hub on the target, and can be repeated with the same result", async () => {
    const data = dir.join("data");
    const hub = await startHub({ dataDir: data });
    const { files } = await fill(hub);
    for (let i = 0; i < 20; i++) files.push(await upload(hub, `${i} ${LARGE.slice(0, 200_000)}`, null));
    const before = await seen(hub, files);
    await hub.close();
    const env = { LUXHUB_DATABASE: schema.url };

    await killOften(["move", "--to", "postgres", "--data", data], {
      env,
      isUnderWay: async () => (await number(WRITES)) > 0,
      look: async () => {
        while ((await number(WRITES)) > 0) await Bun.sleep(2); // until the server has noticed
        expect(await tablesIn(sql)).toEqual([]);
      },
      undo: () => schema.empty(),
    });
    await moveHere("to", data);
    const there = await startHub({ dataDir: data, database: schema.url, clock: hub.clock });
    expect(await seen(there, files)).toEqual(before);
    await there.close();

    const back = dir.join("back");
    await killOften(["move", "--from", "postgres", "--data", back], {
      env,
      isUnderWay: () => existsSync(`${back}/.restoring`),
      look: async () => {
        expect(existsSync(`${back}/luxhub.db`)).toBe(false);
        const start = run(["serve", "--data", back], { env: { LUXHUB_PORT: "0" } });
        expect(await refusal(start)).toContain("a restore or a move into");
      },
      undo: () => rmSync(back, { recursive: true, force: true }),
    });
    await moveHere("from", back);
    const names = readdirSync(back).filter((name) => !name.endsWith("lock")); // of the hub that did not start, too
    expect(names.toSorted()).toEqual(["files", "luxhub.db"]);
    expect(readdirSync(`${back}/files`)).not.toContain(".partial");
    const here = await startHub({ dataDir: back, clock: hub.clock });
    expect(await seen(here, files)).toEqual(before);
    await here.close();
    expect(await problems(back)).toEqual([]);
  });

  test("of two concurrent moves one fills the database, and the other is refused", async () => {
    const [data, other] = [dir.join("data"), dir.join("other")];
    for (const path of [data, other]) {
      const hub = await startHub({ dataDir: path });
      await fill(hub);
      await hub.close();
    }
    for (const second of [data, other]) {
      const both = await Promise.all([move("to", data), move("to", second)]);
      for (const path of [data, other])
        if (existsSync(`${path}/luxhub.db.moved`)) renameSync(`${path}/luxhub.db.moved`, `${path}/luxhub.db`);
      expect(both.map(({ code }) => code).toSorted()).toEqual([0, 1]);
      expect(both.find(({ code }) => code === 1)?.stderr).toMatch(
        second === data
          ? /another luxhub is using the data|this hub|in PostgreSQL already/
          : /holds a hub|another luxhub is using the database/,
      );
      await schema.empty();
    }
  });

  test("a refusal is one line with the reason and without the password, and changes nothing", async () => {
    const data = dir.join("data");
    const hub = await startHub({ dataDir: data });
    const { files } = await fill(hub);
    await hub.close();
    const snapshot = readFileSync(`${data}/luxhub.db`).toBase64();
    const away = "postgres://luxhub:geheim@127.0.0.1:1/luxhub";
    expect(await refusal(move("to", data, away))).toBe(
      "luxhub: PostgreSQL cannot be reached: Failed to connect (127.0.0.1:1/luxhub, of --database or LUXHUB_DATABASE)",
    );
    expect(await refusalHere("to", dir.join("nothing"))).toContain("is not there");
    expect(await refusalHere("from", dir.join("other"))).toContain("there is no hub in the database");
    expect(readdirSync(dir.join("other"))).toEqual(["lock"]);
    const wrong = await run(["move", "--to", "postgres:/luxhub:geheim@x", "--data", data]);
    expect([wrong.code, wrong.stderr.includes("geheim")]).toEqual([2, false]);

    // Another hub's, with something in it.
    const other = await startHub({ dataDir: dir.join("another"), database: schema.url });
    await other.close();
    expect(await refusalHere("to", data)).toContain("the database already holds a hub: nothing was done");
    expect(await number("SELECT count(*) AS n FROM events")).toBe(1);
    await sql.unsafe("UPDATE schema_version SET version = version + 1");
    expect(await refusalHere("from", dir.join("other"))).toContain("use the one that the hubs run");
    await sql.unsafe("UPDATE schema_version SET version = 1");
    await sql.unsafe("UPDATE turn SET until = '-infinity'");
    if (POSTGRES_SCHEMA.version > 1)
      expect(await refusalHere("from", dir.join("other"))).toContain("use the one that the hubs run");
    await schema.empty();

    // Bytes that are gone.
    const path = `${data}/files/${files[0]?.slice(-2)}/${files[0]}`;
    const bytes = readFileSync(path);
    for (const bad of [bytes.subarray(1), Buffer.from(bytes).fill(0, 0, 1)]) {
      writeFileSync(path, bad);
      expect(await refusalHere("to", data)).toContain(`the bytes of ${files[0]} are gone or not what was`);
    }
    writeFileSync(path, bytes);
    expect(await tablesIn(sql)).toEqual([]);
    expect((await moveHere("to", data)).files).toBe(3);
    expect(readFileSync(`${data}/luxhub.db.moved`).toBase64()).toBe(snapshot);
    renameSync(`${data}/luxhub.db.moved`, `${data}/luxhub.db`);
    await schema.empty();

    // Rows that do not agree, another schema, a file that is no database.
    const db = new Database(`${data}/luxhub.db`);
    db.run("UPDATE ledger SET balance_micro = balance_micro + 1");
    expect(await refusalHere("to", data)).toContain("the rows do not agree: node n1: entry 1 says");
    db.run("UPDATE ledger SET balance_micro = balance_micro - 1");
    db.run("PRAGMA user_version = 99");
    expect(await refusalHere("to", data)).toContain("is of a newer luxhub (schema 99");
    db.close();
    writeFileSync(`${data}/luxhub.db`, "no database, but long enough to be looked at".repeat(100));
    expect(await refusalHere("to", data)).toContain("luxhub.db is damaged: ");
    expect(await tablesIn(sql)).toEqual([]);
  });
});

/** What the doctor finds; but not that the clock of these tests runs ahead. */
async function problems(data: string): Promise<readonly string[]> {
  const { stdout } = await run(["doctor", "--data", data]);
  return stdout.split("\n").filter((line) => /^BAD +(?!clock)\S/.test(line));
}
