/** Runs the command that a command line names, or prints its help. */
import type { Environment } from "../config.ts";
import { type Arguments, readArguments, readSubcommand } from "./arguments.ts";
import { COMMANDS, commandNamed, commandsOf, formOf } from "./commands.ts";
import { helpIn, helpOf } from "./help.ts";
import type { ClientRuns } from "./remote.ts";
import { writeLineUnlessClosed } from "./standard-output.ts";

export type LocalRuns = Readonly<
  Record<string, (args: Arguments, env: Environment) => Promise<number> | number>
>;

export type Functions = { readonly RUNS?: ClientRuns; readonly LOCAL_RUNS?: LocalRuns };

export async function runCommand(
  word: string,
  argv: readonly string[],
  env: Environment,
  { RUNS = {}, LOCAL_RUNS = {} }: Functions,
): Promise<number> {
  const called = calledBy(word, argv);
  if (called.args === null) return writeLineUnlessClosed(called.help());
  const { name, args } = called;
  const local = LOCAL_RUNS[name];
  if (local) return local(args, env);
  const { runOn } = await import("./remote.ts");
  const run = RUNS[name] ?? (await import("./resource.ts")).runOf(commandNamed(name));
  return runOn(name, run, args, env);
}

type Called =
  { readonly name: string; readonly args: Arguments } | { readonly args: null; readonly help: () => string };

function calledBy(word: string, argv: readonly string[]): Called {
  const group = commandsOf(word).map(({ name }) => formOf(name));
  const isGroup = group.some(({ name }) => name === `${word} ${argv[0]}`);
  if (!isGroup && COMMANDS.some(({ name }) => name === word)) {
    const args = readArguments(argv, formOf(word));
    return args.help ? { args: null, help: () => helpOf(word) } : { name: word, args };
  }
  const called = readSubcommand(argv, word, group);
  if (called === null) return { args: null, help: () => helpIn(word, argv) };
  return { name: called.form.name, args: called.args };
}
