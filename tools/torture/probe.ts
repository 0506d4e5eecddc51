/** The latency of other requests meanwhile: a few connections, each with one request after the other. */
import { Connection, encodeRequest } from "../bench/wire.ts";
import { type Hub, SECRET } from "../../test/e2e/program.ts";

const CALLERS = 4;
/** Others are no load test: between two requests a caller does something else. */
const PAUSE_MS = 2;

export type Latency = {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  readonly count: number;
};

/** Asks until `ms` are over; reads and writes in turns. The node `probe` has to be registered. */
export async function probe(hub: Hub, ms: number): Promise<Latency> {
  const requests = [
    encodeRequest("POST", "/api/v1/node/heartbeat", SECRET, JSON.stringify({ node_id: "probe" })),
    encodeRequest("GET", "/api/v1/status", SECRET, null),
    encodeRequest("POST", "/api/v1/message/receive", SECRET, JSON.stringify({ node_id: "probe" })),
  ];
  const tookMs: number[] = [];
  const endMs = performance.now() + ms;
  const caller = async (): Promise<void> => {
    const connection = await Connection.open(hub.port);
    for (let i = 0; performance.now() < endMs; i++) {
      const startedMs = performance.now();
      const { status } = await connection.exchange(requests[i % requests.length] ?? new Uint8Array());
      tookMs.push(performance.now() - startedMs);
      if (status !== 200) throw new Error(`the probe was answered ${status}`);
      await Bun.sleep(PAUSE_MS);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  tookMs.sort((a, b) => a - b);
  const at = (share: number): number => tookMs[Math.floor(tookMs.length * share)] ?? Number.NaN;
  return {
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    longestMs: tookMs.at(-1) ?? Number.NaN,
    count: tookMs.length,
  };
}
