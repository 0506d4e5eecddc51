/** The real program under a clock that jumps. (A stop by SIGSTOP takes longer than a suite may: torture/time.ts.) */
import { expect, test } from "bun:test";
import { HANG_MS } from "../support/hang.ts";
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
