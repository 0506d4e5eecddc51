/** Backup and restore: the usual case, refusals, cancellation, damaged archives. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { blobFileOf } from "../../src/blobs/disk.ts";
import { dataDirAt } from "../../src/data-dir.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { isHeld, takeSharedLock } from "../../src/store/sqlite/file-lock.ts";
import { SQLITE_SCHEMA } from "../../src/store/sqlite/schema.ts";
import { fileTarget } from "../../src/upkeep/backup-target.ts";
import { backUp } from "../../src/upkeep/backup.ts";
import { restore as restoreInto } from "../../src/upkeep/restore.ts";
import type { HubPlace, Manifest, Tools } from "../../src/upkeep/upkeep.ts";
import { newDataDir, startHub } from "../support/hub.ts";

const FILES = 6;
const NO_SIGNAL = new AbortController().signal;
const tools = (patch: Partial<Tools> = {}): Tools => ({
  clock: systemClock(),
  onProgress: () => {},
  signal: NO_SIGNAL,
  ...patch,
});

const at = (path: string): HubPlace => ({ dir: dataDirAt(path), url: null });
const restore = async (from: string, path: string, own: Tools): Promise<Manifest> =>
  (await restoreInto(from, at(path), own)).manifest;

/** A folder for all of this; `data` in it is a hub that has ended, `backup.tar` its backup. */
let folder = "";
let data = "";
let backup = "";
let fileIds: string[] = [];

beforeAll(async () => {
  folder = newDataDir();
  data = join(folder, "data");
  mkdirSync(data);
  const hub = await startHub({ dataDir: data });
  await hub.post("/node/register", { node_id: "a", name: "A" });
  await hub.post("/task/create", { title: "t", description: "d" });
  for (let i = 0; i < FILES; i++) {
    const body = new FormData();
    body.append("file", new Blob([`file ${i} `.repeat(100 * i)]), `file-${i}`);
    fileIds.push(String((await hub.call("POST", "/file/upload", { body })).body["file_id"]));
  }
  await hub.close();
  writeFileSync(join(data, "secret"), "a-secret\n");
  writeFileSync(join(data, "admin-key"), "an-admin-key\n");
  backup = join(folder, "backup.tar");
  await backUp(at(data), fileTarget(backup), "luxhub test", tools());
});

afterAll(() => rmSync(folder, { recursive: true }));

/** Every file below a directory with its hash. */
function contents(path: string): readonly string[] {
  return readdirSync(path, { recursive: true, encoding: "utf8" })
    .filter((name) => statSync(join(path, name)).isFile())
    .map((name) => `${name} ${Bun.SHA256.hash(readFileSync(join(path, name)), "hex")}`)
    .toSorted();
}

const beside = (): readonly string[] =>
  readdirSync(folder).filter((name) => /partial|\.restoring/.test(name));
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

describe("a backup", () => {
  test("has the database, the secrets and every file, and only its owner can read it", async () => {
    expect(modeOf(backup)).toBe("600");
    expect(beside()).toEqual([]);
    const into = join(folder, "whole");
    const manifest = await restore(backup, into, tools());
    expect(manifest).toMatchObject({ files: FILES, missing: [], damaged: [], software: "luxhub test" });
    const names = contents(into).map((line) => line.split(" ")[0]);
    expect(names.toSorted()).toEqual(
      ["admin-key", ...fileIds.map(blobFileOf), "luxhub.db", "secret"].toSorted(),
    );
    expect(readFileSync(join(into, "secret"), "utf8")).toBe("a-secret\n");
    for (const name of readdirSync(into, { recursive: true, encoding: "utf8" })) {
      const path = join(into, name);
      expect([name, modeOf(path)]).toEqual([name, statSync(path).isDirectory() ? "700" : "600"]);
    }
    expect(modeOf(into)).toBe("700");
  });

  test("does not overwrite an existing one", async () => {
    const before = readFileSync(backup);
    await expect(backUp(at(data), fileTarget(backup), "", tools())).rejects.toThrow("already exists");
    expect(readFileSync(backup).equals(before)).toBe(true);
  });

  test("of an empty directory or a damaged database is refused and leaves nothing", async () => {
    const to = join(folder, "none.tar");
    await expect(backUp(at(join(folder, "nowhere")), fileTarget(to), "", tools())).rejects.toThrow(
      "there is no hub in",
    );
    const damaged = join(folder, "damaged");
    cpSync(data, damaged, { recursive: true });
    truncateSync(join(damaged, "luxhub.db"), 20_480);
    await expect(backUp(at(damaged), fileTarget(to), "", tools())).rejects.toThrow("the database is damaged");
    expect(existsSync(to)).toBe(false);
    expect(beside()).toEqual([]);
  });

  test("that is cancelled leaves nothing", async () => {
    const to = join(folder, "ended.tar");
    const ending = new AbortController();
    const onProgress = (text: string): void => {
      if (text.startsWith("copying 6 files")) ending.abort(new Error("ended by hand"));
    };
    await expect(
      backUp(at(data), fileTarget(to), "", tools({ onProgress, signal: ending.signal })),
    ).rejects.toThrow("by hand");
    expect(existsSync(to)).toBe(false);
    expect(beside()).toEqual([]);
  });

  test("pins the directory until it ends", async () => {
    const held = new Map<string, boolean>();
    const onProgress = (text: string): void =>
      void held.set(text.split(" ", 2).join(" "), isHeld(dataDirAt(data).pin));
    await backUp(at(data), fileTarget(join(folder, "pinned.tar")), "", tools({ onProgress }));
    expect([...held]).toEqual([
      ["copying the", true],
      [`copying ${FILES}`, true],
    ]);
    expect(isHeld(dataDirAt(data).pin)).toBe(false);
  });

  test("keeps a running hub from removing the bytes of files deleted meanwhile", async () => {
    await using hub = await startHub();
    const body = new FormData();
    body.append("file", new Blob(["wanted by a backup"]));
    const fileId = String((await hub.call("POST", "/file/upload", { body })).body["file_id"]);
    const path = join(hub.dataDir, blobFileOf(fileId));
    const pin = takeSharedLock(dataDirAt(hub.dataDir).pin);
    expect((await hub.post("/file/delete", { file_id: fileId })).status).toBe(200);
    expect((await hub.get(`/file/download/${fileId}`)).status).toBe(404);
    expect(readFileSync(path, "utf8")).toBe("wanted by a backup");
    pin?.release();
    const other = String((await hub.call("POST", "/file/upload", { body })).body["file_id"]);
    await hub.post("/file/delete", { file_id: other });
    expect(existsSync(join(hub.dataDir, blobFileOf(other)))).toBe(false);
  });

  test("names missing and damaged files, has the others, and can be restored", async () => {
    const harmed = join(folder, "harmed");
    cpSync(data, harmed, { recursive: true });
    const [gone = "", changed = "", cut = ""] = fileIds.slice(1);
    rmSync(join(harmed, blobFileOf(gone)));
    writeFileSync(join(harmed, blobFileOf(changed)), "other bytes");
    truncateSync(join(harmed, blobFileOf(cut)), 5);
    const to = join(folder, "harmed.tar");
    const { manifest } = await backUp(at(harmed), fileTarget(to), "", tools());
    expect(manifest).toMatchObject({ files: FILES, missing: [gone], damaged: [changed, cut] });
    const into = join(folder, "harmed-again");
    expect(await restore(to, into, tools())).toEqual(manifest);
    expect(readFileSync(join(into, blobFileOf(changed)), "utf8")).toBe("other bytes");
  });
});

describe("a restore", () => {
  test("needs an empty or a new directory, and does not change any other", async () => {
    const used = join(folder, "used");
    mkdirSync(used);
    writeFileSync(join(used, "mine"), "mine");
    await expect(restore(backup, used, tools())).rejects.toThrow("is not empty");
    expect(contents(used)).toHaveLength(1);
    const killed = join(folder, "killed");
    mkdirSync(join(killed, ".restoring"), { recursive: true });
    await expect(restore(backup, killed, tools())).rejects.toThrow("was not finished; delete it, or name");
    const empty = join(folder, "empty");
    mkdirSync(empty);
    await restore(backup, empty, tools());
    expect(contents(empty)).toHaveLength(FILES + 3);
    expect(readdirSync(empty)).not.toContain(".restoring");
  });

  test("of a file that is no backup is refused, and a directory made for it is removed", async () => {
    const into = join(folder, "refused");
    const text = join(folder, "text.tar");
    writeFileSync(text, "no archive ".repeat(1_000));
    await expect(restore(text, into, tools())).rejects.toThrow(
      `${text} cannot be restored: it is no whole backup of luxhub (Invalid tar`,
    );
    writeFileSync(text, new Uint8Array(10_240));
    await expect(restore(text, into, tools())).rejects.toThrow("it is no backup of luxhub");
    await expect(restore(join(folder, "not-there"), into, tools())).rejects.toThrow("cannot read");
    expect(existsSync(into)).toBe(false);
  });

  test("that is cancelled leaves the directory as it was", async () => {
    const into = join(folder, "ended");
    mkdirSync(into);
    const ending = new AbortController();
    const onProgress = (text: string): void => {
      if (text.endsWith("3 files")) ending.abort(new Error("ended by hand"));
    };
    await expect(restore(backup, into, tools({ onProgress, signal: ending.signal }))).rejects.toThrow(
      "ended by hand",
    );
    expect(readdirSync(into)).toEqual([]);
  });

  test("of an archive with a flipped bit or a missing end is refused, or equals the backup", async () => {
    const whole = contents(join(folder, "whole"));
    const bytes = readFileSync(backup);
    const harmed = join(folder, "flipped.tar");
    const into = join(folder, "flipped");
    let refused = 0;
    const tryIt = async (what: Uint8Array): Promise<void> => {
      writeFileSync(harmed, what);
      const failed = await restore(harmed, into, tools()).then(
        () => null,
        (error: unknown) => error,
      );
      if (failed === null) {
        expect(contents(into)).toEqual(whole);
        rmSync(into, { recursive: true });
        return;
      }
      refused++;
      expect(String(failed)).toContain("flipped.tar cannot be restored: ");
      expect(existsSync(into)).toBe(false);
    };
    const places = 80;
    for (let i = 0; i < places; i++) {
      const flipped = Uint8Array.from(bytes);
      const at = Math.floor(((i + 0.5) / places) * bytes.length);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << (i % 8));
      await tryIt(flipped);
    }
    for (let i = 0; i < 20; i++)
      await tryIt(bytes.subarray(0, Math.floor((i / 20) * (bytes.length - 1_024))));
    expect(refused).toBeGreaterThan(80); // what is flipped between the files is nobody's
  });
});

test("a backup of a newer luxhub is refused, with its version", async () => {
  const newer = join(folder, "newer");
  cpSync(data, newer, { recursive: true });
  const db = new Database(join(newer, "luxhub.db"));
  db.run("PRAGMA user_version = 99");
  db.close();
  const to = join(folder, "newer.tar");
  await backUp(at(newer), fileTarget(to), "", tools());
  const into = join(folder, "newer-again");
  await expect(restore(to, into, tools())).rejects.toThrow(
    `${to} cannot be restored: it is of a newer luxhub (schema 99, this one knows ${SQLITE_SCHEMA.version})`,
  );
  // The last entry says of which format the archive is.
  const bytes = readFileSync(backup);
  const place = bytes.lastIndexOf('"format": 1');
  writeFileSync(to, Buffer.from(bytes).fill('"format": 2', place, place + '"format": 2'.length));
  await expect(restore(to, into, tools())).rejects.toThrow("of a newer luxhub (format 2, this one knows 1)");
  expect(existsSync(into)).toBe(false);
});

test("a restored database equals the original, but every lease of a task is stale, and its change log has ended", () => {
  const rowsOf = (path: string) => {
    const db = new Database(join(path, "luxhub.db"), { readonly: true });
    try {
      const tables = db
        .query("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        .values()
        .map(String);
      return tables.map((name) => ({ name, rows: db.query(`SELECT * FROM ${name}`).values() }));
    } finally {
      db.close();
    }
  };
  const restored = new Database(join(folder, "whole", "luxhub.db"));
  expect(restored.query("SELECT epoch FROM tasks").values()).toEqual([[1_000_000]]);
  expect(restored.query("SELECT last FROM fencing").values()).toEqual([[1_000_000]]);
  restored.run("UPDATE tasks SET epoch = epoch - 1000000; UPDATE fencing SET last = last - 1000000");
  restored.close();
  const isOfLog = (name: string): boolean => ["changes", "change_texts"].includes(name);
  const original = rowsOf(data);
  const logged = original.filter(({ name, rows }) => isOfLog(name) && rows.length > 0);
  expect(logged).toHaveLength(2);
  expect(rowsOf(join(folder, "whole"))).toEqual(
    original.map(({ name, rows }) => ({ name, rows: isOfLog(name) ? [] : rows })),
  );
});

const asRoot = process.geteuid?.() === 0 ? test : test.skip;

asRoot(
  "a lock that root makes is the directory's owner's: the hub must be able to take it (root only)",
  () => {
    const dir = dataDirAt(newDataDir());
    chownSync(dir.path, 65_534, 65_534);
    takeSharedLock(dir.pin)?.release();
    expect(statSync(dir.pin)).toMatchObject({ uid: 65_534, gid: 65_534 });
    rmSync(dir.path, { recursive: true });
  },
);

test("a lock that cannot be taken is named", () => {
  const dir = dataDirAt(newDataDir());
  mkdirSync(dir.lock);
  expect(() => isHeld(dir.lock)).toThrow(`cannot use ${dir.lock} as a lock: unable to open database file`);
  rmSync(dir.path, { recursive: true });
});
