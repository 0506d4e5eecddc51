/**
 * The first start of a hub: the files that it creates and their modes, its output, and the secrets that it must never
 * print.
 */
import { expect, test } from "bun:test";
import { networkInterfaces } from "node:os";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { PROGRAM } from "../support/executable.ts";
import { ADMIN_KEY, Hub, Program, SECRET, TempDir, objectOf, run } from "./program.ts";

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

/** What stands behind a word on the page. */
const lineOf = (page: string, word: string): string =>
  new RegExp(`^  ${word} +(.*)$`, "m").exec(page)?.[1] ?? "";

/** Runs lines of the page in a shell, somewhere else than where the hub runs; what they print. */
async function paste(lines: string, env: Record<string, string> = {}): Promise<string> {
  const text = `luxhub() { ${PROGRAM.join(" ")} "$@"; }\n${lines}`;
  const { PATH = "", HOME = "" } = process.env;
  const shell = Bun.spawn(["sh", "-ec", text], { cwd: "/", env: { PATH, HOME, ...env }, stderr: "ignore" });
  return shell.stdout.text();
}

/** Follows the page: a task, and a worker that does it. */
async function follow(page: string, env: Record<string, string> = {}): Promise<void> {
  const worker = lineOf(page, "A worker").replace("luxhub worker", "luxhub worker --once");
  const wait = lineOf(page, "A task").replace(
    /luxhub task add Ada(.*)/,
    'luxhub task wait$1 "$(luxhub task add Ada$1)"',
  );
  expect(await paste(`${worker} >/dev/null & ${wait}`, env)).toBe("Hello, Ada\n");
}

test("only the owner can read the directory, the secret and the admin key", async () => {
  using dir = new TempDir();
  const data = dir.join("deep", "data");
  await using _hub = await Hub.start({ data, ownSecrets: false });
  expect(modeOf(data)).toBe("700");
  for (const name of ["secret", "admin-key"]) {
    expect(modeOf(`${data}/${name}`)).toBe("600");
    expect(readFileSync(`${data}/${name}`, "utf8")).toMatch(/^[\w-]{32}\n$/);
  }
});

test("the page has a worker and a task that work, and names the files of the secrets", async () => {
  using dir = new TempDir();
  const data = dir.join("it's data; $(of) `mine`");
  await using hub = await Hub.start({ data, args: ["--listen", "B:127.0.0.1:0"], ownSecrets: false });
  const page = hub.program.stdout;
  const [a, b] = hub.listeners;
  expect([a?.variant, b?.variant]).toEqual(["A", "B"]);
  expect(lineOf(page, "Dashboard")).toBe(`http://127.0.0.1:${a?.port}/`);
  expect(lineOf(page, "Secret")).toBe(`in ${data}/secret; the administrator key in ${data}/admin-key`);
  expect(hub.secret).toBe(readFileSync(`${data}/secret`, "utf8").trim());
  expect(page).not.toContain(hub.secret);
  expect(lineOf(page, "A machine")).toContain("--host 0.0.0.0");
  await follow(page);
});

test("a strict hub shows how a worker gets a key", async () => {
  using dir = new TempDir();
  await using hub = await Hub.start({ data: dir.join("data"), ownSecrets: false, args: ["--strict"] });
  const [invite = ""] = lineOf(hub.program.stdout, "A worker").split("   (");
  expect(await paste(invite)).toStartWith("luxhub join ");
});

test("without --host only this machine reaches the hub", async () => {
  using dir = new TempDir();
  await using program = new Program(["serve", "--port", "0", "--data", dir.join("data")]);
  await program.printed(/^ {2}Listens +http:\/\/127\.0\.0\.1:\d+ {2}variant A\n/m);
  expect(program.stdout).not.toContain("Open ");
});

const lan = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal, address }) => family === "IPv4" && !internal && !address.startsWith("169.254."));
const OPEN =
  "everyone who reaches the hub reads nodes, tasks, results, files and events: --private closes that";
const CLOSED = "nothing: each request needs the secret";

test.skipIf(lan === undefined)(
  `a hub that others reach says what they read${lan === undefined ? " (skipped: this machine has no address in a network)" : ""}`,
  async () => {
    using dir = new TempDir();
    const page = async (args: readonly string[]): Promise<string> => {
      await using hub = await Hub.start({ data: dir.join("data"), env: { LUXHUB_HOST: "0.0.0.0" }, args });
      return hub.program.stdout;
    };
    const open = await page([]);
    expect(lineOf(open, "Listens")).toContain(`for other machines http://${lan?.address}:`);
    expect(lineOf(open, "A machine")).toStartWith("luxhub invite NAME");
    expect(lineOf(open, "Open")).toBe(`${OPEN}, and --tls auto encrypts`);
    const both = await page(["--listen", "B:0.0.0.0:0", "--tls", "auto"]);
    expect(lineOf(both, "Open")).toStartWith(`${OPEN}. So the open reads of variant A include`);
    for (const args of [["--private"], ["--variant", "B"]])
      expect(lineOf(await page(args), "Open")).toBe(CLOSED);
  },
);

test("a terminal shows a link that signs in once, and no secret; a file or a pipe has no such link", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  let page = "";
  const printed = Promise.withResolvers<void>();
  await using terminal = new Bun.Terminal({
    cols: 400,
    rows: 100,
    data: (_, bytes) => {
      page += new TextDecoder().decode(bytes);
      if (/Listens.*\r\n/.test(page)) printed.resolve();
    },
  });
  const args = ["serve", "--host", "127.0.0.1", "--port", "0", "--data", data];
  const hub = Bun.spawn([...PROGRAM, ...args], {
    cwd: dir.path,
    env: { PATH: process.env["PATH"] },
    terminal,
  });
  void hub.exited.then(() => printed.resolve());
  await printed.promise;
  const [, url = "", code = ""] = /(http:\S+)#sign-in=([\w-]+)/.exec(page) ?? [];
  const signIn = (given: string): Promise<Response> =>
    fetch(`${url}sign-in`, { method: "POST", headers: { "X-Sign-In-Code": given } });
  expect((await signIn(`${code.slice(0, -1)}?`)).status).toBe(401);
  const wordsIn = (name: string): string => readFileSync(`${data}/${name}`, "utf8").trim();
  const credentials = { secret: wordsIn("secret"), admin_key: wordsIn("admin-key") };
  const answers = await Promise.all([signIn(code), signIn(code)]);
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401]);
  expect(await answers.find(({ ok }) => ok)?.json()).toEqual(credentials);
  hub.kill("SIGTERM");
  expect(await hub.exited).toBe(0);
  for (const word of Object.values(credentials)) expect(page).not.toContain(word);
  await using piped = await Hub.start({ data, ownSecrets: false });
  expect(piped.program.stdout).not.toContain("sign-in");
});

test("a failed first start keeps no secrets and logs no start", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  await using other = await Hub.start({ data: dir.join("other") });
  const args = ["serve", "--host", "127.0.0.1", "--data", data];
  const failed = await run([...args, "--port", String(other.port)]);
  expect({ code: failed.code, stdout: failed.stdout }).toEqual({ code: 1, stdout: "" });
  expect(readdirSync(data)).not.toContain("secret");
  expect(readdirSync(data)).not.toContain("admin-key");
  await using hub = await Hub.start({ data, ownSecrets: false });
  expect((await hub.get("/events?kind=hub.started")).body["events"]).toHaveLength(1);
  // Beside a hub that runs, a start that fails takes nothing from it.
  expect((await run([...args, "--port", "0"])).code).toBe(1);
  expect(readFileSync(`${data}/secret`, "utf8").trim()).toBe(hub.secret);
});

test("secrets from the environment are neither written nor printed", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  await using hub = await Hub.start({ data });
  expect(readdirSync(data)).not.toContain("secret");
  expect(readdirSync(data)).not.toContain("admin-key");
  await follow(hub.program.stdout, { LUXHUB_SECRET: SECRET });
  expect((await hub.admin("/task/delete", { task_id: "none" })).status).toBe(404);
  expect((await hub.stop()).code).toBe(0);
  expect(hub.program.stdout + hub.program.stderr).not.toContain(SECRET);
  expect(hub.program.stdout + hub.program.stderr).not.toContain(ADMIN_KEY);
  for (const name of readdirSync(data)) {
    if (statSync(`${data}/${name}`).isFile()) {
      expect(readFileSync(`${data}/${name}`, "latin1")).not.toContain(SECRET);
    }
  }
});

test("with --log json every line is an object without secrets", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  const env = { LUXHUB_HOST: "127.0.0.1", LUXHUB_PORT: "0", LUXHUB_LOG: "json", LUXHUB_LOG_LEVEL: "debug" };
  await using program = new Program(["serve", "--data", data], { env });
  const [, url = ""] = await program.printed(/"url":"([^"]+)"[^\n]*\n/);
  const secret = readFileSync(`${data}/secret`, "utf8").trim();
  const headers = { "X-Matrix-Secret": secret, "X-Request-Id": "my-request" };
  const answer = await fetch(`${url}/api/v1/lux/ledger?node_id=a`, { headers });
  expect(answer.status).toBe(404);
  await program.printed(/my-request/);
  program.child.kill("SIGTERM");
  expect(await program.ended).toBe(0);
  const lines = program.stdout.trimEnd().split("\n").map(objectOf);
  for (const { time, level, message } of lines) {
    expect([typeof time, typeof level, typeof message]).toEqual(["string", "string", "string"]);
  }
  expect(lines.find((line) => line["message"] === "secrets created")).toMatchObject({
    secret_file: `${data}/secret`,
    admin_key_file: `${data}/admin-key`,
  });
  expect(lines.find((line) => line["request_id"] === "my-request")).toMatchObject({
    message: "request",
    method: "GET",
    path: "/api/v1/lux/ledger?node_id=a",
    status: 404,
  });
  expect(program.stdout).not.toContain(secret);
  expect(program.stdout).not.toContain(readFileSync(`${data}/admin-key`, "utf8").trim());
});
