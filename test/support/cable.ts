/**
 * A TCP proxy between a hub and its PostgreSQL that can drop the connection at a COMMIT, which it detects in the bytes
 * from the hub. For tests of commits with an unknown outcome.
 */

/**
 * When to drop the connection: before the server gets the COMMIT, or after it has answered, and before the hub gets that
 * answer. `dead`: and refuse all traffic from then on.
 */
export type Cut = "before" | "after" | "after, dead";

type Server = Bun.Socket<{ client: Bun.Socket<Client> }>;
type Client = {
  server: Promise<Server>;
  isAwaited: boolean;
  /** The name under which the connection has prepared its COMMIT. */
  commit: string | null;
  /** How to drop it when the COMMIT that it has sent is answered. */
  cut: Cut | null;
  /** The answers since then. */
  withheld: Buffer;
};

const PREPARED_COMMIT = /(\w+)\0COMMIT\0/;
const COMMITTED = Buffer.from("C\0\0\0\x0bCOMMIT\0");

export class Cable implements Disposable {
  readonly #listener: Bun.TCPSocketListener<Client>;
  readonly #server: { readonly hostname: string; readonly port: number };
  #cut: Cut | null = null;
  #behind = "";
  #isDead = false;
  readonly #clients = new Set<Bun.Socket<Client>>();

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.#server = { hostname, port: Number(port) };
    this.#listener = Bun.listen<Client>({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: (client) => this.#open(client),
        data: (client, bytes) => this.#carry(client, Buffer.from(bytes)),
        close: async (client) => void (await client.data?.server)?.end(),
      },
    });
  }

  urlOf(url: string): string {
    const through = new URL(url);
    through.host = `127.0.0.1:${this.#listener.port}`;
    return through.href;
  }

  /** Drops the connection at the next COMMIT, or at the next one of a connection that has sent the text `behind`. */
  cutAtCommit(cut: Cut, behind = ""): void {
    this.#cut = cut;
    this.#behind = behind;
  }

  /** Drops all connections and refuses new ones until `mend`. */
  cut(): void {
    this.#isDead = true;
    for (const client of this.#clients) client.terminate();
  }

  mend(): void {
    this.#isDead = false;
  }

  [Symbol.dispose](): void {
    this.#listener.stop(true);
  }

  #open(client: Bun.Socket<Client>): void {
    if (this.#isDead) return void client.terminate();
    const server = Bun.connect({
      ...this.#server,
      data: { client },
      socket: {
        data: (socket, bytes) => this.#carryBack(socket.data.client, Buffer.from(bytes)),
        close: (socket) => void socket.data.client.end(),
      },
    });
    client.data = { server, isAwaited: false, commit: null, cut: null, withheld: Buffer.alloc(0) };
    this.#clients.add(client);
  }

  async #carry(client: Bun.Socket<Client>, bytes: Buffer): Promise<void> {
    const server = await client.data.server;
    client.data.isAwaited ||= this.#cut !== null && bytes.includes(this.#behind);
    client.data.commit = PREPARED_COMMIT.exec(bytes.toString("latin1"))?.[1] ?? client.data.commit;
    // In a Bind, the name of the statement follows the empty name of the portal.
    const isCommit = client.data.commit !== null && bytes.includes(`\0${client.data.commit}\0`);
    if (client.data.isAwaited && isCommit && this.#cut !== null) {
      client.data.cut = this.#cut;
      this.#cut = null;
    }
    if (client.data.cut === "before") client.terminate();
    else server.write(bytes);
  }

  #carryBack(client: Bun.Socket<Client>, bytes: Buffer): void {
    if (client.data.cut === null) return void client.write(bytes);
    client.data.withheld = Buffer.concat([client.data.withheld, bytes]);
    if (!client.data.withheld.includes(COMMITTED)) return;
    if (client.data.cut === "after") client.terminate();
    else this.cut();
  }
}
