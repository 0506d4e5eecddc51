/** `luxhub restore FILE`: restores a backup into an empty directory. */
import { resolve } from "node:path";
import type { Environment } from "../config.ts";
import { shellWord } from "../lib/shell.ts";
import { restore } from "../upkeep/restore.ts";
import { fileOf, readArguments } from "./arguments.ts";
import { formOf } from "./commands.ts";
import { helpOf } from "./help.ts";
import { findDataDir } from "./config-file.ts";
import { withProgress } from "./progress.ts";
import { writeLine, writeLineUnlessClosed } from "./standard-output.ts";

const FORM = formOf("restore");

export async function restoreCommand(argv: readonly string[], env: Environment): Promise<number> {
  const args = readArguments(argv, FORM);
  if (args.help) return writeLineUnlessClosed(helpOf(FORM.name));
  const from = resolve(fileOf(args, FORM));
  const { path } = findDataDir(args, env);
  process.umask(0o077);
  const manifest = await withProgress((tools) => restore(from, path, tools));
  return writeLine(
    `${path}: the hub as of ${manifest.at}, ${manifest.files} files. Start it with: luxhub serve --data ${shellWord(path)}`,
  );
}
