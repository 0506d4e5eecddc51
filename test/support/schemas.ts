/**
 * A pool of PostgreSQL schemas with the hub's tables, for tests that start many hubs: emptied after a test and reused,
 * because creating and dropping the tables takes longer than most tests.
 */
import { SQL } from "bun";
import { systemClock } from "../../src/lib/clock.ts";
import { openPostgres } from "../../src/store/postgres/engine.ts";
import { newSchema } from "./postgres.ts";
import { Sessions } from "./sessions.ts";

export type Schema = {
  readonly url: string;
  /** Empties it in the background for another test. Nobody may be connected to it any more. */
  giveBack(): void;
};

type Made = Awaited<ReturnType<typeof newSchema>>;

let sessions: Promise<Sessions> | null = null;
const idle: Schema[] = [];
const made: Made[] = [];
const cleanings = new Set<Promise<void>>();
const makings = new Set<Promise<Schema>>();

export async function takeSchema(): Promise<Schema> {
  const used = idle.pop();
  if (used) return used;
  const making = makeSchema();
  makings.add(making);
  return making.finally(() => makings.delete(making));
}

async function makeSchema(): Promise<Schema> {
  const fresh = await newSchema();
  made.push(fresh);
  sessions ??= Sessions.open(fresh.url);
  const url = (await sessions).urlOf(fresh.url);
  const store = await openPostgres(url, systemClock(), () => undefined);
  await store.close();
  const cleaning = await cleaningOf(url);
  const schema: Schema = {
    url,
    giveBack: () => {
      const cleaned = run(url, cleaning).then(() => {
        cleanings.delete(cleaned);
        idle.push(schema);
      });
      cleanings.add(cleaned);
    },
  };
  return schema;
}

/** Drops all schemas of a server that outlives the run; a server of our own is removed as a whole. */
export async function dropSchemas(): Promise<void> {
  if (process.env["LUXHUB_TEST_POSTGRES"] === undefined) return;
  await Promise.allSettled([...makings, ...cleanings]);
  idle.splice(0);
  for (const { remove } of made.splice(0)) await remove();
}

async function run(url: string, text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const sql = new SQL(url, { max: 1 });
  const rows: readonly Readonly<Record<string, unknown>>[] = await sql.unsafe(text);
  await sql.close();
  return rows;
}

const TABLES = `SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()`;
const SEQUENCES = `SELECT sequencename AS name FROM pg_sequences WHERE schemaname = current_schema()`;
/** Tables above this size are truncated: dead rows slow down full scans, but TRUNCATE is slower than deleting few rows. */
const WORN_BYTES = 2 ** 20;

/** SQL that empties all tables and restores the rows they are created with; only the database id is new. */
async function cleaningOf(url: string): Promise<string> {
  const names = (await run(url, TABLES)).map(({ name }) => String(name));
  const sequences = (await run(url, SEQUENCES)).map(({ name }) => `setval('${name}', 1, false)`);
  const parts = names.map((name) => `SELECT '${name}' AS name, json_agg(t)::text AS rows FROM ${name} t`);
  const seeds = (await run(url, parts.join(" UNION ALL "))).filter(({ rows }) => rows !== null);
  const literal = (text: unknown): string => `'${String(text).replaceAll("'", "''")}'`;
  return `
    DO $clean$
    DECLARE name text; gone int;
    BEGIN
      FOREACH name IN ARRAY ARRAY[${names.map(literal).join(", ")}] LOOP
        EXECUTE format('DELETE FROM %I', name);
        GET DIAGNOSTICS gone = ROW_COUNT;
        IF gone > 0 AND pg_total_relation_size(name::regclass) > ${WORN_BYTES} THEN
          EXECUTE format('TRUNCATE %I CASCADE', name);
        END IF;
      END LOOP;
    END $clean$;
    SELECT ${sequences.join(", ")};
    ${seeds.map(({ name, rows }) => `INSERT INTO ${name} SELECT * FROM json_populate_recordset(NULL::${name}, ${literal(rows)});`).join("\n")}
    UPDATE identity SET database_id = replace(gen_random_uuid()::text, '-', '');`;
}
