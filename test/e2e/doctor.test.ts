/** `luxhub doctor`: its report on an intact hub, running or not, and on every kind of damage. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { blobFileOf } from "../../src/blobs/disk.ts";
import { FREE_SPACE_MIN_BYTES } from "../../src/domain/limits.ts";
import { checksumOf } from "../../src/store/sqlite/schema-version.ts";
import { oldStore } from "../support/old-stores.ts";
import { SQLITE_SCHEMA } from "../../src/store/sqlite/schema.ts";
import { checkFreeSpace } from "../../src/upkeep/doctor.ts";
import { Hub, TempDir, run } from "./program.ts";

const LINES = [
  ...[
    "hub",
    "sqlite",
    "database",
    "schema",
    "ledger",
    "accounts",
    "entries",
    "payments",
    "nodes",
    "tasks",
    "messages",
    "totals",
    "events",
    "hashes",
  ],
  ...["clock", "files", "orphans", "space"],
];

const doctor = (data: string) => run(["doctor", "--data", data]);

/** The line of the report about one thing. */
const lineOf = (stdout: string, about: string): string =>
  stdout.split("\n").find((line) => line.slice(6).startsWith(`${about} `)) ?? "";

/** A hub that has done a bit of everything; the id of one of its files. */
async function work(hub: Hub): Promise<string> {
  for (const node of ["a", "b"]) await hub.register(node);
  for (let i = 0; i < 6; i++) {
    const task = await hub.post("/task/create", { title: `${i}`, description: "x", lux_reward: 1.5 });
    const at = { task_id: task.body["task_id"], node_id: i % 2 ? "a" : "b" };
    if (i > 0) await hub.post("/task/claim", at);
    const result = { problem: "p", improvement: "i", lesson: "l" };
    if (i > 1) await hub.post("/task/complete", { ...at, result });
  }
  await hub.post("/signin", { node_id: "a" });
  await hub.post("/message/send", { from_node: "a", to_node: "b", content: "c" });
  await hub.post("/message/broadcast", { from_node: "a", content: "c" });
  const body = new FormData();
  body.append("file", new Blob(["some bytes"]));
  return String((await hub.call("POST", "/file/upload", { body })).body["file_id"]);
}

type Harm = {
  readonly name: string;
  /** What is done to the directory, or to the database in it. */
  readonly harm: ((data: string, fileId: string) => void) | string;
  readonly says: RegExp;
  /** 0: it is no problem. */
  readonly code?: 0 | 1;
};

const ROWS: readonly Harm[] = [
  {
    name: "a wrong balance",
    harm: "UPDATE ledger SET balance_micro = 1 WHERE node_id = 'a' AND n = 2",
    says: /BAD +ledger +node a: entry 2 says 1, the sum is 3000000/,
  },
  {
    name: "a lost payment",
    harm: "DELETE FROM ledger WHERE node_id = 'b' AND n = 1",
    says: /BAD +payments +task \S+ was not paid/,
  },
  {
    name: "a changed payment, everywhere but in its hash",
    harm: `UPDATE ledger SET amount_micro = 1400000, balance_micro = 1400000 WHERE node_id = 'b' AND n = 1;
      UPDATE ledger SET balance_micro = balance_micro - 100000 WHERE node_id = 'b' AND n > 1;
      UPDATE nodes SET balance_micro = balance_micro - 100000, lux_earned_micro = lux_earned_micro - 100000 WHERE node_id = 'b'`,
    says: /BAD +hashes +entry \d+ is not the one that its hash was made of/,
  },
  {
    name: "an entry that was removed",
    harm: "DELETE FROM ledger WHERE seq = 2",
    says: /BAD +accounts +of the entries 1 to 5 there are 4/,
  },
  {
    name: "a payment out of nothing",
    harm: "UPDATE ledger SET from_account = 'node:b' WHERE seq = 2",
    says: /BAD +accounts +entry 2 moves 1500000 from node:b to node:/,
  },
  {
    name: "a reward that stays held back",
    harm: "INSERT INTO ledger SELECT 6, 'x', NULL, 'held:t', NULL, NULL, 7, NULL, 'hold', 't', at, hash FROM ledger WHERE seq = 5",
    says: /BAD +accounts +held:t has 7 millionths/,
  },
  {
    name: "a payment made twice",
    harm: "INSERT INTO ledger SELECT 6, 'x', NULL, NULL, 'a', n + 10, amount_micro, balance_micro, kind, task_id, at, hash FROM ledger WHERE node_id = 'b' AND n = 1",
    says: /BAD +payments +task \S+ was paid 2 times/,
  },
  {
    name: "a node's wrong number of payments",
    harm: "UPDATE nodes SET entries = entries + 1 WHERE node_id = 'a'",
    says: /BAD +entries +node a: its balance or number of payments is not that of its newest payment/,
  },
  {
    name: "a node's wrong balance",
    harm: "UPDATE nodes SET balance_micro = balance_micro + 1 WHERE node_id = 'a'",
    says: /BAD +entries +node a: its balance or number of payments is not that of its newest payment/,
  },
  {
    name: "a node's wrong totals",
    harm: "UPDATE nodes SET tasks_assigned = 9 WHERE node_id = 'a'",
    says: /BAD +nodes +node a: its totals/,
  },
  {
    name: "a lost last heartbeat",
    harm: "DELETE FROM beats WHERE seq = (SELECT seq FROM nodes WHERE node_id = 'a')",
    says: /BAD +beats +node a has no last heartbeat/,
  },
  {
    name: "a last heartbeat without a node",
    harm: "INSERT INTO beats VALUES (99, 1, 1)",
    says: /BAD +beats +the last heartbeat 99 has no node/,
  },
  {
    name: "wrong totals of tasks",
    harm: "UPDATE task_totals SET open = 5",
    says: /BAD +tasks +the total of open tasks is 5, but there are 1/,
  },
  {
    name: "wrong totals of files",
    harm: "UPDATE file_totals SET bytes = 9",
    says: /BAD +totals +the totals are 1 files of 9 bytes, but there are 1 of \d+/,
  },
  {
    name: "a task without its specification",
    harm: "DELETE FROM task_specs WHERE task_seq = (SELECT seq FROM tasks WHERE status = 'open')",
    says: /BAD +rows +task \S+ has no specification/,
  },
  {
    name: "a result of no task",
    harm: "INSERT INTO task_results VALUES (999999, 'p', 'i', 'l', NULL)",
    says: /BAD +rows +a row of task 999999 has no task/,
  },
  {
    name: "a task without its node",
    harm: "UPDATE tasks SET assigned_node = NULL WHERE status = 'assigned'",
    says: /BAD +tasks +task \S+ is assigned, but/,
  },
  {
    name: "a verified result of a task without one",
    harm: "UPDATE tasks SET result_verified = 1 WHERE status = 'open'",
    says: /BAD +tasks +task \S+ is open, but/,
  },
  {
    name: "the totals of a group without a task",
    harm: "INSERT INTO group_totals VALUES ('g', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1)",
    says: /BAD +groups +group g: its totals are not those of its tasks/,
  },
  {
    name: "an advisory lease of an offline node",
    harm: "INSERT INTO leases VALUES ('nobody', 'a', '', 0, 0, 0, 1, 1, 1)",
    says: /BAD +advisory +lease 0 is not of a node that is online/,
  },
  {
    name: "a webhook that fails since never",
    harm: `INSERT INTO webhooks (name, webhook_id, revision, url, format, filter, cursor_id, state, attempts, created_at, updated_at)
      VALUES ('ci', 'w', 1, 'https://receiver.test/', 'luxhub', '{}', 0, 'active', 3, 1, 1)`,
    says: /BAD +webhooks +webhook ci is active after 3 failed attempts/,
  },
  {
    name: "a suspended webhook",
    harm: `INSERT INTO webhooks (name, webhook_id, revision, url, format, filter, cursor_id, state, attempts, failing_since,
        last_error, created_at, updated_at)
      VALUES ('ci', 'w', 1, 'https://receiver.test/', 'luxhub', '{}', 0, 'suspended', 3, 1, 'HTTP 410', 1, 1)`,
    says: /warn +suspended +webhooks are suspended: ci; resume with luxhub webhook resume/,
    code: 0,
  },
  {
    name: "a fencing number that was never drawn",
    harm: "INSERT INTO leases VALUES ('nobody', 'a', '', 0, 0, 7, 1, 1, 1)",
    says: /BAD +advisory +.*; a lease has the fencing number 7, and 0 is the last one/,
  },
  {
    name: "a flag of leases on an open task",
    harm: `INSERT INTO task_features (task_seq, status, updated_at, has_leases)
      SELECT seq, status, updated_at, 1 FROM tasks WHERE status = 'open'`,
    says: /BAD +advisory +task \S+ is open, and says that it has leases/,
  },
  {
    name: "a lease of nobody",
    harm: "UPDATE tasks SET lease_until = 5 WHERE status = 'open'",
    says: /BAD +leases +task \S+ is open, and its lease/,
  },
  {
    name: "a wait for nothing",
    harm: "UPDATE tasks SET ready = 0 WHERE status = 'open'",
    says: /BAD +leases +task \S+ is open, and its lease or its wait/,
  },
  {
    name: "a dependency lost",
    harm: `UPDATE tasks SET unmet = 1, ready = 0 WHERE status = 'open';
      UPDATE task_specs SET depends_on = 'x' WHERE task_seq IN (SELECT seq FROM tasks WHERE status = 'open')`,
    says: /BAD +dependencies +task \S+ waits for 1 others, 0 are listed/,
  },
  {
    name: "a dependency that never ends",
    harm: "INSERT INTO dependencies SELECT task_id, 'gone' FROM tasks WHERE status = 'open'",
    says: /BAD +dependencies +task \S+ waits for gone, which will not tell it/,
  },
  {
    name: "a lost message",
    harm: "DELETE FROM messages WHERE to_node = 'b'",
    says: /BAD +messages +a delivery to b has no message/,
  },
  {
    name: "a lost event",
    harm: "DELETE FROM events WHERE id = 4",
    says: /BAD +events +of the events 1 to \d+ there are \d+/,
  },
  {
    name: "a time in the future",
    harm: "UPDATE events SET at = at + 7200000 WHERE id = 4",
    says: /BAD +clock +it shows .*: set the clock/,
  },
  {
    name: "a newer schema",
    harm: "PRAGMA user_version = 99",
    says: new RegExp(`BAD +schema +99, of a newer luxhub; this one knows ${SQLITE_SCHEMA.version}`),
  },
  {
    name: "an older schema, without the tables of the newest",
    harm: (data) => {
      rmSync(`${data}/luxhub.db`);
      const db = new Database(`${data}/luxhub.db`);
      db.run(oldStore("0.1.0.sqlite"));
      db.close();
    },
    says: /note +schema +1; the next start of the hub migrates it/,
    code: 0,
  },
  {
    name: "the schema of a build that was never published",
    harm: (data) => {
      const db = new Database(`${data}/luxhub.db`);
      db.run("PRAGMA user_version = 55");
      db.run(`PRAGMA application_id = ${checksumOf(db)}`);
      db.close();
    },
    says: /BAD +schema +The database is of a luxhub that was never published \(schema 55\)/,
  },
  {
    name: "missing bytes of a file",
    harm: (data, id) => rmSync(`${data}/${blobFileOf(id)}`),
    says: /BAD +files +the bytes of \S+ are gone/,
  },
  {
    name: "changed bytes of a file",
    harm: (data, id) => writeFileSync(`${data}/${blobFileOf(id)}`, "SOME bytes"),
    says: /BAD +files +the bytes of \S+ are not what was uploaded/,
  },
  {
    name: "bytes without a record",
    harm: (data) => writeFileSync(`${data}/${blobFileOf(Bun.randomUUIDv7())}`, "whose?"),
    says: /note +orphans +1 files have bytes but no record/,
    code: 0,
  },
  {
    name: "a damaged page",
    harm: (data) => {
      const bytes = readFileSync(`${data}/luxhub.db`);
      writeFileSync(`${data}/luxhub.db`, bytes.fill(0x5a, 8_192, 12_288));
    },
    says: /BAD +database +it is damaged: .*; restore a backup/,
  },
  {
    name: "no database",
    harm: (data) => rmSync(`${data}/luxhub.db`),
    says: /BAD +database +it is missing, but files\/\S+ shows/,
  },
];

test("an intact hub, while it runs and after it has ended", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  await using hub = await Hub.start({ data });
  await work(hub);
  const running = await doctor(data);
  expect(running).toMatchObject({ code: 0, stderr: "" });
  expect(running.stdout).toContain("a hub is running here");
  await hub.stop();
  const ended = await doctor(data);
  expect(ended).toMatchObject({ code: 0, stderr: "" });
  expect(ended.stdout).toContain("no hub is running here");
  for (const { stdout } of [running, ended]) {
    for (const about of LINES) expect(lineOf(stdout, about)).toStartWith("ok");
    expect(stdout).toEndWith(": all is well\n");
  }
});

test("a hub that has tasks and no node yet is intact", async () => {
  using dir = new TempDir();
  const hub = await Hub.start({ data: dir.join("data") });
  await hub.post("/task/create", { title: "t", description: "x" });
  await hub.stop();
  const { code, stdout } = await doctor(dir.join("data"));
  expect([code, lineOf(stdout, "tasks").slice(0, 2)]).toEqual([0, "ok"]);
});

test("reports each kind of damage and nothing else, and a missing hub", async () => {
  using dir = new TempDir();
  const hub = await Hub.start({ data: dir.join("whole") });
  const fileId = await work(hub);
  await hub.stop();
  const results = await Promise.all(
    ROWS.map(async ({ name, harm }) => {
      const data = dir.join(name);
      cpSync(dir.join("whole"), data, { recursive: true });
      if (typeof harm !== "string") harm(data, fileId);
      else {
        const db = new Database(`${data}/luxhub.db`);
        db.run(harm);
        db.close();
      }
      return doctor(data);
    }),
  );
  for (const [i, { name, says, code = 1 }] of ROWS.entries()) {
    const found = results[i];
    expect([name, found?.code]).toEqual([name, code]);
    expect(found?.stdout).toMatch(says);
    if (code === 0) expect(found?.stdout).not.toContain("BAD");
  }
  mkdirSync(dir.join("nothing"));
  for (const path of [dir.join("nothing"), dir.join("nowhere")]) {
    const found = await doctor(path);
    expect([found.code, found.stderr]).toEqual([1, `luxhub: there is no hub in ${path}\n`]);
  }
  expect(readdirSync(dir.join("nothing"))).toEqual([]);
});

test("free space is a problem where the hub refuses writes", () => {
  const MIB = 1024 ** 2;
  const large = 100_000 * MIB;
  expect(checkFreeSpace(FREE_SPACE_MIN_BYTES, large).grade).toBe("ok");
  expect(checkFreeSpace(FREE_SPACE_MIN_BYTES - 1, large)).toMatchObject({ grade: "bad", about: "space" });
  expect(checkFreeSpace(2 * MIB, 40 * MIB).grade).toBe("ok");
  expect(checkFreeSpace(2 * MIB - 1, 40 * MIB).text).toBe(
    "2.0 MiB free: make room, below 2.0 MiB the hub refuses writes, unless it has --min-free",
  );
});
