/** A simple event stream client that reads one event after the other. */

export type StreamEvent = { readonly id: string; readonly event: string; readonly data: string };

export class SseReader implements AsyncDisposable {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  }

  /** Opens a stream; with `lastEventId` it resumes after that event. */
  static async open(url: string, secret: string, lastEventId?: string): Promise<SseReader> {
    const headers = {
      "X-Matrix-Secret": secret,
      ...(lastEventId !== undefined && { "Last-Event-ID": lastEventId }),
    };
    const { body } = await fetch(url, { headers });
    if (!body) throw new Error("a stream without a body");
    return new SseReader(body);
  }

  async next(kind: string): Promise<StreamEvent> {
    for (;;) {
      const event = await this.read();
      if (event === null) throw new Error("the stream has ended");
      if (event.event === kind) return event;
    }
  }

  async read(): Promise<StreamEvent | null> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end === -1) {
        const { value, done } = await this.#reader.read();
        if (done) return null;
        this.#text += this.#decoder.decode(value, { stream: true });
        continue;
      }
      const lines = this.#text.slice(0, end).split("\n");
      this.#text = this.#text.slice(end + 2);
      const field = (name: string): string =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? "";
      const event = field("event");
      if (event !== "") return { id: field("id"), event, data: field("data") };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader.cancel();
  }
}
