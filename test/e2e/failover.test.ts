/** Workers of each kind through kill -9 of their hub and `luxhub promote` (the short form of torture/failover.ts). */
import { expect, test } from "bun:test";
import { failOver } from "../../tools/torture/failover.ts";

test("workers go on with their tasks at the copy that is promoted, without a restart", async () => {
  const report = await failOver({ ofEach: 1, shortTasks: 0, death: "SIGKILL" }, () => {});
  expect(report.faults).toEqual([]);
  expect(report.workers).toBeGreaterThanOrEqual(2);
});
