/**
 * The engines of the store for its contract suites: how a test opens a database of each, writes to it, and looks at it
 * from outside.
 */
import { Database } from "bun:sqlite";
import { SQL } from "bun";
import { afterAll, afterEach, describe } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Change } from "../../src/domain/change.ts";
import { Rejection, accept } from "../../src/domain/decision.ts";
import type { NewEvent } from "../../src/domain/event.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { SQLITE_SCHEMA } from "../../src/store/sqlite/schema.ts";
import { POSTGRES_SCHEMA } from "../../src/store/postgres/schema.ts";
import { openPostgres } from "../../src/store/postgres/engine.ts";
import * as eventReads from "../../src/store/sql/events.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Store } from "../../src/store/store.ts";
import { provideDatabase } from "../support/new-database.ts";
import { POSTGRES_MISSING, sharedServer } from "../support/postgres.ts";
import { dropSchemas, takeSchema } from "../support/schemas.ts";

export type OnFault = (error: unknown) => void;

/** One database of an engine: a store on it, and a look at it from beside the store. */
export type Place = {
  /** Of SQLite: the file. */
  readonly path?: string;
  /** `onFault` hears what a commit listener throws; unless given, nothing may be heard. */
  open(onFault?: OnFault): Promise<Store>;
  /** One number, read through a connection of its own that sees only what is committed. */
  look(sql: string): Promise<number>;
  remove(): Promise<void>;
};

export type Engine = {
  readonly name: Store["engine"];
  /** Why it cannot run here; null: it can. */
  readonly skip: string | null;
  readonly migrations: number;
  place(): Promise<Place>;
};

export const noFault: OnFault = (error) => {
  throw error;
};

export async function sqlitePlace(): Promise<Place & { readonly path: string }> {
  const folder = await mkdtemp(join(tmpdir(), "luxhub-store-"));
  const path = join(folder, "db");
  return {
    path,
    open: async (onFault = noFault) => openSqlite(path, onFault),
    look: async (sql) => {
      const db = new Database(path, { readonly: true });
      const row = db.query<{ n: number }, []>(sql).get();
      db.close(true);
      return row?.n ?? NaN;
    },
    remove: () => rm(folder, { recursive: true }),
  };
}

export async function postgresPlace(): Promise<Place> {
  const { url, giveBack } = await takeSchema();
  const beside = new SQL(url, { max: 1 });
  await beside`SELECT 1`; // so that a look is at once
  return {
    open: (onFault = noFault) => openPostgres(url, systemClock(), onFault),
    look: async (sql) => Number((await beside.unsafe(sql))[0]?.n),
    remove: async () => {
      await beside.close();
      giveBack();
    },
  };
}

export const SQLITE: Engine = {
  name: "sqlite",
  skip: null,
  migrations: SQLITE_SCHEMA.version,
  place: async () => {
    const place = await sqlitePlace();
    await provideDatabase(place.path);
    return place;
  },
};
export const ENGINES: readonly Engine[] = [
  SQLITE,
  {
    name: "postgresql",
    skip: POSTGRES_MISSING,
    migrations: POSTGRES_SCHEMA.version,
    place: postgresPlace,
  },
];

export const closing: (() => Promise<void>)[] = [];

/** Called once by each test file: closes after each test what it opened, and starts PostgreSQL before the first. */
export async function prepareStores(): Promise<void> {
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });
  afterAll(dropSchemas);
  if (POSTGRES_MISSING === null) await sharedServer(); // so that no test's time goes into its start
}

/** Describes a subject of an engine's contract; where the engine cannot run, the name says why. */
export function suiteOf({ name, skip }: Engine): (subject: string, body: () => void) => void {
  const reason = skip === null ? "" : ` (skipped: ${skip})`;
  return (subject, body) =>
    (skip === null ? describe : describe.skip)(`store: ${name}${reason}: ${subject}`, body);
}

export async function openFresh(engine: Engine, onFault?: OnFault): Promise<{ store: Store; place: Place }> {
  const place = await engine.place();
  closing.push(() => place.remove());
  const store = await place.open(onFault);
  closing.push(() => store.close());
  return { store, place };
}

export const COUNT_EVENTS = "SELECT count(*) AS n FROM events";

export function event(name: string, patch: Partial<NewEvent> = {}): Change {
  return {
    kind: "event.logged",
    event: { kind: "hub.started", at: 1, nodeId: null, taskId: null, data: { name }, ...patch },
  };
}

export const log = (name: string) => () => accept(name, [event(name)]);
export const names = async (store: Store): Promise<readonly unknown[]> =>
  (await store.read(eventReads.eventsAfter(0, [], 100_000))).map(({ data }) => data["name"]);
export const write = (store: Store, ...changes: readonly Change[]): Promise<null> =>
  store.transact({}, () => accept(null, changes));

export async function outcome(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => value,
    (error: unknown) => (error instanceof Rejection ? error.code : error),
  );
}
