/** Reads luxhub.toml in the current directory, if there is one. config.ts defines its keys. */
import { lstatSync } from "node:fs";
import { ConfigError, type Environment, readConfig } from "../config.ts";
import { type DataDir, dataDirAt, isThere, refuseLinks } from "../data-dir.ts";
import type { HubPlace } from "../upkeep/upkeep.ts";
import { permissionWarnings, refuseForeign } from "../permissions.ts";
import { readTextFile } from "../text-file.ts";
import type { Arguments } from "./arguments.ts";
import { EXIT, Failure } from "./exit-codes.ts";

const PATH = "luxhub.toml";

/** @throws {ConfigError} when it is not TOML; {Error} one line, when it cannot be read or everybody may write it */
export function readConfigFile(): Record<string, unknown> | null {
  if (lstatSync(PATH, { throwIfNoEntry: false }) === undefined) return null; // a dangling link is a mistake
  const text = readTextFile(PATH);
  refuseForeign(PATH, "the configuration file");
  try {
    return { ...Bun.TOML.parse(text) };
  } catch (error) {
    throw new ConfigError(`${PATH} is not TOML: ${faultOf(error)}`);
  }
}

/** A URL with a password makes the file secret. */
export function configFileWarnings(file: Readonly<Record<string, unknown>> | null): string[] {
  if (file === null) return [];
  const isSecret = [file["database"], file["redis"]].some((url) => /:\/\/[^/]*@/.test(String(url)));
  return permissionWarnings(PATH, "the configuration file", isSecret);
}

/** The parser names the word that it found unquoted, which may be a password. */
function faultOf(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return reason.replace(/(Strings must be quoted):.*/s, "$1");
}

export function findHub({ flags }: Arguments, env: Environment): HubPlace {
  const { data, database: url } = flags;
  const { dataDir, database } = readConfig({
    flags: { data, database: url },
    env,
    file: readConfigFile(),
  });
  const dir = dataDirAt(dataDir);
  refuseLinks(dir);
  return { dir, url: database };
}

/** @throws {Failure} when the hub uses PostgreSQL, and no URL says where, or the other way round */
export function findStore(args: Arguments, env: Environment): HubPlace {
  const place = findHub(args, env);
  const { dir, url } = place;
  if (url === null) refuseMoved(dir);
  else if (!isThere(dir.postgresMarker) && isThere(dir.database))
    throw new Failure(
      EXIT.CONFLICT,
      `the hub of ${dir.path} is on SQLite: unset LUXHUB_DATABASE, or name another directory with --data`,
    );
  return place;
}

/** @throws {Failure} when the hub of this directory uses PostgreSQL: luxhub.db there is an old state, or missing */
export function refuseMoved(dir: DataDir): void {
  if (!isThere(dir.postgresMarker)) return;
  throw new Failure(
    EXIT.CONFLICT,
    `the hub of ${dir.path} uses PostgreSQL: set LUXHUB_DATABASE. If it is on SQLite again, delete ${dir.postgresMarker}`,
  );
}
