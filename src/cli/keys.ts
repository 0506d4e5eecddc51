/** `luxhub keys`: writes keys into the store; a running hub reads them again every second. */
import { nodeId as nodeIdField } from "../api/request-fields.ts";
import { findSecrets, isThere, makeSecret } from "../data-dir.ts";
import { accept } from "../domain/decision.ts";
import { PRIMARY_ADMIN_KEY_ID, PRIMARY_KEY_ID, isValid } from "../domain/key.ts";
import { KEYS_MAX } from "../domain/limits.ts";
import type { KeyRecord, VariantName } from "../domain/model.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, isoTime, systemClock } from "../lib/clock.ts";
import { everyKey, hashSecret, primaryKeys } from "../service/keys.ts";
import { allKeys } from "../store/sql/keys.ts";
import { joinPostgres } from "../store/postgres/engine.ts";
import { joinSqlite } from "../store/sqlite/engine.ts";
import type { Store } from "../store/store.ts";
import { findPlaces } from "./config-file.ts";
import { type Arguments, KEYS_HELP, UsageError, noWords, oneWord, readArguments, say } from "./usage.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where the secrets of the primary keys come from when they are not in the data directory. */
const PRIMARY_VARIABLES: Readonly<Record<string, string>> = {
  [PRIMARY_KEY_ID]: "LUXHUB_SECRET",
  [PRIMARY_ADMIN_KEY_ID]: "LUXHUB_ADMIN_KEY",
};

const HELP_AT = "luxhub keys --help";
const KEY_ID = /^[A-Za-z0-9._-]{1,64}$/;
const FROM_NOW = /^(\d{1,6})([mhd])$/;
const UNIT_MS: Readonly<Record<string, number>> = { m: MINUTE_MS, h: HOUR_MS, d: DAY_MS };

/** What a subcommand works with. `primary` are the keys of the first start, as far as their secrets are known here. */
type Keys = { readonly store: Store; readonly primary: readonly KeyRecord[]; readonly now: number };

/** `flags`: those that it takes beside PLACE_FLAGS. */
type Subcommand = {
  readonly run: (keys: Keys, args: Arguments) => Promise<string>;
  readonly flags: readonly string[];
};

const PLACE_FLAGS = ["data", "database"];
const ADD_FLAGS = ["variant", "node", "expires", "admin"];
const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = {
  list: { run: list, flags: [] },
  add: { run: add, flags: ADD_FLAGS },
  pin: { run: pin, flags: [] },
  expire: { run: expire, flags: [] },
  revoke: { run: revoke, flags: [] },
};

export async function keysCommand(argv: readonly string[], env: Environment): Promise<number> {
  const args = readArguments(argv, [...PLACE_FLAGS, ...ADD_FLAGS], ["admin"], HELP_AT);
  const [name, ...words] = args.words;
  if (args.help || argv.length === 0) return say(KEYS_HELP);
  const subcommand = findSubcommand(name, Object.keys(args.flags));
  if (subcommand.run === list) noWords(words, HELP_AT);
  const { dir, database } = findPlaces(args, env);
  if (database === null && !isThere(dir.database))
    throw new Error(`there is no hub in ${dir.path}; start one there first`);
  process.umask(0o077);
  const store = database === null ? joinSqlite(dir.database) : await joinPostgres(database, systemClock());
  try {
    const keys = { store, primary: primaryKeys(findSecrets(dir, env)), now: systemClock().now() };
    return say(await subcommand.run(keys, { ...args, words }));
  } finally {
    await store.close();
  }
}

/** A flag of another subcommand is refused: it would change nothing here, and whoever wrote it thinks that it did. */
function findSubcommand(name: string | undefined, flags: readonly string[]): Subcommand {
  if (name === undefined) throw new UsageError(`keys wants ${Object.keys(SUBCOMMANDS).join(", ")}`, HELP_AT);
  const subcommand = Object.hasOwn(SUBCOMMANDS, name) ? SUBCOMMANDS[name] : undefined;
  if (!subcommand) throw new UsageError(`unknown command keys ${name}`, HELP_AT);
  const other = flags.find((flag) => ![...PLACE_FLAGS, ...subcommand.flags].includes(flag));
  if (other !== undefined) throw new UsageError(`keys ${name} takes no --${other}`, HELP_AT);
  return subcommand;
}

async function list({ store, primary, now }: Keys): Promise<string> {
  const rows = everyKey(primary, await store.read(allKeys())).map((key) => [
    key.keyId,
    key.role,
    key.variant ?? "-",
    key.nodeId ?? "-",
    key.expiresAt === null ? "never" : isoTime(key.expiresAt),
    key.revokedAt !== null ? "revoked" : isValid(key, now) ? "valid" : "expired",
  ]);
  const table = [["ID", "ROLE", "VARIANT", "NODE", "EXPIRES", "STATE"], ...rows];
  const widths =
    table[0]?.map((_, column) => Math.max(...table.map((row) => (row[column] ?? "").length))) ?? [];
  return table
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

async function add(keys: Keys, { words, flags }: Arguments): Promise<string> {
  const keyId = oneWord(words, "keys add wants an ID", HELP_AT);
  if (!KEY_ID.test(keyId)) throw new UsageError("an ID is 1 to 64 characters of A-Z a-z 0-9 . _ -", HELP_AT);
  const node = flags["node"]?.at(-1);
  if (node !== undefined && !nodeIdField().safeParse(node).success)
    throw new UsageError("--node is no node_id", HELP_AT);
  const variant = flags["variant"]?.at(-1);
  const expires = flags["expires"]?.at(-1);
  if (flags["admin"] && (node !== undefined || variant !== undefined)) {
    throw new UsageError("an --admin key has no --node and no --variant", HELP_AT);
  }
  const expiresAt = expires === undefined ? null : timeOf(expires, keys.now);
  if (expiresAt !== null && expiresAt <= keys.now) throw new UsageError("--expires is in the past", HELP_AT);
  const secret = makeSecret();
  const key: KeyRecord = {
    keyId,
    role: flags["admin"] ? "admin" : "secret",
    hash: hashSecret(secret),
    variant: variant === undefined ? null : variantOf(variant),
    nodeId: node ?? null,
    createdAt: keys.now,
    expiresAt,
    revokedAt: null,
  };
  await write(keys, (all) => {
    if (all.some((other) => other.keyId === keyId)) throw new Error(`there is a key ${keyId} already`);
    if (all.length >= KEYS_MAX) throw new Error(`there are ${KEYS_MAX} keys already; that is the limit`);
    return key;
  });
  return `${secret}\n\nThis is the secret of ${keyId}. It is not kept and cannot be shown again.`;
}

async function pin(keys: Keys, { words }: Arguments): Promise<string> {
  const [keyId, word] = twoWords(words, "keys pin wants an ID and A, B or none");
  const variant = word === "none" ? null : variantOf(word);
  await write(keys, (all) => {
    const key = findUnrevoked(all, keyId);
    if (key.role === "admin") throw new UsageError("an administrator key speaks no variant", HELP_AT);
    return { ...key, variant };
  });
  return variant === null ? `${keyId} is pinned to no variant` : `${keyId} is pinned to variant ${variant}`;
}

async function expire(keys: Keys, { words }: Arguments): Promise<string> {
  const [keyId, word] = twoWords(words, "keys expire wants an ID and a time or never");
  const expiresAt = word === "never" ? null : timeOf(word, keys.now);
  await write(keys, (all) => ({ ...findUnrevoked(all, keyId), expiresAt }));
  return expiresAt === null ? `${keyId} does not expire` : `${keyId} expires at ${isoTime(expiresAt)}`;
}

async function revoke(keys: Keys, { words }: Arguments): Promise<string> {
  const keyId = oneWord(words, "keys revoke wants an ID", HELP_AT);
  await write(keys, (all) => {
    const key = find(all, keyId);
    return { ...key, revokedAt: key.revokedAt ?? keys.now };
  });
  return `${keyId} is revoked`;
}

/** Saves the key that is made of those there are, in one step: another `luxhub keys` may be at work. */
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
  throw new Error(`${keyId} is revoked, and stays so; make a new key with luxhub keys add`);
}

function find(all: readonly KeyRecord[], keyId: string): KeyRecord {
  const key = all.find((other) => other.keyId === keyId);
  if (key) return key;
  const variable = PRIMARY_VARIABLES[keyId];
  if (variable === undefined) throw new Error(`there is no key ${keyId}; see luxhub keys list`);
  throw new Error(`the secret of ${keyId} is not in the data directory: set ${variable} as the hub has it`);
}

function variantOf(word: string): VariantName {
  if (word === "A" || word === "B") return word;
  throw new UsageError(`${JSON.stringify(word)} is no variant: A or B`, HELP_AT);
}

/** A moment as epoch milliseconds: an ISO 8601 date or time, or a span from now. */
function timeOf(word: string, now: number): number {
  const [, amount, unit] = FROM_NOW.exec(word) ?? [];
  const at = unit === undefined ? Date.parse(word) : now + Number(amount) * (UNIT_MS[unit] ?? Number.NaN);
  if (Number.isFinite(at) && (unit !== undefined || /^\d{4}-\d\d-\d\d/.test(word))) return at;
  throw new UsageError(`${JSON.stringify(word)} is no time: 2027-01-31, or 12h, 30d`, HELP_AT);
}

function twoWords(words: readonly string[], message: string): readonly [string, string] {
  const [first, second, ...more] = words;
  if (first === undefined || second === undefined || more.length > 0) throw new UsageError(message, HELP_AT);
  return [first, second];
}
