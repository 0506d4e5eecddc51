/**
 * Servers (PostgreSQL, Redis, nginx) that outlive the test file that starts them and end with the run: for each, a reaper
 * process stops it and removes its folder when the run has ended, even by a crash. Also servers that the whole run shares:
 * the first test that needs one starts it.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HANG_MS } from "./hang.ts";
import { OWNER, runFolder } from "./run-folder.ts";

/** Runs a server: $1 is the folder for its log, the rest is the command. */
const KEEPER = `folder=$1; shift; "$@" 2>>"$folder/log" & wait $!`;

/**
 * Ends a server and removes its folder when the owner is gone. It is a grandchild because the runner kills its workers'
 * children at the end, keepers included, and would orphan the server. $1 is the owner, $2 the keeper's process group,
 * $3 the folder, $4 the signal that ends the server at once. PostgreSQL needs time to remove its shared memory.
 */
const REAPER = `
  (
    while kill -s 0 $1 && kill -s 0 -- -$2; do sleep 1; done
    kill -s 0 $1 && exit
    kill -s $4 -- -$2
    tries=0
    while kill -s 0 -- -$2 && [ $tries -lt 200 ]; do sleep 0.1; tries=$((tries + 1)); done
    kill -s KILL -- -$2
    rm -rf "$3"
  ) &`;

export type Keeper = Bun.Subprocess<"ignore", "ignore", "ignore">;

export async function endNow(keeper: Keeper): Promise<void> {
  if (keeper.exitCode === null) process.kill(-keeper.pid, "SIGKILL"); // a group of its own
  await keeper.exited;
}

/** Starts `command`, logging its standard error to `folder`/log. `signal` must end it at once. */
export function keep(command: readonly string[], folder: string, signal: "QUIT" | "TERM" | "KILL"): Keeper {
  const options = { cwd: "/", detached: true, stdin: "ignore", stdout: "ignore", stderr: "ignore" } as const;
  const keeper = Bun.spawn({ cmd: ["sh", "-c", KEEPER, "sh", folder, ...command], ...options });
  const watched = [String(OWNER), String(keeper.pid), folder, signal];
  Bun.spawnSync({ cmd: ["sh", "-c", REAPER, "sh", ...watched], ...options });
  keeper.unref();
  return keeper;
}

/** The address of a server that all tests of this run share; the first caller starts it in the folder that `start` gets. */
export async function sharedAddress(
  name: string,
  start: (folder: string) => Promise<string>,
): Promise<string> {
  const shared = runFolder();
  const address = join(shared, `${name}.address`);
  if (takes(join(shared, `${name}.taken`))) {
    writeFileSync(`${address}.new`, await start(shared));
    renameSync(`${address}.new`, address);
  }
  const deadline = performance.now() + HANG_MS;
  while (!existsSync(address)) {
    if (performance.now() > deadline) throw new Error(`no ${name} came up in ${shared}`);
    await Bun.sleep(20);
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

/**
 * A loopback address of this process alone (Linux only; elsewhere all share one): a free port on it stays free, also
 * between the stop of a server and its next start.
 */
export const OWN_HOST = ownHost();

function ownHost(): string {
  const everybodys = "127.0.0.1";
  if (process.platform !== "linux") return everybodys;
  const own = `127.${64 + (process.pid >> 16)}.${(process.pid >> 8) & 255}.${process.pid & 255}`;
  try {
    listen(own).stop(true);
    return own;
  } catch {
    return everybodys; // a sandbox whose loopback is one address
  }
}

function listen(hostname: string): Bun.TCPSocketListener {
  return Bun.listen({ hostname, port: 0, socket: { data() {} } });
}

export function freePorts(count: number, hostname: string): readonly number[] {
  const listeners = Array.from({ length: count }, () => listen(hostname));
  for (const listener of listeners) listener.stop(true);
  return listeners.map(({ port }) => port);
}

export function freePort(): number {
  return freePorts(1, OWN_HOST)[0] ?? 0;
}

export async function isListening(port: number, hostname: string): Promise<boolean> {
  try {
    const socket = await Bun.connect({ hostname, port, socket: { data() {} } });
    socket.terminate();
    return true;
  } catch {
    return false;
  }
}
