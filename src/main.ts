/**
 * argv to command, and the exit codes: 0 done; 2 the command line or a setting is wrong as it is written; 1 anything else
 * that failed, such as a path that cannot be read or written.
 */
import "./cli/cold-start.ts";
import { UsageError, readArguments } from "./cli/arguments.ts";
import { serveCommand } from "./cli/serve.ts";
import { HELP, VERSION_HELP, say } from "./cli/usage.ts";
import { ConfigError } from "./config.ts";
import { didYouMean } from "./lib/closest.ts";
import { SOFTWARE } from "./version.ts";

type Run = (argv: readonly string[], env: NodeJS.ProcessEnv) => Promise<number> | number;

/** All but serve are loaded when they are asked for: a hub that serves does without them. */
const COMMANDS: Readonly<Record<string, Run>> = {
  serve: serveCommand,
  keys: async (argv, env) => (await import("./cli/keys.ts")).keysCommand(argv, env),
  backup: async (argv, env) => (await import("./cli/backup.ts")).backupCommand(argv, env),
  restore: async (argv, env) => (await import("./cli/restore.ts")).restoreCommand(argv, env),
  doctor: async (argv, env) => (await import("./cli/doctor.ts")).doctorCommand(argv, env),
  move: async (argv, env) => (await import("./cli/move.ts")).moveCommand(argv, env),
  service: async (argv, env) => (await import("./cli/service.ts")).serviceCommand(argv, env),
  version: versionCommand,
  help: helpCommand,
};
const ALIASES: Readonly<Record<string, string>> = { "--version": "version", "--help": "help", "-h": "help" };

function main([word = "help", ...argv]: readonly string[]): Promise<number> | number {
  const name = ALIASES[word] ?? word;
  const run = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (run) return run(argv, process.env);
  const meant = didYouMean(word, Object.keys(COMMANDS));
  throw new UsageError(`unknown command ${JSON.stringify(word)}${meant}`, "");
}

function versionCommand(argv: readonly string[]): number {
  const { help } = readArguments(argv, { name: "version", words: "", flags: {} });
  return say(help ? VERSION_HELP : SOFTWARE);
}

/** `luxhub help COMMAND` is `luxhub COMMAND --help`; help for help is the help. */
function helpCommand([word = "help", ...more]: readonly string[]): Promise<number> | number {
  if (more[0] !== undefined) throw new UsageError(`unexpected ${JSON.stringify(more[0])}`, "");
  return (ALIASES[word] ?? word) === "help" ? say(HELP) : main([word, "--help"]);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const asked = error instanceof UsageError || error instanceof ConfigError;
  const message = error instanceof Error ? error.message : String(error);
  console.error(`luxhub: ${message.replaceAll(/\p{Cc}+/gu, " ")}`); // one line, whatever a word or a path has in it
  process.exitCode = asked ? 2 : 1;
}
