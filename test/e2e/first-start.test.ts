/**
 * The first start of a hub: the files that it creates and their modes, its output, and the secrets that it must never
 * print.
 */
import { expect, test } from "bun:test";
import { networkInterfaces } from "node:os";
import { ENDPOINTS } from "../../src/api/routes.ts";
import { readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { PROGRAM } from "../support/executable.ts";
import { ADMIN_KEY, Hub, Program, SECRET, TempDir, objectOf, run } from "./program.ts";

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

/** The three lines that begin with curl, as a person would copy them. */
function curlLines(page: string): readonly string[] {
  return page
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line.startsWith("curl "));
}

/** Pastes one line into a shell, somewhere else than where the hub runs. */
async function paste(line: string, env: Record<string, string> = {}): Promise<Record<string, unknown>> {
  const { PATH = "" } = process.env;
  const shell = Bun.spawn(["sh", "-c", line], { cwd: "/", env: { PATH, ...env }, stderr: "ignore" });
  return { ...objectOf(await shell.stdout.text()) };
}

async function pasteAll(page: string, env: Record<string, string> = {}): Promise<void> {
  const [status, register, create, ...more] = curlLines(page);
  expect(more).toEqual([]);
  expect(await paste(status ?? "", env)).toMatchObject({ success: true, status: "ok" });
  expect(await paste(register ?? "", env)).toMatchObject({ success: true, node_id: "worker-1" });
  expect(await paste(create ?? "", env)).toMatchObject({ success: true, status: "open" });
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

test("the start page has addresses, variants, the files of the secrets and three working curl lines", async () => {
  using dir = new TempDir();
  const data = dir.join("it's data of mine");
  const args = ["--listen", "B:127.0.0.1:0"];
  await using hub = await Hub.start({ data, args, ownSecrets: false });
  const page = hub.program.stdout;
  const [a, b] = hub.listeners;
  expect(page).toContain(`http://127.0.0.1:${a?.port}  variant A, hub version 1.5`);
  expect(page).toContain(`http://127.0.0.1:${b?.port}  variant B, hub version 1.0`);
  expect(page).toContain(data);
  expect(page).toContain(`  secret     in ${data}/secret\n  admin key  in ${data}/admin-key\n`);
  expect(page).toMatch(
    /\n {2}quotas {5}.* 10000 unfinished tasks \(--quota-tasks\), [\d.]+ [KMGT]iB \(--quota-bytes\)\n/,
  );
  expect(hub.secret).toBe(readFileSync(`${data}/secret`, "utf8").trim());
  await pasteAll(page);
  // One that listens everywhere shows an address that can be called.
  await using everywhere = await Hub.start({ data: dir.join("other"), env: { LUXHUB_HOST: "0.0.0.0" } });
  expect(everywhere.program.stdout).toContain(`http://127.0.0.1:${everywhere.port}  variant A`);
});

const lan = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal, address }) => family === "IPv4" && !internal && !address.startsWith("169.254."));

test("the lines of a strict hub work, too", async () => {
  using dir = new TempDir();
  await using hub = await Hub.start({ data: dir.join("data"), ownSecrets: false, args: ["--strict"] });
  const [, lines = ""] = /\nTry:\n\n([^]*?)\n\n/.exec(hub.program.stdout) ?? [];
  const text = `luxhub() { ${PROGRAM.join(" ")} "$@"; }\n${lines}`;
  const shell = Bun.spawn(["sh", "-ec", text], { stdout: "pipe", stderr: "ignore" });
  expect(await shell.stdout.text()).toMatch(/"status":"ok".*\{"success":true,"node_id":"worker-1"/);
});

test("the page lists the open reads and their addresses", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  const listen = ["--listen", "B:127.0.0.1:0"];
  const page = async (args: readonly string[]): Promise<string> => {
    await using hub = await Hub.start({ data, args });
    return hub.program.stdout;
  };
  const alone = await page([]);
  const open =
    /^ {2}open {7}without the secret, to everyone who reaches http:\/\/127\.0\.0\.1:\d+:\n([^]*?)--private/m;
  const paths = ENDPOINTS.filter(({ auth }) => auth === "public").map(({ path }) =>
    path.replace("/api/v1/", ""),
  );
  const shown = open.exec(alone)?.[1] ?? "";
  for (const path of paths) expect(shown).toContain(path.replace(/:(\w+)/, "<$1>"));
  expect(alone).not.toContain("the B listener");
  expect(await page(listen)).toContain(
    "So the open reads of variant A include tasks, results and files created through the B listener.",
  );
  for (const args of [["--private"], ["--variant", "B"], ["--private", ...listen]])
    expect(await page(args)).toContain("  open       nothing: every request to the API needs the secret");
});

test.skipIf(lan === undefined)(
  `the page has the line for a second machine${lan === undefined ? " (this machine has no address in a network)" : ""}`,
  async () => {
    using dir = new TempDir();
    await using hub = await Hub.start({
      data: dir.join("data"),
      ownSecrets: false,
      env: { LUXHUB_HOST: "0.0.0.0" },
    });
    const copied = `On a second machine, with a copy of ${dir.join("data", "secret")}:`;
    await hub.program.printed(/On a second machine.*\n\n.*\n/);
    expect(hub.program.stdout).toContain(copied);
    const url = `http://${lan?.address}:${hub.port}`;
    expect(hub.program.stdout).toContain(`  ${url}  the same, for other machines\n`);
    expect(hub.program.stdout).toContain(` or ${url}`);
    const [, line = ""] = /On a second machine.*\n\n(.*)\n/.exec(hub.program.stdout) ?? [];
    const shell = Bun.spawn(["sh", "-c", line], { cwd: dir.join("data"), stdout: "pipe", stderr: "ignore" });
    expect(objectOf(await shell.stdout.text())).toMatchObject({ success: true, node_id: "worker-2" });
    // The next start says the same.
    await hub.stop();
    await using again = await Hub.start({
      data: dir.join("data"),
      ownSecrets: false,
      env: { LUXHUB_HOST: "0.0.0.0" },
    });
    expect(again.program.stdout).toContain(copied);
  },
);

test("a terminal shows the secrets once; a file or a pipe never gets them", async () => {
  using dir = new TempDir();
  const data = dir.join("it's data; $(of) `mine`");
  const secretsIn = (page: string): readonly boolean[] =>
    ["secret", "admin-key"].map((name) => page.includes(readFileSync(`${data}/${name}`, "utf8").trim()));

  /** The page of a start on a terminal, and all else that it printed. */
  const onTerminal = async (): Promise<string> => {
    let page = "";
    const printed = Promise.withResolvers<void>();
    const args = ["serve", "--host", "127.0.0.1", "--port", "0", "--data", data];
    await using terminal = new Bun.Terminal({
      cols: 400,
      rows: 100,
      data: (_, bytes) => {
        page += new TextDecoder().decode(bytes);
        if (/task\/create.*\r\n/.test(page)) printed.resolve();
      },
    });
    const hub = Bun.spawn([...PROGRAM, ...args], {
      cwd: dir.path,
      env: { PATH: process.env["PATH"] },
      terminal,
    });
    void hub.exited.then(() => printed.resolve());
    await printed.promise;
    await pasteAll(page.replaceAll("\r\n", "\n"));
    hub.kill("SIGTERM");
    expect(await hub.exited).toBe(0);
    return page;
  };
  expect(secretsIn(await onTerminal())).toEqual([true, true]);
  expect(secretsIn(await onTerminal())).toEqual([false, false]);

  rmSync(data, { recursive: true });
  await using first = await Hub.start({ data, ownSecrets: false });
  await pasteAll(first.program.stdout);
  expect((await first.stop()).code).toBe(0);
  expect(secretsIn(first.program.stdout + first.program.stderr)).toEqual([false, false]);
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
  expect(hub.program.stdout).toContain(`  secret     in ${data}/secret\n  admin key  in ${data}/admin-key\n`);
  expect(hub.program.stdout).toContain(`dashboard  http://127.0.0.1:${hub.port}/\n`);
  await pasteAll(hub.program.stdout);
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
  await pasteAll(hub.program.stdout, { LUXHUB_SECRET: SECRET });
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
