// The cost of the change log: the task cycle at one hub that keeps the log in every other round. The log begins and ends
// while the hub runs, so that both kinds of rounds meet the same process and the same store.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { keepChanges } from "../../src/store/sqlite/change-log.ts";
import { makeDirectory } from "./children.ts";
import type { Job, Measurement } from "./job.ts";
import type { LoadClient } from "./load-client.ts";
import { median } from "./median.ts";
import type { Options } from "./options.ts";
import { type Side, WARM_UP_MS, measureRound, summarise } from "./rounds.ts";
import { SCENARIOS } from "./scenarios.ts";
import { startHubOn } from "./server-under-test.ts";
import { must } from "../../src/lib/assert.ts";

export type LogRow = {
  readonly connections: number;
  readonly without: Side;
  readonly with: Side;
  /** Processor time a request, with the log by without it: the median of the ratios of neighbouring rounds. */
  readonly ratio: number | null;
  readonly bytesPerEntry: number;
  readonly bytesPerTask: number;
};

type Written = { readonly entries: number; readonly bytes: number };

/** Rejects when a request fails. */
export async function measureChangeLog(
  options: Options,
  client: LoadClient<Job, Measurement>,
): Promise<LogRow[]> {
  const rows: LogRow[] = [];
  for (const connections of options.connections) rows.push(await measureAt(connections, options, client));
  return rows;
}

async function measureAt(
  connections: number,
  { hub: command, dataRoot, rounds, seconds }: Options,
  client: LoadClient<Job, Measurement>,
): Promise<LogRow> {
  const data = makeDirectory(dataRoot);
  const hub = await startHubOn(command, data);
  const scenario = must(SCENARIOS[0], "the first scenario is the task cycle");
  try {
    const run = async (windowMs: number) => {
      const found = await measureRound(client, hub, scenario, connections, windowMs, true);
      if (found.failure !== null) throw new Error(`change log x${connections}: ${found.failure}`);
      return found;
    };
    const kept = async (windowMs: number) => {
      const database = join(data, "luxhub.db");
      switchLog(database, true);
      const found = await run(windowMs);
      return { ...found, ...switchLog(database, false) };
    };
    await run(WARM_UP_MS);
    await kept(WARM_UP_MS);
    const pairs = [];
    for (let round = 0; round < rounds; round++)
      pairs.push({ without: await run(seconds * 1_000), kept: await kept(seconds * 1_000) });
    const ratios = pairs.flatMap(({ without, kept }) =>
      without.cpuUs === null || kept.cpuUs === null ? [] : kept.cpuUs / without.cpuUs,
    );
    const withLog = pairs.map(({ kept }) => kept);
    return {
      connections,
      without: summarise(pairs.map(({ without }) => without)),
      with: summarise(withLog),
      ratio: ratios.length === 0 ? null : median(ratios),
      bytesPerEntry: median(withLog.map(({ bytes, entries }) => bytes / entries)),
      bytesPerTask: median(withLog.map(({ bytes, cyclesInAll }) => bytes / cyclesInAll)),
    };
  } finally {
    await hub.stop();
  }
}

/** Returns what the log had. */
function switchLog(path: string, isKept: boolean): Written {
  using db = new Database(path);
  db.run("PRAGMA busy_timeout = 5000");
  const sql = "SELECT count(*) - 1 AS entries, sum(octet_length(body)) AS bytes FROM changes";
  const written = must(db.query<Written, []>(sql).get(), "an aggregate has a row");
  keepChanges(db, isKept);
  return written;
}
