/** The periodic work on a disk that refuses writes: it notices when writes succeed again, and renews the leases. */
import { afterEach, expect, test } from "bun:test";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDiskBlobs } from "../../src/blobs/disk.ts";
import { accept } from "../../src/domain/decision.ts";
import { PRUNE_EVERY_MS, STUCK_AFTER_DEFAULT_MS } from "../../src/domain/limits.ts";
import { register } from "../../src/domain/node.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { openLog } from "../../src/lib/log.ts";
import { EmbeddedMail } from "../../src/mail/embedded.ts";
import { PROBE, choresOf, renewLeases } from "../../src/service/periodic-work.ts";
import { Feed } from "../../src/service/feed.ts";
import { FileService } from "../../src/service/files.ts";
import { Takes } from "../../src/service/blocked-calls.ts";
import { IdleWorkers } from "../../src/service/idle-workers.ts";
import { History } from "../../src/service/history.ts";
import { Minutes } from "../../src/service/minutes.ts";
import { NextService } from "../../src/service/next.ts";
import { LeaseService } from "../../src/service/leases.ts";
import { MessageService } from "../../src/service/messages.ts";
import { NodeService } from "../../src/service/nodes.ts";
import { Leadership, Scheduler } from "../../src/service/scheduler.ts";
import { Retention } from "../../src/service/retention.ts";
import { StuckTasks } from "../../src/service/stuck-tasks.ts";
import { ScheduleService } from "../../src/service/schedules.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { eventsAfter } from "../../src/store/sql/events.ts";
import { nodeById } from "../../src/store/sql/nodes.ts";
import type { ElectionResult } from "../../src/store/store.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { FailingDisk, failRollbacks } from "../support/failing-disk.ts";
import { TestClock } from "../support/hub.ts";

const PROFILE = {
  name: "n",
  host: null,
  port: null,
  capabilities: [],
  maxTasks: null,
  autoAssign: true,
} as const;
const LEASE_MS = 180_000;

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** `elected`: whether this hub leads. `hasRoom`: whether the disk of the database has more free space than must remain. */
async function openScene(
  elected: ElectionResult = "leader",
  { hasRoom = () => true, retainMs = 1e9 }: { hasRoom?: () => boolean; retainMs?: number } = {},
) {
  const folder = await mkdtemp(join(tmpdir(), "luxhub-full-"));
  closing.push(() => rm(folder, { recursive: true }));
  const disk = new FailingDisk();
  const store = openSqlite(
    join(folder, "db"),
    (error) => {
      throw error;
    },
    disk.commit,
    hasRoom,
  );
  closing.push(() => store.close());
  const blobs = await openDiskBlobs(folder, disk.io);
  closing.push(() => blobs.close());
  const clock = new TestClock();
  const lines: string[] = [];
  const log = openLog({ format: "json", level: "debug" }, systemClock().now, (text) =>
    lines.push(...text.trimEnd().split("\n")),
  );
  const feed = new Feed(store, clock);
  const tasks = new TaskService(store, clock, newId);
  const takes = new Takes(store, clock);
  const messages = new MessageService(store, new EmbeddedMail(store), clock, newId, feed.receivers, takes);
  const nodes = new NodeService(store, clock, tasks);
  const files = new FileService(store, clock, blobs, () => false);
  const next = new NextService(store, clock, nodes, tasks, new IdleWorkers(store, tasks.knownLanes), takes);
  const minutes = new Minutes(store, clock, "h1");
  const history = new History(store, clock, minutes);
  const leases = new LeaseService(store, clock);
  const parts = {
    store,
    blobs,
    clock,
    log,
    tasks,
    nodes,
    next,
    takes,
    messages,
    leases,
    files,
    minutes,
    history,
  };
  const choreParts = {
    ...parts,
    schedules: new ScheduleService(
      store,
      clock,
      newId,
      { charging: () => null },
      { limiting: () => null },
      { isRevoked: () => false },
    ),
    retention: new Retention(
      store,
      { removeBytes: async () => {} },
      { tasksMs: null, filesMs: null, usageMs: null },
    ),
    noteStart: async () => undefined,
    compareSecrets: null,
    requeueOffline: true,
    retainMs,
    retainNodesMs: null,
    stuck: new StuckTasks(store, clock, STUCK_AFTER_DEFAULT_MS),
    maxAnswersBytes: 2 ** 30,
  };
  const chores = choresOf(choreParts);
  const leadership = new Leadership({ lead: async () => elected }, () => renewLeases(choreParts));
  const scheduler = new Scheduler({ clock, log, leadership, chores, pauseMs: 60_000 }); // swept by hand
  for (const nodeId of ["n1", "n2"]) {
    const beat = { now: clock.now(), steady: clock.steady(), leaseMs: LEASE_MS };
    await store.transact({}, () => register({ ...PROFILE, nodeId, variant: "A" }, null, [], beat));
  }
  return {
    store,
    blobs,
    disk,
    clock,
    messages,
    folder,
    /** One round of the periodic work, a second after the last; the lines it logged. */
    sweep: async (): Promise<readonly string[]> => {
      clock.pass(1_000);
      await scheduler.sweep();
      log.flush();
      return lines.splice(0).map((line) => {
        const { level, message, cause }: Record<string, unknown> = JSON.parse(line);
        return [level, message, cause].filter((part) => part !== undefined).join(" | ");
      });
    },
  };
}

const reason = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "done",
    (error: unknown) => (error instanceof Error ? error.name : "?"),
  );

test("a full database is noticed, logged once, and found writable again without a request", async () => {
  const { store, disk, messages, sweep } = await openScene();
  const draft = {
    fromNode: "op",
    toNode: "n1",
    type: "text",
    content: "x",
    requireAck: false,
    replyTo: null,
    thread: null,
    verified: false,
  } as const;
  expect(await sweep()).toEqual([]);
  disk.commitFault = "SQLITE_FULL";
  expect(await reason(messages.send(store.transact, draft))).toBe("StoreFull");
  expect(store.writable).toBe(false);
  expect(await sweep()).toEqual([
    "error | the database cannot be written | The disk is full. Error: injected SQLITE_FULL",
  ]);
  expect([await sweep(), await sweep(), store.writable]).toEqual([[], [], false]);
  disk.commitFault = null;
  expect([await sweep(), store.writable]).toEqual([["warn | the database can be written again"], true]);
  expect(await sweep()).toEqual([]);
  expect(await reason(messages.send(store.transact, draft))).toBe("done");
});

test("a failed ROLLBACK is logged, and the database is used again once one succeeds", async () => {
  const { store, disk, sweep } = await openScene();
  await sweep();
  const lines: string[] = [];
  {
    using _ = failRollbacks();
    disk.commitFault = "SQLITE_IOERR_WRITE";
    expect(await reason(store.transact({}, () => accept(null, [PROBE])))).toBe("Error");
    disk.commitFault = null;
    lines.push(...(await sweep()), ...(await sweep()));
  }
  expect(lines).toContainEqual(
    expect.stringMatching(/^error \| the database cannot be written \| A group .* could not be rolled back/),
  );
  expect([await sweep(), store.writable]).toEqual([["warn | the database can be written again"], true]);
});

test("below --min-free retention goes on, and the database still counts as one that cannot be written", async () => {
  const scene = { isRoomy: true };
  const hasRoom = (): boolean => scene.isRoomy;
  const { store, sweep } = await openScene("leader", { hasRoom, retainMs: PRUNE_EVERY_MS / 2 });
  const events = async (): Promise<number> => (await store.read(eventsAfter(0, [], 100))).length;
  await sweep();
  expect(await events()).toBeGreaterThan(1); // younger than the retention
  scene.isRoomy = false;
  expect(await reason(store.transact({}, () => accept(null, [PROBE])))).toBe("StoreFull");
  const lines: string[] = [];
  for (let seconds = 0; seconds <= PRUNE_EVERY_MS / 1_000; seconds++) lines.push(...(await sweep()));
  expect([await events(), store.writable]).toEqual([1, false]); // the newest stays
  expect(lines).toEqual([expect.stringContaining("error | the database cannot be written | ")]);
  scene.isRoomy = true;
  expect(await sweep()).toEqual(["warn | the database can be written again"]);
  expect(store.writable).toBe(true);
});

test("a full disk of files is noticed, logged once, and found writable again without an upload; the probe leaves nothing", async () => {
  const { blobs, disk, folder, sweep } = await openScene();
  const upload = async (): Promise<unknown> => {
    const writer = await blobs.begin();
    try {
      await writer.write(new Uint8Array(10));
      return await writer.finish();
    } finally {
      await writer.discard();
    }
  };
  disk.fileFault = "ENOSPC";
  expect(await reason(upload())).toBe("BlobsFull");
  expect(blobs.writable).toBe(false);
  expect(await sweep()).toEqual([
    "error | the files cannot be written | no room left for files Error: injected ENOSPC",
  ]);
  expect([await sweep(), blobs.writable]).toEqual([[], false]);
  disk.fileFault = null;
  expect([await sweep(), blobs.writable]).toEqual([["warn | the files can be written again"], true]);
  expect(await readdir(join(folder, "files", ".partial"))).toEqual([]);
  expect(await reason(upload())).toBe("done");
});

test("nodes whose heartbeats could not be stored get a full lease when there is room again", async () => {
  const { store, disk, clock, sweep } = await openScene();
  disk.commitFault = "SQLITE_FULL";
  await reason(store.transact({}, () => accept(null, [{ kind: "node.offline", nodeId: "n2" }])));
  for (let passed = 0; passed < 10 * LEASE_MS; passed += LEASE_MS) {
    clock.pass(LEASE_MS);
    await sweep();
  }
  disk.commitFault = null;
  // Somebody's write comes before the next sweep: the store is well, and the leases have all run out.
  await store.transact({}, () =>
    accept(null, [{ kind: "tasks.tallied", open: 0, assigned: 0, completed: 0, failed: 0 }]),
  );
  expect(store.writable).toBe(true);
  await sweep();
  for (const nodeId of ["n1", "n2"])
    expect(await store.read(nodeById(nodeId))).toMatchObject({ online: true });
  clock.pass(LEASE_MS);
  await sweep();
  expect(await store.read(nodeById("n1"))).toMatchObject({ online: false });
});

const OWED: readonly (readonly [boolean, ElectionResult])[] = [
  [false, "leader"],
  [true, "leader"],
  [false, "follower"],
];
for (const [requireAck, elected] of OWED)
  test(`a failed put-back of a message is repeated (require_ack ${requireAck}, the hub is ${elected})`, async () => {
    const { store, disk, messages, sweep } = await openScene(elected);
    const draft = {
      fromNode: "op",
      toNode: "n1",
      type: "text",
      requireAck,
      replyTo: null,
      thread: null,
      verified: false,
    } as const;
    for (const content of ["first", "second"]) await messages.send(store.transact, { ...draft, content });
    const caller = new AbortController();
    // The receiver hangs up as soon as its messages are taken, and from then on the disk is full.
    const stop = { armed: true };
    store.onCommit((changes) => {
      if (!stop.armed || !changes.some((change) => change.kind === "delivery.moved")) return;
      stop.armed = false;
      disk.commitFault = "SQLITE_FULL";
      setImmediate(() => caller.abort());
    });
    const patience = { waitMs: 0, signal: caller.signal, repeatable: false };
    expect(await reason(messages.receive(store.transact, "n1", 1, patience))).toBe("WaitAborted");
    const live = { waitMs: 0, signal: new AbortController().signal, repeatable: false };
    await sweep();
    disk.commitFault = null;
    expect((await sweep()).filter((line) => line.includes("periodic work"))).toEqual([]);
    const next = await messages.receive(store.transact, "n1", 10, live);
    expect(next.deliveries.map(({ message, deliveries }) => [message.content, deliveries])).toEqual([
      ["first", 1],
      ["second", 1],
    ]);
  });
