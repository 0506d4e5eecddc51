/** argv to command. Exit codes: 0 done, 1 could not, 2 asked wrongly. */
import "./cli/cold-start.ts";
import { serveCommand } from "./cli/serve.ts";
import { HELP, UsageError, VERSION_HELP, noWords, readArguments, say } from "./cli/usage.ts";
import { ConfigError } from "./config.ts";
import { SOFTWARE } from "./version.ts";

async function main(argv: readonly string[]): Promise<number> {
  const [command, ...rest] = argv;
  switch (command) {
    case "serve":
      return serveCommand(rest, process.env);
    // Loaded when they are asked for: a hub that serves does without them.
    case "keys":
      return (await import("./cli/keys.ts")).keysCommand(rest, process.env);
    case "backup":
      return (await import("./cli/backup.ts")).backupCommand(rest, process.env);
    case "restore":
      return (await import("./cli/restore.ts")).restoreCommand(rest, process.env);
    case "doctor":
      return (await import("./cli/doctor.ts")).doctorCommand(rest, process.env);
    case "move":
      return (await import("./cli/move.ts")).moveCommand(rest, process.env);
    case "version":
    case "--version":
      return versionCommand(rest);
    case undefined:
    case "help":
    case "--help":
    case "-h":
      return helpCommand(rest);
    default:
      throw new UsageError(`unknown command ${JSON.stringify(command)}`, "luxhub help");
  }
}

function versionCommand(words: readonly string[]): number {
  const args = readArguments(words, [], [], "luxhub version --help");
  if (args.help) return say(VERSION_HELP);
  noWords(args.words, "luxhub version --help");
  return say(SOFTWARE);
}

/** `luxhub help COMMAND` is `luxhub COMMAND --help`; help for help is the help. */
function helpCommand([command, ...more]: readonly string[]): Promise<number> | number {
  noWords(more, "luxhub help");
  const isAboutAll = command === undefined || ["help", "--help", "-h"].includes(command);
  return isAboutAll ? say(HELP) : main([command, "--help"]);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const asked = error instanceof UsageError || error instanceof ConfigError;
  const message = error instanceof Error ? error.message : String(error);
  console.error(`luxhub: ${message.replaceAll(/\p{Cc}+/gu, " ")}`); // one line, whatever a word or a path has in it
  process.exitCode = asked ? 2 : 1;
}
