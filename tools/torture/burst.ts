/**
 * Bursts: thousands of callers without the secret who all send a request at once. The hub must live, and a client with
 * the secret must be served meanwhile.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Connection, encodeRequest } from "../bench/wire.ts";
import { type Hub, SECRET, memoryMib } from "../../test/e2e/program.ts";

/** Where the bursts go: a POST that needs the secret on every variant. */
export const POST_PATH = "/api/v1/node/register";

export type Burst = {
  readonly callers: number;
  readonly announcedBytes: number;
  readonly sentBytes: number;
  /** A header line of theirs, for example a wrong secret; "" for none. */
  readonly header?: string;
};

export type BurstReport = {
  /** How many callers got which status, or "closed", "reset", "refused", "pending". */
  readonly outcomes: Readonly<Record<string, number>>;
  /** How long the heartbeats with the secret took, one each 50 ms, during the burst and a second after it; ascending. */
  readonly beatsMs: readonly number[];
  readonly grewMib: number;
};

const BEAT_EVERY_MS = 50;

/** How long an honest client tries to be served before the hub counts as dead. */
const DEAD_AFTER_MS = 60_000;
/** One process opens no more: each may have as few descriptors as the hub. */
const CALLERS_PER_PROCESS = 8_000;

/** Runs one burst. @throws when the honest client is not served for DEAD_AFTER_MS, as when the hub has died */
export async function measureBurst(hub: Hub, burst: Burst): Promise<BurstReport> {
  await hub.register("honest");
  const before = resetPeak(hub);
  const client = new HonestClient(hub.port);
  let isOver = false;
  const tookMs: number[] = [];
  const honest = (async (): Promise<void> => {
    while (!isOver) {
      const ms = await client.beat();
      tookMs.push(ms);
      await Bun.sleep(Math.max(BEAT_EVERY_MS - ms, 0));
    }
    client.close();
  })();
  const outcomes = await Promise.race([runCallers(hub.port, burst), honest.then(() => ({}))]);
  await Bun.sleep(1_000);
  isOver = true;
  await honest;
  return {
    outcomes,
    beatsMs: tookMs.sort((a, b) => a - b),
    grewMib: memoryMib(hub.pid, "VmHWM") - before,
  };
}

export function p99Of(ascending: readonly number[]): number {
  return ascending[Math.floor(ascending.length * 0.99)] ?? Number.NaN;
}

/** A node with one connection, which it opens again when it is closed, as clients do. */
export class HonestClient {
  static readonly #REQUEST = encodeRequest(
    "POST",
    "/api/v1/node/heartbeat",
    SECRET,
    JSON.stringify({ node_id: "honest" }),
  );
  readonly #port: number;
  #connection: Connection | null = null;

  constructor(port: number) {
    this.#port = port;
  }

  /** Sends a heartbeat until it is answered with 200. Returns how long that took, in milliseconds. */
  async beat(): Promise<number> {
    const startedMs = performance.now();
    for (;;) {
      const status = await this.#try().catch(() => null);
      const ms = performance.now() - startedMs;
      if (status === 200) return ms;
      if (ms > DEAD_AFTER_MS) throw new Error(`no heartbeat was answered within ${DEAD_AFTER_MS} ms`);
      this.close();
      await Bun.sleep(10);
    }
  }

  async #try(): Promise<number> {
    this.#connection ??= await Connection.open(this.#port);
    return (await this.#connection.exchange(HonestClient.#REQUEST)).status;
  }

  close(): void {
    this.#connection?.close();
    this.#connection = null;
  }
}

async function runCallers(port: number, burst: Burst): Promise<Record<string, number>> {
  const outcomes: Record<string, number> = {};
  const processes = Math.ceil(burst.callers / CALLERS_PER_PROCESS);
  const each = Math.ceil(burst.callers / processes);
  const reports = await Promise.all(Array.from({ length: processes }, () => runProcess(port, burst, each)));
  for (const report of reports) {
    for (const [outcome, count] of Object.entries(report))
      outcomes[outcome] = (outcomes[outcome] ?? 0) + count;
  }
  return outcomes;
}

async function runProcess(
  port: number,
  { announcedBytes, sentBytes, header = "" }: Burst,
  callers: number,
): Promise<Record<string, number>> {
  const words = [port, callers, announcedBytes, sentBytes, header].map(String);
  const program = join(import.meta.dir, "burst-callers.ts");
  const child = Bun.spawn([process.execPath, program, ...words], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const outcomes: Record<string, number> = JSON.parse(await child.stdout.text());
  return outcomes;
}

/** Forgets the most memory that the hub has held so far. Returns what it holds now, in MiB. Linux only. */
function resetPeak({ pid }: Hub): number {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
  return memoryMib(pid, "VmRSS");
}
