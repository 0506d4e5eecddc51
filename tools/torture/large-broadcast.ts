/**
 * Broadcasts of the largest message to many streams at once: all of them get it, and the hub's memory does not grow with
 * their number.
 */
import { CONTENT_MAX_BYTES } from "../../src/domain/limits.ts";
import { type Hub, memoryMib } from "../../test/e2e/program.ts";
import { headOf } from "../../test/e2e/raw.ts";
import { forEach, register } from "./crowd.ts";

const BROADCASTS = 2;
const LONGEST_MS = 60_000;

export type LargeBroadcastReport = {
  readonly sentMib: number;
  readonly reached: number;
  readonly grewMib: number;
};

/** Only counts: a hundred megabytes of the same letter need not be kept. */
class Counter {
  bytes = 0;
  #wanted = 0;
  #onEnough: () => void = () => {};

  take(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes >= this.#wanted) this.#onEnough();
  }

  async gets(bytes: number): Promise<boolean> {
    this.#wanted = this.bytes + bytes;
    const enough = Promise.withResolvers<boolean>();
    this.#onEnough = () => enough.resolve(true);
    const timer = setTimeout(() => enough.resolve(false), LONGEST_MS);
    return enough.promise.finally(() => clearTimeout(timer));
  }
}

export async function measureLargeBroadcast(hub: Hub, count: number): Promise<LargeBroadcastReport> {
  await register(hub, count);
  const counters: Counter[] = [];
  const sockets: Bun.Socket[] = [];
  await forEach(count, async (i) => {
    const counter = new Counter();
    const open = counter.gets(1);
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port: hub.port,
      socket: { data: (_, bytes) => counter.take(bytes.length) },
    });
    socket.write(headOf({ path: `/agent/sse?node_id=crowd-${i}` }));
    await open;
    counters.push(counter);
    sockets.push(socket);
  });
  const before = memoryMib(hub.pid, "VmHWM");
  const reached = counters.map(() => true);
  for (let i = 0; i < BROADCASTS; i++) {
    const all = counters.map((counter) => counter.gets(CONTENT_MAX_BYTES));
    await hub.post("/message/broadcast", { from_node: "operator", content: "x".repeat(CONTENT_MAX_BYTES) });
    for (const [at, got] of (await Promise.all(all)).entries()) reached[at] &&= got;
  }
  const grewMib = memoryMib(hub.pid, "VmHWM") - before;
  for (const socket of sockets) socket.terminate();
  return {
    sentMib: (count * BROADCASTS * CONTENT_MAX_BYTES) / 2 ** 20,
    reached: reached.filter((one) => one).length,
    grewMib,
  };
}
