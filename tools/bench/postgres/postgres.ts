// `bun run bench --postgres`: compares two hubs on PostgreSQL with libraries that keep their jobs there, on the same
// server, one after the other in rounds. Invariant: the server is on the disk of the run and flushes each commit to it; a
// subject that cannot be installed or measured becomes one line, and the others are measured.
import { SQL } from "bun";
import { POSTGRES_MISSING, PostgresServer } from "../../../test/support/postgres.ts";
import { makeDirectory } from "../children.ts";
import type { Measurement } from "../job.ts";
import { median } from "../median.ts";
import type { Options } from "../options.ts";
import type { Work } from "../scenarios.ts";
import { LIBRARIES, installPackages } from "../peers/install.ts";
import { type Subject, subjectsOf } from "./subjects.ts";

/** Until most of the hubs' JavaScript is compiled: the JIT takes a good second of processor time of each. */
const WARM_UP_MS = 15_000;
export const POSTGRES_LIMIT_MS = 480_000;

/** The same for everyone: room, and what makes a commit durable. */
export const POSTGRES_SETTINGS = {
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",
  shared_buffers: "512MB",
  max_wal_size: "4GB",
  max_connections: "400",
} as const;

export type PostgresRow = Pick<Subject, "name" | "cycle" | "load" | "goal"> & {
  readonly callers: number;
  readonly work: Work;
  readonly cyclesPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The cycles per second of the hubs that are called in the same way, divided by those of this system. */
  readonly ratio: number;
  readonly failures: number;
  readonly failure: string | null;
};

export type PostgresReport = {
  /** The server's version and settings, as it tells them. */
  readonly server: readonly string[];
  readonly hub: string;
  readonly seconds: number;
  readonly rounds: number;
  readonly rows: readonly PostgresRow[];
  readonly missing: readonly string[];
};

type Measured = { readonly subject: Subject; readonly work: Work; readonly rounds: Measurement[] };

/** Installs, starts and measures. Rejects when there is no server, or the hubs themselves cannot be measured. */
export async function measurePostgres(
  options: Options,
  progress: (line: string) => void,
): Promise<PostgresReport> {
  if (POSTGRES_MISSING !== null) throw new Error(POSTGRES_MISSING);
  const missing: string[] = [];
  const folder = makeDirectory();
  progress("installing the libraries ...");
  await installPackages(folder, LIBRARIES).catch((error: unknown) => missing.push(String(error)));
  const server = await PostgresServer.start(options.dataRoot, POSTGRES_SETTINGS);
  try {
    const rows: PostgresRow[] = [];
    const stage = { server: server.url, hub: options.hub, dataRoot: options.dataRoot, folder };
    for (const callers of options.connections) {
      const starts = subjectsOf(stage, callers).slice(0, missing.length === 0 ? undefined : 2);
      const measured = await measureAll(starts, options, missing, progress);
      for (const each of measured) {
        const hubs = measured.find(
          ({ subject, work }) => subject.calls === each.subject.calls && work === each.work,
        );
        if (!hubs?.subject.name.startsWith("luxhub")) throw new Error("luxhub itself was not measured");
        rows.push(toRow(each, callers, ratesOf(hubs)));
      }
    }
    const { seconds, rounds, hub } = options;
    return { server: await describe(server.url), hub: named(hub), seconds, rounds, rows, missing };
  } finally {
    await server.remove();
  }
}

/** Side by side, in turns. */
async function measureAll(
  starts: readonly (() => Promise<Subject>)[],
  options: Options,
  missing: string[],
  progress: (line: string) => void,
): Promise<readonly Measured[]> {
  const all: Measured[] = [];
  for (const start of starts) {
    const subject = await start();
    all.push(...subject.works.map((work) => ({ subject, work, rounds: [] })));
  }
  const broken = new Set<Measured>();
  for (let round = 0; round <= options.rounds; round++) {
    for (const each of all.filter((one) => !broken.has(one))) {
      const { name, load, works } = each.subject;
      if (round === 0 && each.work !== works[0]) continue; // the subject is warm
      const windowMs = round === 0 ? WARM_UP_MS : options.seconds * 1_000;
      try {
        const found = await each.subject.run(windowMs, each.work);
        progress(`${name}, ${load}, ${each.work}: ${found.cyclesPerSecond.toFixed(0)} cycles/s`);
        if (round > 0) each.rounds.push(found);
      } catch (error) {
        broken.add(each);
        missing.push(`${name}: ${String(error)}`);
      }
    }
  }
  for (const subject of new Set(all.map((each) => each.subject))) await subject.stop();
  return all.filter((each) => !broken.has(each));
}

const ratesOf = ({ rounds }: Measured): number => median(rounds.map((one) => one.cyclesPerSecond));

function toRow(measured: Measured, callers: number, hubs: number): PostgresRow {
  const { subject, work, rounds } = measured;
  const { name, cycle, load, goal } = subject;
  const cyclesPerSecond = ratesOf(measured);
  return {
    ...{ name, cycle, load, goal, callers, work, cyclesPerSecond },
    p50Ms: median(rounds.map((one) => one.p50Ms)),
    p99Ms: median(rounds.map((one) => one.p99Ms)),
    ratio: hubs / cyclesPerSecond,
    failures: rounds.reduce((sum, one) => sum + one.failures, 0),
    failure: rounds.find((one) => one.failure !== null)?.failure ?? null,
  };
}

/** How the hub is run, without where this machine has Bun. */
function named(hub: readonly string[]): string {
  return hub.map((word) => (word === process.execPath ? "bun" : word)).join(" ");
}

async function describe(url: string): Promise<readonly string[]> {
  const sql = new SQL(url, { max: 1 });
  const told = ["server_version", ...Object.keys(POSTGRES_SETTINGS), "wal_sync_method"];
  const lines: string[] = [];
  for (const name of told) {
    const [row] = await sql.unsafe<{ value: string }[]>(`SELECT current_setting('${name}') AS value`);
    lines.push(`${name}=${row?.value}`);
  }
  await sql.close();
  return lines;
}
