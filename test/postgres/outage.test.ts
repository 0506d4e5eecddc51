/**
 * An outage of PostgreSQL: the answers meanwhile are true, and the hub recovers without a restart. This file starts
 * servers of its own, and stops, crashes, restarts and freezes them. Most of the tests wait for a time limit of the hub:
 * they run together.
 */
import { SQL } from "bun";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { LEADER_LEASE_MS } from "../../src/domain/limits.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { type PostgresStore, openPostgres } from "../../src/store/postgres/engine.ts";
import { Cable } from "../support/cable.ts";
import { type Answer, SECRET, type TestHub, startHub } from "../support/hub.ts";
import { POSTGRES_PROGRAMS, PostgresServer, newSchema } from "../support/postgres.ts";
import { list, ok, pick, refused, until } from "../api/scene.ts";
import { HANG_MS } from "../support/hang.ts";

/** Of a caller under load, between two calls: enough callers are on their way at any moment. */
const PAUSE_MS = 20;

/** A hub that took the middle of a reading would move its clock by nearly half of it. */
const FROZEN_MS = 6_000;

const isHere = POSTGRES_PROGRAMS !== null;
const suite = isHere ? describe : describe.skip;
const reason = isHere ? "" : " (skipped: no PostgreSQL of our own can be started here)";

suite(`a database that goes away${reason}`, () => {
  /** The one that is stopped, and one for the tests that do nothing to the server itself. */
  let server: PostgresServer;
  let steady: PostgresServer;

  beforeAll(async () => {
    server = await PostgresServer.start(tmpdir());
    steady = await PostgresServer.start(tmpdir());
  });

  afterAll(() => Promise.all([server.remove(), steady.remove()]));

  const start = async (on: PostgresServer): Promise<TestHub> =>
    startHub({ database: (await newSchema(on.url)).url });

  test("503 with Retry-After during the outage, and recovery when the server is back", async () => {
    await using a = await start(server);
    await using b = await startHub({ database: a.database });
    await a.addNodes(["n1"]);
    const waiting = b.post("/message/receive", { node_id: "n1", blocking: true, timeout: 80 });
    for (let i = 0; i < 3; i++) await b.receive("n1"); // what came later has looked: it waits
    await server.down();
    for (const call of [
      a.get("/node/list"),
      a.get("/status"),
      a.post("/task/create", { title: "t", description: "d" }),
      b.post("/node/heartbeat", { node_id: "n1" }),
    ])
      expect((await refused(call, 503, "database_unavailable")).headers.get("retry-after")).toBe("2");
    // Nobody can say whether there is such a key: another hub may just have made it.
    const unknown = { headers: { "X-Matrix-Secret": "a key that this hub has not seen" } };
    await refused(a.post("/node/heartbeat", { node_id: "n1" }, unknown), 503, "database_unavailable");
    const ready = await fetch(`${a.base()}/readyz`);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({ error: "database_unavailable" });
    expect((await fetch(`${a.base()}/healthz`)).status).toBe(200);
    const metrics = await fetch(`${a.base()}/metrics`, { headers: { "X-Matrix-Secret": SECRET } });
    expect(await metrics.text()).toMatch(/^luxhub_database_readable 0$/m);
    const away = await ok(a.get("/pg/diagnostic"));
    expect(away).toMatchObject({ engine: "postgresql", connected: false, latency_ms: null, queued: null });
    expect(away["details"]).toEqual({
      fault: expect.stringMatching(/^The database cannot be reached \(\w+\)\.$/),
    });
    await server.up();
    for (const hub of [a, b])
      await until(
        "the hub is back",
        async () => (await hub.post("/node/heartbeat", { node_id: "n1" })).status === 200,
      ); // within 5 s is the promise, which the torture holds: here the machine is shared with the suite
    await until("a diagnostic says so", async () => {
      const { connected, queued } = await ok(a.get("/pg/diagnostic"));
      return connected === true && queued === 0;
    });
    await refused(a.post("/node/heartbeat", { node_id: "n1" }, unknown), 401, "unauthorized");
    await until("it is ready again", async () => (await fetch(`${a.base()}/readyz`)).ok);
    // Whoever waited through it is woken, though all connections are new.
    await ok(a.post("/message/send", { from_node: "x", to_node: "n1", content: "after" }));
    expect(list(await ok(waiting), "messages")).toMatchObject([{ content: "after" }]);
  });

  /** Answers of writes and reads that are sent a second apart, and the longest time that one of them took. */
  async function asked(
    hub: TestHub,
    seconds: number,
  ): Promise<{ answers: readonly Answer[]; tookMs: number }> {
    let tookMs = 0;
    const timed = async (asking: Promise<Answer>): Promise<Answer> => {
      const startedAt = performance.now();
      const answer = await asking;
      tookMs = Math.max(tookMs, performance.now() - startedAt);
      return answer;
    };
    const asking: Promise<Answer>[] = [];
    for (let second = 0; second < seconds; second++) {
      if (second > 0) await Bun.sleep(1_000);
      asking.push(timed(hub.post("/task/create", { title: "t", description: "d" })));
      asking.push(timed(hub.post("/node/heartbeat", { node_id: "n1" })));
      asking.push(timed(hub.get("/task/list")));
    }
    return { answers: await Promise.all(asking), tookMs };
  }

  test.concurrent(
    "a frozen server is 503 within the documented time, a diagnostic says so, and an abandoned write never takes effect later",
    async () => {
      await using server = await PostgresServer.start(tmpdir());
      await using hub = await start(server);
      await using other = await start(server);
      await hub.addNodes(["n1"]);
      const thaw = await server.freeze();
      try {
        const diagnosing = Promise.all(Array.from({ length: 20 }, () => ok(other.get("/pg/diagnostic"))));
        const { answers, tookMs } = await asked(hub, 3);
        // The database answers when they have been answered: who waited for it would wait for ever.
        for (const answer of await diagnosing)
          expect(answer).toMatchObject({
            connected: false,
            details: { fault: "The database did not answer within 2 s." },
          });
        for (const answer of answers) await refused(answer, 503, "database_unavailable");
        expect(tookMs).toBeLessThan(HANG_MS);
      } finally {
        await thaw();
      }
      await until("the hub is back", async () => (await hub.get("/status")).status === 200);
      await ok(hub.post("/task/create", { title: "after", description: "d" }));
      expect(pick(await ok(hub.get("/task/list")), "tasks", "title")).toEqual(["after"]);
      expect(await ok(hub.get("/status"))).toMatchObject({ status: "ok" });
      await until(
        "a diagnostic says so",
        async () => (await ok(other.get("/pg/diagnostic")))["connected"] === true,
      );
    },
  );

  test.concurrent(
    "a server that froze while a hub read its clock does not move the hub's clocks",
    async () => {
      await using server = await PostgresServer.start(tmpdir());
      const { url } = await newSchema(server.url);
      const store = await openPostgres(url, systemClock(), (error) => {
        throw error;
      });
      const apart = (): number => store.clock.steady() - store.clock.machine();
      const before = apart();
      const thaw = await server.freeze();
      await Bun.sleep(FROZEN_MS); // the time that is waited for is what is tested
      await thaw();
      const sql = new SQL(url, { max: 1 });
      const [{ thawed }] = await sql`SELECT clock_timestamp()::text AS thawed`;
      await until("the reading that was frozen has renewed the leader lease", async () => {
        const [turn] =
          await sql`SELECT renewed_at > ${thawed}::timestamptz - interval '1 second' AS renewed FROM turn`;
        return turn.renewed === true;
      });
      await sql.close();
      expect(Math.abs(apart() - before)).toBeLessThan(FROZEN_MS / 6);
      expect(Math.abs(store.clock.now() - store.clock.steady())).toBeLessThan(FROZEN_MS / 6);
      await store.close();
    },
  );

  test.concurrent.each(["ACCESS EXCLUSIVE", "SHARE"])(
    "a table that is locked in %s mode is 503 within the time said",
    async (mode) => {
      await using hub = await start(steady);
      await hub.addNodes(["n1"]);
      await ok(hub.post("/task/create", { title: "before", description: "d" }));
      const sql = new SQL(hub.database ?? "", { max: 1 });
      await sql.unsafe(`BEGIN; LOCK TABLE tasks IN ${mode} MODE`);
      // The message alone could be sent: it is not, because the task beside it cannot be read.
      const requests = [
        { path: "message/send", body: { from_node: "x", to_node: "n1", content: mode } },
        { path: "task/release", body: { task_id: "none", node_id: "n1" } },
      ];
      const batch = mode === "SHARE" ? null : hub.post("/batch", { requests });
      const { answers, tookMs } = await asked(hub, 2);
      if (batch !== null) await refused(batch, 503, "database_unavailable");
      const creates = answers.filter((_, i) => i % 3 === 0);
      const reads = answers.filter((_, i) => i % 3 === 2);
      for (const answer of creates) await refused(answer, 503, "database_unavailable");
      for (const answer of reads) {
        if (mode === "SHARE") await ok(answer);
        else await refused(answer, 503, "database_unavailable");
      }
      expect(tookMs).toBeLessThan(HANG_MS);
      await sql.unsafe("ROLLBACK");
      await sql.close();
      await ok(hub.post("/task/create", { title: "after", description: "d" }));
      expect(pick(await ok(hub.get("/task/list")), "tasks", "title")).toEqual(["after", "before"]);
      expect(await hub.receive("n1")).toEqual([]);
    },
  );

  test.concurrent("a statement that an operator or statement_timeout cancels is 503", async () => {
    await using hub = await start(steady);
    const { task_id } = await ok(hub.post("/task/create", { title: "before", description: "d" }));
    const sql = new SQL(hub.database ?? "", { max: 2 });
    const locking = await sql.reserve();
    await locking.unsafe("BEGIN; LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE");
    let isAnswered = false;
    const answers = Promise.all([
      hub.get(`/task/${String(task_id)}`),
      hub.post("/task/create", { title: "t", description: "d" }),
    ]).finally(() => (isAnswered = true));
    await until("both are cancelled", async () => {
      await sql.unsafe(
        `SELECT pg_cancel_backend(pid) FROM pg_locks WHERE NOT granted AND relation = 'tasks'::regclass`,
      );
      return isAnswered;
    });
    for (const answer of await answers) await refused(answer, 503, "database_unavailable");
    await locking.unsafe("ROLLBACK");
    locking.release();
    await sql.close();
    await ok(hub.post("/task/create", { title: "after", description: "d" }));
    expect(pick(await ok(hub.get("/task/list")), "tasks", "title")).toEqual(["after", "before"]);
  });

  test.concurrent(
    "a connection lost during a commit: the answer is what happened, or that the outcome is unknown",
    async () => {
      const { url } = await newSchema(steady.url);
      using cable = new Cable(url);
      await using hub = await startHub({ database: cable.urlOf(url) });
      const create = (title: string): Promise<Answer> =>
        hub.post("/task/create", { title, description: "d" }, { headers: { "Idempotency-Key": title } });
      await ok(create("first"));
      // The title is in the bytes of its own transaction only: the hub's periodic work commits beside it.
      cable.cutAtCommit("after", "committed");
      await ok(create("committed"));
      cable.cutAtCommit("before", "aborted");
      await refused(create("aborted"), 503, "database_unavailable");
      cable.cutAtCommit("after, dead", "unknown");
      await refused(create("unknown"), 500, "outcome_unknown");
      cable.mend();
      await until("the hub is back", async () => (await hub.get("/status")).status === 200);
      // With its key it can simply be repeated: it is done once, and this is its answer.
      const again = await create("unknown");
      expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
      const titles = pick(await ok(hub.get("/task/list")), "tasks", "title");
      expect(titles).toEqual(["unknown", "committed", "first"]);
    },
  );

  test.concurrent(
    "an upload with an unknown outcome keeps its bytes: if it has a record, it is complete",
    async () => {
      const { url } = await newSchema(steady.url);
      using cable = new Cable(url);
      await using hub = await startHub({ database: cable.urlOf(url) });
      const form = new FormData();
      form.set("file", new Blob(["the bytes"]), "a.txt");
      cable.cutAtCommit("after, dead", "INSERT INTO files");
      await refused(hub.post("/file/upload", form), 500, "outcome_unknown");
      cable.mend();
      await until("the hub is back", async () => (await hub.get("/status")).status === 200);
      const [fileId] = pick(await ok(hub.get("/file/list")), "files", "file_id");
      const response = await fetch(`${hub.base()}/api/v1/file/download/${String(fileId)}`);
      expect([response.status, await response.text()]).toEqual([200, "the bytes"]);
    },
  );

  test.concurrent(
    "leader election: the leader after an outage of the database is elected after a gap, also when nobody wrote meanwhile",
    async () => {
      const { url } = await newSchema(steady.url);
      using cable = new Cable(url);
      const open = (): Promise<PostgresStore> =>
        openPostgres(cable.urlOf(url), systemClock(), (error) => {
          throw error;
        });
      const a = await open();
      // Nobody was there before it, which two elections at once see.
      expect(await Promise.all([a.lead(), a.lead()])).toEqual(["elected after a gap", "leader"]);
      expect(await a.lead()).toBe("leader");
      const b = await open();
      expect(await b.lead()).toBe("follower");
      cable.cut();
      await Bun.sleep(LEADER_LEASE_MS + 1_000); // the time that is waited for is what is tested
      cable.mend();
      const results = [await a.lead(), await b.lead()]; // whose tick comes first is elected
      expect(results.toSorted()).toEqual(["elected after a gap", "follower"]);
      expect(await (results[0] === "follower" ? b : a).lead()).toBe("leader");
      expect(a.writable).toBe(true);
      await a.close();
      await b.close();
    },
  );

  test.concurrent(
    "a database whose default isolation level is REPEATABLE READ: the loads after the write lock see the last commit",
    async () => {
      const sql = new SQL(steady.url, { max: 1 });
      await sql.unsafe("CREATE DATABASE repeatable");
      await sql.unsafe("ALTER DATABASE repeatable SET default_transaction_isolation = 'repeatable read'");
      await sql.close();
      const { url } = await newSchema(steady.url.replace(/postgres$/, "repeatable"));
      const hubs = await Promise.all([1, 2, 3].map(() => startHub({ database: url })));
      const [a] = hubs;
      if (!a) throw new Error("no hub");
      await a.addNodes(["n1"]);
      for (const hub of hubs)
        expect(pick(await ok(hub.get("/node/list")), "nodes", "node_id")).toEqual(["n1"]);
      for (const hub of hubs) await hub.close();
    },
  );

  test("under load, through a stop, a crash and lost connections, every answer is true", async () => {
    await using a = await start(server);
    await using b = await startHub({ database: a.database });
    await a.addNodes(["n1"]);
    let going = true;
    const answers = new Map<string, Answer>();
    const writers = Array.from({ length: 24 }, async (_, i) => {
      for (let n = 0; going; n++) {
        const content = `${i} ${n}`;
        const body = { from_node: `s${i}`, to_node: "n1", content };
        answers.set(content, await (i % 2 ? a : b).post("/message/send", body));
        await Bun.sleep(PAUSE_MS);
      }
    });
    // Each holds a connection of its own for two reads: none may be lost with it.
    const listed = { 200: 0, 503: 0 };
    const readers = Array.from({ length: 8 }, async (_, i) => {
      while (going) {
        const { status } = await (i % 2 ? a : b).get("/task/list?node_id=n1");
        if (status !== 200 && status !== 503) throw new Error(`task/list answered ${status}`);
        listed[status]++;
        await Bun.sleep(PAUSE_MS);
      }
    });
    for (const how of ["connections", "fast", "connections", "immediate", "connections"] as const) {
      await Bun.sleep(300);
      if (how === "connections") await endConnections(server.url);
      else {
        await server.down(how);
        await server.up();
        await until("writes go on", async () => (await a.get("/status")).status === 200);
      }
    }
    await Bun.sleep(300);
    const taken = () =>
      answers
        .values()
        .filter(({ status }) => status === 200)
        .toArray().length;
    await until("there was load", async () => listed[200] > 100 && taken() > 100); // else it would prove nothing
    going = false;
    await Promise.all([...writers, ...readers]);
    for (const hub of [a, b])
      await Promise.all(Array.from({ length: 20 }, () => ok(hub.get("/task/list?node_id=n1"))));
    const sql = new SQL(a.database ?? "", { max: 1 });
    const rows: readonly { content: string; n: string; delivered: string; logged: string }[] = await sql`
    SELECT content, count(*) AS n, count(d.seq) AS delivered, count(e.id) AS logged
    FROM messages m LEFT JOIN deliveries d ON d.seq = m.seq
      LEFT JOIN events e ON e.kind = 'message.sent' AND e.data::json ->> 'message_id' = m.message_id
    GROUP BY content`;
    const gap = await sql`SELECT count(*) AS n, max(id) AS last FROM events`;
    await sql.close();
    const stored = new Set(rows.map(({ content }) => content));
    for (const row of rows) expect(row).toMatchObject({ n: "1", delivered: "1", logged: "1" });
    expect(gap[0].n).toBe(gap[0].last);
    const seen = { 200: 0, 503: 0, 500: 0 };
    for (const [content, { status, body }] of answers) {
      if (status === 200) expect([content, stored.has(content)]).toEqual([content, true]);
      else if (status === 503) expect([content, stored.has(content)]).toEqual([content, false]);
      else expect([status, body["error"]]).toEqual([500, "outcome_unknown"]);
      seen[status === 200 || status === 503 ? status : 500]++;
    }
    expect(seen[503]).toBeGreaterThan(0);
  });
});

/** Ends every connection of the hubs, as a network that breaks does. */
async function endConnections(url: string): Promise<void> {
  const sql = new SQL(url, { max: 1 });
  await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'luxhub%'`;
  await sql.close();
}
