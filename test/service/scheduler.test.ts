/** The scheduler: failing chores, standstills, and the leader of several hubs. */
import { expect, test } from "bun:test";
import { HOUR_MS, systemClock } from "../../src/lib/clock.ts";
import { openLog } from "../../src/lib/log.ts";
import { Leadership, Scheduler } from "../../src/service/scheduler.ts";
import { type ElectionResult, StoreFull } from "../../src/store/store.ts";
import { TestClock } from "../support/hub.ts";

test("a failure is logged when it begins and when its cause changes, and the work goes on", async () => {
  const lines: string[] = [];
  const clock = systemClock();
  const log = openLog(
    { format: "json", level: "debug" },
    () => clock.now(),
    (text) => lines.push(...text.trimEnd().split("\n")),
  );
  const causes = ["full", "full", "full", "damaged", "damaged", null, "full", "full"];
  let runs = 0;
  const run = async (): Promise<void> => {
    const cause = causes[runs++];
    if (cause) throw new Error(cause);
  };
  let others = 0;
  const other = async (): Promise<void> => void others++;
  const chores = [
    { name: "failing", everyMs: 0, run },
    { name: "other", everyMs: 0, run: other },
  ];
  const leadership = { isLeader: async () => true };
  const scheduler = new Scheduler({ clock, log, leadership, chores, pauseMs: 1 });
  for (const _ of causes) await scheduler.sweep();
  await scheduler.stop();
  log.flush();
  const said = lines.map((line) => /"cause":"Error: (\w+)"/.exec(line)?.[1]);
  expect(said).toEqual(["full", "damaged", "full"]);
  expect([runs, others]).toEqual([causes.length, causes.length]);
});

test("one cause of many chores is one line, and a full disk none", async () => {
  const lines: string[] = [];
  const clock = systemClock();
  const log = openLog({ format: "json", level: "debug" }, clock.now, (text) =>
    lines.push(...text.trimEnd().split("\n")),
  );
  let fault = new Error("lost");
  const run = () => Promise.reject(fault);
  const chores = ["a", "b"].map((name) => ({ name, everyMs: 0, run }));
  const leadership = { isLeader: async () => true };
  const scheduler = new Scheduler({ clock, log, leadership, chores, pauseMs: 60_000 });
  for (const next of [fault, fault, new StoreFull("full"), new Error("lost")]) {
    fault = next;
    await scheduler.sweep();
  }
  await scheduler.stop();
  log.flush();
  const said = lines.map((line) => /"chore":"(\w)","cause":"(.*?)"/.exec(line)?.slice(1));
  expect(said).toEqual([
    ["a", "Error: lost"],
    ["a", "Error: lost"],
  ]);
});

test("a standstill during a sweep is reported once, to the next chore that asks", async () => {
  const clock = new TestClock();
  const log = openLog({ format: "json", level: "debug" }, clock.now, () => undefined);
  const told: number[] = [];
  const ask = async (_: AbortSignal, lateMs: () => number) => void told.push(Math.round(lateMs() / HOUR_MS));
  const chores = [
    { name: "before", everyMs: 0, run: ask },
    { name: "stands still", everyMs: 0, run: async () => clock.stop(HOUR_MS) },
    { name: "after", everyMs: 0, run: ask },
    { name: "again", everyMs: 0, run: ask },
  ];
  const leadership = { isLeader: async () => true };
  const scheduler = new Scheduler({ clock, log, leadership, chores, pauseMs: 60_000 });
  scheduler.start();
  await scheduler.sweep();
  await scheduler.stop();
  expect(told.map(Math.abs)).toEqual([0, 1, 0]);
});

test("of several hubs only the leader runs the chores, except those marked onEveryHub", async () => {
  const clock = systemClock();
  const ran: string[] = [];
  const log = openLog({ format: "json", level: "debug" }, clock.now, () => undefined);
  const chore = (name: string) => ({ name, everyMs: 0, run: async () => void ran.push(name) });
  const chores = [chore("leader's"), { ...chore("everyone's"), onEveryHub: true }];
  const leadership = { isLeader: async () => ran.length > 0 };
  const scheduler = new Scheduler({ clock, log, leadership, chores, pauseMs: 1 });
  await scheduler.sweep();
  expect(ran).toEqual(["everyone's"]);
  await scheduler.sweep();
  expect(ran).toEqual(["everyone's", "leader's", "everyone's"]);
  await scheduler.stop();
});

test("a hub elected after a gap renews the leases once, and again only if that failed", async () => {
  const results: ElectionResult[] = [
    "follower",
    "elected after a gap",
    "leader",
    "leader",
    "elected after a gap",
    "leader",
  ];
  let fails = true;
  let renewals = 0;
  const election = { lead: async () => results.shift() ?? "leader" };
  const leadership = new Leadership(election, async () => {
    renewals++;
    if (fails) throw new Error("full");
  });
  expect(await leadership.isLeader()).toBe(false);
  expect(renewals).toBe(0);
  await expect(leadership.isLeader()).rejects.toThrow("full");
  fails = false;
  expect([await leadership.isLeader(), await leadership.isLeader()]).toEqual([true, true]);
  expect(renewals).toBe(2);
  expect([await leadership.isLeader(), await leadership.isLeader()]).toEqual([true, true]);
  expect(renewals).toBe(3);
});

test("a clock that is set back delays no chore for longer than its period, and nothing spins", async () => {
  const clock = new TestClock();
  const log = openLog({ format: "json", level: "debug" }, clock.now, () => {});
  const runs: string[] = [];
  let isMore = true;
  const chores = [
    {
      name: "often",
      everyMs: 0,
      run: async () => {
        runs.push("often");
        if (isMore) clock.pass(-HOUR_MS);
        const end = isMore ? ("cut short" as const) : undefined;
        isMore = false;
        return end;
      },
    },
    { name: "seldom", everyMs: 1_000, run: async () => void runs.push("seldom") },
  ];
  const leadership = { isLeader: async () => true };
  const scheduler = new Scheduler({ clock, log, leadership, chores, pauseMs: 60_000 });
  await scheduler.sweep();
  await scheduler.stop();
  expect(runs).toEqual(["often", "seldom", "often"]);
});
