/** `luxhub serve`: runs the hub until a signal or an uncaught error. */
import { fstatSync } from "node:fs";
import { type Environment, type Config, ConfigError, SETTING_ROWS, readConfig } from "../config.ts";
import {
  type DataDir,
  type Secrets,
  discardNewSecrets,
  loadSecrets,
  makeDataDir,
  markPostgres,
  recordAddresses,
  secretWarnings,
} from "../data-dir.ts";
import { END_MAX_MS } from "../domain/limits.ts";
import { type Hub, openHub } from "../hub.ts";
import { isEverywhere, urlOf, urlsElsewhere } from "../hub/addresses.ts";
import type { OpenListener } from "../hub/listeners.ts";
import { systemClock } from "../lib/clock.ts";
import { threadCpuMs } from "../lib/processor-time.ts";
import { type Log, causeOf, openLog } from "../lib/log.ts";
import { reasonOf } from "../lib/reason.ts";
import { shellWord } from "../lib/shell.ts";
import { permissionWarnings, refuseWorldWritable } from "../permissions.ts";
import { sizeText } from "../upkeep/upkeep.ts";
import { VARIANTS } from "../variant/by-name.ts";
import { SOFTWARE } from "../version.ts";
import { type Form, readArguments } from "./arguments.ts";
import { configFileWarnings, readConfigFile, refuseMoved } from "./config-file.ts";
import { openLogOutput } from "./log-output.ts";
import type { BackupContext } from "./scheduled-backups.ts";
import { endingSignals, onStarterExit } from "./signals.ts";
import { helpOf } from "./help.ts";
import { writeLine, writeLineUnlessClosed } from "./standard-output.ts";

const FORM: Form = {
  name: "serve",
  words: "",
  flags: Object.fromEntries(
    SETTING_ROWS.map(({ flag, multiple, isSwitch }) => [
      flag.slice(2),
      { type: isSwitch ? "boolean" : "string", multiple },
    ]),
  ),
};

const FAULTS = ["uncaughtException", "unhandledRejection"] as const;

/** Ctrl-C may arrive twice at once: from the terminal, and from a parent that forwards it. */
const SECOND_SIGNAL_MS = 1_000;

export async function serveCommand(argv: readonly string[], env: Environment): Promise<number> {
  const { flags, help } = readArguments(argv, FORM);
  if (help) return writeLineUnlessClosed(helpOf(FORM.name));
  const file = readConfigFile();
  const config = readConfig({ flags, env, file });
  if (config.tlsKey !== null) refuseWorldWritable(config.tlsKey, "the file of --tls-key");
  if ((config.tlsCert === null) !== (config.tlsKey === null)) {
    const [given, missing] = config.tlsKey === null ? ["cert", "key"] : ["key", "cert"];
    throw new ConfigError(`--tls-${given} is given without --tls-${missing}`);
  }
  const ending = untilShutdown(); // first, so that an early signal also ends the hub in order
  process.umask(0o077); // only the owner may read what the hub writes, wherever the data directory is
  const dir = makeDataDir(config.dataDir);
  if (config.database === null) refuseMoved(dir);
  const clock = systemClock(threadCpuMs);
  const output = openLogOutput((lines) => log.warn("lines of the log could not be written", { lost: lines }));
  const log = openLog(
    { format: config.log, level: config.logLevel, colour: hasColour(env) && (await isTerminal()) },
    clock.now,
    output.write,
  );
  void ending.then((end) => endInTime(end, log)); // also while the hub still opens
  const secrets = loadSecrets(dir, env);
  const onFailure = (): void => discardNewSecrets(dir, secrets);
  const backups = { name: "backup", succeededAt: null, failures: 0 };
  const otherChores = () => (config.backupTo === null ? [] : [backups]);
  const hub = await openHub({ config, dir, secrets, clock, log, onFailure, otherChores });
  const forgetAddresses = recordListeners(dir, hub, config, log);
  announce({ config, hub, dir, secrets, showsSecrets: await isTerminal() }, log);
  if (config.tlsCert !== null && !config.listen.some(({ tls }) => tls))
    log.warn("no listener speaks TLS", { needed: "--listen with +tls, as A+tls:0.0.0.0:19443" });
  const warnings = [
    ...secretWarnings(dir, env),
    ...configFileWarnings(file),
    ...(config.tlsKey === null ? [] : permissionWarnings(config.tlsKey, "the file of --tls-key", true)),
  ];
  for (const warning of warnings) log.warn(warning);
  const stopBackups = await backUpBySchedule(config, dir, { now: clock.now, log, runs: backups });
  await ending;
  forgetAddresses();
  await Promise.all([hub.close(), stopBackups()]);
  log.info("ended");
  log.flush();
  await output.end();
  process.exit(exitCodeOf(await ending)); // what still hangs, such as the lookup of a name, would keep the process
}

const exitCodeOf = (end: End): number => ("signal" in end ? 0 : 1);

/**
 * Also logs the uncaught errors that follow from another one. Ends the process if the orderly end hangs: every response
 * that was sent is on disk already.
 */
function endInTime(end: End, log: Log): void {
  if ("signal" in end) log.info("ending", end);
  else {
    log.error("ending after an uncaught error", { cause: causeOf(end.fault) });
    for (const event of FAULTS) {
      process.on(event, (next: unknown) => log.error("another uncaught error", { cause: causeOf(next) }));
    }
  }
  setTimeout(() => {
    log.error("ended without order: it took too long");
    log.flush();
    process.exit(exitCodeOf(end));
  }, END_MAX_MS).unref();
}

/** So that commands need no --url on this machine. Returns the function that deletes the record. */
function recordListeners(dir: DataDir, { listeners }: Hub, { database }: Config, log: Log): () => void {
  try {
    if (database !== null) markPostgres(dir);
    return recordAddresses(
      dir,
      listeners.map((listener) => ({ variant: listener.spec.variant, url: urlOf(listener) })),
    );
  } catch (error) {
    log.warn("the addresses of the hub could not be recorded", {
      file: dir.addressFile,
      cause: reasonOf(error),
    });
    return () => {};
  }
}

/** Its code is loaded only when backups are wanted. */
async function backUpBySchedule(
  { backupTo, backupEveryMs, backupKeep, database }: Config,
  dir: DataDir,
  context: BackupContext,
): Promise<() => Promise<void>> {
  if (backupTo === null) return async () => {};
  const { startBackups } = await import("./scheduled-backups.ts");
  return startBackups(
    { to: backupTo, everyMs: backupEveryMs, keep: backupKeep },
    { dir, url: database },
    context,
  );
}

const STANDARD_OUTPUT = 1;

function hasColour(env: Environment): boolean {
  return !env["NO_COLOR"] && env["TERM"] !== "dumb";
}

/** node:tty loads all of Node's streams: only for a character device. */
async function isTerminal(): Promise<boolean> {
  return isCharacterDevice(STANDARD_OUTPUT) && (await import("node:tty")).isatty(STANDARD_OUTPUT);
}

function isCharacterDevice(fd: number): boolean {
  try {
    return fstatSync(fd).isCharacterDevice();
  } catch {
    return false; // standard output is closed
  }
}

/** After an uncaught error no state can be trusted: the hub ends in order, and its supervisor restarts it. */
type End = { readonly signal: string } | { readonly fault: unknown };

/** A later signal ends the hub at once. */
export function untilShutdown(): Promise<End> {
  const clock = systemClock();
  return new Promise((resolve) => {
    for (const event of FAULTS) {
      process.on(event, (fault: unknown) => resolve({ fault }));
    }
    onStarterExit(() => resolve({ signal: "end of its starter" }));
    let firstAt = Number.POSITIVE_INFINITY;
    for (const signal of endingSignals()) {
      process.on(signal, () => {
        if (clock.steady() - firstAt > SECOND_SIGNAL_MS) process.exit(1);
        firstAt = Math.min(firstAt, clock.steady());
        resolve({ signal });
      });
    }
  });
}

type Announcement = {
  readonly config: Config;
  readonly hub: Hub;
  readonly dir: DataDir;
  readonly secrets: Secrets;
  /** Only on a terminal: a file or a pipe keeps secrets for other readers. */
  readonly showsSecrets: boolean;
};

/** For a person a page, which shows new secrets this one time. */
function announce(announcement: Announcement, log: Log): void {
  const { config, hub, dir, secrets } = announcement;
  const { listeners } = hub;
  if (config.log === "json") {
    for (const listener of listeners) {
      const open = isOpen(hub, listener) ? hub.openReads.join(" ") : "none";
      const { variant } = listener.spec;
      const also = urlsElsewhere(listener).join(" ");
      log.info("listening", { url: urlOf(listener), variant, other_urls: also, open_reads: open });
    }
    log.info("quotas of keys that are bound to a node", {
      quota_tasks: hub.quotas.tasks,
      quota_bytes: hub.quotas.bytes,
    });
    if (opensB(hub)) log.warn(`without the secret, ${B_IS_OPEN}`, { needed: "--private" });
    if (secrets.secretIsNew)
      log.info("secrets created", { secret_file: dir.secretFile, admin_key_file: dir.adminKeyFile });
    log.flush();
    return;
  }
  const lines = [SOFTWARE, ""];
  for (const listener of listeners) {
    const variant = VARIANTS[listener.spec.variant];
    const where = isEverywhere(listener.host) ? "  (on every address of this machine)" : "";
    lines.push(`  ${urlOf(listener)}  variant ${variant.name}, hub version ${variant.version}${where}`);
    if (isEverywhere(listener.host))
      lines.push(...urlsElsewhere(listener).map((url) => `  ${url}  the same, for other machines`));
  }
  const [first] = listeners;
  lines.push(
    "",
    ...(config.ui && first ? [`  dashboard  ${urlOf(first)}/`] : []),
    `  data       ${dir.path}`,
  );
  lines.push(
    ...newSecretLines(announcement),
    quotaLine(hub),
    ...openLines(hub),
    "",
    "Try:",
    "",
    ...linesToTry(announcement),
    "",
  );
  try {
    writeLine(lines.join("\n"));
  } catch (error) {
    console.error(`luxhub: ${error instanceof Error ? error.message : error}`); // the hub can serve without it
  }
}

function quotaLine({ quotas }: Hub): string {
  const { tasks, bytes } = quotas;
  return `  quotas     keys bound to one node: ${tasks} unfinished tasks (--quota-tasks), ${sizeText(bytes)} (--quota-bytes)`;
}

function newSecretLines({ dir, secrets, showsSecrets }: Announcement): string[] {
  const line = (name: string, secret: string, file: string): string =>
    showsSecrets ? `  ${name}${secret}   (kept in ${file}, not shown again)` : `  ${name}in ${file}`;
  return [
    ...(secrets.secretIsNew ? [line("secret     ", secrets.secret, dir.secretFile)] : []),
    ...(secrets.adminKeyIsNew ? [line("admin key  ", secrets.adminKey, dir.adminKeyFile)] : []),
  ];
}

const B_IS_OPEN =
  "the open reads of variant A include tasks, results and files created through the B listener";

function isOpen({ openReads }: Hub, { spec }: OpenListener): boolean {
  return VARIANTS[spec.variant].publicEndpoints && openReads.length > 0;
}

/** A listener of A shows without a secret what a listener of B protects with one. */
function opensB(hub: Hub): boolean {
  return (
    hub.listeners.some((listener) => isOpen(hub, listener)) &&
    hub.listeners.some(({ spec }) => !VARIANTS[spec.variant].publicEndpoints)
  );
}

function openLines(hub: Hub): string[] {
  const urls = hub.listeners
    .filter((listener) => isOpen(hub, listener))
    .flatMap((listener) => [
      urlOf(listener),
      ...urlsElsewhere(listener).filter((url) => url !== urlOf(listener)),
    ]);
  if (urls.length === 0) return ["  open       nothing: every request to the API needs the secret"];
  const half = Math.ceil(hub.openReads.length / 2);
  const indent = " ".repeat("  open       ".length);
  return [
    `  open       without the secret, to everyone who reaches ${urls.join(" or ")}:`,
    `${indent}${hub.openReads.slice(0, half).join(", ")},`,
    `${indent}${hub.openReads.slice(half).join(", ")}`,
    ...(opensB(hub) ? [`${indent}So ${B_IS_OPEN}.`] : []),
    `${indent}--private closes these reads.`,
  ];
}

/** A strict hub first needs a key for a node. */
function linesToTry({ config, hub, dir, secrets, showsSecrets }: Announcement): string[] {
  const { isStrict, database } = config;
  const { listeners } = hub;
  const listener = listeners[0];
  if (!listener) return [];
  const url = (path: string, base = urlOf(listener)): string => shellWord(`${base}/api/v1${path}`);
  const isShown = secrets.secretIsNew && showsSecrets;
  const secretOr = (stored: string): string =>
    secrets.secretFromEnv ? "$LUXHUB_SECRET" : isShown ? secrets.secret : `$(cat ${stored})`;
  const curlWith = (secret: string): string => `  curl -H "X-Matrix-Secret: ${secret}"`;
  const curl = curlWith(secretOr(shellWord(dir.secretFile)));
  const elsewhere = listeners.flatMap(urlsElsewhere)[0];
  const copied = secrets.secretFromEnv || isShown ? "" : `, with a copy of ${dir.secretFile}`;
  const registration = `-d '{"node_id":"worker-1","name":"Worker One"}'`;
  return [
    `${curl} ${url("/status")}`,
    ...(isStrict
      ? [
          `  key=$(luxhub keys add worker-1 --node worker-1 --data ${shellWord(dir.path)}${database === null ? "" : " --database URL"})   # once`,
          `${curlWith("$key")} ${url("/node/register")} ${registration}`,
        ]
      : [`${curl} ${url("/node/register")} ${registration}`]),
    `${curl} ${url("/task/create")} -d '{"title":"Say hello","description":"To everyone"}'`,
    ...(config.tlsAuto
      ? [
          "",
          `  luxhub invite worker-2 --data ${shellWord(dir.path)}   # prints the line with which a second machine joins`,
        ]
      : elsewhere === undefined || isStrict
        ? []
        : [
            "",
            `On a second machine${copied}:`,
            "",
            `${curlWith(secretOr("secret"))} ${url("/node/register", elsewhere)} -d '{"node_id":"worker-2","name":"Worker Two"}'`,
          ]),
  ];
}
