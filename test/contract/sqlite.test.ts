/**
 * What SQLite alone promises: its schema, a listener that throws, a full disk, a disk that fails, a command beside the hub.
 */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Change } from "../../src/domain/change.ts";
import { accept } from "../../src/domain/decision.ts";
import { GROUP_HEAVY_MAX, GROUP_MAX, GROUP_MAX_MS } from "../../src/domain/limits.ts";
import { saved } from "../../src/domain/node.ts";
import { must } from "../../src/lib/assert.ts";
import { endOfTick } from "../../src/lib/event-loop.ts";
import { SQLITE_SCHEMA } from "../../src/store/sqlite/schema.ts";
import { joinSqlite, openSqlite } from "../../src/store/sqlite/engine.ts";
import { allKeys } from "../../src/store/sql/keys.ts";
import { nodeById } from "../../src/store/sql/nodes.ts";
import { type Part, type Query, StoreDamaged, StoreFull } from "../../src/store/store.ts";
import { message, node, tally } from "../domain/samples.ts";
import { provideDatabase } from "../support/new-database.ts";
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

  test("nor after a read that finds damage", async () => {
    const { store } = await openFresh(SQLITE);
    const damaged: Query<number> = {
      ...pragma("page_count"),
      shape: () => {
        throw Object.assign(new Error("database disk image is malformed"), { code: "SQLITE_CORRUPT" });
      },
    };
    expect(await outcome(store.read(damaged))).toBeInstanceOf(StoreDamaged);
    expect(store.writable).toBe(false);
    expect(await outcome(store.transact({}, log("later")))).toBeInstanceOf(StoreDamaged);
  });
});

describe("store: sqlite: schema", () => {
  test("an empty file is migrated to the newest version, and opening again changes nothing", async () => {
    const place = await sqlitePlace();
    closing.push(() => place.remove());
    await Bun.write(place.path, "");
    await (await place.open()).close();
    expect(await place.look("SELECT user_version AS n FROM pragma_user_version")).toBe(SQLITE_SCHEMA.version);
    const tables = await place.look("SELECT count(*) AS n FROM sqlite_schema");
    await (await place.open()).close();
    expect(await place.look("SELECT count(*) AS n FROM sqlite_schema")).toBe(tables);
  });

  test("a file of a newer schema is refused and not changed", async () => {
    const place = await sqlitePlace();
    closing.push(() => place.remove());
    const db = new Database(place.path, { create: true });
    db.run(`PRAGMA user_version = ${SQLITE_SCHEMA.version + 1}`);
    db.close(true);
    expect(() => openSqlite(place.path, noFault)).toThrow("newer luxhub");
    expect(await place.look("SELECT count(*) AS n FROM sqlite_schema")).toBe(0);
    expect(await place.look("SELECT user_version AS n FROM pragma_user_version")).toBe(
      SQLITE_SCHEMA.version + 1,
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

describe("store: sqlite: gathered writes", () => {
  test("are written before a sweep, which may remove what they write", async () => {
    const { store, place } = await openFresh(SQLITE);
    const touched: Change = { kind: "family.touched", taskId: "t" };
    await write(store, touched);
    expect(await place.look("SELECT count(*) AS n FROM family_checks")).toBe(1);
    await write(store, touched, { kind: "family.checked", taskId: "t" });
    expect(await place.look("SELECT count(*) AS n FROM family_checks")).toBe(0);
  });
});

test("store: sqlite: sums that are too large together are written one by one", async () => {
  const { store } = await openFresh(SQLITE);
  await write(store, ...saved(node("n1")));
  const much = Number.MAX_SAFE_INTEGER - 1;
  await write(store, ...[1, 2, 3].map(() => tally({ nodeId: "n1", balanceMicro: much })));
  const { balanceMicro } = must(await store.read(nodeById("n1")), "it is registered");
  expect(balanceMicro).toBe(3n * BigInt(much));
});

test("store: sqlite: after each group the sockets are polled anew", async () => {
  const { store } = await openFresh(SQLITE);
  for (let i = 0; i < 2; i++) {
    await write(store, event("e"));
    let isPolled = false;
    const polled = store.socketsPolled().then(() => (isPolled = true));
    await Promise.resolve();
    await Promise.resolve();
    expect(isPolled).toBe(false);
    await polled;
  }
});

describe("store: sqlite: joining a group", () => {
  test("what a decision wakes comes after what waited before it, and a group stays bounded", async () => {
    const { store } = await openFresh(SQLITE);
    const groups: number[] = [];
    store.onGroup((transactions) => groups.push(transactions));
    let woken: Promise<unknown> | null = null;
    store.onDecision(() => (woken ??= store.transact({}, log("woken"))));
    await Promise.all(Array.from({ length: GROUP_MAX + 2 }, (_, i) => store.transact({}, log(`${i}`))));
    await woken;
    expect((await names(store)).at(-1)).toBe("woken");
    expect(Math.max(...groups)).toBeLessThanOrEqual(GROUP_MAX);
    expect(groups.reduce((all, size) => all + size)).toBe(GROUP_MAX + 3);
  });

  test("what a group has no time for is in the next ones, in order, also after a transaction that failed", async () => {
    const { store } = await openFresh(SQLITE, () => {});
    const groups: number[] = [];
    store.onGroup((transactions) => groups.push(transactions));
    const slow = (name: string) => (): ReturnType<ReturnType<typeof log>> => {
      for (const until = performance.now() + GROUP_MAX_MS; performance.now() <= until;);
      return log(name)();
    };
    const fails = (): never => {
      throw new Error("at fault");
    };
    const ends = [slow("a"), fails, slow("b"), log("c")].map((decide) => outcome(store.transact({}, decide)));
    expect((await Promise.all(ends)).filter((end) => end instanceof Error)).toHaveLength(1);
    expect(await names(store)).toEqual(["a", "b", "c"]);
    expect(groups).toEqual([1, 1, 1]);
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

/** A pragma as a query, for a setting of the store's own connection. */
const pragma = (text: string): Query<number> => ({
  sql: `PRAGMA ${text}`,
  params: [],
  shape: ([row]) => Number(Object.values(row ?? {})[0]),
  reads: [],
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

  test("writable is false after a transaction alone that does not fit", async () => {
    const { store } = await openFresh(SQLITE);
    const pages = await store.read(pragma("page_count"));
    await store.read(pragma(`max_page_count = ${pages}`));
    const large = message("m", { content: "x".repeat(100_000) });
    expect(await outcome(write(store, { kind: "message.stored", message: large }))).toBeInstanceOf(StoreFull);
    expect(store.writable).toBe(false);
    await store.read(pragma(`max_page_count = ${pages + 1_000}`));
    await write(store, { kind: "message.stored", message: large });
    expect(store.writable).toBe(true);
  });
});

/**
 * A program whose files may have 2 or 4 MiB (the shells differ in the unit). It prints how each transaction of a group ended
 * whose second one writes more than that within a statement, because the pages of 8 MiB do not fit into the page cache.
 */
const FILE_LIMIT = ["sh", "-c", `ulimit -f 4096; exec "$0" "$@"`, process.execPath, "-e"];
const FAILING_CHILD = `
  import { openSqlite } from "../../src/store/sqlite/engine.ts";
  const [path, change] = process.argv.slice(-2);
  const store = openSqlite(path, (error) => { throw error; });
  await store.read({ sql: "PRAGMA cache_size = 16", params: [], shape: () => null, reads: [] });
  const large = JSON.parse(change, (_, value) => value === "LARGE" ? "x".repeat(8 * 2 ** 20) : value);
  const event = (name) =>
    ({ kind: "event.logged", event: { kind: "hub.started", at: 1, nodeId: null, taskId: null, data: { name } } });
  const outcome = (name, change) =>
    store.transact({}, () => ({ kind: "accepted", answer: name, changes: [change] })).catch(({ code }) => code);
  const said = await Promise.all([outcome("a", event("a")), outcome("large", large), outcome("b", event("b"))]);
  said.push(store.writable, await outcome("after", event("after")), store.writable);
  await store.close();
  process.stdout.write(JSON.stringify(said));
`;

const WINDOWS = process.platform === "win32";

describe.skipIf(WINDOWS)(
  `store: sqlite: a disk that fails${WINDOWS ? " (needs a shell's ulimit)" : ""}`,
  () => {
    for (const [where, change] of [
      ["statement of a transaction", { kind: "message.stored", message: message("m", { content: "LARGE" }) }],
      ["gathered write", event("LARGE")],
    ] as const)
      test(`an I/O error in a ${where} refuses the whole group, and writable is false until a write succeeds`, async () => {
        const place = await sqlitePlace();
        closing.push(() => place.remove());
        await provideDatabase(place.path);
        const child = Bun.spawn({
          cmd: [...FILE_LIMIT, FAILING_CHILD, place.path, JSON.stringify(change)],
          cwd: import.meta.dir,
          stdout: "pipe",
          stderr: "pipe",
        });
        const [said, err, code] = await Promise.all([
          new Response(child.stdout).text(),
          new Response(child.stderr).text(),
          child.exited,
        ]);
        expect({ err, code }).toEqual({ err: "", code: 0 });
        const error = "SQLITE_IOERR_WRITE";
        expect(JSON.parse(said)).toEqual([error, error, error, false, "after", true]);
        expect(await place.look(COUNT_EVENTS)).toBe(1);
      });
  },
);

describe("store: sqlite: a command beside the hub", () => {
  /** A hub's store whose log is long enough for the checkpoint that SQLite runs by default at the end of a commit. */
  async function openBesideHub() {
    const folder = await mkdtemp(join(tmpdir(), "luxhub-store-"));
    closing.push(() => rm(folder, { recursive: true }));
    const path = join(folder, "luxhub.db");
    await provideDatabase(path);
    const hub = openSqlite(path, noFault);
    closing.push(() => hub.close());
    await write(hub, { kind: "message.stored", message: message("m", { content: "x".repeat(6 * 2 ** 20) }) });
    const beside = new Database(path, { readonly: true });
    closing.push(async () => beside.close(true));
    /** How many pages the log has, and how many of them a checkpoint has written back. */
    const look = () =>
      beside.query<{ log: number; checkpointed: number }, []>("PRAGMA wal_checkpoint(NOOP)").get();
    expect(look()?.checkpointed).toBe(0);
    expect(look()?.log).toBeGreaterThan(1_000);
    return { folder, path, hub, look };
  }

  test("`luxhub keys add` does not checkpoint the log, neither after its commit nor at its end", async () => {
    const { folder, hub, look } = await openBesideHub();
    const before = look()?.log ?? NaN;
    const child = Bun.spawn({
      cmd: [
        process.execPath,
        join(import.meta.dir, "../../src/main.ts"),
        "keys",
        "add",
        "second",
        "--data",
        folder,
      ],
      env: { PATH: process.env["PATH"], HOME: folder, LUXHUB_SECRET: "a-secret-of-this-test" },
      stdout: "ignore",
      stderr: "pipe",
    });
    const [err, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    expect({ err, code }).toEqual({ err: expect.any(String), code: 0 }); // err: a note for a person
    expect(await hub.read(allKeys())).toMatchObject([{ keyId: "second" }]);
    expect(look()?.log).toBeGreaterThan(before); // the key is in the log
    expect(look()?.checkpointed).toBe(0);
  });

  test("nor does a command whose write finds the disk full", async () => {
    const { path, look } = await openBesideHub();
    const before = look();
    const guest = joinSqlite(path);
    closing.push(() => guest.close());
    const pages = await guest.read(pragma("page_count"));
    await guest.read(pragma(`max_page_count = ${pages}`));
    const large = message("l", { content: "x".repeat(100_000) });
    expect(await outcome(write(guest, { kind: "message.stored", message: large }))).toBeInstanceOf(StoreFull);
    await guest.close();
    expect(look()).toEqual(before); // a truncated log would be shorter
  });
});
