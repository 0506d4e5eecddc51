/** `luxhub move`: moves a stopped hub from SQLite into PostgreSQL, or back. */
import { existsSync } from "node:fs";
import type { Environment } from "../config.ts";
import type { DataDir } from "../data-dir.ts";
import { shellWord } from "../lib/shell.ts";
import { type Moved, movedDatabase, moveFromPostgres, moveToPostgres } from "../upkeep/move.ts";
import { sizeText } from "../upkeep/upkeep.ts";
import { type Arguments, UsageError } from "./arguments.ts";
import { findHub } from "./config-file.ts";
import { withProgress } from "./progress.ts";
import type { LocalRuns } from "./run.ts";
import { writeLine } from "./standard-output.ts";

const NAME = "move";
/** Stands for the URL in the settings: everyone on the machine can read a URL on the command line. */
const FROM_SETTINGS = "postgres";
const MICRO = 6;

export const LOCAL_RUNS: LocalRuns = { move };

async function move(args: Arguments, env: Environment): Promise<number> {
  const { to, from } = args.flags;
  const [word, ...more] = [...(to ?? []), ...(from ?? [])];
  if (word === undefined || more.length > 0) throw new UsageError("move needs one of --to and --from", NAME);
  const { dir, url } = placeOf(args, word, env);
  process.umask(0o077); // only the hub's owner may read the database and the files
  const moved = await withProgress((tools) =>
    to ? moveToPostgres(dir, url, tools) : moveFromPostgres(dir.path, url, tools),
  );
  return writeLine(`${report(moved)}\n\n${to ? nextInPostgres(dir) : nextInSqlite(dir)}`);
}

function placeOf(args: Arguments, word: string, env: Environment) {
  const given = word === FROM_SETTINGS ? {} : { database: [addressOf(word)] };
  const { dir, url } = findHub({ ...args, flags: { ...args.flags, ...given } }, env);
  if (url === null)
    throw new UsageError("LUXHUB_DATABASE is not set: it must name the PostgreSQL database", NAME);
  return { dir, url };
}

/** No message repeats the URL: it holds a password. */
function addressOf(word: string): string {
  if (/^postgres(?:ql)?:\/\//.test(word) && URL.canParse(word)) return word;
  throw new UsageError("--to and --from need the word postgres, or postgres://USER:PASSWORD@HOST/NAME", NAME);
}

function report({ tables, files, bytes, paidMicro }: Moved): string {
  const width = Math.max(...tables.map(([table]) => table.length));
  const digits = Math.max(...tables.map(([, rows]) => `${rows}`.length));
  const lines = tables.map(([table, rows]) => `${table.padEnd(width)}  ${`${rows}`.padStart(digits)}`);
  const sums = `${files} files, ${sizeText(bytes)}; ${luxText(paidMicro)} LUX in the ledger`;
  return `${lines.join("\n")}\n\n${sums}; every row was compared.`;
}

function luxText(micro: string): string {
  const [, sign, digits = ""] = /^(-?)(\d+)$/.exec(micro) ?? [];
  const padded = digits.padStart(MICRO + 1, "0");
  const fraction = padded.slice(-MICRO).replace(/0+$/, "");
  return `${sign}${padded.slice(0, -MICRO)}${fraction === "" ? "" : `.${fraction}`}`;
}

function nextInPostgres(dir: DataDir): string {
  const { path } = dir;
  return [
    "The hub is in PostgreSQL now.",
    "",
    `Start it with:  LUXHUB_DATABASE=postgres://… luxhub serve --data ${shellWord(path)}`,
    `The secrets stay in ${path}; every other hub needs the same secrets.`,
    `The old state is in ${movedDatabase(dir)} and ${path}/files: delete them once the hub runs.`,
    "Commands without LUXHUB_DATABASE now refuse to run on this directory.",
  ].join("\n");
}

function nextInSqlite({ path, secretFile }: DataDir): string {
  const bring = [
    "",
    `${path} has no secret: copy the hub's files secret and admin-key there, or set LUXHUB_SECRET and`,
    "LUXHUB_ADMIN_KEY as before; otherwise the first start makes new ones.",
  ];
  return [
    `The hub is in ${path} now.`,
    "",
    `Start it with:  luxhub serve --data ${shellWord(path)}`,
    "and without LUXHUB_DATABASE, which would use the old state: PostgreSQL is unchanged. Drop the",
    "database once the hub runs.",
    ...(existsSync(secretFile) ? [] : bring),
  ].join("\n");
}
