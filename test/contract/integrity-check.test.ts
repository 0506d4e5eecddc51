/**
 * The integrity check of a database before it is opened: the kinds of damage, the leftovers of a crash that are not
 * damage, and that the check changes nothing.
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accept } from "../../src/domain/decision.ts";
import { type Inspection, inspectDatabase } from "../../src/store/sqlite/integrity-check.ts";
import { SQLITE_SCHEMA } from "../../src/store/sqlite/schema.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";

const PAGE = 4_096;
const FRAME = PAGE + 24;
const LOG_HEAD = 32;
const OPTIONS = { wholeMaxBytes: 2 ** 30, live: false };

let folder = "";
let path = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "luxhub-inspect-"));
  path = join(folder, "luxhub.db");
});

afterEach(() => rmSync(folder, { recursive: true }));

/** A database with some rows, closed in order: no log is left. */
async function makeDatabase(): Promise<void> {
  const store = openSqlite(path, () => {});
  for (let i = 0; i < 50; i++) await logEvent(store, i);
  await store.close();
}

/** The same, as a kill leaves it: the last `commits` of it are in the log. */
async function makeKilled(commits: number): Promise<void> {
  const at = join(folder, "alive.db");
  const store = openSqlite(at, () => {});
  await logEvent(store, 0);
  ask(at, "PRAGMA wal_checkpoint(TRUNCATE)");
  for (let i = 1; i <= commits; i++) await logEvent(store, i);
  copyFileSync(at, path);
  copyFileSync(`${at}-wal`, `${path}-wal`);
  await store.close();
}

/** Logs `count` events in one commit. */
function logEvent(store: ReturnType<typeof openSqlite>, n: number, count = 1): Promise<null> {
  const data = { n, filler: "x".repeat(300) };
  const event = { kind: "hub.started", at: n, nodeId: null, taskId: null, data } as const;
  const change = { kind: "event.logged", event } as const;
  return store.transact({}, () =>
    accept(
      null,
      Array.from({ length: count }, () => change),
    ),
  );
}

function change(file: string, at: number, to: (byte: number) => number): void {
  const bytes = readFileSync(file);
  bytes[at] = to(bytes[at] ?? 0);
  writeFileSync(file, bytes);
}

const flip = (file: string, at: number): void => change(file, at, (byte) => byte ^ 1);

/** Runs one statement from beside, and gives the first value of its answer. */
function ask(file: string, sql: string): unknown {
  const db = new Database(file);
  try {
    return db.query(sql).values()[0]?.[0];
  } finally {
    db.close();
  }
}

/** Runs the check, and asserts that it changes neither the database nor its log. */
function inspect(options = OPTIONS): Inspection {
  const before = contents();
  const found = inspectDatabase(path, options);
  expect(contents()).toEqual(before);
  return found;
}

/** The database's files with something in them; -shm is rebuilt by whoever opens. */
function contents(): Readonly<Record<string, string>> {
  const names = readdirSync(folder).filter((name) => /^luxhub\.db(?:-wal)?$/.test(name));
  const entries = names.map((name) => [name, readFileSync(join(folder, name)).toHex()] as const);
  return Object.fromEntries(entries.filter(([, bytes]) => bytes !== ""));
}

const damaged = (what: RegExp): object => ({ kind: "damaged", what: expect.stringMatching(what) });

describe("no database yet", () => {
  test("no file", () => expect(inspect()).toEqual({ kind: "none" }));

  test("an interrupted first start: an empty file, or one with no table", () => {
    writeFileSync(path, "");
    expect(inspect()).toEqual({ kind: "none" });
    const db = new Database(path);
    db.run("PRAGMA journal_mode = WAL");
    db.run("CREATE TABLE a (x)");
    db.run("DROP TABLE a");
    db.close();
    expect(inspect()).toEqual({ kind: "none" });
  });

  test("but a log without a database is damage", async () => {
    await makeKilled(3);
    rmSync(path);
    expect(inspect()).toMatchObject(damaged(/missing or empty, but its log/));
    writeFileSync(path, "");
    expect(inspect()).toMatchObject(damaged(/missing or empty, but its log/));
  });
});

describe("a database", () => {
  test("of a hub that was closed or killed is intact", async () => {
    await makeDatabase();
    const schema = SQLITE_SCHEMA.version;
    expect(inspect()).toMatchObject({ kind: "intact", schema, whole: true });
    rmSync(path);
    await makeKilled(20);
    expect(inspect()).toMatchObject({ kind: "intact", schema, whole: true });
  });

  test("of a migration that stored no checksum is intact", async () => {
    await makeDatabase();
    ask(path, "PRAGMA application_id = 0");
    expect(inspect()).toMatchObject({ kind: "intact" });
  });

  test("too large for a full check gets the cheap checks", async () => {
    await makeDatabase();
    expect(inspect({ ...OPTIONS, wholeMaxBytes: 1 })).toMatchObject({ kind: "intact", whole: false });
    truncateSync(path, 5 * PAGE);
    expect(inspect({ ...OPTIONS, wholeMaxBytes: 1 })).toMatchObject(damaged(/malformed/));
  });

  const faults: readonly (readonly [name: string, harm: () => void, what: RegExp])[] = [
    ["that is none", () => writeFileSync(path, "not a database".repeat(1_000)), /not a database/],
    ["with a broken head", () => flip(path, 3), /not a database/],
    ["cut short", () => truncateSync(path, 10 * PAGE), /malformed/],
    [
      "with an emptied page",
      () => {
        const root = Number(ask(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'events'"));
        writeFileSync(path, readFileSync(path).fill(0, (root - 1) * PAGE, root * PAGE));
      },
      /page|malformed|tree/i,
    ],
    ["whose schema version was lost", () => change(path, 63, () => 0), /no schema version/],
    [
      "whose schema version is another's",
      () => ask(path, `PRAGMA user_version = ${SQLITE_SCHEMA.version - 1}`),
      /tables are not/,
    ],
    ["with other tables", () => ask(path, "ALTER TABLE keys RENAME COLUMN hash TO hush"), /tables are not/],
    [
      "with an index that lacks a row, which only the full check finds",
      () => {
        const root = ask(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'events_kind'");
        flip(path, readFileSync(path).indexOf("hub.started", (Number(root) - 1) * PAGE));
      },
      /missing from index events_kind/,
    ],
  ];
  for (const [name, harm, what] of faults)
    test(name, async () => {
      await makeDatabase();
      harm();
      expect(inspect()).toMatchObject(damaged(what));
    });
});

describe("a log", () => {
  const rebuild = (database: Buffer, log: Buffer): void => {
    rmSync(`${path}-shm`, { force: true });
    writeFileSync(path, database);
    writeFileSync(`${path}-wal`, log);
  };

  /** How many frames SQLite reads of this log. */
  const framesRead = (database: Buffer, log: Buffer): number => {
    rebuild(database, log);
    const db = new Database(path, { readonly: true });
    try {
      return Number(db.query("PRAGMA wal_checkpoint(NOOP)").values()[0]?.[1]);
    } finally {
      db.close();
    }
  };

  const logBytes = (): number => readFileSync(`${path}-wal`).length;

  test("damaged anywhere is found, unless only the last commit is lost", async () => {
    await makeKilled(20);
    const [database, log] = [readFileSync(path), readFileSync(`${path}-wal`)];
    const frames = (log.length - LOG_HEAD) / FRAME;
    const seen = new Set<string>();
    for (let frame = 0; frame < frames; frame++) {
      writeFileSync(path, database);
      writeFileSync(`${path}-wal`, log);
      flip(`${path}-wal`, LOG_HEAD + frame * FRAME + 1_000);
      const { kind } = inspect();
      const lost = 20 - Number(ask(path, "SELECT max(at) FROM events"));
      expect({ frame, lost, kind }).toEqual({ frame, lost, kind: lost > 1 ? "damaged" : "intact" });
      seen.add(kind);
    }
    expect([...seen]).toEqual(["damaged", "intact"]);
  });

  for (const restarted of [false, true])
    test(`with failed commits behind its end is intact, in every order${restarted ? ", also over older frames" : ""}`, async () => {
      const at = join(folder, "alive.db");
      const store = openSqlite(at, () => {});
      if (restarted) {
        for (let i = 0; i < 3; i++) await logEvent(store, 1, 300);
        ask(at, "PRAGMA wal_checkpoint(RESTART)");
      }
      for (let i = 0; i < 3; i++) await logEvent(store, 1);
      const [database, log] = [readFileSync(at), readFileSync(`${at}-wal`)];
      await store.close();
      const end = LOG_HEAD + framesRead(database, log) * FRAME;
      /** The frames that commits of so many events write at that end. */
      const written = async (...counts: readonly number[]): Promise<Buffer> => {
        rebuild(database, log);
        const store = openSqlite(path, () => {});
        for (const count of counts) await logEvent(store, 2, count);
        const after = readFileSync(`${path}-wal`);
        await store.close();
        rebuild(database, after);
        return after.subarray(end, LOG_HEAD + framesRead(database, after) * FRAME);
      };
      const [long, middle, short] = [await written(300), await written(100), await written(20)];
      const failures = [
        long,
        middle,
        short,
        long.subarray(0, 5 * FRAME),
        middle.subarray(0, 2 * FRAME + 100),
      ];
      const acknowledged = [Buffer.alloc(0), await written(1), await written(1, 1, 1)];
      const expected = acknowledged.map((frames, i) => ({ frames, events: [0, 1, 3][i] ?? 0 }));
      for (const one of failures)
        for (const two of failures)
          for (const three of failures)
            for (const { frames, events } of expected) {
              const tails = [one, two, three, frames];
              const size = Math.max(log.length, ...tails.map(({ length }) => end + length));
              const bytes = Buffer.alloc(size);
              log.copy(bytes);
              for (const tail of tails) tail.copy(bytes, end);
              rebuild(database, bytes);
              expect(inspect()).toMatchObject({ kind: "intact" });
              const stored = Number(ask(path, "SELECT count(*) FROM events WHERE at = 2"));
              if (events > 0) expect(stored).toBe(events); // a whole failed commit may be there only if it is the last
            }
    });

  test("with a damaged header", async () => {
    await makeKilled(20);
    flip(`${path}-wal`, 17);
    expect(inspect()).toMatchObject(damaged(/head of its log/));
  });

  test("is not checked while a hub writes it", async () => {
    await makeKilled(20);
    flip(`${path}-wal`, LOG_HEAD + 5 * FRAME + 1_000);
    expect(inspect({ ...OPTIONS, live: true })).toMatchObject({ kind: "intact" });
  });

  test("with an incomplete last commit, as after a power cut, is intact", async () => {
    await makeKilled(20);
    const whole = logBytes();
    flip(`${path}-wal`, whole - 100);
    expect(inspect()).toMatchObject({ kind: "intact" });
    truncateSync(`${path}-wal`, whole - 2_000);
    expect(inspect()).toMatchObject({ kind: "intact" });
    truncateSync(`${path}-wal`, 10);
    expect(inspect()).toMatchObject({ kind: "intact" });
  });

  test("that was restarted, with older frames behind its end, is intact", async () => {
    const at = join(folder, "alive.db");
    const store = openSqlite(at, () => {});
    for (let i = 0; i < 40; i++) await logEvent(store, i);
    ask(at, "PRAGMA wal_checkpoint(RESTART)");
    for (let i = 0; i < 3; i++) await logEvent(store, i);
    copyFileSync(at, path);
    copyFileSync(`${at}-wal`, `${path}-wal`);
    await store.close();
    expect(logBytes()).toBeGreaterThan(LOG_HEAD + 40 * FRAME);
    expect(inspect()).toMatchObject({ kind: "intact" });
  });
});
