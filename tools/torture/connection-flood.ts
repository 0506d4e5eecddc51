/**
 * A flood of connections that ask for nothing more, for a hub with few file descriptors: heads that stop halfway, and
 * connections that stay open after a request, a wait or a HEAD. The hub must live, not spin, and serve who has the secret.
 */
import { join } from "node:path";
import { type Hub, cpuMs } from "../../test/e2e/program.ts";
import { HonestClient } from "./burst.ts";

/** What a stranger sends on each connection before it falls silent. */
export const FLOODS = {
  "half a head": "GET /api/v1/status HTTP/1.1\r\nHost",
  "a request": "GET /api/v1/status HTTP/1.1\r\nHost: x\r\n\r\n",
  "half a head after a request": "GET /api/v1/status HTTP/1.1\r\nHost: x\r\n\r\nGET /api",
  "a wait": "GET /api/v1/poll?timeout=0.001 HTTP/1.1\r\nHost: x\r\n\r\n",
  "a HEAD of a stream": "HEAD /api/v1/events/stream HTTP/1.1\r\nHost: x\r\n\r\n",
} as const;
export type Flood = keyof typeof FLOODS;

export type FloodReport = {
  readonly opened: number;
  readonly refused: number;
  /** Of heartbeats on a connection that is kept, and opened again if the hub closes it. */
  readonly honestP99Ms: number;
  /** Of GET /healthz on a connection each. */
  readonly healthP50Ms: number;
  readonly healthLongestMs: number;
  readonly requests: number;
  /** Of one core, once all have connected. */
  readonly cpuShare: number;
};

const BEAT_EVERY_MS = 50;
const DEAD_AFTER_MS = 30_000;
/** Connections that are opened together: fewer than the backlog of a listening socket, which the system bounds. */
const TOGETHER = 200;
/** One process opens no more. */
const CALLERS_PER_PROCESS = 8_000;

/** Opens so many connections as fast as it can, and keeps them open for `holdMs` after the last. */
export async function measureFlood(
  hub: Hub,
  kind: Flood,
  count: number,
  holdMs: number,
): Promise<FloodReport> {
  await hub.register("honest");
  let isOver = false;
  const client = new HonestClient(hub.port);
  const kept = repeat(
    () => isOver,
    () => client.beat(),
  );
  const health = repeat(
    () => isOver,
    () => freshHealthCheck(hub.port),
  );
  const processes = Math.ceil(count / CALLERS_PER_PROCESS);
  const crowds = Array.from({ length: processes }, () =>
    startCallers(hub.port, kind, Math.ceil(count / processes), Math.ceil(TOGETHER / processes)),
  );
  const both = Promise.all([kept, health]);
  const counts = await Promise.race([Promise.all(crowds.map(({ ready }) => ready)), both.then(() => [])]);
  const cpuBefore = cpuMs(hub.pid);
  await Bun.sleep(holdMs);
  const cpuShare = (cpuMs(hub.pid) - cpuBefore) / holdMs;
  isOver = true;
  const [keptMs, healthMs] = await both;
  await Promise.all(crowds.map((crowd) => crowd.hangUp()));
  client.close();
  return {
    opened: counts.reduce((sum, { opened }) => sum + opened, 0),
    refused: counts.reduce((sum, { refused }) => sum + refused, 0),
    honestP99Ms: at(keptMs, 0.99),
    healthP50Ms: at(healthMs, 0.5),
    healthLongestMs: Math.max(...healthMs),
    requests: keptMs.length + healthMs.length,
    cpuShare,
  };
}

/** Runs `once` each 50 ms until it is over. Returns how long each took, in milliseconds. */
async function repeat(isOver: () => boolean, once: () => Promise<number>): Promise<number[]> {
  const tookMs: number[] = [];
  while (!isOver()) {
    const ms = await once();
    tookMs.push(ms);
    await Bun.sleep(Math.max(BEAT_EVERY_MS - ms, 0));
  }
  return tookMs;
}

/** GET /healthz on a new connection, again until it is answered with 200: how long that took, in milliseconds. */
async function freshHealthCheck(port: number): Promise<number> {
  const startedMs = performance.now();
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/healthz`, {
      keepalive: false,
      signal: AbortSignal.timeout(DEAD_AFTER_MS),
    }).catch(() => null);
    await response?.text().catch(() => null);
    const ms = performance.now() - startedMs;
    if (response?.status === 200) return ms;
    if (ms > DEAD_AFTER_MS) throw new Error(`/healthz did not respond within ${DEAD_AFTER_MS} ms`);
    await Bun.sleep(10);
  }
}

function at(tookMs: readonly number[], share: number): number {
  return tookMs.toSorted((a, b) => a - b)[Math.floor(tookMs.length * share)] ?? Number.NaN;
}

type Counts = { readonly opened: number; readonly refused: number };

function startCallers(
  port: number,
  kind: Flood,
  count: number,
  together: number,
): { readonly ready: Promise<Counts>; hangUp(): Promise<unknown> } {
  const program = join(import.meta.dir, "connection-flood-callers.ts");
  const words = [String(port), String(count), String(together), FLOODS[kind]];
  const child = Bun.spawn([process.execPath, program, ...words], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const read = async (): Promise<Counts> => {
    const { value } = await child.stdout.getReader().read();
    const counts: Counts = JSON.parse(new TextDecoder().decode(value));
    return counts;
  };
  return {
    ready: read(),
    async hangUp() {
      await child.stdin.end();
      return child.exited;
    },
  };
}
