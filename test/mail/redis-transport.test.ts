/** How mail/redis.ts chooses the name of the transport, with a wake-up channel that the test makes available or not. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accept } from "../../src/domain/decision.ts";
import { saved } from "../../src/domain/node.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { openLog } from "../../src/lib/log.ts";
import { RedisMail, type WakeUpChannel } from "../../src/mail/redis.ts";
import { eventsAfter } from "../../src/store/sql/events.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Store, Transact } from "../../src/store/store.ts";
import { NOW, STEADY, message, node } from "../domain/samples.ts";

class FakeChannel implements WakeUpChannel {
  isAvailable: boolean;
  /** PUBLISH fails, before the listener has heard. */
  fails = false;
  readonly published: string[] = [];
  #listener: (unavailable: string | null) => void = () => {};

  constructor(isAvailable: boolean) {
    this.isAvailable = isAvailable;
  }

  async start(listener: (unavailable: string | null) => void): Promise<void> {
    this.#listener = listener;
    this.turn(this.isAvailable);
  }

  turn(isAvailable: boolean): void {
    this.isAvailable = isAvailable;
    this.#listener(isAvailable ? null : "it does not answer");
  }

  async publish(nodeIds: readonly string[]): Promise<boolean> {
    if (!this.fails) this.published.push(nodeIds.join());
    return !this.fails;
  }

  async close(): Promise<void> {}
}

type Scene = {
  readonly store: Store;
  /** The messages of the log. */
  lines(): readonly unknown[];
  /** Another hub on the same database. */
  open(isAvailable: boolean): { channel: FakeChannel; mail: RedisMail };
  changes(): Promise<readonly string[]>;
  /** While set, the store refuses to log. */
  full: boolean;
};

async function inScene(play: (scene: Scene) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "luxhub-fallback-"));
  const store = openSqlite(join(dir, "db"), (error) => {
    throw error;
  });
  const clock = systemClock();
  const logged: string[] = [];
  const log = openLog({ format: "json", level: "debug" }, clock.now, (text) => logged.push(text));
  const transact: Transact = ((load: never, decide: never) =>
    scene.full ? Promise.reject(new Error("full")) : store.transact(load, decide)) as Transact;
  const failing = new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      return name === "transact" ? transact : typeof value === "function" ? value.bind(target) : value;
    },
  });
  const scene: Scene = {
    store,
    full: false,
    lines: () => {
      log.flush();
      return logged.flatMap((text) => text.trimEnd().split("\n")).map((line) => JSON.parse(line).message);
    },
    open: (isAvailable) => {
      const channel = new FakeChannel(isAvailable);
      return { channel, mail: new RedisMail(failing, channel, { clock, log }) };
    },
    changes: async () => {
      const events = await store.read(eventsAfter(0, ["transport.changed"], 100));
      return events.map(({ data }) => `${String(data["from"])} ${String(data["to"])}`);
    },
  };
  try {
    await store.transact({}, () => accept(null, saved(node("n1"))));
    await play(scene);
  } finally {
    await store.close();
    rmSync(dir, { recursive: true });
  }
}

const send = async ({ store }: Scene, mail: RedisMail, id: string): Promise<string> =>
  (await mail.send(store.transact, message(id), "n1")).transport;

test("each change is one event and one log line, and the transport follows", () =>
  inScene(async (scene) => {
    const { channel, mail } = scene.open(true);
    await mail.start();
    expect([mail.transport, await send(scene, mail, "a")]).toEqual(["redis", "redis"]);
    channel.turn(false);
    expect([mail.transport, await send(scene, mail, "b")]).toEqual(["sqlite", "sqlite"]);
    channel.turn(true);
    expect([mail.transport, await send(scene, mail, "c")]).toEqual(["redis", "redis"]);
    await mail.close();
    expect(await scene.changes()).toEqual(["redis sqlite", "sqlite redis"]);
    const taken = await mail.take(scene.store.transact, "n1", 10, () => STEADY);
    expect(taken?.deliveries.map((delivery) => delivery.message.messageId)).toEqual(["a", "b", "c"]);
    expect(scene.lines()).toEqual([
      "messages use redis",
      "redis is unavailable; messages use sqlite",
      "messages use redis",
    ]);
  }));

test("at the start, an unavailable Redis is a change, an available one is not", () =>
  inScene(async (scene) => {
    const { mail } = scene.open(false);
    await mail.start();
    expect(await scene.changes()).toEqual(["redis sqlite"]);
    await scene.open(true).mail.start(); // the next start, with Redis there
    expect(await scene.changes()).toEqual(["redis sqlite", "sqlite redis"]);
    await scene.open(true).mail.start();
    expect(await scene.changes()).toHaveLength(2);
  }));

test("two hubs that notice one change log it once", () =>
  inScene(async (scene) => {
    const hubs = [scene.open(true), scene.open(true)];
    for (const { mail } of hubs) await mail.start();
    for (const isAvailable of [false, true, false]) {
      for (const { channel } of hubs) channel.turn(isAvailable);
      for (const { mail } of hubs) await mail.close(); // waits until the events are logged
    }
    expect(await scene.changes()).toEqual(["redis sqlite", "sqlite redis", "redis sqlite"]);
  }));

test("a send whose wake-up Redis did not accept is stored, and names the store", () =>
  inScene(async (scene) => {
    const { channel, mail } = scene.open(true);
    await mail.start();
    expect(await send(scene, mail, "a")).toBe("redis");
    channel.fails = true;
    expect(await send(scene, mail, "b")).toBe("sqlite");
    expect(channel.published).toEqual(["n1"]);
    expect((await mail.take(scene.store.transact, "n1", 10, () => STEADY))?.deliveries).toHaveLength(2);
  }));

test("publishes nothing while Redis is unavailable", () =>
  inScene(async (scene) => {
    const { channel, mail } = scene.open(false);
    await mail.start();
    expect(await send(scene, mail, "a")).toBe("sqlite");
    expect(channel.published).toEqual([]);
  }));

test("a send that the store refuses is not retried, and publishes nothing", () =>
  inScene(async ({ open }) => {
    const { channel, mail } = open(true);
    await mail.start();
    let asked = 0;
    const refusing: Transact = () => {
      asked++;
      return Promise.reject(new Error("refused"));
    };
    await expect(mail.send(refusing, message("a"), "n1")).rejects.toThrow("refused");
    expect([asked, channel.published]).toEqual([1, []]);
  }));

test("a change that the store could not log is logged later", () =>
  inScene(async (scene) => {
    const { channel, mail } = scene.open(true);
    await mail.start();
    scene.full = true;
    channel.turn(false);
    await mail.close();
    expect(await scene.changes()).toEqual([]);
    scene.full = false;
    await mail.expireSome(NOW, STEADY);
    expect(await scene.changes()).toEqual(["redis sqlite"]);
    await mail.expireSome(NOW, STEADY);
    expect(await scene.changes()).toHaveLength(1);
  }));
