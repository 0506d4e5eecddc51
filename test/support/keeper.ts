/**
 * Servers that outlive the file that started them and end with the run: a small shell beside each ends it and removes its
 * folder when its owner is gone, however that ended. And what a whole run shares: the first who asks starts it.
 */
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { HANG_MS } from "./hang.ts";

/** The process at whose end everything is removed: of several workers the one that they have in common. */
const OWNER = process.env["BUN_TEST_WORKER_ID"] === undefined ? process.pid : process.ppid;

/** Runs a server: $1 is the folder of its log, the rest the command. */
const KEEPER = `folder=$1; shift; "$@" 2>>"$folder/log" & wait $!`;

/**
 * Ends a server and removes its folder when the owner is gone. A grandchild, which nobody knows of: the runner kills its
 * workers' own children at the end, a keeper too, and its server would live on. $1 is the owner, $2 the keeper's group,
 * $3 and $4 what is removed, $5 the signal that ends the server at once.
 */
const REAPER = `
  (
    while kill -s 0 $1 && kill -s 0 -- -$2; do sleep 0.2; done
    kill -s 0 $1 && exit
    kill -s $5 -- -$2
    tries=0
    while kill -s 0 -- -$2 && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
    kill -s KILL -- -$2
    rm -rf "$3" "$4"
  ) &`;

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
  const options = { cwd: "/", detached: true, stdin: "ignore", stdout: "ignore", stderr: "ignore" } as const;
  const keeper = Bun.spawn({ cmd: ["sh", "-c", KEEPER, "sh", folder, ...command], ...options });
  const watched = [String(OWNER), String(keeper.pid), folder, all, signal];
  Bun.spawnSync({ cmd: ["sh", "-c", REAPER, "sh", ...watched], ...options });
  keeper.unref();
  return keeper;
}

const GIB = 2 ** 30;

/** A folder in memory where the system offers so much of that (a container may have 64 MiB), else on the disk. */
export function swiftFolder(wantedBytes: number): string {
  const memory = "/dev/shm";
  try {
    accessSync(memory, constants.W_OK);
    const { blocks, bsize } = statfsSync(memory); // its size: what is free now differs from one worker to the next
    return blocks * bsize >= wantedBytes ? memory : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** A database with files of 256 MiB, and its log. */
const SHARED = join(swiftFolder(1.5 * GIB), `luxhub-tests-${OWNER}`);

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
  const deadline = performance.now() + HANG_MS;
  while (!existsSync(address)) {
    if (performance.now() > deadline) throw new Error(`no ${name} came up in ${SHARED}`);
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
 * An address on the loopback that is this process's alone: a port that is free there stays so until it is used, also
 * between the stop of a server and its next start. On Linux; elsewhere there is one for all, and a port may be lost.
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

/** Different ports that were free a moment ago. */
export function freePorts(count: number, hostname: string): readonly number[] {
  const listeners = Array.from({ length: count }, () => listen(hostname));
  for (const listener of listeners) listener.stop(true);
  return listeners.map(({ port }) => port);
}

/** A port of OWN_HOST on which nobody listens. */
export function freePort(): number {
  return freePorts(1, OWN_HOST)[0] ?? 0;
}

/** Whether somebody takes connections there. */
export async function isListening(port: number, hostname: string): Promise<boolean> {
  try {
    const socket = await Bun.connect({ hostname, port, socket: { data() {} } });
    socket.terminate();
    return true;
  } catch {
    return false;
  }
}
