/**
 * A Redis (or Valkey) for tests: a server with its own port and directory, or the one that LUXHUB_TEST_REDIS names.
 * Without either the suites that need it are skipped; servers.test.ts says so.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RedisClient, type Subprocess } from "bun";
import { HANG_MS } from "./hang.ts";
import { OWN_HOST, freePort, isListening, keep, sharedAddress } from "./keeper.ts";

const BINARY = Bun.which("redis-server") ?? Bun.which("valkey-server");

/** Why suites that need a Redis are skipped; null when they run. */
export const REDIS_MISSING: string | null =
  BINARY === null && !process.env["LUXHUB_TEST_REDIS"]
    ? "no Redis here; install Debian's redis-server, or set LUXHUB_TEST_REDIS=redis://…"
    : null;

/** Whether a suite has no Redis. `ours`: it stops and starts the server, so it cannot use a given one. */
export function withoutRedis(ours = false): boolean {
  return ours ? BINARY === null : REDIS_MISSING !== null;
}

export type SharedRedis = { readonly url: string; close(): Promise<void> };

export async function openRedis(): Promise<SharedRedis> {
  const url = process.env["LUXHUB_TEST_REDIS"];
  return url ? { url, close: async () => {} } : RedisServer.start();
}

/** The address of the server that all tests of this run share; the first caller starts it. */
export async function sharedRedis(): Promise<string> {
  const given = process.env["LUXHUB_TEST_REDIS"];
  if (given) return given;
  return sharedAddress("redis", async (shared) => {
    for (;;) {
      const folder = mkdtempSync(join(shared, "luxhub-redis-"));
      const port = freePort();
      const keeper = keep([BINARY ?? "redis-server", ...plainWords(port, folder)], folder, "KILL");
      while (keeper.exitCode === null && !(await isListening(port, OWN_HOST))) await Bun.sleep(5);
      if (keeper.exitCode === null) return `redis://${OWN_HOST}:${port}`;
    }
  });
}

function plainWords(port: number, dir: string): readonly string[] {
  const plain = ["--save", "", "--appendonly", "no", "--bind", OWN_HOST, "--dir", dir];
  return ["--port", String(port), ...plain];
}

/** A separate server. `await using redis = await RedisServer.start()` stops it and removes its files. */
export class RedisServer implements SharedRedis {
  readonly port: number;
  readonly #dir = mkdtempSync(join(tmpdir(), "luxhub-redis-"));
  readonly #settings: readonly string[];
  #process: Subprocess | null = null;

  private constructor(port: number, settings: readonly string[]) {
    this.port = port;
    this.#settings = settings;
  }

  /** `settings` as in redis.conf; by default the server stores nothing on disk. */
  static async start(...settings: readonly string[]): Promise<RedisServer> {
    for (;;) {
      const server = new RedisServer(freePort(), settings);
      if (await server.run()) return server;
      await server.close(); // another process took the port first
    }
  }

  get url(): string {
    return `redis://${OWN_HOST}:${this.port}`;
  }

  async run(...more: readonly string[]): Promise<boolean> {
    const words = [...plainWords(this.port, this.#dir), ...this.#settings, ...more];
    const server = Bun.spawn([BINARY ?? "redis-server", ...words], { stdout: "ignore", stderr: "ignore" });
    this.#process = server;
    const deadline = performance.now() + HANG_MS;
    while (server.exitCode === null && !(await isListening(this.port, OWN_HOST))) {
      if (performance.now() > deadline) throw new Error("redis-server does not start");
      await Bun.sleep(5);
    }
    return server.exitCode === null;
  }

  /** Kills it: a server that stores nothing on disk loses everything. */
  async kill(): Promise<void> {
    this.#process?.kill("SIGKILL");
    await this.#process?.exited;
  }

  /** Stops the process: its sockets stay open and nothing answers. */
  freeze(): void {
    this.#process?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#process?.kill("SIGCONT");
  }

  async ask(command: string, ...words: readonly string[]): Promise<unknown> {
    const password = this.#settings[this.#settings.indexOf("--requirepass") + 1] ?? "";
    const url = this.#settings.includes("--requirepass")
      ? this.url.replace("//", `//:${password}@`)
      : this.url;
    const client = new RedisClient(url, { autoReconnect: false });
    try {
      const answer: unknown = await client.send(command, [...words]);
      return answer;
    } finally {
      client.close();
    }
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
