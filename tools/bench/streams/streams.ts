// A broadcast to 10,000 open event streams, of the hub and of a bare Bun.serve in the same run: how long after its
// request begins each stream has it. Both write the same bytes, from a request of the same kind, and have all their
// streams open at the same time; the broadcasts go in turns.
import { join } from "node:path";
import { makeDirectory } from "../children.ts";
import { startLoadClient } from "../load-client.ts";
import { readCpuMs } from "../machine.ts";
import { median } from "../median.ts";
import type { Options } from "../options.ts";
import { MESSAGE } from "../scenarios.ts";
import { type RunningServer, SECRET, startEcho, startHubOn } from "../server-under-test.ts";
import { Arrivals, type StreamJob, nowMs } from "./stream-job.ts";

const STREAMS = 10_000;
/** Processes of the clients: each has 5,000 sockets. A server has 10,000, so `ulimit -n` must allow some more. */
const CLIENTS = 4;
const BROADCASTS_IN_ROUND = 5;
/** Broadcasts of each server before the first that counts. */
const WARM_UPS = 3;
const BATCH = 100;
const SENDER = "bench-sender";

export type StreamSide = { p50Ms: number; p99Ms: number; lastMs: number; cpuMs: number | null };
export type StreamRow = { streams: number; hub: StreamSide; bare: StreamSide; ratio: number };

type Client = ReturnType<typeof startClient>;

const startClient = () =>
  startLoadClient<StreamJob, Arrivals>(
    [process.execPath, join(import.meta.dir, "stream-client.ts")],
    Arrivals,
  );

/** Opens the streams, sends the broadcasts in turns, and closes all. */
export async function measureStreams({ hub: command, dataRoot, rounds }: Options): Promise<StreamRow> {
  const hub = await startHubOn(command, makeDirectory(dataRoot));
  const bare = await startEcho([process.execPath, join(import.meta.dir, "bare-streams.ts")]);
  const clients = Array.from({ length: CLIENTS }, startClient);
  try {
    const nodeIds = Array.from({ length: STREAMS }, (_, index) => `bench-${String(index).padStart(5, "0")}`);
    await inBatches(hub.port, "node/register", [SENDER], (node_id) => ({ node_id, name: "Bench" }));
    await inBatches(hub.port, "node/register", nodeIds, (node_id) => ({ node_id, name: "Bench" }));
    await openAll(
      clients,
      hub.port,
      nodeIds.map((nodeId) => `/api/v1/agent/sse?node_id=${nodeId}`),
    );
    await openAll(
      clients,
      bare.port,
      nodeIds.map(() => "/"),
    );

    let frame = "";
    const ofHub = async (mark: string): Promise<StreamSide> => {
      const body = JSON.stringify({ from_node: SENDER, content: `${MESSAGE} ${mark}` });
      const { side, text } = await broadcast(clients, hub, mark, "/api/v1/message/broadcast", body);
      frame = (/id: [^]*\n\n/.exec(text)?.[0] ?? "").replace(mark, "MARK");
      return side;
    };
    const ofBare = async (mark: string): Promise<StreamSide> =>
      (await broadcast(clients, bare, mark, "/", frame.replace("MARK", mark))).side;
    const hubSides: StreamSide[] = [];
    const bareSides: StreamSide[] = [];
    for (let count = 0; count < WARM_UPS + rounds * BROADCASTS_IN_ROUND; count++) {
      // They must stay online.
      if (count % BROADCASTS_IN_ROUND === 0)
        await inBatches(hub.port, "node/heartbeat", nodeIds, (node_id) => ({ node_id }));
      const mark = `no. ${String(count).padStart(4, "0")}`;
      const sides = { hub: await ofHub(mark), bare: await ofBare(mark) };
      if (count < WARM_UPS) continue;
      hubSides.push(sides.hub);
      bareSides.push(sides.bare);
    }
    const ratio = median(hubSides.map(({ p50Ms }, at) => p50Ms / (bareSides[at]?.p50Ms ?? Number.NaN)));
    return { streams: STREAMS, hub: medians(hubSides), bare: medians(bareSides), ratio };
  } finally {
    await Promise.all([...clients, hub, bare].map((one) => one.stop()));
  }
}

async function openAll(clients: readonly Client[], port: number, paths: readonly string[]): Promise<void> {
  const share = Math.ceil(paths.length / clients.length);
  const open = (client: Client, at: number): Promise<Arrivals> =>
    client.run({ kind: "open", port, secret: SECRET, paths: paths.slice(at * share, (at + 1) * share) });
  await Promise.all(clients.map(open));
}

async function broadcast(
  clients: readonly Client[],
  { port, pid }: RunningServer,
  mark: string,
  path: string,
  body: string,
): Promise<{ side: StreamSide; text: string }> {
  await Promise.all(clients.map((client) => client.run({ kind: "expect", port, mark })));
  const cpuBeforeMs = readCpuMs(pid);
  const startMs = nowMs();
  await post(port, path, body);
  const arrivals = await Promise.all(clients.map((client) => client.run({ kind: "collect", port })));
  const cpuAfterMs = readCpuMs(pid);
  const tookMs = arrivals.flatMap(({ atMs }) => atMs.map((ms) => ms - startMs)).toSorted((a, b) => a - b);
  const at = (share: number): number => tookMs[Math.ceil(share * tookMs.length) - 1] ?? Number.NaN;
  const cpuMs = cpuBeforeMs === null || cpuAfterMs === null ? null : cpuAfterMs - cpuBeforeMs;
  return {
    side: { p50Ms: at(0.5), p99Ms: at(0.99), lastMs: at(1), cpuMs },
    text: arrivals[0]?.text ?? "",
  };
}

function medians(sides: readonly StreamSide[]): StreamSide {
  const of = (value: (side: StreamSide) => number): number => median(sides.map(value));
  return {
    p50Ms: of(({ p50Ms }) => p50Ms),
    p99Ms: of(({ p99Ms }) => p99Ms),
    lastMs: of(({ lastMs }) => lastMs),
    cpuMs: sides.some(({ cpuMs }) => cpuMs === null) ? null : of(({ cpuMs }) => cpuMs ?? 0),
  };
}

async function inBatches(
  port: number,
  path: string,
  nodeIds: readonly string[],
  bodyOf: (nodeId: string) => object,
): Promise<void> {
  for (let at = 0; at < nodeIds.length; at += BATCH) {
    const requests = nodeIds.slice(at, at + BATCH).map((nodeId) => ({ path, body: bodyOf(nodeId) }));
    const text = await post(port, "/api/v1/batch", JSON.stringify({ requests }));
    const refused = /"status":[3-9][^}]*\}/.exec(text)?.[0];
    if (refused !== undefined) throw new Error(`${path}: ${refused}`);
  }
}

/** By fetch: the list of 10,000 receivers comes in chunks, which wire.ts does not read. */
async function post(port: number, path: string, body: string): Promise<string> {
  const headers = { "Content-Type": "application/json", "X-Matrix-Secret": SECRET };
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", headers, body });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text.slice(0, 300)}`);
  return text;
}
