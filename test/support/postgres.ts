/**
 * A real PostgreSQL for tests: the server that LUXHUB_TEST_POSTGRES names, or one that is started here and removed at the
 * end of the run. Without PostgreSQL's programs the suites that need it are skipped; servers.test.ts says so.
 */
import { SQL } from "bun";
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { HANG_MS } from "./hang.ts";
import { type Keeper, OWN_HOST, freePort, keep, sharedAddress } from "./keeper.ts";

const OLDEST = 15;

const GIVEN = process.env["LUXHUB_TEST_POSTGRES"];

/** The directory of initdb and postgres; null if they are not installed. */
export const POSTGRES_PROGRAMS = findPrograms();

/** Why suites that need PostgreSQL are skipped; null when they run. */
export const POSTGRES_MISSING: string | null =
  GIVEN === undefined && POSTGRES_PROGRAMS === null
    ? "no PostgreSQL here; install Debian's postgresql, or set LUXHUB_TEST_POSTGRES=postgres://USER:PASSWORD@HOST/NAME"
    : null;

function findPrograms(): string | null {
  const asked = Bun.which("pg_config");
  const said = asked ? Bun.spawnSync([asked, "--bindir"]).stdout.toString().trim() : "";
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).map(Number) : [];
  const newest = versions.filter((version) => version >= OLDEST).toSorted((a, b) => b - a);
  const places = [...newest.map((version) => join(debian, String(version), "bin")), said];
  return places.find((place) => place !== "" && majorOf(place) >= OLDEST) ?? null;
}

function majorOf(place: string): number {
  const program = join(place, "postgres");
  if (!existsSync(program) || !existsSync(join(place, "initdb"))) return 0;
  return Number(/\d+/.exec(Bun.spawnSync([program, "--version"]).stdout.toString())?.[0] ?? 0);
}

/** A separate server, for tests that stop, restart or measure it. */
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

  static async start(
    folder: string,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<PostgresServer> {
    const place = mkdtempSync(join(folder, "luxhub-postgres-"));
    if (isRoot()) chownSync(place, ...postgresUser());
    chmodSync(place, 0o711);
    const server = new PostgresServer(place, freePort(), settings);
    await finish(["cp", "-a", await sharedAddress("cluster", makeCluster), server.#data]);
    await server.up();
    return server;
  }

  get url(): string {
    return `postgres://postgres@${OWN_HOST}:${this.#port}/postgres`;
  }

  async up(): Promise<void> {
    const settings = { listen_addresses: OWN_HOST, port: String(this.#port), ...this.#settings };
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    this.#keeper = this.#keep(["-D", this.#data, "-k", this.#folder, ...flags]);
    const deadline = performance.now() + HANG_MS;
    for (;;) {
      const sql = new SQL(this.url, { max: 1 });
      const isUp = await sql`SELECT 1`.then(
        () => true,
        () => false,
      );
      await sql.close({ timeout: 0 });
      if (isUp) return;
      if (performance.now() > deadline) throw new Error("PostgreSQL does not start");
      await Bun.sleep(50);
    }
  }

  async down(how: "fast" | "immediate" = "fast"): Promise<void> {
    const [pid] = readFileSync(join(this.#data, "postmaster.pid"), "utf8").split("\n");
    process.kill(Number(pid), how === "fast" ? "SIGINT" : "SIGQUIT");
    await this.#keeper?.exited;
  }

  /** Stops all its processes; what is returned continues them. */
  async freeze(): Promise<() => Promise<void>> {
    const sql = new SQL(this.url, { max: 1 });
    const found: readonly { pid: number }[] = await sql`SELECT pid FROM pg_stat_activity
      UNION SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int`;
    for (const { pid } of found) process.kill(pid, "SIGSTOP");
    return async () => {
      for (const { pid } of found) process.kill(pid, "SIGCONT");
      await sql.close();
    };
  }

  async remove(): Promise<void> {
    await this.down("immediate");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.remove();
  }

  get #data(): string {
    return join(this.#folder, "data");
  }

  #keep(args: readonly string[]): Keeper {
    const command = [...asPostgres(), join(POSTGRES_PROGRAMS ?? "", "postgres"), ...args];
    return keep(command, this.#folder, "QUIT");
  }
}

/** Creates the cluster that every server of the run begins with: initdb takes longer than a copy. */
async function makeCluster(folder: string): Promise<string> {
  const place = mkdtempSync(join(folder, "luxhub-cluster-"));
  if (isRoot()) chownSync(place, ...postgresUser());
  const data = join(place, "data");
  const settings = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-N"];
  await finish([...asPostgres(), join(POSTGRES_PROGRAMS ?? "", "initdb"), "-D", data, ...settings]);
  return data;
}

async function finish(cmd: readonly string[]): Promise<void> {
  const child = Bun.spawn([...cmd], { cwd: "/", stdout: "ignore", stderr: "pipe" });
  if ((await child.exited) !== 0) throw new Error(`${cmd.join(" ")}: ${await child.stderr.text()}`);
}

/** PostgreSQL refuses to run as root: then it runs as the user of Debian's package. */
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

/** No test that shares the server checks what survives a crash, so it need not flush. */
const HURRIED = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  // Four files run at once, each with up to 20 tests, of two hubs with up to 9 connections.
  max_connections: "1500",
  shared_buffers: "64MB",
  autovacuum: "off",
};

/** The address of the server that all tests of this run share; the first caller starts it. */
export async function sharedServer(): Promise<string> {
  if (GIVEN !== undefined) return GIVEN;
  return sharedAddress("postgres", async (folder) => (await PostgresServer.start(folder, HURRIED)).url);
}

let made = 0;

/** Creates an empty schema: its address and a function that drops it. */
export async function newSchema(
  server?: string,
): Promise<{ url: string; empty(): Promise<void>; remove(): Promise<void> }> {
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
  const remove = (): Promise<void> => run(`DROP SCHEMA ${name} CASCADE`);
  const empty = (): Promise<void> => remove().then(() => run(`CREATE SCHEMA ${name}`));
  return { url: url.href, empty, remove };
}
