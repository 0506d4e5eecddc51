/**
 * `luxhub restore FILE`: restores a backup (a file, an object of a storage, or standard input) into an empty directory, or
 * into an empty database of PostgreSQL.
 */
import { isatty } from "node:tty";
import type { Environment } from "../config.ts";
import { shellWord } from "../lib/shell.ts";
import { restore } from "../upkeep/restore.ts";
import { type Arguments, UsageError, fileOf } from "./arguments.ts";
import { findHub } from "./config-file.ts";
import { withProgress } from "./progress.ts";
import type { LocalRuns } from "./run.ts";
import { writeLine } from "./standard-output.ts";

const NAME = "restore";
const STANDARD_INPUT = 0;

export const LOCAL_RUNS: LocalRuns = { restore: restoreBackup };

async function restoreBackup(args: Arguments, env: Environment): Promise<number> {
  const from = args.words[0] === "-" ? "-" : fileOf(args, NAME);
  if (from === "-" && isatty(STANDARD_INPUT))
    throw new UsageError("standard input is a terminal: redirect it, or give a FILE", NAME);
  const hub = findHub(args, env);
  process.umask(0o077);
  const { manifest, keptSecrets } = await withProgress((tools) => restore(from, hub, tools));
  const { path } = hub.dir;
  const [place, start] = hub.url === null ? [path, ""] : ["PostgreSQL", "LUXHUB_DATABASE=postgres://… "];
  const lines = [
    `${place}: the hub as of ${manifest.at}, ${manifest.files} files. Start it with: ${start}luxhub serve --data ${shellWord(path)}`,
  ];
  if (keptSecrets.length > 0)
    lines.push(`${path} keeps its own ${keptSecrets.join(" and ")}: the backup has another.`);
  return writeLine(lines.join("\n"));
}
