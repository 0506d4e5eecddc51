/** Time (time.test.ts) where the process was stopped, or the clock of the machine was never set (docs/failures.md). */
import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { DAY_MS, HOUR_MS, MINUTE_MS, notBefore } from "../../src/lib/clock.ts";
import { TestClock, newDataDir, startHub } from "../support/hub.ts";
import { play } from "../support/transcript.ts";
import { list, ok, until } from "./scene.ts";

const UNSET = Date.UTC(1970, 0, 1, 0, 0, 20);

function clockAt(wall: number): TestClock {
  const clock = new TestClock();
  clock.jump(wall - clock.now());
  return clock;
}

test("a process that was stopped for an hour gives every node a full lease", async () => {
  await using hub = await startHub();
  const lives = "tick 10s; sweep\n".repeat(6);
  await play(hub, `nodes a\nB nodes b\n${lives}`);
  hub.clock.stop(HOUR_MS);
  await until("the hub has noticed", async () => hub.logged.join("").includes("the hub stood still"));
  await play(
    hub,
    `${lives}
    GET node/list -> nodes.status [online, online]
    ${"tick 10s; sweep\n".repeat(3)}tick 1s; sweep
    GET node/list -> nodes.status [online, offline]`,
  );
});

test("a clock that was never set continues from the newest event; when it is set nothing is lost, and expired keys stay expired", async () => {
  const dataDir = newDataDir();
  const boughtAt = Date.UTC(2027, 5, 1);
  try {
    const names = await (async () => {
      await using hub = await startHub({ dataDir, clock: clockAt(boughtAt - DAY_MS) });
      return await play(hub, "gone = admin key/add {name: gone, expires_in_s: 3600}\ntick 24h\nnodes n1");
    })();
    await using hub = await startHub({ dataDir, clock: clockAt(UNSET) });
    await play(
      hub,
      "as $gone GET lux/ledger?node_id=n1 -> 401 unauthorized\nmessage/send op n1",
      Object.fromEntries(names),
    );
    const [last] = list(await ok(hub.get("/events?limit=1")), "events");
    expect(Date.parse(String(last?.["at"]))).toBeWithin(boughtAt, boughtAt + MINUTE_MS);
    await play(
      hub,
      `key k signin n1
      jump ${(boughtAt + 30 * DAY_MS - UNSET) / 1_000}s; tick 61s; sweep
      message/receive n1 -> messages #1
      node n1 -> status online
      replay`,
    );
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

test("an empty store starts in the program's release year", () => {
  const clock = clockAt(UNSET);
  const known = notBefore(clock, 0);
  expect(new Date(known.now()).getUTCFullYear()).toBe(2026);
  clock.pass(HOUR_MS);
  expect(known.now()).toBeWithin(Date.UTC(2026, 0, 1, 1), Date.UTC(2026, 0, 1, 1, 1));
  clock.jump(Date.UTC(2027, 0, 1) - clock.now());
  expect(known.now()).toBeWithin(clock.now() - 1_000, clock.now() + 1);
});

test("a clock that was set is trusted, even if it is behind the newest event", () => {
  const clock = clockAt(Date.UTC(2027, 0, 1));
  expect(notBefore(clock, Date.UTC(2099, 0, 1)).now()).toBeWithin(clock.now() - 1_000, clock.now() + 1);
});
