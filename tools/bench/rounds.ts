// One row of the report: the hub and the bare server measured alternately (A B A B), so that other load affects both
// alike, and medians over the rounds. Invariant: each row has a hub and a data directory of its own, so that no row
// depends on the rows before it.
import { z } from "zod";
import type { Job, Measurement } from "./job.ts";
import type { LoadClient } from "./load-client.ts";
import { readCpuMs } from "./machine.ts";
import { median } from "./median.ts";
import type { Options } from "./options.ts";
import { LISTED_TASKS, type Scenario, createTaskRequest } from "./scenarios.ts";
import { type RunningServer, SECRET, startEcho, startHub } from "./server-under-test.ts";
import { Connection, encodeRequest } from "./wire.ts";

export const WARM_UP_MS = 1_000;
const SEEDING_CONNECTIONS = 50;

export type Side = {
  requestsPerSecond: number;
  cyclesPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  /** Processor time of the server, microseconds a request; null where the kernel does not tell. */
  cpuUs: number | null;
  clientCpu: number;
  rounds: Measurement[];
};

export type Row = {
  scenario: string;
  title: string;
  stepsPerCycle: number;
  connections: number;
  hub: Side;
  echo: Side;
  /** Requests per second, hub over bare server: the ratio of the medians. */
  ratio: number;
  failures: number;
  failure: string | null;
};

type Round = Measurement & { cpuUs: number | null };

/** Measures one row. Rejects when a server does not start, a connection breaks or an answer does not come. */
export async function measureRow(
  scenario: Scenario,
  connections: number,
  options: Options,
  client: LoadClient<Job, Measurement>,
): Promise<Row> {
  const hub = await startHub(options.hub, options.dataRoot);
  const echo = await startEcho();
  try {
    if (scenario.name === "list") await prepareList(hub, echo);
    const run = (server: RunningServer, windowMs: number) =>
      measureRound(client, server, scenario, connections, windowMs, server === hub);
    const warmUp = [await run(hub, WARM_UP_MS), await run(echo, WARM_UP_MS)];
    const hubRounds: Round[] = [];
    const echoRounds: Round[] = [];
    for (let round = 0; round < options.rounds; round++) {
      hubRounds.push(await run(hub, options.seconds * 1_000));
      echoRounds.push(await run(echo, options.seconds * 1_000));
    }
    const all = [...warmUp, ...hubRounds, ...echoRounds];
    let failures = all.reduce((sum, round) => sum + round.failures, 0);
    let failure = all.find((round) => round.failure !== null)?.failure ?? null;
    if (scenario.name.startsWith("cycle")) {
      const cycles = [warmUp[0], ...hubRounds].reduce((sum, round) => sum + (round?.cyclesInAll ?? 0), 0);
      const stored = await countCompleted(hub);
      if (stored !== cycles) {
        failures++;
        failure ??= `${cycles} tasks were completed, but the hub counts ${stored}`;
      }
    }
    const [hubSide, echoSide] = [summarise(hubRounds), summarise(echoRounds)];
    return {
      scenario: scenario.name,
      title: scenario.title,
      stepsPerCycle: scenario.steps.length,
      connections,
      hub: hubSide,
      echo: echoSide,
      ratio: hubSide.requestsPerSecond / echoSide.requestsPerSecond,
      failures,
      failure,
    };
  } finally {
    await Promise.all([hub.stop(), echo.stop()]);
  }
}

export async function measureRound(
  client: LoadClient<Job, Measurement>,
  server: RunningServer,
  scenario: Scenario,
  connections: number,
  windowMs: number,
  isHub: boolean,
): Promise<Round> {
  const before = readCpuMs(server.pid);
  const measurement = await client.run({
    ports: [server.port],
    secret: SECRET,
    scenario: scenario.name,
    connections,
    windowMs,
    isChecked: isHub,
  });
  const after = readCpuMs(server.pid);
  const cpuUs = before === null || after === null ? null : ((after - before) * 1_000) / measurement.requests;
  return { ...measurement, cpuUs };
}

export function summarise(rounds: Round[]): Side {
  const of = (pick: (round: Round) => number): number => median(rounds.map(pick));
  const cpuUs = rounds.flatMap((round) => round.cpuUs ?? []);
  return {
    requestsPerSecond: of((round) => round.requestsPerSecond),
    cyclesPerSecond: of((round) => round.cyclesPerSecond),
    p50Ms: of((round) => round.p50Ms),
    p99Ms: of((round) => round.p99Ms),
    cpuUs: cpuUs.length === 0 ? null : median(cpuUs),
    clientCpu: of((round) => round.clientCpu),
    rounds,
  };
}

/** Fills the hub with tasks, and gives the bare server the hub's own first page to answer with. */
async function prepareList(hub: RunningServer, echo: RunningServer): Promise<void> {
  const request = createTaskRequest(SECRET);
  const seed = async (): Promise<void> => {
    const connection = await Connection.open(hub.port);
    for (let count = 0; count < LISTED_TASKS / SEEDING_CONNECTIONS; count++) await ask(connection, request);
    connection.close();
  };
  await Promise.all(Array.from({ length: SEEDING_CONNECTIONS }, seed));
  const page = await once(hub, encodeRequest("GET", "/api/v1/task/list", SECRET, null));
  await once(echo, encodeRequest("PUT", "/page", SECRET, page));
}

async function countCompleted(hub: RunningServer): Promise<number> {
  const text = await once(hub, encodeRequest("GET", "/api/v1/task/stats", SECRET, null));
  const Stats = z.object({ by_status: z.object({ completed: z.int() }) });
  return Stats.parse(JSON.parse(text)).by_status.completed;
}

async function once(server: RunningServer, request: Buffer): Promise<string> {
  const connection = await Connection.open(server.port);
  try {
    return await ask(connection, request);
  } finally {
    connection.close();
  }
}

async function ask(connection: Connection, request: Buffer): Promise<string> {
  const { status, bytes, bodyStart } = await connection.exchange(request);
  const body = bytes.toString("utf8", bodyStart);
  if (status !== 200) throw new Error(`${status} ${body}`);
  return body;
}
