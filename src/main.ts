/**
 * Runs the command that argv names. It returns its exit code (cli/exit-codes.ts); an error that it throws is exit code
 * 2 if the command line or a setting is invalid, else 1.
 */
import "./cli/cold-start.ts";
import { UsageError, readArguments } from "./cli/arguments.ts";
import { EXIT, Failure } from "./cli/exit-codes.ts";
import { warnOfRuntimeFiles } from "./cli/runtime-files.ts";
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
  invite: async (argv, env) => (await import("./cli/invite.ts")).inviteCommand(argv, env),
  invitation: async (argv, env) => (await import("./cli/invite.ts")).invitationCommand(argv, env),
  join: async (argv, env) => (await import("./cli/join.ts")).joinCommand(argv, env),
  keys: async (argv, env) => (await import("./cli/keys.ts")).keysCommand(argv, env),
  backup: async (argv, env) => (await import("./cli/backup.ts")).backupCommand(argv, env),
  restore: async (argv, env) => (await import("./cli/restore.ts")).restoreCommand(argv, env),
  doctor: async (argv, env) => (await import("./cli/doctor.ts")).doctorCommand(argv, env),
  move: async (argv, env) => (await import("./cli/move.ts")).moveCommand(argv, env),
  openapi: async (argv) => (await import("./cli/openapi.ts")).openApiCommand(argv),
  service: async (argv, env) => (await import("./cli/service.ts")).serviceCommand(argv, env),
  status: async (argv, env) => (await import("./cli/status.ts")).statusCommand(argv, env),
  top: async (argv, env) => (await import("./cli/top.ts")).topCommand(argv, env),
  group: async (argv, env) => (await import("./cli/group.ts")).groupCommand(argv, env),
  schedule: async (argv, env) => (await import("./cli/schedule.ts")).scheduleCommand(argv, env),
  lux: async (argv, env) => (await import("./cli/lux.ts")).luxCommand(argv, env),
  lessons: async (argv, env) => (await import("./cli/lessons.ts")).lessonsCommand(argv, env),
  reviews: async (argv, env) => (await import("./cli/reviews.ts")).reviewsCommand(argv, env),
  questions: async (argv, env) => (await import("./cli/questions.ts")).questionsCommand(argv, env),
  usage: async (argv, env) => (await import("./cli/usage.ts")).usageCommand(argv, env),
  webhook: async (argv, env) => (await import("./cli/webhook.ts")).webhookCommand(argv, env),
  budget: async (argv, env) => (await import("./cli/budget.ts")).budgetCommand(argv, env),
  limit: async (argv, env) => (await import("./cli/limit.ts")).limitCommand(argv, env),
  pause: async (argv, env) => (await import("./cli/limit.ts")).pauseCommand(argv, env),
  resume: async (argv, env) => (await import("./cli/limit.ts")).resumeCommand(argv, env),
  pauses: async (argv, env) => (await import("./cli/limit.ts")).pausesCommand(argv, env),
  events: async (argv, env) => (await import("./cli/events.ts")).eventsCommand(argv, env),
  task: async (argv, env) => (await import("./cli/task.ts")).taskCommand(argv, env),
  node: async (argv, env) => (await import("./cli/node.ts")).nodeCommand(argv, env),
  message: async (argv, env) => (await import("./cli/message.ts")).messageCommand(argv, env),
  file: async (argv, env) => (await import("./cli/file.ts")).fileCommand(argv, env),
  note: async (argv, env) => (await import("./cli/note.ts")).noteCommand(argv, env),
  lease: async (argv, env) => (await import("./cli/lease.ts")).leaseCommand(argv, env),
  worker: async (argv, env) => (await import("./cli/worker.ts")).workerCommand(argv, env),
  mcp: async (argv, env) => (await import("./cli/mcp.ts")).mcpCommand(argv, env),
  "mcp-config": async (argv, env) => (await import("./cli/mcp-config.ts")).mcpConfigCommand(argv, env),
  completions: async (argv) => (await import("./cli/completions.ts")).completionsCommand(argv),
  man: async (argv) => (await import("./cli/man.ts")).manCommand(argv),
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
