/**
 * A TCP proxy between a hub and its PostgreSQL that can drop the connection at a COMMIT, which it detects in the bytes
 * from the hub. For tests of commits with an unknown outcome.
 */

/** When to drop the connection: before the server gets the COMMIT or after. `dead`: and refuse all traffic from then on. */
export type Cut = "before" | "after" | "after, dead";

type Server = Bun.Socket<{ client: Bun.Socket<Client> }>;
/** `commit`: the name under which the connection has prepared its COMMIT. */
type Client = { server: Promise<Server>; isAwaited: boolean; commit: string | null };

const PREPARED_COMMIT = /(\w+)\0COMMIT\0/;

export class Cable implements Disposable {
  readonly #listener: Bun.TCPSocketListener<Client>;
  readonly #server: { readonly hostname: string; readonly port: number };
  #cut: Cut | null = null;
  #behind = "";
  #isDead = false;
  readonly #clients = new Set<Bun.Socket<Client>>();

  /** `url` is the server's address. */
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

  /** The server's address through this proxy. */
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
        data: (socket, bytes) => void socket.data.client.write(bytes),
        close: (socket) => void socket.data.client.end(),
      },
    });
    client.data = { server, isAwaited: false, commit: null };
    this.#clients.add(client);
  }

  async #carry(client: Bun.Socket<Client>, bytes: Buffer): Promise<void> {
    const server = await client.data.server;
    client.data.isAwaited ||= this.#cut !== null && bytes.includes(this.#behind);
    client.data.commit = PREPARED_COMMIT.exec(bytes.toString("latin1"))?.[1] ?? client.data.commit;
    // In a Bind, the name of the statement follows the empty name of the portal.
    const isCommit = client.data.commit !== null && bytes.includes(`\0${client.data.commit}\0`);
    const cut = client.data.isAwaited && isCommit ? this.#cut : null;
    if (cut !== "before") server.write(bytes);
    if (cut === null) return;
    this.#cut = null;
    this.#isDead = cut === "after, dead";
    for (const one of this.#isDead ? this.#clients : [client]) one.terminate();
  }
}
