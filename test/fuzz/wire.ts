/**
 * A raw HTTP/1.1 client: one keep-alive connection, one request at a time. It can send requests that no client library
 * sends, and shows answers unchanged. It reconnects when the hub has closed the connection.
 */
import { HANG_MS } from "../support/hang.ts";

export type WireAnswer = {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
};

const HEAD_END = "\r\n\r\n";

export class Wire {
  readonly #port: number;
  #socket: Bun.Socket<Wire> | null = null;
  #chunks: Buffer[] = [];
  #unsent: Buffer = Buffer.alloc(0);
  #isHead = false;
  #waiting: PromiseWithResolvers<WireAnswer> | null = null;

  constructor(port: number) {
    this.#port = port;
  }

  /** Sends a request. Of an endless answer it awaits only the headers. Rejects when the answer is incomplete. */
  async exchange(bytes: Buffer, isHead: boolean): Promise<WireAnswer> {
    const used = this.#socket !== null;
    try {
      return await this.#try(bytes, isHead);
    } catch (error) {
      // The hub may close an idle connection just when the client uses it again.
      if (!used || !(error instanceof Closed)) throw error;
      return this.#try(bytes, isHead);
    }
  }

  close(): void {
    const socket = this.#socket;
    this.#socket = null; // first, for its end to be none of the next request's
    socket?.terminate();
  }

  async #try(bytes: Buffer, isHead: boolean): Promise<WireAnswer> {
    if (this.#socket && this.#chunks.length > 0)
      throw new Error(`bytes that nobody asked for: ${this.#chunks}`);
    this.#chunks = [];
    this.#socket ??= await Bun.connect({
      hostname: "127.0.0.1",
      port: this.#port,
      data: this,
      socket: HANDLERS,
    });
    const waiting = Promise.withResolvers<WireAnswer>();
    this.#waiting = waiting;
    this.#isHead = isHead;
    this.#unsent = bytes;
    const timer = setTimeout(() => waiting.reject(new Error("no answer in time")), HANG_MS);
    this.flush();
    try {
      return await waiting.promise;
    } finally {
      clearTimeout(timer);
      this.#waiting = null;
    }
  }

  flush(): void {
    const written = this.#socket?.write(this.#unsent) ?? 0;
    this.#unsent = this.#unsent.subarray(Math.max(written, 0));
  }

  received(chunk: Buffer): void {
    this.#chunks.push(chunk);
    if (!this.#waiting) return; // seen when the next request is sent
    try {
      const answer = this.#parse();
      if (!answer) return;
      const ends = answer.headers.get("connection") === "close" || isEndless(answer.headers);
      if (ends) this.close();
      this.#chunks = [];
      this.#waiting.resolve(answer);
    } catch (error) {
      this.close();
      this.#waiting.reject(error);
    }
  }

  ended(socket: Bun.Socket<Wire>): void {
    if (this.#socket !== socket) return;
    this.#socket = null;
    this.#waiting?.reject(new Closed("the connection was closed without a whole answer"));
  }

  #parse(): WireAnswer | null {
    const bytes =
      this.#chunks.length === 1 ? (this.#chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#chunks);
    this.#chunks = [bytes];
    const end = bytes.indexOf(HEAD_END);
    if (end === -1) return null;
    const [first = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
    const headers = new Map(
      lines.map((line) => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
      }),
    );
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1]);
    if (!status) throw new Error(`no HTTP answer: ${first}`);
    const body = bytes.subarray(end + HEAD_END.length);
    if (isEndless(headers)) return { status, headers, body: Buffer.alloc(0) };
    const bare = this.#isHead || status === 304 || status === 204;
    if (!bare && headers.has("transfer-encoding")) {
      const whole = dechunked(body);
      return whole && { status, headers, body: whole };
    }
    const length = bare ? 0 : Number(headers.get("content-length") ?? Number.NaN);
    if (Number.isNaN(length)) throw new Error(`an answer without its length: ${first}`);
    if (body.length < length) return null;
    if (body.length > length) throw new Error("bytes after the answer's end");
    return { status, headers, body };
  }
}

function isEndless(headers: ReadonlyMap<string, string>): boolean {
  return headers.get("content-type") === "text/event-stream";
}

/** Decodes a chunked body (RFC 9112 7.1); null while it is incomplete. */
function dechunked(body: Buffer): Buffer | null {
  const pieces: Buffer[] = [];
  for (let at = 0; ;) {
    const lineEnd = body.indexOf("\r\n", at);
    if (lineEnd === -1) return null;
    const line = body.toString("latin1", at, lineEnd);
    if (!/^[0-9a-f]+$/i.test(line)) throw new Error(`no length of a chunk: ${line}`);
    const start = lineEnd + 2;
    const length = Number.parseInt(line, 16);
    if (body.length < start + length + 2) return null;
    if (body.toString("latin1", start + length, start + length + 2) !== "\r\n")
      throw new Error("a chunk does not end where it says");
    at = start + length + 2;
    if (length > 0) pieces.push(body.subarray(start, start + length));
    else if (at < body.length) throw new Error("bytes after the answer's end");
    else return Buffer.concat(pieces);
  }
}

export class Closed extends Error {
  override readonly name = "Closed";
}

const HANDLERS: Bun.SocketHandler<Wire> = {
  data: (socket, chunk) => socket.data.received(chunk),
  drain: (socket) => socket.data.flush(),
  close: (socket) => socket.data.ended(socket),
  error: (socket) => socket.data.ended(socket),
};
