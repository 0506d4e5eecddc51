/**
 * Broadcasts of one byte to many nodes: the delay of other callers, and the disk space of each. And a hub that is
 * killed during a broadcast: all nodes have it, or none.
 */
import { type Hub, listOf } from "../../test/e2e/program.ts";
import { forEach } from "./crowd.ts";
import { type Latency, probe } from "./probe.ts";

const CALLERS = 8;

export type BroadcastReport = {
  readonly before: Latency;
  readonly meanwhile: Latency;
  readonly broadcasts: number;
  /** How many nodes each of them reached. */
  readonly reached: ReadonlySet<number>;
  readonly kibEach: number;
};

export async function measureBroadcasts(hub: Hub, nodes: number, probeMs: number): Promise<BroadcastReport> {
  await forEach(nodes, (i) => hub.register(`node-${i}`));
  await hub.register("probe");
  const sizeBytes = async (): Promise<number> => Number((await hub.get("/pg/diagnostic")).body["size_bytes"]);
  const before = await probe(hub, probeMs);
  const startBytes = await sizeBytes();
  const reached = new Set<number>();
  let broadcasts = 0;
  let isOver = false;
  const caller = async (): Promise<void> => {
    for (; !isOver; broadcasts++) {
      const { body } = await hub.post("/message/broadcast", { from_node: "operator", content: "x" });
      reached.add(Array.isArray(body["receivers"]) ? body["receivers"].length : -1);
    }
  };
  const callers = Array.from({ length: CALLERS }, caller);
  const meanwhile = await probe(hub, probeMs);
  isOver = true;
  await Promise.all(callers);
  const kibEach = ((await sizeBytes()) - startBytes) / 1_024 / broadcasts;
  return { before, meanwhile, broadcasts, reached, kibEach };
}

/** Sends a broadcast and kills the hub when it is answered, at the latest after some milliseconds; whether it was. */
export async function killDuringBroadcast(hub: Hub, content: string, afterMs: number): Promise<boolean> {
  const asked = hub.post("/message/broadcast", { from_node: "operator", content }).then(
    ({ status }) => status === 200,
    () => false,
  );
  await Promise.race([asked, Bun.sleep(afterMs)]);
  hub.program.child.kill("SIGKILL");
  await hub.program.ended;
  return asked;
}

/** How many of the nodes have each message in their mailbox, by its content. */
export async function countReached(hub: Hub, nodes: number): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  await forEach(nodes, async (i) => {
    const { body } = await hub.get(`/agent/messages?node_id=node-${i}&limit=1000`);
    for (const { content } of listOf(body["messages"])) {
      const text = String(content);
      counts.set(text, (counts.get(text) ?? 0) + 1);
    }
  });
  return counts;
}
