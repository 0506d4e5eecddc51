/** `luxhub keys`: writes keys into the store; a running hub reads them again every second. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { nodeId as nodeIdField } from "../api/fields.ts";
import { readConfig } from "../config.ts";
import { dataDirAt, findSecrets, makeSecret } from "../data-dir.ts";
import { accept } from "../domain/decision.ts";
import { type KeyRecord, PRIMARY_ADMIN_KEY_ID, PRIMARY_KEY_ID, isValid } from "../domain/key.ts";
import { KEYS_MAX } from "../domain/limits.ts";
import type { VariantName } from "../domain/node.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, isoTime, systemClock } from "../lib/clock.ts";
import { openStore } from "../hub.ts";
import { everyKey, hashSecret, primaryKeys } from "../service/keys.ts";
import { allKeys } from "../store/queries.ts";
import type { Store } from "../store/store.ts";
import { readConfigFile } from "./config-file.ts";
import { type Arguments, KEYS_HELP, UsageError, readArguments, say } from "./usage.ts";

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

/** What a subcommand works with. */
type Keys = { readonly store: Store; readonly all: readonly KeyRecord[]; readonly now: number };

type Subcommand = (keys: Keys, args: Arguments) => Promise<string>;

const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = { list, add, pin, expire, revoke };

export async function keysCommand(argv: readonly string[], env: Environment): Promise<number> {
  const args = readArguments(argv, ["data", "database", "variant", "node", "expires"], ["admin"], HELP_AT);
  const [name, ...words] = args.words;
  if (args.help || name === undefined) return say(KEYS_HELP);
  const subcommand = Object.hasOwn(SUBCOMMANDS, name) ? SUBCOMMANDS[name] : undefined;
  if (!subcommand) throw new UsageError(`unknown command keys ${name}`, HELP_AT);
  const { data, database } = args.flags;
  const config = readConfig({ flags: { data, database }, env, file: readConfigFile() });
  const dir = dataDirAt(resolve(config.dataDir));
  if (config.database === null && !existsSync(dir.database))
    throw new Error(`there is no hub in ${dir.path}; start one there first`);
  process.umask(0o077);
  const { store } = await openStore(config, dir, systemClock(), (error) => console.error(error));
  try {
    const all = everyKey(primaryKeys(findSecrets(dir, env)), await store.read(allKeys()));
    const keys = { store, all, now: systemClock().now() };
    return say(await subcommand(keys, { ...args, words }));
  } finally {
    await store.close();
  }
}

async function list({ all, now }: Keys): Promise<string> {
  const rows = all.map((key) => [
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
  const keyId = oneWord(words, "keys add wants an ID");
  if (!KEY_ID.test(keyId)) throw new UsageError("an ID is 1 to 64 characters of A-Z a-z 0-9 . _ -", HELP_AT);
  if (keys.all.some((key) => key.keyId === keyId)) throw new Error(`there is a key ${keyId} already`);
  if (keys.all.length >= KEYS_MAX) throw new Error(`there are ${KEYS_MAX} keys already; that is the limit`);
  const node = flags["node"]?.at(-1);
  if (node !== undefined && !nodeIdField.safeParse(node).success)
    throw new UsageError("--node is no node_id", HELP_AT);
  const variant = flags["variant"]?.at(-1);
  const expires = flags["expires"]?.at(-1);
  if (flags["admin"] && (node !== undefined || variant !== undefined)) {
    throw new UsageError("an --admin key has no --node and no --variant", HELP_AT);
  }
  const secret = makeSecret();
  await save(keys.store, {
    keyId,
    role: flags["admin"] ? "admin" : "secret",
    hash: hashSecret(secret),
    variant: variant === undefined ? null : variantOf(variant),
    nodeId: node ?? null,
    createdAt: keys.now,
    expiresAt: expires === undefined ? null : timeOf(expires, keys.now),
    revokedAt: null,
  });
  return `${secret}\n\nThis is the secret of ${keyId}. It is not kept and cannot be shown again.`;
}

async function pin(keys: Keys, { words }: Arguments): Promise<string> {
  const [keyId, word] = twoWords(words, "keys pin wants an ID and A, B or none");
  const variant = word === "none" ? null : variantOf(word);
  const key = find(keys, keyId);
  if (key.role === "admin") throw new UsageError("an administrator key speaks no variant", HELP_AT);
  await save(keys.store, { ...key, variant });
  return variant === null ? `${keyId} is pinned to no variant` : `${keyId} is pinned to variant ${variant}`;
}

async function expire(keys: Keys, { words }: Arguments): Promise<string> {
  const [keyId, word] = twoWords(words, "keys expire wants an ID and a time or never");
  const expiresAt = word === "never" ? null : timeOf(word, keys.now);
  await save(keys.store, { ...find(keys, keyId), expiresAt });
  return expiresAt === null ? `${keyId} does not expire` : `${keyId} expires at ${isoTime(expiresAt)}`;
}

async function revoke(keys: Keys, { words }: Arguments): Promise<string> {
  const key = find(keys, oneWord(words, "keys revoke wants an ID"));
  if (key.revokedAt === null) await save(keys.store, { ...key, revokedAt: keys.now });
  return `${key.keyId} is revoked`;
}

async function save(store: Store, key: KeyRecord): Promise<void> {
  await store.transact({}, () => accept(null, [{ kind: "key.saved", key }]));
}

function find({ all }: Keys, keyId: string): KeyRecord {
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

function oneWord(words: readonly string[], message: string): string {
  const [word, ...more] = words;
  if (word === undefined || more.length > 0) throw new UsageError(message, HELP_AT);
  return word;
}

function twoWords(words: readonly string[], message: string): readonly [string, string] {
  const [first, second, ...more] = words;
  if (first === undefined || second === undefined || more.length > 0) throw new UsageError(message, HELP_AT);
  return [first, second];
}
