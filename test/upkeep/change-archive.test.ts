/**
 * The archive of the change log beside the backups, and the restore of a moment: the same rows as the database that stood
 * there, and the bytes of its files; what a piece that is missing, damaged or of another history does; retention.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { blobFileOf } from "../../src/blobs/disk.ts";
import { dataDirAt } from "../../src/data-dir.ts";
import { isoTime, systemClock } from "../../src/lib/clock.ts";
import { must } from "../../src/lib/assert.ts";
import { lastEntryOf } from "../../src/store/sqlite/change-log.ts";
import type { Entry } from "../../src/store/store.ts";
import { type BackupPlace, backupsIn, datedName, placeOf } from "../../src/upkeep/backup-target.ts";
import { backUp } from "../../src/upkeep/backup.ts";
import { archivePiece, endOfArchive, keepNewest, piecesIn } from "../../src/upkeep/change-archive.ts";
import { type Restored, restoreMoment } from "../../src/upkeep/restore.ts";
import type { HubPlace, Tools } from "../../src/upkeep/upkeep.ts";
import { dice } from "../support/dice.ts";
import { type TestHub, newDataDir, startHub } from "../support/hub.ts";
import { asRestored, differences } from "../support/same-rows.ts";
import { SMALL_DISK_BYTES, SmallDisk, whyNoSmallDisk } from "../support/small-disk.ts";

const STEPS = 60;
const MOMENTS = 10;
const NO_SIGNAL = new AbortController().signal;
const TOOLS: Tools = { clock: systemClock(), onProgress: () => {}, signal: NO_SIGNAL };

const at = (path: string): HubPlace => ({ dir: dataDirAt(path), url: null });
const placeIn = (path: string): BackupPlace => placeOf(`${path}/`);

/** Dated at a time that the test chooses: names have whole seconds. */
async function backUpAt(data: string, place: BackupPlace, epochMs: number): Promise<void> {
  await place.list(""); // creates the directory
  await backUp(at(data), (entry) => place.target(datedName({ at: epochMs, entry })), "luxhub test", TOOLS);
}

/** Up to the last entry. */
async function archiveAll(data: string, place: BackupPlace): Promise<number> {
  let end = must(await endOfArchive(place, dataDirAt(data)), "the place leads to the log");
  for (
    let last = end;
    (end = await archivePiece(last, dataDirAt(data), place, NO_SIGNAL)) > last;
    last = end
  );
  return end;
}

/** What the database was when this entry was the last one. */
type Snapshot = { readonly entry: Entry; readonly path: string };

function snapshotOf(data: string, path: string): Snapshot {
  using db = new Database(join(data, "luxhub.db"), { readonly: true });
  db.run("VACUUM INTO ?", [path]);
  using copy = new Database(path);
  const entry = must(lastEntryOf(copy), "the log is kept");
  asRestored(copy);
  return { entry, path };
}

let folder = "";
/** Of a hub that has ended. */
let data = "";
let place = "";
let snapshots: Snapshot[] = [];
let entries: Entry[] = [];
/** When the second backup began. */
let secondAt = 0;

/** A request of a worker or its owner. Some are refused. */
async function step(hub: TestHub, roll: (sides: number) => number, ids: Ids): Promise<void> {
  const node = `n${roll(3)}`;
  const [taskId, fileId] = [ids.tasks[roll(ids.tasks.length || 1)], ids.files[roll(ids.files.length || 1)]];
  switch (roll(8)) {
    case 0:
    case 1:
      ids.tasks.push(
        String((await hub.post("/task/create", { title: "t", description: "d" })).body["task_id"]),
      );
      return;
    case 2:
      await hub.post("/task/next", { node_id: node });
      return;
    case 3:
      await hub.post("/task/fail", { task_id: taskId, node_id: node, error: "no" });
      return;
    case 4:
      await hub.post("/message/send", { from_node: node, to_node: "n0", content: `c ${roll(99)}` });
      return;
    case 5:
      await hub.post("/node/heartbeat", { node_id: node });
      return;
    case 6: {
      const body = new FormData();
      body.append("file", new Blob([`bytes ${roll(1_000)} `.repeat(roll(500))]), `f${roll(9)}`);
      ids.files.push(String((await hub.call("POST", "/file/upload", { body })).body["file_id"]));
      return;
    }
    default:
      await hub.post("/file/delete", { file_id: fileId });
  }
}

type Ids = { readonly tasks: string[]; readonly files: string[] };

beforeAll(async () => {
  folder = newDataDir();
  [data, place] = [join(folder, "data"), join(folder, "place")];
  mkdirSync(data);
  const hub = await startHub({ dataDir: data, backupTo: place, backupChangesMs: 10_000 });
  const roll = dice(7);
  const ids: Ids = { tasks: [], files: [] };
  for (const id of ["n0", "n1", "n2"]) await hub.post("/node/register", { node_id: id, name: id });
  await step(hub, () => 6, ids);
  await backUpAt(data, placeIn(place), Date.now());
  for (let i = 0; i < STEPS; i++) {
    await step(hub, roll, ids);
    const snapshot = snapshotOf(data, join(folder, `snapshot-${i}.db`));
    snapshots.push(snapshot);
    while (Date.now() <= snapshot.entry.at); // the next entry has another time
    if (roll(3) === 0) await archiveAll(data, placeIn(place));
    if (i !== STEPS / 2) continue;
    secondAt = must(snapshots.at(-10), "there are more").entry.at; // it began before the last entries that it has
    await backUpAt(data, placeIn(place), secondAt);
  }
  await hub.close();
  await archiveAll(data, placeIn(place));
  using db = new Database(join(data, "luxhub.db"), { readonly: true });
  entries = db.query<Entry, []>("SELECT n, at, '' AS body FROM changes ORDER BY n").all();
});

afterAll(() => rmSync(folder, { recursive: true }));

let restores = 0;

async function restoreAt(moment: number | null, from = place): Promise<{ readonly path: string } & Restored> {
  const path = join(folder, `restored-${restores++}`);
  return { path, ...(await restoreMoment(placeIn(from), moment, at(path), TOOLS)) };
}

function differencesFrom(snapshot: Snapshot, path: string): readonly string[] {
  using stood = new Database(snapshot.path, { readonly: true });
  using restored = new Database(join(path, "luxhub.db"));
  for (const { file_id, sha256 } of restored
    .query<{ file_id: string; sha256: string }, []>("SELECT file_id, sha256 FROM files")
    .all())
    expect(Bun.SHA256.hash(readFileSync(join(path, blobFileOf(file_id))), "hex")).toBe(sha256);
  return differences(stood, restored);
}

/** The place without what `spoil` does to it. */
async function spoilt(spoil: (path: string) => void | Promise<void>): Promise<string> {
  const path = join(folder, `spoilt-${restores++}`);
  cpSync(place, path, { recursive: true });
  await spoil(path);
  return path;
}

/** One whose entry is the only one of its millisecond. */
const clear = (): readonly Snapshot[] =>
  snapshots.filter(({ entry }, i) => {
    const next = entries.find(({ n }) => n > entry.n);
    return entry.n !== snapshots[i - 1]?.entry.n && next !== undefined && next.at > entry.at;
  });

describe("restore to a moment", () => {
  test("has the rows and the files of the database that stood there, at ten random moments", async () => {
    const candidates = [...clear()];
    expect(candidates.length).toBeGreaterThan(MOMENTS);
    const roll = dice(11);
    for (let i = 0; i < MOMENTS; i++) {
      const [snapshot] = candidates.splice(roll(candidates.length), 1);
      const { entry } = must(snapshot, "there are more than ten");
      const { path, moment } = await restoreAt(entry.at);
      expect(moment).toMatchObject({ entry: { n: entry.n, at: entry.at }, missing: [] });
      expect(moment?.next?.n).toBe(entry.n + 1);
      expect(moment?.left).toBe(must(entries.at(-1), "there are entries").n - entry.n);
      expect(differencesFrom(must(snapshot, "there are more than ten"), path)).toEqual([]);
    }
  });

  test("is of the newest one without a time, and says so; a hub starts on it", async () => {
    const { path, moment } = await restoreAt(null);
    expect(moment).toMatchObject({ entry: { n: entries.at(-1)?.n }, next: null, left: 0 });
    const hub = await startHub({ dataDir: path });
    expect((await hub.get("/node/n0")).status).toBe(200);
    await hub.close();
  });

  test("is of an older backup when the newest one had begun, but has later entries", async () => {
    const { moment } = await restoreAt(secondAt); // the name has its whole second: the backup is of a later moment
    const [first, second] = await backupsIn(placeIn(place));
    expect(must(second, "there are two").at).toBeLessThanOrEqual(secondAt);
    const early = snapshots.find(({ entry }) => entry.at >= must(second, "there are two").at);
    const { moment: earlier } = await restoreAt(must(early, "one of that second").entry.at);
    expect(earlier?.backup).toBe(must(first, "there are two").name);
    expect(moment?.entry.at).toBeLessThanOrEqual(secondAt);
  });

  test("before the first backup is refused", async () => {
    await expect(restoreAt(Date.UTC(2020, 0))).rejects.toThrow(
      "has no backup that is as old as 2020-01-01T00:00:00.000Z: the oldest is luxhub-",
    );
    mkdirSync(join(folder, "empty"));
    await expect(restoreAt(null, join(folder, "empty"))).rejects.toThrow("empty has no backup");
  });

  test("ends before the first later entry, where the clock has jumped", async () => {
    const jumped = join(folder, "jumped");
    cpSync(data, jumped, { recursive: true });
    const to = join(folder, "jumped-place");
    using db = new Database(join(jumped, "luxhub.db"));
    const [a, b, c, d] = entries.slice(-4).map(({ n }) => n);
    const set = (n: number | undefined, time: number): void =>
      void db.query("UPDATE changes SET at = ? WHERE n = ?").run(time, must(n, "there are four"));
    const now = Date.now();
    for (const [n, time] of [
      [a, now],
      [b, now + 60_000],
      [c, now - 60_000],
      [d, now + 1],
    ] as const)
      set(n, time);
    cpSync(place, to, { recursive: true });
    for (const { name, last } of await piecesIn(placeIn(to)))
      if (last >= must(a, "there are four")) rmSync(join(to, name));
    await archiveAll(jumped, placeIn(to));
    expect((await restoreAt(now, to)).moment).toMatchObject({ entry: { n: a }, next: { n: b }, left: 3 });
    expect((await restoreAt(now + 60_000, to)).moment).toMatchObject({ entry: { n: d }, next: null });
  });
});

describe("a place that does not lead on", () => {
  test("names the entries that are missing, and what can be restored", async () => {
    let gone = { first: 0, last: 0 };
    const from = await spoilt(async (path) => {
      gone = must((await piecesIn(placeIn(path))).at(-2), "there are pieces");
      rmSync(join(path, (gone as { readonly name?: string }).name ?? ""));
    });
    const before = must(
      entries.find(({ n }) => n === gone.first - 1),
      "the entry before",
    );
    await expect(restoreAt(null, from)).rejects.toThrow(
      `lacks the entries from ${gone.first} to ${gone.last}: restore what is before with --at ${isoTime(before.at)}`,
    );
    const { moment } = await restoreAt(before.at, from);
    const last = must(entries.at(-1), "there are entries").n;
    expect(moment).toMatchObject({ entry: { n: before.n }, next: null, left: last - before.n });
  });

  test("does not take a piece of another history for the next one", async () => {
    const from = await spoilt(async (path) => {
      const { name } = must((await piecesIn(placeIn(path))).at(-1), "there are pieces");
      const text = gunzipSync(readFileSync(join(path, name))).toString();
      const other = text.replace(/"follows":"[\da-f]+"/, `"follows":"${"0".repeat(64)}"`);
      writeFileSync(join(path, name), gzipSync(other));
    });
    await expect(restoreAt(null, from)).rejects.toThrow("lacks what follows entry");
  });

  test.each([
    ["cut", (bytes: Buffer) => bytes.subarray(0, -9), "is damaged"],
    ["flipped", (bytes: Buffer) => Buffer.from(bytes).fill(0xff, 30, 40), "is damaged"],
    ["of other entries", () => gzipSync('{"format":1,"follows":"","missing":[]}\n'), "has other entries"],
    ["of a newer luxhub", () => gzipSync('{"format":2,"follows":"","missing":[]}\n'), "is of a newer luxhub"],
  ] as const)("says of a piece that is %s what it is", async (_, spoil, says) => {
    const from = await spoilt(async (path) => {
      const { name } = must((await piecesIn(placeIn(path))).at(-1), "there are pieces");
      writeFileSync(join(path, name), spoil(readFileSync(join(path, name))));
    });
    await expect(restoreAt(null, from)).rejects.toThrow(says);
  });

  test("uses an older backup in place of a damaged one, and says so", async () => {
    const cut = (path: string, { name }: { readonly name: string }): void =>
      writeFileSync(join(path, name), readFileSync(join(path, name)).subarray(0, -2_000));
    const [first, second] = await backupsIn(placeIn(place));
    const from = await spoilt((path) => cut(path, must(second, "there are two")));
    const snapshot = must(clear().at(-1), "there are snapshots");
    const { path, moment } = await restoreAt(snapshot.entry.at, from);
    expect(moment).toMatchObject({
      backup: first?.name,
      damaged: [expect.stringContaining(second?.name ?? "")],
    });
    expect(differencesFrom(snapshot, path)).toEqual([]);
    cut(from, must(first, "there are two"));
    await expect(restoreAt(null, from)).rejects.toThrow(
      `cannot be restored: ${second?.name}: Tar archive is`,
    );
    // Without entries an older one is of an older moment.
    const plain = await spoilt((path) => {
      for (const [{ name }, day] of [
        [must(first, "there are two"), 1],
        [must(second, "there are two"), 2],
      ] as const) {
        if (day === 2) cut(path, { name });
        renameSync(join(path, name), join(path, datedName({ at: Date.UTC(2026, 0, day), entry: null })));
      }
    });
    await expect(restoreAt(null, plain)).rejects.toThrow(
      "cannot be restored: luxhub-20260102T000000Z.tar: Tar",
    );
  });

  test("is refused when the bytes of a file are gone or other ones", async () => {
    const isFile = (name: string): boolean => name.startsWith("file-");
    const gone = await spoilt((path) => {
      for (const name of readdirSync(path).filter(isFile)) rmSync(join(path, name));
    });
    await expect(restoreAt(null, gone)).rejects.toThrow("lacks the bytes of the file ");
    const other = await spoilt((path) => {
      for (const name of readdirSync(path).filter(isFile)) writeFileSync(join(path, name), "other");
    });
    await expect(restoreAt(null, other)).rejects.toThrow("has other bytes than were uploaded");
  });
});

describe("the archive", () => {
  test("goes on where its place ends, writes nothing twice, and says when the log does not lead there", async () => {
    const to = placeIn(await spoilt(() => {}));
    const last = must(entries.at(-1), "there are entries").n;
    const before = await to.list("");
    expect(await archiveAll(data, to)).toBe(last);
    expect(await to.list("")).toEqual(before);
    const other = join(folder, "other");
    cpSync(data, other, { recursive: true });
    using db = new Database(join(other, "luxhub.db"));
    db.query("UPDATE changes SET at = at + 1 WHERE n = ?").run(last); // another history with the same numbers
    expect(await endOfArchive(to, dataDirAt(other))).toBeNull();
    db.query("DELETE FROM changes WHERE n <= ?").run(last);
    expect(await endOfArchive(to, dataDirAt(other))).toBeNull();
    await expect(archivePiece(last, dataDirAt(other), to, NO_SIGNAL)).rejects.toThrow(
      "is no longer kept here",
    );
    expect(await endOfArchive(placeIn(join(folder, "new")), dataDirAt(data))).toBeNull();
  });

  test("names the files whose bytes were deleted before", async () => {
    const path = join(folder, "deleted");
    const from = join(folder, "deleted-place");
    mkdirSync(path);
    const hub = await startHub({ dataDir: path, backupTo: from, backupChangesMs: 10_000 });
    await backUpAt(path, placeIn(from), Date.now());
    const ids: Ids = { tasks: [], files: [] };
    await step(hub, () => 6, ids);
    const { entry } = snapshotOf(path, join(folder, "deleted.db"));
    while (Date.now() <= entry.at);
    await hub.post("/file/delete", { file_id: ids.files[0] });
    await hub.close();
    await archiveAll(path, placeIn(from));
    expect((await restoreAt(entry.at, from)).moment?.missing).toEqual(ids.files);
    expect((await restoreAt(null, from)).moment?.missing).toEqual([]);
  });

  test("keeps what its backups need, and deletes the rest with the backups before", async () => {
    const from = await spoilt(() => {});
    const to = placeIn(from);
    const [first, second] = await backupsIn(to);
    const later = Date.now() + 60_000;
    await backUpAt(data, to, later);
    const before = await to.list("");
    const { backups, others } = await keepNewest(to, 2);
    expect(backups).toEqual([must(first, "there are three").name]);
    const kept = await to.list("");
    expect(before.length - kept.length).toBe(others + 1);
    const needed = must(second?.entry, "it stands at an entry");
    const numberIn = (name: string): number =>
      Number(/^(?:changes-\d+|file)-(\d+)/.exec(name)?.[1] ?? Number.NaN);
    for (const name of before)
      expect(kept.includes(name)).toBe(name !== first?.name && !(numberIn(name) <= needed));
    const snapshot = must(clear().at(-1), "there are snapshots");
    const { path } = await restoreAt(snapshot.entry.at, from);
    expect(differencesFrom(snapshot, path)).toEqual([]);
    expect(await keepNewest(to, 1)).toMatchObject({ backups: [second?.name] });
    expect(await to.list("")).toHaveLength(1);
  });

  test("goes on after a kill -9 in the middle of a piece, which is under no name", async () => {
    const [first] = await backupsIn(placeIn(place));
    const { name } = must(first, "there are two");
    const to = join(folder, "killed-place");
    mkdirSync(to);
    cpSync(join(place, name), join(to, name));
    const modules = join(import.meta.dir, "../../src");
    const script = `
      const { placeOf } = await import("${modules}/upkeep/backup-target.ts");
      const { archivePiece, endOfArchive } = await import("${modules}/upkeep/change-archive.ts");
      const { dataDirAt } = await import("${modules}/data-dir.ts");
      const dir = dataDirAt(${JSON.stringify(data)});
      const place = placeOf(${JSON.stringify(`${to}/`)});
      const stuck = (target) => ({ ...target, open: async () => {
        const sink = await target.open();
        const finish = async () => { console.log("written"); await new Promise(() => setInterval(() => {}, 1e6)); };
        return { write: (bytes) => sink.write(bytes), abandon: () => sink.abandon(), finish };
      } });
      const target = (name) => name.startsWith("changes-") ? stuck(place.target(name)) : place.target(name);
      await archivePiece(await endOfArchive(place, dir), dir, { ...place, target }, new AbortController().signal);`;
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
    const { value } = await child.stdout.getReader().read();
    expect(Buffer.from(must(value, "it has written")).toString()).toBe("written\n");
    child.kill("SIGKILL");
    await child.exited;
    expect(await piecesIn(placeIn(to))).toEqual([]);
    expect(readdirSync(to).filter((each) => each.endsWith(".partial"))).toHaveLength(1);
    await archiveAll(data, placeIn(to));
    const snapshot = must(clear().at(-1), "there are snapshots");
    const { path } = await restoreAt(snapshot.entry.at, to);
    expect(differencesFrom(snapshot, path)).toEqual([]);
  });

  const noDisk = whyNoSmallDisk(join(newDataDir(), "probe"));
  test("on a full disk leaves nothing, and goes on when there is room", async () => {
    const reason = await noDisk;
    if (reason !== null) return console.log(`not tried: ${reason}`);
    await using disk = await SmallDisk.mount(join(folder, "disk"));
    const inside = disk.inside(disk.path);
    const [first] = await backupsIn(placeIn(place));
    cpSync(join(place, must(first, "there are two").name), join(inside, must(first, "there are two").name));
    writeFileSync(join(inside, "ballast"), Buffer.alloc(SMALL_DISK_BYTES / 2));
    try {
      writeFileSync(join(inside, "more"), Buffer.alloc(SMALL_DISK_BYTES));
    } catch {
      // It is full now.
    }
    await expect(archiveAll(data, placeIn(inside))).rejects.toThrow("no space left on device");
    expect(readdirSync(inside).toSorted()).toEqual(["ballast", must(first, "there are two").name, "more"]);
    for (const name of ["ballast", "more"]) rmSync(join(inside, name));
    expect(await archiveAll(data, placeIn(inside))).toBe(must(entries.at(-1), "there are entries").n);
    expect(existsSync(join(inside, must(first, "there are two").name))).toBe(true);
  });
});
