/** Waiting calls: the cost of a thousand blocked receives and a thousand event streams while nothing happens. */
import { MEMORY_EVERY_MS } from "../../src/domain/limits.ts";
import { type Hub, cpuMs, until } from "../../test/e2e/program.ts";
import { RawConnection, headOf, postOf } from "../../test/e2e/raw.ts";
import { forEach } from "./crowd.ts";

/** The calls that wait; `cut` hangs all of them up. */
export type Waiting = {
  readonly receivers: readonly RawConnection[];
  readonly streams: readonly RawConnection[];
  cut(): void;
};

export async function openWaiting(hub: Hub, nodes: number): Promise<Waiting> {
  const receivers: RawConnection[] = [];
  const streams: RawConnection[] = [];
  await forEach(nodes, (i) => hub.register(`node-${i}`));
  await forEach(nodes, async (i) => {
    const receiver = await RawConnection.open(hub.port);
    const body = { node_id: `node-${i}`, blocking: true, timeout: 300, count: 10 };
    receiver.send(postOf("/message/receive", body));
    receivers.push(receiver);
    const stream = await RawConnection.open(hub.port);
    stream.send(headOf({ path: `/agent/sse?node_id=node-${i}` }));
    streams.push(stream);
    await stream.got(/retry: 3000\n\n/);
  });
  const cut = (): void => [...receivers, ...streams].forEach((one) => one.cut());
  return { receivers, streams, cut };
}

export async function measureIdle(
  hub: Hub,
  nodes: number,
  ms: number,
): Promise<{ readonly calls: number; readonly share: number }> {
  const waiting = await openWaiting(hub, nodes);
  // What opening them cost does not count, nor what giving memory back costs.
  let before = cpuMs(hub.pid);
  await until(
    () => {
      const now = cpuMs(hub.pid);
      const usedMs = now - before;
      before = now;
      return usedMs === 0;
    },
    undefined,
    100,
  );
  await Bun.sleep(3 * MEMORY_EVERY_MS);
  const startedMs = performance.now();
  const usedBefore = cpuMs(hub.pid);
  await Bun.sleep(ms);
  const share = (cpuMs(hub.pid) - usedBefore) / (performance.now() - startedMs);
  waiting.cut();
  return { calls: 2 * nodes, share };
}
