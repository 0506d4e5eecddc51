/** `luxhub serve`: starts the hub, prints its addresses, and ends it on a signal or an uncaught error. */
import { type Config, ConfigError, SETTING_ROWS, readConfig } from "../config.ts";
import { type DataDir, type Secrets, discardNewSecrets, loadSecrets, makeDataDir } from "../data-dir.ts";
import { type Hub, type OpenListener, openHub } from "../hub.ts";
import { systemClock } from "../lib/clock.ts";
import { canonicalIp } from "../lib/ip.ts";
import { type Log, causeOf, openLog } from "../lib/log.ts";
import { shellWord } from "../lib/shell.ts";
import { VARIANTS } from "../variant/by-name.ts";
import { SOFTWARE } from "../version.ts";
import { type Form, readArguments } from "./arguments.ts";
import { readConfigFile } from "./config-file.ts";
import { openLogOutput } from "./log-output.ts";
import { endingSignals } from "./signals.ts";
import { SERVE_HELP, say } from "./usage.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const FORM: Form = {
  name: "serve",
  words: "",
  flags: Object.fromEntries(
    SETTING_ROWS.map(({ flag, multiple }) => [flag.slice(2), { type: "string", multiple }]),
  ),
};

/** Ctrl-C may arrive twice at once: from the terminal, and from a parent that forwards it. */
const SECOND_SIGNAL_MS = 1_000;

/** Resolves with the exit code when the hub has ended. */
export async function serveCommand(argv: readonly string[], env: Environment): Promise<number> {
  const { flags, help } = readArguments(argv, FORM);
  if (help) return say(SERVE_HELP);
  const config = readConfig({ flags, env, file: readConfigFile() });
  if ((config.tlsCert === null) !== (config.tlsKey === null)) {
    const [given, missing] = config.tlsKey === null ? ["cert", "key"] : ["key", "cert"];
    throw new ConfigError(`--tls-${given} is given without --tls-${missing}`);
  }
  const ending = endOfService(); // first, so that an early signal ends the hub in order too
  process.umask(0o077); // what the hub writes is its owner's alone, wherever the data directory is
  const dir = makeDataDir(config.dataDir);
  const clock = systemClock();
  const output = openLogOutput((lines) => log.warn("lines of the log could not be written", { lost: lines }));
  const log = openLog(config.log, clock.now, output.write);
  const secrets = loadSecrets(dir, env);
  const onFailure = (): void => discardNewSecrets(dir, secrets);
  const hub = await openHub({ config, dir, secrets, clock, log, onFailure });
  announce(config, hub, dir, secrets, log);
  if (config.tlsCert !== null && !config.listen.some(({ tls }) => tls))
    log.warn("no listener speaks TLS", { needed: "--listen with +tls, as A+tls:0.0.0.0:19443" });
  const end = await ending;
  if ("signal" in end) log.info("ending", end);
  else log.error("ending after an uncaught error", { cause: causeOf(end.fault) });
  await hub.close();
  log.info("ended");
  log.flush();
  const code = "signal" in end ? 0 : 1;
  if (!(await output.end())) process.exit(code); // its reader has stalled
  return code;
}

/** After an uncaught error no state can be trusted: the hub ends in order, and its supervisor restarts it. */
type End = { readonly signal: string } | { readonly fault: unknown };

/** The first signal or uncaught error ends the hub in order; a later signal ends it at once. */
function endOfService(): Promise<End> {
  const clock = systemClock();
  return new Promise((resolve) => {
    for (const event of ["uncaughtException", "unhandledRejection"] as const) {
      process.on(event, (fault: unknown) => resolve({ fault }));
    }
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

/** Prints log lines for a collector, or a page for a person, with the new secrets, once. */
function announce(config: Config, hub: Hub, dir: DataDir, secrets: Secrets, log: Log): void {
  if (config.log === "json") {
    for (const listener of hub.listeners) {
      log.info("listening", { url: urlOf(listener), variant: listener.spec.variant });
    }
    if (secrets.secretIsNew)
      log.info("secrets made", { secret_file: dir.secretFile, admin_key_file: dir.adminKeyFile });
    log.flush();
    return;
  }
  const lines = [SOFTWARE, ""];
  for (const listener of hub.listeners) {
    const variant = VARIANTS[listener.spec.variant];
    const where = isEverywhere(listener.host) ? "  (on every address of this machine)" : "";
    lines.push(`  ${urlOf(listener)}  variant ${variant.name}, hub version ${variant.version}${where}`);
  }
  lines.push("", `  data       ${dir.path}`);
  if (secrets.secretIsNew)
    lines.push(`  secret     ${secrets.secret}   (kept in ${dir.secretFile}, not shown again)`);
  if (secrets.adminKeyIsNew) {
    lines.push(`  admin key  ${secrets.adminKey}   (kept in ${dir.adminKeyFile}, not shown again)`);
  }
  lines.push("", "Try:", "", ...curlLines(hub.listeners, dir, secrets), "");
  try {
    say(lines.join("\n"));
  } catch (error) {
    console.error(`luxhub: ${error instanceof Error ? error.message : error}`); // it can serve all the same
  }
}

/** Three calls to paste into a shell. */
function curlLines(listeners: readonly OpenListener[], dir: DataDir, secrets: Secrets): string[] {
  const listener = listeners[0];
  if (!listener) return [];
  const url = (path: string): string => shellWord(`${urlOf(listener)}/api/v1${path}`);
  const secret = secrets.secretFromEnv
    ? "$LUXHUB_SECRET"
    : secrets.secretIsNew
      ? secrets.secret
      : `$(cat ${shellWord(dir.secretFile)})`;
  const curl = `  curl -H "X-Matrix-Secret: ${secret}"`;
  return [
    `${curl} ${url("/status")}`,
    `${curl} ${url("/node/register")} -d '{"node_id":"worker-1","name":"Worker One"}'`,
    `${curl} ${url("/task/create")} -d '{"title":"Say hello","description":"To everyone"}'`,
  ];
}

function urlOf({ host, port, tls }: OpenListener): string {
  const shown = isEverywhere(host) ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return `${tls ? "https" : "http"}://${shown}:${port}`;
}

/** However it is written: 0.0.0.0, ::, 0:0:0:0:0:0:0:0. */
function isEverywhere(host: string): boolean {
  return ["0.0.0.0", "::"].includes(canonicalIp(host) ?? "");
}
