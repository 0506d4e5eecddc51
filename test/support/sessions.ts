/**
 * A session pool in front of PostgreSQL, for tests that open and close many hubs: starting and warming up a session takes
 * longer than most tests. Hubs connect to the pool as to the server. An idle session that its client leaves is reset
 * (DISCARD ALL) and given to the next client with the same startup settings.
 */
import { type Server, type Socket, connect, createServer } from "node:net";

const PROTOCOL = 196_608; // 3.0; other numbers ask for TLS or to cancel a query
const IDLE_MAX = 80;
const DISCARD = Buffer.from("Q\0\0\0\x10DISCARD ALL\0");

/** Splits one direction of the protocol into messages: a letter, a length that includes itself, a body. */
class Messages {
  readonly #head: number[] = [];
  #bodyLeft = 0;
  readonly #onMessage: (letter: string, lastByte: number) => void;

  constructor(onMessage: (letter: string, lastByte: number) => void) {
    this.#onMessage = onMessage;
  }

  follow(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) {
      const isHead = this.#head.length < 5;
      if (isHead) this.#head.push(bytes[at] ?? 0);
      const taken = isHead ? 1 : Math.min(this.#bodyLeft, bytes.length - at);
      at += taken;
      if (!isHead) this.#bodyLeft -= taken;
      else if (this.#head.length < 5) continue;
      else this.#bodyLeft = Buffer.from(this.#head).readUInt32BE(1) - 4;
      if (this.#bodyLeft > 0) continue;
      const [letter = 0] = this.#head.splice(0);
      this.#onMessage(String.fromCharCode(letter), bytes[at - 1] ?? 0);
    }
  }
}

class Session {
  readonly settings: string;
  readonly #server: Socket;
  readonly #said = new Messages((letter, status) => this.#onSaid(letter, status));
  /** The server's startup messages, repeated to each later client. */
  #greeting: Buffer | null = null;
  readonly #firstWords: Buffer[] = [];
  #client: Socket | null = null;
  /** Outstanding answers, including the greeting, and whether the client is in the middle of a request. */
  #awaited = 1;
  #isAsking = false;
  #isInTransaction = false;
  #onIdle: () => void = () => {};

  constructor({ hostname, port }: URL, startup: Buffer, onGone: () => void) {
    this.settings = startup.toString("latin1");
    this.#server = connect(Number(port), hostname);
    this.#server.setNoDelay(true);
    this.#server.write(startup);
    this.#server.on("data", (bytes: Buffer) => {
      if (this.#greeting === null) this.#firstWords.push(bytes);
      this.#client?.write(bytes);
      this.#said.follow(bytes);
    });
    this.#server.on("error", () => {});
    this.#server.on("close", () => {
      this.#client?.destroy();
      onGone();
    });
  }

  /** Assigns it to a client. `onIdle` is called when the client has left and the session is reset. */
  serve(client: Socket, onIdle: () => void): void {
    this.#client = client;
    this.#onIdle = onIdle;
    if (this.#greeting) client.write(this.#greeting);
    const asked = new Messages((letter) => {
      if (letter === "X") return this.#leave();
      this.#isAsking = letter !== "S" && letter !== "Q";
      if (!this.#isAsking) this.#awaited++;
    });
    client.on("data", (bytes: Buffer) => {
      asked.follow(bytes);
      if (this.#client === client) this.#server.write(bytes);
    });
    client.on("error", () => {});
    client.on("close", () => {
      if (this.#client === client) this.#leave();
    });
  }

  close(): void {
    this.#server.destroy();
  }

  #leave(): void {
    const client = this.#client;
    this.#client = null;
    client?.end();
    if (this.#awaited > 0 || this.#isAsking || this.#isInTransaction) return this.close();
    this.#awaited++;
    this.#server.write(DISCARD);
  }

  #onSaid(letter: string, status: number): void {
    if (letter !== "Z") return;
    this.#awaited--;
    this.#isInTransaction = status !== "I".charCodeAt(0);
    this.#greeting ??= Buffer.concat(this.#firstWords.splice(0));
    if (this.#client === null && this.#awaited === 0) this.#onIdle();
  }
}

export class Sessions {
  readonly #url: URL;
  readonly #server: Server;
  readonly #idle: Session[] = [];

  private constructor(url: URL, server: Server) {
    this.#url = url;
    this.#server = server;
    server.on("connection", (client: Socket) => this.#begin(client));
  }

  static async open(url: string): Promise<Sessions> {
    const server = createServer({ noDelay: true });
    const sessions = new Sessions(new URL(url), server);
    const { promise, resolve } = Promise.withResolvers<void>();
    server.listen(0, "127.0.0.1", resolve);
    await promise;
    return sessions;
  }

  urlOf(url: string): string {
    const address = this.#server.address();
    const through = new URL(url);
    if (address !== null && typeof address === "object") through.host = `127.0.0.1:${address.port}`;
    return through.href;
  }

  close(): void {
    this.#server.close();
    for (const session of this.#idle.splice(0)) session.close();
  }

  /** Reads the client's startup message, which arrives in one piece. */
  #begin(client: Socket): void {
    client.once("data", (startup: Buffer) => {
      if (startup.readUInt32BE(0) !== startup.length || startup.readUInt32BE(4) !== PROTOCOL)
        return void client.destroy();
      const session = this.#take(startup);
      session.serve(client, () => this.#giveBack(session));
    });
    client.on("error", () => {});
  }

  #take(startup: Buffer): Session {
    const settings = startup.toString("latin1");
    const at = this.#idle.findLastIndex((session) => session.settings === settings);
    const [used] = at < 0 ? [] : this.#idle.splice(at, 1);
    if (used) return used;
    const session = new Session(this.#url, startup, () => this.#forget(session));
    return session;
  }

  #giveBack(session: Session): void {
    this.#idle.push(session);
    if (this.#idle.length > IDLE_MAX) this.#idle.shift()?.close();
  }

  #forget(session: Session): void {
    const at = this.#idle.indexOf(session);
    if (at >= 0) this.#idle.splice(at, 1);
  }
}
