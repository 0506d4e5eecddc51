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
import { must } from "./lib/assert.ts";
import { LOG_LEVELS, type LogLevel } from "./lib/log.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "./lib/clock.ts";
import { durationMs } from "./lib/duration.ts";
import { didYouMean } from "./lib/closest.ts";
import { type AllowedNetwork, parseAllowed } from "./lib/address-policy.ts";
import { type Network, isIP, parseNetwork } from "./lib/ip.ts";

export type ListenSpec = {
  readonly variant: VariantName;
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
};

export type Config = {
  readonly listen: readonly ListenSpec[];
  readonly dataDir: string;
  /** With its password; null: SQLite in the data directory. */
  readonly database: string | null;
  readonly tlsAuto: boolean;
  readonly tlsCert: string | null;
  readonly tlsKey: string | null;
  readonly maxFileBytes: number;
  /** On the disk of the data directory; with less, writes are refused; null: depends on the disk (data-dir.ts). */
  readonly minFreeBytes: number | null;
  readonly maxNodes: number;
  readonly maxAnswersBytes: number;
  /** By keys bound to a node. */
  readonly quotaTasks: number;
  /** Null: depends on the disk (hub.ts). */
  readonly quotaBytes: number | null;
  readonly outputHeadBytes: number;
  readonly outputTailBytes: number;
  readonly retainMs: number;
  /** Null: for ever. */
  readonly retainNodesMs: number | null;
  /** Null: for ever. */
  readonly retainTasksMs: number | null;
  readonly retainFilesMs: number | null;
  /** Null: for ever. */
  readonly retainUsageMs: number | null;
  readonly reportMaxUsd: number;
  readonly offlineTasks: "requeue" | "keep";
  /** Null: the oldest task comes first. */
  readonly fair: "creator" | null;
  readonly stuckAfterMs: number;
  /** Null: nowhere. */
  readonly backupTo: string | null;
  readonly backupEveryMs: number;
  readonly backupKeep: number;
  readonly log: "pretty" | "json";
  readonly logLevel: LogLevel;
  readonly trustProxy: readonly Network[];
  /** Of private addresses. */
  readonly webhookAllow: readonly AllowedNetwork[];
  readonly pushAllow: readonly AllowedNetwork[];
  readonly cors: readonly string[];
  /** In lower case; when empty, any host name. */
  readonly allowedHosts: readonly string[];
  readonly isPrivate: boolean;
  readonly isStrict: boolean;
  readonly selfReward: boolean;
  /** 0: there is none. */
  readonly signinLux: number;
  readonly signinBound: boolean;
  readonly ui: boolean;
  /** May hold a password: never shown or logged. */
  readonly redis: string | null;
  readonly mcp: boolean;
  readonly a2a: boolean;
  /** Without a slash at the end; null: the URL of the first listener. */
  readonly publicUrl: string | null;
  readonly name: string | null;
};

export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** `must`: a phrase. */
type Parser<T> = (text: string) => { readonly value: T } | { readonly must: string };

/** Null for a text that `must` does not describe. */
function parser<T>(must: string, read: (text: string) => T | null): Parser<T> {
  return (text) => {
    const value = read(text);
    return value === null ? { must } : { value };
  };
}

function oneOf<T extends string>(must: string, ...words: readonly T[]): Parser<T> {
  return parser(must, (text) => words.find((word) => word === text) ?? null);
}

const UNIT_BYTES: Readonly<Record<string, number>> = { "": 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };

function positive(value: number | null): number | null {
  return value !== null && Number.isSafeInteger(value) && value > 0 ? value : null;
}

const size = parser("a size such as 500000, 64KiB, 100MiB or 2GiB", (text) => {
  const [, amount, unit = ""] = /^(\d{1,15})(KiB|MiB|GiB|)$/.exec(text) ?? [];
  return positive(Number(amount) * (UNIT_BYTES[unit] ?? Number.NaN));
});

const outputSize = parser(`a size up to ${OUTPUT_KEPT_MAX_BYTES / 2 ** 20}MiB, such as 64KiB`, (text) => {
  const read = size(text);
  return "value" in read && read.value <= OUTPUT_KEPT_MAX_BYTES ? read.value : null;
});

const time = parser("a time such as 12h or 7d", (text) =>
  /^\d+[smhd]$/.test(text) ? positive(durationMs(text)) : null,
);

const PORT_FORM = `a port number from 0 to ${PORT_MAX}`;

function isPort(text: string | undefined): boolean {
  return text !== undefined && /^\d{1,5}$/.test(text) && Number(text) <= PORT_MAX;
}

const port = parser(PORT_FORM, (text) => (isPort(text) ? Number(text) : null));

const HOST_NAME = /^[\w.-]+$/;

/** With or without brackets. */
function readHost(text: string): string | null {
  const [, inBrackets] = /^\[(.*)\]$/.exec(text) ?? [];
  const host = inBrackets ?? text;
  if (host.includes(":")) return isIP(host) === 6 ? host : null;
  return inBrackets === undefined && HOST_NAME.test(host) ? host : null;
}

const host = parser("an address or a name, such as 127.0.0.1, ::1 or localhost", readHost);

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

type Setting<T, F extends string | null = string | null> = {
  /** Without dashes; LUXHUB_ and the flag in upper case is the environment variable. */
  readonly flag: string;
  readonly value: string;
  readonly fallback: F;
  readonly help: string;
  readonly parse: Parser<T>;
  /** It may contain a password: no message repeats it. */
  readonly isSecret?: boolean;
};

function setting<T, F extends string | null>(
  flag: string,
  value: string,
  fallback: F,
  help: string,
  parse: Parser<T>,
): Setting<T, F> {
  return { flag, value, fallback, help, parse };
}

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

const readDatabase: Parser<string> = (text) => {
  if (!isDatabase(text)) return { must: DATABASE_FORM };
  return hasSslMode(text)
    ? { value: text }
    : { must: `a URL whose sslmode is one of ${SSL_MODES.join(", ")}` };
};

function readPublicUrl(text: string): string | null {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
  if (url === null || url.username !== "" || url.password !== "" || /[?#]/.test(text)) return null;
  return url.href.replace(/\/$/, "");
}

const SETTINGS = {
  host: setting(
    "host",
    "HOST",
    "127.0.0.1",
    "address to listen on; 0.0.0.0 is every address of the machine",
    host,
  ),
  port: setting("port", "PORT", "19104", "port to listen on; 0 lets the system choose", port),
  variant: setting(
    "variant",
    "A|B",
    "A",
    "variant of the listener: A (1.5) or B (1.0)",
    oneOf("A or B", "A", "B"),
  ),
  data: setting("data", "DIR", "./luxhub-data", "directory of database, files and secrets", readPath),
  database: {
    ...setting(
      "database",
      "URL",
      null,
      "PostgreSQL instead of SQLite: postgres://USER:PASSWORD@HOST/NAME",
      readDatabase,
    ),
    isSecret: true,
  },
  tls: setting(
    "tls",
    "auto",
    null,
    `certificate by the hub; adds port ${TLS_PORT} if --listen has no +tls`,
    oneOf("auto", "auto"),
  ),
  tlsCert: setting("tls-cert", "FILE", null, "certificate (PEM) for the +tls listeners", readPath),
  tlsKey: setting("tls-key", "FILE", null, "private key (PEM) for the +tls listeners", readPath),
  maxFile: setting(
    "max-file",
    "SIZE",
    `${FILE_DEFAULT_MAX_BYTES / 2 ** 30}GiB`,
    "largest accepted file: bytes, or with KiB, MiB, GiB",
    size,
  ),
  maxAnswers: setting(
    "max-answers",
    "SIZE",
    `${ANSWERS_DEFAULT_MAX_BYTES / 2 ** 30}GiB`,
    "space for stored responses (Idempotency-Key); drops the oldest",
    size,
  ),
  minFree: setting(
    "min-free",
    "SIZE",
    null,
    "free space that writes need (64MiB; 5% of a disk under 1.25GiB)",
    size,
  ),
  maxNodes: setting(
    "max-nodes",
    "N",
    `${NODES_DEFAULT_MAX}`,
    "largest number of registered nodes",
    parser(`a whole number from 1 to ${NODES_HIGHEST_MAX}`, (text) =>
      /^[1-9]\d{0,6}$/.test(text) && Number(text) <= NODES_HIGHEST_MAX ? Number(text) : null,
    ),
  ),
  quotaTasks: setting(
    "quota-tasks",
    "N",
    `${QUOTA_TASKS_DEFAULT}`,
    "most unfinished tasks created by a node's keys",
    parser(`a whole number from 1 to ${QUOTA_TASKS_HIGHEST}`, (text) =>
      /^[1-9]\d{0,9}$/.test(text) && Number(text) <= QUOTA_TASKS_HIGHEST ? Number(text) : null,
    ),
  ),
  quotaBytes: setting(
    "quota-bytes",
    "SIZE",
    null,
    `space a node may fill (10% of free space; ${QUOTA_BYTES_ON_POSTGRES / 2 ** 30}GiB on PostgreSQL)`,
    size,
  ),
  selfReward: setting(
    "self-reward",
    "on|off",
    "on",
    "off: the hub pays no node and no key for a task of its own",
    oneOf("on or off", "on", "off"),
  ),
  signinLux: setting(
    "signin-lux",
    "N",
    `${SIGNIN_LUX}`,
    "LUX of the daily bonus; 0: no bonus",
    parser(`LUX from 0 to ${LUX_REWARD_MAX}, with at most 6 decimals`, (text) =>
      /^\d{1,10}(?:\.\d{1,6})?$/.test(text) && Number(text) <= LUX_REWARD_MAX ? Number(text) : null,
    ),
  ),
  signin: setting(
    "signin",
    "any|bound",
    "any",
    "bound: only a key bound to the node collects its daily bonus",
    oneOf("any or bound", "any", "bound"),
  ),
  outputHead: setting(
    "output-head",
    "SIZE",
    `${OUTPUT_HEAD_DEFAULT_BYTES / 2 ** 10}KiB`,
    "how much the hub keeps of the beginning of an output",
    outputSize,
  ),
  outputTail: setting(
    "output-tail",
    "SIZE",
    `${OUTPUT_TAIL_DEFAULT_BYTES / 2 ** 10}KiB`,
    "how much the hub keeps of the end of an output",
    outputSize,
  ),
  retain: setting(
    "retain",
    "TIME",
    `${RETAIN_DEFAULT_MS / DAY_MS}d`,
    "how long messages and events are kept: with s, m, h or d",
    time,
  ),
  backupTo: setting(
    "backup-to",
    "PLACE",
    null,
    "directory or s3://BUCKET/PREFIX for backups that the hub makes",
    readPath,
  ),
  backupEvery: setting(
    "backup-every",
    "TIME",
    `${BACKUP_EVERY_DEFAULT_MS / HOUR_MS}h`,
    "how often the hub makes a backup: with s, m, h or d",
    time,
  ),
  backupKeep: setting(
    "backup-keep",
    "N",
    `${BACKUPS_KEPT_DEFAULT}`,
    "how many of these backups the hub keeps",
    parser("a whole number from 1 to 9999", (text) => (/^[1-9]\d{0,3}$/.test(text) ? Number(text) : null)),
  ),
  retainNodes: setting(
    "retain-nodes",
    "TIME",
    null,
    "how long the hub keeps an offline node without tasks (forever)",
    time,
  ),
  retainTasks: setting(
    "retain-tasks",
    "TIME",
    null,
    "how long a finished task is kept, with its files (forever)",
    time,
  ),
  retainFiles: setting(
    "retain-files",
    "TIME",
    null,
    "how long a file without an unfinished task is kept (forever)",
    time,
  ),
  retainUsage: setting("retain-usage", "TIME", null, "how long the sums of usage are kept (forever)", time),
  reportMax: setting(
    "report-max",
    "USD",
    `${REPORT_MAX_DEFAULT_USD}`,
    "dollars that count of a bound key's reports for a task",
    parser(`dollars from 0 to ${REPORT_MAX_HIGHEST_USD}, with at most 6 decimals`, (text) =>
      /^\d{1,7}(?:\.\d{1,6})?$/.test(text) && Number(text) <= REPORT_MAX_HIGHEST_USD ? Number(text) : null,
    ),
  ),
  offlineTasks: setting(
    "offline-tasks",
    "requeue|keep",
    "requeue",
    "keep: tasks of an offline node stay assigned to the node",
    oneOf("requeue or keep", "requeue", "keep"),
  ),
  stuckAfter: setting(
    "stuck-after",
    "TIME",
    `${STUCK_AFTER_DEFAULT_MS / MINUTE_MS}m`,
    "time until the event task.stuck if no node can take a task",
    time,
  ),
  fair: setting(
    "fair",
    "creator",
    null,
    "among tasks of equal priority, one of each creator in turn (off)",
    oneOf("creator", "creator"),
  ),
  redis: {
    ...setting(
      "redis",
      "URL",
      null,
      "Redis or Valkey for wake-ups between hubs; with a password, set it in the environment",
      parser(REDIS_FORM, (text) => (isRedis(text) ? text : null)),
    ),
    isSecret: true,
  },
  ui: setting("ui", "on|off", "on", "serve the dashboard at /", oneOf("on or off", "on", "off")),
  mcp: setting(
    "mcp",
    "on|off",
    "on",
    "let agents call the hub by MCP, at /mcp",
    oneOf("on or off", "on", "off"),
  ),
  a2a: setting(
    "a2a",
    "on|off",
    "on",
    "let agents send tasks by A2A, at /a2a",
    oneOf("on or off", "on", "off"),
  ),
  name: setting(
    "name",
    "NAME",
    null,
    "name of the hub, such as prod-eu, for people and dashboards",
    parser("1 to 64 characters of A-Z a-z 0-9 . _ -", (text) =>
      /^[A-Za-z0-9._-]{1,64}$/.test(text) ? text : null,
    ),
  ),
  publicUrl: setting(
    "public-url",
    "URL",
    null,
    "base URL of links to the hub (URL of the first listener)",
    parser("a URL such as https://hub.example.org, without a query", readPublicUrl),
  ),
  log: setting(
    "log",
    "pretty|json",
    "pretty",
    "format of the log",
    oneOf("pretty or json", "pretty", "json"),
  ),
  logLevel: setting(
    "log-level",
    "LEVEL",
    "info",
    "minimum log level: error, warn, info or debug",
    oneOf("error, warn, info or debug", ...LOG_LEVELS),
  ),
};

const ORIGIN_FORM = "an origin such as https://example.org or http://localhost:3000, or * for any";

/** As a browser sends it: no path, no default port, lower case. */
function readOrigin(text: string): string | null {
  if (text === "*") return text;
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
  return url !== null && url.origin === text.toLowerCase().replace(/\/$/, "") ? url.origin : null;
}

const LISTEN = setting(
  "listen",
  "SPEC",
  null,
  `one more listener, repeatable: ${LISTEN_FORM}`,
  parser(LISTEN_FORM, readListen),
);
const TRUST_PROXY = setting(
  "trust-proxy",
  "ADDRESS",
  null,
  "proxy whose X-Forwarded-For is trusted, repeatable: an address or a network, such as 10.0.0.0/8",
  parser(NETWORK_FORM, parseNetwork),
);
const WEBHOOK_ALLOW = setting(
  "webhook-allow",
  "NETWORK",
  null,
  "network or own address that webhooks may call, repeatable, such as 192.168.0.0/16",
  parser(ALLOWED_FORM, parseAllowed),
);
const PUSH_ALLOW = setting(
  "push-allow",
  "NETWORK",
  null,
  "the same for push notifications of A2A, whose URLs agents choose",
  parser(ALLOWED_FORM, parseAllowed),
);

const CORS = setting(
  "cors",
  "ORIGIN",
  null,
  "origin whose pages may call the hub from a browser, repeatable; * for any",
  parser(ORIGIN_FORM, readOrigin),
);
const ALLOWED_HOST = setting(
  "allowed-host",
  "NAME",
  null,
  "host name by which the hub may be called, repeatable; others are refused",
  parser("a host name without a port, such as hub.example.org", (text) =>
    HOST_NAME.test(text) ? text.toLowerCase().replace(/\.$/, "") : null,
  ),
);
const LISTS: readonly Setting<unknown>[] = [
  LISTEN,
  TRUST_PROXY,
  WEBHOOK_ALLOW,
  PUSH_ALLOW,
  CORS,
  ALLOWED_HOST,
];

function toggle(flag: string, help: string): Setting<boolean> {
  const parse = parser("true or false", (text) =>
    text === "" || text === "true" ? true : text === "false" ? false : null,
  );
  return setting(flag, "", null, help, parse);
}

const PRIVATE = toggle("private", "the open reads of A need the secret too");
const STRICT = toggle("strict", "only a key bound to a node may act for this node");
const SWITCHES: readonly Setting<unknown>[] = [PRIVATE, STRICT];

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

export const SETTING_ROWS: readonly SettingRow[] = [
  SETTINGS.host,
  SETTINGS.port,
  SETTINGS.variant,
  SETTINGS.data,
  SETTINGS.database,
  LISTEN,
  SETTINGS.tls,
  SETTINGS.tlsCert,
  SETTINGS.tlsKey,
  SETTINGS.maxFile,
  SETTINGS.maxAnswers,
  SETTINGS.minFree,
  SETTINGS.maxNodes,
  SETTINGS.quotaTasks,
  SETTINGS.quotaBytes,
  SETTINGS.selfReward,
  SETTINGS.signinLux,
  SETTINGS.signin,
  SETTINGS.outputHead,
  SETTINGS.outputTail,
  SETTINGS.retain,
  SETTINGS.retainNodes,
  SETTINGS.retainTasks,
  SETTINGS.retainFiles,
  SETTINGS.retainUsage,
  SETTINGS.reportMax,
  SETTINGS.offlineTasks,
  SETTINGS.fair,
  SETTINGS.stuckAfter,
  SETTINGS.backupTo,
  SETTINGS.backupEvery,
  SETTINGS.backupKeep,
  SETTINGS.redis,
  SETTINGS.ui,
  SETTINGS.mcp,
  SETTINGS.a2a,
  SETTINGS.name,
  SETTINGS.publicUrl,
  SETTINGS.log,
  SETTINGS.logLevel,
  PRIVATE,
  STRICT,
  TRUST_PROXY,
  WEBHOOK_ALLOW,
  PUSH_ALLOW,
  CORS,
  ALLOWED_HOST,
].map((option: Setting<unknown>) => ({
  flag: `--${option.flag}`,
  env: envOf(option.flag),
  key: keyOf(option.flag),
  value: option.value,
  fallback: option.fallback,
  help: option.help,
  multiple: LISTS.includes(option),
  isSwitch: SWITCHES.includes(option),
}));

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
  const find = <T>(option: Setting<T>): T | null => readSetting(option, sources);
  const get = <T>(option: Setting<T, string>): T =>
    must(find(option), "a setting with a default has a value");
  const listen: ListenSpec = {
    variant: get(SETTINGS.variant),
    host: get(SETTINGS.host),
    port: get(SETTINGS.port),
    tls: false,
  };
  const tlsAuto = find(SETTINGS.tls) === "auto";
  const furtherListeners = readList(LISTEN, sources);
  const isMissing = tlsAuto && !furtherListeners.some((spec) => spec.tls);
  const config: Config = {
    listen: [listen, ...furtherListeners, ...(isMissing ? [{ ...listen, port: TLS_PORT, tls: true }] : [])],
    tlsAuto,
    dataDir: get(SETTINGS.data),
    database: find(SETTINGS.database),
    tlsCert: find(SETTINGS.tlsCert),
    tlsKey: find(SETTINGS.tlsKey),
    maxFileBytes: get(SETTINGS.maxFile),
    maxAnswersBytes: get(SETTINGS.maxAnswers),
    minFreeBytes: find(SETTINGS.minFree),
    maxNodes: get(SETTINGS.maxNodes),
    quotaTasks: get(SETTINGS.quotaTasks),
    quotaBytes: find(SETTINGS.quotaBytes),
    outputHeadBytes: get(SETTINGS.outputHead),
    outputTailBytes: get(SETTINGS.outputTail),
    retainMs: get(SETTINGS.retain),
    retainNodesMs: find(SETTINGS.retainNodes),
    retainTasksMs: find(SETTINGS.retainTasks),
    retainFilesMs: find(SETTINGS.retainFiles),
    retainUsageMs: find(SETTINGS.retainUsage),
    reportMaxUsd: get(SETTINGS.reportMax),
    offlineTasks: get(SETTINGS.offlineTasks),
    fair: find(SETTINGS.fair),
    stuckAfterMs: get(SETTINGS.stuckAfter),
    backupTo: find(SETTINGS.backupTo),
    backupEveryMs: get(SETTINGS.backupEvery),
    backupKeep: get(SETTINGS.backupKeep),
    log: get(SETTINGS.log),
    logLevel: get(SETTINGS.logLevel),
    trustProxy: readList(TRUST_PROXY, sources),
    webhookAllow: readList(WEBHOOK_ALLOW, sources),
    pushAllow: readList(PUSH_ALLOW, sources),
    cors: readList(CORS, sources),
    allowedHosts: readList(ALLOWED_HOST, sources),
    isPrivate: find(PRIVATE) ?? false,
    isStrict: find(STRICT) ?? false,
    selfReward: get(SETTINGS.selfReward) !== "off",
    signinLux: get(SETTINGS.signinLux),
    signinBound: get(SETTINGS.signin) === "bound",
    ui: get(SETTINGS.ui) !== "off",
    redis: find(SETTINGS.redis),
    mcp: get(SETTINGS.mcp) !== "off",
    a2a: get(SETTINGS.a2a) !== "off",
    name: find(SETTINGS.name),
    publicUrl: find(SETTINGS.publicUrl),
  };
  if (tlsAuto && (config.tlsCert !== null || config.tlsKey !== null))
    throw new ConfigError("--tls auto makes a certificate: leave --tls-cert and --tls-key out");
  const isGivenOne = config.tlsCert !== null && config.tlsKey !== null;
  if (config.listen.some((spec) => spec.tls) && !tlsAuto && !isGivenOne) {
    throw new ConfigError("a +tls listener needs --tls auto, or --tls-cert and --tls-key");
  }
  const scheduled = [SETTINGS.backupEvery, SETTINGS.backupKeep].find((option) => isGiven(option, sources));
  if (config.backupTo === null && scheduled)
    throw new ConfigError(`--${scheduled.flag} needs --backup-to, which says where the backups go`);
  return config;
}

function isGiven({ flag }: { readonly flag: string }, { flags, env, file }: Sources): boolean {
  return flags[flag] !== undefined || Boolean(env[envOf(flag)]) || file?.[keyOf(flag)] !== undefined;
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
