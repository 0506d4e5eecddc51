/** Callers of long lists: the latency of other requests, and the hub's memory for callers that do not read. */
import { type Hub, memoryMib } from "../../test/e2e/program.ts";
import { headOf } from "../../test/e2e/raw.ts";
import { forEach } from "./crowd.ts";
import { type Latency, probe } from "./probe.ts";

const LISTERS = 8;
const DESCRIPTION = "d".repeat(60_000);

export type NodeListReport = {
  readonly before: Latency;
  readonly meanwhile: Latency;
  readonly lists: number;
};

/** Some callers ask for all nodes again and again, while others ask for little. */
export async function measureNodeList(hub: Hub, nodes: number, probeMs: number): Promise<NodeListReport> {
  await forEach(nodes, (i) => hub.register(`node-${i}`));
  await hub.register("probe");
  const before = await probe(hub, probeMs);
  let lists = 0;
  let isOver = false;
  const lister = async (): Promise<void> => {
    for (; !isOver; lists++) await (await fetch(`${hub.api}/node/list`)).bytes();
  };
  const listers = Array.from({ length: LISTERS }, lister);
  const meanwhile = await probe(hub, probeMs);
  isOver = true;
  await Promise.all(listers);
  return { before, meanwhile, lists };
}

export type StalledListReport = {
  readonly pageMib: number;
  readonly grewMib: number;
  readonly meanwhile: Latency;
};

/** So many callers ask for a page of 500 large tasks and do not read it. The hub has to speak variant B. */
export async function measureStalledLists(
  hub: Hub,
  callers: number,
  probeMs: number,
): Promise<StalledListReport> {
  const tasks = 500;
  await forEach(tasks, async (i) => {
    await hub.post("/task/create", { title: `${i}`, description: DESCRIPTION });
  });
  await hub.register("probe");
  const before = memoryMib(hub.pid, "VmHWM");
  const sockets: Bun.Socket[] = [];
  await forEach(callers, async () => {
    const socket = await Bun.connect({ hostname: "127.0.0.1", port: hub.port, socket: { data: () => {} } });
    socket.pause();
    socket.write(headOf({ path: "/task/list" }));
    sockets.push(socket);
  });
  const meanwhile = await probe(hub, probeMs);
  const grewMib = memoryMib(hub.pid, "VmHWM") - before;
  for (const socket of sockets) socket.terminate();
  return { pageMib: (tasks * DESCRIPTION.length) / 2 ** 20, grewMib, meanwhile };
}
