/** `luxhub move`: moves a stopped hub from SQLite into PostgreSQL, or back. */
import { existsSync } from "node:fs";
import type { Environment } from "../config.ts";
import type { DataDir } from "../data-dir.ts";
import { shellWord } from "../lib/shell.ts";
import { type Moved, moveFromPostgres, moveToPostgres } from "../upkeep/move.ts";
import { sizeText } from "../upkeep/upkeep.ts";
import { type Arguments, UsageError, readArguments } from "./arguments.ts";
import { formOf } from "./commands.ts";
import { helpOf } from "./help.ts";
import { findPlaces } from "./config-file.ts";
import { withProgress } from "./progress.ts";
import { writeLine, writeLineUnlessClosed } from "./standard-output.ts";

const FORM = formOf("move");
/** Stands for the URL in the settings: everyone on the machine can read a URL on the command line. */
const FROM_SETTINGS = "postgres";
const MICRO = 6;

export async function moveCommand(argv: readonly string[], env: Environment): Promise<number> {
  const args = readArguments(argv, FORM);
  if (args.help) return writeLineUnlessClosed(helpOf(FORM.name));
  const { to, from } = args.flags;
  const [word, ...more] = [...(to ?? []), ...(from ?? [])];
  if (word === undefined || more.length > 0)
    throw new UsageError("move needs one of --to and --from", FORM.name);
  const { dir, url } = placesOf(args, word, env);
  process.umask(0o077); // only the hub's owner may read the database and the files
  const left = "run it again to continue";
  if (to) {
    const moved = await withProgress((tools) => moveToPostgres(dir, url, tools), left);
    return writeLine(`${report(moved)}\n\n${nextInPostgres(dir.database, dir.path, moved)}`);
  }
  const moved = await withProgress((tools) => moveFromPostgres(dir.path, url, tools), left);
  return writeLine(`${report(moved)}\n\n${nextInSqlite(dir, moved)}`);
}

function placesOf(args: Arguments, word: string, env: Environment) {
  const given = word === FROM_SETTINGS ? {} : { database: [addressOf(word)] };
  const { dir, database } = findPlaces({ ...args, flags: { ...args.flags, ...given } }, env);
  if (database === null)
    throw new UsageError("LUXHUB_DATABASE is not set: it must name the PostgreSQL database", FORM.name);
  return { dir, url: database };
}

/** Checks a URL. No message repeats it, because it holds a password. */
function addressOf(word: string): string {
  if (/^postgres(?:ql)?:\/\//.test(word) && URL.canParse(word)) return word;
  throw new UsageError(
    "--to and --from need the word postgres, or postgres://USER:PASSWORD@HOST/NAME",
    FORM.name,
  );
}

function report({ tables, files, paidMicro }: Moved): string {
  const rows = tables.map(({ table, rows }) => [table, String(rows)] as const);
  const width = Math.max(...rows.map(([table]) => table.length));
  const digits = Math.max(...rows.map(([, count]) => count.length));
  const lines = rows.map(([table, count]) => `${table.padEnd(width)}  ${count.padStart(digits)}`);
  const bytes = files
    ? `${files.files} files, ${sizeText(files.bytes)}${files.found > 0 ? `, ${files.found} of them copied before` : ""}; `
    : "";
  return `${lines.join("\n")}\n\n${bytes}${luxText(paidMicro)} LUX in the ledger; every row was compared.`;
}

/** Formats micro-LUX as LUX, without rounding. */
function luxText(micro: string): string {
  const [, sign, digits = ""] = /^(-?)(\d+)$/.exec(micro) ?? [];
  const padded = digits.padStart(MICRO + 1, "0");
  const fraction = padded.slice(-MICRO).replace(/0+$/, "");
  return `${sign}${padded.slice(0, -MICRO)}${fraction === "" ? "" : `.${fraction}`}`;
}

function nextInPostgres(database: string, path: string, { files }: Moved): string {
  return [
    files ? "The hub is in PostgreSQL now." : "The hub was in PostgreSQL already; nothing was done.",
    "",
    `Start it with:  LUXHUB_DATABASE=postgres://… luxhub serve --data ${shellWord(path)}`,
    `The secrets stay in ${path}; every other hub needs the same secrets.`,
    `${database} and the files next to it are unchanged: delete them, or rename ${database},`,
    "once the hub runs. A start without LUXHUB_DATABASE would use the old state.",
  ].join("\n");
}

function nextInSqlite({ path, secretFile }: DataDir, { files }: Moved): string {
  const bring = [
    "",
    `${path} has no secret: copy the hub's files secret and admin-key there, or set LUXHUB_SECRET and`,
    "LUXHUB_ADMIN_KEY as before; otherwise the first start makes new ones.",
  ];
  return [
    files ? `The hub is in ${path} now.` : `The hub was in ${path} already; nothing was done.`,
    "",
    `Start it with:  luxhub serve --data ${shellWord(path)}`,
    "and without LUXHUB_DATABASE, which would use the old state: PostgreSQL is unchanged. Drop the",
    "database once the hub runs.",
    ...(existsSync(secretFile) ? [] : bring),
  ].join("\n");
}
