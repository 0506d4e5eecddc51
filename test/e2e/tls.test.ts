/** TLS of the real program: which versions and ciphers it speaks, and a certificate that is changed while it serves. */
import { expect, test } from "bun:test";
import { copyFileSync } from "node:fs";
import { type TLSSocket, connect } from "node:tls";
import { Hub, TempDir, run, until } from "./program.ts";

const openssl = Bun.which("openssl");
const WITHOUT = openssl === null ? " (there is no openssl to make a certificate with)" : "";

const CURVE = ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];

/** A certificate for a name and its key, in NAME.pem and NAME-key.pem. A key of an elliptic curve is made at once. */
function makePair(dir: TempDir, name: string, key: readonly string[] = CURVE): void {
  const files = ["-keyout", `${name}-key.pem`, "-out", `${name}.pem`, "-days", "2", "-subj", `/CN=${name}`];
  const words = ["req", "-x509", "-newkey", ...key, "-nodes", ...files];
  expect(Bun.spawnSync([openssl ?? "", ...words], { cwd: dir.path }).exitCode).toBe(0);
}

/** Puts a pair in the place of the one that the hub has. */
function replace(dir: TempDir, name: string, which: readonly ("" | "-key")[]): void {
  for (const part of which) copyFileSync(dir.join(`${name}${part}.pem`), dir.join(`used${part}.pem`));
}

async function startTls(dir: TempDir): Promise<{ hub: Hub; port: number }> {
  const args = ["--tls-cert=used.pem", "--tls-key=used-key.pem", "--listen", "A+tls:127.0.0.1:0"];
  const hub = await Hub.start({ cwd: dir.path, args });
  return { hub, port: hub.listeners[1]?.port ?? 0 };
}

class Connection implements Disposable {
  readonly #socket: TLSSocket;
  readonly #name: string;
  #text = "";

  private constructor(socket: TLSSocket) {
    this.#socket = socket;
    this.#name = String(socket.getPeerCertificate().subject.CN);
    socket.on("data", (bytes) => (this.#text += String(bytes)));
    socket.on("error", () => undefined);
  }

  static open(port: number, options: { ciphers?: string } = {}): Promise<Connection | null> {
    return new Promise((resolve) => {
      const all = { port, host: "127.0.0.1", rejectUnauthorized: false, ...options };
      const socket: TLSSocket = connect(all, () => resolve(new Connection(socket)));
      socket.on("error", () => resolve(null));
    });
  }

  get name(): string {
    return this.#name;
  }

  /** Sends a request that is answered only later. */
  waits(): void {
    this.#socket.write("GET /api/v1/poll?timeout=60 HTTP/1.1\r\nHost: x\r\n\r\n");
  }

  get text(): string {
    return this.#text;
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

async function nameAt(port: number): Promise<string> {
  using connection = await Connection.open(port);
  return connection?.name ?? "none";
}

/** How many calls without the secret wait at a hub, by its metrics. */
async function waiting(hub: Hub): Promise<number> {
  const headers = { "X-Matrix-Secret": hub.secret };
  const metrics = await (await fetch(`http://127.0.0.1:${hub.port}/metrics`, { headers })).text();
  return Number(/^luxhub_waiting_calls\{secret="none"\} (\d+)$/m.exec(metrics)?.[1]);
}

test.concurrent.skipIf(openssl === null)(
  `a changed certificate comes into use without a restart, and open connections go on${WITHOUT}`,
  async () => {
    using dir = new TempDir();
    for (const name of ["one", "two", "three"]) makePair(dir, name);
    replace(dir, "one", ["", "-key"]);
    const { hub, port } = await startTls(dir);
    await using _ = hub;
    using polling = await Connection.open(port);
    polling?.waits();
    await until(async () => (await waiting(hub)) === 1);
    replace(dir, "two", [""]); // its key is still the old one
    await hub.program.printed(
      /warn {2}the changed TLS certificate cannot be used[^\n]*the key does not belong to the cert/,
    );
    expect(await nameAt(port)).toBe("one");
    replace(dir, "two", ["-key"]);
    await until(async () => (await nameAt(port)) === "two");
    // A second time, with calls that wait at both.
    using newer = await Connection.open(port);
    newer?.waits();
    await until(async () => (await waiting(hub)) === 2); // its request has arrived
    replace(dir, "three", ["", "-key"]);
    await until(async () => (await nameAt(port)) === "three");
    await hub.post("/task/create", { title: "t", description: "d" });
    for (const [connection, name] of [
      [polling, "one"],
      [newer, "two"],
    ] as const) {
      await until(() => connection?.text.includes("task.created") === true);
      expect(connection?.name).toBe(name);
    }
    await hub.program.printed(/info {2}the TLS certificate was changed file=used\.pem valid_to=/);
    expect((await hub.stop()).code).toBe(0);
    expect(await nameAt(port)).toBe("none");
  },
);

test.concurrent.skipIf(openssl === null)(
  `two hubs cannot share a port unnoticed, with TLS or without${WITHOUT}`,
  async () => {
    using dir = new TempDir();
    makePair(dir, "used");
    const { hub, port } = await startTls(dir);
    await using _ = hub;
    for (const variant of ["A+tls", "A"]) {
      const args = [
        "--data",
        "other",
        "--port",
        "0",
        "--host",
        "127.0.0.1",
        "--listen",
        `${variant}:127.0.0.1:${port}`,
      ];
      const tls = ["--tls-cert=used.pem", "--tls-key=used-key.pem"];
      const { code, stderr } = await run(["serve", ...args, ...tls], { cwd: dir.path });
      expect([code, stderr]).toEqual([
        1,
        `luxhub: cannot listen on 127.0.0.1:${port}: the port is in use; choose another with --port or --listen\n`,
      ]);
    }
    expect(await nameAt(port)).toBe("used");
  },
);

test.concurrent.skipIf(openssl === null)(
  `TLS has forward secrecy and is 1.2 or newer${WITHOUT}`,
  async () => {
    using dir = new TempDir();
    makePair(dir, "used", ["rsa:2048"]); // the ciphers below are those of RSA
    const { hub, port } = await startTls(dir);
    await using _ = hub;
    const speaks = async (...args: readonly string[]): Promise<string> => {
      const words = ["s_client", "-connect", `127.0.0.1:${port}`, ...args];
      const child = Bun.spawn([openssl ?? "", ...words], {
        stdin: "ignore",
        stdout: "pipe",
        stderr: "ignore",
      });
      return /Cipher is (\S+)/.exec(await child.stdout.text())?.[1] ?? "";
    };
    const rows: readonly (readonly [args: readonly string[], cipher: string])[] = [
      [["-tls1_3"], "TLS_AES_256_GCM_SHA384"],
      [["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"], "ECDHE-RSA-AES128-GCM-SHA256"],
      [["-tls1_2", "-cipher", "ECDHE-RSA-CHACHA20-POLY1305"], "ECDHE-RSA-CHACHA20-POLY1305"],
      [["-tls1_2", "-cipher", "AES128-GCM-SHA256"], "(NONE)"],
      [["-tls1_2", "-cipher", "AES128-SHA"], "(NONE)"],
      [["-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA"], "(NONE)"],
      [["-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0"], "(NONE)"],
      [["-tls1", "-cipher", "DEFAULT:@SECLEVEL=0"], "(NONE)"],
    ];
    for (const [args, cipher] of rows) expect([args, await speaks(...args)]).toEqual([args, cipher]);
  },
);
