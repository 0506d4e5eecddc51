/** `luxhub serve`: runs the hub until a signal or an uncaught error. */
import { fstatSync } from "node:fs";
import { resolve } from "node:path";
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
import { type Hub, type HubTurn, openHub } from "../hub.ts";
import type { CopyParts } from "../hub/copies.ts";
import { urlOf, urlsElsewhere } from "../hub/addresses.ts";
import type { OpenListener } from "../hub/listeners.ts";
import { type Clock, systemClock } from "../lib/clock.ts";
import { threadCpuMs } from "../lib/processor-time.ts";
import { type Log, causeOf, openLog } from "../lib/log.ts";
import { reasonOf } from "../lib/reason.ts";
import { shellWord } from "../lib/shell.ts";
import { permissionWarnings, refuseWorldWritable } from "../permissions.ts";
import { shownUrl } from "../service/copies.ts";
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

/** `--sync` alone is `--sync=on`; a value follows only with `=`. */
const valueOfSync = (word: string): string => (word === "--sync" ? "--sync=on" : word);

const FAULTS = ["uncaughtException", "unhandledRejection"] as const;

/** Ctrl-C may arrive twice at once: from the terminal, and from a parent that forwards it. */
const SECOND_SIGNAL_MS = 1_000;

export async function serveCommand(argv: readonly string[], env: Environment): Promise<number> {
  const { flags, help } = readArguments(argv.map(valueOfSync), FORM);
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
  const backups = { name: "backup", succeededAt: null, failures: 0 };
  const changes = { name: "changes", succeededAt: null, failures: 0 };
  const otherChores = () => [
    ...(config.backupTo === null ? [] : [backups]),
    ...(config.backupChangesMs === null ? [] : [changes]),
  ];
  const starting = new AbortController();
  void ending.then(() => starting.abort());
  let turn = Promise.withResolvers<HubTurn>();
  /** Again after each turn, at the same ports. */
  const open = async (
    listen: Config["listen"],
  ): Promise<Pick<Announcement, "hub" | "secrets" | "copies">> => {
    turn = Promise.withResolvers<HubTurn>();
    const copies = await readRole(config, dir, env, { clock, log, signal: starting.signal });
    const secrets = loadSecrets(dir, env); // after the base of a standby, which brings them
    const hub = await openHub({
      ...{ config: { ...config, listen }, dir, secrets, clock, log, otherChores },
      onFailure: () => discardNewSecrets(dir, secrets),
      onTurn: turn.resolve,
      openBase: async (signal) => (await import("./scheduled-backups.ts")).backupStream(dir, log, signal),
      ...(copies && { copies }),
    });
    if (copies?.role === "first" && copies.isPromoted)
      (await import("../standby/role.ts")).finishPromotion(dir);
    return { hub, secrets, copies };
  };
  let opened = await open(config.listen);
  let forgetAddresses = recordListeners(dir, opened.hub, config, log);
  announce({ config, ...opened, dir, isTerminal: await isTerminal() }, log);
  if (config.tlsCert !== null && !config.listen.some(({ tls }) => tls))
    log.warn("no listener speaks TLS", { needed: "--listen with +tls, as A+tls:0.0.0.0:19443" });
  const warnings = [
    ...secretWarnings(dir, env),
    ...configFileWarnings(file),
    ...(config.tlsKey === null ? [] : permissionWarnings(config.tlsKey, "the file of --tls-key", true)),
  ];
  for (const warning of warnings) log.warn(warning);
  const stopBackups = await backUpBySchedule(config, dir, {
    now: clock.now,
    log,
    runs: backups,
    changeRuns: changes,
    onArchived: (entry) => opened.hub.archived(entry),
    role: () => opened.copies?.role ?? "first",
  });
  for (;;) {
    const turned = await Promise.race([ending.then(() => null), turn.promise]);
    if (turned === null) break;
    const listen = opened.hub.listeners.map(({ spec, port }) => ({ ...spec, port }));
    forgetAddresses();
    const { markPromoted, setDatabaseAside } = await import("../standby/role.ts");
    if (turned === "promoted") markPromoted(dir); // first: its former first hub refuses writes by now
    await opened.hub.close();
    if (turned === "base needed") setDatabaseAside(dir, "replaced"); // kept: the first hub may have less
    opened = await open(listen);
    forgetAddresses = recordListeners(dir, opened.hub, config, log);
  }
  forgetAddresses();
  const closed = opened.hub.close();
  await Promise.all([closed, stopBackups(closed)]);
  log.info("ended");
  log.flush();
  await output.end();
  process.exit(exitCodeOf(await ending)); // what still hangs, such as the lookup of a name, would keep the process
}

/** Its code is loaded only where a file says that there is a second copy. Undefined: a first without one. */
async function readRole(
  { database }: Config,
  dir: DataDir,
  env: Environment,
  context: { readonly clock: Clock; readonly log: Log; readonly signal: AbortSignal },
): Promise<CopyParts | undefined> {
  if (database !== null) return undefined;
  return (await import("../standby/role.ts")).readCopyParts(dir, env, context);
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
  { backupTo, backupEveryMs, backupKeep, backupChangesMs, database }: Config,
  dir: DataDir,
  context: BackupContext,
): Promise<(ended: Promise<void>) => Promise<void>> {
  if (backupTo === null) return async () => {};
  const { startBackups } = await import("./scheduled-backups.ts");
  return startBackups(
    { to: backupTo, everyMs: backupEveryMs, keep: backupKeep, changesMs: backupChangesMs },
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
  readonly copies: CopyParts | undefined;
  /** A file or a pipe would keep the link of the sign-in for other readers. */
  readonly isTerminal: boolean;
};

/** For a person a few lines: what to do next. */
function announce(announcement: Announcement, log: Log): void {
  const { config, hub, dir, secrets } = announcement;
  if (config.log === "json") {
    for (const listener of hub.listeners) {
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
  const lines = [
    SOFTWARE,
    "",
    ...startLines(announcement).map(([word, text]) => `  ${word.padEnd(12)}${text}`),
    "",
  ];
  try {
    writeLine(lines.join("\n"));
  } catch (error) {
    console.error(`luxhub: ${error instanceof Error ? error.message : error}`); // the hub can serve without it
  }
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

/** Each with a word before it. */
function startLines({
  config,
  hub,
  dir,
  secrets,
  copies,
  isTerminal,
}: Announcement): (readonly [string, string])[] {
  const { listeners, signInCode } = hub;
  const [first] = listeners;
  const code = isTerminal && signInCode !== null ? `#sign-in=${signInCode}   (signs in once)` : "";
  const named = dir.path === resolve("luxhub-data") ? "" : ` --data ${shellWord(dir.path)}`;
  const elsewhere = listeners.flatMap(urlsElsewhere);
  const isFirst = copies === undefined || copies.role === "first";
  const invite = `luxhub invite NAME${named}`;
  const worker = config.isStrict
    ? `${invite}   (a strict hub: each worker has a key)`
    : `luxhub worker${named} -- sh -c 'echo "Hello, $LUXHUB_TASK_TITLE"'`;
  const machine =
    elsewhere.length > 0 ? invite : "start with --host 0.0.0.0 --tls auto, then luxhub invite NAME";
  return [
    ...line("Dashboard", signInCode !== null && first ? `${urlOf(first)}/${code}` : null),
    ...line(
      "Secret",
      secrets.secretFromEnv ? null : `in ${dir.secretFile}; the administrator key in ${dir.adminKeyFile}`,
    ),
    ...(copies ? roleLine(copies, named) : []),
    ...line("Data", secrets.secretFromEnv ? dir.path : null),
    ...line("A worker", isFirst ? worker : null),
    ...line("A task", isFirst ? `luxhub task add Ada${named}` : null),
    ...line("A machine", isFirst ? machine : null),
    ...listeners.flatMap((listener, i) => line(i === 0 ? "Listens" : "", listening(listener))),
    ...line("Open", elsewhere.length > 0 ? openness(hub, config) : null),
  ];
}

function roleLine(copies: CopyParts, named: string): ReturnType<typeof line> {
  if (copies.role === "first") return [];
  const { role } = copies;
  const hub = shownUrl(role === "standby" ? copies.original.urls : copies.by.urls) ?? "";
  return role === "standby"
    ? line("Standby", `of ${hub}: it answers reads, until luxhub promote${named}`)
    : line(
        "Superseded",
        `by ${hub}: it answers reads; to make it the standby, stop it, then luxhub join${named}`,
      );
}

const line = (word: string, text: string | null): readonly (readonly [string, string])[] =>
  text === null ? [] : [[word, text]];

function listening(listener: OpenListener): string {
  const others = urlsElsewhere(listener).filter((url) => url !== urlOf(listener));
  const also = others.length > 0 ? `, for other machines ${others.join(" ")}` : "";
  return `${urlOf(listener)}  variant ${listener.spec.variant}${also}`;
}

/** What others read without the secret. */
function openness(hub: Hub, { tlsAuto }: Config): string {
  if (!hub.listeners.some((listener) => isOpen(hub, listener)))
    return "nothing: each request needs the secret";
  const more = opensB(hub) ? `. So ${B_IS_OPEN}` : "";
  const tls = tlsAuto ? "" : ", and --tls auto encrypts";
  return `everyone who reaches the hub reads nodes, tasks, results, files and events: --private closes that${tls}${more}`;
}
