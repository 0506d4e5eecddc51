/**
 * A small fleet: two real hubs on a real PostgreSQL and Redis behind a real nginx. Nodes work through it and record
 * every 2xx, while a hub is killed or frozen, Redis is cut off, and PostgreSQL crashes or is frozen. `bun run torture --only fleet` is the long
 * form.
 */
import { expect, test } from "bun:test";
import { NOTHING_WRONG, runFleet, verdictOf, whyNoFleet } from "../../tools/torture/fleet.ts";

const reason = whyNoFleet();
const suffix = reason === null ? "" : ` (skipped: ${reason})`;
test.skipIf(reason !== null)(
  `two hubs behind nginx lose nothing acknowledged when a hub is killed, Redis is cut and PostgreSQL crashes${suffix}`,
  async () => {
    const seed = Number(process.env["E2E_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
    console.log(`seed ${seed}`);
    const report = await runFleet({ cycles: 1, aroundMs: 200, awayMs: 300 }, seed, console.log);
    expect(verdictOf(report)).toEqual(NOTHING_WRONG);
    const { traffic, reader, way, goneOnMs, redisBackMs, postgresBackMs, thawedMs } = report;
    expect(traffic.received).toBe(traffic.sent);
    expect(way.unavailable).toBeGreaterThan(0); // PostgreSQL's absence was met
    expect(reader.kinds.get("transport.changed")).toBe(2);
    // All recovered; the long form judges how soon (5 s), and how soon a message wakes a receiver (10 ms).
    expect([goneOnMs, redisBackMs, postgresBackMs, thawedMs].map((took) => took.length)).toEqual([
      1, 1, 1, 2,
    ]);
  },
);
