/** Falling back and coming back (mail/fallback.ts), with a remote engine that is away when the test says so. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accept } from "../../src/domain/decision.ts";
import { saved } from "../../src/domain/node.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { openLog } from "../../src/lib/log.ts";
import { EmbeddedMail } from "../../src/mail/embedded.ts";
import { FallbackMail, type RemoteMail } from "../../src/mail/fallback.ts";
import { MailAway } from "../../src/mail/mail.ts";
import { eventsAfter } from "../../src/store/sql/events.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Store, Transact } from "../../src/store/store.ts";
import { NOW, STEADY, message, node } from "../domain/samples.ts";

/** Says that it is there until a call is made, when it is told to. */
class FakeRemote extends EmbeddedMail implements RemoteMail {
  isUp: boolean;
  /** Away to whoever calls, before anybody has noticed. */
  fails = false;
  #listener: (away: string | null) => void = () => {};

  constructor(store: Store, isUp: boolean) {
    super(store, undefined, "redis");
    this.isUp = isUp;
  }

  async start(listener: (away: string | null) => void): Promise<void> {
    this.#listener = listener;
    listener(this.isUp ? null : "it is away");
  }

  turn(isUp: boolean): void {
    this.isUp = isUp;
    this.#listener(isUp ? null : "it is away");
  }

  override async send(...asked: Parameters<EmbeddedMail["send"]>): ReturnType<EmbeddedMail["send"]> {
    if (this.fails) throw new MailAway("away");
    return super.send(...asked);
  }

  async close(): Promise<void> {}
}

type Scene = {
  readonly store: Store;
  /** What the log says. */
  lines(): readonly unknown[];
  /** Another hub on the same database. */
  open(isUp: boolean): { remote: FakeRemote; mail: FallbackMail };
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
  const log = openLog("json", clock.now, (text) => logged.push(text));
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
    open: (isUp) => {
      const remote = new FakeRemote(store, isUp);
      return { remote, mail: new FallbackMail(remote, new EmbeddedMail(store), failing, clock, log) };
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

const send = async ({ store }: Scene, mail: FallbackMail, id: string): Promise<string> =>
  (await mail.send(store.transact, message(id), "n1")).transport;

test("each change is one event and one line, and the transport is what carries now", () =>
  inScene(async (scene) => {
    const { remote, mail } = scene.open(true);
    await mail.start();
    expect([mail.transport, await send(scene, mail, "a")]).toEqual(["redis", "redis"]);
    remote.turn(false);
    expect([mail.transport, await send(scene, mail, "b")]).toEqual(["sqlite", "sqlite"]);
    remote.turn(true);
    expect([mail.transport, await send(scene, mail, "c")]).toEqual(["redis", "redis"]);
    await mail.close();
    expect(await scene.changes()).toEqual(["redis sqlite", "sqlite redis"]);
    const taken = await mail.take(scene.store.transact, "n1", 10, STEADY);
    expect(taken?.deliveries.map((delivery) => delivery.message.messageId)).toEqual(["a", "b", "c"]);
    expect(scene.lines()).toEqual([
      "redis carries the messages",
      "redis is away, sqlite carries the messages",
      "redis carries the messages",
    ]);
  }));

test("one that is away at the start is a change, one that is there is none", () =>
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
    for (const isUp of [false, true, false]) {
      for (const { remote } of hubs) remote.turn(isUp);
      for (const { mail } of hubs) await mail.close(); // all that was to be logged is
    }
    expect(await scene.changes()).toEqual(["redis sqlite", "sqlite redis", "redis sqlite"]);
  }));

test("a call that finds it away is done by the store within itself", () =>
  inScene(async (scene) => {
    const { remote, mail } = scene.open(true);
    await mail.start();
    remote.fails = true;
    expect(await send(scene, mail, "a")).toBe("sqlite");
    expect((await mail.take(scene.store.transact, "n1", 10, STEADY))?.deliveries).toHaveLength(1);
  }));

test("what the store itself refuses is not tried twice", () =>
  inScene(async ({ open }) => {
    const { mail } = open(true);
    await mail.start();
    let asked = 0;
    const refusing: Transact = () => {
      asked++;
      return Promise.reject(new Error("refused"));
    };
    await expect(mail.send(refusing, message("a"), "n1")).rejects.toThrow("refused");
    expect(asked).toBe(1);
  }));

test("a change that the store could not take is logged when it can", () =>
  inScene(async (scene) => {
    const { remote, mail } = scene.open(true);
    await mail.start();
    scene.full = true;
    remote.turn(false);
    await mail.close();
    expect(await scene.changes()).toEqual([]);
    scene.full = false;
    await mail.expireSome(NOW, STEADY);
    expect(await scene.changes()).toEqual(["redis sqlite"]);
    await mail.expireSome(NOW, STEADY);
    expect(await scene.changes()).toHaveLength(1);
  }));
