/**
 * Where backups go besides a file: standard output, a directory of dated ones, a storage that speaks the S3 protocol; and
 * the backups that a hub makes by itself. The storage is s3rver, a server of its own, installed in .ci/s3.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { datedName } from "../../src/upkeep/backup-target.ts";
import { PROGRAM } from "../support/executable.ts";
import { SmallDisk, whyNoSmallDisk } from "../support/small-disk.ts";
import { Hub, Program, TempDir, run, withoutProgress } from "./program.ts";

const DATED = /^luxhub-\d{8}T\d{6}Z\.tar$/;

/** Resolves when `isTrue` holds. The test's own time limit ends a wait in vain. */
async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await Bun.sleep(20);
}

const namesIn = (path: string): readonly string[] => (existsSync(path) ? readdirSync(path).toSorted() : []);

test("a backup to standard output is the same archive, and a reader that goes away is one line", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  await using hub = await Hub.start({ data });
  await hub.register("worker-1");
  const file = dir.join("hub.tar");
  const luxhub = PROGRAM.map((word) => `'${word}'`).join(" ");
  const sh = async (line: string): Promise<{ readonly code: number; readonly errors: string }> => {
    const child = Bun.spawn(["sh", "-c", line], { cwd: dir.path, stdout: "ignore", stderr: "pipe" });
    const errors = await child.stderr.text();
    return { code: await child.exited, errors: withoutProgress(errors) };
  };
  const piped = await sh(`${luxhub} backup - --data '${data}' | cat >'${file}'`);
  expect(piped.errors).toMatch(
    /^standard output: [\d.]+ KiB, 0 files, as of \S+\nIt does not contain the secrets/,
  );
  expect((await run(["restore", file, "--data", dir.join("again")])).code).toBe(0);
  await using again = await Hub.start({ data: dir.join("again") });
  expect((await again.get("/node/worker-1")).status).toBe(200);
  // The copy of the database is longer than a pipe holds.
  const broken = await sh(`{ ${luxhub} backup - --data '${data}'; echo "code $?" >&2; } | head -c 1`);
  expect(broken.errors).toBe("luxhub: cannot write standard output: broken pipe\ncode 1\n");
  expect(readdirSync(data).filter((name) => name.includes("partial"))).toEqual([]);
});

test("a directory keeps the newest backups, and what a killed one left is removed a day later", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  await using hub = await Hub.start({ data });
  expect((await hub.get("/status")).status).toBe(200);
  const place = dir.join("backups");
  const backUp = (...more: readonly string[]) => run(["backup", `${place}/`, "--data", data, ...more]);
  expect((await backUp()).code).toBe(0);
  const [first = ""] = namesIn(place);
  expect(first).toMatch(DATED);
  const id = "01a2067e-4fb4-7000-8000-000000000000";
  const old = [`${first}.${id}.partial`, `backup-${id}.partial-db`];
  for (const name of [...old, "notes.txt", "luxhub-20200101T000000Z.tar"])
    writeFileSync(join(place, name), "");
  const yesterday = Date.now() / 1_000 - 25 * 3_600;
  for (const name of [...old, "notes.txt"]) utimesSync(join(place, name), yesterday, yesterday);
  const young = `backup-01a2067e-4fb4-7000-8000-000000000001.partial-db`;
  writeFileSync(join(place, young), "");
  await until(() => new Date().getSeconds() !== Number(first.slice(20, 22))); // names have whole seconds
  const second = await backUp("--keep", "2");
  expect(second).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("deleted the older luxhub-20200101T"),
  });
  expect(namesIn(place)).toEqual([young, first, expect.stringMatching(DATED), "notes.txt"]);
  expect((statSync(place).mode & 0o777).toString(8)).toBe("700");
  for (const [args, says] of [
    [["backup", "x.tar", "--keep", "3"], "--keep needs a FILE that ends with /"],
    [["backup", "x/", "--keep", "0"], "--keep must be a whole number from 1 to 9999"],
  ] as const) {
    const refused = await run([...args, "--data", data]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(says)]);
  }
});

/** When the newest backup was made, in seconds since 1970, and how many failed, as the hub tells Prometheus. */
async function backupMetrics(hub: Hub): Promise<{ readonly made: number; readonly failures: number }> {
  const response = await fetch(hub.api.replace("/api/v1", "/metrics"), {
    headers: { Authorization: `Bearer ${hub.secret}` },
  });
  const text = await response.text();
  const valueOf = (metric: string): number =>
    Number(new RegExp(`^${metric}\\{chore="backup"\\} (\\S+)$`, "m").exec(text)?.[1]);
  return {
    made: valueOf("luxhub_chore_last_success_timestamp_seconds"),
    failures: valueOf("luxhub_chore_failures_total"),
  };
}

describe("serve --backup-to", () => {
  test("makes them by itself, keeps the newest, and goes on after a restart", async () => {
    using dir = new TempDir();
    const data = dir.join("data");
    const place = dir.join("backups");
    const args = ["--backup-to", place, "--backup-every", "1s", "--backup-keep", "2"];
    const first = await Hub.start({ data, args });
    await first.register("worker-1");
    await first.program.printed(/backup made .*backups\/luxhub-/);
    await until(() => namesIn(place).filter((name) => DATED.test(name)).length === 2);
    const [oldest = ""] = namesIn(place);
    await until(() => !namesIn(place).includes(oldest));
    const { made, failures } = await backupMetrics(first);
    expect([made > Date.now() / 1_000 - 3_600, made <= Date.now() / 1_000, failures]).toEqual([
      true,
      true,
      0,
    ]);
    expect((await first.stop()).code).toBe(0);
    const names = namesIn(place);
    expect(names.filter((name) => !DATED.test(name))).toEqual([]); // a running one is ended in order
    expect(names.length).toBeLessThanOrEqual(3); // ended between a backup and the deletion of the older one
    expect((await run(["restore", join(place, names.at(-1) ?? ""), "--data", dir.join("again")])).code).toBe(
      0,
    );
    // The date of the newest one says when the next is due: a restart does not begin a new interval.
    await using second = await Hub.start({ data, args: ["--backup-to", place, "--backup-every", "1h"] });
    await second.register("worker-2");
    expect(second.program.stdout).not.toContain("backup");
    expect(namesIn(place)).toEqual(names);
    let newest = Number.NaN;
    while (Number.isNaN(newest)) ({ made: newest } = await backupMetrics(second));
    expect(datedName({ at: newest * 1_000, entry: null })).toBe(names.at(-1) ?? "none");
  });

  test("a place that cannot be used is logged, and the hub serves on", async () => {
    using dir = new TempDir();
    writeFileSync(dir.join("file"), "");
    const args = ["--backup-to", dir.join("file"), "--backup-every", "1s"];
    await using hub = await Hub.start({ data: dir.join("data"), args });
    await hub.program.printed(
      /backup failed cause="cannot use \S+: (?:file already exists|not a directory)"(?:.|\n)*backup failed/,
    );
    expect((await hub.get("/status")).status).toBe(200);
    const { made, failures } = await backupMetrics(hub);
    expect([made, failures >= 2]).toEqual([Number.NaN, true]);
  });

  test("creates its directory, but none above it, which may be of a disk that is not mounted", async () => {
    using dir = new TempDir();
    const args = ["--backup-to", dir.join("disk", "backups"), "--backup-every", "1s"];
    await using hub = await Hub.start({ data: dir.join("data"), args });
    await hub.program.printed(/backup failed cause="cannot use \S+: no such file or directory"/);
    expect(existsSync(dir.join("disk"))).toBe(false);
  });

  test("is needed by the flags that say how often and how many", async () => {
    for (const flag of ["--backup-every=1h", "--backup-keep=3"]) {
      const refused = await run(["serve", flag]);
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("needs --backup-to")]);
    }
  });
});

const S3RVER = `${import.meta.dir}/../../.ci/s3/node_modules/s3rver/bin/s3rver.js`;
const noStorage = existsSync(S3RVER) ? null : "s3rver is not installed: bun install --cwd .ci/s3";

describe.skipIf(noStorage !== null)(
  `a storage that speaks the S3 protocol${noStorage === null ? "" : ` (skipped: ${noStorage})`}`,
  () => {
    test("takes single and dated backups, from the command and from the hub, and nothing unfinished", async () => {
      using dir = new TempDir();
      const serving = [
        "-d",
        dir.join("store"),
        "-p",
        "0",
        "-a",
        "127.0.0.1",
        "--configure-bucket",
        "backups",
      ];
      await using storage = new Program(serving, { command: [process.execPath, S3RVER] });
      const [, port] = await storage.printed(/listening on \S+:(\d+)/);
      const credentials = { S3_ACCESS_KEY_ID: "S3RVER", S3_SECRET_ACCESS_KEY: "S3RVER" };
      const env = { S3_ENDPOINT: `http://127.0.0.1:${port}`, ...credentials };
      const objects = (): readonly string[] =>
        readdirSync(dir.join("store", "backups"), { recursive: true, encoding: "utf8" })
          .filter((name) => name.endsWith("._S3rver_object"))
          .map((name) => name.replace("._S3rver_object", ""))
          .toSorted();

      const data = dir.join("data");
      await using hub = await Hub.start({ data });
      await hub.register("worker-1");
      const body = new FormData();
      body.append("file", new Blob([new Uint8Array(20 * 1024 * 1024)]), "large"); // two parts of an upload
      const uploaded = await hub.call("POST", "/file/upload", { body });
      expect(uploaded.status).toBe(200);
      const backUp = (to: string, more = env) => run(["backup", to, "--data", data], { env: more });
      expect((await backUp("s3://backups/one.tar")).code).toBe(0);
      expect(await backUp("s3://backups/one.tar")).toMatchObject({
        code: 1,
        stderr: "luxhub: s3://backups/one.tar already exists; choose another name\n",
      });
      expect((await backUp("s3://none/one.tar")).stderr).toContain("bucket does not exist");
      const away = { ...env, S3_ENDPOINT: "http://127.0.0.1:1" };
      expect((await backUp("s3://backups/two.tar", away)).stderr).toContain("the storage cannot be reached");
      expect(objects()).toEqual(["one.tar"]);

      const restore = (name: string) =>
        run(["restore", `s3://backups/${name}`, "--data", dir.join("again")], { env });
      expect(await restore("none.tar")).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("luxhub: cannot read s3://backups/none.tar: "),
      });
      const noDisk = await whyNoSmallDisk(dir.join("probe"));
      if (noDisk === null) {
        await using disk = await SmallDisk.mount(dir.join("disk"));
        const full = join(disk.path, "again");
        const refused = await run(["restore", "s3://backups/one.tar", "--data", full], {
          command: disk.command(PROGRAM),
          env,
        });
        expect([refused.code, withoutProgress(refused.stderr)]).toEqual([
          1,
          `luxhub: the disk of ${full} is full: make room, then run it again\n`,
        ]);
        expect(readdirSync(disk.inside(disk.path))).toEqual([]);
      } else console.log(`not tried: a restore onto a full disk: ${noDisk}`);
      expect((await restore("one.tar")).code).toBe(0);
      expect((await restore("one.tar")).stderr).toContain("again is not empty");
      expect(namesIn(dir.path).filter((name) => name.includes("partial"))).toEqual([]);
      // A backup has low priority: on a busy machine two large ones by the hub would take minutes.
      await hub.post("/file/delete", { file_id: uploaded.body["file_id"] });
      await hub.stop();

      const args = ["--backup-to", "s3://backups/hub", "--backup-every", "1s", "--backup-keep", "1"];
      await using serving2 = await Hub.start({ data, args, env });
      await serving2.program.printed(/backup made .*s3:\/\/backups\/hub\/luxhub-(?:.|\n)*backup made/);
      expect((await serving2.stop()).code).toBe(0);
      const dated = objects().filter((name) => name !== "one.tar");
      for (const name of dated) expect(name).toMatch(/^hub\/luxhub-\d{8}T\d{6}Z\.tar$/);
      expect([1, 2]).toContain(dated.length);
      expect(namesIn(data).filter((name) => name.includes("partial"))).toEqual([]);
    });
  },
);
