/**
 * A pooler in front of PostgreSQL that refuses the settings of a session, one at each connect, as PgBouncer does. A
 * stand-in for it reads the first message of each connection.
 */
import { describe, expect, test } from "bun:test";
import { ok, until } from "../api/scene.ts";
import { startHub } from "../support/hub.ts";
import { POSTGRES_MISSING, newSchema, sharedServer } from "../support/postgres.ts";

const reason = POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`;
if (POSTGRES_MISSING === null) await sharedServer();

/** What PgBouncer takes without further settings, of what a hub sends. */
const TAKEN = new Set([
  "user",
  "database",
  "application_name",
  "client_encoding",
  "DateStyle",
  "search_path",
]);

type Pair = { readonly server: Promise<Bun.Socket<{ client: Bun.Socket<Pair> }>>; isFirst: boolean };

class Pooler implements Disposable {
  readonly refused = new Set<string>();
  readonly #listener: Bun.TCPSocketListener<Pair>;

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.#listener = Bun.listen<Pair>({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: (client) => {
          const socket = {
            data: (server: Bun.Socket<{ client: Bun.Socket<Pair> }>, bytes: Buffer) =>
              void server.data.client.write(bytes),
            close: (server: Bun.Socket<{ client: Bun.Socket<Pair> }>) => void server.data.client.end(),
          };
          const server = Bun.connect({ hostname, port: Number(port), data: { client }, socket });
          client.data = { server, isFirst: true };
        },
        data: async (client, bytes) => {
          const { isFirst, server } = client.data;
          client.data.isFirst = false;
          const name = isFirst ? this.#firstRefused(Buffer.from(bytes)) : undefined;
          if (name === undefined) (await server).write(unknown(Buffer.from(bytes)));
          else client.end(refusal(`unsupported startup parameter: ${name}`));
        },
        close: async (client) => void (await client.data?.server)?.end(),
      },
    });
  }

  urlOf(url: string): string {
    const through = new URL(url);
    through.host = `127.0.0.1:${this.#listener.port}`;
    return through.href;
  }

  /** The start-up message: its length, the version of the protocol, then names and values. */
  #firstRefused(message: Buffer): string | undefined {
    const words = message.subarray(8).toString().split("\0");
    const name = words.find((word, i) => i % 2 === 0 && word !== "" && !TAKEN.has(word));
    if (name !== undefined) this.refused.add(name);
    return name;
  }

  [Symbol.dispose](): void {
    this.#listener.stop(true);
  }
}

/** The server does not know the setting by this name, as one that does not run on Linux. */
function unknown(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString("latin1").replaceAll("tcp_user_timeout", "tcp_user_timeouX"), "latin1");
}

/** An ErrorResponse of PostgreSQL's protocol. */
function refusal(message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C08P01\0M${message}\0\0`);
  const head = Buffer.from("E\0\0\0\0");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

describe.skipIf(POSTGRES_MISSING !== null)(`a pooler${reason}`, () => {
  test("that refuses settings at the connect: the hub leaves them out, says so, and works", async () => {
    const { url } = await newSchema();
    using pooler = new Pooler(url);
    await using hub = await startHub({ database: pooler.urlOf(url) });
    await ok(hub.post("/task/create", { title: "t", description: "d" }));
    expect(pooler.refused).toContain("idle_in_transaction_session_timeout");
    await until("the log says so", async () => {
      const line = hub.logged
        .join("")
        .split("\n")
        .find((one) => one.includes("a pooler refuses settings"));
      return line !== undefined && [...pooler.refused].every((name) => line.includes(name));
    });
  });
});
