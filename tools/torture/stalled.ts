/**
 * A stream that does not read: the hub holds little for it and cuts it off, and after a reconnect with Last-Event-ID it
 * gets every event that it missed, once, in order.
 */
import { readdirSync } from "node:fs";
import { type Hub, memoryMib, until } from "../../test/e2e/program.ts";
import { headOf } from "../../test/e2e/raw.ts";

const NODE = "stalled";
const LONGEST_STALL_MS = 90_000;
const CONTENT_BYTES = 200 * 1024;
/**
 * Messages that are read before the stream stalls: until then the hub's heap grows with its garbage, to a size that
 * stays.
 */
const WARM_UP_MESSAGES = 150;
/** Ends a message's content, so that a message that is torn is not taken for one. */
const END = "end-of-content";

export type StalledReport = {
  /** What was sent while it did not read. */
  readonly unreadMib: number;
  /** How much more the hub held while it sent, at most. */
  readonly grewMib: number;
  /** When the hub cut it, since it stopped reading; null where nobody waited for that. */
  readonly cutAfterMs: number | null;
  /** Numbers of the messages as they came, over both connections. */
  readonly came: readonly number[];
};

/** A stream's client that can stop reading; keeps the events, and the id of the last whole one. */
class Reader {
  readonly numbers: number[] = [];
  lastEventId = 0;
  readonly ended: Promise<void>;
  readonly #socket: Bun.Socket;
  #partial = "";
  #onEvent: () => void = () => {};

  private constructor(socket: Bun.Socket, ended: Promise<void>) {
    this.#socket = socket;
    this.ended = ended;
  }

  static async open({ port }: Hub, lastEventId: number | null): Promise<Reader> {
    const ended = Promise.withResolvers<void>();
    const early: string[] = [];
    let reader: Reader | null = null;
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        data(_, bytes) {
          if (reader === null) early.push(bytes.toString());
          else reader.#take(bytes.toString());
        },
        close: () => ended.resolve(),
        error: () => ended.resolve(),
      },
    });
    reader = new Reader(socket, ended.promise);
    for (const text of early) reader.#take(text);
    const headers = lastEventId === null ? {} : { "Last-Event-ID": String(lastEventId) };
    socket.write(headOf({ path: `/agent/sse?node_id=${NODE}`, headers }));
    return reader;
  }

  pause(): void {
    this.#socket.pause();
  }

  cut(): void {
    this.#socket.terminate();
  }

  /** Resolves when it has this many, or the connection has ended. */
  async has(count: number): Promise<void> {
    const enough = Promise.withResolvers<void>();
    this.#onEvent = () => {
      if (this.numbers.length >= count) enough.resolve();
    };
    this.#onEvent();
    await Promise.race([enough.promise, this.ended]);
  }

  #take(text: string): void {
    const events = (this.#partial + text).split("\n\n");
    this.#partial = events.pop() ?? "";
    for (const event of events) {
      const [, id, number] = /id: (\d+)[\s\S]*"content":"(\d+) /.exec(event) ?? [];
      if (id === undefined || !event.includes(END)) continue;
      this.lastEventId = Number(id);
      this.numbers.push(Number(number));
    }
    this.#onEvent();
  }
}

/** @param awaitCut whether to wait for the hub to cut it (a minute), or to hang up where that is not looked at */
export async function measureStalled(hub: Hub, messages: number, awaitCut: boolean): Promise<StalledReport> {
  await hub.register(NODE);
  const send = (i: number): Promise<unknown> => {
    const content = `${i} ${"x".repeat(CONTENT_BYTES)} ${END}`;
    return hub.post("/message/send", { from_node: "operator", to_node: NODE, content });
  };
  const reader = await Reader.open(hub, null);
  for (let i = 0; i < WARM_UP_MESSAGES; i++) await send(i);
  await reader.has(WARM_UP_MESSAGES);
  const before = memoryMib(hub.pid, "VmRSS");
  reader.pause();
  const stalledMs = performance.now();
  let most = before;
  for (let i = WARM_UP_MESSAGES; i < messages; i++) {
    await send(i);
    most = Math.max(most, memoryMib(hub.pid, "VmRSS"));
  }
  const cutAfterMs = awaitCut ? await cutOf(hub, stalledMs) : null;
  reader.cut();
  const again = await Reader.open(hub, reader.lastEventId);
  await again.has(messages - reader.numbers.length);
  again.cut();
  return {
    unreadMib: ((messages - WARM_UP_MESSAGES) * CONTENT_BYTES) / 2 ** 20,
    grewMib: most - before,
    cutAfterMs,
    came: [...reader.numbers, ...again.numbers],
  };
}

/** When the hub closes its end, which a client that does not read is not told: the process has one descriptor less. */
async function cutOf({ pid }: Hub, stalledMs: number): Promise<number> {
  const open = (): number => readdirSync(`/proc/${pid}/fd`).length;
  await Bun.sleep(1_000); // the connections of the sends are gone by then
  const before = open();
  await until(() => open() < before, LONGEST_STALL_MS, 100);
  return performance.now() - stalledMs;
}
