/**
 * A TCP proxy in front of a hub that injects faults: it cuts the connection before the hub gets the request, or after
 * the hub has answered, or answers 503 itself. It can also stand in for the hub, as a proxy that is configured anew, a
 * firewall or a captive portal does.
 */

type Fault = "request" | "answer" | "busy";
type Client = { readonly hub: Promise<Bun.Socket<Bun.Socket<Client>>>; fault: Fault | null };

const REQUEST = /^(?:GET|POST|DELETE) \/api\/v1\/(\S*)/;
const BUSY = "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const FAULTS: readonly Fault[] = ["answer", "request", "busy"];

export type ForeignResponse = { readonly status: number; readonly type: string; readonly body: string };

/** What proxies, firewalls and portals respond while they hide a hub. */
export const FOREIGN: readonly ForeignResponse[] = [
  { status: 404, type: "text/plain", body: "404 page not found" },
  { status: 403, type: "text/html", body: "<h1>Blocked</h1>" },
  { status: 401, type: "text/html", body: "<h1>Sign in</h1>" },
  { status: 302, type: "text/html", body: "" },
  { status: 200, type: "text/html", body: "<h1>Welcome to the network</h1>" },
  { status: 200, type: "application/json", body: `{"ok":true}` },
  { status: 404, type: "application/json", body: `{"error":"Not Found","status":404}` },
];

export class FaultyProxy implements Disposable {
  readonly #listener: Bun.TCPSocketListener<Client>;
  readonly #clients = new Set<Bun.Socket<Client>>();
  readonly #every: number;
  /** The port of the hub. */
  port: number;
  /** What it responds to every request, with a status and a type that are not a hub's; null: the hub responds. */
  foreign: ForeignResponse | null = null;
  /** How many requests were spoilt. */
  faults = 0;
  /** How many there were that it has passed on, or spoilt by turns. */
  requests = 0;

  /** Every n-th request is spoilt, in each way in turn; 0: none is. */
  constructor(port: number, every = 0) {
    this.port = port;
    this.#every = every;
    this.#listener = Bun.listen<Client>({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: (client) => this.#open(client),
        data: (client, bytes) => this.#carry(client, Buffer.from(bytes)),
        close: async (client) => {
          this.#clients.delete(client);
          (await client.data.hub.catch(() => null))?.end();
        },
      },
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#listener.port}`;
  }

  /** Cuts every open connection. */
  cut(): void {
    for (const client of this.#clients) client.terminate();
  }

  [Symbol.dispose](): void {
    this.#listener.stop(true);
  }

  #open(client: Bun.Socket<Client>): void {
    const hub = Bun.connect<Bun.Socket<Client>>({
      hostname: "127.0.0.1",
      port: this.port,
      data: client,
      socket: {
        data: ({ data }, bytes) => {
          if (data.data.fault === "answer") data.terminate();
          else data.write(bytes);
        },
        close: ({ data }) => void data.end(),
      },
    });
    hub.catch(() => client.terminate()); // the hub is away
    client.data = { hub, fault: null };
    this.#clients.add(client);
  }

  async #carry(client: Bun.Socket<Client>, bytes: Buffer): Promise<void> {
    if (REQUEST.test(bytes.toString("latin1", 0, 200))) {
      if (this.foreign !== null) return this.#respond(client, this.foreign);
      client.data.fault = this.#nextFault();
    }
    const { fault } = client.data;
    if (fault === "request") client.terminate();
    else if (fault === "busy") client.end(BUSY);
    else (await client.data.hub.catch(() => null))?.write(bytes);
  }

  #respond(client: Bun.Socket<Client>, { status, type, body }: ForeignResponse): void {
    this.faults++;
    client.end(
      `HTTP/1.1 ${status} Other\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
    );
  }

  #nextFault(): Fault | null {
    this.requests++;
    if (this.#every === 0 || this.requests % this.#every !== 0) return null;
    return FAULTS[this.faults++ % FAULTS.length] ?? null;
  }
}
