/**
 * Every setting of the hub, once: flag, environment variable, key in luxhub.toml, default, help and parser. Flags win
 * over the environment, the environment over luxhub.toml, and that over the default. The command line's help is made
 * from this list.
 */
import {
  ANSWERS_DEFAULT_MAX_BYTES,
  BACKUPS_KEPT_DEFAULT,
  BACKUP_EVERY_DEFAULT_MS,
  FILE_DEFAULT_MAX_BYTES,
  LUX_REWARD_MAX,
  NODES_DEFAULT_MAX,
  NODES_HIGHEST_MAX,
  TLS_PORT,
  OUTPUT_HEAD_DEFAULT_BYTES,
  OUTPUT_KEPT_MAX_BYTES,
  OUTPUT_TAIL_DEFAULT_BYTES,
  PORT_MAX,
  QUOTA_BYTES_ON_POSTGRES,
  QUOTA_TASKS_DEFAULT,
  QUOTA_TASKS_HIGHEST,
  REPORT_MAX_DEFAULT_USD,
  REPORT_MAX_HIGHEST_USD,
  RETAIN_DEFAULT_MS,
  SIGNIN_LUX,
  STUCK_AFTER_DEFAULT_MS,
} from "./domain/limits.ts";
import type { VariantName } from "./domain/model.ts";
import { LOG_LEVELS } from "./lib/log.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "./lib/clock.ts";
import { durationMs } from "./lib/duration.ts";
import { didYouMean } from "./lib/closest.ts";
import { parseAllowed } from "./lib/address-policy.ts";
import { isIP, parseNetwork } from "./lib/ip.ts";

export type ListenSpec = {
  readonly variant: VariantName;
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
};

export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** A kind of value, with its placeholder in the help. */
type Kind<T> = { readonly value: string; readonly parse: Parser<T> };

/** `must`: a phrase. */
type Parser<T> = (text: string) => { readonly value: T } | { readonly must: string };

/** Null for a text that `must` does not describe. */
function kind<T>(value: string, must: string, read: (text: string) => T | null): Kind<T> {
  return {
    value,
    parse: (text) => {
      const found = read(text);
      return found === null ? { must } : { value: found };
    },
  };
}

function wordOf<T extends string>(...words: readonly T[]): Kind<T> {
  const must = words.join(", ").replace(/, ([^,]*)$/, " or $1");
  return kind(words.join("|"), must, (text) => words.find((word) => word === text) ?? null);
}

function either(first: string, second: string, yes: string): Kind<boolean> {
  return kind(`${first}|${second}`, `${first} or ${second}`, (text) =>
    text === first || text === second ? text === yes : null,
  );
}

function numberUpTo(value: string, max: number, what: string, form: RegExp): Kind<number> {
  return kind(value, what, (text) => (form.test(text) && Number(text) <= max ? Number(text) : null));
}

const wholeUpTo = (max: number): Kind<number> =>
  numberUpTo("N", max, `a whole number from 1 to ${max}`, /^[1-9]\d{0,9}$/);

const onOff = either("on", "off", "on");

const UNIT_BYTES: Readonly<Record<string, number>> = { "": 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };

function positive(value: number | null): number | null {
  return value !== null && Number.isSafeInteger(value) && value > 0 ? value : null;
}

const size = kind("SIZE", "a size such as 500000, 64KiB, 100MiB or 2GiB", (text) => {
  const [, amount, unit = ""] = /^(\d{1,15})(KiB|MiB|GiB|)$/.exec(text) ?? [];
  return positive(Number(amount) * (UNIT_BYTES[unit] ?? Number.NaN));
});

const outputSize = kind(
  "SIZE",
  `a size up to ${OUTPUT_KEPT_MAX_BYTES / 2 ** 20}MiB, such as 64KiB`,
  (text) => {
    const read = size.parse(text);
    return "value" in read && read.value <= OUTPUT_KEPT_MAX_BYTES ? read.value : null;
  },
);

const time = kind("TIME", "a time such as 12h or 7d", (text) =>
  /^\d+[smhd]$/.test(text) ? positive(durationMs(text)) : null,
);

const PORT_FORM = `a port number from 0 to ${PORT_MAX}`;

function isPort(text: string | undefined): boolean {
  return text !== undefined && /^\d{1,5}$/.test(text) && Number(text) <= PORT_MAX;
}

const port = kind("PORT", PORT_FORM, (text) => (isPort(text) ? Number(text) : null));

const HOST_NAME = /^[\w.-]+$/;

/** With or without brackets. */
function readHost(text: string): string | null {
  const [, inBrackets] = /^\[(.*)\]$/.exec(text) ?? [];
  const host = inBrackets ?? text;
  if (host.includes(":")) return isIP(host) === 6 ? host : null;
  return inBrackets === undefined && HOST_NAME.test(host) ? host : null;
}

const host = kind("HOST", "an address or a name, such as 127.0.0.1, ::1 or localhost", readHost);

const LISTEN_FORM = "VARIANT[+tls]:HOST:PORT, such as B:127.0.0.1:19105 or A+tls:0.0.0.0:19443";
const LISTEN_SPEC = /^([AB])(\+tls)?:(\[[^\]]+\]|[^:]+):(\d{1,5})$/;

function readListen(text: string): ListenSpec | null {
  const [, name, tls, address = "", digits] = LISTEN_SPEC.exec(text) ?? [];
  const host = readHost(address);
  if ((name !== "A" && name !== "B") || host === null || !isPort(digits)) return null;
  return { variant: name, host, port: Number(digits), tls: tls !== undefined };
}

const NETWORK_FORM = "an address or a network such as 127.0.0.1, 10.0.0.0/8 or fd00::/8";

const ALLOWED_FORM = "an address, ADDRESS:PORT or a network such as 192.168.0.0/16; not link-local";

const REDIS_FORM = "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], or rediss:// for TLS";

function isRedis(text: string): boolean {
  const url = /^rediss?:\/\/[^/\s]/.test(text) ? URL.parse(text) : null;
  return url !== null && url.hostname !== "" && /^(?:\/\d{0,5})?$/.test(url.pathname) && !/[?#]/.test(text);
}

/** U+FFFD replaces bytes that are not UTF-8: such a path would name another file. */
const UNREADABLE = /[\0-\x1f\x7f\ufffd]/;

export function isPath(text: string): boolean {
  return text !== "" && !UNREADABLE.test(text);
}

/** Refuses `~`, which only a shell expands. */
export const readPath: Parser<string> = (text) => {
  if (!isPath(text)) return { must: "a path in UTF-8, without control characters" };
  if (/^~[^/]*(?:\/|$)/.test(text)) return { must: "a full path, without ~" };
  return { value: text };
};

const DATABASE_FORM = "a URL such as postgres://USER:PASSWORD@HOST/NAME";

function isDatabase(text: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(text) && URL.canParse(text);
}

/** libpq's, which Bun's driver shares. */
const SSL_MODES = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

function hasSslMode(text: string): boolean {
  const mode = URL.parse(text)?.searchParams.get("sslmode");
  return !mode || SSL_MODES.includes(mode);
}

const parseDatabase: Parser<string> = (text) => {
  if (!isDatabase(text)) return { must: DATABASE_FORM };
  return hasSslMode(text)
    ? { value: text }
    : { must: `a URL whose sslmode is one of ${SSL_MODES.join(", ")}` };
};

const database: Kind<string> = { value: "URL", parse: parseDatabase };
const redis = kind("URL", REDIS_FORM, (text) => (isRedis(text) ? text : null));

function readPublicUrl(text: string): string | null {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
  if (url === null || url.username !== "" || url.password !== "" || /[?#]/.test(text)) return null;
  return url.href.replace(/\/$/, "");
}

const ORIGIN_FORM = "an origin such as https://example.org or http://localhost:3000, or * for any";

/** As a browser sends it: no path, no default port, lower case. */
function readOrigin(text: string): string | null {
  if (text === "*") return text;
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
  return url !== null && url.origin === text.toLowerCase().replace(/\/$/, "") ? url.origin : null;
}

const path: Kind<string> = { value: "FILE", parse: readPath };
const network = kind("NETWORK", ALLOWED_FORM, parseAllowed);
const dollars = `dollars from 0 to ${REPORT_MAX_HIGHEST_USD}, with at most 6 decimals`;
const lux = `LUX from 0 to ${LUX_REWARD_MAX}, with at most 6 decimals`;

type Setting<T> = Kind<T> & {
  /** Without dashes; LUXHUB_ and the flag in upper case is the environment variable. */
  readonly flag: string;
  readonly help: string;
  readonly fallback: string | null;
  readonly isList?: true;
  readonly isSwitch?: true;
  /** It may contain a password: no message repeats it. */
  readonly isSecret?: true;
};

/** Null without a value. */
const maybe = <T>(flag: string, help: string, { value, parse }: Kind<T>) =>
  ({ flag, value, help, parse, fallback: null }) satisfies Setting<T>;

const given = <T>(flag: string, help: string, fallback: string, { value, parse }: Kind<T>) =>
  ({ flag, value, help, parse, fallback }) satisfies Setting<T>;

const secret = <T>(flag: string, help: string, of: Kind<T>) =>
  ({ ...maybe(flag, help, of), isSecret: true }) as const satisfies Setting<T>;

const list = <T>(flag: string, help: string, of: Kind<T>) =>
  ({ ...maybe(flag, help, of), isList: true }) as const satisfies Setting<T>;

const toggle = (flag: string, help: string) =>
  ({
    ...maybe(flag, help, kind("", "true or false", readToggle)),
    isSwitch: true,
  }) as const satisfies Setting<boolean>;

function readToggle(text: string): boolean | null {
  return text === "" || text === "true" ? true : text === "false" ? false : null;
}

/** By their names in Config, in the order of the help. */
const SETTINGS = {
  host: given("host", "address to listen on; 0.0.0.0 is every address of the machine", "127.0.0.1", host),
  port: given("port", "port to listen on; 0 lets the system choose", "19104", port),
  variant: given("variant", "variant of the listener: A (1.5) or B (1.0)", "A", wordOf("A", "B")),
  dataDir: given("data", "directory of database, files and secrets", "./luxhub-data", {
    ...path,
    value: "DIR",
  }),
  /** With its password; null: SQLite in the data directory. */
  database: secret("database", "PostgreSQL instead of SQLite: postgres://USER:PASSWORD@HOST/NAME", database),
  furtherListeners: list(
    "listen",
    `one more listener, repeatable: ${LISTEN_FORM}`,
    kind("SPEC", LISTEN_FORM, readListen),
  ),
  tls: maybe("tls", `certificate by the hub; adds port ${TLS_PORT} if --listen has no +tls`, wordOf("auto")),
  tlsCert: maybe("tls-cert", "certificate (PEM) for the +tls listeners", path),
  tlsKey: maybe("tls-key", "private key (PEM) for the +tls listeners", path),
  maxFileBytes: given(
    "max-file",
    "largest accepted file: bytes, or with KiB, MiB, GiB",
    `${FILE_DEFAULT_MAX_BYTES / 2 ** 30}GiB`,
    size,
  ),
  maxAnswersBytes: given(
    "max-answers",
    "space for stored responses (Idempotency-Key); drops the oldest",
    `${ANSWERS_DEFAULT_MAX_BYTES / 2 ** 30}GiB`,
    size,
  ),
  /** On the disk of the data directory; with less, writes are refused; null: depends on the disk (data-dir.ts). */
  minFreeBytes: maybe("min-free", "free space that writes need (64MiB; 5% of a disk under 1.25GiB)", size),
  maxNodes: given(
    "max-nodes",
    "largest number of registered nodes",
    `${NODES_DEFAULT_MAX}`,
    wholeUpTo(NODES_HIGHEST_MAX),
  ),
  quotaTasks: given(
    "quota-tasks",
    "most unfinished tasks created by a node's keys",
    `${QUOTA_TASKS_DEFAULT}`,
    wholeUpTo(QUOTA_TASKS_HIGHEST),
  ),
  /** Null: depends on the disk (hub.ts). */
  quotaBytes: maybe(
    "quota-bytes",
    `space a node may fill (10% of free space; ${QUOTA_BYTES_ON_POSTGRES / 2 ** 30}GiB on PostgreSQL)`,
    size,
  ),
  selfReward: given("self-reward", "off: the hub pays no node and no key for a task of its own", "on", onOff),
  signinLux: given(
    "signin-lux",
    "LUX of the daily bonus; 0: no bonus",
    `${SIGNIN_LUX}`,
    numberUpTo("N", LUX_REWARD_MAX, lux, /^\d{1,10}(?:\.\d{1,6})?$/),
  ),
  signinBound: given(
    "signin",
    "bound: only a key bound to the node collects its daily bonus",
    "any",
    either("any", "bound", "bound"),
  ),
  outputHeadBytes: given(
    "output-head",
    "how much the hub keeps of the beginning of an output",
    `${OUTPUT_HEAD_DEFAULT_BYTES / 2 ** 10}KiB`,
    outputSize,
  ),
  outputTailBytes: given(
    "output-tail",
    "how much the hub keeps of the end of an output",
    `${OUTPUT_TAIL_DEFAULT_BYTES / 2 ** 10}KiB`,
    outputSize,
  ),
  retainMs: given(
    "retain",
    "how long messages and events are kept: with s, m, h or d",
    `${RETAIN_DEFAULT_MS / DAY_MS}d`,
    time,
  ),
  /** Null: for ever. */
  retainNodesMs: maybe(
    "retain-nodes",
    "how long the hub keeps an offline node without tasks (forever)",
    time,
  ),
  retainTasksMs: maybe("retain-tasks", "how long a finished task is kept, with its files (forever)", time),
  retainFilesMs: maybe("retain-files", "how long a file without an unfinished task is kept (forever)", time),
  retainUsageMs: maybe("retain-usage", "how long the sums of usage are kept (forever)", time),
  reportMaxUsd: given(
    "report-max",
    "dollars that count of a bound key's reports for a task",
    `${REPORT_MAX_DEFAULT_USD}`,
    numberUpTo("USD", REPORT_MAX_HIGHEST_USD, dollars, /^\d{1,7}(?:\.\d{1,6})?$/),
  ),
  offlineTasks: given(
    "offline-tasks",
    "keep: tasks of an offline node stay assigned to the node",
    "requeue",
    wordOf("requeue", "keep"),
  ),
  /** Null: the oldest task comes first. */
  fair: maybe("fair", "among tasks of equal priority, one of each creator in turn (off)", wordOf("creator")),
  stuckAfterMs: given(
    "stuck-after",
    "time until the event task.stuck if no node can take a task",
    `${STUCK_AFTER_DEFAULT_MS / MINUTE_MS}m`,
    time,
  ),
  /** Null: nowhere. */
  backupTo: maybe("backup-to", "directory or s3://BUCKET/PREFIX for backups that the hub makes", {
    ...path,
    value: "PLACE",
  }),
  backupEveryMs: given(
    "backup-every",
    "how often the hub makes a backup: with s, m, h or d",
    `${BACKUP_EVERY_DEFAULT_MS / HOUR_MS}h`,
    time,
  ),
  backupKeep: given(
    "backup-keep",
    "how many of these backups the hub keeps",
    `${BACKUPS_KEPT_DEFAULT}`,
    wholeUpTo(9_999),
  ),
  backupChangesMs: maybe(
    "backup-changes",
    "how often the hub also writes what has changed to --backup-to: with s, m, h or d (never)",
    time,
  ),
  sync: given(
    "sync",
    "a write waits until a standby has it on disk (on), and is refused without one (strict)",
    "off",
    wordOf("off", "on", "strict"),
  ),
  /** May hold a password: never shown or logged. */
  redis: secret(
    "redis",
    "Redis or Valkey for wake-ups between hubs; with a password, set it in the environment",
    redis,
  ),
  ui: given("ui", "serve the dashboard at /", "on", onOff),
  mcp: given("mcp", "let agents call the hub by MCP, at /mcp", "on", onOff),
  a2a: given("a2a", "let agents send tasks by A2A, at /a2a", "on", onOff),
  name: maybe(
    "name",
    "name of the hub, such as prod-eu, for people and dashboards",
    kind("NAME", "1 to 64 characters of A-Z a-z 0-9 . _ -", (text) =>
      /^[A-Za-z0-9._-]{1,64}$/.test(text) ? text : null,
    ),
  ),
  /** Without a slash at the end; null: the URL of the first listener. */
  publicUrl: maybe(
    "public-url",
    "base URL of links to the hub (URL of the first listener)",
    kind("URL", "a URL such as https://hub.example.org, without a query", readPublicUrl),
  ),
  log: given("log", "format of the log", "pretty", wordOf("pretty", "json")),
  logLevel: given("log-level", "minimum log level: error, warn, info or debug", "info", {
    ...wordOf(...LOG_LEVELS),
    value: "LEVEL",
  }),
  isPrivate: toggle("private", "the open reads of A need the secret too"),
  isStrict: toggle("strict", "only a key bound to a node may act for this node"),
  trustProxy: list(
    "trust-proxy",
    "proxy whose X-Forwarded-For is trusted, repeatable: an address or a network, such as 10.0.0.0/8",
    kind("ADDRESS", NETWORK_FORM, parseNetwork),
  ),
  userHeader: maybe(
    "user-header",
    "header in which a trusted proxy names the person, for the event log",
    kind("NAME", "the name of a header, such as X-Forwarded-User", (text) =>
      /^[A-Za-z0-9-]{1,64}$/.test(text) ? text : null,
    ),
  ),
  webhookAllow: list(
    "webhook-allow",
    "network or own address that webhooks may call, repeatable, such as 192.168.0.0/16",
    network,
  ),
  pushAllow: list("push-allow", "the same for push notifications of A2A, whose URLs agents choose", network),
  cors: list(
    "cors",
    "origin whose pages may call the hub from a browser, repeatable; * for any",
    kind("ORIGIN", ORIGIN_FORM, readOrigin),
  ),
  /** In lower case; when empty, any host name. */
  allowedHosts: list(
    "allowed-host",
    "host name by which the hub may be called, repeatable; others are refused",
    kind("NAME", "a host name without a port, such as hub.example.org", (text) =>
      HOST_NAME.test(text) ? text.toLowerCase().replace(/\.$/, "") : null,
    ),
  ),
};

type ValueOf<S> =
  S extends Setting<infer T>
    ? S extends { readonly isList: true }
      ? readonly T[]
      : S extends { readonly isSwitch: true } | { readonly fallback: string }
        ? T
        : T | null
    : never;
type Values = { readonly [N in keyof typeof SETTINGS]: ValueOf<(typeof SETTINGS)[N]> };

/** A setting without a value is null, a list empty, a switch false. */
export type Config = Omit<Values, "host" | "port" | "variant" | "furtherListeners" | "tls"> & {
  readonly listen: readonly ListenSpec[];
  readonly tlsAuto: boolean;
};

export type SettingRow = {
  readonly flag: string;
  readonly env: string;
  readonly key: string;
  readonly value: string;
  readonly fallback: string | null;
  readonly help: string;
  readonly multiple: boolean;
  readonly isSwitch: boolean;
};

export const SETTING_ROWS: readonly SettingRow[] = Object.values<Setting<unknown>>(SETTINGS).map(
  ({ flag, value, fallback, help, isList = false, isSwitch = false }) => ({
    flag: `--${flag}`,
    env: envOf(flag),
    key: keyOf(flag),
    value,
    fallback,
    help,
    multiple: isList,
    isSwitch,
  }),
);

export type Environment = Readonly<Record<string, string | undefined>>;

export type Sources = {
  readonly flags: Readonly<Record<string, readonly string[] | undefined>>;
  readonly env: Environment;
  /** Null: there is no luxhub.toml. */
  readonly file: Readonly<Record<string, unknown>> | null;
};

/** @throws {ConfigError} one line that names the bad setting */
export function readConfig(sources: Sources): Config {
  refuseUnknownKeys(sources.file);
  const values = Object.fromEntries(
    Object.entries<Setting<unknown>>(SETTINGS).map(([name, setting]) => [
      name,
      readValueOf(setting, sources),
    ]),
  ) as Values; // ValueOf says what readValueOf() returns
  const { host, port, variant, furtherListeners, tls, ...rest } = values;
  const tlsAuto = tls === "auto";
  const first: ListenSpec = { variant, host, port, tls: false };
  const isMissing = tlsAuto && !furtherListeners.some((spec) => spec.tls);
  const added = isMissing ? [{ ...first, port: TLS_PORT, tls: true }] : [];
  const config: Config = { ...rest, tlsAuto, listen: [first, ...furtherListeners, ...added] };
  if (tlsAuto && (config.tlsCert !== null || config.tlsKey !== null))
    throw new ConfigError("--tls auto makes a certificate: leave --tls-cert and --tls-key out");
  const isGivenOne = config.tlsCert !== null && config.tlsKey !== null;
  if (config.listen.some((spec) => spec.tls) && !tlsAuto && !isGivenOne) {
    throw new ConfigError("a +tls listener needs --tls auto, or --tls-cert and --tls-key");
  }
  const { backupEveryMs, backupKeep, backupChangesMs } = SETTINGS;
  const scheduled = [backupEveryMs, backupKeep, backupChangesMs].find((option) => isGiven(option, sources));
  if (config.backupTo === null && scheduled)
    throw new ConfigError(`--${scheduled.flag} needs --backup-to, which says where the backups go`);
  if (config.backupChangesMs !== null && config.database !== null)
    throw new ConfigError(
      "--backup-changes is for SQLite: PostgreSQL archives its own write-ahead log (archive_command)",
    );
  return config;
}

function isGiven({ flag }: { readonly flag: string }, { flags, env, file }: Sources): boolean {
  return flags[flag] !== undefined || Boolean(env[envOf(flag)]) || file?.[keyOf(flag)] !== undefined;
}

function readValueOf(setting: Setting<unknown>, sources: Sources): unknown {
  if (setting.isList) return readList(setting, sources);
  return readSetting(setting, sources) ?? (setting.isSwitch ? false : null);
}

function readSetting<T>(option: Setting<T>, { flags, env, file }: Sources): T | null {
  const given = flags[option.flag]?.at(-1);
  if (given !== undefined) return readValue(option, given, `--${option.flag}`);
  const fromEnv = env[envOf(option.flag)];
  if (fromEnv !== undefined && fromEnv !== "") return readValue(option, fromEnv, envOf(option.flag));
  const fromFile = file?.[keyOf(option.flag)];
  if (fromFile !== undefined)
    return readValue(option, scalar(fromFile, keyOf(option.flag)), `${keyOf(option.flag)} in luxhub.toml`);
  return option.fallback === null ? null : readValue(option, option.fallback, `--${option.flag}`);
}

function readList<T>(option: Setting<T>, { flags, env, file }: Sources): readonly T[] {
  const read = (words: readonly string[], source: string): readonly T[] =>
    words.flatMap((word) => word.split(",")).map((text) => readValue(option, text.trim(), source));
  const given = flags[option.flag];
  if (given) return read(given, `--${option.flag}`);
  const fromEnv = env[envOf(option.flag)];
  if (fromEnv) return read([fromEnv], envOf(option.flag));
  const key = keyOf(option.flag);
  const words = [file?.[key] ?? []].flat().map((word: unknown) => scalar(word, key));
  return read(words, `${key} in luxhub.toml`);
}

function readValue<T>(option: Setting<T>, text: string, source: string): T {
  const read = option.parse(text);
  if ("value" in read) return read.value;
  if (option.isSecret) throw new ConfigError(`${source} must be ${read.must}`);
  throw new ConfigError(`${source} is ${JSON.stringify(text)}; it must be ${read.must}`);
}

function scalar(value: unknown, key: string): string {
  if (["string", "number", "boolean"].includes(typeof value)) return String(value);
  throw new ConfigError(`${key} in luxhub.toml must be a string, a number, true or false`);
}

function refuseUnknownKeys(file: Sources["file"]): void {
  const known = SETTING_ROWS.map((row) => row.key);
  const unknown = Object.keys(file ?? {}).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    const meant = didYouMean(unknown, known);
    throw new ConfigError(`luxhub.toml has an unknown key ${unknown}${meant}; there are ${known.join(", ")}`);
  }
}

function envOf(flag: string): string {
  return `LUXHUB_${keyOf(flag).toUpperCase()}`;
}

function keyOf(flag: string): string {
  return flag.replaceAll("-", "_");
}
