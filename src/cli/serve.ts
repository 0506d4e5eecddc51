/** `luxhub serve`: starts the hub, says where it is, and ends it on SIGTERM or SIGINT. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Config, ConfigError, SETTING_ROWS, readConfig } from "../config.ts";
import { type DataDir, type Secrets, loadSecrets, makeDataDir } from "../data-dir.ts";
import { type Hub, type OpenListener, openHub } from "../hub.ts";
import { systemClock } from "../lib/clock.ts";
import { openLog } from "../lib/log.ts";
import { VARIANTS } from "../variant/variants.ts";
import { SOFTWARE } from "../version.ts";
import { warmUp } from "./cold-start.ts";
import { SERVE_HELP, UsageError, readArguments, say } from "./usage.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const CONFIG_FILE = "luxhub.toml";

/** Resolves with the exit code when the hub has ended. */
export async function serveCommand(argv: readonly string[], env: Environment): Promise<number> {
  const valued = SETTING_ROWS.map((row) => row.flag.replace(/^--/, ""));
  const { flags, words, help } = readArguments(argv, valued, [], "luxhub serve --help");
  if (help) {
    return say(SERVE_HELP);
  }
  if (words[0] !== undefined)
    throw new UsageError(`unexpected ${JSON.stringify(words[0])}`, "luxhub serve --help");
  const config = readConfig({ flags, env, file: readConfigFile(CONFIG_FILE) });
  const dir = makeDataDir(resolve(config.dataDir));
  const clock = systemClock();
  const output = Bun.stdout.writer();
  const log = openLog(config.log, clock.now, (text) => {
    output.write(text);
    output.flush();
  });
  const secrets = loadSecrets(dir, env);
  const hub = await openHub({ config, dir, secrets, clock, log });
  announce(config, hub, dir, secrets, log);
  warmUp();
  const signal = await endSignal();
  log.info("ending", { signal });
  await hub.close();
  log.info("ended");
  log.flush();
  await output.end();
  return 0;
}

function readConfigFile(path: string): Record<string, unknown> | null {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw new ConfigError(`cannot read ${path}: ${error instanceof Error ? error.message : error}`);
  }
  try {
    return { ...Bun.TOML.parse(text) };
  } catch (error) {
    throw new ConfigError(`${path} is not TOML: ${error instanceof Error ? error.message : error}`);
  }
}

/** The first signal ends the hub in order; the second ends it at once. */
function endSignal(): Promise<string> {
  return new Promise((resolve) => {
    let ending = false;
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      process.on(signal, () => {
        if (ending) process.exit(1);
        ending = true;
        resolve(signal);
      });
    }
  });
}

type Log = ReturnType<typeof openLog>;

/** A collector gets lines; a person gets a page, with the new secrets on it, once. */
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
  say(lines.join("\n"));
}

/** Three calls that work when they are pasted into a shell. */
function curlLines(listeners: readonly OpenListener[], dir: DataDir, secrets: Secrets): string[] {
  const listener = listeners[0];
  if (!listener) return [];
  const api = `${urlOf(listener)}/api/v1`;
  const secret = secrets.secretFromEnv
    ? '"X-Matrix-Secret: $LUXHUB_SECRET"'
    : secrets.secretIsNew
      ? `"X-Matrix-Secret: ${secrets.secret}"`
      : `"X-Matrix-Secret: $(cat '${dir.secretFile}')"`;
  return [
    `  curl -H ${secret} ${api}/status`,
    `  curl -H ${secret} ${api}/node/register -d '{"node_id":"worker-1","name":"Worker One"}'`,
    `  curl -H ${secret} ${api}/task/create -d '{"title":"Say hello","description":"To everyone"}'`,
  ];
}

function urlOf({ host, port, tls }: OpenListener): string {
  const shown = isEverywhere(host) ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return `${tls ? "https" : "http"}://${shown}:${port}`;
}

function isEverywhere(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}
