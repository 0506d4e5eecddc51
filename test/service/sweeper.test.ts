/** Periodic work that goes on failing: it comes again, and the log has it once a cause, not once a second. */
import { expect, test } from "bun:test";
import { systemClock } from "../../src/lib/clock.ts";
import { openLog } from "../../src/lib/log.ts";
import { Sweeper } from "../../src/service/scheduler.ts";

test("a failure is logged when it begins and when its cause changes, and the work goes on", async () => {
  const lines: string[] = [];
  const clock = systemClock();
  const log = openLog(
    "json",
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
  const sweeper = new Sweeper(clock, log, 1, [
    { name: "failing", everyMs: 0, run },
    { name: "other", everyMs: 0, run: other },
  ]);
  for (const _ of causes) await sweeper.sweep();
  await sweeper.stop();
  log.flush();
  const said = lines.map((line) => /"cause":"Error: (\w+)"/.exec(line)?.[1]);
  expect(said).toEqual(["full", "damaged", "full"]);
  expect([runs, others]).toEqual([causes.length, causes.length]);
});
