/**
 * Joining: `serve --tls auto`, `luxhub invite` and `luxhub join` of the real program. Two machines are two network
 * namespaces, each with a home of its own; where none can be made, two homes on this machine.
 */
import { expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { type JoinedHub, pinnedFetch } from "../../src/client/joined.ts";
import { makeAuthorityKey, makeServerCertificate, openAuthority } from "../../src/hub/own-certificate.ts";
import { must } from "../../src/lib/assert.ts";
import { EXECUTABLE } from "../support/executable.ts";
import { NO_LINK, NetworkLink } from "../support/network-link.ts";
import { ADMIN_KEY, type Ended, Hub, TempDir, listOf, run } from "./program.ts";

const CLIENT = join(import.meta.dir, "../../src/client");
if (NO_LINK !== null)
  console.log(`The joining machines are homes without a network of their own: ${NO_LINK}.`);
const python = Bun.which("python3");
if (python === null) console.log("The Python client does not join: there is no python3 on the path.");
const node = Bun.which("node");
if (node === null) console.log("The client does not join on Node: there is none on the path.");
const openssl = Bun.which("openssl");
if (openssl === null) console.log("Certificates are not verified by openssl: there is none on the path.");

/** A machine with a home, and with a network where one can be made. */
class Machine implements Disposable {
  readonly home: string;
  readonly #link: NetworkLink | null;

  constructor(dir: TempDir, name: string) {
    this.home = dir.join(name);
    mkdirSync(this.home);
    this.#link = NO_LINK === null ? new NetworkLink() : null;
  }

  /** The address at which it reaches this machine. */
  get hubAddress(): string {
    return this.#link?.here ?? "127.0.0.1";
  }

  get file(): string {
    return join(this.home, ".config/luxhub/hub.json");
  }

  get joined(): JoinedHub {
    return JSON.parse(readFileSync(this.file, "utf8"));
  }

  run(
    args: readonly string[],
    more: { command?: readonly string[]; env?: Record<string, string> } = {},
  ): Promise<Ended> {
    const command = [...(this.#link?.command ?? []), ...(more.command ?? [EXECUTABLE])];
    return run(args, { command, cwd: this.home, env: { HOME: this.home, ...more.env } });
  }

  [Symbol.dispose](): void {
    this.#link?.[Symbol.dispose]();
  }
}

const TLS_AUTO = ["--tls", "auto", "--listen", "A+tls:0.0.0.0:0"];

function tlsPort(hub: Hub): number {
  return Number(
    new URL(
      must(
        hub.listeners.find(({ url }) => url.startsWith("https:")),
        "TLS",
      ).url,
    ).port,
  );
}

/** The line that `luxhub invite` prints on the machine of the hub. */
async function invite(
  hub: Hub,
  data: string,
  nodeId: string,
  host: string,
  ...more: string[]
): Promise<string> {
  const url = `https://${host}:${tlsPort(hub)}`;
  const invited = await run(["invite", nodeId, "--data", data, "--join-url", url, ...more], {
    env: { LUXHUB_SECRET: hub.secret, LUXHUB_ADMIN_KEY: ADMIN_KEY },
  });
  expect(invited).toMatchObject({ code: 0 });
  const [, line = ""] = /^luxhub join (\S+)\n$/.exec(invited.stdout) ?? [];
  expect(line).toStartWith(`${url}/#join.`);
  return line;
}

/** Replaces the last characters of the hash in a line. */
function withOtherPin(line: string): string {
  return `${line.slice(0, -5)}${line.endsWith("AAAA0") ? "BBBB0" : "AAAA0"}`;
}

test("two machines join with one line each, over TLS with a pinned key, and work", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  await using hub = await Hub.start({ data, host: "0.0.0.0", args: TLS_AUTO });
  using first = new Machine(dir, "first");
  using second = new Machine(dir, "second");
  for (const [nodeId, machine] of [
    ["worker-1", first],
    ["worker-2", second],
  ] as const) {
    const line = await invite(hub, data, nodeId, machine.hubAddress);
    const refused = await machine.run(["join", withOtherPin(line)]);
    expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining("Nothing was sent to it") });
    expect(existsSync(machine.file)).toBe(false);
    expect(await machine.run(["join", line])).toMatchObject({ code: 0 });
    expect(statSync(machine.file).mode & 0o777).toBe(0o600);
    expect(machine.joined).toMatchObject({ node_id: nodeId });
    const again = await machine.run(["join", line]);
    expect(again).toMatchObject({ code: 5, stderr: expect.stringContaining("has already joined") });
    const used = await machine.run(["join", line, "--replace"]);
    expect(used).toMatchObject({ code: 5, stderr: expect.stringContaining("invitation_used") });
    expect(machine.joined).toMatchObject({ node_id: nodeId }); // a refused join keeps what there was
  }
  // Neither machine has been told anything else.
  for (const [n, machine] of [first, second].entries()) {
    const made = await machine.run(["task", "add", `task ${n}`, "-d", "of a machine that has joined"]);
    expect(made).toMatchObject({ code: 0 });
    expect(await machine.run(["worker", "--once", "--", "sh", "-c", "echo done"])).toMatchObject({ code: 0 });
  }
  const { tasks } = (await hub.get("/task/list")).body;
  expect(
    listOf(tasks).map((task) => [task["title"], task["status"], task["assigned_node"], task["creator_node"]]),
  ).toEqual([
    ["task 1", "completed", "worker-2", "worker-2"],
    ["task 0", "completed", "worker-1", "worker-1"],
  ]);
  // The key is bound: it acts for no other node.
  const other = await first.run(["node", "drain", "worker-2"]);
  expect(other).toMatchObject({ code: 4, stderr: expect.stringContaining("key_bound_to_other_node") });
});

test("the other clients use what join has stored: the MCP bridge, Python, and the typed client on Bun and Node", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  await using hub = await Hub.start({ data, args: TLS_AUTO });
  using machine = new Machine(dir, "home");
  expect(await machine.run(["join", await invite(hub, data, "w", machine.hubAddress)])).toMatchObject({
    code: 0,
  });

  const fields = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } };
  const line = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: fields });
  const bridged = await machine.run(["-c", `echo '${line}' | ${EXECUTABLE} mcp`], { command: ["sh"] });
  expect(bridged).toMatchObject({ code: 0, stdout: expect.stringContaining('"serverInfo"') });

  // The key of the join is for its node alone, and only luxhub mcp trusts the hub's authority.
  const config = (...args: readonly string[]): Promise<Ended> =>
    machine.run(["mcp-config", "claude", ...args]);
  expect(await config("--node", "other")).toMatchObject({ code: 2, stdout: "" });
  const { stdout } = await config();
  const { mcpServers } = JSON.parse(stdout);
  const { command, args, env } = mcpServers.luxhub;
  // The client may run without the variables of the user who joined.
  const started = await machine.run(["-c", `echo '${line}' | ${[command, ...args].join(" ")}`], {
    command: ["timeout", "20", "sh"],
    env: { HOME: dir.join("no-home"), ...env },
  });
  expect(started).toMatchObject({ code: 0, stdout: expect.stringContaining('"serverInfo"') });

  if (python !== null) {
    const script = `
import luxhub
with luxhub.LuxHub.joined() as hub:
    print(hub.status()["status"], luxhub.joined_node())
`;
    const ran = await machine.run(["-W", "error", "-B", "-c", script], {
      command: [python],
      env: { PYTHONPATH: CLIENT },
    });
    expect(ran).toEqual({ code: 0, stdout: "ok w\n", stderr: "" });
  }

  const script = `
    import { LuxHub } from "./luxhub.js";
    import { joinedHub } from "./joined.js";
    const { nodeId, ...options } = joinedHub();
    const hub = new LuxHub({ ...options, retry: { forMs: 0 } });
    await hub.nodes.register({ node_id: nodeId, name: "N" });
    const { file_id } = await hub.files.upload(new Blob(["content"]), { name: "a.txt" });
    const text = await (await hub.files.download({ file_id })).text();
    let code = "";
    try { await hub.tasks.get({ task_id: "none" }); } catch (error) { code = error.code; }
    console.log(nodeId, text, code);`;
  const entrypoints = [join(CLIENT, "luxhub.ts"), join(CLIENT, "joined.ts")];
  await Bun.build({ entrypoints, outdir: machine.home, target: "node", format: "esm" });
  writeFileSync(join(machine.home, "package.json"), '{"type":"module"}');
  writeFileSync(join(machine.home, "main.js"), script);
  for (const command of [process.execPath, ...(node === null ? [] : [node])]) {
    const ran = await machine.run(["main.js"], { command: [command], env: { BUN_BE_BUN: "1" } });
    expect(ran).toEqual({ code: 0, stdout: "w content task_not_found\n", stderr: "" });
  }
});

test("an impostor gets no byte of a secret: with a key of its own, and with the real hub's certificate too", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  await using hub = await Hub.start({ data, args: TLS_AUTO });
  using machine = new Machine(dir, "home");
  const line = await invite(hub, data, "w", "127.0.0.1");
  const authority = readFileSync(join(data, "tls-ca.pem"), "utf8");
  const evil = must(await openAuthority(await makeAuthorityKey(), null, Date.now()), "a new key");
  const pair = await makeServerCertificate(evil, ["127.0.0.1"], Date.now());
  const own = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/.exec(pair.cert)?.[0] ?? "";
  for (const cert of [pair.cert, own + authority]) {
    const seen: string[] = [];
    await using impostor = Bun.serve({
      hostname: "0.0.0.0",
      port: 0,
      tls: { cert, key: pair.key },
      fetch: async (request) => {
        seen.push(`${request.url} ${await request.text()}`);
        return new Response("{}");
      },
    });
    const aimed = line
      .replace(`:${tlsPort(hub)}/`, `:${impostor.port}/`)
      .replace("127.0.0.1", machine.hubAddress);
    const refused = await machine.run(["join", aimed]);
    expect(refused.code).not.toBe(0);
    expect(seen).toEqual([]);
    expect(existsSync(machine.file)).toBe(false);
    // And a machine that has joined is not redirected to it later.
    const trust = { ca: authority, server_name: "hub.luxhub.internal" };
    const send = must(pinnedFetch(trust), "a pinned fetch");
    await expect(
      send(`https://127.0.0.1:${impostor.port}/`, { headers: { "X-Matrix-Secret": "s" } }),
    ).rejects.toThrow();
    expect(seen).toEqual([]);
  }
  const real = await invite(hub, data, "w", "127.0.0.1");
  const send = pinnedFetch({ ca: authority, server_name: "hub.luxhub.internal" });
  expect((await must(send, "pinned")(`${real.split("/#")[0]}/healthz`, {})).status).toBe(200);
});

test("its pin outlives a restart, a renewed certificate, and a backup that is restored elsewhere", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  const key = join(data, "tls-ca-key.pem");
  {
    const args = [...TLS_AUTO, "--listen", "A:0.0.0.0:0"];
    await using hub = await Hub.start({ data, ownSecrets: false, args });
    expect([statSync(key).mode & 0o777, statSync(join(data, "tls-ca.pem")).mode & 0o777]).toEqual([
      0o600, 0o600,
    ]);
    if (openssl !== null) {
      const port = String(tlsPort(hub));
      const words = ["s_client", "-connect", `127.0.0.1:${port}`, "-verify_ip", "127.0.0.1", "-x509_strict"];
      const trusting = [...words, "-verify_return_error", "-CAfile", join(data, "tls-ca.pem")];
      expect(await run(trusting, { command: [openssl] })).toMatchObject({
        code: 0,
        stdout: expect.stringContaining("Verify return code: 0 (ok)"),
      });
    }
    const invited = await run([
      "invite",
      "w",
      "--data",
      data,
      "--join-url",
      `https://127.0.0.1:${tlsPort(hub)}`,
    ]);
    // Of its other addresses it names none without TLS.
    expect(invited.stderr).toContain("Run this line on the machine of w");
    expect(invited.stderr).not.toContain("http://");
    const line = invited.stdout.trim().split(" ").at(-1) ?? "";
    expect(await run(["join", line], { env: { HOME: dir.path } })).toMatchObject({
      code: 0,
    });
    await hub.stop();
    expect(await run(["backup", dir.join("hub.tar"), "--data", data])).toMatchObject({ code: 0 });
  }
  const elsewhere = dir.join("elsewhere");
  expect(await run(["restore", dir.join("hub.tar"), "--data", elsewhere])).toMatchObject({ code: 0 });
  const trust = JSON.parse(readFileSync(dir.join(".config/luxhub/hub.json"), "utf8"));
  for (const place of [data, elsewhere]) {
    await using hub = await Hub.start({ data: place, ownSecrets: false, args: TLS_AUTO });
    const send = must(pinnedFetch(trust), "a pinned fetch");
    const answer = await send(`https://127.0.0.1:${tlsPort(hub)}/api/v1/questions`, {
      headers: { "X-Matrix-Secret": trust.secret },
    });
    expect(answer.status).toBe(200);
  }
});

test("what is wrong with a line, a clock or a key is said in one line", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  const env = { HOME: dir.path };
  for (const line of [
    "",
    "x",
    "https://h/",
    "https://h/#join.short",
    `http://h/#join.${"a".repeat(32)}.${"b".repeat(43)}`,
  ]) {
    const { code, stderr } = await run(["join", line], { env });
    expect([code, stderr.trim().split("\n").length]).toEqual([2, 1]);
  }
  await using hub = await Hub.start({ data, args: TLS_AUTO });
  const line = await invite(hub, data, "w", "127.0.0.1");
  const unknown = await run(["join", line.replace(/#join\.[\w-]{32}/, `#join.${"a".repeat(32)}`)], { env });
  expect(unknown).toMatchObject({ code: 3, stderr: expect.stringContaining("invitation_not_found") });
  const closed = createServer().listen(0, "127.0.0.1");
  const address = closed.address();
  const free = typeof address === "object" ? (address?.port ?? 1) : 1;
  await new Promise((resolve) => closed.close(resolve));
  const nobody = await run(["join", line.replace(`:${tlsPort(hub)}/`, `:${free}/`)], { env });
  expect(nobody).toMatchObject({ code: 6, stderr: expect.stringContaining("cannot be reached") });
  await hub.stop();
  chmodSync(join(data, "tls-ca-key.pem"), 0o600);
  writeFileSync(
    join(data, "tls-ca-key.pem"),
    "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
  );
  const damaged = await run(["serve", "--data", data, "--port", "0", "--host", "127.0.0.1", ...TLS_AUTO]);
  expect(damaged).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("tls-ca-key.pem is no key that luxhub has made"),
  });
  const both = await run(["serve", "--data", data, "--tls", "auto", "--tls-cert", "a", "--tls-key", "b"]);
  expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining("--tls auto makes a certificate") });
});
