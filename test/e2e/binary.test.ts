/**
 * The executable as `bun run build` makes it, alone in an empty directory with no home and no Bun on the path: it speaks
 * both variants, TLS, streams, and files. What the bundler leaves out shows here and nowhere else.
 */
import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { EXECUTABLE, FROM_SOURCE } from "../support/executable.ts";
import { ADMIN_KEY, Hub, SECRET, TempDir, objectOf, run } from "./program.ts";
import { RawConnection, headOf } from "./raw.ts";

const place = new TempDir();
const NOWHERE = { PATH: "/nonexistent", HOME: "" };

const openssl = Bun.which("openssl");

afterAll(() => place[Symbol.dispose]());

/** An empty directory. */
function emptyDir(name: string): string {
  mkdirSync(place.join(name));
  return place.join(name);
}

const start = (cwd: string, args: readonly string[] = []): Promise<Hub> =>
  Hub.start({ command: [EXECUTABLE], cwd, args, env: NOWHERE });

describe("the executable", () => {
  test("prints its version and its help", async () => {
    const cwd = emptyDir("help");
    for (const args of [["version"], ["help"], ["serve", "--help"], ["keys", "--help"]]) {
      const ended = await run(args, { command: [EXECUTABLE], cwd, env: NOWHERE });
      expect([ended.code, ended.stderr]).toEqual([0, ""]);
      expect(ended.stdout).toContain("luxhub");
    }
    const bogus = await run(["serve", "--bogus"], { command: [EXECUTABLE], cwd, env: NOWHERE });
    expect([bogus.code, bogus.stdout]).toEqual([2, ""]);
    expect(bogus.stderr).toMatch(/^luxhub: unknown flag --bogus[^\n]*\n$/);
    expect(readdirSync(cwd)).toEqual([]);
  });

  test("serves both variants, streams and files, and shuts down in order", async () => {
    const cwd = emptyDir("both");
    await using hub = await start(cwd, ["--listen", "B:127.0.0.1:0"]);
    const headers = { "X-Matrix-Secret": SECRET };
    for (const { url, variant } of hub.listeners) {
      const status = await fetch(`${url}/api/v1/status`, { headers });
      expect(await status.json()).toMatchObject({ success: true, variant });
    }
    await hub.register("worker-1");
    const stream = await RawConnection.open(hub.port);
    stream.send(headOf({ path: "/agent/sse?node_id=worker-1" }));
    await stream.got(/retry: 3000\n\n/);
    const task = await hub.post("/task/create", { title: "t", description: "d" });
    const claimed = await hub.post("/task/claim", { task_id: task.body["task_id"], node_id: "worker-1" });
    expect(claimed.body).toMatchObject({ success: true, status: "assigned" });
    await stream.got(/event: task\.assigned\n/);
    await hub.post("/message/send", { from_node: "operator", to_node: "worker-1", content: "Hi" });
    await stream.got(/event: message\n/);

    // The dashboard is in the executable.
    const page = await (await fetch(hub.api.replace("/api/v1", "/"))).text();
    const assets = [...page.matchAll(/(?:href|src)="(assets\/[^"]+)"/g)].map(([, path = ""]) => path);
    expect(assets.map((path) => path.split(".").at(-1)).toSorted()).toEqual(["css", "js"]);
    for (const path of assets) {
      const asset = await fetch(hub.api.replace("/api/v1", `/${path}`));
      expect([path, asset.status]).toEqual([path, 200]);
    }

    // The manual and its pictures too.
    const manual = hub.api.replace("/api/v1", "/docs");
    for (const [name, wanted] of Object.entries({
      "": '<h1 id="documentation">',
      "/tutorial": "luxhub serve",
      "/search?q=stale_lease": "<mark>stale</mark>",
      "/api-reference": "task/claim",
      "/drawing-states-of-a-task.svg": "</svg>",
    }))
      expect(await (await fetch(`${manual}${name}`)).text()).toContain(wanted);

    // The parser of uploads is loaded with the first of them.
    const body = new FormData();
    body.append("file", new Blob(["Hello"]), "hello.txt");
    body.append("metadata", JSON.stringify({ node: "worker-1" }));
    const upload = await hub.call("POST", "/file/upload", { body });
    expect(upload.body).toMatchObject({ success: true, size: 5, name: "hello.txt", node_id: "worker-1" });
    const file = await fetch(`${hub.api}/file/download/${String(upload.body["file_id"])}`, {
      headers: { Range: "bytes=1-3" },
    });
    expect([file.status, await file.text()]).toEqual([206, "ell"]);

    expect((await hub.stop()).code).toBe(0);
    await stream.got(/\r\n0\r\n\r\n$/);
    expect(readdirSync(cwd)).toEqual(["luxhub-data"]);
  });

  test("manages keys while a hub runs", async () => {
    const cwd = emptyDir("keys");
    await using _hub = await start(cwd);
    const env = { ...NOWHERE, LUXHUB_SECRET: SECRET, LUXHUB_ADMIN_KEY: ADMIN_KEY };
    const added = await run(["keys", "add", "second"], { command: [EXECUTABLE], cwd, env });
    expect([added.code, added.stderr]).toEqual([0, expect.stringMatching(/^This is the secret of second\./)]);
    const listed = await run(["keys", "list"], { command: [EXECUTABLE], cwd, env });
    expect(listed.stdout).toMatch(/\nsecond +full/);
  });

  test.skipIf(openssl === null)(
    `serves A's TLS alias${openssl === null ? " (there is no openssl to make a certificate with)" : ""}`,
    async () => {
      const cwd = emptyDir("tls");
      const certificate = ["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost"];
      const names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
      const made = Bun.spawnSync(
        [openssl ?? "", "req", "-x509", "-newkey", "rsa:2048", "-nodes", ...certificate, ...names],
        { cwd },
      );
      expect(made.exitCode).toBe(0);
      const args = ["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--listen", "A+tls:127.0.0.1:0"];
      await using hub = await start(cwd, args);
      const [plain, alias] = hub.listeners;
      expect(alias?.url).toBe(`https://127.0.0.1:${alias?.port}`);
      await hub.register("worker-1");
      const tls = { ca: await Bun.file(`${cwd}/cert.pem`).text() };
      const response = await fetch(`${alias?.url}/api/v1/node/list`, { tls });
      expect(objectOf(await response.text())).toMatchObject({
        success: true,
        nodes: [{ node_id: "worker-1" }],
      });
      // The commands must be told whom to trust, and say how.
      const status = (env: Readonly<Record<string, string>>) =>
        run(["status", "--url", alias?.url ?? ""], {
          command: [EXECUTABLE],
          cwd,
          env: { ...NOWHERE, ...env },
        });
      const distrusted = await status({});
      expect([distrusted.code, distrusted.stdout]).toEqual([6, ""]);
      expect(distrusted.stderr).toMatch(/^luxhub: .*; name a file .* in NODE_EXTRA_CA_CERTS\n$/);
      expect((await status({ NODE_EXTRA_CA_CERTS: `${cwd}/cert.pem` })).code).toBe(0);
      // The alias is the same hub, and does not answer what is not TLS.
      expect(plain?.port).not.toBe(alias?.port);
      const bare = await fetch(`http://127.0.0.1:${alias?.port}/api/v1/status`).catch(() => null);
      expect(bare?.ok ?? false).toBe(false);
    },
  );
});

describe("luxhub service", () => {
  const files = [
    "etc/luxhub/environment",
    "etc/systemd/system/luxhub.service",
    "usr/local/bin/luxhub",
  ] as const;
  const [environment, unit, program] = files;

  test("installs its files once, keeps the operator's, and removes the unit alone", async () => {
    const root = emptyDir("root");
    const inRoot = (...words: readonly string[]) =>
      run(["service", ...words], { command: [EXECUTABLE], env: { ...NOWHERE, DESTDIR: root } });
    const installed = await inRoot("install");
    expect([installed.code, installed.stderr]).toEqual([0, ""]);
    expect(installed.stdout.match(/^written .*$/gm)).toHaveLength(3);
    expect(files.map((name) => (statSync(join(root, name)).mode & 0o777).toString(8))).toEqual([
      "600",
      "644",
      "755",
    ]);
    const { stdout: printed } = await run(["service", "print"], { command: [EXECUTABLE], env: NOWHERE });
    expect(readFileSync(join(root, unit), "utf8")).toBe(printed);

    const own = "LUXHUB_PORT=1\n";
    writeFileSync(join(root, environment), own);
    chmodSync(join(root, environment), 0o644);
    writeFileSync(join(root, unit), "of an older luxhub");
    const again = await inRoot("install");
    expect(again.stdout.match(/^\w+/gm)).toEqual(["unchanged", "kept", "written"]);
    expect(readFileSync(join(root, environment), "utf8")).toBe(own);
    expect(statSync(join(root, environment)).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(root, unit), "utf8")).toBe(printed);

    const removed = await inRoot("remove");
    expect([removed.code, removed.stdout.match(/^\w+/gm)]).toEqual([0, ["removed", "left"]]);
    expect(existsSync(join(root, unit))).toBe(false);
    expect([environment, program].map((name) => existsSync(join(root, name)))).toEqual([true, true]);
    expect((await inRoot("remove")).stdout).toStartWith("not there");
  });

  test("says what it needs", async () => {
    const env = { ...NOWHERE, DESTDIR: emptyDir("source") };
    const source = await run(["service", "install"], { command: FROM_SOURCE, env });
    expect([source.code, source.stderr]).toEqual([1, expect.stringContaining("needs the executable")]);
    expect((await run(["service", "instal"])).stderr).toContain("install");
    expect((await run(["service", "print", "more"])).code).toBe(2);
  });

  const setpriv = process.getuid?.() === 0 ? Bun.which("setpriv") : null;
  test.skipIf(setpriv === null)(
    `refuses without root${setpriv === null ? " (skipped: needs root and setpriv)" : ""}`,
    async () => {
      for (const word of ["install", "remove"]) {
        const command = [setpriv ?? "", "--reuid=65534", "--clear-groups", EXECUTABLE];
        const { code, stdout, stderr } = await run(["service", word], { command, env: NOWHERE });
        expect([code, stdout, stderr]).toEqual([1, "", expect.stringContaining("needs root")]);
      }
    },
  );

  const analyze = Bun.which("systemd-analyze");
  test.skipIf(analyze === null)(
    `the unit is one that systemd takes and calls well protected${analyze === null ? " (skipped: no systemd-analyze here)" : ""}`,
    async () => {
      const { stdout } = await run(["service", "print"], { command: [EXECUTABLE], env: NOWHERE });
      const path = join(emptyDir("unit"), "luxhub.service");
      writeFileSync(path, stdout.replace("/usr/local/bin/luxhub", EXECUTABLE)); // it must exist
      const verified = Bun.spawnSync([analyze ?? "", "verify", path]);
      expect([verified.exitCode, verified.stdout.toString(), verified.stderr.toString()]).toEqual([
        0,
        "",
        "",
      ]);
      // In tenths; 0 is the best, 100 the worst.
      const rated = Bun.spawnSync([
        analyze ?? "",
        "security",
        "--offline=true",
        "--threshold=20",
        "--no-pager",
        path,
      ]);
      expect([rated.exitCode, rated.stderr.toString()]).toEqual([0, ""]);
    },
  );
});
