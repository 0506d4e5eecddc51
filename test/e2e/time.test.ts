/**
 * The real program under a clock that jumps: libfaketime moves the wall clock of the process while it runs and leaves the
 * monotonic one alone, as an operator or NTP does. (A stop by SIGSTOP takes longer than a suite may: torture/time.ts.)
 */
import { expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { Hub, TempDir, listOf, until } from "./program.ts";

const LIBRARY = [
  "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
  "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
].find((path) => existsSync(path));
if (LIBRARY === undefined)
  console.log("skipped: e2e/time.test.ts needs libfaketime (apt-get install libfaketime)");

const HOUR_S = 3_600;

test.skipIf(LIBRARY === undefined)(
  "an hour ahead, an hour back: no storm, no day paid twice, no id again",
  async () => {
    using dir = new TempDir();
    const offset = dir.join("offset");
    writeFileSync(offset, "+0");
    const env = {
      LD_PRELOAD: LIBRARY ?? "",
      FAKETIME_TIMESTAMP_FILE: offset,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
    await using hub = await Hub.start({ data: dir.join("data"), env, args: ["--listen", "B:127.0.0.1:0"] });
    const eventCount = async () => Number((await hub.get("/events?limit=1")).body["cursor"]);
    const hubTime = async () => {
      const { body } = await hub.post("/node/heartbeat", { node_id: "n1" });
      return Date.parse(String(body["last_heartbeat"]));
    };
    const nodeIds = Array.from({ length: 20 }, (_, i) => `n${i}`);
    for (const nodeId of nodeIds) await hub.register(nodeId);
    let earned = Number((await hub.post("/signin", { node_id: "n1" })).body["lux_earned"]);
    const days = new Set([new Date().toISOString().slice(0, 10)]);
    const quiet = await eventCount();

    for (const [shift, jumps] of [
      [HOUR_S, 1],
      [-HOUR_S, 2],
      [0, 3],
    ] as const) {
      writeFileSync(offset, `${shift < 0 ? "" : "+"}${shift}`);
      await until(() => hub.program.stdout.split("the clock jumped").length - 1 === jumps);
      const now = Date.now() + shift * 1_000;
      expect(await hubTime()).toBeWithin(now - 10_000, now + 10_000);
      const { body } = await hub.post("/signin", { node_id: "n1" });
      earned += Number(body["lux_earned"]);
      days.add(new Date(now).toISOString().slice(0, 10));
      const nodes = listOf((await hub.get("/node/list")).body["nodes"]);
      expect(nodes.filter((node) => node["status"] === "online")).toHaveLength(nodeIds.length);
    }
    expect(earned).toBeLessThanOrEqual(10 * days.size); // one of them may have crossed midnight
    expect(earned).toBeGreaterThanOrEqual(10);
    const log = listOf((await hub.get(`/events?since=${quiet}&limit=1000`)).body["events"]);
    expect(log.filter((event) => event["kind"] !== "lux.signin")).toEqual([]);
    expect(log.map((event) => event["id"])).toEqual(log.map((_, i) => quiet + i + 1));
  },
);
