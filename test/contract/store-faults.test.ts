/**
 * A failing commit (src/store/store.ts, Transact): an injected disk error rejects exactly the group that shares the
 * commit, none of its changes is visible, and the next group is not affected.
 */
import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Change } from "../../src/domain/change.ts";
import { Rejection, accept, nodeNotFound } from "../../src/domain/decision.ts";
import { saved } from "../../src/domain/node.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { Feed } from "../../src/service/feed.ts";
import { lastEventId } from "../../src/store/sql/events.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { inspectDatabase } from "../../src/store/sqlite/integrity-check.ts";
import { OutcomeUnknown, type Part, type Store, StoreDamaged, StoreFull } from "../../src/store/store.ts";
import { readTrace, traced, whyNoTrace } from "../../tools/torture/flush-trace.ts";
import { message, node, task } from "../domain/samples.ts";
import { type CommitFault, FailingDisk, failOneInsert, failRollbacks } from "../support/failing-disk.ts";
import { provideDatabase } from "../support/new-database.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

type Scene = {
  readonly store: Store;
  readonly disk: FailingDisk;
  /** The names of the events that another connection can see, in order. */
  readonly names: () => readonly string[];
  readonly count: (table: string) => number;
  /** Lets a reader use the log, so that it cannot be truncated, until what this returns is called. */
  readonly keepLog: () => () => void;
};

const noFault = (error: unknown): never => {
  throw error;
};

async function newPath(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "luxhub-faults-"));
  closing.push(() => rm(folder, { recursive: true }));
  return join(folder, "db");
}

/** The names of the events, in order. */
function namesIn(db: Database): readonly string[] {
  const query = db.query<{ name: string }, []>("SELECT data ->> 'name' AS name FROM events ORDER BY id");
  return query.all().map(({ name }) => name);
}

/** @param hasRoom whether the disk of the database has more free space than must remain */
async function openScene(hasRoom: (path: string) => boolean = () => true): Promise<Scene> {
  const path = await newPath();
  const disk = new FailingDisk();
  const store = openSqlite(path, noFault, disk.commit, () => hasRoom(path));
  closing.push(() => store.close());
  const beside = new Database(path, { readonly: true });
  closing.push(async () => beside.close(true));
  return {
    store,
    disk,
    names: () => namesIn(beside),
    count: (table) => beside.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? NaN,
    keepLog: () => {
      beside.run("BEGIN");
      namesIn(beside); // the first read takes the snapshot
      return () => void beside.run("COMMIT");
    },
  };
}

function event(name: string, patch: { nodeId?: string; taskId?: string } = {}): Change {
  const { nodeId = null, taskId = null } = patch;
  return { kind: "event.logged", event: { kind: "task.created", at: 1, nodeId, taskId, data: { name } } };
}

const log = (store: Store, name: string) => store.transact({}, () => accept(name, [event(name)]));

/** What became of each: its answer, a rejection's code, or the error. */
function outcomes(asked: readonly Promise<unknown>[]): Promise<readonly unknown[]> {
  return Promise.all(
    asked.map((one) =>
      one.then(
        (answer) => answer,
        (error: unknown) => (error instanceof Rejection ? error.code : error),
      ),
    ),
  );
}

const FAULTS: readonly (readonly [CommitFault, unknown])[] = [
  ["SQLITE_FULL", expect.any(StoreFull)],
  [
    "SQLITE_IOERR_WRITE",
    expect.objectContaining({ cause: expect.objectContaining({ code: "SQLITE_IOERR_WRITE" }) }),
  ],
  [
    "SQLITE_IOERR_FSYNC",
    expect.objectContaining({
      name: "OutcomeUnknown",
      cause: expect.objectContaining({ code: "SQLITE_IOERR_FSYNC" }),
    }),
  ],
];

for (const [fault, error] of FAULTS) {
  describe(`store: sqlite: a commit fails with ${fault}`, () => {
    test("exactly its group is rejected; the group before stays, the group after succeeds", async () => {
      const { store, disk, names, count } = await openScene();
      expect(await outcomes([log(store, "a"), log(store, "b")])).toEqual(["a", "b"]);
      disk.commitFault = fault;
      const group = [
        log(store, "c"),
        store.transact({}, () => accept("task", [{ kind: "task.created", task: task("t1") }, event("t1")])),
        log(store, "d"),
      ];
      expect(await outcomes(group)).toEqual([error, error, error]);
      // One commit for the group, and no transaction tried again by itself; on a full disk a second after a checkpoint.
      expect(disk.commits).toBe(fault === "SQLITE_FULL" ? 3 : 2);
      expect([names(), count("tasks")]).toEqual([["a", "b"], 0]);
      expect(await store.read(lastEventId())).toBe(2); // nor to be seen from inside
      disk.commitFault = null;
      expect(await outcomes([log(store, "e"), log(store, "f")])).toEqual(["e", "f"]);
      expect([names(), count("tasks")]).toEqual([["a", "b", "e", "f"], 0]);
      const rows = { last: lastEventId() };
      expect(await store.transact(rows, ({ last }) => accept(last))).toBe(4);
    });

    test("a group that is queued while another fails is not affected", async () => {
      const { store, disk, names } = await openScene();
      disk.commitFault = fault;
      const failed = log(store, "never");
      const next = failed.catch(() => {
        disk.commitFault = null;
        return log(store, "next");
      });
      expect(await outcomes([failed, next])).toEqual([error, "next"]);
      expect(names()).toEqual(["next"]);
    });

    test("a transaction that a rule rejected fails with the commit like all others", async () => {
      const { store, disk, names } = await openScene();
      disk.commitFault = fault;
      const group = [log(store, "a"), store.transact({}, () => nodeNotFound("n1"))];
      expect(await outcomes(group)).toEqual([error, error]);
      disk.commitFault = null;
      expect(names()).toEqual([]);
    });

    test("listeners and streams are not notified, and a waiter is woken in vain", async () => {
      const { store, disk } = await openScene();
      const clock = systemClock();
      const heard: (readonly number[])[] = [];
      const told: number[] = [];
      store.onCommit((_, eventIds) => heard.push(eventIds));
      const feed = new Feed(store, clock);
      feed.subscribe("n1", (eventId) => told.push(eventId));
      await store.transact({}, () => accept(null, saved(node("n1"))));
      const receiver = feed.receivers.join("n1");
      const woken: string[] = [];
      const wait = () => receiver.wait(60_000).then((outcome) => woken.push(outcome));
      const first = wait();
      const { signal } = new AbortController();
      const polled = feed
        .poll(null, 60_000, signal)
        .then((batch) => batch.events.map(({ data }) => data["name"]));
      await store.read(lastEventId()); // the poll has looked and waits
      const changes = (name: string): readonly Change[] => [
        { kind: "message.stored", message: message(name, { toNode: "n1" }) },
        { kind: "delivery.queued", messageId: name, toNode: "n1" },
        event(name, { nodeId: "n1", taskId: "t" }),
      ];
      heard.length = 0;
      disk.commitFault = fault;
      await outcomes([store.transact({}, () => accept(null, changes("never")))]);
      await first; // it may read before the commit, and so it is woken before that
      expect([heard, told, woken, feed.waiting]).toEqual([[], [], ["woken"], 2]);
      disk.commitFault = null;
      const waiting = wait();
      await store.transact({}, () => accept(null, changes("m1")));
      await waiting;
      expect([await polled, heard, told, woken]).toEqual([["m1"], [[1]], [1], ["woken", "woken"]]);
      receiver.leave();
    });

    test("writable is false from the failed commit to the next commit that writes something", async () => {
      const { store, disk } = await openScene();
      expect(store.writable).toBe(true);
      disk.commitFault = fault;
      await outcomes([log(store, "a")]);
      expect(store.writable).toBe(false);
      disk.commitFault = null;
      await store.transact({}, () => accept(null)); // writes nothing, so it shows nothing
      expect(store.writable).toBe(false);
      await log(store, "b");
      expect(store.writable).toBe(true);
    });
  });
}

describe("a COMMIT fails and may be in the log", () => {
  test("SQLITE_IOERR_SHMSIZE, and the log cannot be truncated: the outcome is unknown and the group does not run again", async () => {
    const { store, disk, names, keepLog } = await openScene();
    await log(store, "a");
    const release = keepLog();
    disk.commitFault = "SQLITE_IOERR_SHMSIZE";
    const unknown = expect.objectContaining({ name: "OutcomeUnknown" });
    expect(await outcomes([log(store, "b"), log(store, "c")])).toEqual([unknown, unknown]);
    expect([disk.commits, store.writable]).toEqual([2, false]);
    release();
    expect(names()).toEqual(["a"]);
  });

  test("SQLITE_IOERR_CORRUPTFS: the outcome is unknown, and no further transaction is written", async () => {
    const { store, disk } = await openScene();
    await log(store, "a");
    disk.commitFault = "SQLITE_IOERR_CORRUPTFS";
    expect(await outcomes([log(store, "b")])).toEqual([expect.any(OutcomeUnknown)]);
    expect(await outcomes([log(store, "c")])).toEqual([expect.any(StoreDamaged)]);
    expect(store.writable).toBe(false);
  });

  test("SQLITE_FULL: its last page is not in the log, so the refusal is certain", async () => {
    const { store, disk, names, keepLog } = await openScene();
    await log(store, "a");
    const release = keepLog();
    disk.commitFault = "SQLITE_FULL";
    expect(await outcomes([log(store, "b")])).toEqual([expect.any(StoreFull)]);
    release();
    expect(names()).toEqual(["a"]);
  });

  const noTrace = whyNoTrace();
  const onLinux = noTrace === null ? test : test.skip;
  const skipped = noTrace === null ? "" : ` (skipped: ${noTrace})`;

  /**
   * A program that commits as many events as each step says, or checkpoints the log, prints what became of the commits,
   * and is killed at once. It truncates a file at the beginning of each step, which the trace shows.
   */
  const KILLED_CHILD = `
    import { Database } from "bun:sqlite";
    import { closeSync, ftruncateSync, openSync } from "node:fs";
    import { joinSqlite, openSqlite } from "../../src/store/sqlite/engine.ts";
    const [path, role, ...steps] = process.argv.slice(1);
    const store = role === "owner" ? openSqlite(path, () => {}) : joinSqlite(path);
    const beside = new Database(path);
    const mark = openSync(path + ".step", "w");
    for (const [step, what] of steps.entries()) {
      ftruncateSync(mark, 0);
      if (!/\\d/.test(what)) {
        try { beside.run("PRAGMA wal_checkpoint(" + what + ")"); } catch {}
        continue;
      }
      const data = { name: String(step), filler: "x".repeat(300) };
      const event = { kind: "hub.started", at: 1, nodeId: null, taskId: null, data };
      const changes = Array(Number(what)).fill({ kind: "event.logged", event });
      const outcome = await store.transact({}, () => ({ kind: "accepted", answer: "done", changes })).then(
        (answer) => answer,
        (error) => error.name,
      );
      await Bun.write(Bun.stdout, step + " " + outcome + "\\n");
    }
    process.kill(process.pid, "SIGKILL");
  `;

  type Role = "owner" | "guest";

  /** Runs it. Returns what became of each commit, and the calls in order: `step` begins one. */
  async function runKilled(path: string, role: Role, steps: string, inject: readonly string[]) {
    await provideDatabase(path);
    const trace = `${path}.trace`;
    const filter = [
      "-P",
      `${path}-wal`,
      "-P",
      `${path}.step`,
      "-e",
      "trace=fsync,fdatasync,pwrite64,ftruncate",
    ];
    const program = [process.execPath, "-e", KILLED_CHILD, path, role, ...steps.split(" ")];
    const child = Bun.spawn({
      cmd: [...traced(trace, program, [...filter, ...inject])],
      cwd: import.meta.dir,
      stdout: "pipe",
    });
    const printed = await new Response(child.stdout).text();
    await child.exited;
    const text = await readTrace(trace, child.pid);
    const calls = [...text.matchAll(/(?:\.step>|(write|sync)\w*\([^)]*-wal>)/g)].map(
      ([, call]) => call ?? "step",
    );
    return { ended: printed.trim().split("\n"), calls };
  }

  /** Lets so many calls of a kind fail, from a step on, after those that it skips. strace counts them from the start. */
  const failing = (
    calls: readonly string[],
    call: "write" | "sync",
    { from, skip, count }: { from: number; skip: number; count: number },
  ): readonly string[] => {
    const start = calls.flatMap((what, at) => (what === "step" ? [at] : []))[from];
    const before = calls.slice(0, start).filter((what) => what === call).length + skip;
    const names = call === "write" ? "pwrite64" : "fsync,fdatasync";
    return ["-e", `inject=${names}:error=EIO:when=${before + 1}..${before + count}`];
  };

  const UNKNOWN = "OutcomeUnknown";
  type Case = readonly [
    what: string,
    role: Role,
    steps: string,
    fails: "write" | "sync",
    from: number,
    skip: number,
    count: number,
    /** The commits that are there after the restart, and of which nobody knew. */
    unknown: readonly number[],
  ];
  const CASES: readonly Case[] = [
    ["flushes fail, and work again", "owner", "1 1 400 150 40 1 1", "sync", 2, 0, 3, []],
    ["flushes fail until it is killed", "owner", "1 1 400 150 40", "sync", 2, 0, 99, [4]],
    ["the last flush fails", "owner", "1 1 150", "sync", 2, 0, 99, [2]],
    ["flushes fail, of ever larger commits", "owner", "1 1 40 150 400 1", "sync", 2, 0, 3, []],
    [
      "flushes fail, and also a checkpoint, and work again",
      "owner",
      "1 400 PASSIVE 150 1",
      "sync",
      1,
      0,
      3,
      [],
    ],
    [
      "flushes fail, then a checkpoint restarts the log",
      "owner",
      "1 400 150 RESTART 1 1",
      "sync",
      1,
      0,
      2,
      [],
    ],
    [
      "flushes fail, then a checkpoint truncates the log",
      "owner",
      "1 400 150 TRUNCATE 1 1",
      "sync",
      1,
      0,
      2,
      [],
    ],
    ["flushes fail after the log was restarted", "owner", "400 RESTART 150 40 1", "sync", 2, 0, 3, []],
    ["writes fail, and work again", "owner", "1 400 150 40 1", "write", 1, 0, 3, []],
    ["a write fails in the middle of a commit", "owner", "1 400 150 1", "write", 1, 21, 2, []],
    ["writes fail until it is killed", "owner", "1 400 150 40", "write", 1, 20, 999, []],
    ["a flush of a command fails", "guest", "1 150", "sync", 1, 0, 99, [1]],
  ];
  for (const [what, role, steps, fails, from, skip, count, unknown] of CASES)
    onLinux(`killed after ${what}: it starts, and what was acknowledged is there${skipped}`, async () => {
      const dry = await runKilled(await newPath(), role, steps, []);
      const path = await newPath();
      const { ended } = await runKilled(path, role, steps, failing(dry.calls, fails, { from, skip, count }));
      const stored = ended.filter((line) => line.endsWith(" done")).map((line) => Number(line.split(" ")[0]));
      const refused = ended.filter((line) => line.endsWith(` ${UNKNOWN}`));
      expect([refused.length > 0, ended.length]).toEqual([true, dry.ended.length]);
      expect(stored.length + refused.length).toBe(ended.length);
      expect(inspectDatabase(path, { wholeMaxBytes: 2 ** 30, live: false })).toMatchObject({
        kind: "intact",
      });
      const store = openSqlite(path, noFault);
      await store.close();
      using restarted = new Database(path);
      const sizes = restarted
        .query("SELECT data ->> 'name', count(*) FROM events GROUP BY 1 ORDER BY 1")
        .values();
      const numbers = [...stored, ...unknown].toSorted();
      expect(sizes).toEqual(numbers.map((step) => [String(step), Number(steps.split(" ")[step])]));
    });
});

describe("a ROLLBACK fails", () => {
  const NOT_ROLLED_BACK = expect.objectContaining({
    message: expect.stringContaining("could not be rolled back"),
    cause: expect.objectContaining({ code: "SQLITE_NOMEM" }),
  });
  const faulty = (store: Store): Promise<unknown> =>
    store.transact({}, () => {
      throw new Error("a bug");
    });

  test("nothing is written or read until one succeeds, and nothing of the group is committed then", async () => {
    const { store, disk, names } = await openScene();
    {
      using _ = failRollbacks();
      const group = [log(store, "a"), faulty(store), log(store, "b")];
      expect(await outcomes(group)).toEqual([NOT_ROLLED_BACK, NOT_ROLLED_BACK, NOT_ROLLED_BACK]);
      expect(store.writable).toBe(false);
      expect(await outcomes([log(store, "c"), store.read(lastEventId())])).toEqual([
        NOT_ROLLED_BACK,
        NOT_ROLLED_BACK,
      ]);
    }
    expect([await store.read(lastEventId()), store.writable]).toEqual([0, false]);
    expect(await outcomes([log(store, "d"), faulty(store), log(store, "e")])).toEqual([
      "d",
      expect.objectContaining({ message: "a bug" }),
      "e",
    ]);
    expect([names(), store.writable, disk.commits]).toEqual([["d", "e"], true, 1]);
  });

  test("the next group begins with another", async () => {
    const { store, names } = await openScene();
    {
      using _ = failRollbacks();
      expect(await outcomes([log(store, "a"), faulty(store)])).toEqual([NOT_ROLLED_BACK, NOT_ROLLED_BACK]);
    }
    expect(await outcomes([log(store, "b")])).toEqual(["b"]);
    expect([names(), store.writable]).toEqual([["b"], true]);
  });

  test("the next group comes after it, also where the log must be truncated to make room", async () => {
    let isTight = false;
    const { store, names } = await openScene((path) => !isTight || statSync(`${path}-wal`).size === 0);
    await log(store, "a");
    {
      using _ = failRollbacks();
      expect(await outcomes([faulty(store)])).toEqual([NOT_ROLLED_BACK]);
    }
    isTight = true;
    expect(await outcomes([log(store, "b")])).toEqual(["b"]);
    expect([names(), store.writable]).toEqual([["a", "b"], true]);
  });

  test("diagnose() comes after it, and shows only what is committed", async () => {
    const { store } = await openScene();
    const { sizeBytes } = await store.diagnose();
    {
      using _ = failRollbacks();
      const large: Change = {
        kind: "message.stored",
        message: message("m", { content: "x".repeat(100_000) }),
      };
      await outcomes([store.transact({}, () => accept(null, [large])), faulty(store)]);
    }
    expect((await store.diagnose()).sizeBytes).toBe(sizeBytes);
  });

  test("the store closes, and what was committed before stays", async () => {
    const { store, disk, names } = await openScene();
    await log(store, "a");
    using _ = failRollbacks();
    disk.commitFault = "SQLITE_IOERR_FSYNC";
    expect(await outcomes([log(store, "b")])).toEqual([NOT_ROLLED_BACK]);
    await store.close();
    expect(names()).toEqual(["a"]);
  });
});

test("a gathered change that is refused rejects only its transaction, and the event ids have no gap", async () => {
  const { store, names } = await openScene();
  const heard: (readonly number[])[] = [];
  store.onCommit((_, eventIds) => heard.push(eventIds));
  const entry = {
    seq: 1,
    from: "treasury",
    to: "node:n1",
    hash: null,
    nodeId: "n1",
    n: 1,
    amountMicro: 1,
    balanceMicro: 1n,
    kind: "reward",
    taskId: null,
    at: 1,
  } as const;
  const pay = (id: string) =>
    store.transact({}, () => accept(id, [event(id), { kind: "lux.entered", entry: { ...entry, id } }]));
  const beat = store.transact({}, () =>
    accept("beat", [
      event("never"),
      { kind: "node.beaten", nodeId: "gone", lastHeartbeatAt: 1, leaseUntil: 2 },
    ]),
  );
  const group = [log(store, "a"), pay("paid"), log(store, "b"), pay("twice"), beat, log(store, "c")];
  const error = expect.any(Error);
  expect(await outcomes(group)).toEqual(["a", "paid", "b", error, error, "c"]);
  expect(names()).toEqual(["a", "paid", "b", "c"]);
  expect(heard).toEqual([[1], [2], [3], [4]]);
  expect(await store.read(lastEventId())).toBe(4);
  expect(store.writable).toBe(true);
});

for (const [how, table, change] of [
  ["is gathered", "events", event("b")],
  ["is written in its place", "messages", { kind: "message.stored", message: message("m") }],
] as const)
  test(`damage that a change finds that ${how} is not hidden by another run of the group`, async () => {
    using _ = failOneInsert(table);
    const { store, names } = await openScene();
    const group = [log(store, "a"), store.transact({}, () => accept(null, [change]))];
    const damaged = expect.any(StoreDamaged);
    expect(await outcomes(group)).toEqual([damaged, damaged]);
    expect(await outcomes([log(store, "c")])).toEqual([damaged]);
    expect([names(), store.writable]).toEqual([[], false]);
  });

test("the fault of one transaction does not affect writable", async () => {
  const { store } = await openScene();
  const thrown = new Error("a bug");
  const faulty = store.transact({}, () => {
    throw thrown;
  });
  expect(await outcomes([faulty])).toEqual([thrown]);
  expect(store.writable).toBe(true);
});

describe("below --min-free", () => {
  const limits = { before: 2, limit: 100, now: 2 };
  const trimmed: Change = { kind: "answers.trimmed", keyId: null, maxBytes: 1, storedBytes: 1, scope: "" };
  const stored: Change = {
    kind: "answer.stored",
    answer: { scope: "k path key", asked: "h", status: 200, body: "{}", storedAt: 1 },
  };
  const FREEING: readonly (readonly Change[])[] = [
    [{ kind: "task.deleted", taskId: "t" }],
    [{ kind: "task.deleted", taskId: "t" }, event("deleted"), stored, trimmed],
    [{ kind: "file.deleted", fileId: "f" }],
    [
      { kind: "messages.refunded", ...limits },
      { kind: "messages.pruned", ...limits },
    ],
    [
      { kind: "events.refunded", ...limits },
      { kind: "events.pruned", ...limits },
    ],
    [event("expired"), { kind: "deliveries.pruned", broadcast: true, ...limits }],
    [{ kind: "deliveries.pruned", broadcast: false, ...limits }],
    [{ kind: "broadcasts.pruned", ...limits }],
    [{ kind: "broadcast.trimmed", seq: 1, limit: 1 }],
    [{ kind: "answers.pruned", before: 2, limit: 100 }],
    [trimmed],
    [{ kind: "minutes.pruned", first: 1, last: 2 }],
  ];
  for (const changes of FREEING)
    test(`${changes.map(({ kind }) => kind).join(", ")} is written, and proves nothing`, async () => {
      let isRoomy = false;
      const { store } = await openScene(() => isRoomy);
      expect(store.writable).toBe(true);
      expect(await store.transact({}, () => accept("freed", changes))).toBe("freed");
      expect(store.writable).toBe(false); // another write would be refused
      expect(await outcomes([log(store, "a")])).toEqual([expect.any(StoreFull)]);
      expect(await store.transact({}, () => accept("freed", changes))).toBe("freed");
      expect(store.writable).toBe(false);
      isRoomy = true;
      await store.transact({}, () => accept(null)); // writes nothing
      expect(store.writable).toBe(false);
      await log(store, "b");
      expect(store.writable).toBe(true);
    });

  test("a second deletion proves nothing either", async () => {
    const { store } = await openScene(() => false);
    for (const taskId of ["t1", "t2"]) {
      await store.transact({}, () => accept(null, [{ kind: "task.deleted", taskId }]));
      expect(store.writable).toBe(false);
    }
  });

  test("a transaction that has written before it needs room is undone", async () => {
    let isRoomy = true;
    const { store, count } = await openScene(() => isRoomy);
    await store.transact({}, () => accept(null, [{ kind: "task.created", task: task("t1") }]));
    isRoomy = false;
    const deletion: Part = {
      load: () => ({}),
      decide: () => accept(null, [{ kind: "task.deleted", taskId: "t1" }]),
    };
    const asked = store.transact({}, () => accept(null, [event("a")]), [deletion]);
    expect(await outcomes([asked])).toEqual([expect.any(StoreFull)]);
    expect(count("tasks")).toBe(1);
  });

  for (const changes of [[event("a")], [event("a"), stored, trimmed], [trimmed, stored]])
    test(`${changes.map(({ kind }) => kind).join(", ")} is refused`, async () => {
      const { store, names } = await openScene(() => false);
      const asked = store.transact({}, () => accept("stored", changes));
      expect(await outcomes([asked])).toEqual([expect.any(StoreFull)]);
      expect([names(), store.writable]).toEqual([[], false]);
    });

  test("what shares a group with a deletion is refused, and the deletion stands", async () => {
    const { store, names, count } = await openScene(() => isRoomy);
    let isRoomy = true;
    await store.transact({}, () => accept(null, [{ kind: "task.created", task: task("t1") }]));
    isRoomy = false;
    const deletion = store.transact({}, () => accept("deleted", [{ kind: "task.deleted", taskId: "t1" }]));
    expect(await outcomes([deletion, log(store, "a")])).toEqual(["deleted", expect.any(StoreFull)]);
    expect([names(), count("tasks"), store.writable]).toEqual([[], 0, false]);
  });
});

test("a log that a reader has kept long is truncated when the reader has ended, and makes room", async () => {
  const path = await newPath();
  let isTight = false;
  const store = openSqlite(path, noFault, undefined, () => !isTight || statSync(`${path}-wal`).size === 0);
  closing.push(() => store.close());
  const reader = new Database(path, { readonly: true });
  closing.push(async () => reader.close(true));
  await log(store, "a");
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM events").get();
  await log(store, "b");
  isTight = true;
  expect(await outcomes([log(store, "c")])).toEqual([expect.any(StoreFull)]);
  expect(store.writable).toBe(false);
  reader.run("COMMIT");
  while ((await outcomes([log(store, "d")]))[0] !== "d") await Bun.sleep(20); // it is tried once a second
  expect(store.writable).toBe(true);
});

test("what a decision wakes joins its group, and shares its fate when another transaction throws", async () => {
  const { store, disk, names } = await openScene();
  const joined: Promise<unknown>[] = [];
  store.onDecision((changes) => {
    if (changes.some((change) => change.kind === "event.logged" && change.event.data["name"] === "a"))
      joined.push(log(store, `woken ${joined.length}`));
  });
  const thrown = new Error("a bug");
  const faulty = store.transact({}, () => {
    throw thrown;
  });
  expect(await outcomes([log(store, "a"), faulty, log(store, "b")])).toEqual(["a", thrown, "b"]);
  // The group was decided again without the faulty transaction, and notified again.
  await Promise.all(joined);
  expect([names().slice(0, 2), disk.commits]).toEqual([["a", "b"], 1]);
  expect(names().slice(2)).toEqual(joined.map((_, i) => `woken ${i}`));
});
