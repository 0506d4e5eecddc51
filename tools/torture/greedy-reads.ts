/**
 * Greedy reads: one caller with a weak key, or with none, asks for large answers over hundreds of connections, and reads
 * nothing, or reads on and on. What others notice of it: their heartbeats, lists, and receives of large messages.
 */
import { join } from "node:path";
import { CONTENT_MAX_BYTES } from "../../src/domain/limits.ts";
import { type Hub, memoryMib, run } from "../../test/e2e/program.ts";

/** As old as a connection gets that reads nothing: the hub cuts it off after 25 s. */
const AGE_MS = 24_000;
const TASKS = 450;
const DESCRIPTION = "d".repeat(60_000);
/** Large: a receive of it needs room. */
const CONTENT = "x".repeat(CONTENT_MAX_BYTES - 6_000);
const HEARTBEAT_EVERY_MS = 50;
const PAUSE_MS = 100;
/** A request that takes longer counts as this long. */
const PATIENCE_MS = 30_000;

export const GREEDY_READS = {
  "lists of a viewer, unread": { path: "/task/list", key: ["--role", "viewer"], reads: false },
  "lists of a bound key, unread": { path: "/task/list", key: ["--node", "greedy"], reads: false },
  "events of six kinds without a key": {
    path: "/events?limit=1000&kind=task.created,task.assigned,task.completed,message.sent,node.registered,task.failed",
    key: null,
    reads: true,
  },
  "events of a node without a key": { path: "/events?node_id=receiver", key: null, reads: true },
} as const;
export type GreedyRead = keyof typeof GREEDY_READS;

/** In ms, each from the beginning of a request to the end of its answer. */
export type Times = { readonly p50: number; readonly p99: number; readonly most: number };
export type Honest = { readonly heartbeats: Times; readonly lists: Times; readonly receives: Times };

export type GreedyReadsReport = {
  readonly before: Honest;
  readonly meanwhile: Honest;
  readonly grewMib: number;
};

/** @param hub of variant A, or of B for the longest lists */
export async function measureGreedyReads(
  hub: Hub,
  data: string,
  kind: GreedyRead,
  callers: number,
  ms: number,
): Promise<GreedyReadsReport> {
  const { path, key, reads } = GREEDY_READS[kind];
  for (const nodeId of ["greedy", "receiver", "beating"]) await hub.register(nodeId);
  for (let i = 0; i < TASKS; i++) await hub.post("/task/create", { title: `${i}`, description: DESCRIPTION });
  for (let i = 0; reads && i < 120; i++)
    await hub.post("/batch", {
      requests: Array.from({ length: 100 }, (_, n) => {
        return { path: "task/create", body: { title: `${n}`, description: "d", task_type: "none" } };
      }),
    });
  const secret = key && (await run(["keys", "add", "greedy", ...key, "--data", data])).stdout.trim();
  const before = await measureHonest(hub, ms);
  const beforeMib = memoryMib(hub.pid, "VmHWM");
  const words = [`${hub.port}`, `${callers}`, path, secret ?? "", reads ? "read" : `${AGE_MS}`];
  const crowd = Bun.spawn([process.execPath, join(import.meta.dir, "greedy-readers.ts"), ...words], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = crowd.stdout.getReader();
  await reader.read();
  const meanwhile = await measureHonest(hub, ms);
  await crowd.stdin.end();
  await crowd.exited;
  return { before, meanwhile, grewMib: memoryMib(hub.pid, "VmHWM") - beforeMib };
}

/** Three callers, each with one request after the other. A refused request counts with the time that it took. */
async function measureHonest(hub: Hub, ms: number): Promise<Honest> {
  const endMs = performance.now() + ms;
  const timesOf = async (pauseMs: number, timed: () => Promise<unknown>, before = timed): Promise<Times> => {
    const times: number[] = [];
    do {
      if (before !== timed) await before();
      const startedMs = performance.now();
      await timed();
      times.push(performance.now() - startedMs);
      await Bun.sleep(pauseMs);
    } while (performance.now() < endMs);
    times.sort((a, b) => a - b);
    const at = (share: number): number => times[Math.floor(times.length * share)] ?? Number.NaN;
    return { p50: at(0.5), p99: at(0.99), most: times.at(-1) ?? Number.NaN };
  };
  const call = (method: string, path: string, body?: object): Promise<unknown> =>
    hub
      .call(method, path, {
        ...(body ? { body: JSON.stringify(body) } : {}),
        signal: AbortSignal.timeout(PATIENCE_MS),
      })
      .catch((error: unknown) => {
        if (!(error instanceof DOMException)) throw error; // out of patience
      });
  const beat = () => call("POST", "/node/heartbeat", { node_id: "beating" });
  const list = () => call("GET", "/task/list?per_page=20");
  const send = () =>
    call("POST", "/message/send", { from_node: "op", to_node: "receiver", content: CONTENT });
  const receive = () => call("POST", "/message/receive", { node_id: "receiver" });
  const [heartbeats, lists, receives] = await Promise.all([
    timesOf(HEARTBEAT_EVERY_MS, beat),
    timesOf(PAUSE_MS, list),
    timesOf(PAUSE_MS, receive, send),
  ]);
  return { heartbeats, lists, receives };
}
