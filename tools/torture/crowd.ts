/**
 * A crowd of event streams over bare sockets: opens them, sends them events, closes them. Also measures the memory of a
 * process once it has become quiet.
 */
import { MEMORY_EVERY_MS } from "../../src/domain/limits.ts";
import { type Hub, listOf, memoryMib } from "../../test/e2e/program.ts";
import { RawConnection, headOf } from "../../test/e2e/raw.ts";

const AT_ONCE = 100;
const LOOK_MS = 250;
/** Longer than two looks of the hub at itself: the first may still see the end of the work. */
const SETTLED_MS = 3 * MEMORY_EVERY_MS;

export async function forEach(count: number, work: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** The least that a process is seen to hold until it has held no less for a while, in MiB. */
export async function settledMib(pid: number, quietMs = SETTLED_MS): Promise<number> {
  let least = memoryMib(pid, "VmRSS");
  for (let leftMs = quietMs; leftMs > 0; leftMs -= LOOK_MS) {
    await Bun.sleep(LOOK_MS);
    const now = memoryMib(pid, "VmRSS");
    if (now < least - 0.5) leftMs = quietMs;
    least = Math.min(least, now);
  }
  return least;
}

export class Crowd {
  readonly #streams: readonly RawConnection[];

  private constructor(streams: readonly RawConnection[]) {
    this.#streams = streams;
  }

  /** Opens a stream for each of `count` nodes, which have to be registered: see `register`. */
  static async open({ port }: Hub, count: number): Promise<Crowd> {
    const streams: RawConnection[] = [];
    await forEach(count, async (i) => {
      const stream = await RawConnection.open(port);
      stream.send(headOf({ path: `/agent/sse?node_id=crowd-${i}` }));
      await stream.got(/retry: 3000\n\n/);
      streams.push(stream);
    });
    return new Crowd(streams);
  }

  /** Sends a broadcast and waits until every stream has it; how many were told, and how long the last one took. */
  async broadcast(hub: Hub): Promise<{ told: number; reached: number; ms: number }> {
    const startedMs = performance.now();
    const sent = await hub.post("/message/broadcast", { from_node: "operator", content: "To all of you" });
    const id = String(sent.body["message_id"]);
    await Promise.all(this.#streams.map((stream) => stream.got(new RegExp(`"id":"${id}".*\n\n`))));
    const ms = performance.now() - startedMs;
    const once = this.#streams.filter(({ received }) => received.split(`"id":"${id}"`).length === 2);
    return { told: listOf(sent.body["receivers"]).length, reached: once.length, ms };
  }

  get dropped(): number {
    return this.#streams.filter(({ ending }) => ending !== null).length;
  }

  leave(): void {
    for (const stream of this.#streams) stream.cut();
  }
}

export function register(hub: Hub, count: number): Promise<void> {
  return forEach(count, (i) => hub.register(`crowd-${i}`));
}

export type CrowdReport = {
  readonly kibEach: number;
  readonly told: number;
  readonly reached: number;
  readonly broadcastMs: number;
  readonly dropped: number;
  /** How much more the hub holds after a crowd has come and gone than before. */
  readonly leftMib: number;
};

/**
 * Two crowds come and go: what streams take shows with both, a collection that came early or late with one. The first
 * also warms up what a hub keeps permanently (compiled code, pages of its database), so what it leaves behind does not
 * count.
 */
export async function measureCrowd(hub: Hub, count: number): Promise<CrowdReport> {
  await register(hub, count);
  const warmUp = await Crowd.open(hub, Math.ceil(count / 10));
  await warmUp.broadcast(hub);
  warmUp.leave();
  let before = await settledMib(hub.pid);
  const first = await Crowd.open(hub, count);
  let kibEach = (((await settledMib(hub.pid)) - before) * 1024) / count;
  const { told, reached, ms } = await first.broadcast(hub);
  let { dropped } = first;
  first.leave();
  before = await settledMib(hub.pid);
  await register(hub, count); // their time may be over by now
  const second = await Crowd.open(hub, count);
  kibEach = Math.min(kibEach, (((await settledMib(hub.pid)) - before) * 1024) / count);
  dropped += second.dropped;
  second.leave();
  const leftMib = (await settledMib(hub.pid)) - before;
  return { kibEach, told, reached, broadcastMs: ms, dropped, leftMib };
}
