/**
 * A broken invariant, seen from outside: it refuses its transaction, is logged once and counted, and the hub goes on. A
 * double of the engine's gathered writes loses events, so that a transaction has fewer event ids than events.
 */
import { afterEach, expect, mock, spyOn } from "bun:test";
import { GatheredWrites } from "../../src/store/sqlite/gathered-writes.ts";
import { until } from "../e2e/program.ts";
import { brokenDuring } from "../support/invariants.ts";
import { SECRET, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { ok, refused } from "./scene.ts";

const once = onlyOnce(import.meta.url);
const EVENT_IDS = "each logged event has one id";
afterEach(() => mock.restore());

/** Events with this title are taken, and never written. */
function loseEventsOf(title: string): void {
  const { add } = GatheredWrites.prototype;
  spyOn(GatheredWrites.prototype, "add").mockImplementation(function (
    this: GatheredWrites,
    change,
    eventIds,
  ) {
    if (change.kind === "event.logged" && change.event.data["title"] === title) return true;
    return add.call(this, change, eventIds);
  });
}

async function countOf(hub: TestHub): Promise<number> {
  const response = await fetch(`${hub.base()}/metrics`, { headers: { "X-Matrix-Secret": SECRET } });
  const [, count] = /^luxhub_invariants_broken_total (\d+)$/m.exec(await response.text()) ?? [];
  return Number(count);
}

once.test(
  "a broken invariant refuses its transaction, is logged once and counted, and the hub goes on",
  async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    const before = await countOf(hub);
    const create = (title: string) => hub.post("/task/create", { title, description: "d" });
    loseEventsOf("lost");
    const broken = await brokenDuring(async () => {
      // In one tick, so that they may share a group.
      const [lost, kept] = await Promise.all([create("lost"), create("kept")]);
      expect(kept).toMatchObject({ status: 200 });
      expect(lost).toMatchObject({ status: 500, body: { error: "internal_error" } });
      const requestId = String(lost.headers.get("x-request-id"));
      expect(lost.body["detail"]).toContain(requestId);
      await refused(create("lost"), 500, "internal_error");
    });
    expect(broken).toEqual([EVENT_IDS, EVENT_IDS]);
    expect((await countOf(hub)) - before).toBe(2);
    mock.restore();
    await hub.addTask();
    expect(await ok(hub.get("/task/list"))).toMatchObject({ total: 2 }); // nothing of the refused ones
    expect(await ok(hub.get("/status"))).toMatchObject({ status: "ok" });
    const lines = (): readonly string[] =>
      hub.logged
        .join("")
        .split("\n")
        .filter((line) => line.includes("an invariant of the program is broken"));
    await until(() => lines().length > 0);
    expect(lines().map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        level: "error",
        invariant: EVENT_IDS,
        cause: expect.stringContaining("engine.ts"),
      }),
    ]);
  },
);
