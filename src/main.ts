/** argv to command. Exit codes: 0 done, 1 could not, 2 asked wrongly. */
import "./cli/cold-start.ts";
import { keysCommand } from "./cli/keys.ts";
import { serveCommand } from "./cli/serve.ts";
import { HELP, UsageError, say } from "./cli/usage.ts";
import { ConfigError } from "./config.ts";
import { SOFTWARE } from "./version.ts";

async function main(argv: readonly string[]): Promise<number> {
  const [command, ...rest] = argv;
  switch (command) {
    case "serve":
      return serveCommand(rest, process.env);
    case "keys":
      return keysCommand(rest, process.env);
    case "version":
    case "--version":
      return say(SOFTWARE);
    case undefined:
    case "help":
    case "--help":
    case "-h":
      return say(HELP);
    default:
      throw new UsageError(`unknown command ${JSON.stringify(command)}`, "luxhub help");
  }
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const asked = error instanceof UsageError || error instanceof ConfigError;
  const message = error instanceof Error ? error.message : String(error);
  console.error(`luxhub: ${message}`);
  process.exitCode = asked ? 2 : 1;
}
