/** A hub that was killed between the end of a group's last task and the look at the group: the mark outlives it. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { list, ok } from "../api/scene.ts";
import { newDataDir, startHub } from "../support/hub.ts";

test("group.ended is logged after a restart, once, and only for a group that has ended", async () => {
  const dataDir = newDataDir();
  try {
    {
      await using hub = await startHub({ dataDir });
      await hub.addNode("n1");
      const done = await hub.addTaskOf("n1", { group: "done" });
      await hub.addTask({ group: "goes-on", delay_s: 86_400 });
      // Ended in one commit; what follows it is taken back, as if the hub had been killed before.
      await ok(hub.complete(done, "n1"));
    }
    const db = new Database(join(dataDir, "luxhub.db"));
    db.run("DELETE FROM events WHERE id = (SELECT max(id) FROM events WHERE kind = 'group.ended')");
    db.run("INSERT INTO group_endings VALUES ('done'), ('goes-on')");
    const marks = (): unknown => db.query("SELECT count(*) AS n FROM group_endings").get();
    expect(marks()).toEqual({ n: 2 });
    {
      await using hub = await startHub({ dataDir, isDamaged: true });
      await hub.sweep();
      await hub.sweep();
      const events = list(await ok(hub.get("/events?since=0&kind=group.ended")), "events");
      expect(events).toMatchObject([{ data: { group: "done" } }]);
      expect(marks()).toEqual({ n: 0 });
    }
    db.close();
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});
