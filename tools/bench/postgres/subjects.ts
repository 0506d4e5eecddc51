// The subjects that are measured on one PostgreSQL: two hubs on one database, and libraries that keep their jobs there.
// Each has a database of its own and a load client in a process of its own; a library runs in that process.
import { join } from "node:path";
import { SQL } from "bun";
import { type Job, Measurement } from "../job.ts";
import { type LoadClient, startLoadClient } from "../load-client.ts";
import { LIBRARIES } from "../peers/install.ts";
import { SECRET, startHub } from "../server-under-test.ts";
import { WORKS, type Work, nameWith } from "../scenarios.ts";
import type { BatchJob } from "./batch-load.ts";
import type { LibraryJob } from "./library-job.ts";

const HUBS = 2;
/** Faster than 5, 20, 64 or as many as there are workers; it is also what pg-boss takes unless told otherwise. */
const PG_BOSS_POOL = 10;
/** Faster than a connection for each of 256 jobs at once. */
const GRAPHILE_POOL = 64;
/** Calls of a batch that are under way at once. */
const BATCH_CALLERS = 2;

export type Subject = {
  readonly name: string;
  readonly cycle: string;
  readonly load: string;
  /** What a call carries: it is compared with two hubs that are called in the same way. */
  readonly calls: "single" | "batch";
  /** The goal for the ratio: the cycles of two hubs divided by its cycles; null: no goal. */
  readonly goal: number | null;
  readonly works: readonly Work[];
  run(windowMs: number, work: Work): Promise<Measurement>;
  stop(): Promise<void>;
};

/** Where the subjects are: the server, how the hub is run (without `serve`), where its secrets and the packages are. */
export type Stage = {
  readonly server: string;
  readonly hub: readonly string[];
  readonly dataRoot: string;
  readonly folder: string;
};

/** Starts one by one what is measured with so many callers; the hubs are the first two. */
export function subjectsOf(stage: Stage, callers: number): readonly (() => Promise<Subject>)[] {
  const pgBoss = `pg-boss ${LIBRARIES["pg-boss"]}`;
  const graphile = `graphile-worker ${LIBRARIES["graphile-worker"]}`;
  const library = (told: Told, source: string, job: Shape) => () => startLibrary(stage, told, source, job);
  const single = { workers: callers, batch: 1, pool: PG_BOSS_POOL };
  const batched = { ...single, workers: BATCH_CALLERS, batch: callers / BATCH_CALLERS };
  const added = { workers: callers, batch: 1, pool: GRAPHILE_POOL };
  const cycle = "addJob, run, reported complete";
  const toldOfGraphile = { cycle, load: `${callers} callers`, calls: "single", goal: null } as const;
  return [
    () => startHubs(stage, callers),
    () => startBatchedHubs(stage, batched),
    library(
      { name: pgBoss, cycle: "send, fetch, complete", load: `${callers} callers`, calls: "single", goal: 5 },
      "pg-boss",
      single,
    ),
    library(
      {
        name: `${pgBoss}, in batches`,
        cycle: "insert, fetch, complete",
        load: `${BATCH_CALLERS} callers of ${batched.batch} jobs`,
        calls: "batch",
        goal: 1,
      },
      "pg-boss",
      batched,
    ),
    library({ ...toldOfGraphile, name: graphile }, "graphile", added),
    library({ ...toldOfGraphile, name: `${graphile}, localQueue` }, "graphile", { ...added, batch: callers }),
  ];
}

type Hubs = { readonly ports: readonly number[]; readonly pids: readonly number[]; stop(): Promise<void> };

/** Hubs on a database of their own. */
export async function openHubs({ server, hub, dataRoot }: Omit<Stage, "folder">): Promise<Hubs> {
  const database = await newDatabase(server);
  const env = { LUXHUB_DATABASE: database.url };
  const hubs = await Promise.all(Array.from({ length: HUBS }, () => startHub(hub, dataRoot, env)));
  return {
    ports: hubs.map(({ port }) => port),
    pids: hubs.map(({ pid }) => pid),
    async stop() {
      await Promise.all(hubs.map((each) => each.stop()));
      await database.remove();
    },
  };
}

async function startHubs(stage: Stage, callers: number): Promise<Subject> {
  const hubs = await openHubs(stage);
  const source = join(import.meta.dir, "../load.ts");
  const client: LoadClient<Job, Measurement> = startLoadClient([process.execPath, source], Measurement);
  const job = { ports: [...hubs.ports], secret: SECRET, isChecked: true };
  return {
    name: `luxhub, ${HUBS} hubs`,
    cycle: "create, claim, complete",
    load: `${callers} callers over HTTP`,
    calls: "single",
    goal: null,
    works: WORKS,
    run: (windowMs, work) =>
      client.run({ ...job, scenario: nameWith("cycle", work), connections: callers, windowMs }),
    stop: () => client.stop().then(hubs.stop),
  };
}

async function startBatchedHubs(stage: Stage, { workers, batch }: Shape): Promise<Subject> {
  const hubs = await openHubs(stage);
  const source = join(import.meta.dir, "batch-load.ts");
  const client: LoadClient<BatchJob, Measurement> = startLoadClient([process.execPath, source], Measurement);
  return {
    name: `luxhub, ${HUBS} hubs, in batches`,
    cycle: "create, claim, complete, each by POST batch",
    load: `${workers} callers of ${batch} requests over HTTP`,
    calls: "batch",
    goal: null,
    works: WORKS.slice(0, 1),
    run: (windowMs) =>
      client.run({ ports: [...hubs.ports], secret: SECRET, workers, batch, takes: "claim", windowMs }),
    stop: () => client.stop().then(hubs.stop),
  };
}

type Shape = Pick<LibraryJob, "workers" | "batch" | "pool">;
type Told = Pick<Subject, "name" | "cycle" | "load" | "calls" | "goal">;

/** Under Bun, where pg-boss is as fast as under Node 20, and faster than under Node 24. */
async function startLibrary(
  { server, folder }: Stage,
  told: Told,
  source: string,
  shape: Shape,
): Promise<Subject> {
  const database = await newDatabase(server);
  const program = join(import.meta.dir, `${source}-load.ts`);
  const client: LoadClient<LibraryJob, Measurement> = startLoadClient(
    [process.execPath, program],
    Measurement,
  );
  return {
    ...told,
    works: told.calls === "single" ? WORKS : WORKS.slice(0, 1),
    run: (windowMs, work) => client.run({ ...shape, work, folder, url: database.url, windowMs }),
    async stop() {
      await client.stop();
      await database.remove();
    },
  };
}

let made = 0;

export async function newDatabase(server: string): Promise<{ url: string; remove(): Promise<void> }> {
  const name = `bench_${++made}`;
  const run = async (text: string): Promise<void> => {
    const sql = new SQL(server, { max: 1 });
    await sql.unsafe(text);
    await sql.close();
  };
  await run(`CREATE DATABASE ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return { url: url.href, remove: () => run(`DROP DATABASE ${name} WITH (FORCE)`) };
}
