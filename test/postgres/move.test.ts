/**
 * Moves a hub with rows of every kind from SQLite into PostgreSQL and back by the real command: its callers see the same
 * and can continue. A killed move can be repeated, and a move that would overwrite something is refused.
 */
import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { ACK_LEASE_MS } from "../../src/domain/limits.ts";
import { makeDataDir } from "../../src/data-dir.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { POSTGRES_MIGRATIONS } from "../../src/store/postgres/migrations.ts";
import { openPostgres } from "../../src/store/postgres/engine.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { type Moved, moveFromPostgres, moveToPostgres } from "../../src/upkeep/move.ts";
import { DERIVED_TABLES, OTHER_POSTGRES_TABLES, TABLES } from "../../src/upkeep/tables.ts";
import {
  addNode,
  addNodes,
  addTask,
  addTaskOf,
  complete,
  list,
  nodeOf,
  ok,
  pick,
  receive,
  send,
} from "../api/scene.ts";
import { type Ended, Program, TempDir, run } from "../e2e/program.ts";
import { TestClock, type TestHub, startHub } from "../support/hub.ts";
import { POSTGRES_MISSING, newSchema, sharedServer } from "../support/postgres.ts";

const reason = POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`;
const suite = POSTGRES_MISSING === null ? describe : describe.skip;
if (POSTGRES_MISSING === null) await sharedServer();

/** Bytes that no compression makes small, over several chunks and ending within one. */
const LARGE = crypto.getRandomValues(new Uint8Array(60_000)).toHex().repeat(6);

/** An odd number of micro-LUX past what a number of JavaScript holds exactly. */
const BIG = 4_503_599_627_370_496_001n;

let dir: TempDir;
let schema: Awaited<ReturnType<typeof newSchema>>;
let sql: SQL;

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

async function upload(hub: TestHub, text: string, taskId: string | null): Promise<string> {
  const form = new FormData();
  form.set("file", new File([text], "näme.bin"));
  form.set("node_id", "n1");
  if (taskId !== null) form.set("task_id", taskId);
  return String((await ok(hub.post("/file/upload", form)))["file_id"]);
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
      await sql`SELECT table_name AS t, column_name AS c FROM information_schema.columns WHERE table_schema = current_schema()`;
    const columns = (name: string): string[] =>
      there
        .filter(({ t }) => t === name)
        .map(({ c }) => c)
        .toSorted();
    const tables = TABLES.map(({ name }) => name).toSorted();
    const here = db.query("SELECT name FROM sqlite_schema WHERE type = 'table'").values().flat().map(String);
    expect(here.toSorted()).toEqual([...tables, ...DERIVED_TABLES].toSorted());
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
    db.run(`INSERT INTO ledger VALUES ('e1', 'big', 1, ${BIG}, ${BIG}, 'signin', NULL, 86400000),
      ('e2', 'big', 2, ${BIG}, ${2n * BIG}, 'signin', NULL, 172800001)`);
    db.run("UPDATE events SET verified = id % 2");
    db.run("UPDATE messages SET verified = seq % 2");
    db.run("UPDATE tasks SET result_verified = 1 WHERE status = 'completed'");
    db.close();

    hub = await startHub({ dataDir: data, clock });
    const before = await seen(hub, scene.files);
    const cursor = Number((await ok(hub.get("/events?since=0&limit=1000")))["cursor"]);
    await hub.close();
    const moved = await move("to", data);
    expect(moved).toMatchObject({ code: 0, stderr: "" });
    expect(moved.stdout).toMatch(
      /\ndeliveries +\d+\n[\s\S]*\n3 files, \d+\.\d KiB; [\d.]+ LUX in the ledger;/,
    );
    const [balance] = await sql`SELECT max(balance_micro)::text AS n FROM ledger WHERE node_id = 'big'`;
    expect(balance.n).toBe(String(2n * BIG));
    const again = await move("to", data);
    expect(again).toMatchObject({ code: 0, stderr: "" });
    expect(again.stdout).toContain("was in PostgreSQL already");

    hub = await startHub({ dataDir: data, database: schema.url, clock });
    expect(await seen(hub, scene.files)).toEqual(before);
    await goesOn(hub, scene, cursor, String(keyed["secret"]));
    expect(await refusalHere("to", data)).toContain("using the data directory");
    expect(await refusalHere("from", dir.join("other"))).toContain("a hub is running on the database");
    const then = await seen(hub, scene.files);
    await hub.close();

    expect(await refusalHere("to", data)).toContain("one of the two has changed since (");
    expect(await refusalHere("from", data)).toMatch(/luxhub\.db already exists, and one of the two has/);
    renameSync(data + "/luxhub.db", data + "/luxhub.db.before");
    expect(await move("from", data)).toMatchObject({ code: 0, stderr: "" });
    expect((await move("from", data)).stdout).toContain("already; nothing was done");
    expect(await problems(data)).toEqual([]);
    hub = await startHub({ dataDir: data, clock });
    expect(await seen(hub, scene.files)).toEqual(then);
    const task = await addTask(hub, { title: "the next" });
    await ok(hub.post("/task/claim", { task_id: task, node_id: "n1" }));
    await send(hub, "n1", "n2");
    const ids = pick(await ok(hub.get(`/events?since=${cursor}&limit=1000`)), "events", "id").map(Number);
    expect(ids).toEqual(ids.map((_, i) => cursor + 1 + i));
    await hub.close();
  });

  test("a move killed anywhere can be repeated with the same result; until then no hub starts", async () => {
    const data = dir.join("data");
    const hub = await startHub({ dataDir: data });
    const { files } = await fill(hub);
    for (let i = 0; i < 20; i++) files.push(await upload(hub, `${i} ${LARGE.slice(0, 200_000)}`, null));
    const before = await seen(hub, files);
    await hub.close();

    const blobs = (): Promise<number> => number("SELECT count(*) AS n FROM blobs").catch(() => 0);
    await killOften("to", data, {
      carried: blobs,
      once: async () => {
        expect(await refusedStart(data, schema.url)).toContain("a move into this database was not finished");
        expect(await refusalHere("from", dir.join("other"))).toContain(
          "was not finished: run luxhub move --to",
        );
      },
      undo: empty,
    });
    await moveHere("to", data);
    const there = await startHub({ dataDir: data, database: schema.url });
    expect(await seen(there, files)).toEqual(before);
    await there.close();

    const back = dir.join("back");
    const glob = new Bun.Glob("back/files/??/*");
    const copied = (): number => [...glob.scanSync({ cwd: dir.path })].length;
    await killOften("from", back, {
      carried: copied,
      once: async () => {
        expect(await refusedStart(back, null)).toContain("was not finished: run luxhub move --from again");
        expect(await refusalHere("to", back)).toContain("was not finished: run luxhub move --from again");
      },
      undo: () => rmSync(back, { recursive: true, force: true }),
    });
    await moveHere("from", back);
    expect(readdirSync(back).filter((name) => name.startsWith("luxhub.db"))).toEqual(["luxhub.db"]);
    expect(readdirSync(`${back}/files/.partial`)).toEqual([]);
    const here = await startHub({ dataDir: back });
    expect(await seen(here, files)).toEqual(before);
    await here.close();
    expect(await problems(back)).toEqual([]);
  });

  test("of two concurrent moves one fills the database, and the other finds it filled or is refused", async () => {
    const [data, other] = [dir.join("data"), dir.join("other")];
    for (const path of [data, other]) {
      const hub = await startHub({ dataDir: path });
      await fill(hub);
      await hub.close();
    }
    const same = await Promise.all([move("to", data), move("to", data)]);
    const words = same.map(
      ({ stdout, stderr }) => /is in PostgreSQL now|already|running on|using/.exec(stdout + stderr)?.[0],
    );
    expect(words.filter((word) => word === "is in PostgreSQL now")).toHaveLength(1);
    expect(words).not.toContain(undefined);
    await empty();
    const both = await Promise.all([move("to", data), move("to", other)]);
    expect(both.map(({ code }) => code).toSorted()).toEqual([0, 1]);
    expect(both.find(({ code }) => code === 1)?.stderr).toMatch(/another hub|another luxhub is using/);
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
    expect(await refusalHere("to", dir.join("nothing"))).toContain("there is no hub in ");
    expect(await refusalHere("from", dir.join("other"))).toBe("there is no hub in the database");
    expect(existsSync(dir.join("other", "luxhub.db.moving"))).toBe(false);
    const wrong = await run(["move", "--to", "postgres:/luxhub:geheim@x", "--data", data]);
    expect([wrong.code, wrong.stderr.includes("geheim")]).toEqual([2, false]);

    // Another hub's, with something in it.
    const other = await startHub({ dataDir: dir.join("another"), database: schema.url });
    await other.close();
    expect(await refusalHere("to", data)).toContain("the database holds another hub; name an empty");
    expect(await number("SELECT count(*) AS n FROM events")).toBe(1);
    await sql.unsafe("UPDATE schema_version SET version = version + 1");
    expect(await refusalHere("from", dir.join("other"))).toContain("the database is of a newer luxhub");
    await sql.unsafe("UPDATE schema_version SET version = 1");
    await sql.unsafe("UPDATE turn SET until = '-infinity'");
    if (POSTGRES_MIGRATIONS.length > 1)
      expect(await refusalHere("from", dir.join("other"))).toContain("the database is of an older luxhub");
    await empty();

    // Bytes that are gone: everything else is carried first.
    const path = `${data}/files/${files[0]?.slice(-2)}/${files[0]}`;
    const bytes = readFileSync(path);
    for (const bad of [bytes.subarray(1), Buffer.from(bytes).fill(0, 0, 1)]) {
      writeFileSync(path, bad);
      expect(await refusalHere("to", data)).toContain(`the bytes of ${files[0]} are gone or not what was`);
    }
    expect(await number("SELECT count(*) AS n FROM blobs WHERE size_bytes IS NOT NULL")).toBe(2);
    writeFileSync(path, bytes);
    expect((await moveHere("to", data)).files).toMatchObject({ found: 2 });
    expect(readFileSync(`${data}/luxhub.db`).toBase64()).toBe(snapshot);
    await empty();

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
    expect(await number("SELECT count(*) AS n FROM pg_class WHERE relname = 'moving'")).toBe(0);
  });
});

/** What the doctor finds; but not that the clock of these tests runs ahead. */
async function problems(data: string): Promise<readonly string[]> {
  const { stdout } = await run(["doctor", "--data", data]);
  return stdout.split("\n").filter((line) => /^BAD +(?!clock)\S/.test(line));
}

/** The schema as it was in the beginning. */
async function empty(): Promise<void> {
  const [row] = await sql`SELECT current_schema() AS name`;
  await sql.unsafe(`DROP SCHEMA ${row.name} CASCADE; CREATE SCHEMA ${row.name}`);
}

type Killed = {
  readonly carried: () => Promise<number> | number;
  /** Looks at what the first leaves. */
  readonly once: () => Promise<void>;
  /** Removes all that it has carried: on a busy machine it may be done before it can be killed. */
  readonly undo: () => Promise<void> | void;
};

/** Kills two moves, each a little after it has carried some more files. */
async function killOften(
  direction: "to" | "from",
  data: string,
  { carried, once, undo }: Killed,
): Promise<void> {
  /** Says whether it was killed: it may have ended before. */
  const kill = async (files: number): Promise<boolean> => {
    const words = ["move", `--${direction}`, "postgres", "--data", data];
    const program = new Program(words, { env: { LUXHUB_DATABASE: schema.url } });
    while (program.child.exitCode === null && (await carried()) < files) await Bun.sleep(2);
    await Bun.sleep(Math.random() * 20); // at any moment: nothing is waited for
    program.child.kill("SIGKILL");
    return (await program.ended) === null;
  };
  while (!(await kill(1))) await undo();
  await once();
  await kill(12);
}

/** What a hub says that does not start. */
async function refusedStart(data: string, database: string | null): Promise<string> {
  const env = { LUXHUB_PORT: "0", ...(database === null ? {} : { LUXHUB_DATABASE: database }) };
  return refusal(run(["serve", "--data", data], { env }));
}

type Scene = {
  readonly files: string[];
  readonly open: string;
  readonly leased: readonly string[];
  readonly waiting: string;
  readonly idempotent: {
    readonly key: string;
    readonly body: object;
    readonly answer: Record<string, unknown>;
  };
};

/** Tasks and messages in every state, nodes of both variants on and off, files, payments, stored answers. */
async function fill(hub: TestHub): Promise<Scene> {
  await addNode(hub, "silent", { capabilities: ["coding"] }, "B");
  const lost = await addTask(hub, { title: "of one that goes" });
  await ok(hub.post("/task/assign", { task_id: lost, node_id: "silent" }));
  hub.clock.pass(91_000);
  await hub.sweep();
  expect((await nodeOf(hub, "silent"))["status"]).toBe("offline");
  await addNodes(hub, ["n1", "n2"]);
  const odd = 'back\\slash "quote" tab\t line\n {brace} \\N \u007f 漢字 🦀';
  const open = await addTask(hub, { title: odd.trim(), description: odd.repeat(800), lux_reward: 0.000001 });
  await addTaskOf(hub, "n1", { lux_reward: 3 });
  for (const reward of [0, 1_000_000]) {
    const done = await addTaskOf(hub, "n1", { lux_reward: reward });
    await ok(complete(hub, done, "n1"));
  }
  const revoked = await addTaskOf(hub, "n2");
  await ok(hub.admin("/task/revoke", { task_id: revoked, reason: odd }));
  const deleted = await addTask(hub);
  await ok(hub.admin("/task/delete", { task_id: deleted }));
  await ok(hub.post("/signin", { node_id: "n2" }));

  const leased = [
    await send(hub, "n1", "n2", { require_ack: true, content: "1" }),
    await send(hub, "n1", "n2", { require_ack: true, content: "2" }),
  ];
  const acked = await send(hub, "n1", "n2", { require_ack: true, content: "3" });
  expect(await receive(hub, "n2")).toHaveLength(3);
  await ok(hub.post("/message/ack", { node_id: "n2", message_id: acked }));
  const waiting = await send(hub, "n2", "n1", { content: odd.repeat(2_000) });
  await ok(hub.post("/message/broadcast", { from_node: "n2", content: odd }));
  const body = { title: "only once", description: "d" };
  const key = "move-1";
  const answer = await ok(hub.post("/task/create", body, { headers: { "Idempotency-Key": key } }));
  const files = [
    await upload(hub, "small", open),
    await upload(hub, "", null),
    await upload(hub, LARGE, null),
  ];
  return { files, open, leased, waiting, idempotent: { key, body, answer } };
}

/** What callers see, in both variants, but for the hub's own starts. */
async function seen(hub: TestHub, files: readonly string[]): Promise<unknown> {
  const paths = [
    "/node/list",
    ...["n1", "silent"].map((nodeId) => `/node/${nodeId}`),
    "/task/list?per_page=50",
    ...["open", "assigned", "completed"].map((status) => `/task/list?status=${status}`),
    "/task/stats",
    "/task/pull?node_id=n1",
    ...["n1", "n2", "big"].map((nodeId) => `/lux/ledger?node_id=${nodeId}`),
    ...["n1", "n2", "silent"].map((nodeId) => `/message/history?node_id=${nodeId}`),
    "/file/list?per_page=50",
    "/events?since=0&limit=1000",
  ];
  const answers: Record<string, unknown> = {};
  for (const variant of ["A", "B"] as const) {
    for (const path of paths) {
      const { status, body } = await hub.get(path, { variant });
      const { request_id: _id, cursor: _cursor, transport: _engine, ...said } = body;
      const events = Array.isArray(body["events"])
        ? list(body, "events").filter(({ kind }) => kind !== "hub.started")
        : [];
      answers[`${variant} ${path}`] = { status, ...said, events };
    }
  }
  for (const fileId of files) {
    const response = await fetch(`${hub.base()}/api/v1/file/download/${fileId}`);
    answers[fileId] = [response.status, Bun.hash(await response.bytes())];
  }
  return answers;
}

/** What was begun before the move is ended after it. */
async function goesOn(hub: TestHub, scene: Scene, cursor: number, key: string): Promise<void> {
  const events = await ok(hub.get(`/events?since=${cursor}&limit=1000`));
  expect(pick(events, "events", "id")).toEqual([cursor + 1]); // the hub's start
  const { key: once, body, answer } = scene.idempotent;
  expect(await ok(hub.post("/task/create", body, { headers: { "Idempotency-Key": once } }))).toEqual(answer);
  const waiting = await receive(hub, "n1");
  expect(waiting.map(({ id }) => id)).toContain(scene.waiting);
  expect(waiting).toHaveLength(2);
  await ok(hub.post("/message/ack", { node_id: "n2", message_id: scene.leased[0] }));
  expect((await receive(hub, "n2")).map(({ type }) => type)).toHaveLength(0);
  hub.clock.pass(ACK_LEASE_MS + 1_000);
  await hub.sweep();
  expect((await receive(hub, "n2")).map(({ id }) => id)).toEqual([scene.leased[1]]);
  expect(await ok(hub.post("/signin", { node_id: "n2" }))).toMatchObject({ already_signed_in: true });
  await ok(hub.post("/task/claim", { task_id: scene.open, node_id: "n2" }));
  await ok(complete(hub, scene.open, "n2"));
  for (const [secret, status] of [
    [key, 200],
    ["wrong", 401],
  ] as const) {
    const headers = { "X-Matrix-Secret": secret };
    expect((await hub.get("/message/history?node_id=n1", { headers })).status).toBe(status);
  }
}
