/**
 * Servers that outlive the file that started them and end with the run: a small shell beside each ends it and removes its
 * folder when its owner is gone, however that ended. And what a whole run shares: the first who asks starts it.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** The process at whose end everything is removed: of several workers the one that they have in common. */
const OWNER = process.env["BUN_TEST_WORKER_ID"] === undefined ? process.pid : process.ppid;

/**
 * Runs a server, and ends and removes it when its owner is gone. $1 is the owner, $2 the folder that holds its log, $3
 * what is removed, $4 the signal that ends it at once; the rest is the command.
 */
const KEEPER = `
  owner=$1; folder=$2; all=$3; signal=$4; shift 4
  "$@" 2>>"$folder/log" &
  server=$!
  while kill -0 $owner 2>/dev/null && kill -0 $server 2>/dev/null; do sleep 0.2; done
  if kill -0 $owner 2>/dev/null; then wait $server; exit; fi
  kill -s $signal $server 2>/dev/null; wait $server; rm -rf "$folder" "$all"`;

export type Keeper = Bun.Subprocess<"ignore", "ignore", "ignore">;

/** Ends what a keeper runs, and the keeper, at once. */
export async function endNow(keeper: Keeper): Promise<void> {
  if (keeper.exitCode === null) process.kill(-keeper.pid, "SIGKILL"); // a group of its own
  await keeper.exited;
}

/** Starts `command` with what it says on standard error in `folder`/log. `signal` has to end it at once. */
export function keep(command: readonly string[], folder: string, signal: "QUIT" | "TERM" | "KILL"): Keeper {
  // What a run shares lies in one folder of its own, which goes with the last of it.
  const all = dirname(folder) === SHARED ? SHARED : folder;
  const cmd = ["sh", "-c", KEEPER, "sh", String(OWNER), folder, all, signal, ...command];
  const quiet = { stdin: "ignore", stdout: "ignore", stderr: "ignore" } as const;
  const keeper = Bun.spawn({ cmd, cwd: "/", detached: true, ...quiet });
  keeper.unref();
  return keeper;
}

/** In memory where the system offers that. */
const SHARED = join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), `luxhub-tests-${OWNER}`);

/** The address of a server that all tests of this run share. `start` makes it in the folder it is given. */
export async function sharedAddress(
  name: string,
  start: (folder: string) => Promise<string>,
): Promise<string> {
  mkdirSync(SHARED, { recursive: true, mode: 0o711 });
  const address = join(SHARED, `${name}.address`);
  if (takes(join(SHARED, `${name}.taken`))) {
    writeFileSync(`${address}.new`, await start(SHARED));
    renameSync(`${address}.new`, address);
  }
  for (let tries = 0; !existsSync(address); tries++) {
    if (tries > 600) throw new Error(`no ${name} came up in ${SHARED}`);
    await Bun.sleep(50);
  }
  return readFileSync(address, "utf8");
}

function takes(place: string): boolean {
  try {
    mkdirSync(place);
    return true;
  } catch {
    return false;
  }
}

/** Different ports that were free a moment ago. */
export function freePorts(count: number): readonly number[] {
  const listeners = Array.from({ length: count }, () =>
    Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } }),
  );
  for (const listener of listeners) listener.stop(true);
  return listeners.map(({ port }) => port);
}

export function freePort(): number {
  return freePorts(1)[0] ?? 0;
}

/** Whether somebody takes connections there. */
export async function isListening(port: number, hostname = "127.0.0.1"): Promise<boolean> {
  try {
    const socket = await Bun.connect({ hostname, port, socket: { data() {} } });
    socket.terminate();
    return true;
  } catch {
    return false;
  }
}
