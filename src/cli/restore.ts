/** `luxhub restore FILE`: restores a backup, a file or an object of a storage, into an empty directory. */
import { resolve } from "node:path";
import type { Environment } from "../config.ts";
import { shellWord } from "../lib/shell.ts";
import { isObject } from "../upkeep/backup-target.ts";
import { restore, restoreObject } from "../upkeep/restore.ts";
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
  const from = fileOf(args, FORM);
  const { path } = findDataDir(args, env);
  process.umask(0o077);
  const manifest = await withProgress((tools) =>
    isObject(from) ? restoreObject(from, path, tools) : restore(resolve(from), path, tools),
  );
  return writeLine(
    `${path}: the hub as of ${manifest.at}, ${manifest.files} files. Start it with: luxhub serve --data ${shellWord(path)}`,
  );
}
