/**
 * `luxhub keys`: writes keys into the store. A running hub looks up an unknown secret there, and reloads all keys twice
 * a second.
 */
import type { Environment } from "../config.ts";
import { keyName, keyNode } from "../api/request-fields.ts";
import { encodeKey } from "../api/response-schemas.ts";
import { findSecrets, isThere } from "../data-dir.ts";
import { Rejection, accept } from "../domain/decision.ts";
import { PRIMARY_ADMIN_KEY_ID, PRIMARY_KEY_ID, addKey, stateOf } from "../domain/key.ts";
import { LUX_REWARD_MAX } from "../domain/limits.ts";
import { toLux, toMicro } from "../domain/lux.ts";
import { ADDED_KEY_ROLES, type KeyRecord, type KeyRole, type Usage } from "../domain/model.ts";
import { usageBy } from "../domain/quota.ts";
import { isoTime, systemClock } from "../lib/clock.ts";
import { momentMs } from "../lib/duration.ts";
import { makeSecret } from "../lib/ids.ts";
import { everyKey, hashSecret, primaryKeys } from "../service/keys.ts";
import { allKeys } from "../store/sql/keys.ts";
import { allUsage } from "../store/sql/usage.ts";
import { joinPostgres } from "../store/postgres/engine.ts";
import { joinSqlite } from "../store/sqlite/engine.ts";
import type { Store } from "../store/store.ts";
import { sizeText } from "../upkeep/upkeep.ts";
import { type Arguments, UsageError, wordAt } from "./arguments.ts";
import { findStore } from "./config-file.ts";
import { EXIT, Failure } from "./exit-codes.ts";
import type { LocalRuns } from "./run.ts";
import { writeLine } from "./standard-output.ts";
import { tableOf } from "./table.ts";
import { Values } from "./values.ts";

/** The environment variables of the primary secrets, when these are not in the data directory. */
const PRIMARY_VARIABLES: Readonly<Record<string, string>> = {
  [PRIMARY_KEY_ID]: "LUXHUB_SECRET",
  [PRIMARY_ADMIN_KEY_ID]: "LUXHUB_ADMIN_KEY",
};

const GROUP = "keys";
const VARIANTS = ["A", "B"] as const;

type Keys = {
  readonly store: Store;
  readonly primary: readonly KeyRecord[];
  readonly fileOf: (keyId: string) => string | null;
  readonly now: number;
};

type Printed = { readonly result: string; readonly note?: string };

type Subcommand = (keys: Keys, args: Arguments) => Promise<Printed>;

const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = {
  "keys list": list,
  "keys add": add,
  "keys pin": pin,
  "keys expire": expire,
  "keys revoke": revoke,
};

export const LOCAL_RUNS: LocalRuns = Object.fromEntries(
  Object.entries(SUBCOMMANDS).map(([name, run]) => [
    name,
    (args: Arguments, env: Environment) => withKeys(args, env, run),
  ]),
);

async function withKeys(args: Arguments, env: Environment, run: Subcommand): Promise<number> {
  const { dir, url } = findStore(args, env);
  if (url === null && !isThere(dir.database))
    throw new Error(`there is no hub in ${dir.path}; start one there first`);
  if (isThere(dir.standbyFile))
    throw new Failure(EXIT.CONFLICT, `${dir.path} is of a standby: change the keys at its first hub`);
  if (isThere(dir.supersededFile))
    throw new Failure(
      EXIT.CONFLICT,
      `the hub of ${dir.path} was superseded: change the keys at the one that was promoted`,
    );
  process.umask(0o077);
  const store = url === null ? joinSqlite(dir.database) : await joinPostgres(url, systemClock());
  try {
    const keys: Keys = {
      store,
      primary: primaryKeys(findSecrets(dir, env)),
      fileOf: (keyId) => {
        const variable = PRIMARY_VARIABLES[keyId];
        const file = keyId === PRIMARY_KEY_ID ? dir.secretFile : dir.adminKeyFile;
        return variable !== undefined && !env[variable] && isThere(file) ? file : null;
      },
      now: systemClock().now(),
    };
    const { result, note } = await run(keys, args);
    writeLine(result);
    if (note !== undefined) console.error(note);
    return EXIT.OK;
  } catch (error) {
    if (!(error instanceof Rejection)) throw error;
    throw new Failure(EXIT.CONFLICT, error.message);
  } finally {
    await store.close();
  }
}

async function list({ store, primary, now }: Keys, { flags }: Arguments): Promise<Printed> {
  const keys = everyKey(primary, await store.read(allKeys()));
  const usage = await store.read(allUsage());
  if (flags["json"]) {
    const records = keys.map((key) => encodeKey(key, { now }, usageBy(key, usage)));
    return { result: JSON.stringify(records, null, 2) };
  }
  const rows = keys.map((key) => [
    key.keyId,
    key.role,
    key.variant,
    key.nodeId,
    key.mintMicro === null ? null : `${toLux(key.mintMicro)}/d`,
    key.expiresAt === null ? "never" : isoTime(key.expiresAt),
    stateOf(key, now),
    usageText(usageBy(key, usage)),
  ]);
  const head = ["NAME", "ROLE", "VARIANT", "NODE", "MINT", "EXPIRES", "STATE", "USED"];
  return { result: tableOf(head, rows).join("\n") };
}

function usageText(usage: Usage | undefined): string | null {
  return usage === undefined ? null : `${usage.tasks} unfinished, ${sizeText(usage.bytes)}`;
}

async function add(keys: Keys, args: Arguments): Promise<Printed> {
  const keyId = wordAt(args, 0);
  const values = new Values(args, "keys add");
  if (!keyName().safeParse(keyId).success)
    throw new UsageError("a NAME is 1 to 64 characters of A-Z a-z 0-9 . _ -", GROUP);
  const node = values.text("node");
  if (node !== undefined && !keyNode().safeParse(node).success)
    throw new UsageError("--node is no node_id, and no node_id with .* for its sessions too", GROUP);
  const variant = values.choice("variant", VARIANTS) ?? null;
  const expires = values.text("expires");
  const role = roleOf(values);
  if (role === "admin" && (node !== undefined || variant !== null)) {
    throw new UsageError("an administrator key has no --node and no --variant", GROUP);
  }
  const mint = values.text("mint");
  if (role !== "full" && mint !== undefined)
    throw new UsageError("only a key that creates tasks has --mint", GROUP);
  const mintMicro = mint === undefined ? null : mintOf(mint);
  const expiresAt = expires === undefined ? null : timeOf(expires, keys.now);
  if (expiresAt !== null && expiresAt <= keys.now) throw new UsageError("--expires is in the past", GROUP);
  const secret = makeSecret();
  const key: KeyRecord = {
    keyId,
    role,
    hash: hashSecret(secret),
    variant,
    nodeId: node ?? null,
    mintMicro,
    createdAt: keys.now,
    expiresAt,
    revokedAt: null,
  };
  await keys.store.transact({ stored: allKeys() }, ({ stored }) =>
    addKey(key, everyKey(keys.primary, stored)),
  );
  const record = { ...encodeKey(key, { now: keys.now }, undefined), secret };
  return {
    result: args.flags["json"] ? JSON.stringify(record, null, 2) : secret,
    note: `This is the secret of ${keyId}. It is not kept and cannot be shown again.`,
  };
}

function mintOf(text: string): number {
  const [, lux] = /^(\d{1,10}(?:\.\d{1,6})?)(?:\/d)?$/.exec(text) ?? [];
  const micro = lux === undefined || Number(lux) > LUX_REWARD_MAX ? null : toMicro(Number(lux));
  if (micro !== null) return micro;
  throw new UsageError(
    `--mint is ${JSON.stringify(text)}; it must be LUX per UTC day, such as 100/d, at most ${LUX_REWARD_MAX}`,
    GROUP,
  );
}

async function pin(keys: Keys, args: Arguments): Promise<Printed> {
  const keyId = wordAt(args, 0);
  const word = new Values(args, "keys pin").oneOf("VARIANT", wordAt(args, 1), [...VARIANTS, "none"]);
  const variant = word === "none" ? null : word;
  await write(keys, (knownKeys) => {
    const key = findUnrevoked(knownKeys, keyId);
    if (key.role === "admin") throw new UsageError("an administrator key has no variant", GROUP);
    return { ...key, variant };
  });
  return { result: `${keyId} is pinned to ${variant === null ? "no variant" : `variant ${variant}`}` };
}

async function expire(keys: Keys, { words }: Arguments): Promise<Printed> {
  const [keyId = "", word = ""] = words;
  const expiresAt = word === "never" ? null : timeOf(word, keys.now);
  await write(keys, (knownKeys) => ({ ...findUnrevoked(knownKeys, keyId), expiresAt }));
  return {
    result: expiresAt === null ? `${keyId} does not expire` : `${keyId} expires at ${isoTime(expiresAt)}`,
  };
}

async function revoke(keys: Keys, { words }: Arguments): Promise<Printed> {
  const [keyId = ""] = words;
  await write(keys, (knownKeys) => {
    const key = find(knownKeys, keyId);
    return { ...key, revokedAt: key.revokedAt ?? keys.now };
  });
  const result = `${keyId} is revoked`;
  const file = keys.fileOf(keyId);
  if (file === null) return { result };
  return {
    result,
    note: `The commands on this machine still read it in ${file}. Delete that file: the next start of the hub makes a new one.`,
  };
}

/** In one transaction, because another `luxhub keys` may run. */
async function write(
  { store, primary }: Keys,
  make: (all: readonly KeyRecord[]) => KeyRecord,
): Promise<void> {
  await store.transact({ stored: allKeys() }, ({ stored }) =>
    accept(null, [{ kind: "key.saved", key: make(everyKey(primary, stored)) }]),
  );
}

function findUnrevoked(all: readonly KeyRecord[], keyId: string): KeyRecord {
  const key = find(all, keyId);
  if (key.revokedAt === null) return key;
  throw new Failure(EXIT.CONFLICT, `${keyId} is revoked, and stays so; make a new key with luxhub keys add`);
}

function find(all: readonly KeyRecord[], keyId: string): KeyRecord {
  const key = all.find((other) => other.keyId === keyId);
  if (key) return key;
  const variable = PRIMARY_VARIABLES[keyId];
  if (variable === undefined)
    throw new Failure(EXIT.NOT_FOUND, `there is no key ${keyId}; see luxhub keys list`);
  throw new Error(`the secret of ${keyId} is not in the data directory: set ${variable} as the hub has it`);
}

function roleOf(values: Values): KeyRole {
  const isAdmin = values.has("admin");
  const role = values.choice("role", ADDED_KEY_ROLES) ?? (isAdmin ? "admin" : "full");
  if (isAdmin && role !== "admin") throw new UsageError(`--admin is --role admin, not ${role}`, GROUP);
  return role;
}

function timeOf(word: string, now: number): number {
  const ms = momentMs(word, now);
  if (ms !== null) return ms;
  throw new UsageError(`${JSON.stringify(word)} is no time: 2027-01-31, or 90s, 12h, 30d`, GROUP);
}
