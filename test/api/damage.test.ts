/**
 * Damage to the database found while the hub runs: the request that finds it gets a 500, the log names the damage and
 * says what to do, the hub writes nothing more, status reports it, and undamaged data can still be read.
 */
import { expect, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newDataDir, startHub } from "../support/hub.ts";
import { until } from "./scene.ts";

const PAGE = 4_096;

/** Empties every page of the file that holds nothing but this letter: the inside of a long text. */
function emptyPagesOf(path: string, letter: string): number {
  const bytes = readFileSync(path);
  const inside = Buffer.alloc(PAGE - 8, letter);
  let emptied = 0;
  for (let at = 0; at < bytes.length; at += PAGE) {
    if (!bytes.subarray(at + 4, at + 4 + inside.length).equals(inside)) continue;
    bytes.fill(0, at, at + PAGE);
    emptied++;
  }
  writeFileSync(path, bytes);
  return emptied;
}

test("a request that reads a damaged page is 500, writes stop, and the rest stays readable", async () => {
  const dataDir = newDataDir();
  try {
    const before = await startHub({ dataDir });
    await before.post("/node/register", { node_id: "a", name: "A" });
    await before.post("/task/create", { title: "Long", description: "z".repeat(60_000) });
    await before.post("/task/create", { title: "Short", description: "whole" });
    await before.close();

    const hub = await startHub({ dataDir, isDamaged: true }); // it was whole at the start
    expect((await hub.get("/status")).body["status"]).toBe("ok");
    expect(emptyPagesOf(join(dataDir, "luxhub.db"), "z")).toBeGreaterThan(5);

    const met = await hub.get("/task/list");
    expect([met.status, met.body["error"]]).toEqual([500, "internal_error"]);
    expect(JSON.stringify(met.body)).not.toContain("malformed"); // the cause is the operator's
    const status = await hub.get("/status");
    expect([status.status, status.body["status"], status.body["tasks_count"]]).toEqual([200, "degraded", 2]);
    const write = await hub.post("/task/create", { title: "More", description: "of it" });
    expect([write.status, write.body["error"]]).toEqual([500, "internal_error"]);
    expect((await hub.post("/node/heartbeat", { node_id: "a" })).status).toBe(500);
    expect((await hub.get("/node/a")).status).toBe(200);
    expect((await hub.get("/task/stats")).body["total"]).toBe(2);
    await hub.close();
    const advice =
      /The database is damaged \(database disk image is malformed\)\. Stop the hub, run luxhub doctor/;
    await until("the log says it", async () => advice.test(hub.logged.join(""))); // its lines are gathered first
    await expect(startHub({ dataDir })).rejects.toThrow(/is damaged: .*luxhub restore FILE --data DIR/);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});
