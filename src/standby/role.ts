/**
 * What a hub is when it starts, as the files in its data directory say: a standby (standby.json), superseded by its
 * promoted standby (superseded.json), or a first. A first asks the standbys that it knew (standbys.json) whether one was
 * promoted while it was down; a standby without a database takes the base.
 */
import { Database } from "bun:sqlite";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/mini";
import { type Environment, ConfigError } from "../config.ts";
import { type DataDir, findSecrets } from "../data-dir.ts";
import { FIRST_CHECK_MAX_MS, STANDBY_RETRY_MS } from "../domain/limits.ts";
import type { CopyParts } from "../hub/copies.ts";
import { SERVER_NAME } from "../hub/own-certificate.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { reasonOf } from "../lib/reason.ts";
import { shellWord } from "../lib/shell.ts";
import { type HubUrls, LISTENER_KINDS, type Superseder, shownUrl } from "../service/copies.ts";
import { openDiskBlobs } from "../blobs/disk.ts";
import { BaseNeeded, OriginalRefuses, fetchFile } from "../service/following.ts";
import { isValid } from "../domain/key.ts";
import { allKeys } from "../store/sql/keys.ts";
import { ChangeLog, alsoIn, applyEntries, standingOf } from "../store/sqlite/change-log.ts";
import { Connection } from "../store/sqlite/connection.ts";
import { schemaVersion } from "../store/sqlite/schema-version.ts";
import { SQLITE_SCHEMA } from "../store/sqlite/schema.ts";
import { HttpOriginal, type StandbyFile, standbySchema } from "./original.ts";

const urlsSchema: z.ZodMiniType<HubUrls> = z.partialRecord(z.enum(LISTENER_KINDS), z.string());
const supersededSchema: z.ZodMiniType<Superseder> = z.object({
  name: z.string(),
  term: z.int(),
  urls: urlsSchema,
  line: z.string(),
});
const standbysSchema = z.record(z.string(), urlsSchema);

type Context = { readonly clock: Clock; readonly log: Log; readonly signal: AbortSignal };

/** @throws {Error} one line */
export async function readCopyParts(dir: DataDir, env: Environment, context: Context): Promise<CopyParts> {
  const { log } = context;
  const superseded = readJson(dir.supersededFile, supersededSchema);
  if (superseded !== null) return supersededBy(dir, superseded, log);
  const standby = readJson(dir.standbyFile, standbySchema);
  if (standby !== null && !standby.promoted) return openStandby(dir, standby, env, context);
  if (standby !== null) refuseWithoutDatabase(dir);
  const newer = standby === null ? await newerTerm(dir, env, context) : null;
  if (newer !== null) return supersededBy(dir, newer, log);
  const predecessor = standby ?? readJson(dir.predecessorFile, standbySchema);
  return {
    role: "first",
    known: readJson(dir.standbysFile, standbysSchema) ?? {},
    remember: (known) => writeJson(dir.standbysFile, known),
    rememberSuperseder: (by) => writeJson(dir.supersededFile, by),
    isPromoted: standby !== null,
    predecessor: predecessor && new HttpOriginal({ ...predecessor, urls: predecessor.urls.slice(0, 1) }),
    forgetPredecessor: () => rmSync(dir.predecessorFile, { force: true }),
  };
}

/** After the term of a promoted hub has begun on disk. */
export function finishPromotion({ standbyFile, predecessorFile }: DataDir): void {
  if (readJson(standbyFile, standbySchema)?.promoted) renameSync(standbyFile, predecessorFile);
}

/** False: the directory is of no standby. @throws {Error} one line, when it has no data yet */
export function markPromoted(dir: DataDir): boolean {
  const standby = readJson(dir.standbyFile, standbySchema);
  if (standby === null) return false;
  refuseWithoutDatabase(dir);
  writeJson(dir.standbyFile, { ...standby, promoted: true });
  return true;
}

/** Returns where it is then; null when there was none. @throws {Error} one line, when another program reads it */
export function setDatabaseAside({ database }: DataDir, as: string): string | null {
  if (!existsSync(database)) return null;
  const aside = `${database}.${as}`;
  const db = new Database(database, { strict: true });
  const [row] = db.query("PRAGMA wal_checkpoint(TRUNCATE)").values(); // after a crash the last commits are only there
  db.close(true);
  if (row?.[0] !== 0) throw new Error(`${database} is in use: stop the other program first`);
  for (const suffix of ["-wal", "-shm"]) rmSync(`${database}${suffix}`, { force: true });
  renameSync(database, aside);
  return aside;
}

export function writeJson(file: string, value: unknown): void {
  writeFileSync(`${file}.partial`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600, flush: true });
  renameSync(`${file}.partial`, file);
}

export function readJson<T>(file: string, schema: z.ZodMiniType<T>): T | null {
  if (!existsSync(file)) return null;
  try {
    return schema.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    throw new ConfigError(`${file} cannot be read: ${reasonOf(error)}`);
  }
}

export const readSuperseded = ({ supersededFile }: DataDir): Superseder | null =>
  readJson(supersededFile, supersededSchema);

function supersededBy(dir: DataDir, by: Superseder, log: Log): CopyParts {
  log.error("this hub was superseded: a standby of it was promoted, and this one answers reads only", {
    by: shownUrl(by.urls) ?? "",
    to_make_it_the_standby: `stop it, then: luxhub join --data ${shellWord(dir.path)}`,
  });
  return {
    role: "superseded",
    by,
    rememberSuperseder: (next) => writeJson(dir.supersededFile, next),
  };
}

function refuseWithoutDatabase(dir: DataDir): void {
  if (!existsSync(dir.database))
    throw new Error(
      `${dir.path} cannot be promoted: it has no base of its first hub yet (${dir.database}.replaced, if it is there, is its older copy)`,
    );
}

// ---- A standby

async function openStandby(
  dir: DataDir,
  file: StandbyFile,
  env: Environment,
  context: Context,
): Promise<CopyParts> {
  const original = new HttpOriginal(file, (urls) => writeJson(dir.standbyFile, { ...file, urls }));
  for (;;) {
    if (!existsSync(dir.database)) await takeBaseOf(original, dir, context);
    try {
      await catchUpSchema(original, dir, context);
      await refuseOtherSecrets(dir, file, env, context);
      return { role: "standby", original };
    } catch (error) {
      if (!(error instanceof BaseNeeded)) throw error;
      setDatabaseAside(dir, "replaced");
    }
  }
}

/** After a promotion the nodes and the people come with the secrets of the first hub. */
async function refuseOtherSecrets(
  dir: DataDir,
  file: StandbyFile,
  env: Environment,
  { signal }: Context,
): Promise<void> {
  const { secret, adminKey } = findSecrets(dir, env);
  if (secret === undefined || adminKey === undefined)
    throw new ConfigError(
      "the first hub has its secrets in its environment: set LUXHUB_SECRET and LUXHUB_ADMIN_KEY here to the same",
    );
  if (!env["LUXHUB_SECRET"]) return; // the base has brought it
  const position = { after: 0, at: 0, term: 0, urls: {} };
  const inTime = AbortSignal.any([signal, AbortSignal.timeout(FIRST_CHECK_MAX_MS)]);
  await new HttpOriginal({ ...file, secret }).entriesAfter(position, inTime).catch((error: unknown) => {
    // Of its secret the first hub says that it is not a standby's.
    if (error instanceof OriginalRefuses)
      throw new ConfigError("LUXHUB_SECRET is not the secret of the first hub: set the same here");
  });
}

async function takeBaseOf(
  original: HttpOriginal,
  dir: DataDir,
  { clock, log, signal }: Context,
): Promise<void> {
  const { takeBase } = await import("../upkeep/restore.ts"); // its code only here
  let said = "";
  for (;;) {
    try {
      log.info("taking the base from the first hub");
      const tools = { clock, signal, onProgress: () => {} };
      const { files, at } = await original.base((bytes) => takeBase(bytes, dir, tools), signal);
      return log.info("the base is here", { as_of: at, files });
    } catch (error) {
      if (signal.aborted) throw error;
      const reason = reasonOf(error);
      if (reason !== said)
        log.error("the base could not be taken, and is asked for again", { cause: reason });
      said = reason;
      await sleep(STANDBY_RETRY_MS, undefined, { signal });
    }
  }
}

/** A migration of the first hub is an entry: this program cannot read the database before it has that entry. */
async function catchUpSchema(original: HttpOriginal, dir: DataDir, { signal }: Context): Promise<void> {
  using db = new Database(dir.database, { strict: true });
  if (schemaVersion(db) >= SQLITE_SCHEMA.version) return;
  const connection = new Connection(db, new ChangeLog(db));
  const blobs = await openDiskBlobs(dir.path);
  while (schemaVersion(db) < SQLITE_SCHEMA.version) {
    const { n, at, term } = standingOf(db);
    const { entries } = await original.entriesAfter({ after: n ?? 0, at: at ?? 0, term, urls: {} }, signal);
    if (entries.length === 0)
      throw new Error(
        `the first hub runs an older luxhub (schema ${schemaVersion(db)}, this one knows ${SQLITE_SCHEMA.version}): update that one first`,
      );
    for (const fileId of entries.flatMap((entry) => alsoIn(entry).files ?? []))
      await fetchFile(fileId, { blobs, original }, signal);
    applyEntries(db, entries, (sql, params) => void connection.run(sql, params));
  }
}

// ---- A first

/** Whether a standby of this hub was promoted while this one was down. One that does not answer is not waited for. */
async function newerTerm(
  dir: DataDir,
  env: Environment,
  { clock, log, signal }: Context,
): Promise<Superseder | null> {
  const known = readJson(dir.standbysFile, standbysSchema) ?? {};
  const { secret } = findSecrets(dir, env);
  if (secret === undefined || Object.keys(known).length === 0 || !existsSync(dir.database)) return null;
  const { term, isStandby } = standingOnDisk(dir, clock);
  const pem = existsSync(dir.authorityFile) ? readFileSync(dir.authorityFile, "utf8") : null;
  const standbys = Object.entries(known).filter(([name]) => isStandby(name));
  const terms = standbys.map(async ([name, urls]): Promise<Superseder | null> => {
    const url = shownUrl(urls) ?? "";
    const ca = url.startsWith("https:") ? pem : null;
    const at = { secret, ca, pin: null, server_name: ca && SERVER_NAME, promoted: false };
    const hub = new HttpOriginal({ urls: [url], ...at });
    try {
      const theirs = await hub.term(AbortSignal.any([signal, AbortSignal.timeout(FIRST_CHECK_MAX_MS)]));
      return theirs > term ? { name, term: theirs, urls, line: "" } : null;
    } catch (error) {
      log.warn("a standby could not be asked whether it was promoted", {
        standby: name,
        cause: reasonOf(error),
      });
      return null;
    }
  });
  const newer = (await Promise.all(terms)).find((found) => found !== null) ?? null;
  if (newer !== null) writeJson(dir.supersededFile, newer);
  return newer;
}

type OnDisk = { readonly term: number; readonly isStandby: (name: string) => boolean };

/** A standby whose key was revoked has no say any more, though it may have been promoted since. */
function standingOnDisk({ database }: DataDir, clock: Clock): OnDisk {
  using db = new Database(database, { strict: true });
  const hasTerm = db.query("SELECT 1 FROM sqlite_schema WHERE name = 'standing'").get() !== null;
  const term = hasTerm ? standingOf(db).term : 1;
  // Before a migration the queries of this program may not fit.
  if (schemaVersion(db) !== SQLITE_SCHEMA.version) return { term, isStandby: () => true };
  const keys = new Connection(db, new ChangeLog(db)).read(allKeys());
  const valid = new Set(keys.filter((key) => isValid(key, clock.now())).map(({ keyId }) => keyId));
  return { term, isStandby: (name) => valid.has(name) };
}
