/**
 * Runs the command that argv names. Its exit code: cli/exit-codes.ts; of an error that it throws 2 if the command line
 * or a setting is invalid, else 1.
 */
import "./cli/cold-start.ts";
import { UsageError, readArguments } from "./cli/arguments.ts";
import { EXIT, Failure } from "./cli/exit-codes.ts";
import { warnOfRuntimeFiles } from "./cli/runtime-files.ts";
import type { Functions } from "./cli/run.ts";
import { serveCommand } from "./cli/serve.ts";
import { writeLineUnlessClosed } from "./cli/standard-output.ts";
import { ConfigError } from "./config.ts";
import { didYouMean } from "./lib/closest.ts";
import { printableLine } from "./lib/printable.ts";
import { SOFTWARE } from "./version.ts";

type Run = (argv: readonly string[], env: NodeJS.ProcessEnv) => Promise<number> | number;

/** Loaded on demand, so that a running hub does not hold all in memory. */
const COMMANDS: Readonly<Record<string, Run>> = {
  serve: serveCommand,
  version: versionCommand,
  help: helpCommand,
};

/** A command without a function is one call to a hub. */
const FUNCTIONS: Readonly<Record<string, () => Promise<Functions>>> = {
  demo: () => import("./cli/demo.ts"),
  status: () => import("./cli/status.ts"),
  top: () => import("./cli/top.ts"),
  events: () => import("./cli/events.ts"),
  task: () => import("./cli/task.ts"),
  group: () => import("./cli/group.ts"),
  schedule: () => import("./cli/schedule.ts"),
  usage: () => import("./cli/usage.ts"),
  lux: () => import("./cli/lux.ts"),
  message: () => import("./cli/message.ts"),
  file: () => import("./cli/file.ts"),
  run: () => import("./cli/pipeline.ts"),
  apply: () => import("./cli/apply.ts"),
  export: () => import("./cli/export.ts"),
  worker: () => import("./cli/worker.ts"),
  mcp: () => import("./cli/mcp.ts"),
  "mcp-config": () => import("./cli/mcp-config.ts"),
  "mcp-hook": () => import("./cli/mcp-hook.ts"),
  invite: () => import("./cli/invite.ts"),
  join: () => import("./cli/join.ts"),
  promote: () => import("./cli/promote.ts"),
  keys: () => import("./cli/keys.ts"),
  backup: () => import("./cli/backup.ts"),
  restore: () => import("./cli/restore.ts"),
  doctor: () => import("./cli/doctor.ts"),
  move: () => import("./cli/move.ts"),
  openapi: () => import("./cli/openapi.ts"),
  service: () => import("./cli/service.ts"),
  completions: () => import("./cli/completions.ts"),
  man: () => import("./cli/man.ts"),
};
const ALIASES: Readonly<Record<string, string>> = { "--version": "version", "--help": "help", "-h": "help" };

async function main([word = "help", ...argv]: readonly string[]): Promise<number> {
  const name = ALIASES[word] ?? word;
  const run = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (run) return run(argv, process.env);
  const { FIRST_WORDS } = await import("./cli/commands.ts");
  if (!FIRST_WORDS.includes(name))
    throw new UsageError(`unknown command ${JSON.stringify(word)}${didYouMean(word, FIRST_WORDS)}`, "");
  const { runCommand } = await import("./cli/run.ts");
  return runCommand(name, argv, process.env, (await FUNCTIONS[name]?.()) ?? {});
}

async function versionCommand(argv: readonly string[]): Promise<number> {
  const { help } = readArguments(argv, { name: "version", words: "", flags: {} });
  return writeLineUnlessClosed(help ? (await import("./cli/help.ts")).helpOf("version") : SOFTWARE);
}

/** `luxhub help COMMAND` is `luxhub COMMAND --help`; `luxhub help help` is `luxhub help`. */
async function helpCommand([word = "help", ...topics]: readonly string[]): Promise<number> {
  const [sub, extra = sub !== undefined && sub.startsWith("-") ? sub : undefined] = topics;
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
  const isStop = process.argv[2] === "mcp-hook"; // whose exit code 2 stops its agent
  process.exitCode =
    isUsage && !isStop ? EXIT.USAGE : error instanceof Failure ? error.exitCode : EXIT.FAILED;
}
