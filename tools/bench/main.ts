// `bun run bench`: measures luxhub and a bare Bun.serve in the same run, on loopback only, and prints the tables of
// docs/benchmarks.md. Everything it starts is bounded in time and gone when it ends. Exit 1: a request or the run
// failed.
import { join } from "node:path";
import { measureChangeLog } from "./change-log.ts";
import { clearUpAtExit } from "./children.ts";
import { GROWTH_LIMIT_MS, LARGE, REQUESTS, SMALL, measureGrowth } from "./growth/growth.ts";
import { renderGrowth } from "./growth/report.ts";
import { type Job, Measurement } from "./job.ts";
import { startLoadClient } from "./load-client.ts";
import { type Machine, describeMachine } from "./machine.ts";
import { measureIdleMemory } from "./memory.ts";
import { LOG, MEMORY, NEXT, type Options, START, STREAMS, WAKE, parseOptions } from "./options.ts";
import { measureNext } from "./next/next.ts";
import { PEERS_LIMIT_MS, measurePeers } from "./peers/peers.ts";
import { renderPeers } from "./peers/report.ts";
import { POSTGRES_LIMIT_MS, measurePostgres } from "./postgres/postgres.ts";
import { renderPostgres } from "./postgres/report.ts";
import { record } from "./record.ts";
import { type Report, renderMarkdown } from "./report.ts";
import { type Row, measureRow } from "./rounds.ts";
import { SCENARIOS } from "./scenarios.ts";
import { measureStarts } from "./start.ts";
import { measureStreams } from "./streams/streams.ts";
import { measureWakes } from "./wake/wake.ts";

/** Seconds that starting, warming up and stopping may add to a row. */
const ROW_OVERHEAD = 30;
const MEMORY_LIMIT = 120;
const START_LIMIT = 120;
const STREAMS_LIMIT = 180;
/** A round of dispatches, or of blocked receives compared with Redis or PostgreSQL. */
const WAITING_LIMIT = 60;

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  if (options.mode === "growth") return benchGrowth(options);
  if (options.mode === "peers") return benchPeers(options);
  if (options.mode === "postgres") return benchPostgres(options);
  return benchEcho(options);
}

async function benchEcho(options: Options): Promise<void> {
  const scenarios = SCENARIOS.filter(({ name }) => options.only.includes(name));
  const kinds = scenarios.length + (options.only.includes(LOG) ? 1 : 0);
  const rowCount = kinds * options.connections.length;
  const rowSeconds = 2 * options.rounds * options.seconds + ROW_OVERHEAD;
  const tablesSeconds = MEMORY_LIMIT + START_LIMIT + STREAMS_LIMIT + 3 * WAITING_LIMIT * (options.rounds + 1);
  clearUpAtExit((rowCount * rowSeconds + tablesSeconds) * 1_000);

  const machine = describeMachine(options.dataRoot);
  const memory = options.only.includes(MEMORY) ? await measureMemory(options) : [];
  if (options.only.includes(START)) console.error("starts ...");
  const starts = options.only.includes(START) ? await measureStarts(options.dataRoot) : [];
  if (options.only.includes(STREAMS)) console.error("streams ...");
  const streams = options.only.includes(STREAMS) ? await measureStreams(options) : null;
  const next = options.only.includes(NEXT) ? await measureNext(options) : null;
  const wakes = options.only.includes(WAKE) ? await measureWakes(options) : null;
  const rows: Row[] = [];
  const command = [process.execPath, join(import.meta.dir, "load.ts")];
  const client = startLoadClient<Job, Measurement>(command, Measurement);
  if (options.only.includes(LOG)) console.error("change log ...");
  const log = options.only.includes(LOG) ? await measureChangeLog(options, client) : [];
  for (const scenario of scenarios) {
    for (const connections of options.connections) {
      const row = await measureRow(scenario, connections, options, client).catch((error: unknown) => {
        throw new Error(`${scenario.name} x${connections} stopped`, { cause: error });
      });
      rows.push(row);
      progress(row);
    }
  }
  await client.stop();
  const report: Report = {
    machine,
    seconds: options.seconds,
    rounds: options.rounds,
    rows,
    memory,
    starts,
    streams,
    next,
    wakes,
    log,
  };
  print(options, report, renderMarkdown(report));
  process.exit(rows.some((row) => row.failures > 0) ? 1 : 0);
}

async function benchGrowth(options: Options): Promise<void> {
  clearUpAtExit(GROWTH_LIMIT_MS);
  const machine = describeMachine(options.dataRoot);
  const { rounds, hub, dataRoot } = options;
  const [connections = 1] = options.connections;
  const plan = { small: SMALL, large: LARGE, requests: REQUESTS, rounds, connections, hub, dataRoot };
  const growth = await measureGrowth(plan, (line) => console.error(line));
  print(options, { machine, growth }, renderGrowth(machine, growth));
  process.exit(0);
}

async function benchPeers(options: Options): Promise<void> {
  clearUpAtExit(PEERS_LIMIT_MS + 24 * options.rounds * options.seconds * 1_000);
  const machine = describeMachine(options.dataRoot);
  const peers = await measurePeers(options, (line) => console.error(line));
  print(options, { machine, peers }, renderPeers(machine, peers));
  process.exit(peers.rows.some(({ failures }) => failures > 0) ? 1 : 0);
}

async function benchPostgres(options: Options): Promise<void> {
  clearUpAtExit(
    POSTGRES_LIMIT_MS + 24 * options.rounds * options.seconds * options.connections.length * 1_000,
  );
  const machine = describeMachine(options.dataRoot);
  const postgres = await measurePostgres(options, (line) => console.error(line));
  print(options, { machine, postgres }, renderPostgres(machine, postgres));
  process.exit(postgres.rows.some(({ failures }) => failures > 0) ? 1 : 0);
}

function print(
  options: Options,
  report: Readonly<Record<string, unknown>> & { machine: Machine },
  markdown: string,
): void {
  if (options.record) record(options.mode, report.machine, markdown);
  console.log(options.json ? JSON.stringify(report, null, 2) : markdown);
}

function measureMemory(options: Options): ReturnType<typeof measureIdleMemory> {
  console.error("idle memory ...");
  return measureIdleMemory(options.dataRoot);
}

function progress({ scenario, connections, hub, echo, ratio, failures }: Row): void {
  const rates = (side: typeof hub): string =>
    `${side.requestsPerSecond.toFixed(0)}/s (client ${(side.clientCpu * 100).toFixed(0)} % of a core)`;
  const wrong = failures === 0 ? "" : `, ${failures} FAILURES`;
  console.error(
    `${scenario} x${connections}: hub ${rates(hub)}, bare ${rates(echo)}, ${(ratio * 100).toFixed(0)} %${wrong}`,
  );
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${describe(error.cause)}`;
}

try {
  await main();
} catch (error) {
  console.error(`bench: ${describe(error)}`);
  process.exit(1);
}
