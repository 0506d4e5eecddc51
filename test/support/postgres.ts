/**
 * A real PostgreSQL for the tests: the server that LUXHUB_TEST_POSTGRES names, or one that is started here, in memory
 * where the system offers that, and removed at the end of the process. Where there is no server's program, the suites
 * that need one are left out, and one line says so.
 */
import { SQL } from "bun";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const GIVEN = process.env["LUXHUB_TEST_POSTGRES"];

/** The directory of initdb and postgres; null when there is none here. */
export const POSTGRES_PROGRAMS = findPrograms();

/** Why suites that need PostgreSQL are left out; null when they run. */
export const POSTGRES_MISSING: string | null =
  GIVEN === undefined && POSTGRES_PROGRAMS === null
    ? "no PostgreSQL here; install Debian's postgresql, or set LUXHUB_TEST_POSTGRES=postgres://USER:PASSWORD@HOST/NAME"
    : null;

function findPrograms(): string | null {
  const asked = Bun.which("pg_config");
  const said = asked ? Bun.spawnSync([asked, "--bindir"]).stdout.toString().trim() : "";
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).map(Number) : [];
  const newest = versions.filter((version) => version >= 15).toSorted((a, b) => b - a);
  const places = [...newest.map((version) => join(debian, String(version), "bin")), said];
  return places.find((place) => place !== "" && existsSync(join(place, "initdb"))) ?? null;
}

/** The process at whose end everything is removed: of several workers the one that they have in common. */
const OWNER = process.env["BUN_TEST_WORKER_ID"] === undefined ? process.pid : process.ppid;

/**
 * Runs a server, and ends and removes it when its owner is gone, however that ended. $1 is the owner, $2 the folder; the
 * rest is the command.
 */
const KEEPER = `
  owner=$1; folder=$2; shift 2
  "$@" 2>>"$folder/log" &
  server=$!
  while kill -0 $owner 2>/dev/null && kill -0 $server 2>/dev/null; do sleep 0.2; done
  if kill -0 $owner 2>/dev/null; then wait $server; exit; fi
  kill -QUIT $server 2>/dev/null; wait $server; rm -rf "$folder"`;

type Keeper = Bun.Subprocess<"ignore", "ignore", "ignore">;

/** A server of its own, for tests that stop it, restart it or measure it. */
export class PostgresServer {
  readonly #folder: string;
  readonly #port: number;
  readonly #settings: Readonly<Record<string, string>>;
  #keeper: Keeper | null = null;

  private constructor(folder: string, port: number, settings: Readonly<Record<string, string>>) {
    this.#folder = folder;
    this.#port = port;
    this.#settings = settings;
  }

  /** Makes a cluster and starts it. `settings` go into its configuration. */
  static async start(
    folder: string,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<PostgresServer> {
    const place = mkdtempSync(join(folder, "luxhub-postgres-"));
    if (isRoot()) chownSync(place, ...postgresUser());
    chmodSync(place, 0o711);
    const server = new PostgresServer(place, freePort(), settings);
    const made = server.#run("initdb", [
      "-D",
      server.#data,
      "-A",
      "trust",
      "-U",
      "postgres",
      "-E",
      "UTF8",
      "--locale=C",
      "-N",
    ]);
    if ((await made.exited) !== 0) throw new Error(`initdb: ${await new Response(made.stderr).text()}`);
    await server.up();
    return server;
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.#port}/postgres`;
  }

  /** Starts the server and resolves when it takes connections. */
  async up(): Promise<void> {
    const settings = { listen_addresses: "127.0.0.1", port: String(this.#port), ...this.#settings };
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    this.#keeper = this.#keep(["-D", this.#data, "-k", this.#folder, ...flags]);
    for (let tries = 0; ; tries++) {
      const sql = new SQL(this.url, { max: 1 });
      const isUp = await sql`SELECT 1`.then(
        () => true,
        () => false,
      );
      await sql.close({ timeout: 0 });
      if (isUp) return;
      if (tries > 200) throw new Error("PostgreSQL does not start");
      await Bun.sleep(50);
    }
  }

  /** Stops the server: `fast` ends what runs in order, `immediate` is a crash. */
  async down(how: "fast" | "immediate" = "fast"): Promise<void> {
    const [pid] = readFileSync(join(this.#data, "postmaster.pid"), "utf8").split("\n");
    process.kill(Number(pid), how === "fast" ? "SIGINT" : "SIGQUIT");
    await this.#keeper?.exited;
  }

  /** Ends it and removes it. */
  async remove(): Promise<void> {
    await this.down("immediate");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #data(): string {
    return join(this.#folder, "data");
  }

  /** The programs refuse to run as root: then they run as the user of Debian's package. */
  #run(program: string, args: readonly string[]) {
    const cmd = [...asPostgres(), join(POSTGRES_PROGRAMS ?? "", program), ...args];
    return Bun.spawn({ cmd, cwd: this.#folder, stdout: "ignore", stderr: "pipe" });
  }

  #keep(args: readonly string[]): Keeper {
    const program = join(POSTGRES_PROGRAMS ?? "", "postgres");
    const cmd = ["sh", "-c", KEEPER, "sh", String(OWNER), this.#folder, ...asPostgres(), program, ...args];
    const quiet = { stdin: "ignore", stdout: "ignore", stderr: "ignore" } as const;
    const keeper = Bun.spawn({ cmd, cwd: "/", detached: true, ...quiet });
    keeper.unref();
    return keeper;
  }
}

function asPostgres(): readonly string[] {
  return isRoot() ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] : [];
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

function postgresUser(): [uid: number, gid: number] {
  const idOf = (flag: string): number => Number(Bun.spawnSync(["id", flag, "postgres"]).stdout.toString());
  return [idOf("-u"), idOf("-g")];
}

function freePort(): number {
  const socket = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = socket;
  socket.stop(true);
  return port;
}

/** What a crash leaves on a disk is not for the tests that share a server, and they are many: it need not flush. */
const HURRIED = {
  fsync: "off",
  full_page_writes: "off",
  max_connections: "400",
  shared_buffers: "64MB",
  autovacuum: "off",
};

/** The address of a server that all tests of this run share: the first who asks starts it. */
export async function sharedServer(): Promise<string> {
  if (GIVEN !== undefined) return GIVEN;
  const temp = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
  const folder = join(temp, `luxhub-tests-${OWNER}`);
  const address = join(folder, "address");
  if (takes(folder)) {
    const server = await PostgresServer.start(folder, HURRIED);
    writeFileSync(`${address}.new`, server.url);
    renameSync(`${address}.new`, address);
  }
  for (let tries = 0; !existsSync(address); tries++) {
    if (tries > 600) throw new Error(`no PostgreSQL came up in ${folder}`);
    await Bun.sleep(50);
  }
  return readFileSync(address, "utf8");
}

function takes(folder: string): boolean {
  try {
    mkdirSync(folder, { mode: 0o711 });
    return true;
  } catch {
    return false;
  }
}

let made = 0;

/** An empty schema of its own on a server: an address that leads into it, and what removes it. */
export async function newSchema(server?: string): Promise<{ url: string; remove(): Promise<void> }> {
  const base = server ?? (await sharedServer());
  const name = `luxhub_${process.pid}_${Date.now().toString(36)}_${++made}`;
  const run = async (text: string): Promise<void> => {
    const sql = new SQL(base, { max: 1 });
    await sql.unsafe(text);
    await sql.close();
  };
  await run(`CREATE SCHEMA ${name}`);
  const url = new URL(base);
  url.searchParams.set("search_path", name);
  return { url: url.href, remove: () => run(`DROP SCHEMA ${name} CASCADE`) };
}
