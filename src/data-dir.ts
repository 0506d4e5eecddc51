/** The data directory: its layout, its permissions, and its two secrets, each a word in a file of its owner only. */
import {
  accessSync,
  chmodSync,
  constants,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { ConfigError, type Environment, isPath } from "./config.ts";
import { FREE_SPACE_MIN_BYTES, SECRET_MAX_CHARS, SECRET_SAFE_CHARS } from "./domain/limits.ts";
import { codeOf, reasonOf } from "./lib/reason.ts";
import { permissionWarnings, refuseForeign, refuseWorldWritable } from "./permissions.ts";
import { makeSecret } from "./lib/ids.ts";
import { readTextFileIfThere } from "./text-file.ts";
import type { PrimarySecrets } from "./service/keys.ts";

const ONE_WORD = /^[\x21-\x7e]+$/;

export type DataDir = {
  readonly path: string;
  readonly database: string;
  readonly ballast: string;
  /** Locked by the hub that runs on the directory. */
  readonly lock: string;
  /** By a running backup; no file may be removed meanwhile. */
  readonly pin: string;
  readonly unfinishedRestore: string;
  /** A line for each listener of the running hub. */
  readonly addressFile: string;
  /** The hub of the directory uses PostgreSQL. */
  readonly postgresMarker: string;
  /** The directory is of a standby: how it calls its first hub. */
  readonly standbyFile: string;
  /** A standby of this hub was promoted: where. */
  readonly supersededFile: string;
  /** This hub was promoted, and its first does not know it yet: how to call that one. */
  readonly predecessorFile: string;
  /** Where the standbys of this hub listen. */
  readonly standbysFile: string;
  readonly secretFile: string;
  readonly adminKeyFile: string;
  readonly authorityKeyFile: string;
  readonly authorityFile: string;
};

export type HasRoom = (bytes: number) => boolean;

const FLOOR_SHARE = 1 / 20;

/** Unless the operator says otherwise. */
export function freeFloorOf(diskBytes: number): number {
  return Math.min(FREE_SPACE_MIN_BYTES, diskBytes * FLOOR_SHARE);
}

/**
 * On a full disk SQLite can neither write nor free space, so writes stop earlier, at `minFreeBytes` of free space; null:
 * freeFloorOf(). A check takes 1-2 µs.
 */
export function freeSpaceCheck({ path }: DataDir, minFreeBytes: number | null): HasRoom {
  return (bytes) => {
    try {
      const { bavail, blocks, bsize } = statfsSync(path);
      return bavail * bsize - bytes >= (minFreeBytes ?? freeFloorOf(blocks * bsize));
    } catch {
      return true; // a write reports the error
    }
  };
}

export function freeBytes({ path }: DataDir): number | null {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return null;
  }
}

/** Without any I/O. @throws {ConfigError} when a parent directory has an unusable name */
export function dataDirAt(given: string): DataDir {
  const path = resolve(given);
  if (!isPath(path)) {
    throw new ConfigError(
      `the data directory ${JSON.stringify(path)} must lie under names in UTF-8, without control characters`,
    );
  }
  return {
    path,
    database: join(path, "luxhub.db"),
    ballast: join(path, "luxhub.db.ballast"),
    lock: join(path, "lock"),
    pin: join(path, "backup-lock"),
    unfinishedRestore: join(path, ".restoring"),
    addressFile: join(path, "address"),
    postgresMarker: join(path, "uses-postgresql"),
    standbyFile: join(path, "standby.json"),
    supersededFile: join(path, "superseded.json"),
    predecessorFile: join(path, "predecessor.json"),
    standbysFile: join(path, "standbys.json"),
    secretFile: join(path, "secret"),
    adminKeyFile: join(path, "admin-key"),
    authorityKeyFile: join(path, "tls-ca-key.pem"),
    authorityFile: join(path, "tls-ca.pem"),
  };
}

/** @throws {Error} one line, when it cannot be created or written */
export function makeDataDir(given: string): DataDir {
  const dir = dataDirAt(given);
  const { path } = dir;
  refuseLinks(dir);
  try {
    if (mkdirSync(path, { recursive: true, mode: 0o700 }) !== undefined) chmodSync(path, 0o700);
  } catch (error) {
    const reason = codeOf(error) === "EEXIST" ? "it exists and is not a directory" : reasonOf(error);
    throw new Error(`cannot create the data directory ${path}: ${reason}`, { cause: error });
  }
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new Error(`cannot write into the data directory ${path}: ${reasonOf(error)}`, { cause: error });
  }
  refuseWorldWritable(path, "the data directory");
  return dir;
}

/**
 * A directory that came with somebody else's checkout could otherwise name the lock and the secrets of another hub of
 * this user. @throws {Error} one line
 */
export function refuseLinks({ path: _, ...files }: DataDir): void {
  for (const path of Object.values(files))
    if (isLink(path))
      throw new Error(
        `${path} is a symbolic link: put the file itself there, or name another directory with --data`,
      );
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false; // opening the file reports the reason
  }
}

/** So that no command takes luxhub.db for the hub's state. */
export function markPostgres({ postgresMarker }: DataDir): void {
  writeFileSync(postgresMarker, "", { mode: 0o600, flush: true });
}

export function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    throw new Error(`cannot access ${path}: ${reasonOf(error)}`, { cause: error });
  }
}

/**
 * Only a hub creates these next to its database. Not the secrets, which an operator may put there before the first
 * start, nor files/, which may be a mount point.
 */
const TRACE = /^(?:files\/(?:\.partial|[0-9a-f]{2})|\.restoring|luxhub\.db\.schema-\d+\.bak)$/;

/** Null if a hub may create a database. */
export function findTraceOfHub(dir: DataDir): string | null {
  const names = namesIn(dir.path);
  if (names.includes("files")) names.push(...namesIn(join(dir.path, "files")).map((name) => `files/${name}`));
  return names.find((name) => TRACE.test(name)) ?? null;
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    throw new Error(`cannot list ${path}: ${reasonOf(error)}`, { cause: error });
  }
}

export type Secrets = PrimarySecrets & {
  readonly secretIsNew: boolean;
  readonly adminKeyIsNew: boolean;
  /** The secret comes from the environment, so it is not on disk. */
  readonly secretFromEnv: boolean;
};

/** @throws {ConfigError} */
export function loadSecrets(dir: DataDir, env: Environment): Secrets {
  const secret = loadSecret("LUXHUB_SECRET", env, dir.secretFile);
  const adminKey = loadSecret("LUXHUB_ADMIN_KEY", env, dir.adminKeyFile);
  if (secret.word === adminKey.word) {
    throw new ConfigError(
      "the secret and the administrator key must not be the same word: change one of them",
    );
  }
  return {
    secret: secret.word,
    adminKey: adminKey.word,
    secretIsNew: secret.isNew,
    adminKeyIsNew: adminKey.isNew,
    secretFromEnv: Boolean(env["LUXHUB_SECRET"]),
  };
}

/** The start failed before they were shown. */
export function discardNewSecrets(dir: DataDir, { secretIsNew, adminKeyIsNew }: Secrets): void {
  if (secretIsNew) rmSync(dir.secretFile, { force: true });
  if (adminKeyIsNew) rmSync(dir.adminKeyFile, { force: true });
}

/** This process may not have the environment of the hub. */
export function findSecrets(dir: DataDir, env: Environment): Partial<PrimarySecrets> {
  const secret = findSecret("LUXHUB_SECRET", env, dir.secretFile);
  const adminKey = findSecret("LUXHUB_ADMIN_KEY", env, dir.adminKeyFile);
  return { ...(secret === null ? {} : { secret }), ...(adminKey === null ? {} : { adminKey }) };
}

export function secretWarnings(dir: DataDir, env: Environment): string[] {
  const { secret, adminKey } = findSecrets(dir, env);
  const isShort = (word: string | undefined): boolean =>
    word !== undefined && word.length < SECRET_SAFE_CHARS;
  const short = (what: string): string =>
    `${what} has fewer than ${SECRET_SAFE_CHARS} characters and can be guessed: change it`;
  return [
    ...(isShort(secret) ? [short("the secret")] : []),
    ...(isShort(adminKey) ? [short("the administrator key")] : []),
    ...permissionWarnings(dir.path, "the data directory", false),
    ...permissionWarnings(dir.secretFile, "the secret file", true),
    ...permissionWarnings(dir.adminKeyFile, "the secret file", true),
    ...permissionWarnings(dir.authorityKeyFile, "the key of --tls auto", true),
  ];
}

export function environmentSecrets(env: Environment): {
  readonly secret: string | undefined;
  readonly adminKey: string | undefined;
} {
  const given = (variable: string): string | undefined =>
    env[variable] ? checkedSecret(env[variable], variable) : undefined;
  return { secret: given("LUXHUB_SECRET"), adminKey: given("LUXHUB_ADMIN_KEY") };
}

function findSecret(variable: string, env: Environment, file: string): string | null {
  const given = env[variable];
  if (given) return checkedSecret(given, variable);
  refuseWorldWritable(file, "the secret file");
  const stored = readTextFileIfThere(file);
  return stored === null ? null : checkedSecret(stored.trim(), file);
}

function loadSecret(variable: string, env: Environment, file: string): { word: string; isNew: boolean } {
  const knownSecret = findSecret(variable, env, file);
  if (knownSecret !== null) return { word: knownSecret, isNew: false };
  const word = makeSecret();
  try {
    writeFileSync(file, `${word}\n`, { mode: 0o600, flag: "wx", flush: true });
  } catch (error) {
    // An empty file, left by a full disk, would make the next start fail; an existing file is not ours.
    if (codeOf(error) !== "EEXIST") rmSync(file, { force: true });
    throw new Error(`cannot write ${file}: ${reasonOf(error)}`, { cause: error });
  }
  return { word, isNew: true };
}

/** @throws {ConfigError} when it cannot be in a header */
export function checkedSecret(word: string, source: string): string {
  if (ONE_WORD.test(word) && word.length <= SECRET_MAX_CHARS) return word;
  throw new ConfigError(
    `${source} must hold one word of at most ${SECRET_MAX_CHARS} visible ASCII characters`,
  );
}

export type Address = { readonly variant: string; readonly url: string };

/** Returns a function that removes the record, unless another hub has replaced it. */
export function recordAddresses({ addressFile }: DataDir, addresses: readonly Address[]): () => void {
  const text = addresses.map(({ variant, url }) => `${variant} ${url}\n`).join("");
  writeFileSync(addressFile, text, { mode: 0o600 });
  return () => {
    if (readTextFileIfThere(addressFile) === text) rmSync(addressFile, { force: true });
  };
}

/** A hub that was killed has not removed them. */
export function recordedAddresses({ addressFile }: DataDir): readonly Address[] {
  const text = readTextFileIfThere(addressFile);
  if (text === null) return [];
  refuseForeign(addressFile, "the record of addresses");
  const lines = text.split("\n");
  return lines.flatMap((line) => {
    const [, variant = "", url = ""] = /^([AB]) (https?:\/\/\S+)$/.exec(line) ?? [];
    return url === "" ? [] : [{ variant, url }];
  });
}
