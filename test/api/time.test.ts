/**
 * Time (docs/failures.md, The clock): the effect of a jump of the wall clock, a suspended machine, a stopped process and
 * a clock that was never set on heartbeats, ACKs, sign-ins, events, retention and stored answers. The tests set the clock.
 */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { accept } from "../../src/domain/decision.ts";
import type { KeyRecord } from "../../src/domain/model.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, notBefore, systemClock } from "../../src/lib/clock.ts";
import { hashSecret } from "../../src/service/keys.ts";
import { openPostgres } from "../../src/store/postgres/engine.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { TestClock, type TestHub, newDataDir, startHub } from "../support/hub.ts";
import { list, ok, refused, until } from "./scene.ts";

const YEAR_MS = 365 * DAY_MS;
const JUMPS = { "an hour ahead": HOUR_MS, "an hour back": -HOUR_MS, "50 years ahead": 50 * YEAR_MS } as const;

/** Time passes, second by second as the hub's periodic work sees it would be too many: in steps below every lease. */
async function live(hub: TestHub, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 10 * SECOND_MS) {
    hub.clock.pass(Math.min(left, 10 * SECOND_MS));
    await hub.sweep();
  }
}

/** The wall clock jumps, maybe during a sweep, and the hub notices. */
async function jump(hub: TestHub, ms: number): Promise<void> {
  hub.clock.jump(ms);
  await hub.sweep();
}

async function statuses(hub: TestHub): Promise<string> {
  const nodes = list(await ok(hub.get("/node/list")), "nodes");
  return nodes.map((node) => `${node["node_id"]} ${node["status"]}`).join(", ");
}

const signIn = (hub: TestHub) => ok(hub.post("/signin", { node_id: "n1" }));

function clockAt(wall: number): TestClock {
  const clock = new TestClock();
  clock.jump(wall - clock.now());
  return clock;
}

describe.concurrent("a node's lease", () => {
  test.each(Object.entries(JUMPS))(
    "%s: nobody goes offline, and who is silent does in its full time",
    async (_, ms) => {
      await using hub = await startHub();
      await hub.addNode("a", {}, "A");
      await hub.addNode("b", {}, "B");
      const task = await hub.addTaskOf("b");
      // Well before b would go: a machine that is busy adds time of its own.
      await live(hub, 60 * SECOND_MS);
      await jump(hub, ms);
      await live(hub, 60 * SECOND_MS);
      expect(await statuses(hub)).toBe("a online, b online");
      expect(await hub.taskOf(task)).toMatchObject({ assigned_node: "b", attempts: 0 });
      await live(hub, 31 * SECOND_MS);
      expect(await statuses(hub)).toBe("a online, b offline");
      await live(hub, 90 * SECOND_MS);
      expect(await statuses(hub)).toBe("a offline, b offline");
      expect((await hub.eventKinds()).filter((kind) => kind === "node.offline")).toHaveLength(2);
    },
  );

  test("a process that was stopped for an hour gives every node a full lease", async () => {
    await using hub = await startHub();
    await hub.addNode("a", {}, "A");
    await hub.addNode("b", {}, "B");
    await live(hub, 60 * SECOND_MS);
    hub.clock.stop(HOUR_MS);
    await until("the hub has noticed", async () => hub.logged.join("").includes("the hub stood still"));
    await live(hub, 60 * SECOND_MS);
    expect(await statuses(hub)).toBe("a online, b online");
    await live(hub, 31 * SECOND_MS);
    expect(await statuses(hub)).toBe("a online, b offline");
  });

  test("time that passes while the hub works is no stop", async () => {
    await using hub = await startHub();
    await hub.addNode("b", {}, "B");
    hub.clock.pass(91 * SECOND_MS);
    await hub.sweep();
    expect(await statuses(hub)).toBe("b offline");
  });
});

describe.concurrent("a message that requires an ACK", () => {
  test.each(Object.entries(JUMPS))("%s: is redelivered once, after 30 s", async (_, ms) => {
    await using hub = await startHub();
    await hub.addNode("n1", {}, "A");
    await hub.send("op", "n1", { require_ack: true });
    expect(await hub.receive("n1")).toMatchObject([{ deliveries: 1 }]);
    await live(hub, 15 * SECOND_MS);
    await jump(hub, ms);
    await live(hub, 16 * SECOND_MS);
    expect(await hub.receive("n1")).toEqual([]);
    await live(hub, 15 * SECOND_MS);
    expect(await hub.receive("n1")).toMatchObject([{ deliveries: 2, redelivered: true }]);
    expect(await hub.receive("n1")).toEqual([]);
  });
});

describe.concurrent("sign-in", () => {
  const midnight = Date.UTC(2027, 2, 10);

  test("pays each day once, however often the clock crosses midnight", async () => {
    await using hub = await startHub({ clock: clockAt(midnight - 30 * MINUTE_MS) });
    await hub.addNode("n1");
    const earned: unknown[] = [];
    for (const ms of [0, HOUR_MS, -HOUR_MS, HOUR_MS, 0]) {
      await jump(hub, ms);
      earned.push((await signIn(hub))["lux_earned"]);
    }
    expect(earned).toEqual([10, 10, 0, 0, 0]);
  });

  test("after a step back over midnight, the previous day is not paid again, and the answer has the time of the next payment", async () => {
    await using hub = await startHub({ clock: clockAt(midnight + MINUTE_MS) });
    await hub.addNode("n1");
    await signIn(hub);
    await jump(hub, -HOUR_MS);
    const next = new Date(midnight + DAY_MS).toISOString();
    expect(await signIn(hub)).toMatchObject({ lux_earned: 0, already_signed_in: true, next_signin_at: next });
  });

  test("a sign-in dated years ahead blocks no later one, and its own day is not paid twice", async () => {
    await using hub = await startHub({ clock: clockAt(midnight) });
    await hub.addNode("n1");
    await jump(hub, 3 * YEAR_MS);
    expect(await signIn(hub)).toMatchObject({ lux_earned: 10 });
    await jump(hub, -3 * YEAR_MS);
    expect(await signIn(hub)).toMatchObject({ lux_earned: 10, lux_balance: 20 });
    expect(await signIn(hub)).toMatchObject({ lux_earned: 0, already_signed_in: true });
    await jump(hub, 3 * YEAR_MS);
    expect(await signIn(hub)).toMatchObject({ lux_earned: 0, lux_balance: 20 });
  });
});

describe.concurrent("retention", () => {
  const KEYED = { headers: { "Idempotency-Key": "k" } };
  const pay = (hub: TestHub) => hub.post("/signin", { node_id: "n1" }, KEYED);
  const isReplay = async (hub: TestHub): Promise<boolean> =>
    (await pay(hub)).headers.get("idempotent-replayed") === "true";

  /** Runs the prune chore, which is due once a minute. */
  const prune = async (hub: TestHub): Promise<void> => {
    hub.clock.pass(61 * SECOND_MS);
    await hub.sweep();
  };

  test.each(Object.entries(JUMPS))(
    "%s: an answer is replayed for its 24 hours as they were lived",
    async (_, ms) => {
      await using hub = await startHub();
      await hub.addNode("n1");
      await ok(pay(hub));
      hub.clock.pass(12 * HOUR_MS);
      await jump(hub, ms);
      await prune(hub);
      expect(await isReplay(hub)).toBe(true);
      hub.clock.pass(12 * HOUR_MS - 5 * MINUTE_MS);
      expect(await isReplay(hub)).toBe(true);
      hub.clock.pass(10 * MINUTE_MS + Math.max(-ms, 0)); // after a jump back it lasts as much longer
      await prune(hub);
      expect(await isReplay(hub)).toBe(false);
    },
  );

  test.each(Object.entries(JUMPS))(
    "%s: messages and events stay until they have lived their time",
    async (_, ms) => {
      await using hub = await startHub();
      await hub.addNode("n1");
      await hub.send("op", "n1");
      hub.clock.pass(7 * DAY_MS - 30 * MINUTE_MS);
      await prune(hub);
      const before = await hub.eventKinds();
      await jump(hub, ms);
      await prune(hub);
      expect((await hub.eventKinds()).slice(0, before.length)).toEqual(before);
      expect(await hub.receive("n1")).toHaveLength(1);
      hub.clock.pass(8 * DAY_MS + HOUR_MS);
      await prune(hub);
      expect(list(await ok(hub.get("/message/history?node_id=n1")), "messages")).toEqual([]);
      expect(await hub.eventKinds()).toHaveLength(1);
    },
  );

  test("a jump that is undone has no effect", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await hub.send("op", "n1");
    await jump(hub, 5 * DAY_MS);
    await jump(hub, -5 * DAY_MS);
    hub.clock.pass(7 * DAY_MS);
    await prune(hub);
    expect(await hub.receive("n1")).toEqual([]);
  });
});

test("event ids keep growing when the clock goes back, and a cursor misses none", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const { cursor } = await ok(hub.get("/events?since=0"));
  await jump(hub, -HOUR_MS);
  await hub.addNode("n2");
  const events = list(await ok(hub.get("/events?since=0")), "events");
  expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => i + 1));
  const later = list(await ok(hub.get(`/events?since=${cursor}`)), "events");
  expect(later.map(({ node_id }) => node_id)).toEqual(["n2", "n2"]);
  expect(String(later[0]?.["at"]) < String(events[0]?.["at"])).toBe(true);
});

test("a key expires by the wall clock", async () => {
  const dataDir = newDataDir();
  try {
    const clock = new TestClock();
    await addKey(dataDir, "short", clock.now() + 30 * MINUTE_MS);
    await using hub = await startHub({ dataDir, clock });
    const status = async () =>
      (await hub.get("/lux/ledger?node_id=x", { headers: { "X-Matrix-Secret": "short" } })).status;
    expect(await status()).toBe(404);
    await jump(hub, HOUR_MS);
    expect(await status()).toBe(401);
    await jump(hub, -HOUR_MS);
    expect(await status()).toBe(404);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

/** A stored key whose secret is its id. */
async function addKey(dataDir: string, keyId: string, expiresAt: number): Promise<void> {
  await using hub = await startHub({ dataDir }); // makes the database
  await hub.close();
  const store =
    hub.database === null
      ? openSqlite(join(dataDir, "luxhub.db"), () => undefined)
      : await openPostgres(hub.database, systemClock(), () => undefined);
  const free = { variant: null, nodeId: null, mintMicro: null, createdAt: 0, revokedAt: null };
  const key: KeyRecord = { ...free, keyId, role: "full", hash: hashSecret(keyId), expiresAt };
  await store.transact({}, () => accept(null, [{ kind: "key.saved", key }]));
  await store.close();
}

describe("a clock that was never set", () => {
  const UNSET = Date.UTC(1970, 0, 1, 0, 0, 20);
  const times = async (hub: TestHub): Promise<number[]> =>
    list(await ok(hub.get("/events?since=0&limit=1000")), "events").map(({ at }) => Date.parse(String(at)));

  test("continues from the newest event; when it is set nothing is lost, and expired keys stay expired", async () => {
    const dataDir = newDataDir();
    try {
      const boughtAt = Date.UTC(2027, 5, 1);
      await addKey(dataDir, "gone", boughtAt - DAY_MS);
      {
        await using hub = await startHub({ dataDir, clock: clockAt(boughtAt) });
        await hub.addNode("n1");
      }
      await using hub = await startHub({ dataDir, clock: clockAt(UNSET) });
      const secret = { headers: { "X-Matrix-Secret": "gone" } };
      await refused(hub.get("/lux/ledger?node_id=n1", secret), 401, "unauthorized");
      await hub.send("op", "n1");
      expect((await times(hub)).at(-1)).toBeWithin(boughtAt, boughtAt + MINUTE_MS);
      await ok(hub.post("/signin", { node_id: "n1" }, { headers: { "Idempotency-Key": "k" } }));
      await jump(hub, boughtAt + 30 * DAY_MS - UNSET);
      hub.clock.pass(61 * SECOND_MS);
      await hub.sweep();
      expect(await hub.receive("n1")).toHaveLength(1);
      expect((await hub.nodeOf("n1"))["status"]).toBe("online");
      const again = await hub.post("/signin", { node_id: "n1" }, { headers: { "Idempotency-Key": "k" } });
      expect(again.headers.get("idempotent-replayed")).toBe("true");
    } finally {
      rmSync(dataDir, { recursive: true });
    }
  });

  test("an empty store starts in the program's release year", () => {
    const clock = clockAt(UNSET);
    const known = notBefore(clock, 0);
    expect(new Date(known.now()).getUTCFullYear()).toBe(2026);
    clock.pass(HOUR_MS);
    expect(known.now()).toBeWithin(Date.UTC(2026, 0, 1, 1), Date.UTC(2026, 0, 1, 1, 1));
    clock.jump(Date.UTC(2027, 0, 1) - clock.now());
    expect(known.now()).toBeWithin(clock.now() - 1_000, clock.now() + 1);
  });

  test("a clock that was set is trusted, even if it is behind the newest event", () => {
    const clock = clockAt(Date.UTC(2027, 0, 1));
    expect(notBefore(clock, Date.UTC(2099, 0, 1)).now()).toBeWithin(clock.now() - 1_000, clock.now() + 1);
  });
});
