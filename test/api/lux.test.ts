/** LUX: the daily sign-in, and a ledger whose entries add up to the balances. */
import { describe, expect, test } from "bun:test";
import { TestClock, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import {
  ISO,
  addNode,
  addNodes,
  addTaskOf,
  badFields,
  complete,
  eventKinds,
  list,
  nodeOf,
  ok,
  pick,
  refused,
} from "./scene.ts";

const once = onlyOnce(import.meta.url);

const DAY_MS = 86_400_000;

/** A clock that stands at this time of a day to come. */
function clockAt(time: string): TestClock {
  const clock = new TestClock();
  const tomorrow = new Date(clock.now() + DAY_MS).toISOString().slice(0, 10);
  clock.jump(Date.parse(`${tomorrow}T${time}Z`) - clock.now());
  return clock;
}

function nextMidnight(clock: TestClock): string {
  return new Date((Math.floor(clock.now() / DAY_MS) + 1) * DAY_MS).toISOString();
}

function signIn(hub: TestHub, nodeId = "n1") {
  return ok(hub.post("/signin", { node_id: nodeId }));
}

describe("signin", () => {
  test("earns 10 LUX, once a UTC day", async () => {
    const clock = clockAt("12:00:00.000");
    await using hub = await startHub({ clock });
    await addNode(hub, "n1");
    const today = { success: true, lux_balance: 10, next_signin_at: nextMidnight(clock) };
    expect(await signIn(hub)).toEqual({ ...today, lux_earned: 10, already_signed_in: false });
    expect(await signIn(hub)).toEqual({ ...today, lux_earned: 0, already_signed_in: true });
    const onB = await ok(hub.post("/signin", { node_id: "n1" }, { variant: "B" }));
    expect(onB).toEqual({ ...today, lux_earned: 0, already_signed_in: true });
    clock.pass(DAY_MS);
    expect(await signIn(hub)).toEqual({
      success: true,
      lux_earned: 10,
      already_signed_in: false,
      lux_balance: 20,
      next_signin_at: nextMidnight(clock),
    });
    expect((await eventKinds(hub)).filter((kind) => kind === "lux.signin")).toHaveLength(2);
  });

  once.test("the day begins at midnight UTC, not 24 hours after the last", async () => {
    const clock = clockAt("23:59:30.000");
    await using hub = await startHub({ clock });
    await addNode(hub, "n1");
    expect(await signIn(hub)).toMatchObject({ lux_earned: 10, next_signin_at: nextMidnight(clock) });
    expect(await signIn(hub)).toMatchObject({ lux_earned: 0 });
    clock.pass(30_000);
    expect(await signIn(hub)).toMatchObject({ lux_earned: 10, lux_balance: 20 });
    clock.pass(DAY_MS - 60_000);
    expect(await signIn(hub)).toMatchObject({ lux_earned: 0, already_signed_in: true });
    clock.pass(60_000);
    expect(await signIn(hub)).toMatchObject({ lux_earned: 10, lux_balance: 30 });
  });

  once.test("a clock that is set back pays for no day twice", async () => {
    const clock = clockAt("00:00:10.000");
    await using hub = await startHub({ clock });
    await addNode(hub, "n1");
    await signIn(hub);
    clock.jump(-60_000);
    expect(await signIn(hub)).toMatchObject({ lux_earned: 0, already_signed_in: true });
    clock.jump(60_000);
    expect(await signIn(hub)).toMatchObject({ lux_earned: 0, lux_balance: 10 });
  });

  once.test("counts for each node separately", async () => {
    await using hub = await startHub({ clock: clockAt("12:00:00.000") });
    await addNodes(hub, ["n1", "n2"]);
    expect(await signIn(hub, "n1")).toMatchObject({ lux_earned: 10, lux_balance: 10 });
    expect(await signIn(hub, "n2")).toMatchObject({ lux_earned: 10, lux_balance: 10 });
  });

  test("simultaneous sign-ins pay once", async () => {
    await using hub = await startHub({ clock: clockAt("12:00:00.000") });
    await addNode(hub, "n1");
    const answers = await Promise.all(Array.from({ length: 30 }, () => signIn(hub)));
    expect(answers.filter((answer) => answer["lux_earned"] === 10)).toHaveLength(1);
    expect(await nodeOf(hub, "n1")).toMatchObject({ lux_balance: 10 });
  });

  once.test("requires a registered node", async () => {
    await using hub = await startHub();
    await refused(hub.post("/signin", { node_id: "ghost" }), 404, "node_not_found");
    await badFields(hub.post("/signin", {}), ["node_id"]);
    await badFields(hub.post("/signin", { node_id: 5 }), ["node_id"]);
  });
});

describe("the ledger", () => {
  test("shows every payment, newest first, and adds up to the balance", async () => {
    await using hub = await startHub({ clock: clockAt("12:00:00.000") });
    await addNodes(hub, ["n1", "n2"]);
    const small = await addTaskOf(hub, "n1", { lux_reward: 0.1 });
    const large = await addTaskOf(hub, "n1", { lux_reward: 0.2 });
    await ok(complete(hub, small, "n1"));
    await signIn(hub);
    await signIn(hub);
    await signIn(hub, "n2");
    await ok(complete(hub, large, "n1"));
    const body = await ok(hub.get("/lux/ledger?node_id=n1"));
    expect(body).toMatchObject({ page: 1, per_page: 20, total: 3, pages: 1 });
    const entries = list(body, "entries");
    expect(entries.map(({ amount, kind, task_id, node_id }) => [amount, kind, task_id, node_id])).toEqual([
      [0.2, "reward", large, "n1"],
      [10, "signin", null, "n1"],
      [0.1, "reward", small, "n1"],
    ]);
    for (const entry of entries) {
      expect(entry).toMatchObject({ from: "treasury", to: "node:n1" });
      expect(entry["at"]).toMatch(ISO);
    }
    expect(new Set(entries.map((entry) => entry["id"])).size).toBe(3);
    expect(await nodeOf(hub, "n1")).toMatchObject({ lux_balance: 10.3 }); // not 10.299999999999999
  });

  once.test("is paged like tasks", async () => {
    const clock = clockAt("12:00:00.000");
    await using hub = await startHub({ clock, offlineTasks: "keep" });
    await addNode(hub, "n1");
    for (let day = 0; day < 23; day++) {
      await signIn(hub);
      clock.pass(DAY_MS);
    }
    const page = async (query: string) => {
      const body = await ok(hub.get(`/lux/ledger?node_id=n1${query}`));
      return { ...body, entries: list(body, "entries").length };
    };
    expect(await page("")).toMatchObject({ entries: 20, page: 1, per_page: 20, total: 23, pages: 2 });
    expect(await page("&page=2")).toMatchObject({ entries: 3, page: 2 });
    expect(await page("&per_page=100")).toMatchObject({ entries: 23, per_page: 50, pages: 1 });
    const ids = [];
    for (let at = 1; at <= 5; at++) {
      ids.push(...pick(await ok(hub.get(`/lux/ledger?node_id=n1&per_page=5&page=${at}`)), "entries", "id"));
    }
    expect(new Set(ids).size).toBe(23);
    await badFields(hub.get("/lux/ledger?node_id=n1&page=0&per_page=0"), ["page", "per_page"]);
  });

  once.test("requires a registered node", async () => {
    await using hub = await startHub();
    await refused(hub.get("/lux/ledger?node_id=ghost"), 404, "node_not_found");
    await badFields(hub.get("/lux/ledger"), ["node_id"]);
    await addNode(hub, "n1");
    expect(await ok(hub.get("/lux/ledger?node_id=n1"))).toMatchObject({ entries: [], total: 0, pages: 0 });
  });

  test("sums are exact where floating point is not", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const rewards = [0.1, 0.2, 0.7, 1.1, 999_999_999.999999, 0.000001, 0.3];
    for (const lux_reward of rewards) {
      await ok(complete(hub, await addTaskOf(hub, "n1", { lux_reward }), "n1"));
    }
    const micro = rewards.reduce((sum, lux) => sum + Math.round(lux * 1e6), 0);
    expect(await nodeOf(hub, "n1")).toMatchObject({ lux_balance: micro / 1e6 });
    const amounts = pick(await ok(hub.get("/lux/ledger?node_id=n1")), "entries", "amount");
    expect(amounts).toEqual(rewards.toReversed());
  });

  once.test("a payment is an event with its amount", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTaskOf(hub, "n1", { lux_reward: 2.5 });
    await ok(complete(hub, taskId, "n1"));
    await signIn(hub);
    const eventOf = async (kind: string) => list(await ok(hub.get(`/events?kind=${kind}`)), "events");
    expect(await eventOf("lux.paid")).toMatchObject([
      { node_id: "n1", task_id: taskId, data: { amount: 2.5 } },
    ]);
    expect(await eventOf("lux.signin")).toMatchObject([
      { node_id: "n1", task_id: null, data: { amount: 10 } },
    ]);
  });
});
