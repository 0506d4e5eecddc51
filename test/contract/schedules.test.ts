/**
 * Schedules on every engine: several hubs that all handle what is due, at once and again after kills, create one task for
 * each time. In a fleet only the leader does that; here nobody leads, as when a leader stands still and wakes up.
 */
import { expect, test } from "bun:test";
import { accept } from "../../src/domain/decision.ts";
import type { Schedule } from "../../src/domain/model.ts";
import { MINUTE_MS } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { ScheduleService } from "../../src/service/schedules.ts";
import { TestClock } from "../support/hub.ts";
import { draft } from "../domain/samples.ts";
import { ENGINES, openFresh, prepareStores, suiteOf } from "./store-engines.ts";

await prepareStores();

for (const engine of ENGINES)
  suiteOf(engine)("schedules", () => {
    test("three hubs that fire at once create one task for each time", async () => {
      const { store, place } = await openFresh(engine);
      const others = engine.name === "sqlite" ? [store, store] : [await place.open(), await place.open()];
      const clock = new TestClock();
      const {
        notBefore: _,
        expiresAt: __,
        dependsOn: ___,
        schedule: ____,
        ...task
      } = draft({ balanced: false });
      const now = clock.now();
      const names = ["a", "b", "c"];
      const schedules = names.map((name, n): Schedule => ({
        name,
        timing: n === 0 ? { cron: "* * * * *", tz: "UTC" } : { everyMs: MINUTE_MS },
        task: { ...task, delayMs: 0 },
        overlap: "queue",
        catchUp: "one",
        jitterMs: 0,
        until: null,
        paused: false,
        nextAt: now - (now % MINUTE_MS),
        lastTaskId: null,
        lastAt: null,
        skipLoggedAt: null,
        createdAt: now,
        updatedAt: now,
      }));
      const changes = schedules.map((schedule) => ({ kind: "schedule.saved", schedule }) as const);
      await store.transact({}, () => accept(null, changes));
      const hubs = [store, ...others].map(
        (one) =>
          new ScheduleService(
            one,
            clock,
            newId,
            { charging: () => null },
            { limiting: () => null },
            { isRevoked: () => false },
          ),
      );
      const rounds = 5;
      for (let round = 0; round < rounds; round++) {
        await Promise.all(hubs.map((hub) => hub.fireSome()));
        clock.pass(MINUTE_MS);
      }
      for (const hub of hubs) expect(await hub.fireSome()).toBeWithin(0, names.length + 1);
      while ((await hubs[0]?.fireSome()) !== 0);
      const count = (sql: string): Promise<number> =>
        place.look(`SELECT count(*) AS n FROM (${sql}) AS found`);
      const times = rounds + 1;
      expect(await count("SELECT DISTINCT schedule, schedule_at FROM task_rows")).toBe(times * names.length);
      expect(await count("SELECT 1 FROM tasks")).toBe(times * names.length);
      for (const other of others) if (other !== store) await other.close();
    });
  });
