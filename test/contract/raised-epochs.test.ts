/** After a promotion, as after a restore: what the holder of a lease sends again counts once. */
import { Database } from "bun:sqlite";
import { test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { ChangeLog, EPOCHS_RAISED_BY, promoteCopy } from "../../src/store/sqlite/change-log.ts";
import { newDataDir, startHub } from "../support/hub.ts";
import { play } from "../support/transcript.ts";

const USAGE = "{seq: 1, model: m, input_tokens: 1, output_tokens: 1, cost_usd: 1}";

test("usage, output and questions of a running attempt go on with its raised epoch; no fencing number or event id returns", async () => {
  const dataDir = newDataDir();
  let hub = await startHub({ dataDir });
  try {
    const before = await play(
      hub,
      `nodes n
      t = task/create
      task/claim $t n -> lease.epoch 1
      task/extend $t n {epoch: 1, usage: [${USAGE}]}
      task/output $t n {epoch: 1, offset: 0, data: "abc"}
      q = task/ask $t n {epoch: 1, question: "Go?"}
      lease/acquire n {name: a} -> lease.fencing 1
      known = GET events?limit=1`,
    );
    await hub.close();
    {
      using db = new Database(join(dataDir, "luxhub.db"));
      promoteCopy(db, new ChangeLog(db), Date.now());
    }
    hub = await startHub({ dataDir });
    const epoch = 1 + EPOCHS_RAISED_BY;
    const { events } = Object(before.get("known"));
    await play(
      hub,
      `GET events?kind=hub.promoted -> events [{id: ${events[0].id + 10_000}, data: {term: 2}}]
      task/extend $t n {epoch: 1} -> 409 stale_lease
      task/extend $t n {epoch: ${epoch}, usage: [${USAGE}]} -> task.usage {reports: 1, cost_usd: 1}
      task/output $t n {epoch: ${epoch}, offset: 0, data: "abcd"} -> next_offset 4
      GET task/$t/output -> {data: abcd, attempts: #1}
      task/ask $t n {epoch: ${epoch}, question: "Go?"} -> question.question_id $q.question.question_id
      lease/acquire n {name: b} -> lease.fencing ${2 + EPOCHS_RAISED_BY}
      task/complete $t n {epoch: ${epoch}} -> status completed`,
      Object.fromEntries(before),
    );
  } finally {
    await hub.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
});
