/** `luxhub backup FILE`: backs the whole hub up into one file, also while it runs. */
import { constants, setPriority } from "node:os";
import { resolve } from "node:path";
import { shellWord } from "../lib/shell.ts";
import { backUp } from "../upkeep/backup.ts";
import { sizeText } from "../upkeep/upkeep.ts";
import { SOFTWARE } from "../version.ts";
import { fileOf, readArguments } from "./arguments.ts";
import { formOf } from "./commands.ts";
import { findDataDir } from "./config-file.ts";
import { withProgress } from "./progress.ts";
import { BACKUP_HELP, writeLine, writeLineUnlessClosed } from "./usage.ts";

const FORM = formOf("backup");

export async function backupCommand(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const args = readArguments(argv, FORM);
  if (args.help) return writeLineUnlessClosed(BACKUP_HELP);
  const to = resolve(fileOf(args, FORM));
  const dir = findDataDir(args, env);
  process.umask(0o077); // the archive contains the secrets
  setPriority(constants.priority.PRIORITY_LOW); // a running hub has priority
  const { manifest, sizeBytes, hasSecrets } = await withProgress((tools) => backUp(dir, to, SOFTWARE, tools));
  const lost = manifest.missing.length + manifest.damaged.length;
  if (lost > 0) {
    console.error(
      `luxhub: the bytes of ${lost} files are gone or damaged; see luxhub doctor --data ${shellWord(dir.path)}`,
    );
  }
  writeLine(`${to}: ${sizeText(sizeBytes)}, ${manifest.files} files, as of ${manifest.at}`);
  return writeLine(
    hasSecrets
      ? "It contains the secrets: keep it as safe as them."
      : "It does not contain the secrets that the hub gets from its environment.",
  );
}
