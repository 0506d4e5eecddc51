/** The real program under a clock that jumps. (A stop by SIGSTOP takes longer than a suite may: torture/time.ts.) */
import { expect, test } from "bun:test";
import { SQL } from "bun";
import { HANG_MS } from "../support/hang.ts";
import { POSTGRES_MISSING, newSchema } from "../support/postgres.ts";
import { Hub, TempDir, listOf } from "./program.ts";
import { NO_SHIFTED_CLOCK, ShiftedClock } from "./shifted-clock.ts";

const HOUR_S = 3_600;

if (NO_SHIFTED_CLOCK !== null) console.log(`e2e/time.test.ts is skipped: ${NO_SHIFTED_CLOCK}`);

test.skipIf(NO_SHIFTED_CLOCK !== null)(
  "a clock an hour ahead or back: no node goes offline, no day is paid twice, no id repeats",
  async () => {
    using dir = new TempDir();
    const clock = new ShiftedClock(dir);
    await using hub = await Hub.start({ data: dir.join("data"), env: clock.env });
    const nodeIds = Array.from({ length: 20 }, (_, i) => `n${i}`);
    for (const nodeId of nodeIds) await hub.register(nodeId);
    const days = new Set<string>();
    let earned = 0;
    const signIn = async (): Promise<void> => {
      earned += Number((await hub.post("/signin", { node_id: "n1" })).body["lux_earned"]);
      days.add(new Date(clock.now()).toISOString().slice(0, 10));
    };
    await signIn();
    const quiet = Number((await hub.get("/events?limit=1")).body["cursor"]);

    for (const seconds of [HOUR_S, -HOUR_S, 0]) {
      await clock.shiftTo(hub, seconds);
      const { body } = await hub.post("/node/heartbeat", { node_id: "n1" });
      expect(Date.parse(String(body["last_heartbeat"])) - clock.now()).toBeWithin(-HANG_MS, HANG_MS); // an hour it is not
      await signIn();
      const nodes = listOf((await hub.get("/node/list")).body["nodes"]);
      expect(nodes.filter((node) => node["status"] === "online")).toHaveLength(nodeIds.length);
    }
    expect(earned).toBeGreaterThanOrEqual(10);
    expect(earned).toBeLessThanOrEqual(10 * days.size); // an hour may lie over midnight
    const log = listOf((await hub.get(`/events?since=${quiet}&limit=1000`)).body["events"]);
    expect(log.filter((event) => event["kind"] !== "lux.signin")).toEqual([]);
    expect(log.map((event) => event["id"])).toEqual(log.map((_, i) => quiet + i + 1));
  },
);

const NO_POSTGRES_CLOCK = NO_SHIFTED_CLOCK ?? POSTGRES_MISSING;

test.skipIf(NO_POSTGRES_CLOCK !== null)(
  `hubs on PostgreSQL go by its clock: one whose own is an hour ahead, or is set, changes nothing${NO_POSTGRES_CLOCK === null ? "" : ` (skipped: ${NO_POSTGRES_CLOCK})`}`,
  async () => {
    using dir = new TempDir();
    const clock = new ShiftedClock(dir);
    clock.set(HOUR_S);
    const { url } = await newSchema();
    const env = { LUXHUB_DATABASE: url };
    await using hub = await Hub.start({ data: dir.join("ahead"), env: { ...env, ...clock.env } });
    await hub.register("n1");
    const create = async (fields: object): Promise<string> =>
      String((await hub.post("/task/create", { title: "t", description: "d", ...fields })).body["task_id"]);
    const soon = new Date(Date.now() + 1_800_000).toISOString();
    const later = await create({ not_before: soon }); // half an hour ago, by its machine's clock
    for (const seconds of [HOUR_S, -HOUR_S, 0]) {
      clock.set(seconds);
      const before = Date.now();
      const headers = { "Idempotency-Key": `at ${seconds}`.replace(" ", "-") };
      const body = { title: "t", description: "d", task_type: "never" };
      const answer = await hub.post("/task/create", body, { headers });
      const createdAt = Date.parse(String(recordOf(answer.body["task"])["created_at"]));
      expect(createdAt - before).toBeWithin(-HANG_MS, HANG_MS); // an hour it is not
    }
    const claim = { task_id: later, node_id: "n1" };
    expect((await hub.post("/task/claim", claim)).body["error"]).toBe("task_not_ready");
    const sql = new SQL(url, { max: 1 });
    const [answers] =
      await sql`SELECT count(*) AS n, min(stored_at) AS first, max(stored_at) AS last FROM answers`;
    await sql.close();
    expect(Number(answers.n)).toBe(3);
    for (const at of [answers.first, answers.last])
      expect(Number(at) - Date.now()).toBeWithin(-2 * HANG_MS, HANG_MS); // all are forgotten in their order
    const nodes = listOf((await hub.get("/node/list")).body["nodes"]);
    expect(nodes.map((node) => node["status"])).toEqual(["online"]);
    expect(hub.program.stdout).not.toContain("the clock jumped");
  },
);

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return Object(value);
}
