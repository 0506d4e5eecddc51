// The subjects that are measured on one PostgreSQL: two hubs on one database, and libraries that keep their jobs there.
// Each has a database of its own and a load client in a process of its own; a library runs in that process.
import { join } from "node:path";
import { SQL } from "bun";
import { type Job, Measurement } from "../job.ts";
import { type LoadClient, startLoadClient } from "../load-client.ts";
import { LIBRARIES } from "../peers/install.ts";
import { SECRET, startHub } from "../server-under-test.ts";
import type { LibraryJob } from "./library-job.ts";

const HUBS = 2;
/** Faster than 5, 20, 64 or as many as there are workers; it is also what pg-boss takes unless told otherwise. */
const PG_BOSS_POOL = 10;
/** Faster than a connection for each of 256 jobs at once. */
const GRAPHILE_POOL = 64;
/** Calls of a batch that are under way at once. */
const BATCH_CALLERS = 2;

/** One row of the table that runs. */
export type Subject = {
  readonly name: string;
  readonly cycle: string;
  readonly load: string;
  /** How many times its lives two hubs are to do; null: only told. */
  readonly goal: number | null;
  run(windowMs: number): Promise<Measurement>;
  stop(): Promise<void>;
};

/** Where the subjects are: the server, how the hub is run (without `serve`), where its secrets and the packages are. */
export type Stage = {
  readonly server: string;
  readonly hub: readonly string[];
  readonly dataRoot: string;
  readonly folder: string;
};

/** Starts one by one what is measured with so many callers; the hubs are the first. */
export function subjectsOf(stage: Stage, callers: number): readonly (() => Promise<Subject>)[] {
  const pgBoss = `pg-boss ${LIBRARIES["pg-boss"]}`;
  const graphile = `graphile-worker ${LIBRARIES["graphile-worker"]}`;
  const library =
    (told: Pick<Subject, "name" | "cycle" | "load" | "goal">, source: string, job: Shape) => () =>
      startLibrary(stage, told, source, job);
  const single = { workers: callers, batch: 1, pool: PG_BOSS_POOL };
  const batched = { ...single, workers: BATCH_CALLERS, batch: callers / BATCH_CALLERS };
  const added = { workers: callers, batch: 1, pool: GRAPHILE_POOL };
  const cycle = "addJob, run, reported complete";
  return [
    () => startHubs(stage, callers),
    library(
      { name: pgBoss, cycle: "send, fetch, complete", load: `${callers} callers`, goal: 5 },
      "pg-boss",
      single,
    ),
    library(
      {
        name: `${pgBoss}, in batches`,
        cycle: "insert, fetch, complete",
        load: `${BATCH_CALLERS} callers of ${batched.batch} jobs`,
        goal: null,
      },
      "pg-boss",
      batched,
    ),
    library({ name: graphile, cycle, load: `${callers} callers`, goal: null }, "graphile", added),
    library({ name: `${graphile}, localQueue`, cycle, load: `${callers} callers`, goal: null }, "graphile", {
      ...added,
      batch: callers,
    }),
  ];
}

async function startHubs({ server, hub, dataRoot }: Stage, callers: number): Promise<Subject> {
  const database = await newDatabase(server);
  const env = { LUXHUB_DATABASE: database.url };
  const hubs = await Promise.all(Array.from({ length: HUBS }, () => startHub(hub, dataRoot, env)));
  const source = join(import.meta.dir, "../load.ts");
  const client: LoadClient<Job, Measurement> = startLoadClient([process.execPath, source], Measurement);
  const job = { ports: hubs.map(({ port }) => port), secret: SECRET, scenario: "life", isChecked: true };
  return {
    name: `luxhub, ${HUBS} hubs`,
    cycle: "create, claim, complete",
    load: `${callers} callers over HTTP`,
    goal: null,
    run: (windowMs) => client.run({ ...job, connections: callers, windowMs }),
    async stop() {
      await Promise.all([client.stop(), ...hubs.map((each) => each.stop())]);
      await database.remove();
    },
  };
}

type Shape = Pick<LibraryJob, "workers" | "batch" | "pool">;

/** Under Bun, where pg-boss is as fast as under Node 20, and faster than under Node 24. */
async function startLibrary(
  { server, folder }: Stage,
  told: Pick<Subject, "name" | "cycle" | "load" | "goal">,
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
    run: (windowMs) => client.run({ ...shape, folder, url: database.url, windowMs }),
    async stop() {
      await client.stop();
      await database.remove();
    },
  };
}

let made = 0;

async function newDatabase(server: string): Promise<{ url: string; remove(): Promise<void> }> {
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
