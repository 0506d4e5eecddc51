/**
 * Runs the command that argv names. It returns its exit code (cli/exit-codes.ts); an error that it throws is exit code
 * 2 if the command line or a setting is invalid, else 1.
 */
import "./cli/cold-start.ts";
import { UsageError, readArguments } from "./cli/arguments.ts";
import { EXIT, Failure } from "./cli/exit-codes.ts";
import { warnOfRuntimeFiles } from "./cli/runtime-files.ts";
import type { ClientRuns } from "./cli/remote.ts";
import { serveCommand } from "./cli/serve.ts";
import { writeLineUnlessClosed } from "./cli/standard-output.ts";
import { ConfigError } from "./config.ts";
import { didYouMean } from "./lib/closest.ts";
import { printableLine } from "./lib/printable.ts";
import { SOFTWARE } from "./version.ts";

type Run = (argv: readonly string[], env: NodeJS.ProcessEnv) => Promise<number> | number;

/** All but serve are loaded on demand, so that a running hub does not hold their code in memory. */
const COMMANDS: Readonly<Record<string, Run>> = {
  serve: serveCommand,
  demo: async (argv) => (await import("./cli/demo.ts")).demoCommand(argv),
  join: async (argv, env) => (await import("./cli/join.ts")).joinCommand(argv, env),
  keys: async (argv, env) => (await import("./cli/keys.ts")).keysCommand(argv, env),
  backup: async (argv, env) => (await import("./cli/backup.ts")).backupCommand(argv, env),
  restore: async (argv, env) => (await import("./cli/restore.ts")).restoreCommand(argv, env),
  doctor: async (argv, env) => (await import("./cli/doctor.ts")).doctorCommand(argv, env),
  move: async (argv, env) => (await import("./cli/move.ts")).moveCommand(argv, env),
  openapi: async (argv) => (await import("./cli/openapi.ts")).openApiCommand(argv),
  service: async (argv, env) => (await import("./cli/service.ts")).serviceCommand(argv, env),
  lux: async (argv, env) => (await import("./cli/lux.ts")).luxCommand(argv, env),
  "mcp-config": async (argv, env) => (await import("./cli/mcp-config.ts")).mcpConfigCommand(argv, env),
  completions: async (argv) => (await import("./cli/completions.ts")).completionsCommand(argv),
  man: async (argv) => (await import("./cli/man.ts")).manCommand(argv),
  version: versionCommand,
  help: helpCommand,
};

/** The commands of these words that are more than one call to a hub; cli/resource.ts runs the others. */
const CLIENTS: Readonly<Record<string, () => Promise<{ readonly RUNS: ClientRuns }>>> = {
  status: () => import("./cli/status.ts"),
  top: () => import("./cli/top.ts"),
  events: () => import("./cli/events.ts"),
  task: () => import("./cli/task.ts"),
  group: () => import("./cli/group.ts"),
  schedule: () => import("./cli/schedule.ts"),
  usage: () => import("./cli/usage.ts"),
  message: () => import("./cli/message.ts"),
  file: () => import("./cli/file.ts"),
  invite: () => import("./cli/invite.ts"),
  run: () => import("./cli/run.ts"),
  worker: () => import("./cli/worker.ts"),
  mcp: () => import("./cli/mcp.ts"),
};
const ALIASES: Readonly<Record<string, string>> = { "--version": "version", "--help": "help", "-h": "help" };

async function main([word = "help", ...argv]: readonly string[]): Promise<number> {
  const name = ALIASES[word] ?? word;
  const run = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (run) return run(argv, process.env);
  const { FIRST_WORDS } = await import("./cli/commands.ts");
  if (!FIRST_WORDS.includes(name))
    throw new UsageError(`unknown command ${JSON.stringify(word)}${didYouMean(word, FIRST_WORDS)}`, "");
  const [{ runClient }, client] = await Promise.all([import("./cli/resource.ts"), CLIENTS[name]?.()]);
  return runClient(name, argv, process.env, client?.RUNS);
}

async function versionCommand(argv: readonly string[]): Promise<number> {
  const { help } = readArguments(argv, { name: "version", words: "", flags: {} });
  return writeLineUnlessClosed(help ? (await import("./cli/help.ts")).helpOf("version") : SOFTWARE);
}

/** `luxhub help COMMAND` is `luxhub COMMAND --help`; `luxhub help help` is `luxhub help`. */
async function helpCommand([word = "help", ...more]: readonly string[]): Promise<number> {
  const [sub, extra = sub !== undefined && sub.startsWith("-") ? sub : undefined] = more;
  if (extra !== undefined) throw new UsageError(`unexpected ${JSON.stringify(extra)}`, "");
  const isGroup = sub !== undefined && (await import("./cli/commands.ts")).commandsOf(word).length > 0;
  if (isGroup) return main([word, sub, "--help"]);
  if ((ALIASES[word] ?? word) !== "help" && sub === undefined) return main([word, "--help"]);
  if (sub !== undefined) throw new UsageError(`unexpected ${JSON.stringify(sub)}`, "");
  return writeLineUnlessClosed((await import("./cli/help.ts")).programHelp());
}

try {
  warnOfRuntimeFiles();
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const isUsage = error instanceof UsageError || error instanceof ConfigError;
  const message = error instanceof Error ? error.message : String(error);
  console.error(`luxhub: ${printableLine(message)}`); // one line, whatever characters an argument or a path has
  process.exitCode = isUsage ? EXIT.USAGE : error instanceof Failure ? error.exitCode : EXIT.FAILED;
}
