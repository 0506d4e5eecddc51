/** A receive of large messages: it acquires memory before it loads them, and releases it afterwards. */
import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { accept } from "../../src/domain/decision.ts";
import { ANSWER_UNCOUNTED_MAX_BYTES as LIGHT, CONTENT_MAX_BYTES } from "../../src/domain/limits.ts";
import { saved } from "../../src/domain/node.ts";
import { AcquireTimeout, Semaphore } from "../../src/lib/semaphore.ts";
import { EmbeddedMail } from "../../src/mail/embedded.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { STEADY, message, node } from "../domain/samples.ts";
import { newDataDir } from "../support/hub.ts";

const ASKED = 4;

/** Records the amounts that are acquired; refuses while `isSpent`. */
class Room extends Semaphore {
  readonly asked: number[] = [];
  isSpent = false;

  override acquire(amount: number, withinMs?: number): Promise<void> {
    this.asked.push(amount);
    return this.isSpent ? Promise.reject(new AcquireTimeout()) : super.acquire(amount, withinMs);
  }
}

test("small messages are taken without a share of the memory, large ones with it; without memory none is taken", async () => {
  const dir = newDataDir();
  const store = openSqlite(join(dir, "luxhub.db"), () => {});
  try {
    await store.transact({}, () => accept(null, saved(node("n1"))));
    const room = new Room(CONTENT_MAX_BYTES);
    const receiver = { signal: new AbortController().signal, room };
    const mail = new EmbeddedMail(store);
    const send = (messageId: string, bytes: number) =>
      mail.send(store.transact, message(messageId, { content: "x".repeat(bytes) }), "n1");
    const take = async (): Promise<readonly string[]> => {
      const taken = await mail.take(store.transact, "n1", ASKED, () => STEADY, receiver);
      return taken?.deliveries.map((one) => `${one.message.messageId} ${one.message.content.length}`) ?? [];
    };
    await send("m1", 1);
    await send("m2", LIGHT - 1); // one large message makes no large answer yet
    expect([await take(), room.asked]).toEqual([["m1 1", `m2 ${LIGHT - 1}`], []]);
    await send("m3", 1);
    await send("m4", LIGHT);
    room.isSpent = true;
    await expect(take()).rejects.toBeInstanceOf(AcquireTimeout);
    room.isSpent = false;
    expect(await take()).toEqual(["m3 1", `m4 ${LIGHT}`]);
    expect(room.asked).toEqual([ASKED * CONTENT_MAX_BYTES, ASKED * CONTENT_MAX_BYTES]);
    await send("m5", LIGHT + 1);
    const gone = await mail.take(store.transact, "n1", ASKED, () => STEADY, {
      signal: AbortSignal.abort(),
      room,
    });
    expect([gone, room.held]).toEqual([undefined, 0]);
    expect(await take()).toEqual([`m5 ${LIGHT + 1}`]);
    expect([await take(), room.held]).toEqual([[], 0]);
  } finally {
    await store.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
