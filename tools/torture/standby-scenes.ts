/**
 * What can fail between a first hub and its standby, and around them: each scene breaks one thing under writers, says what
 * both hubs must show meanwhile, mends it, and compares the two databases.
 */
import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { STANDBY_IDLE_MS, STANDBY_LOST_MS } from "../../src/domain/limits.ts";
import { must } from "../../src/lib/assert.ts";
import {
  Machines,
  add,
  addWhenFirst,
  caughtUp,
  copyOf,
  differing,
  titles,
  urlOf,
} from "../../test/e2e/pair.ts";
import { type Answer, Hub, run, until } from "../../test/e2e/program.ts";
import { NO_SHIFTED_CLOCK, ShiftedClock } from "../../test/e2e/shifted-clock.ts";
import { PROGRAM } from "../../test/support/executable.ts";
import { OWN_HOST } from "../../test/support/keeper.ts";
import { SmallDisk, whyNoSmallDisk } from "../../test/support/small-disk.ts";
import { Link } from "./link.ts";
import { Work, checkWork } from "./standby-writers.ts";

const FIRST = "first";
const STANDBY = "standby";
/** So long a link is bad, at the most. */
const MOMENT_MS = 1_500;
const SLOW_BYTES = 50 * 1_024;
const LINE = /^https?:\S+#standby\.(\S+)$/;

/** A pair, with a link between them: the standby reaches the first only through it. */
export class Scene implements AsyncDisposable {
  readonly machines = new Machines();
  readonly #hubs: Hub[] = [];
  readonly #work: Work[] = [];
  #link: Link | null = null;
  #first: Hub | null = null;
  #standby: Hub | null = null;

  get link(): Link {
    return must(this.#link, "the scene has begun");
  }

  get first(): Hub {
    return must(this.#first, "the scene has begun");
  }

  get standby(): Hub {
    return must(this.#standby, "the standby has started");
  }

  /** A first hub, and a standby that has joined. */
  async begin(...args: readonly string[]): Promise<void> {
    this.#link = await Link.open(() => this.first.port);
    await this.startFirst(...args);
    await this.join(STANDBY);
  }

  async startFirst(...args: readonly string[]): Promise<Hub> {
    const all = [...args, "--public-url", this.link.url];
    this.#first = await this.machines.start(FIRST, all, this.#first?.port ?? 0);
    this.#hubs.push(this.#first);
    return this.#first;
  }

  async join(name: string): Promise<void> {
    const { machines, link } = this;
    const line = await machines.command(FIRST, "invite", name, "--standby", "--join-url", link.url);
    await machines.command(name, "join", line.trim().replace("luxhub join ", ""));
  }

  async start(name: string, options: Parameters<typeof Hub.start>[0] = {}): Promise<Hub> {
    const data = this.machines.data(name);
    const port = name === STANDBY ? (this.#standby?.port ?? 0) : 0;
    const hub = await Hub.start({
      ...{ data, host: OWN_HOST, args: ["--port", `${port}`], ownSecrets: false },
      ...options,
    });
    this.#hubs.push(hub);
    if (name === STANDBY) this.#standby = hub;
    return hub;
  }

  /** Both, and the standby follows. */
  async pair(...args: readonly string[]): Promise<void> {
    await this.begin(...args);
    await this.start(STANDBY);
    await this.follows();
  }

  async write(hub = this.first): Promise<Work> {
    const work = new Work(hub);
    this.#work.push(work);
    const names = Array.from({ length: 4 }, (_, i) => `w${this.#work.length}-${i}`);
    await work.start(names);
    await this.hasWritten(work);
    return work;
  }

  /** It goes on. */
  async hasWritten(work: Work): Promise<void> {
    const before = work.acknowledged.length;
    await until(() => work.acknowledged.length > before + 20);
  }

  async follows(standby = this.standby): Promise<void> {
    await until(async () => (await copyOf(standby).catch(() => null))?.standbys[0]?.following === true);
    await caughtUp(this.first, standby);
  }

  async isLost(): Promise<void> {
    await until(async () => (await copyOf(this.first)).standbys[0]?.following === false);
  }

  /** Ends the writers; then the standby has what the first has. */
  async same(name = STANDBY, of = FIRST): Promise<void> {
    for (const work of this.#work) await work.end();
    const faults = this.#work.flatMap((work) => work.faults);
    if (faults.length > 0) throw new Error(faults[0]);
    await until(() => differing(this.machines, of, name).length === 0).catch(() => {
      throw new Error(`differs: ${differing(this.machines, of, name).join("; ")}`);
    });
  }

  async kill(hub: Hub): Promise<void> {
    hub.program.child.kill("SIGKILL");
    await hub.program.ended;
  }

  /** The status of a hub as `luxhub status` shows it. */
  async fault(): Promise<string> {
    return String((await copyOf(this.standby)).standbys[0]?.fault ?? "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const work of this.#work) void work.end();
    for (const hub of this.#hubs) {
      hub.program.child.kill("SIGCONT");
      await hub[Symbol.asyncDispose]();
    }
    await this.#link?.[Symbol.asyncDispose]();
    this.machines[Symbol.dispose]();
  }
}

function expectTrue(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

type Promotion = { readonly lag_s: number; readonly missing: number | null };
const promote = async ({ machines }: Scene, name = STANDBY): Promise<Promotion> =>
  JSON.parse(await machines.command(name, "promote", "--json")) as Promotion;

async function upload(hub: Hub, bytes: Uint8Array<ArrayBuffer>): Promise<Answer> {
  const form = new FormData();
  form.set("file", new File([bytes], "a.bin"));
  return hub.call("POST", "/file/upload", { body: form });
}

/** Without repetition: as large on a link that compresses. */
function noise(bytes: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(bytes);
  for (let at = 0; at < bytes; at += 65_536)
    crypto.getRandomValues(all.subarray(at, Math.min(bytes, at + 65_536)));
  return all;
}

async function hasFile(hub: Hub, answer: Answer, bytes: Uint8Array): Promise<void> {
  const response = await fetch(`${hub.api}/file/download/${String(answer.body["file_id"])}`);
  const there = new Uint8Array(await response.arrayBuffer());
  expectTrue(Buffer.compare(there, bytes) === 0, `the file has other bytes: ${response.status}`);
}

function lastEntry({ machines }: Scene): { readonly n: number; readonly at: number } {
  using db = new Database(join(machines.data(FIRST), "luxhub.db"), { readonly: true });
  const last = db.query<{ n: number; at: number }, []>("SELECT n, at FROM changes ORDER BY n DESC LIMIT 1");
  return must(last.get(), "the log is kept");
}

/** Why it cannot be run on this machine. */
export class NotHere extends Error {}

/** By what is broken. */
export const SCENES: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  "link down": async (scene) => {
    await scene.pair();
    const work = await scene.write();
    scene.link.down();
    await until(async () => (await copyOf(scene.standby)).standbys[0]?.following === false);
    await scene.hasWritten(work);
    scene.link.up();
    await scene.follows();
    await scene.same();
  },
  "link silent, --sync": async (scene) => {
    await scene.pair("--sync");
    const work = await scene.write();
    scene.link.stall();
    await scene.isLost(); // no write is acknowledged before
    await scene.hasWritten(work);
    await until(async () => (await scene.fault()).includes("does not answer"));
    scene.link.up();
    await scene.follows();
    await scene.same();
  },
  "link silent, then the standby is promoted": async (scene) => {
    await scene.pair();
    const work = await scene.write();
    scene.link.stall();
    await scene.hasWritten(work);
    await scene.kill(scene.first);
    await work.end();
    const promotedMs = performance.now();
    const { lag_s, missing } = await promote(scene);
    await addWhenFirst(scene.standby, "new");
    const check = checkWork(work.acknowledged, scene.machines.data(STANDBY));
    const oldest = Math.min(...check.missing.map(({ ms }) => ms));
    expectTrue(check.missing.length > 0 && missing !== 0, "nothing is missing");
    expectTrue(
      oldest >= promotedMs - lag_s * 1_000,
      `what is missing is ${((promotedMs - oldest) / 1_000).toFixed(3)} s old, and the lag ${lag_s} s`,
    );
  },
  "link of 50 KiB/s": async (scene) => {
    await scene.pair();
    scene.link.slow(SLOW_BYTES);
    const work = await scene.write();
    await Bun.sleep(MOMENT_MS); // as long as was asked
    const { standbys } = await copyOf(scene.first);
    expectTrue(standbys[0]?.following === true, "a slow standby counts as lost");
    await work.end();
    scene.link.up();
    await scene.follows();
    await scene.same();
  },
  "link cut in the middle of an entry, 20 times": async (scene) => {
    await scene.pair();
    await scene.write();
    for (let cut = 1; cut <= 20; cut++) {
      scene.link.cutAfter(200 + 331 * cut);
      await until(() => scene.link.cuts === cut);
    }
    scene.link.up();
    await scene.follows();
    await scene.same();
  },
  "a file on a slow link": async (scene) => {
    await scene.pair("--sync");
    const bytes = noise(2 ** 20);
    scene.link.slow((3 * bytes.length * 1_000) / (4 * STANDBY_LOST_MS)); // it takes longer than a standby may be silent
    const uploaded = await upload(scene.first, bytes);
    await scene.isLost();
    await scene.write(); // it goes on without the standby
    await until(async () => (await copyOf(scene.standby)).standbys[0]?.following === true);
    scene.link.up();
    await scene.follows();
    await scene.same();
    await hasFile(scene.standby, uploaded, bytes);
  },
  "the standby is killed while it takes a file": async (scene) => {
    await scene.pair();
    const bytes = noise(2 ** 20);
    scene.link.slow(bytes.length / 4);
    const uploaded = await upload(scene.first, bytes);
    scene.link.cutAfter(bytes.length / 4);
    await until(() => scene.link.cuts === 1);
    await Bun.sleep(MOMENT_MS); // somewhere in the middle
    await scene.kill(scene.standby);
    scene.link.up();
    await scene.start(STANDBY);
    await scene.follows();
    await hasFile(scene.standby, uploaded, bytes);
    await scene.same();
  },
  "a file that the first has lost": async (scene) => {
    await scene.begin();
    await scene.start(STANDBY);
    await scene.follows();
    await scene.kill(scene.standby);
    const { body } = await upload(scene.first, noise(1_000));
    const files = join(scene.machines.data(FIRST), "files");
    for (const name of new Bun.Glob("**/*").scanSync(files))
      if (name.includes(String(body["file_id"]))) rmSync(join(files, name));
    await scene.start(STANDBY);
    await add(scene.first, "after it");
    await scene.follows();
    await scene.same();
  },
  "the disk of the standby full, --sync": async (scene) => {
    const path = scene.machines.data(STANDBY);
    const reason = await whyNoSmallDisk(scene.machines.dir.join("small"));
    if (reason !== null) throw new NotHere(reason);
    await using disk = await SmallDisk.mount(path);
    await scene.begin("--sync");
    // What join has written is below the mount.
    const file = join(path, "standby.json");
    const standby = readFileSync(file, "utf8");
    await Bun.write(disk.inside(file), standby);
    await scene.start(STANDBY, {
      ...{ data: path, host: OWN_HOST, args: ["--port", "0"], ownSecrets: false },
      command: disk.command(PROGRAM),
    });
    await scene.follows();
    const work = await scene.write();
    disk.fill();
    await until(async () => /full/i.test(await scene.fault()));
    await scene.hasWritten(work); // not for long: the disk is small
    await work.end();
    await scene.isLost();
    disk.free();
    await scene.follows();
    expectTrue(
      (await copyOf(scene.standby)).entry === (await copyOf(scene.first)).entry,
      "it stands elsewhere",
    );
    await scene.standby.stop();
    copyFileSync(disk.inside(join(path, "luxhub.db")), scene.machines.dir.join("copied.db"));
    mkdirSync(scene.machines.data("copied"));
    copyFileSync(scene.machines.dir.join("copied.db"), join(scene.machines.data("copied"), "luxhub.db"));
    await scene.same("copied");
  },
  "the clock of the standby a day ahead, then behind": async (scene) => {
    if (NO_SHIFTED_CLOCK !== null) throw new NotHere(NO_SHIFTED_CLOCK);
    const clock = new ShiftedClock(scene.machines.dir);
    clock.set(86_400);
    await scene.begin();
    await scene.start(STANDBY, { env: clock.env });
    const work = await scene.write();
    await scene.follows();
    clock.set(-86_400);
    await scene.hasWritten(work);
    await scene.follows();
    await scene.same();
    await scene.kill(scene.first);
    await promote(scene);
    await addWhenFirst(scene.standby, "new");
    const check = checkWork(work.acknowledged, scene.machines.data(STANDBY));
    expectTrue(check.faults.length === 0, check.faults.join());
  },
  "the first stopped for longer than a call may take": async (scene) => {
    await scene.pair();
    await scene.write();
    scene.first.program.child.kill("SIGSTOP");
    await until(async () => (await scene.fault()).includes("does not answer"));
    scene.first.program.child.kill("SIGCONT");
    await scene.follows();
    await scene.same();
  },
  "the standby stopped": async (scene) => {
    await scene.pair();
    const work = await scene.write();
    scene.standby.program.child.kill("SIGSTOP");
    await scene.isLost();
    await scene.hasWritten(work);
    scene.standby.program.child.kill("SIGCONT");
    await scene.follows();
    await scene.same();
  },
  "of two copies the one that lags is promoted": async (scene) => {
    await scene.pair();
    const line = await scene.machines.command(
      FIRST,
      "invite",
      "third",
      "--standby",
      "--join-url",
      urlOf(scene.first),
    );
    await scene.machines.command("third", "join", line.trim().replace("luxhub join ", ""));
    const third = await scene.start("third");
    await scene.follows(third);
    await add(scene.first, "both have it");
    for (const hub of [scene.standby, third]) await scene.follows(hub);
    scene.link.stall();
    await add(scene.first, "one has it");
    await caughtUp(scene.first, third);
    await scene.kill(scene.first);
    await promote(scene);
    await addWhenFirst(scene.standby, "new");
    await until(async () => (await titles(third).catch(() => null))?.includes("new") === true);
    await scene.same("third", STANDBY);
    using replaced = new Database(join(scene.machines.data("third"), "luxhub.db.replaced"), {
      readonly: true,
    });
    const kept = replaced.query("SELECT title FROM tasks WHERE title = 'one has it'").all();
    expectTrue(kept.length === 1, "what the other copy had is not kept");
  },
  "of two copies both are promoted": async (scene) => {
    await scene.pair();
    await scene.join("third");
    const third = await scene.start("third");
    await scene.follows(third);
    const work = await scene.write();
    await promote(scene);
    await work.end();
    // It is open again, as one that was superseded.
    await until(
      async () => (await scene.first.get("/status").catch(() => null))?.headers.has("luxhub-lag") === true,
    );
    // It is refused, unless it follows the promoted one by now: then it supersedes that one.
    await promote(scene, "third").catch(() => {});
    const roles = async (): Promise<readonly unknown[]> =>
      Promise.all([scene.standby, third].map(async (hub) => (await copyOf(hub).catch(() => null))?.role));
    await until(async () => (await roles()).filter((role) => role === "first").length === 1);
    const name = (await roles())[0] === "first" ? STANDBY : "third";
    const first = name === STANDBY ? scene.standby : third;
    await addWhenFirst(first, "new");
    const check = checkWork(work.acknowledged, scene.machines.data(name));
    expectTrue(check.missing.length + check.faults.length === 0, `${check.missing.length} are missing`);
    expectTrue((await roles()).filter((role) => role === "first").length === 1, "both accept writes");
  },
  "the first has a newer schema": async (scene) => {
    await scene.pair();
    const sql = "CREATE TABLE later (one INTEGER PRIMARY KEY) STRICT";
    const { entry } = await copyOf(scene.first);
    using newer = Bun.serve({
      ...{ hostname: OWN_HOST, port: 0 },
      fetch: (request) => {
        if (!request.url.includes("copy/changes"))
          return Response.json({ error: "unavailable" }, { status: 503 });
        const body = JSON.stringify({ script: { sql, schema: 1_000 } });
        return Response.json({
          entries: [{ n: entry + 1, at: Date.now(), body }],
          n: entry + 1,
          term: 1,
          hubs: [],
        });
      },
    });
    await scene.kill(scene.standby);
    const file = join(scene.machines.data(STANDBY), "standby.json");
    const told: object = await Bun.file(file).json();
    await Bun.write(file, JSON.stringify({ ...told, urls: [`http://${OWN_HOST}:${newer.port}`] }));
    await scene.start(STANDBY);
    await until(async () => (await scene.fault()).includes("newer luxhub"));
    await scene.kill(scene.standby);
    await Bun.write(file, JSON.stringify(told));
    await scene.write();
    await scene.start(STANDBY);
    await scene.follows();
    await scene.same();
  },
  "the first has an older schema": async (scene) => {
    await scene.pair();
    await scene.standby.stop();
    const path = join(scene.machines.data(STANDBY), "luxhub.db");
    const setSchema = (by: number): void => {
      using db = new Database(path);
      const { user_version } = must(
        db.query<{ user_version: number }, []>("PRAGMA user_version").get(),
        "a pragma returns a row",
      );
      db.run(`PRAGMA user_version = ${user_version + by}`);
    };
    setSchema(-1);
    const { code, stdout, stderr } = await run([
      "serve",
      "--port",
      "0",
      "--data",
      scene.machines.data(STANDBY),
    ]);
    expectTrue(
      code === 1 && `${stdout}${stderr}`.includes("update that one first"),
      `${code}: ${stdout}${stderr}`,
    );
    setSchema(1);
    await scene.write();
    await scene.start(STANDBY);
    await scene.follows();
    await scene.same();
  },
  "the first restored from an older backup": async (scene) => {
    await scene.pair();
    await add(scene.first, "in the backup");
    const backup = scene.machines.dir.join("backup.tar");
    await scene.machines.command(FIRST, "backup", backup);
    await add(scene.first, "after the backup");
    await caughtUp(scene.first, scene.standby);
    await scene.first.stop();
    rmSync(scene.machines.data(FIRST), { recursive: true });
    await scene.machines.command(FIRST, "restore", backup);
    await scene.startFirst();
    await add(scene.first, "after the restore");
    await until(
      async () => (await titles(scene.standby).catch(() => null))?.includes("after the restore") === true,
    );
    expectTrue(!(await titles(scene.standby)).includes("after the backup"), "it has another history");
    const path = join(scene.machines.data(STANDBY), "luxhub.db.replaced");
    using replaced = new Database(path, { readonly: true });
    const kept = replaced.query("SELECT title FROM tasks WHERE title = 'after the backup'").all();
    expectTrue(kept.length === 1, "what the standby had is not kept");
    await scene.same();
  },
  "the log was trimmed while the standby was away": async (scene) => {
    await scene.pair();
    await scene.kill(scene.standby);
    const work = await scene.write();
    await work.end();
    using db = new Database(join(scene.machines.data(FIRST), "luxhub.db"));
    db.run("DELETE FROM changes WHERE n < (SELECT max(n) FROM changes)"); // as beyond CHANGES_KEPT_MAX_BYTES
    await scene.start(STANDBY);
    await scene.follows();
    expectTrue(existsSync(join(scene.machines.data(STANDBY), "luxhub.db.replaced")), "it took no base");
    await scene.same();
  },
  "the standby is killed while it takes the base, and promoted before it has it": async (scene) => {
    await scene.begin();
    await upload(scene.first, noise(2 ** 20));
    scene.link.slow(2 ** 19);
    const serve = ["serve", "--host", OWN_HOST, "--port", "0", "--data", scene.machines.data(STANDBY)];
    for (const afterMs of [300, 900]) {
      const child = Bun.spawn([...PROGRAM, ...serve], { stdout: "ignore", stderr: "ignore" });
      await Bun.sleep(afterMs); // somewhere in the middle
      const early = await run(["promote", "--data", scene.machines.data(STANDBY)]);
      expectTrue(early.code !== 0, `a standby without its base was promoted: ${early.stdout}`);
      child.kill("SIGKILL");
      await child.exited;
    }
    const copies = new Bun.Glob("*.partial-db*");
    await until(() => [...copies.scanSync(scene.machines.data(FIRST))].length === 0); // nothing stays of a base
    const early = await run(["promote", "--data", scene.machines.data(STANDBY)]);
    expectTrue(early.code !== 0, `a standby that has no base was promoted: ${early.stdout}`);
    scene.link.up();
    await scene.write();
    await scene.start(STANDBY);
    await scene.follows();
    await scene.same();
  },
  "the first byte of a base after longer than a call may take": async (scene) => {
    await scene.begin();
    await add(scene.first, "in the base");
    const starting = scene.start(STANDBY);
    scene.link.stall(); // as while the first copies its rows
    await Bun.sleep(STANDBY_IDLE_MS + MOMENT_MS);
    scene.link.resume();
    const standby = await starting;
    await scene.follows();
    expectTrue(!standby.program.stdout.includes("could not be taken"), "it gave up");
    await scene.same();
  },
  "promoted twice at once": async (scene) => {
    await scene.pair();
    const work = await scene.write();
    const [one, ...others] = await Promise.all([promote(scene), promote(scene), promote(scene)]);
    expectTrue(
      others.every((other) => Bun.deepEquals(one, other)),
      JSON.stringify([one, ...others]),
    );
    await addWhenFirst(scene.standby, "new");
    await work.end();
    expectTrue((await copyOf(scene.standby)).term === 2, "it was promoted twice");
    const check = checkWork(work.acknowledged, scene.machines.data(STANDBY));
    expectTrue(check.missing.length === 0, `${check.missing.length} are missing, though the first answered`);
  },
  "the standby is killed while it is promoted, at 12 moments": async (scene) => {
    await scene.pair();
    const work = await scene.write();
    await scene.kill(scene.first);
    await work.end();
    for (let moment = 0; moment < 12; moment++) {
      const { role, term } = await copyOf(scene.standby);
      const asked = run(["promote", "--data", scene.machines.data(STANDBY)]);
      await Bun.sleep(60 + moment * 40); // somewhere in the middle
      await scene.kill(scene.standby);
      await asked;
      await scene.start(STANDBY);
      const after = await copyOf(scene.standby);
      expectTrue(after.term >= term && (role !== "first" || after.role === "first"), JSON.stringify(after));
    }
    if ((await copyOf(scene.standby)).role !== "first") await promote(scene);
    await addWhenFirst(scene.standby, "new");
    const check = checkWork([], scene.machines.data(STANDBY));
    expectTrue(check.faults.length === 0, check.faults.join());
  },
  "both accept writes, then the link is back": async (scene) => {
    await scene.pair();
    const work = await scene.write();
    await work.end();
    await caughtUp(scene.first, scene.standby);
    scene.link.stall();
    await promote(scene);
    await addWhenFirst(scene.standby, "on one side");
    expectTrue((await add(scene.first, "on the other side")).status === 200, "the first knows of it");
    scene.link.up();
    await until(async () => (await copyOf(scene.first).catch(() => null))?.role === "superseded");
    const refused = await add(scene.first, "late");
    expectTrue(
      refused.status === 503 && refused.body["error"] === "superseded",
      JSON.stringify(refused.body),
    );
    await scene.first.stop();
    await scene.machines.command(FIRST, "join");
    const again = await scene.machines.start(FIRST, [], scene.first.port);
    await caughtUp(scene.standby, again);
    await scene.same(FIRST, STANDBY);
    expectTrue(!(await titles(again)).includes("on the other side"), "two histories are mixed");
    await again.stop();
  },
  "two standbys with one key": async (scene) => {
    await scene.pair();
    mkdirSync(scene.machines.data("twin"));
    copyFileSync(
      join(scene.machines.data(STANDBY), "standby.json"),
      join(scene.machines.data("twin"), "standby.json"),
    );
    const twin = await scene.start("twin");
    const work = await scene.write();
    await scene.follows(twin);
    await work.end();
    for (const hub of [scene.standby, twin]) await caughtUp(scene.first, hub);
    await scene.same();
    await scene.same("twin");
  },
  "1,000 calls with its key, and calls with other keys": async (scene) => {
    await scene.begin();
    const text = await scene.machines.command(
      FIRST,
      "invite",
      "caller",
      "--standby",
      "--join-url",
      scene.link.url,
    );
    const [, secret = ""] = LINE.exec(text.trim().replace("luxhub join ", "")) ?? [];
    await scene.start(STANDBY);
    await scene.follows();
    const { n, at } = lastEntry(scene);
    const call = async (path: string, key: string, init: RequestInit = {}): Promise<number> => {
      const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
      const response = await fetch(`${scene.first.api}/${path}`, { ...init, headers, keepalive: false });
      await response.arrayBuffer();
      return response.status;
    };
    const calls = Array.from({ length: 1_000 }, () =>
      call(`copy/changes?after=${n}&at=${at}&term=1`, secret),
    );
    await scene.write(); // while they wait
    const statuses = new Set(await Promise.all(calls));
    expectTrue(
      [...statuses].every((status) => status === 200 || status === 429),
      [...statuses].join(),
    );
    const term = JSON.stringify({ term: 9, urls: { A: "http://127.0.0.1:9" }, line: "" });
    for (const key of [scene.first.secret, "wrong", ""])
      for (const [path, init] of [
        ["copy/changes?after=0&at=0&term=1", {}],
        ["copy/base", {}],
        ["copy/promoted", { method: "POST", body: term }],
      ] as const)
        expectTrue([401, 403].includes(await call(path, key, init)), `${path} with another key`);
    for (const query of [
      "",
      "after=x&at=0&term=1",
      "after=-1&at=0&term=1",
      "after=0&at=0&term=1&url_a=ftp://x",
    ])
      expectTrue((await call(`copy/changes?${query}`, secret)) === 400, `copy/changes?${query}`);
    expectTrue((await copyOf(scene.first)).role === "first", "it was superseded");
    await scene.follows();
    await scene.same();
  },
};

export type Played = {
  readonly name: string;
  readonly fault: string | null;
  readonly notHere: string | null;
};

export async function play(name: string): Promise<Played> {
  await using scene = new Scene();
  try {
    await must(SCENES[name], "a scene has this name")(scene);
    return { name, fault: null, notHere: null };
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    return error instanceof NotHere
      ? { name, fault: null, notHere: words }
      : { name, fault: words, notHere: null };
  }
}
