/** A first hub and its standbys, on a real database: what it refuses, what it forgets, and when. */
import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accept } from "../../src/domain/decision.ts";
import { CHANGES_KEPT, STANDBY_LOST_MS } from "../../src/domain/limits.ts";
import type { KeyRecord } from "../../src/domain/model.ts";
import {
  First,
  type HubUrls,
  type KnownStandbys,
  type Superseder,
  type Sync,
  urlFor,
} from "../../src/service/copies.ts";
import { openLog } from "../../src/lib/log.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Standing } from "../../src/store/store.ts";
import { TestClock } from "../support/hub.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const KEY: KeyRecord = {
  keyId: "two",
  role: "standby",
  hash: "h",
  variant: null,
  nodeId: null,
  mintMicro: null,
  createdAt: 1,
  expiresAt: null,
  revokedAt: null,
};
const URLS: HubUrls = { A: "http://two" };
const BY: Superseder = { name: "two", term: 2, urls: URLS, line: "line" };

async function openFirst(sync: Sync, { supersededBy = null as Superseder | null, known = {} } = {}) {
  const folder = await mkdtemp(join(tmpdir(), "luxhub-copies-"));
  closing.push(() => rm(folder, { recursive: true }));
  const store = openSqlite(join(folder, "db"), (error) => {
    throw error;
  });
  closing.push(() => store.close());
  store.changes.keep(true);
  const clock = new TestClock();
  const scene = { keys: [KEY] as readonly KeyRecord[], remembered: null as KnownStandbys | null, turns: 0 };
  const reported: Promise<string>[] = [];
  const write = (kind: "standby.following" | "standby.lost"): Promise<string> => {
    const event = { kind, at: clock.now(), nodeId: null, taskId: null, data: {} } as const;
    return store
      .transact({}, () => accept(null, [{ kind: "event.logged", event }]))
      .then(
        () => "written",
        ({ code, name }) => code ?? name,
      );
  };
  const first = new First({
    changes: store.changes,
    clock,
    log: openLog({ format: "json", level: "error", colour: false }, clock.now.bind(clock), () => {}),
    keys: () => scene.keys,
    urls: () => ({ A: "http://one" }),
    sync,
    isArchived: false,
    known,
    remember: (standbys) => (scene.remembered = standbys),
    rememberSuperseder: () => {},
    onSuperseded: () => void scene.turns++,
    supersededBy,
    report: (kind) => reported.push(write(kind).then((outcome) => `${kind}: ${outcome}`)),
  });
  const committed = (): Promise<void> => new Promise((resolve) => store.onCommit(() => resolve()));
  /** The standby has all entries, and its call ends at once. */
  const ask = (): Promise<unknown> => askAfter(store.changes.standing());
  const askAfter = ({ n, at, term }: Standing): Promise<unknown> => {
    const position = { name: "two", after: n ?? 0, at: at ?? 0, term, urls: URLS };
    return first.entriesAfter(position, 0, new AbortController().signal);
  };
  const rows = <R>(sql: string): readonly R[] => {
    using db = new Database(join(folder, "db"), { readonly: true });
    return db.query<R, []>(sql).all();
  };
  return {
    ...{ first, clock, scene, reported, write, committed, ask, askAfter, rows },
    changes: store.changes,
    isWritable: () => store.writable,
  };
}

test("--sync=strict: a superseded hub accepts no write when its standby takes the rest", async () => {
  const { write, ask, first } = await openFirst("strict", { supersededBy: BY });
  expect(await write("standby.lost")).toBe("superseded");
  await ask();
  expect(await write("standby.lost")).toBe("superseded");
  expect(first.report()).toMatchObject({ role: "superseded", hub: URLS, copies: [{ name: "two" }] });
});

test("a superseded hub shows no standby that has not asked it", async () => {
  const { first } = await openFirst("off", { supersededBy: BY });
  expect(first.report().copies).toEqual([]);
});

test("of two standbys that are promoted the second one is refused, until the first hub only knows that one was", async () => {
  const other = { ...BY, name: "three" };
  const { first } = await openFirst("off");
  await first.supersede(BY);
  await first.supersede(BY); // it tells again when it serves
  await expect(first.supersede(other)).rejects.toThrow("two (http://two)");
  await first.supersede({ ...other, term: 3 }); // of a later promotion
  const found = await openFirst("off", { supersededBy: { ...BY, line: "" } });
  await found.first.supersede(other);
});

test("--sync=strict: the event that a standby follows is written, as the first write that it confirms", async () => {
  const { ask, write, reported, committed, isWritable } = await openFirst("strict");
  expect([await write("standby.lost"), isWritable()]).toEqual(["no_standby", false]);
  const event = committed();
  await ask();
  expect(isWritable()).toBe(true);
  await event;
  await ask(); // it has the event now
  expect(await Promise.all(reported)).toEqual(["standby.following: written"]);
});

test("a standby whose key was revoked is forgotten: a later start does not ask it whether it was promoted", async () => {
  const { first, ask, scene } = await openFirst("off");
  await ask();
  expect(scene.remembered).toEqual({ two: URLS });
  scene.keys = [{ ...KEY, revokedAt: 1 }];
  first.check();
  expect(scene.remembered).toEqual({});
  expect([first.report().copies, first.hubs({ variant: "A", isTls: false })]).toEqual([[], []]);
});

test("--sync: a write after the hub began to end is answered at once, though nobody confirms it", async () => {
  const { first, ask, write, committed } = await openFirst("on");
  await ask();
  const before = write("standby.lost");
  await committed();
  first.drain();
  expect(await before).toBe("OutcomeUnknown");
  expect(await write("standby.lost")).toBe("OutcomeUnknown");
});

test("--sync: a write waits for the standbys that the hub knew when it last ran, until they are lost", async () => {
  const { first, clock, write, reported, committed } = await openFirst("on", { known: { two: URLS } });
  const waiting = write("standby.following");
  await committed();
  first.check();
  expect(first.report().copies).toMatchObject([{ isFollowing: true, lagEntries: 1 }]);
  clock.pass(STANDBY_LOST_MS);
  first.check();
  expect(await waiting).toBe("written");
  expect(await Promise.all(reported)).toEqual(["standby.lost: written"]);
});

test("--sync does not wait for a standby that asks for the same entries again: its disk may be full", async () => {
  const { first, clock, ask, askAfter, write, reported, committed, changes } = await openFirst("on");
  await ask();
  const standing = changes.standing();
  const [event, waiting] = [committed(), write("standby.lost")];
  await event;
  for (let asked = 0; asked < 2; asked++) {
    clock.pass(STANDBY_LOST_MS);
    await askAfter(standing);
    first.check();
    expect(first.report().copies).toMatchObject([{ isFollowing: false }]);
  }
  expect(await waiting).toBe("written");
  await ask(); // it has them at last
  expect(first.report().copies).toMatchObject([{ isFollowing: true, lagEntries: 0 }]);
  first.drain(); // nobody confirms the last event
  await Promise.all(reported);
});

test("of the log the newest entries stay that take no more than the limit, also while it grows and after others were forgotten", async () => {
  const { write, changes, rows } = await openFirst("off");
  const sizes = (): readonly number[] =>
    rows<{ bytes: number }>("SELECT octet_length(body) AS bytes FROM changes ORDER BY n DESC").map(
      ({ bytes }) => bytes,
    );
  for (let round = 0; round < 4; round++) {
    for (let i = 0; i < 5; i++) await write("standby.lost");
    if (round === 2) changes.forgetBefore((changes.standing().n ?? 0) - 3);
    const before = sizes();
    const limit = before.slice(0, 5).reduce((sum, bytes) => sum + bytes, 0) + 1;
    changes.forgetBeyond(limit);
    expect(sizes()).toEqual(before.slice(0, 5));
  }
  changes.forgetBeyond(0);
  expect(sizes().length).toBe(1); // it says where the log stands
  await write("standby.lost");
  changes.forgetBeyond(1_000_000);
  expect(sizes().length).toBe(2);
});

test("a caller gets the URLs of its variant, and first those that speak TLS as its own does", () => {
  const both = { A: "http://one", A_tls: "https://one", B_tls: "https://one:2" };
  const urlsOf = (variant: "A" | "B", isTls: boolean) => urlFor(both, { variant, isTls });
  expect([urlsOf("A", false), urlsOf("A", true), urlsOf("B", false), urlsOf("B", true)]).toEqual([
    "http://one",
    "https://one",
    "https://one:2",
    "https://one:2",
  ]);
  expect(urlFor({ A: "http://one" }, { variant: "B", isTls: false })).toBeNull();
});

test("nodes learn the URLs of the hub and of its standbys", async () => {
  const { first, ask } = await openFirst("off");
  const caller = { variant: "A", isTls: false } as const;
  expect(first.hubs(caller)).toEqual([]);
  await ask();
  expect(first.hubs(caller)).toEqual(["http://one", "http://two"]);
  expect(first.hubs({ variant: "B", isTls: false })).toEqual([]);
});

test("--sync: a superseded hub is open until its promoted standby has confirmed the writes that wait", async () => {
  const { first, ask, write, committed, scene } = await openFirst("on");
  await ask();
  const waiting = write("standby.lost");
  await committed();
  await first.supersede({ name: "two", term: 2, urls: URLS, line: "" });
  expect(await write("standby.lost")).toBe("superseded");
  expect(scene.turns).toBe(0);
  await ask();
  expect(await waiting).toBe("written");
  expect(scene.turns).toBe(1);
  first.check();
  await first.supersede({ name: "two", term: 3, urls: URLS, line: "" });
  expect(scene.turns).toBe(1);
});

test("a superseded hub for whose writes nobody waits is opened again at once, and at the latest with the next check", async () => {
  const idle = await openFirst("on");
  await idle.first.supersede({ name: "two", term: 2, urls: URLS, line: "" });
  expect(idle.scene.turns).toBe(1);
  const { first, ask, write, committed, scene } = await openFirst("on");
  await ask();
  const waiting = write("standby.lost");
  await committed();
  await first.supersede({ name: "two", term: 2, urls: URLS, line: "" });
  first.check();
  expect(scene.turns).toBe(1);
  first.drain();
  expect(await waiting).toBe("OutcomeUnknown");
});

test("the entries after a base are kept for the standby that takes it, however long that takes", async () => {
  const { first, clock, write, changes, ask, askAfter } = await openFirst("off");
  const base = changes.standing();
  first.prepare("two");
  for (let i = 0; i < CHANGES_KEPT + 200; i++) await write("standby.lost");
  clock.pass(STANDBY_LOST_MS);
  first.check();
  await askAfter(base);
  await ask(); // it has all
  first.check();
  await expect(askAfter(base)).rejects.toThrow("Take a new base");
});
