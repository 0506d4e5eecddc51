/** Many callers at once: hundreds of blocked receives and event streams, and fifty claims of one task. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { forEach } from "../../tools/torture/crowd.ts";
import { openWaiting } from "../../tools/torture/idle.ts";
import { Hub, TempDir, listOf, until } from "./program.ts";
import { RawConnection, postOf } from "./raw.ts";

const NODES = 400;

/** Descriptors that the hub has open; none where the system does not tell. */
const openFiles = ({ pid }: Hub): number =>
  process.platform === "linux" ? readdirSync(`/proc/${pid}/fd`).length : 0;

const WHOLE = /^HTTP\/1\.1 200 [\s\S]*\r\n\r\n\{[\s\S]*\}$/;

// What they cost while they wait, and what they leave of memory, is for the torture to measure.
test(`a broadcast reaches ${NODES} receivers and ${NODES} streams, each once, and the hub closes those who hang up`, async () => {
  using dir = new TempDir();
  await using hub = await Hub.start({ data: dir.join("data") });
  const connectionsBefore = openFiles(hub);
  const { receivers, streams, cut } = await openWaiting(hub, NODES);
  expect(receivers.filter((one) => one.received !== "" || one.ending !== null)).toEqual([]);

  const sent = await hub.post("/message/broadcast", { from_node: "operator", content: "Wake up" });
  expect(listOf(sent.body["receivers"])).toHaveLength(NODES);
  await Promise.all(receivers.map((one) => one.got(WHOLE)));
  await Promise.all(streams.map((one) => one.got(/event: message\ndata: [^\n]+\n\n/)));

  // Exactly one each: what comes later than a whole round of other calls would have come by now.
  await forEach(NODES, async (i) => {
    const again = await hub.post("/message/receive", { node_id: `node-${i}` });
    expect(again.body["count"]).toBe(0);
  });
  const messageId = String(sent.body["message_id"]);
  for (const { received } of receivers) {
    expect(received.match(/"count":1,/g)).toHaveLength(1);
    expect(received.split(`"id":"${messageId}"`)).toHaveLength(2);
  }
  for (const { received } of streams) expect(received.split(`"id":"${messageId}"`)).toHaveLength(2);
  cut();
  await until(() => openFiles(hub) < connectionsBefore + 10);
  expect((await hub.stop()).code).toBe(0);
});

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
