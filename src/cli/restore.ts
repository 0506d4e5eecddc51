/**
 * `luxhub restore FILE`: restores a backup (a file, an object of a storage, or standard input), or a moment from a place of
 * backups, into an empty directory, or into an empty database of PostgreSQL.
 */
import { isatty } from "node:tty";
import type { Environment } from "../config.ts";
import { isoTime, systemClock } from "../lib/clock.ts";
import { dayMs, durationMs, instantMs } from "../lib/duration.ts";
import { shellWord } from "../lib/shell.ts";
import { isPlace, placeOf } from "../upkeep/backup-target.ts";
import { type Moment, restore, restoreMoment } from "../upkeep/restore.ts";
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
  const at = momentOf(args);
  if (at !== null && !isPlace(from))
    throw new UsageError("--at needs a FILE that ends with /: a place of many backups", NAME);
  const hub = findHub(args, env);
  process.umask(0o077);
  const restored = await withProgress((tools) =>
    isPlace(from) ? restoreMoment(placeOf(from), at, hub, tools) : restore(from, hub, tools),
  );
  const { manifest, keptSecrets, moment } = restored;
  const { path } = hub.dir;
  const [place, start] = hub.url === null ? [path, ""] : ["PostgreSQL", "LUXHUB_DATABASE=postgres://… "];
  const time = moment === null ? manifest.at : isoTime(moment.entry.at);
  const lines = [
    `${place}: the hub as of ${time}, ${moment?.files ?? manifest.files} files. Start it with: ${start}luxhub serve --data ${shellWord(path)}`,
    ...(moment === null ? [] : [momentText(moment), ...moment.damaged.map((what) => `Not used: ${what}`)]),
  ];
  if (keptSecrets.length > 0)
    lines.push(`${path} keeps its own ${keptSecrets.join(" and ")}: the backup has another.`);
  return writeLine(lines.join("\n"));
}

/** Epoch milliseconds. A duration is that long ago. */
function momentOf({ flags }: Arguments): number | null {
  const [text] = flags["at"] ?? [];
  if (text === undefined) return null;
  const ago = durationMs(text);
  const at = ago === null ? (instantMs(text) ?? dayMs(text)) : systemClock().now() - ago;
  if (at !== null) return at;
  throw new UsageError(
    `--at is ${JSON.stringify(text)}; it must be a time such as 2027-01-31T02:00:00Z, or how long ago, such as 10m`,
    NAME,
  );
}

function momentText({ backup, entry, next, left, missing }: Moment): string {
  const first = next === null ? "" : `, the first of ${isoTime(next.at)}`;
  const after = left === 0 ? "the last one that was archived" : `${left} later ones are left out${first}`;
  const lost =
    missing.length === 0 ? "" : `. The bytes of ${missing.length} files are gone: ${missing.join(", ")}`;
  return `From ${backup}, with the changes up to ${entry.n}: ${after}${lost}`;
}
