/**
 * The data directory under the real program: one hub at a time, and no start on damaged or missing files. A refusal is one
 * line that says what to do, and changes nothing.
 */
import { describe, expect, test } from "bun:test";
import {
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
import { Hub, SECRET, TempDir, run, until } from "./program.ts";

describe("one hub per directory", () => {
  test("a second hub is refused in one line, and the first continues", async () => {
    using dir = new TempDir();
    const data = dir.join("data");
    await using hub = await Hub.start({ data });
    const { code, stdout, stderr } = await run(["serve", "--port", "0", "--data", data]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toBe(`luxhub: another luxhub runs on the data directory ${data}\n`);
    expect((await hub.get("/status")).status).toBe(200);
  });

  test("of many simultaneous starts one succeeds", async () => {
    using dir = new TempDir();
    const data = dir.join("data");
    mkdirSync(data);
    writeFileSync(`${data}/secret`, "mine\n"); // or each would make its own
    writeFileSync(`${data}/admin-key`, "mine-too\n");
    const starts = await Promise.allSettled(
      Array.from({ length: 4 }, () => Hub.start({ data, ownSecrets: false })),
    );
    const [hub, ...others] = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
    expect(others).toHaveLength(0);
    const refused = starts.flatMap((start) => (start.status === "rejected" ? [String(start.reason)] : []));
    expect(refused).toHaveLength(3);
    for (const reason of refused) expect(reason).toContain("another luxhub runs on the data directory");
    await hub?.[Symbol.asyncDispose]();
  });

  test("a killed hub leaves no lock; a stopped one holds it", async () => {
    using dir = new TempDir();
    const data = dir.join("data");
    const first = await Hub.start({ data });
    await first.register("worker-1");
    first.program.child.kill("SIGSTOP");
    const { code, stderr } = await run(["serve", "--port", "0", "--data", data]);
    expect([code, stderr]).toEqual([1, `luxhub: another luxhub runs on the data directory ${data}\n`]);
    first.program.child.kill("SIGKILL");
    expect(await first.program.ended).toBeNull();
    await using second = await Hub.start({ data });
    expect((await second.get("/node/worker-1")).status).toBe(200);
  });
});

describe("a first start", () => {
  test("uses secrets that the operator has placed there", async () => {
    using dir = new TempDir();
    const data = dir.join("data");
    mkdirSync(data);
    writeFileSync(`${data}/secret`, `${SECRET}\n`);
    writeFileSync(`${data}/admin-key`, "another\n");
    await using hub = await Hub.start({ data, ownSecrets: false });
    expect((await hub.get("/lux/ledger?node_id=a")).status).toBe(404);
  });

  test("can be repeated after an interruption, also with a disk mounted for the files", async () => {
    using dir = new TempDir();
    const data = dir.join("data");
    mkdirSync(data);
    for (const name of ["lock", "backup-lock", "luxhub.db"]) writeFileSync(`${data}/${name}`, "");
    mkdirSync(`${data}/files/lost+found`, { recursive: true }); // a disk of its own
    await using hub = await Hub.start({ data, ownSecrets: false });
    expect((await hub.get("/status")).status).toBe(200);
  });
});

describe("damaged or missing files are refused, named and left unchanged", () => {
  const SAYS_WHAT_TO_DO = /luxhub doctor --data .*luxhub restore FILE --data DIR\n$/;

  type Harm = {
    readonly name: string;
    readonly harm: (data: string) => void;
    readonly says: RegExp;
    /** Whether it is done to a directory that was killed, with a log, or to one that was closed. */
    readonly killed?: boolean;
  };
  const rows: readonly Harm[] = [
    {
      name: "no database",
      harm: (data) => rmSync(`${data}/luxhub.db`),
      says: /has no database, but files\/\S+ shows/,
    },
    {
      name: "an empty database",
      harm: (data) => truncateSync(`${data}/luxhub.db`, 0),
      says: /has no database, but files\/\S+ shows/,
    },
    {
      name: "no database, but its log",
      harm: (data) => rmSync(`${data}/luxhub.db`),
      killed: true,
      says: /is damaged: it is missing or empty, but its log/,
    },
    {
      name: "a database of nothing",
      harm: (data) => writeFileSync(`${data}/luxhub.db`, new Uint8Array(40_960)),
      says: /is damaged: file is not a database/,
    },
    {
      name: "half a database",
      harm: (data) => truncateSync(`${data}/luxhub.db`, 20_480),
      says: /is damaged: database disk image is malformed/,
    },
    {
      name: "a page of noise",
      harm: (data) => {
        const bytes = readFileSync(`${data}/luxhub.db`);
        writeFileSync(`${data}/luxhub.db`, bytes.fill(0x5a, 8_192, 12_288));
      },
      says: /is damaged: /,
    },
    {
      name: "a damaged log",
      harm: (data) => {
        const bytes = readFileSync(`${data}/luxhub.db-wal`);
        writeFileSync(`${data}/luxhub.db-wal`, bytes.fill(0x5a, 6_000, 6_010));
      },
      killed: true,
      says: /is damaged: its log \(-wal\) is damaged after/,
    },
    {
      name: "a restore that was cut off",
      harm: (data) => {
        rmSync(data, { recursive: true });
        mkdirSync(`${data}/.restoring`, { recursive: true });
      },
      says: /: a restore or a move into \S.* was not finished: repeat the move, or delete/,
    },
  ];

  /** What is stored, byte for byte; the files that only serve the locks and the index of the log aside. */
  function stored(data: string): readonly (readonly [string, string])[] {
    const names = readdirSync(data, { recursive: true, encoding: "utf8" }).filter(
      (name) => statSync(`${data}/${name}`).isFile() && !/lock(?:-journal)?$|-shm$/.test(name),
    );
    const entries = names.map((name) => [name, Bun.SHA256.hash(readFileSync(`${data}/${name}`), "hex")]);
    return entries.flatMap(([name, hash]) =>
      statSync(`${data}/${name}`).size === 0 ? [] : [[name ?? "", hash ?? ""] as const],
    );
  }

  test("each", async () => {
    using dir = new TempDir();
    const hub = await Hub.start({ data: dir.join("closed"), ownSecrets: false });
    for (let i = 0; i < 20; i++) await hub.register(`worker-${i}`);
    await until(() => existsSync(dir.join("closed", "luxhub.db-wal")));
    // As a kill would leave it: what was answered is in the log.
    cpSync(dir.join("closed"), dir.join("killed"), { recursive: true });
    await hub.stop();
    for (const { name, harm, says, killed = false } of rows) {
      const data = dir.join(name);
      cpSync(dir.join(killed ? "killed" : "closed"), data, { recursive: true });
      harm(data);
      const before = stored(data);
      const { code, stdout, stderr } = await run(["serve", "--port", "0", "--data", data], {
        env: { LUXHUB_SECRET: "a", LUXHUB_ADMIN_KEY: "b" },
      });
      expect({ name, code, stdout }).toEqual({ name, code: 1, stdout: "" });
      expect(stderr).toMatch(/^luxhub: [^\n]+\n$/);
      expect(stderr).toMatch(says);
      expect(stderr).toMatch(SAYS_WHAT_TO_DO);
      expect(stored(data)).toEqual(before);
    }
    // What was copied was well before it was harmed.
    await using again = await Hub.start({ data: dir.join("killed"), ownSecrets: false });
    expect((await again.get("/node/worker-19", { headers: { "X-Matrix-Secret": hub.secret } })).status).toBe(
      200,
    );
  });
});
