/**
 * A second copy of the hub, by the real program: a standby follows, is promoted, and its first becomes its standby. Both
 * databases are compared table by table. The link, disks and clocks that fail are in torture (tools/torture/standby.ts).
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { noteScript } from "../../src/store/sqlite/change-log.ts";
import { SQLITE_SCHEMA } from "../../src/store/sqlite/schema.ts";
import { PROGRAM } from "../support/executable.ts";
import { OWN_HOST } from "../support/keeper.ts";
import { Machines, add, addWhenFirst, caughtUp, copyOf, differing, titles, urlOf } from "./pair.ts";
import { ADMIN_KEY, Hub, SECRET, TempDir, run, until } from "./program.ts";

/** A call of a tool by `luxhub mcp`, which goes on at the hub that accepts it. */
async function bridge(url: string, secret: string, name: string) {
  using dir = new TempDir();
  writeFileSync(dir.join("secret"), secret, { mode: 0o600 });
  const words = ["mcp", "--url", url, "--secret-file", dir.join("secret"), "--node", "agent"];
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: {} } };
  const started = Bun.spawn([...PROGRAM, ...words], {
    env: { PATH: process.env["PATH"] ?? "", HOME: dir.path },
    stdin: Buffer.from(`${JSON.stringify(call)}\n`),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([started.stdout.text(), started.stderr.text(), started.exited]);
  return { stdout, stderr };
}

test("a standby follows, answers reads, and takes over without a loss while its first runs", async () => {
  using machines = new Machines();
  await using first = await machines.start("one");
  await add(first, "before the base");
  const form = new FormData();
  form.set("file", new File(["bytes"], "a.txt"));
  await first.call("POST", "/file/upload", { body: form });
  await machines.join(first, "one", "two");
  await using standby = await machines.start("two");
  await add(first, "after the base");
  const uploaded = await first.call("POST", "/file/upload", { body: form });
  await caughtUp(first, standby);
  expect(await titles(standby)).toEqual(["after the base", "before the base"]);
  const file = await fetch(`${standby.api}/file/download/${String(uploaded.body["file_id"])}`);
  expect([await file.text(), file.headers.get("luxhub-lag")]).toEqual(["bytes", "0.000"]);
  await until(() => differing(machines, "one", "two").length === 0);

  const refused = await add(standby, "refused");
  expect([refused.status, refused.body["error"], refused.body["hub"]]).toEqual([
    503,
    "standby",
    urlOf(first),
  ]);
  const ready = await fetch(`${urlOf(standby)}/readyz`);
  const probed = (await ready.json()) as Record<string, unknown>;
  expect([ready.status, probed["error"], probed["copy"]]).toEqual([
    503,
    "standby",
    {
      role: "standby",
      term: 1,
      entry: expect.any(Number),
      standbys: [{ following: true, lag_entries: 0, lag_s: 0 }],
    },
  ]);
  const registered = await first.post("/node/register", { node_id: "n", name: "n" });
  expect(registered.body["hubs"]).toEqual([urlOf(first), urlOf(standby)]);
  expect(await machines.command("one", "status")).toContain("the standby two");
  await expect(machines.command("one", "join")).rejects.toThrow("does not know of a promotion");
  const bridged = await bridge(urlOf(standby), standby.secret, "hub_status");
  expect([bridged.stderr, bridged.stdout]).toEqual(["", expect.stringContaining('"node_id":"agent"')]);

  const promoted = await machines.command("two", "promote");
  expect(promoted).toStartWith("promoted: this hub accepts writes; its last entry is ");
  expect((await add(standby, "to the new first")).status).toBe(200);
  expect(await copyOf(standby)).toMatchObject({ role: "first", term: 2 });
  expect(await titles(standby)).toContain("after the base");
  await until(async () => (await copyOf(first).catch(() => null))?.role === "superseded");
  const late = await add(first, "to the old first");
  expect([late.status, late.body["error"], late.body["hub"]]).toEqual([503, "superseded", urlOf(standby)]);
  expect(Number((await first.get("/task/list")).headers.get("luxhub-lag"))).toBeGreaterThan(0);

  await first.stop();
  await expect(machines.command("one", "keys", "add", "x")).rejects.toThrow("was superseded");
  const joined = await machines.command("one", "join");
  expect(joined).toStartWith(`joined ${urlOf(standby)} as its standby`);
  expect(existsSync(join(machines.data("one"), "luxhub.db.term-1"))).toBe(true);
  await using again = await machines.start("one", [], first.port);
  await caughtUp(standby, again);
  expect(await titles(again)).toEqual(await titles(standby));
  await until(() => differing(machines, "one", "two").length === 0);
});

test("--sync: after kill -9 of the first, each acknowledged write is there once; the first returns and writes nothing", async () => {
  using machines = new Machines();
  await using first = await machines.start("one", ["--sync"]);
  await machines.join(first, "one", "two");
  await using standby = await machines.start("two");
  await until(async () => (await copyOf(first)).standbys[0]?.following === true);
  const acknowledged: string[] = [];
  let isKilled = false;
  const writer = async (name: string): Promise<void> => {
    for (let n = 0; !isKilled; n++) {
      const title = `${name}-${n}`;
      const answer = await add(first, title).catch(() => null);
      if (answer?.status === 200) acknowledged.push(title);
    }
  };
  const writers = ["a", "b", "c", "d"].map(writer);
  await until(() => acknowledged.length > 40);
  first.program.child.kill("SIGKILL");
  isKilled = true;
  await Promise.all(writers);
  await machines.command("two", "promote");
  await addWhenFirst(standby, "new");
  const there = await titles(standby);
  expect(acknowledged.filter((title) => !there.includes(title))).toEqual([]);
  expect(new Set(there).size).toBe(there.length);

  await using old = await machines.start("one", [], first.port);
  const refused = await add(old, "to the old first");
  expect([refused.status, refused.body["error"]]).toEqual([503, "superseded"]);
  expect(await titles(old)).not.toContain("to the old first");
});

test("a standby goes on after kill -9 where it was; a second one goes along with the promoted one", async () => {
  using machines = new Machines();
  await using first = await machines.start("one");
  for (const name of ["two", "three"]) await machines.join(first, "one", name);
  await using standby = await machines.start("two");
  await using other = await machines.start("three");
  await add(first, "both have it");
  for (const one of [standby, other]) await caughtUp(first, one);
  standby.program.child.kill("SIGKILL");
  await standby.program.ended;
  await add(first, "while it was down");
  await using resumed = await machines.start("two", [], standby.port);
  for (const one of [resumed, other]) await caughtUp(first, one);
  await until(async () => (await copyOf(first)).standbys.every(({ following }) => following));
  first.program.child.kill("SIGKILL");
  await machines.command("two", "promote");
  await addWhenFirst(resumed, "after the promotion");
  await caughtUp(resumed, other);
  expect(await titles(other)).toEqual(["after the promotion", "both have it", "while it was down"]);
  expect((await copyOf(other)).hub).toBe(urlOf(resumed));
  await until(() => differing(machines, "two", "three").length === 0);
});

const ARCHIVING = ["--backup-changes", "1s", "--backup-to"];

async function restored(machines: Machines, place: string, name: string, ...at: readonly string[]) {
  const said = await machines.command(name, "restore", `${place}/`, ...at);
  await using hub = await machines.start(name);
  return { said, titles: await titles(hub) };
}

function timeOf(machines: Machines, name: string, entry: number): string {
  using db = new Database(join(machines.data(name), "luxhub.db"), { readonly: true });
  const row = db.query<{ at: number }, [number]>("SELECT at FROM changes WHERE n = ?").get(entry);
  return new Date(row?.at ?? Number.NaN).toISOString();
}

test("both archive to one place: from there a restore has what either wrote, and the moment before the promotion", async () => {
  using machines = new Machines();
  const place = machines.dir.join("place");
  const first = await machines.start("one", [...ARCHIVING, place]);
  await first.program.printed(/backup made/);
  await machines.join(first, "one", "two");
  await using standby = await machines.start("two", [...ARCHIVING, place]);
  await add(first, "before");
  await caughtUp(first, standby);
  first.program.child.kill("SIGKILL");
  await first.program.ended;
  const { entry } = await copyOf(standby);
  await machines.command("two", "promote");
  await addWhenFirst(standby, "after");
  expect((await standby.stop()).code).toBe(0);
  expect(await restored(machines, place, "newest")).toMatchObject({ titles: ["after", "before"] });
  const at = timeOf(machines, "two", entry);
  const earlier = await restored(machines, place, "earlier", "--at", at);
  expect(earlier).toEqual({ said: expect.stringContaining(`changes up to ${entry}: `), titles: ["before"] });
});

test("what a first archived and its promoted standby lacks stays in the place, and is no part of what follows", async () => {
  using machines = new Machines();
  const place = machines.dir.join("place");
  const namesIn = (beginning: string): readonly string[] =>
    readdirSync(place).filter((name) => name.startsWith(beginning) && !name.endsWith(".partial"));
  const first = await machines.start("one", [...ARCHIVING, place]);
  await first.program.printed(/backup made/);
  await machines.join(first, "one", "two");
  const standby = await machines.start("two", [...ARCHIVING, place]);
  await add(first, "before");
  await caughtUp(first, standby);
  await standby.stop();
  for (const title of ["lost 1", "lost 2", "lost 3"]) await add(first, title);
  const { entry } = await copyOf(first);
  await until(() => namesIn("changes-").some((name) => Number(name.slice(25, 41)) >= entry));
  first.program.child.kill("SIGKILL");
  await first.program.ended;
  await machines.command("two", "promote");
  await using promoted = await machines.start("two", [...ARCHIVING, place], standby.port);
  await promoted.program.printed(/the archive of changes begins with a new backup(?:.|\n)*backup made/);
  const backups = namesIn("luxhub-");
  await using old = await machines.start("one", [...ARCHIVING, place, "--backup-every", "1s"], first.port);
  expect((await copyOf(old)).role).toBe("superseded");
  for (const title of ["after 1", "after 2"]) {
    const before = namesIn("changes-").length;
    await add(promoted, title);
    await until(() => namesIn("changes-").length > before);
  }
  expect(namesIn("luxhub-")).toEqual(backups); // the superseded one makes none
  const newest = await restored(machines, place, "newest");
  expect(newest.titles).toEqual(["after 1", "after 2", "before"]);
  const lost = await restored(machines, place, "lost", "--at", timeOf(machines, "one", entry));
  expect(lost.titles).toEqual(["before", "lost 1", "lost 2", "lost 3"]);
});

test("a promoted hub with --sync=strict does not say that it accepts writes before a standby follows", async () => {
  using machines = new Machines();
  await using first = await machines.start("one");
  await machines.join(first, "one", "two");
  await using standby = await machines.start("two", ["--sync=strict"]);
  await caughtUp(first, standby);
  first.program.child.kill("SIGKILL");
  expect(await machines.command("two", "promote")).toStartWith("promoted: this hub cannot write yet; ");
  expect((await add(standby, "refused")).body["error"]).toBe("no_standby");
});

test("--sync=strict refuses writes while no standby follows; --sync alone goes on without one", async () => {
  using machines = new Machines();
  await using strict = await machines.start("one", ["--sync=strict"]);
  await until(async () => (await add(strict, "refused")).status === 503);
  const refused = await add(strict, "refused");
  expect(refused.body["error"]).toBe("no_standby");
  await strict.stop();
  await using alone = await machines.start("one", ["--sync"]);
  expect((await add(alone, "accepted")).status).toBe(200);
});

test("a standby that does not run is promoted by its next start; keys are changed at the first only", async () => {
  using machines = new Machines();
  await using first = await machines.start("one");
  await machines.join(first, "one", "two");
  await using standby = await machines.start("two");
  await add(first, "it has it");
  await caughtUp(first, standby);
  await standby.stop();
  first.program.child.kill("SIGKILL");
  await expect(machines.command("two", "keys", "add", "x")).rejects.toThrow(
    "change the keys at its first hub",
  );
  expect(await machines.command("two", "promote")).toStartWith("the standby does not run");
  await using promoted = await machines.start("two");
  expect(await titles(promoted)).toEqual(["it has it"]);
  expect((await add(promoted, "new")).status).toBe(200);
});

test("a migration of the first: the standby takes what is before it, and a newer program the rest, with the files", async () => {
  using machines = new Machines();
  await using first = await machines.start("one");
  await machines.join(first, "one", "two");
  await using standby = await machines.start("two");
  await caughtUp(first, standby);
  await standby.stop();
  const upload = async (): Promise<string> => {
    const form = new FormData();
    form.set("file", new File(["bytes"], "a.txt"));
    return String((await first.call("POST", "/file/upload", { body: form })).body["file_id"]);
  };
  const migrate = (schema: number): void => {
    using db = new Database(join(machines.data("one"), "luxhub.db"), { readwrite: true });
    noteScript(db, "SELECT 1", schema);
  };
  const before = await upload();
  migrate(SQLITE_SCHEMA.version);
  const after = await upload();
  using copy = new Database(join(machines.data("two"), "luxhub.db"), { readwrite: true });
  copy.run(`PRAGMA user_version = ${SQLITE_SCHEMA.version - 1}`);
  copy.close(true);
  await using updated = await machines.start("two", [], standby.port);
  await caughtUp(first, updated);
  const read = async (fileId: string): Promise<string> =>
    (await fetch(`${updated.api}/file/download/${fileId}`)).text();
  expect([await read(before), await read(after)]).toEqual(["bytes", "bytes"]);

  await updated.stop();
  const last = await upload();
  const { entry } = await copyOf(first);
  migrate(SQLITE_SCHEMA.version + 1);
  await using outdated = await machines.start("two", [], standby.port);
  await until(async () => (await copyOf(outdated)).standbys[0]?.fault !== null);
  const { standbys, entry: reached } = await copyOf(outdated);
  expect([standbys[0]?.fault, reached]).toEqual([expect.stringContaining("runs a newer luxhub"), entry]);
  expect(await (await fetch(`${outdated.api}/file/download/${last}`)).text()).toBe("bytes");
});

test("a first with its secrets in the environment: a standby without these, or with others, refuses to start", async () => {
  using machines = new Machines();
  const args = ["--port", "0"];
  await using first = await Hub.start({ data: machines.data("one"), host: OWN_HOST, args });
  const place = ["--url", urlOf(first), "--secret-file", machines.dir.join("secret")];
  writeFileSync(machines.dir.join("secret"), SECRET, { mode: 0o600 });
  const env = { LUXHUB_ADMIN_KEY: ADMIN_KEY };
  const invited = await run(["invite", "two", "--standby", ...place], { env, cwd: machines.dir.path });
  await machines.command("two", "join", invited.stdout.trim().replace("luxhub join ", ""));
  const serve = (secrets: Readonly<Record<string, string>>) =>
    run(["serve", "--data", machines.data("two"), ...args], { env: secrets, cwd: machines.dir.path });
  const without = await serve({});
  expect([without.code, without.stderr]).toEqual([
    expect.any(Number),
    expect.stringContaining("set LUXHUB_SECRET and LUXHUB_ADMIN_KEY here to the same"),
  ]);
  const other = await serve({ ...env, LUXHUB_SECRET: "another-secret-of-32-characters!" });
  expect([other.code, other.stderr]).toEqual([
    without.code,
    expect.stringContaining("LUXHUB_SECRET is not the secret of the first hub"),
  ]);
  await using standby = await Hub.start({ data: machines.data("two"), host: OWN_HOST, args });
  await caughtUp(first, standby);
});

test("a standby that asks for the base again ends the one before", async () => {
  using machines = new Machines();
  await using first = await machines.start("one");
  const form = new FormData();
  form.set("file", new File([new Uint8Array(64 * 1024 * 1024)], "large"));
  await first.call("POST", "/file/upload", { body: form });
  const line = await machines.command("one", "invite", "two", "--standby", "--join-url", urlOf(first));
  const [, secret = ""] = /#standby\.([\w-]+)/.exec(line) ?? [];
  const ask = (): Promise<Response> =>
    fetch(`${first.api}/copy/base`, { headers: { Authorization: `Bearer ${secret}` } });
  const abandoned = (await ask()).body?.getReader();
  await abandoned?.read();
  const base = await (await ask()).bytes();
  expect(base.length).toBeGreaterThan(64 * 1024 * 1024);
  let bytes = 0;
  const rest = (async () => {
    for (;;) {
      const { value, done } = (await abandoned?.read()) ?? { value: undefined, done: true };
      if (done) return "ended";
      bytes += value?.length ?? 0;
    }
  })().catch(() => "cut");
  await rest;
  expect(bytes).toBeLessThan(base.length);
});

test("a first that starts does not ask a standby whose key was revoked, though that one was promoted", async () => {
  using machines = new Machines();
  await using first = await machines.start("one");
  await machines.join(first, "one", "two");
  await using standby = await machines.start("two");
  await caughtUp(first, standby);
  await until(() => existsSync(join(machines.data("one"), "standbys.json")));
  await first.stop();
  await machines.command("one", "keys", "revoke", "two");
  await machines.command("two", "promote");
  await using again = await machines.start("one", [], first.port);
  expect((await add(again, "its own")).status).toBe(200);
});
