/**
 * HTTP over raw sockets, for what fetch cannot do: thousands of connections at once, a body that stops halfway, the very
 * bytes of an answer. One request a connection.
 */
import { SECRET } from "./program.ts";

export type RawHead = {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** The head of a request that carries the secret. */
export function headOf({ method = "GET", path, headers = {} }: RawHead): string {
  const all = { Host: "127.0.0.1", "X-Matrix-Secret": SECRET, ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return `${method} /api/v1${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`;
}

/** A POST of JSON with its whole head and body. */
export function postOf(path: string, body: object): string {
  const text = JSON.stringify(body);
  const headers = { "Content-Type": "application/json", "Content-Length": String(Buffer.byteLength(text)) };
  return headOf({ method: "POST", path, headers }) + text;
}

/** One connection: what has come so far, and whether and how it ended. */
export class RawConnection {
  received = "";
  /** How the other side ended it; null while it is open. */
  ending: "closed" | "error" | null = null;
  readonly #looks = new Set<() => void>();
  #socket: Bun.Socket<RawConnection> | null = null;
  #unsent: Uint8Array = new Uint8Array();

  static async open(port: number): Promise<RawConnection> {
    const connection = new RawConnection();
    connection.#socket = await Bun.connect<RawConnection>({
      hostname: "127.0.0.1",
      port,
      data: connection,
      socket: HANDLERS,
    });
    return connection;
  }

  /** Sends, now or as soon as the socket takes it. */
  send(data: string | Uint8Array): void {
    const bytes = Buffer.concat([this.#unsent, Buffer.from(data)]);
    const taken = this.#socket?.write(bytes) ?? 0;
    this.#unsent = bytes.subarray(Math.max(taken, 0));
  }

  /** Resolves when what has come matches, rejects when the connection ends without. */
  async got(pattern: RegExp): Promise<RegExpExecArray> {
    const found = Promise.withResolvers<RegExpExecArray>();
    const look = (): void => {
      const match = pattern.exec(this.received);
      if (match) found.resolve(match);
      else if (this.ending !== null)
        found.reject(new Error(`${this.ending} without ${pattern}: ${this.received}`));
    };
    this.#looks.add(look);
    look();
    return found.promise.finally(() => this.#looks.delete(look));
  }

  /** Resolves when the other side has ended the connection. */
  async ended(): Promise<"closed" | "error"> {
    const ended = Promise.withResolvers<"closed" | "error">();
    const look = (): void => {
      if (this.ending !== null) ended.resolve(this.ending);
    };
    this.#looks.add(look);
    look();
    return ended.promise.finally(() => this.#looks.delete(look));
  }

  /** Hangs up without a farewell. */
  cut(): void {
    this.#socket?.terminate();
  }

  /** Socket events; not for callers. */
  onData(bytes: Buffer): void {
    this.received += bytes.toString("latin1");
    this.#look();
  }

  onDrain(): void {
    this.send("");
  }

  onEnd(ending: "closed" | "error"): void {
    this.ending ??= ending;
    this.#look();
  }

  #look(): void {
    for (const look of this.#looks) look();
  }
}

const HANDLERS: Bun.SocketHandler<RawConnection> = {
  data: (socket, bytes) => socket.data.onData(bytes),
  drain: (socket) => socket.data.onDrain(),
  close: (socket) => socket.data.onEnd("closed"),
  error: (socket) => socket.data.onEnd("error"),
};

const BOUNDARY = "e2e-boundary";

/** An upload in three pieces: its head for a body with so many bytes of file, what comes before them and after. */
export function uploadOf(fileBytes: number): { head: string; before: string; after: string } {
  const before =
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n` +
    "Content-Type: application/octet-stream\r\n\r\n";
  const after = `\r\n--${BOUNDARY}--\r\n`;
  const length = before.length + fileBytes + after.length;
  const headers = {
    "Content-Type": `multipart/form-data; boundary=${BOUNDARY}`,
    "Content-Length": String(length),
  };
  return { head: headOf({ method: "POST", path: "/file/upload", headers }), before, after };
}
