// The cost of the change log: the task cycle at one hub that keeps the log in every other round, for a standby that it has
// invited and that does not come. The log begins and ends while the hub runs, so that both kinds of rounds meet the same
// process and the same store.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { makeDirectory } from "./children.ts";
import type { Job, Measurement } from "./job.ts";
import type { LoadClient } from "./load-client.ts";
import { median } from "./median.ts";
import type { Options } from "./options.ts";
import { type Side, WARM_UP_MS, measureRound, summarise } from "./rounds.ts";
import { SCENARIOS } from "./scenarios.ts";
import { ADMIN_KEY, type RunningServer, SECRET, startHubOn } from "./server-under-test.ts";
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
      const log = await StandbyLog.begin(hub, join(data, "luxhub.db"));
      const found = await run(windowMs);
      return { ...found, ...(await log.end()) };
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

const INVITE = "/api/v1/standby/invite";
const LOOK_EVERY_MS = 20;

/** The change log of a hub, from the invitation of a standby to the end of its key. */
class StandbyLog {
  static #count = 0;
  readonly #hub: RunningServer;
  readonly #path: string;
  readonly #name: string;
  readonly #first: number;

  private constructor(hub: RunningServer, path: string, name: string, first: number) {
    this.#hub = hub;
    this.#path = path;
    this.#name = name;
    this.#first = first;
  }

  static async begin(hub: RunningServer, path: string): Promise<StandbyLog> {
    const name = `standby-${StandbyLog.#count++}`;
    await post(hub, INVITE, { name });
    return new StandbyLog(hub, path, name, must(look(path).last, "the invitation is an entry"));
  }

  /** Returns what was written into the log, and ends it. */
  async end(): Promise<Written> {
    const { last, bytes } = look(this.#path);
    const entries = must(last, "the log is kept") - this.#first;
    await post(this.#hub, "/api/v1/key/revoke", { name: this.#name });
    while (look(this.#path).last !== null) await Bun.sleep(LOOK_EVERY_MS);
    return { entries, bytes: entries * bytes };
  }
}

/** The last entry, and the mean bytes of those that are still there: for nobody the hub keeps only the newest. */
function look(path: string): { readonly last: number | null; readonly bytes: number } {
  using db = new Database(path, { readonly: true });
  const sql = "SELECT max(n) AS last, coalesce(avg(octet_length(body)), 0) AS bytes FROM changes";
  return must(db.query<{ last: number | null; bytes: number }, []>(sql).get(), "an aggregate has a row");
}

async function post(hub: RunningServer, path: string, body: object): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${hub.port}${path}`, {
    method: "POST",
    headers: { "X-Matrix-Secret": SECRET, "X-Admin-Key": ADMIN_KEY, "Content-Type": "application/json" },
    body: JSON.stringify(body),
    proxy: "",
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
}
