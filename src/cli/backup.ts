/** `luxhub backup FILE`: backs the whole hub up, also while it runs, into one file, to standard output, or to S3. */
import { constants, setPriority } from "node:os";
import { isatty } from "node:tty";
import { type Environment, readPath } from "../config.ts";
import { systemClock } from "../lib/clock.ts";
import { type TargetAt, backUp } from "../upkeep/backup.ts";
import {
  type BackupPlace,
  type BackupTarget,
  backupsIn,
  datedName,
  isPlace,
  placeOf,
  targetOf,
} from "../upkeep/backup-target.ts";
import { keepNewest } from "../upkeep/change-archive.ts";
import { sizeText } from "../upkeep/upkeep.ts";
import { SOFTWARE } from "../version.ts";
import { type Arguments, UsageError } from "./arguments.ts";
import { findStore } from "./config-file.ts";
import { EXIT } from "./exit-codes.ts";
import { withProgress } from "./progress.ts";
import type { LocalRuns } from "./run.ts";
import { writeLine } from "./standard-output.ts";

const NAME = "backup";
const STANDARD_OUTPUT = 1;
const SHOWN = 5;

export const LOCAL_RUNS: LocalRuns = { backup };

async function backup(args: Arguments, env: Environment): Promise<number> {
  const { place, keep, to } = destinationOf(args);
  const hub = findStore(args, env);
  process.umask(0o077); // the archive contains the secrets
  setPriority(constants.priority.PRIORITY_LOW); // a running hub has priority
  if (place !== null) await backupsIn(place); // creates a missing directory
  const { name, manifest, sizeBytes, hasSecrets } = await withProgress((tools) =>
    backUp(hub, to, SOFTWARE, tools),
  );
  const lost = [...manifest.missing, ...manifest.damaged];
  if (lost.length > 0) {
    const ellipsis = lost.length > SHOWN ? ", …" : "";
    console.error(
      `luxhub: the bytes of ${lost.length} files are gone or damaged: ${lost.slice(0, SHOWN).join(", ")}${ellipsis}`,
    );
  }
  const report = [
    `${name}: ${sizeText(sizeBytes)}, ${manifest.files} files, as of ${manifest.at}`,
    hasSecrets
      ? "It contains the secrets: keep it as safe as them."
      : "It does not contain the secrets, because they are not in the data directory: keep them elsewhere.",
  ];
  if (place !== null && keep !== null) {
    const { backups, others } = await keepNewest(place, keep);
    report.push(...backups.map((name) => `deleted the older ${name}`));
    if (others > 0) report.push(`deleted ${others} pieces and files of the change log before the backups`);
  }
  if (args.words[0] === "-") console.error(report.join("\n"));
  else writeLine(report.join("\n"));
  return EXIT.OK;
}

type Destination = {
  readonly to: BackupTarget | TargetAt;
  /** Where dated backups are; null for a single one. */
  readonly place: BackupPlace | null;
  /** Null: all backups stay. */
  readonly keep: number | null;
};

function destinationOf(args: Arguments): Destination {
  const [word = ""] = args.words;
  const refuse = (message: string): never => {
    throw new UsageError(message, NAME);
  };
  const read = readPath(word);
  if (!("value" in read)) return refuse(`the FILE is ${JSON.stringify(word)}; it must be ${read.must}`);
  const [given] = args.flags["keep"] ?? [];
  if (given !== undefined && !/^[1-9]\d{0,3}$/.test(given))
    refuse("--keep must be a whole number from 1 to 9999");
  if (isPlace(word)) {
    const place = placeOf(word);
    const keep = given === undefined ? null : Number(given);
    const at = systemClock().now();
    return { to: (entry) => place.target(datedName({ at, entry })), place, keep };
  }
  if (given !== undefined) refuse("--keep needs a FILE that ends with /: a place for many backups");
  if (word === "-" && isatty(STANDARD_OUTPUT))
    refuse("standard output is a terminal: redirect it, or give a FILE");
  return { to: targetOf(word), place: null, keep: null };
}
