/** A network link between two machines that can fail: a TCP proxy. */
import { type Server, type Socket, connect, createServer } from "node:net";
import { OWN_HOST } from "../../test/support/keeper.ts";

/** Bytes are passed on in such parts when the link is slow. */
const PART_BYTES = 1_024;

export class Link implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isDown = false;
  #isStalled = false;
  #bytesPerSecond = Number.POSITIVE_INFINITY;
  /** To the caller, until the connection is cut. */
  #left = Number.POSITIVE_INFINITY;
  /** How often a connection was cut in the middle. */
  cuts = 0;

  private constructor(port: () => number) {
    this.#server = createServer((near) => {
      if (this.#isDown) return void near.destroy();
      const far = connect({ host: OWN_HOST, port: port() });
      for (const [from, to, isAnswer] of [
        [near, far, false],
        [far, near, true],
      ] as const) {
        this.#sockets.add(from);
        from.on("error", () => {}); // "close" follows
        from.on("close", () => {
          this.#sockets.delete(from);
          to.destroy();
        });
        void this.#carry(from, to, isAnswer);
      }
    });
  }

  /** @param port of the server behind it, which may change */
  static async open(port: () => number): Promise<Link> {
    const link = new Link(port);
    await new Promise<void>((resolve) => link.#server.listen(0, OWN_HOST, resolve));
    return link;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the link is closed");
    return `http://${OWN_HOST}:${address.port}`;
  }

  /** Refuses connections, and ends those that there are. */
  down(): void {
    this.#isDown = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Nothing arrives any more, and nobody is told: as when a cable is pulled. */
  stall(): void {
    this.#isStalled = true;
  }

  /** What was held up goes on: it was late, not lost. */
  resume(): void {
    this.#isStalled = false;
  }

  slow(bytesPerSecond: number): void {
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** Cuts each connection as soon as so many bytes of answers have passed in all. */
  cutAfter(bytes: number): void {
    this.#left = bytes;
  }

  up(): void {
    const wasStalled = this.#isStalled;
    this.#isDown = this.#isStalled = false;
    this.#bytesPerSecond = this.#left = Number.POSITIVE_INFINITY;
    if (wasStalled) for (const socket of this.#sockets) socket.destroy(); // TCP gives up, or goes on: here it has given up
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.down();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #carry(from: Socket, to: Socket, isAnswer: boolean): Promise<void> {
    try {
      for await (const chunk of from as AsyncIterable<Buffer>)
        for (let at = 0; at < chunk.length;) {
          while (this.#isStalled && !to.destroyed) await Bun.sleep(10);
          const isSlow = this.#bytesPerSecond !== Number.POSITIVE_INFINITY;
          const part = chunk.subarray(at, isSlow ? at + PART_BYTES : Math.min(chunk.length, at + this.#left));
          at += part.length;
          if (isSlow) await Bun.sleep((part.length / this.#bytesPerSecond) * 1_000);
          if (!to.write(part))
            await new Promise((resolve) => to.once("drain", resolve).once("close", resolve));
          if (isAnswer) this.#left -= part.length;
          if (isAnswer && this.#left <= 0) {
            this.cuts++;
            this.#left = Number.POSITIVE_INFINITY;
            return void to.destroy();
          }
        }
      to.end();
    } catch {
      to.destroy();
    }
  }
}
