/** What SQLite alone promises: its schema, a listener that throws, a full disk. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { accept } from "../../src/domain/decision.ts";
import { GROUP_HEAVY_MAX } from "../../src/domain/limits.ts";
import { endOfTick } from "../../src/lib/event-loop.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { type Part, type Query, StoreDamaged, StoreFull } from "../../src/store/store.ts";
import { message } from "../domain/samples.ts";
import {
  SQLITE,
  COUNT_EVENTS,
  closing,
  event,
  log,
  names,
  noFault,
  openFresh,
  outcome,
  prepareStores,
  sqlitePlace,
  write,
} from "./store-engines.ts";

await prepareStores();

describe("store: sqlite: damage", () => {
  test("after the first sign of damage nothing more is written, nor what is queued already", async () => {
    const { store } = await openFresh(SQLITE, () => {});
    await store.transact({}, log("before"));
    const damaged = store.transact({}, () => {
      throw Object.assign(new Error("database disk image is malformed"), { code: "SQLITE_CORRUPT" });
    });
    const queued = store.transact({}, log("queued"));
    expect(await outcome(damaged)).toBeInstanceOf(StoreDamaged);
    expect(await outcome(queued)).toBeInstanceOf(StoreDamaged);
    expect(await outcome(store.transact({}, log("later")))).toBeInstanceOf(StoreDamaged);
    expect(store.writable).toBe(false);
    expect(await names(store)).toEqual(["before"]);
  });
});

describe("store: sqlite: schema", () => {
  test("an empty file is migrated to the newest version, and opening again changes nothing", async () => {
    const place = await sqlitePlace();
    closing.push(() => place.remove());
    await Bun.write(place.path, "");
    await (await place.open()).close();
    expect(await place.look("SELECT user_version AS n FROM pragma_user_version")).toBe(
      SQLITE_MIGRATIONS.length,
    );
    const tables = await place.look("SELECT count(*) AS n FROM sqlite_schema");
    await (await place.open()).close();
    expect(await place.look("SELECT count(*) AS n FROM sqlite_schema")).toBe(tables);
  });

  test("a file of a newer schema is refused and not changed", async () => {
    const place = await sqlitePlace();
    closing.push(() => place.remove());
    const db = new Database(place.path, { create: true });
    db.run(`PRAGMA user_version = ${SQLITE_MIGRATIONS.length + 1}`);
    db.close(true);
    expect(() => openSqlite(place.path, noFault)).toThrow("newer luxhub");
    expect(await place.look("SELECT count(*) AS n FROM sqlite_schema")).toBe(0);
    expect(await place.look("SELECT user_version AS n FROM pragma_user_version")).toBe(
      SQLITE_MIGRATIONS.length + 1,
    );
  });

  test("processes that open the same new file at the same moment all find a complete schema", async () => {
    const place = await sqlitePlace();
    closing.push(() => place.remove());
    const children = Array.from({ length: 4 }, () =>
      Bun.spawn({
        cmd: [process.execPath, "-e", OPENING_CHILD, place.path],
        cwd: import.meta.dir,
        stdin: "pipe",
        stdout: "pipe",
        stderr: "pipe",
      }),
    );
    const said = children.map((child) => child.stdout.getReader());
    await Promise.all(said.map((reader) => reader.read())); // each is there and waits
    for (const child of children) child.stdin.end();
    const ends = await Promise.all(
      children.map(async (child) => `${await child.exited} ${await new Response(child.stderr).text()}`),
    );
    expect(ends).toEqual(["0 ", "0 ", "0 ", "0 "]);
    expect(await place.look(COUNT_EVENTS)).toBe(4);
    for (const table of ["task_totals", "file_totals"])
      expect(await place.look(`SELECT count(*) AS n FROM ${table}`)).toBe(1);
  });

  test("a file that is no database is refused", async () => {
    const place = await sqlitePlace();
    closing.push(() => place.remove());
    await Bun.write(place.path, "this is no database ".repeat(100));
    expect(() => openSqlite(place.path, noFault)).toThrow();
  });

  test("it has a write-ahead log, and flushes each commit", async () => {
    const { store } = await openFresh(SQLITE);
    expect((await store.diagnose()).details).toMatchObject({ journal_mode: "wal", synchronous: "full" });
  });
});

describe("store: sqlite: heavy groups", () => {
  test("what arrives during a heavy group is committed before the next heavy group", async () => {
    const { store } = await openFresh(SQLITE);
    const order: string[] = [];
    const heavy = Array.from({ length: GROUP_HEAVY_MAX }, () => ({
      load: () => ({}),
      decide: () => accept(null),
    }));
    const run = async (name: string, before: readonly Part[]): Promise<void> => {
      await store.transact({}, log(name), before);
      order.push(name);
    };
    const first = run("first", heavy);
    const second = run("second", heavy);
    await first;
    await endOfTick(); // as a request that a socket delivers after the group
    await Promise.all([run("arrived", []), second]);
    expect(order).toEqual(["first", "arrived", "second"]);
  });
});

/** A program that opens a database when its input ends, writes to it, and closes it. */
const OPENING_CHILD = `
  import { type SqliteStore, openSqlite } from "../../src/store/sqlite/engine.ts";
  process.stdout.write("ready");
  await Bun.stdin.text();
  const store = openSqlite(process.argv.at(-1), (error) => { throw error; });
  const event = { kind: "hub.started", at: 1, nodeId: null, taskId: null, data: {} };
  const changes = [{ kind: "event.logged", event }];
  await store.transact({}, () => ({ kind: "accepted", answer: null, changes }));
  await store.close();
`;

/** A program whose listener throws at its first transaction; says what it lived to see. */
const LISTENER_CHILD = `
  import { type SqliteStore, openSqlite } from "../../src/store/sqlite/engine.ts";
  const store = openSqlite(":memory:", (error) => process.stdout.write("heard " + error.message + "; "));
  store.onCommit(() => { throw new Error("a bug"); });
  const event = { kind: "hub.started", at: 1, nodeId: null, taskId: null, data: {} };
  const write = () => ({ kind: "accepted", answer: null, changes: [{ kind: "event.logged", event }] });
  for (const name of ["first", "second"]) {
    await store.transact({}, write);
    process.stdout.write(name + "; ");
    await new Promise(setImmediate);
  }
`;

describe("store: sqlite: a listener that throws", () => {
  test("does not end the process", async () => {
    const child = Bun.spawn({
      cmd: [process.execPath, "-e", LISTENER_CHILD],
      cwd: import.meta.dir,
      stdout: "pipe",
      stderr: "ignore",
    });
    const [said, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
    expect({ said, code }).toEqual({ said: "heard a bug; first; heard a bug; second; ", code: 0 });
  });
});

describe("store: sqlite: a full disk", () => {
  test("a transaction that does not fit fails with StoreFull and writes nothing; one that fits commits; with room all commit", async () => {
    const { store, place } = await openFresh(SQLITE);
    await write(store, event("before"));
    const pragma = (text: string): Query<number> => ({
      sql: `PRAGMA ${text}`,
      params: [],
      shape: ([row]) => Number(Object.values(row ?? {})[0]),
      reads: [],
    });
    const pages = await store.read(pragma("page_count"));
    await store.read(pragma(`max_page_count = ${pages}`));
    const large = message("m", { content: "x".repeat(100_000) });
    const outcomes = await Promise.all([
      outcome(store.transact({}, log("a"))),
      outcome(write(store, event("never"), { kind: "message.stored", message: large })),
      outcome(store.transact({}, log("b"))),
    ]);
    expect(outcomes).toEqual(["a", expect.any(StoreFull), "b"]);
    expect(await names(store)).toEqual(["before", "a", "b"]);
    await store.read(pragma(`max_page_count = ${pages + 1_000}`));
    await write(store, { kind: "message.stored", message: large });
    expect(await place.look("SELECT count(*) AS n FROM messages")).toBe(1);
  });
});
