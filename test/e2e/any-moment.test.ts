/**
 * serve --backup-changes and restore --at, with the real program: after kill -9 under writers, when the place cannot be
 * written, when the log does not lead on, and in a storage that speaks the S3 protocol (s3rver, installed in .ci/s3).
 */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { must } from "../../src/lib/assert.ts";
import { lastEntryOf } from "../../src/store/sqlite/change-log.ts";
import { asRestored, differences } from "../support/same-rows.ts";
import { Hub, Program, TempDir, run, until } from "./program.ts";

const KILLS = 4;
const WRITERS = 4;

const args = (place: string, ...more: readonly string[]): readonly string[] => [
  "--backup-to",
  place,
  "--backup-changes",
  "1s",
  "--backup-every",
  "1h",
  ...more,
];

const namesIn = (path: string, beginning: string): readonly string[] =>
  (existsSync(path) ? readdirSync(path) : [])
    .filter((name) => name.startsWith(beginning) && !name.endsWith(".partial"))
    .toSorted();

/** The entry at which a stopped hub's database stands. */
function lastEntry(data: string): number {
  using db = new Database(join(data, "luxhub.db"));
  return must(lastEntryOf(db), "the log is kept").n;
}

function differencesFrom(data: string, restored: string): readonly string[] {
  using original = new Database(join(data, "luxhub.db"));
  using copy = new Database(join(restored, "luxhub.db"));
  return differences(asRestored(original), copy);
}

/** The last success, in seconds since 1970, and the failures of the chore `changes`. */
async function changeMetrics(hub: Hub): Promise<{ readonly at: number; readonly failures: number }> {
  const headers = { Authorization: `Bearer ${hub.secret}` };
  const text = await (await fetch(hub.api.replace("/api/v1", "/metrics"), { headers })).text();
  const valueOf = (metric: string): number =>
    Number(new RegExp(`^${metric}\\{chore="changes"\\} (\\S+)$`, "m").exec(text)?.[1]);
  return {
    at: valueOf("luxhub_chore_last_success_timestamp_seconds"),
    failures: valueOf("luxhub_chore_failures_total"),
  };
}

test("what hubs that are killed under writers have archived leads to the database as it is", async () => {
  using dir = new TempDir();
  const [data, place] = [dir.join("data"), dir.join("place")];
  for (let kill = 0; kill <= KILLS; kill++) {
    await using hub = await Hub.start({ data, args: args(place) });
    if (kill === KILLS) {
      expect((await hub.stop()).code).toBe(0);
      break;
    }
    const before = namesIn(place, "changes-").length;
    let isKilled = false;
    const writer = async (): Promise<void> => {
      for (let i = 0; !isKilled; i++) {
        const body = new FormData();
        body.append("file", new Blob(["x".repeat(1_000)]), `file ${i}`);
        await Promise.all([
          hub.post("/task/create", { title: `t${i}`, description: "d".repeat(500) }),
          ...(i % 20 === 0 ? [hub.call("POST", "/file/upload", { body })] : []),
        ]).catch(() => {});
      }
    };
    const writers = Array.from({ length: WRITERS }, writer);
    await until(async () => namesIn(place, "changes-").length >= before + 2);
    hub.program.child.kill("SIGKILL");
    isKilled = true;
    await Promise.all([hub.program.ended, ...writers]);
  }
  expect(namesIn(place, "luxhub-")).toHaveLength(1); // each hub went on where the one before had ended
  const end = lastEntry(data); // of a hub that was stopped in order: it has archived all
  const restored = await run(["restore", `${place}/`, "--data", dir.join("again")]);
  expect(restored).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`changes up to ${end}: the last`),
  });
  expect(differencesFrom(data, dir.join("again"))).toEqual([]);
  const checked = await run(["doctor", "--data", dir.join("again")]);
  expect([checked.code, checked.stdout]).toEqual([0, expect.stringContaining("all is well")]);
});

test("a place that cannot be written is logged once and counted, and the hub goes on when it can", async () => {
  using dir = new TempDir();
  const [data, place, away] = [dir.join("data"), dir.join("place"), dir.join("away")];
  await using hub = await Hub.start({ data, args: args(place) });
  await until(async () => (await changeMetrics(hub)).at > 0);
  renameSync(place, away);
  writeFileSync(place, "no directory");
  await hub.register("worker-1");
  await until(async () => (await changeMetrics(hub)).failures >= 3);
  const says = hub.program.stdout.match(/changes are not archived.*/g) ?? [];
  expect(says).toEqual([expect.stringMatching(/cause=".*(?:not a directory|ENOTDIR)/)]);
  expect((await hub.get("/status")).status).toBe(200);
  rmSync(place);
  renameSync(away, place);
  await hub.program.printed(/changes are archived again/);
  const { code } = await run(["restore", `${place}/`, "--data", dir.join("again")]);
  expect(code).toBe(0);
  await using again = await Hub.start({ data: dir.join("again") });
  expect((await again.get("/node/worker-1")).status).toBe(200);
});

test("a log that no longer leads on begins again with a backup, and the gap is named", async () => {
  using dir = new TempDir();
  const [data, place] = [dir.join("data"), dir.join("place")];
  const first = await Hub.start({ data, args: args(place) });
  await until(async () => (await changeMetrics(first)).at > 0);
  for (const node of ["worker-1", "worker-2"]) {
    const before = namesIn(place, "changes-").length;
    await first.register(node);
    await until(() => namesIn(place, "changes-").length > before);
  }
  await first.stop();
  const between = new Date().toISOString();
  {
    using db = new Database(join(data, "luxhub.db"));
    db.run("DELETE FROM changes WHERE n < (SELECT max(n) FROM changes)");
    for (const name of namesIn(place, "changes-").slice(-1)) rmSync(join(place, name));
  }
  await using second = await Hub.start({ data, args: args(place) });
  await second.program.printed(/the archive of changes begins with a new backup(?:.|\n)*backup made/);
  await second.register("worker-3");
  await until(async () => (await changeMetrics(second)).at > 0);
  const restore = (name: string, ...more: readonly string[]) =>
    run(["restore", `${place}/`, "--data", dir.join(name), ...more]);
  expect((await restore("newest")).code).toBe(0);
  const refused = await restore("lost", "--at", between);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("lacks ")]);
  const [, time = ""] = /--at (\S+),/.exec(refused.stderr) ?? [];
  expect((await restore("before", "--at", time)).code).toBe(0);
});

test("refuses what it cannot do", async () => {
  for (const [words, code, says] of [
    [["serve", "--backup-changes", "10s"], 2, "--backup-changes needs --backup-to"],
    [
      ["serve", "--backup-changes", "10s", "--backup-to", "x", "--database", "postgres://x/y"],
      2,
      "--backup-changes is for SQLite",
    ],
    [["restore", "x.tar", "--at", "10m"], 2, "--at needs a FILE that ends with /"],
    [["restore", "x/", "--at", "yesterday"], 2, '--at is "yesterday"; it must be a time such as'],
  ] as const) {
    const refused = await run(words);
    expect([refused.code, refused.stderr]).toEqual([code, expect.stringContaining(says)]);
  }
});

/** s3rver fails on Bun where a list has a second page. */
test("reads each page of the list of a bucket", async () => {
  const names = Array.from({ length: 5 }, (_, i) => `hub/luxhub-202${i}0101T000000Z.tar`);
  const PAGE = 2;
  const listing = ({ url }: Request): Response => {
    const query = new URL(url).searchParams;
    if (query.get("list-type") === null) return new Response(null, { status: 404 });
    const after = names.filter((name) => name > must(query.get("start-after"), "a list begins after a name"));
    const keys = after.slice(0, PAGE).map((name) => `<Contents><Key>${name}</Key></Contents>`);
    const body = `<IsTruncated>${after.length > PAGE}</IsTruncated>${keys.join("")}`;
    return new Response(`<ListBucketResult>${body}</ListBucketResult>`);
  };
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: listing });
  try {
    const env = { S3_ENDPOINT: server.url.href, S3_ACCESS_KEY_ID: "x", S3_SECRET_ACCESS_KEY: "x" };
    using dir = new TempDir();
    const { stderr } = await run(["restore", "s3://backups/hub/", "--data", dir.join("data")], { env });
    expect(stderr).toContain(`cannot read s3://backups/${names.at(-1)}`);
  } finally {
    await server.stop(true);
  }
});

test("a storage that does not respond does not keep the hub from ending in order", async () => {
  let puts = 0;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: ({ method }) => {
      if (method === "GET") return new Response("<ListBucketResult></ListBucketResult>");
      puts++;
      return new Promise<Response>(() => {});
    },
  });
  try {
    using dir = new TempDir();
    const env = { S3_ENDPOINT: server.url.href, S3_ACCESS_KEY_ID: "x", S3_SECRET_ACCESS_KEY: "x" };
    await using hub = await Hub.start({ data: dir.join("data"), args: args("s3://backups/hub"), env });
    await until(() => puts > 0); // the first backup
    expect((await hub.stop()).code).toBe(0);
    expect(hub.program.stdout).toEndWith("info  ended\n");
  } finally {
    await server.stop(true);
  }
});

const S3RVER = `${import.meta.dir}/../../.ci/s3/node_modules/s3rver/bin/s3rver.js`;
const noStorage = existsSync(S3RVER) ? null : "s3rver is not installed: bun install --cwd .ci/s3";
const MANY = 20;

describe.skipIf(noStorage !== null)(
  `a storage that speaks the S3 protocol${noStorage === null ? "" : ` (skipped: ${noStorage})`}`,
  () => {
    test("has any moment, and keeps what its backups need", async () => {
      using dir = new TempDir();
      const store = dir.join("store");
      const serving = ["-d", store, "-p", "0", "-a", "127.0.0.1", "--configure-bucket", "backups"];
      await using storage = new Program(serving, { command: [process.execPath, S3RVER] });
      const [, port] = await storage.printed(/listening on \S+:(\d+)/);
      const credentials = { S3_ACCESS_KEY_ID: "S3RVER", S3_SECRET_ACCESS_KEY: "S3RVER" };
      const env = { S3_ENDPOINT: `http://127.0.0.1:${port}`, ...credentials };
      const objects = (beginning: string): readonly string[] =>
        namesIn(join(store, "backups", "hub"), beginning)
          .filter((name) => name.endsWith("._S3rver_object"))
          .map((name) => name.replace("._S3rver_object", ""));
      const client = new Bun.S3Client({
        bucket: "backups",
        endpoint: env.S3_ENDPOINT,
        accessKeyId: "S3RVER",
        secretAccessKey: "S3RVER",
      });
      const target = join(import.meta.dir, "../../src/upkeep/backup-target.ts");
      const abandoned = await run(
        [
          "-e",
          `const sink = await (await import("${target}")).targetOf("s3://backups/hub/abandoned").open();
           for (let i = 0; i < 20; i++) await sink.write(new Uint8Array(2 ** 20)); // more than a part
           await sink.abandon();
           const small = await (await import("${target}")).targetOf("s3://backups/hub/abandoned-small").open();
           await small.write(new Uint8Array(1_000));
           await small.abandon();`,
        ],
        { env, command: [process.execPath] },
      );
      expect([abandoned.code, abandoned.stderr, objects("abandoned")]).toEqual([0, "", []]);
      const name = (i: number): string =>
        `hub/changes-${`${i}`.padStart(16, "0")}-${`${i}`.padStart(16, "0")}.jsonl.gz`;
      await Promise.all(Array.from({ length: MANY }, (_, i) => client.write(name(i), "old")));
      expect(objects("changes-")).toHaveLength(MANY);

      const data = dir.join("data");
      await using hub = await Hub.start({ data, args: args("s3://backups/hub", "--backup-keep", "1"), env });
      await until(async () => objects("changes-").every((each) => !each.includes("-0000000000")));
      await hub.register("worker-1");
      const body = new FormData();
      body.append("file", new Blob(["the bytes of a file"]), "small");
      const uploaded = await hub.call("POST", "/file/upload", { body });
      await until(async () => objects("file-").length === 1);
      await until(async () => objects("changes-").length > 0);
      await hub.stop();
      const restored = await run(
        ["restore", "s3://backups/hub/", "--at", "0s", "--data", dir.join("again")],
        { env },
      );
      expect([restored.stderr, restored.code]).toEqual(["", 0]);
      await using again = await Hub.start({ data: dir.join("again") });
      expect((await again.get("/node/worker-1")).status).toBe(200);
      const path = `${again.api}/file/download/${String(uploaded.body["file_id"])}`;
      const download = await fetch(path, { headers: { "X-Matrix-Secret": again.secret } });
      expect(await download.text()).toBe("the bytes of a file");
    });
  },
);
