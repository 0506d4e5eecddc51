/**
 * Several hubs on one PostgreSQL act as one hub: claims, messages, payments and events of one are valid at all, whichever
 * commits first. The hubs run in this process, with real listeners and their own connections.
 */
import { SQL } from "bun";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  ELECTION_EVERY_MS,
  HEARTBEAT_FRESH_MS,
  LEADER_LEASE_MS,
  SECRETS_COMPARE_EVERY_MS,
} from "../../src/domain/limits.ts";
import { median } from "../../tools/bench/median.ts";
import { HANG_MS } from "../support/hang.ts";
import { SseReader } from "../support/sse.ts";
import { type Answer, type HubOptions, SECRET, TestClock, type TestHub, startHub } from "../support/hub.ts";
import { POSTGRES_MISSING, sharedServer } from "../support/postgres.ts";
import { type Schema, dropSchemas, takeSchema } from "../support/schemas.ts";
import { list, ok, pick, record, refused, until } from "../api/scene.ts";
import { as, runKeys } from "../api/key-commands.ts";

const OTHER = "another secret of an operator";

const reason = POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`;
const suite = POSTGRES_MISSING === null ? describe : describe.skip;
if (POSTGRES_MISSING === null) await sharedServer();

/** Two hubs, or more, on a database; one clock is everybody's, as time is. */
class Fleet implements AsyncDisposable {
  readonly clock = new TestClock();
  readonly hubs: TestHub[] = [];
  readonly sql: SQL;
  readonly #schema: Schema;

  private constructor(schema: Schema) {
    this.#schema = schema;
    this.sql = new SQL(schema.url, { max: 1 });
  }

  static async open(): Promise<Fleet> {
    const fleet = new Fleet(await takeSchema());
    for (let i = 0; i < 2; i++) await fleet.join();
    return fleet;
  }

  /** The first two. */
  get pair(): readonly [TestHub, TestHub] {
    const [a, b] = this.hubs;
    if (!a || !b) throw new Error("a fleet has two hubs");
    return [a, b];
  }

  /** One more hub. */
  async join(options: HubOptions = {}): Promise<TestHub> {
    const hub = await startHub({ database: this.#schema.url, clock: this.clock, ...options });
    this.hubs.push(hub);
    return hub;
  }

  async number(sql: string): Promise<number> {
    return Number((await this.sql.unsafe(sql))[0]?.n);
  }

  /** Each hub does what is due, if it is the leader, instead of waiting for its timer. */
  async sweep(): Promise<void> {
    for (const hub of this.hubs) await hub.sweep();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const hub of this.hubs) await hub.close();
    await this.sql.close();
    this.#schema.giveBack();
  }
}

/** Whether a hub won the last election, by its metrics. */
async function isLeading(hub: TestHub): Promise<boolean> {
  const response = await fetch(`${hub.base()}/metrics`, { headers: { "X-Matrix-Secret": SECRET } });
  expect(response.status).toBe(200);
  return (await response.text()).includes("\nluxhub_leader 1\n");
}

let fleet: Fleet;
afterAll(dropSchemas);

suite(`several hubs on one database${reason}`, () => {
  let a: TestHub;
  let b: TestHub;

  beforeEach(async () => {
    fleet = await Fleet.open();
    [a, b] = fleet.pair;
  });

  afterEach(() => fleet[Symbol.asyncDispose]());

  test("each go round the creators: a single task waits for at most one round of each, also after a restart", async () => {
    const fair = { fair: "creator" } as const;
    let [one, two] = [await fleet.join(fair), await fleet.join(fair)];
    await one.addNode("n1", { auto_assign: false });
    await one.addTasks(25, { creator_node: "greedy" });
    await one.addTasks(25, { creator_node: "second" });
    /** The creators of the tasks that are handed out before the only one of another. */
    const before = async (creator_node: string, hubs: readonly TestHub[]): Promise<readonly string[]> => {
      await one.addTask({ creator_node });
      for (const creators: string[] = []; ;) {
        const hub = hubs[creators.length % hubs.length] ?? one;
        const { task } = await ok(hub.post("/task/next", { node_id: "n1" }));
        const creator = String(record(task)["creator_node"]);
        if (creator === creator_node) return creators;
        creators.push(creator);
      }
    };
    const most = (creators: readonly string[]): number =>
      Math.max(
        0,
        ...Map.groupBy(creators, (creator) => creator)
          .values()
          .map(({ length }) => length),
      );
    for (let times = 0; times < 3; times++) {
      expect(most(await before("single", [one]))).toBeLessThanOrEqual(1);
      expect(most(await before("single", [one, two]))).toBeLessThanOrEqual(2);
      expect(most(await before("single", [two, two, one]))).toBeLessThanOrEqual(2);
    }
    await one.close();
    one = await fleet.join(fair);
    expect(await before("single", [one])).toEqual(["greedy", "second"]);
    await two.close();
    two = await fleet.join(fair);
    expect(most(await before("single", [two, one]))).toBeLessThanOrEqual(2);
  });

  test("of simultaneous claims at both exactly one wins, and a reward is paid once", async () => {
    const nodes = Array.from({ length: 8 }, (_, i) => `n${i}`);
    await a.addNodes(nodes);
    for (let round = 0; round < 5; round++) {
      const taskId = await (round % 2 ? a : b).addTask({ lux_reward: 2 });
      const claims = await Promise.all(
        nodes.map((node_id, i) => (i % 2 ? a : b).post("/task/claim", { task_id: taskId, node_id })),
      );
      const winners = claims.flatMap(({ status }, i) => (status === 200 ? [nodes[i] ?? ""] : []));
      expect(claims.map(({ status }) => status).toSorted()).toEqual([200, ...new Array(7).fill(409)]);
      const done = await Promise.all([a, b, a, b].map((hub) => hub.complete(taskId, winners[0] ?? "")));
      expect(done.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    }
    expect(await fleet.number("SELECT sum(amount_micro) AS n FROM ledger")).toBe(10_000_000);
    expect(await fleet.number("SELECT sum(lux_earned_micro) AS n FROM nodes")).toBe(10_000_000);
    expect(await fleet.number("SELECT completed AS n FROM task_totals")).toBe(5);
  });

  test("a message sent at one wakes a receive that waits at the other at once", async () => {
    await a.addNodes(["n1"]);
    // In turns at the other hub and at the same one, which shows how slow the machine is now.
    const tookMs: Record<"other" | "same", number[]> = { other: [], same: [] };
    for (let i = 0; i < 20; i++) {
      const [at, other] = i < 10 ? [a, b] : [b, a];
      const from = i % 2 ? at : other;
      const received = at.post("/message/receive", { node_id: "n1", blocking: true, timeout: 60 });
      await at.receive("n1"); // that came later has looked: the one before it waits
      const sentAt = performance.now();
      await from.send("x", "n1", { content: String(i) });
      const body = await ok(received);
      tookMs[from === at ? "same" : "other"].push(performance.now() - sentAt);
      expect(pick(body, "messages", "content")).toEqual([String(i)]);
    }
    // A hub that gets no notification finds the message at its next tick, and the next round starts right after that one.
    expect(median(tookMs.other) - median(tookMs.same)).toBeLessThan(ELECTION_EVERY_MS / 2);
  });

  test("a commit at one hub wakes a worker that is blocked at the other", async () => {
    await a.addNode("w", { max_tasks: 1 });
    await a.addNodes(["other"]);
    const step = (path: string, fields: object) => ok(a.post(path, fields));
    const take = async (cause: () => Promise<unknown>) => {
      fleet.clock.pass(HEARTBEAT_FRESH_MS); // so that the call writes a heartbeat
      const seen = async () =>
        list(await ok(a.get("/node/list")), "nodes")
          .map((n) => n["last_heartbeat"])
          .join();
      const before = await seen();
      const waiting = b.post("/task/next", { node_id: "w", wait: 120 });
      await until("it waits", async () => (await seen()) !== before);
      const caused = await cause();
      const { task } = await ok(waiting);
      const taskId = task === null ? null : record(task)["task_id"];
      if (typeof caused === "string") expect(taskId).toBe(caused);
      return taskId;
    };
    const created = await take(() => a.addTask());
    // Room in its node, which is full.
    const more = await a.addTask();
    expect(await take(() => ok(a.complete(String(created), "w")))).toBe(more);
    await a.complete(String(more), "w");
    // What makes a task ready logs no event.
    const delayed = await a.addTask({ delay_s: 30 });
    expect(await take(async () => fleet.clock.pass(31_000))).toBe(delayed);
    const given = await a.addTask();
    expect(await take(() => step("/task/release", { task_id: delayed, node_id: "w" }))).toBe(delayed);
    await a.complete(delayed, "w");
    await step("/task/claim", { task_id: given, node_id: "other" });
    expect(await take(() => ok(a.admin("/task/revoke", { task_id: given, node_id: "w" })))).toBe(given);
    expect(await take(() => step("/node/drain", { node_id: "w", drain: true }))).toBeNull();
    await step("/node/drain", { node_id: "w", drain: false });
    expect(await take(() => step("/node/leave", { node_id: "w" }))).toBeNull();
    await a.addTask({ task_type: "late" });
    expect(list(await ok(b.get("/node/list")), "nodes")).toMatchObject([{}, { status: "offline" }]);
  });

  test("of workers at both hubs each task goes to one, at once", async () => {
    const workers = Array.from({ length: 8 }, (_, i) => `w${i}`);
    await a.addNodes(workers);
    const seen: string[] = [];
    const work = async (nodeId: string, hub: TestHub): Promise<void> => {
      for (;;) {
        const { task } = await ok(hub.post("/task/next", { node_id: nodeId, wait: 120 }));
        if (task === null) return;
        const taskId = String(record(task)["task_id"]);
        seen.push(taskId);
        await ok(hub.complete(taskId, nodeId));
      }
    };
    const working = workers.map((nodeId, i) => work(nodeId, i % 2 ? a : b));
    const ids = await Promise.all(Array.from({ length: 60 }, (_, i) => (i % 3 ? a : b).addTask()));
    await until(
      "all are done",
      async () => (await fleet.number("SELECT completed AS n FROM task_totals")) === 60,
    );
    for (const node_id of workers) await ok(a.post("/node/leave", { node_id }));
    await Promise.all(working);
    expect(seen.toSorted()).toEqual(ids.toSorted());
  });

  test("each message of a mailbox goes to one receiver, in order, at whichever hub they receive", async () => {
    await a.addNodes(["n1"]);
    const sent = Array.from({ length: 60 }, (_, i) => String(i));
    for (const content of sent) await a.send("x", "n1", { content });
    const takers = Array.from({ length: 12 }, (_, i) => (i % 2 ? a : b).receive("n1", { count: 5 }));
    const taken = (await Promise.all(takers)).map((messages) =>
      messages.map(({ content }) => Number(content)),
    );
    expect(taken.flat().toSorted((x, y) => x - y)).toEqual(sent.map(Number));
    for (const some of taken) expect(some).toEqual(some.toSorted((x, y) => x - y));
  });

  test("a page of a node's tasks is one snapshot, also while the node completes tasks at the other hub", async () => {
    await a.addNodes(["n1"]);
    const ids = await Promise.all(Array.from({ length: 30 }, (_, i) => (i % 2 ? a : b).addTask()));
    for (const task_id of ids) await ok(a.post("/task/claim", { task_id, node_id: "n1" }));
    let working = true;
    const work = (async () => {
      for (const taskId of ids) await ok(b.complete(taskId, "n1"));
      working = false;
    })();
    const filters = ["", "&status=assigned", "&status=completed"];
    const readers = Array.from({ length: 6 }, async (_, i) => {
      const filter = filters[i % 3] ?? "";
      while (working) {
        const body = await ok(a.get(`/task/list?node_id=n1&per_page=50${filter}`));
        const listed = pick(body, "tasks", "task_id");
        expect([filter, body["total"]]).toEqual([filter, listed.length]);
        if (filter === "") expect(listed.length).toBe(ids.length);
      }
    });
    await Promise.all([work, ...readers]);
  });

  test("a revoked key ends its open calls at both hubs, which take no messages", async () => {
    await a.addNodes(["n1", "n2"]);
    const robot = (await runKeys(a, "add", "robot")).trim();
    const streams = await Promise.all(
      [a, b].map((hub) => SseReader.open(`${hub.base()}/api/v1/agent/sse?node_id=n1`, robot)),
    );
    const receive = { node_id: "n1", blocking: true, timeout: 300 };
    const waiting = [a, b].flatMap((hub) => [
      hub.post("/message/receive", receive, as(robot)),
      hub.get("/poll?timeout=300", as(robot, { variant: "B" })),
    ]);
    await ok(b.get("/status")); // came later: they wait
    await runKeys(a, "revoke", "robot");
    const revokedAt = performance.now();
    for (const answer of waiting) await refused(answer, 401, "unauthorized");
    for (const stream of streams) await expect(stream.next("message")).rejects.toThrow("has ended");
    expect(performance.now() - revokedAt).toBeLessThan(HANG_MS); // not at the end of their own time
    await b.send("x", "n1", { content: "for another" });
    const left = await ok(a.post("/message/receive", { node_id: "n1" }));
    expect(pick(left, "messages", "content")).toEqual(["for another"]);
  });

  test("a stream continues at the other hub from its cursor, with no gap and no repeat", async () => {
    await a.addNodes(["n1"]);
    const open = (hub: TestHub, lastId?: string): Promise<SseReader> =>
      SseReader.open(`${hub.base()}/api/v1/agent/sse?node_id=n1`, SECRET, lastId);
    const said: string[] = [];
    let lastId: string | undefined;
    let sent = 0;
    for (const [at, other] of [
      [a, b],
      [b, a],
      [a, b],
      [b, a],
    ] as const) {
      for (let i = 0; i < 5; i++) await (i % 2 ? at : other).send("x", "n1", { content: String(sent++) });
      await using stream = await open(at, lastId ?? "0");
      for (let i = 0; i < 5; i++) await (i % 2 ? at : other).send("x", "n1", { content: String(sent++) });
      for (let i = 0; i < 10; i++) {
        const event = await stream.next("message");
        said.push(String(JSON.parse(event.data).content));
        lastId = event.id;
      }
    }
    expect(said).toEqual(Array.from({ length: 40 }, (_, i) => String(i)));
  });

  test("a stream that has read the log does not get an event twice, however late its hub is notified", async () => {
    await a.addNodes(["n1"]);
    for (let i = 0; i < 30; i++) {
      const [from, at] = i % 2 ? [a, b] : [b, a];
      await from.send("x", "n1", { content: "known" });
      const { cursor } = await ok(from.get("/events?limit=1"));
      await using stream = await SseReader.open(
        `${at.base()}/api/v1/agent/sse?node_id=n1`,
        SECRET,
        String(cursor),
      );
      await from.send("x", "n1", { content: "next" });
      expect(JSON.parse((await stream.next("message")).data)).toMatchObject({ content: "next" });
    }
  });

  test("no id appears behind a reader's cursor, in whatever order the hubs commit", async () => {
    await a.addNodes(["n1", "n2"]);
    let writing = true;
    const readers = [a, b].map(async (hub) => {
      const ids: number[] = [];
      for (let cursor = 0, last = false; ;) {
        last = !writing;
        const body = await ok(hub.get(`/events?since=${cursor}&limit=100`));
        ids.push(...pick(body, "events", "id").map(Number));
        if (last && list(body, "events").length === 0) return ids;
        cursor = Number(body["cursor"]);
      }
    });
    const streams = await Promise.all(
      [a, b].map((hub) => SseReader.open(`${hub.base()}/api/v1/agent/sse?node_id=n1`, SECRET, "0")),
    );
    const writers = Array.from({ length: 16 }, async (_, i) => {
      const hub = i % 2 ? a : b;
      for (let n = 0; n < 12; n++) {
        await (n % 3 ? hub.send("x", "n1") : hub.addTask());
        await Bun.sleep(i % 5);
      }
    });
    await Promise.all(writers);
    writing = false;
    const all = Array.from(
      { length: await fleet.number("SELECT max(id) AS n FROM events") },
      (_, i) => i + 1,
    );
    for (const ids of await Promise.all(readers)) expect(ids).toEqual(all);
    const sent = await fleet.sql`SELECT id FROM events WHERE kind = 'message.sent' ORDER BY id`;
    for (const stream of streams) {
      const told: string[] = [];
      while (told.length < sent.length) told.push((await stream.next("message")).id);
      expect(told).toEqual(sent.map((row: { id: string }) => row.id));
      await stream[Symbol.asyncDispose]();
    }
  });

  test("of two calls with one Idempotency-Key that wait at both, one takes and both get its answer", async () => {
    await a.addNodes(["n1"]);
    const headers = { "Idempotency-Key": "waits" };
    // The one that takes nothing gets the answer when its own wait is over.
    const wait = (hub: TestHub): Promise<Answer> =>
      hub.post("/message/receive", { node_id: "n1", blocking: true, timeout: 15 }, { headers });
    const waiting = [wait(a), wait(b)];
    for (const hub of [a, b]) await hub.receive("n1"); // what came before has looked, and waits
    await a.send("x", "n1");
    const [first, second] = (await Promise.all(waiting)).map(({ body }) => body);
    expect(first).toEqual(second);
    expect(list(first ?? {}, "messages")).toHaveLength(1);
  });

  test("a message of A2A that is sent to both creates one task, and both stream its end", async () => {
    await a.addNode("w1");
    const message = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "once" }] };
    const stream = async (hub: TestHub): Promise<Response> =>
      fetch(`${hub.base()}/a2a/message:stream`, {
        method: "POST",
        headers: { "X-Matrix-Secret": SECRET, "A2A-Version": "1.0" },
        body: JSON.stringify({ message }),
      });
    const streams = await Promise.all([a, b, a, b].map(stream));
    const [created, ...others] = list(await ok(a.get("/task/list")), "tasks");
    expect(others).toEqual([]);
    await ok(b.post("/task/claim", { task_id: created?.["task_id"], node_id: "w1" }));
    await ok(a.complete(String(created?.["task_id"]), "w1"));
    const texts = await Promise.all(streams.map((answer) => answer.text()));
    for (const text of texts) expect(text).toContain('"state":"TASK_STATE_COMPLETED"');
    const idsOf = (text: string) => [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => id);
    expect(new Set(texts.map((text) => idsOf(text).at(-1))).size).toBe(1);
  });

  test("a lease ends at the same moment by the clocks of both hubs", async () => {
    const now = () => fleet.number("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS n");
    const before = await now();
    await a.addNode("n1", {}, "B");
    const given = (await fleet.number("SELECT lease_until AS n FROM beats")) - 90_000;
    expect(given).toBeWithin(before - 5_000, (await now()) + 5_000);
  });
});

/** The lines of a hub's log about secrets, in order. */
const said = ({ logged }: TestHub): readonly string[] =>
  logged
    .flatMap((text) => text.trimEnd().split("\n"))
    .map((line): string => JSON.parse(line).message)
    .filter((message) => /secret/i.test(message));

// These wait for what the hubs do periodically: they run together.
suite(`several hubs on one database, as time passes${reason}`, () => {
  test.concurrent(
    "only the leader does the periodic work; when it is closed, the other hub is elected at once",
    async () => {
      await using fleet = await Fleet.open();
      const [a, b] = fleet.pair;
      const holder = async (): Promise<string> => (await fleet.sql`SELECT holder FROM turn`)[0].holder;
      const first = await holder();
      await Bun.sleep(2 * ELECTION_EVERY_MS);
      expect(await holder()).toBe(first);
      await a.close();
      const leftAt = performance.now();
      await until("another hub is elected", async () => (await holder()) !== first);
      expect(performance.now() - leftAt).toBeLessThan(LEADER_LEASE_MS - ELECTION_EVERY_MS); // it did not run out
      await b.addNode("n1", {}, "B");
      fleet.clock.pass(91_000);
      await until(
        "who is silent goes offline",
        async () => (await fleet.number("SELECT online AS n FROM nodes")) === 0,
      );
    },
  );

  test.concurrent(
    "when the leader is dead or frozen, another hub is elected after its lease, within 15 s",
    async () => {
      await using fleet = await Fleet.open();
      const [, b] = fleet.pair;
      expect(LEADER_LEASE_MS + 3 * ELECTION_EVERY_MS).toBeLessThan(15_000); // as the documentation promises
      const lead =
        (): Promise<unknown> => fleet.sql`UPDATE turn SET holder = 'dead', renewed_at = clock_timestamp(),
        until = clock_timestamp() + interval '10 seconds'`; // it led when both hubs were there: no gap follows
      await lead();
      const leading = setInterval(lead, ELECTION_EVERY_MS);
      await until("the hub that led has noticed", async () => {
        await fleet.sweep();
        return !(await isLeading(fleet.pair[0])) && !(await isLeading(b));
      });
      await b.addNode("n1", {}, "B");
      fleet.clock.pass(91_000);
      await fleet.sweep();
      expect(await fleet.number("SELECT online AS n FROM nodes")).toBe(1);
      clearInterval(leading);
      await lead();
      await fleet.sql`UPDATE turn SET until = clock_timestamp()`;
      await until(
        "another hub is elected",
        async () => (await fleet.number("SELECT online AS n FROM nodes")) === 0,
      );
    },
  );

  test.concurrent(
    "when the database's clock was set back and the leader is dead, another hub is elected and renews all leases",
    async () => {
      await using fleet = await Fleet.open();
      const [, b] = fleet.pair;
      await b.addNode("n1", {}, "B");
      const lease = (): Promise<number> => fleet.number("SELECT lease_until AS n FROM beats");
      // What the leader wrote before, by a clock that was an hour ahead.
      await fleet.sql`UPDATE beats SET lease_until = lease_until + 3600000`;
      const ahead = await lease();
      await fleet.sql`UPDATE turn SET holder = 'dead', renewed_at = clock_timestamp() + interval '1 hour',
        until = clock_timestamp() + interval '1 hour'`;
      await until("another hub is elected", async () => {
        await fleet.sweep();
        return (await lease()) < ahead;
      });
    },
  );

  test.concurrent(
    "a second hub renews no lease at its start; a hub that starts alone renews all",
    async () => {
      await using fleet = await Fleet.open();
      const [a] = fleet.pair;
      await a.addNode("n1", {}, "B");
      const lease = (): Promise<number> => fleet.number("SELECT lease_until AS n FROM beats");
      const before = await lease();
      fleet.clock.pass(60_000);
      await fleet.join();
      expect(await lease()).toBe(before);
      for (const hub of fleet.hubs) await hub.close();
      await fleet.join();
      expect(await lease()).toBeGreaterThan(before + 50_000);
    },
  );

  test.concurrent(
    "a hub that finds the database migrated, for example after a freeze, writes nothing and logs why",
    async () => {
      await using fleet = await Fleet.open();
      const [a, b] = fleet.pair;
      await a.addNodes(["n1"]);
      const holder = async (): Promise<string | null> =>
        (await fleet.sql`SELECT holder FROM turn WHERE until > clock_timestamp()`)[0]?.holder ?? null;
      expect(await holder()).not.toBeNull();
      // What a newer one does, for them in the middle of their work.
      await fleet.sql`INSERT INTO schema_version SELECT max(version) + 1 FROM schema_version`;
      const creates = Array.from({ length: 20 }, (_, i) =>
        (i % 2 ? a : b).post("/task/create", { title: "t", description: "d" }),
      );
      for (const create of creates) await refused(create, 503, "database_unavailable");
      const says =
        /"message":"the database cannot be written","cause":"A newer luxhub has migrated the database/g;
      const said = (hub: TestHub): number => hub.logged.join("").match(says)?.length ?? 0;
      for (const hub of [a, b]) {
        await until("it stops reading", async () => (await hub.get("/node/list")).status === 503);
        await until("it says why", async () => said(hub) > 0);
      }
      await until("the lease is left to the newer one", async () => (await holder()) === null);
      await Bun.sleep(2 * ELECTION_EVERY_MS); // the time in which nothing may happen
      expect(await holder()).toBeNull();
      for (const hub of [a, b]) expect(said(hub)).toBe(1);
      const fault = expect.stringContaining("A newer luxhub has migrated the database");
      expect(await ok(a.get("/pg/diagnostic"))).toMatchObject({ connected: false, details: { fault } });
      expect(await fleet.number("SELECT count(*) AS n FROM tasks")).toBe(0);
      expect(await fleet.number("SELECT count(*) AS n FROM events WHERE kind = 'task.created'")).toBe(0);
    },
  );

  test.concurrent("each hub logs its own changes, once", async () => {
    await using fleet = await Fleet.open();
    const [a, b] = fleet.pair;
    await a.addNodes(["n1"]);
    const taskId = await b.addTask({ title: "Say hello" });
    await ok(a.post("/task/claim", { task_id: taskId, node_id: "n1" }));
    await ok(b.post("/message/broadcast", { from_node: "boss", content: "c" }));
    const told = (hub: TestHub): string[] =>
      hub.logged
        .join("")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line))
        .filter((line) => "event" in line)
        .map((line) => line.event);
    await until("both have told", async () => told(a).length >= 2 && told(b).length >= 2);
    await Bun.sleep(1_000); // what the other one wrote has been heard of
    expect(told(a)).toEqual(["node.registered", "task.assigned"]);
    expect(told(b)).toEqual(["task.created", "message.sent"]);
  });

  test.concurrent(
    "secrets that differ are a warning at all hubs until one of them ends, and no secret is stored or logged",
    async () => {
      await using fleet = await Fleet.open();
      const [a, b] = fleet.pair;
      const pass = async (...hubs: readonly TestHub[]): Promise<void> => {
        fleet.clock.pass(SECRETS_COMPARE_EVERY_MS);
        for (const hub of hubs) await hub.sweep();
      };
      const WARNING =
        "another hub on the database has a different LUXHUB_SECRET: each hub accepts only its own";
      await pass(a, b);
      expect([said(a), said(b)]).toEqual([[], []]);

      const c = await fleet.join({ secret: OTHER });
      fleet.clock.pass(SECRETS_COMPARE_EVERY_MS);
      await until("the new hub says so by itself", async () => said(c).length > 0);
      await pass(a, b, c);
      for (const hub of [a, b, c]) await until("every hub says so once", async () => said(hub).length === 1);
      for (const hub of [a, b, c]) expect(said(hub)).toEqual([WARNING]);

      const rows: readonly { marks: string }[] =
        await fleet.sql`SELECT marks FROM hubs WHERE marks IS NOT NULL`;
      expect(new Set(rows.map(({ marks }) => marks)).size).toBe(2);
      for (const { marks } of rows) expect(marks).toMatch(/^[0-9a-f]{32} [0-9a-f]{32}$/);
      const hashes = [SECRET, OTHER].map((word) => Bun.SHA256.hash(word, "hex").slice(0, 32));
      for (const word of [SECRET, OTHER, ...hashes]) {
        expect(rows.map(({ marks }) => marks).join()).not.toContain(word);
        expect([...a.logged, ...c.logged].join()).not.toContain(word);
      }

      await c.close();
      await pass(a, b);
      for (const hub of [a, b]) {
        await until("it is over", async () => said(hub).length === 2);
        expect(said(hub)).toEqual([WARNING, "all hubs on the database have the same secrets again"]);
      }
    },
  );
});
