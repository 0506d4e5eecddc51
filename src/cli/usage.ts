/** The help texts that are written by hand (help.ts makes the others), and printing to standard output. */
import { writeSync } from "node:fs";
import { SETTING_ROWS, type SettingRow } from "../config.ts";
import { codeOf } from "../lib/reason.ts";

const STANDARD_OUTPUT = 1;
const FULL_PIPE_MS = 10;

export const VERSION_HELP = `luxhub version: print the version of the program`;

export const SERVE_HELP = `luxhub serve [flags]: start the hub

${settingLines(SETTING_ROWS)}

Each flag is also an environment variable (--max-file is LUXHUB_MAX_FILE) and a key in ./luxhub.toml
(max_file). A repeatable flag also takes a comma-separated list, and in luxhub.toml a list. Flags win over
the environment, the environment over luxhub.toml.

Prefer LUXHUB_DATABASE to --database: everyone on the machine can read a command line, and the URL
holds a password.

LUXHUB_SECRET and LUXHUB_ADMIN_KEY set the secrets; without them the first start makes secrets and
stores them in the data directory.`;

export const KEYS_HELP = `luxhub keys: manage the keys of the hub; a new key is valid at once, other changes apply within a second

  luxhub keys list [--json]            the keys, without their secrets
  luxhub keys add NAME [flags]         creates a key with a name of your choice; prints only its secret on
                                       standard output, once
      --variant A|B                    gets its responses in this variant on any listener
      --node NODE_ID                   acts for this node only
      --expires TIME                   2027-01-31, an ISO 8601 time, or from now: 90s, 12h, 30d
      --role full|viewer|admin         full is the default; a viewer only reads (GET, HEAD), but no
                                       message contents; admin (also --admin) is for X-Admin-Key
  luxhub keys pin NAME A|B|none        pins a key to a variant, or unpins it
  luxhub keys expire NAME TIME|never   sets when a key expires
  luxhub keys revoke NAME              revokes a key at once, permanently

  --data DIR                           the data directory (LUXHUB_DATA; ./luxhub-data)
  --database URL                       the hub's PostgreSQL, if it has one (LUXHUB_DATABASE)

The secrets of the first start are the keys primary and primary-admin. To change a secret with no
downtime: add a key, give it to the nodes, then revoke primary.`;

const DATA_LINE = "  --data DIR   the data directory (LUXHUB_DATA; ./luxhub-data)";

export const BACKUP_HELP = `luxhub backup FILE: back up the whole hub into one file, even while it runs

  --keep N    of the backups in FILE/ keep the newest N, and delete the others
${DATA_LINE}

FILE is  hub.tar                a new file; it has a temporary name until it is complete
         backups/               a directory: the file's name is its time, luxhub-20270131T020000Z.tar
         -                      standard output
         s3://BUCKET/hub.tar    an object in a storage that speaks the S3 protocol
         s3://BUCKET/PREFIX/    the same, with its time as name

The backup is a tar archive, a consistent snapshot of the database, the files and the secrets. Only
its owner can read the file. There must be room for a copy of the database: next to FILE, else in the
data directory. Secrets that the hub gets from its environment are not in it. The storage's address
and credentials come from S3_ENDPOINT, S3_REGION, S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY (or AWS_…).
Back up a hub on PostgreSQL with PostgreSQL's own tools, such as pg_dump.`;

export const RESTORE_HELP = `luxhub restore FILE: restore a backup

${DATA_LINE}

The directory must be empty, or must not exist. All checksums are verified before anything is moved
into place. Then start the hub on the directory.`;

export const DOCTOR_HELP = `luxhub doctor: check everything in the data directory, even while the hub runs

${DATA_LINE}

Checks the whole database, the ledger and all totals against their rows, the bytes of every file
against its checksum, the clock, the free space, the version of SQLite, the secrets, and
the permissions of their files. It changes nothing.
Exit code 0: no error found. 1: an error was found.`;

export const MOVE_HELP = `luxhub move: move a stopped hub from SQLite into PostgreSQL, or back

  luxhub move --to postgres     from the data directory into the database that LUXHUB_DATABASE names
                                (or database in ./luxhub.toml)
  luxhub move --from postgres   from that database into the data directory

${DATA_LINE}

Instead of postgres you can give a URL, postgres://USER:PASSWORD@HOST/NAME; but everyone on the
machine can read a command line.

All rows and the bytes of all files are copied and compared. No hub may run on either side. The
target must be empty: nothing is overwritten, nothing is merged. The source is not changed. After
an interrupted move no hub starts on the target: run the same command again. The secrets stay in
the data directory, which a hub on PostgreSQL has too.`;

export const SERVICE_HELP = `luxhub service: run the hub as a systemd service

  luxhub service install   installs the program, its user and the unit, and starts it; needs root
  luxhub service print     prints the unit
  luxhub service remove    stops the service and removes the unit; keeps the data; needs root

The program goes to /usr/local/bin/luxhub, the data to /var/lib/luxhub. /etc/luxhub/environment, which
only root can read, has settings and secrets (LUXHUB_PORT=8080 …); install never overwrites it.
Installing again updates the program and restarts it.

With the environment variable DESTDIR the files are written below that directory, and nothing else is
changed: it adds no user and starts no service.`;

export const OPENAPI_HELP = `luxhub openapi: print the API as an OpenAPI 3.1 document in JSON; no hub needs to run

  --variant A|B   the variant that it describes (A)

A hub answers the same at GET /api/v1/openapi.json, and as a page at /docs.`;

/**
 * Prints to standard output and returns exit code 0. Does not use console, which ignores a failed write: a new secret
 * would be lost unnoticed.
 * @throws {Error} one line, when standard output cannot be written
 */
export function writeLine(text: string): number {
  const bytes = new TextEncoder().encode(`${text}\n`);
  for (let done = 0; done < bytes.length;) done += writeSome(bytes.subarray(done));
  return 0;
}

/**
 * Prints a text that can be printed again. Returns exit code 0 even if the reader has closed the pipe (`| head -1`).
 */
export function writeLineUnlessClosed(text: string): number {
  try {
    return writeLine(text);
  } catch (error) {
    if (isBrokenPipe(error)) return 0;
    throw error;
  }
}

/** Whether writeLine() failed because the reader of standard output has closed the pipe. */
export function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && codeOf(error.cause) === "EPIPE";
}

function writeSome(bytes: Uint8Array): number {
  try {
    return writeSync(STANDARD_OUTPUT, bytes);
  } catch (error) {
    const code = codeOf(error) || error;
    if (code !== "EAGAIN") throw new Error(`cannot write to standard output: ${code}`, { cause: error });
    Bun.sleepSync(FULL_PIPE_MS); // a full pipe in non-blocking mode
    return 0;
  }
}

function settingLines(rows: readonly SettingRow[]): string {
  const heads = rows.map((row) => `  ${row.flag} ${row.value}`);
  const width = Math.max(...heads.map((head) => head.length)) + 2;
  return rows
    .map((row, i) => {
      const fallback = row.fallback === null ? "" : ` (${row.fallback})`;
      return `${(heads[i] ?? "").padEnd(width)}${row.help}${fallback}`;
    })
    .join("\n");
}
