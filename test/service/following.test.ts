/** A standby on a real database, and a first hub of which a test decides when it answers. */
import { afterEach, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDiskBlobs } from "../../src/blobs/disk.ts";
import { openLog } from "../../src/lib/log.ts";
import { Following, type Original, OriginalRefuses } from "../../src/service/following.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { TestClock } from "../support/hub.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const fault = (error: unknown): never => {
  throw error;
};

async function openStandby() {
  const folder = await mkdtemp(join(tmpdir(), "luxhub-following-"));
  closing.push(() => rm(folder, { recursive: true }));
  const original = openSqlite(join(folder, "db"), fault);
  original.changes.keep(true);
  await original.close();
  const store = openSqlite(join(folder, "db"), fault, undefined, undefined, "copy");
  closing.push(() => store.close());
  const { changes } = store;
  const blobs = await openDiskBlobs(folder);
  closing.push(() => blobs.close());
  const clock = new TestClock();
  const answers: PromiseWithResolvers<number>[] = [];
  const first: Original = {
    urls: { A: "http://one" },
    entriesAfter: (_, signal) =>
      new Promise((_, reject) => {
        if (answers.length > 0) reject(new Error("superseded"));
        signal.addEventListener("abort", () => reject(signal.reason));
      }),
    file: () => Promise.reject(new Error("there are no files")),
    promoted: () => {
      const answer = Promise.withResolvers<number>();
      answers.push(answer);
      return answer.promise;
    },
  };
  const turns: string[] = [];
  const standby = new Following({
    changes,
    blobs,
    clock,
    log: openLog({ format: "json", level: "error", colour: false }, clock.now.bind(clock), () => {}),
    original: first,
    urls: () => ({ A: "http://two" }),
    onTurn: (turn) => turns.push(turn),
  });
  standby.start();
  closing.push(() => standby.stop());
  /** Once it has asked the first hub. */
  const answer = async (index: number): Promise<PromiseWithResolvers<number>> => {
    while (answers[index] === undefined) await new Promise(setImmediate);
    return answers[index];
  };
  return { standby, changes, answers, answer, turns };
}

test("who asks for the promotion again, such as a client that lost its connection, hears of the same one", async () => {
  const { standby, answers, answer, turns } = await openStandby();
  const promotions = [standby.promote(), standby.promote()];
  (await answer(0)).reject(new Error("the first hub is dead"));
  const [one, again] = await Promise.all(promotions);
  expect(again).toBe(one);
  expect(one).toMatchObject({ missing: null });
  expect([answers.length, turns]).toEqual([1, ["promoted"]]);
});

test("a promotion that another hub has outdone ends, and the standby follows again until the next one", async () => {
  const { standby, answer, turns, changes } = await openStandby();
  const outdone = standby.promote();
  (await answer(0)).reject(new OriginalRefuses("stale_term", "three was promoted"));
  await expect(outdone).rejects.toThrow("three was promoted");
  expect([standby.report().role, turns]).toEqual(["standby", []]);
  const next = standby.promote();
  (await answer(1)).resolve(changes.standing().n ?? 0);
  expect(await next).toMatchObject({ missing: 0, lagMs: 0 });
  expect(turns).toEqual(["promoted"]);
});
