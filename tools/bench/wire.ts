// HTTP/1.1 over a raw socket, just enough for a load client: one keep-alive connection, one request
// outstanding, answers framed by Content-Length. Invariant: bytes that do not parse, an unexpected answer and a
// hang-up all reach `onFail`; nothing is skipped. It must not know tasks or nodes, and it must stay cheap, because
// it uses CPU time that the measured server lacks.

const HEAD_END = Buffer.from("\r\n\r\n");
const LENGTH_HEADER = Buffer.from("\r\nContent-Length: ");
const ZERO = 48;
const NINE = 57;

/** One whole answer. `bytes` also holds the head; the body is `bytes[bodyStart..]`, to the end. */
export type Answer = { status: number; bytes: Buffer; bodyStart: number };

/**
 * Parses the answer that `bytes` begins with.
 * Returns null while it is incomplete. Throws on what is not HTTP/1.1 with a Content-Length, and on bytes
 * after the answer's end (there is only ever one request outstanding).
 */
export function parseAnswer(bytes: Buffer): Answer | null {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd < 0) return null;
  // "HTTP/1.1 200": the status is the three digits after the first blank.
  const status = decimalAt(bytes, 9);
  if (status < 100 || status > 599) throw new Error(`no HTTP answer: ${excerpt(bytes)}`);
  const bodyStart = headEnd + HEAD_END.length;
  const end = bodyStart + contentLength(bytes, headEnd);
  if (bytes.length < end) return null;
  if (bytes.length > end) throw new Error(`bytes after the answer: ${excerpt(bytes)}`);
  return { status, bytes, bodyStart };
}

function contentLength(bytes: Buffer, headEnd: number): number {
  const at = bytes.indexOf(LENGTH_HEADER);
  if (at >= 0 && at < headEnd) return decimalAt(bytes, at + LENGTH_HEADER.length);
  // The slow path: another spelling of the header, which is as valid.
  const match = /\r\ncontent-length:[ \t]*(\d+)/i.exec(bytes.toString("latin1", 0, headEnd));
  if (match?.[1] === undefined) throw new Error(`an answer without Content-Length: ${excerpt(bytes)}`);
  return Number(match[1]);
}

function decimalAt(bytes: Buffer, start: number): number {
  let value = 0;
  for (let at = start; ; at++) {
    const digit = bytes[at];
    if (digit === undefined || digit < ZERO || digit > NINE) return value;
    value = value * 10 + digit - ZERO;
  }
}

function excerpt(bytes: Buffer): string {
  return JSON.stringify(bytes.toString("latin1", 0, 300));
}

/** One keep-alive connection. Set `onAnswer` and `onFail` before the first `send`. */
export class Connection {
  onAnswer: (answer: Answer) => void = () => {};
  onFail: (error: Error) => void = () => {};
  #socket: Bun.Socket<Connection> | null = null;
  #partial: Buffer | null = null;
  #unsent: Uint8Array | null = null;
  #isWaiting = false;
  #closed = false;

  /** Connects to 127.0.0.1:port; rejects when that is refused. */
  static async open(port: number): Promise<Connection> {
    const connection = new Connection();
    const socket = await Bun.connect<Connection>({
      hostname: "127.0.0.1",
      port,
      data: connection,
      socket: HANDLERS,
    });
    socket.setNoDelay(true);
    connection.#socket = socket;
    return connection;
  }

  /** Sends one whole request. The caller must not change `bytes` before the answer. */
  send(bytes: Uint8Array): void {
    this.#isWaiting = true;
    this.#write(bytes);
  }

  /** Sends one request and waits for its answer; for the work around a measurement, not in it. */
  exchange(bytes: Uint8Array): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.onAnswer = resolve;
      this.onFail = reject;
      this.send(bytes);
    });
  }

  close(): void {
    this.#closed = true;
    this.#socket?.terminate();
  }

  received(chunk: Buffer): void {
    try {
      if (!this.#isWaiting) throw new Error(`an answer to no request: ${excerpt(chunk)}`);
      const bytes = this.#partial === null ? chunk : Buffer.concat([this.#partial, chunk]);
      const answer = parseAnswer(bytes);
      this.#partial = answer === null ? bytes : null;
      if (answer === null) return;
      this.#isWaiting = false;
      this.onAnswer(answer);
    } catch (error) {
      this.#fail(error instanceof Error ? error.message : String(error));
    }
  }

  drained(): void {
    const rest = this.#unsent;
    this.#unsent = null;
    if (rest !== null) this.#write(rest);
  }

  hungUp(reason: string): void {
    if (!this.#closed) this.#fail(reason);
  }

  #write(bytes: Uint8Array): void {
    const socket = this.#socket;
    if (socket === null || this.#closed) return this.#fail("send on a closed connection");
    const written = socket.write(bytes);
    if (written < bytes.length) this.#unsent = bytes.subarray(Math.max(written, 0));
  }

  #fail(reason: string): void {
    this.close();
    this.onFail(new Error(reason));
  }
}

const HANDLERS: Bun.SocketHandler<Connection> = {
  data: (socket, chunk) => socket.data.received(chunk),
  drain: (socket) => socket.data.drained(),
  close: (socket) => socket.data.hungUp("the server closed the connection"),
  error: (socket, error) => socket.data.hungUp(`socket error: ${error.message}`),
};

/** Encodes one request, the same bytes for every server: method, path, secret and JSON body (null: none). */
export function encodeRequest(method: string, path: string, secret: string, body: string | null): Buffer {
  const head = [`${method} ${path} HTTP/1.1`, "Host: 127.0.0.1", `X-Matrix-Secret: ${secret}`];
  if (body !== null) {
    head.push("Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`);
  }
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${body ?? ""}`);
}
