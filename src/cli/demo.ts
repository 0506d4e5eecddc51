/**
 * `luxhub demo`: a hub of variant A in a temporary directory, with six simulated nodes (demo-team.ts), to try the
 * dashboard. Listens on the loopback only, and reads neither the environment nor luxhub.toml.
 *
 * Invariant: the directory is removed when the process ends; if it is killed, by the next demo.
 */
import { lstatSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LuxHub } from "../client/index.ts";
import { readConfig } from "../config.ts";
import { dataDirAt, isThere, loadSecrets, makeDataDir, recordAddresses } from "../data-dir.ts";
import { openHub } from "../hub.ts";
import { systemClock } from "../lib/clock.ts";
import { openLog } from "../lib/log.ts";
import { reasonOf } from "../lib/reason.ts";
import { shellWord } from "../lib/shell.ts";
import { takeExclusiveLock } from "../store/sqlite/file-lock.ts";
import type { Arguments } from "./arguments.ts";
import { runTeam } from "./demo-team.ts";
import { EXIT } from "./exit-codes.ts";
import { openLogOutput } from "./log-output.ts";
import type { LocalRuns } from "./run.ts";
import { untilShutdown } from "./serve.ts";
import { writeLine } from "./standard-output.ts";

const HOST = "127.0.0.1";
/** Not the hub's default port, which a real hub may need while the demo runs. */
const FIRST_PORT = 19_114;
const PORTS = 10;
const DIR_PREFIX = "luxhub-demo-";

export const LOCAL_RUNS: LocalRuns = { demo };

async function demo({ flags }: Arguments): Promise<number> {
  const port = flags["port"] ?? [String(freePort())];
  // A demo may run for a day: what it keeps is bounded, here and by the team, which deletes old tasks and files.
  const kept = { retain: ["1h"], "max-answers": ["1MiB"] };
  const settings = { flags: { host: [HOST], port, ...kept }, env: {}, file: null };
  const config = readConfig(settings); // refuses an invalid port before anything is created
  const ending = untilShutdown(); // first, so that an early signal also ends it in order
  process.umask(0o077);
  removeLeftovers();
  const path = mkdtempSync(join(tmpdir(), DIR_PREFIX));
  process.on("exit", () => rmSync(path, { recursive: true, force: true, maxRetries: 3 })); // also after a second signal
  const dir = makeDataDir(path);
  const secrets = loadSecrets(dir, {});
  const output = openLogOutput(() => {}, Bun.stderr);
  const clock = systemClock();
  const log = openLog({ format: "pretty", level: "error" }, clock.now, output.write);
  const hub = await openHub({ config: { ...config, dataDir: path }, dir, secrets, clock, log });
  const stop = new AbortController();
  try {
    const url = `http://${HOST}:${hub.listeners[0]?.port}`;
    recordAddresses(dir, [{ variant: "A", url }]);
    writeLine(page(url, secrets, path));
    const { secret, adminKey } = secrets;
    const team = runTeam(new LuxHub({ url, secret, adminKey }), stop.signal);
    const refused = team.then(
      () => ending,
      (fault: unknown) => ({ fault }),
    );
    const end = await Promise.race([ending, refused]);
    stop.abort();
    await refused;
    if ("signal" in end) return EXIT.OK;
    console.error(`luxhub: the demo ends: ${reasonOf(end.fault)}`);
    return EXIT.FAILED;
  } finally {
    stop.abort();
    await hub.close();
    log.flush();
    await output.end();
  }
}

/** The text for the user. The first line is the URL alone, without the secret: browsers keep a history. */
function page(url: string, secrets: { secret: string; adminKey: string }, path: string): string {
  return `${url}/

  secret     ${secrets.secret}   (to sign in)
  admin key  ${secrets.adminKey}   (to delete, and for keys)
  data       ${path}   (removed at the end)

Six simulated nodes work here until Ctrl-C. From another terminal:

  luxhub top --data ${shellWord(path)}
`;
}

/** 0, for any free port, when all PORTS are in use. */
function freePort(): number {
  for (let port = FIRST_PORT; port < FIRST_PORT + PORTS; port++) {
    try {
      Bun.listen({ hostname: HOST, port, socket: { data: () => {} } }).stop(true);
      return port;
    } catch {
      // It is in use.
    }
  }
  return 0;
}

/** Of demos that were killed: those of this user whose lock is free. */
function removeLeftovers(): void {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(DIR_PREFIX)) continue;
    try {
      const dir = dataDirAt(join(tmpdir(), name));
      const stat = lstatSync(dir.path);
      // Without the lock file a demo may be starting there.
      if (!stat.isDirectory() || (process.getuid?.() ?? stat.uid) !== stat.uid || !isThere(dir.lock))
        continue;
      const lock = takeExclusiveLock(dir.lock);
      if (lock === null) continue;
      rmSync(dir.path, { recursive: true, force: true });
      lock.release();
    } catch {
      // Another demo removes it, or it is not a demo's directory. Neither matters here.
    }
  }
}
