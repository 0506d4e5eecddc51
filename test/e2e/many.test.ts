/**
 * A thousand blocked receivers and a thousand event streams: they cost nothing while they wait, and one broadcast reaches
 * every one of them, once.
 */
import { expect, test } from "bun:test";
import { MEMORY_EVERY_MS } from "../../src/domain/limits.ts";
import { Hub, TempDir, cpuMs, listOf, until } from "./program.ts";
import { RawConnection, headOf, postOf } from "./raw.ts";

const NODES = 1_000;
const WATCHED_MS = 2_000;
/** Of one core. */
const CPU_MAX = 0.03;
const AT_ONCE = 50;

/** Runs something for every number below `count`, some of them at once. */
async function forEach(count: number, work: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

const WHOLE = /^HTTP\/1\.1 200 [\s\S]*\r\n\r\n\{[\s\S]*\}$/;

test.skipIf(process.platform !== "linux")(
  `${NODES} receivers and ${NODES} streams${process.platform === "linux" ? "" : " (needs /proc)"}`,
  async () => {
    using dir = new TempDir();
    await using hub = await Hub.start({ data: dir.join("data") });
    const receivers: RawConnection[] = [];
    const streams: RawConnection[] = [];
    await forEach(NODES, (i) => hub.register(`node-${i}`));
    await forEach(NODES, async (i) => {
      const receiver = await RawConnection.open(hub.port);
      receiver.send(
        postOf("/message/receive", { node_id: `node-${i}`, blocking: true, timeout: 120, count: 10 }),
      );
      receivers.push(receiver);
      const stream = await RawConnection.open(hub.port);
      stream.send(headOf({ path: `/agent/sse?node_id=node-${i}` }));
      streams.push(stream);
      await stream.got(/retry: 3000\n\n/);
    });

    // Quiet first: what opening them cost is not what waiting costs, nor is giving back what that took.
    let before = cpuMs(hub.pid);
    await until(
      () => {
        const now = cpuMs(hub.pid);
        const usedMs = now - before;
        before = now;
        return usedMs === 0;
      },
      10_000,
      100,
    );
    await Bun.sleep(3 * MEMORY_EVERY_MS);
    const startedMs = performance.now();
    const usedBefore = cpuMs(hub.pid);
    await Bun.sleep(WATCHED_MS); // a measurement: time is what it is over
    const share = (cpuMs(hub.pid) - usedBefore) / (performance.now() - startedMs);
    console.log(`${2 * NODES} waiting: ${(share * 100).toFixed(1)} % of a core`);
    expect(share).toBeLessThan(CPU_MAX);
    expect(receivers.filter((one) => one.received !== "" || one.ending !== null)).toEqual([]);

    const sentMs = performance.now();
    const sent = await hub.post("/message/broadcast", { from_node: "operator", content: "Wake up" });
    expect(listOf(sent.body["receivers"])).toHaveLength(NODES);
    await Promise.all(receivers.map((one) => one.got(WHOLE)));
    await Promise.all(streams.map((one) => one.got(/event: message\ndata: [^\n]+\n\n/)));
    console.log(`a broadcast reached all ${2 * NODES} within ${Math.round(performance.now() - sentMs)} ms`);

    // Exactly one each: what comes later than a whole round of other calls would have come by now.
    await forEach(NODES, async (i) => {
      const again = await hub.post("/message/receive", { node_id: `node-${i}` });
      expect(again.body["count"]).toBe(0);
    });
    const messageId = String(sent.body["message_id"]);
    for (const { received } of receivers) {
      expect(received.match(/"count":1,/g)).toHaveLength(1);
      expect(received.split(messageId)).toHaveLength(2);
    }
    for (const { received } of streams) expect(received.split(`"id":"${messageId}"`)).toHaveLength(2);
    for (const one of [...receivers, ...streams]) one.cut();
    expect((await hub.stop()).code).toBe(0);
  },
);

test("of 50 simultaneous claims over 50 connections one wins", async () => {
  using dir = new TempDir();
  await using hub = await Hub.start({ data: dir.join("data") });
  const nodes = Array.from({ length: 50 }, (_, i) => `node-${i}`);
  for (const nodeId of nodes) await hub.register(nodeId);
  for (let round = 0; round < 5; round++) {
    const { body } = await hub.post("/task/create", { title: "One for all", description: "Be quick" });
    const connections = await Promise.all(nodes.map(() => RawConnection.open(hub.port)));
    for (const [i, connection] of connections.entries()) {
      connection.send(postOf("/task/claim", { task_id: body["task_id"], node_id: nodes[i] }));
    }
    await Promise.all(connections.map((one) => one.got(/^HTTP\/1\.1 \d{3} [\s\S]*\r\n\r\n\{[\s\S]*\}$/)));
    const statuses = connections.map((one) => one.received.slice(9, 12)).toSorted();
    expect(statuses).toEqual(["200", ...Array.from({ length: 49 }, () => "409")]);
    for (const one of connections) one.cut();
  }
});
