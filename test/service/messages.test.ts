/** A receive whose caller hangs up during the commit loses no message. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { register } from "../../src/domain/node.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { EmbeddedMail } from "../../src/mail/embedded.ts";
import { Feed } from "../../src/service/feed.ts";
import { MessageService } from "../../src/service/messages.ts";
import { WaitAborted } from "../../src/service/wait-queue.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";

const PROFILE = {
  nodeId: "n1",
  name: "n",
  host: null,
  port: null,
  capabilities: [],
  maxTasks: null,
  autoAssign: false,
} as const;
const DRAFT = {
  fromNode: "op",
  toNode: "n1",
  type: "text",
  content: "hello",
  requireAck: false,
  verified: false,
} as const;

test("a hang-up that is noticed only after the commit loses no message", async () => {
  const dir = mkdtempSync(join(tmpdir(), "luxhub-messages-"));
  const clock = systemClock();
  const store = openSqlite(join(dir, "luxhub.db"), (error) => {
    throw error;
  });
  try {
    const feed = new Feed(store, clock);
    const messages = new MessageService(store, new EmbeddedMail(store), clock, newId, feed.receivers);
    const beat = { now: clock.now(), steady: clock.steady(), leaseMs: 60_000 };
    await store.transact({}, () => register({ ...PROFILE, variant: "A" }, null, [], beat));
    await messages.send(store.transact, DRAFT);
    const caller = new AbortController();
    // The hang-up stands in the sockets while the commit runs: the loop sees it in the turn after.
    store.onCommit((changes) => {
      if (changes.some((change) => change.kind === "delivery.moved")) setImmediate(() => caller.abort());
    });
    const patience = { waitMs: 0, signal: caller.signal, repeatable: false };
    await expect(messages.receive(store.transact, "n1", 10, patience)).rejects.toThrow(WaitAborted);
    const next = await messages.receive(store.transact, "n1", 10, {
      waitMs: 0,
      signal: new AbortController().signal,
      repeatable: false,
    });
    expect(next.deliveries.map((delivery) => delivery.message.content)).toEqual(["hello"]);
  } finally {
    await store.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
