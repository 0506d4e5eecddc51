// The interface to another queue: the bench starts it, counts the cycles that it does in a window, and stops it.
// Invariant: its server is a process of its own with its data on the same disk as the hub's.
import { createServer } from "node:net";
import { join } from "node:path";
import { keepChild, makeDirectory, removeDirectory, stopChild } from "../children.ts";
import type { Measurement } from "../job.ts";
import type { Work } from "../scenarios.ts";
import { Connection } from "../wire.ts";

const START_LIMIT_MS = 15_000;
const RETRY_MS = 50;
const LOWEST_PORT = 20_000;
const PORTS = 12_000;

export type RunningPeer = {
  readonly pid: number;
  run(windowMs: number, work: Work): Promise<Measurement>;
  stop(): Promise<void>;
};

export type Against = (row: Pick<Peer, "name" | "load">) => boolean;

/** One row of the table, not yet started. */
export type Peer = {
  readonly name: string;
  readonly cycle: string;
  /** How the load comes: connections, and what is in flight on them. */
  readonly load: string;
  /** The goal for the ratio: the cycles of the hub divided by its cycles; null: no goal. */
  readonly goal: number | null;
  readonly works: readonly Work[];
  /** Set for luxhub in batches: the row whose cycles divide its own in the ratio. */
  readonly against?: Against;
  start(connections: number, dataRoot: string): Promise<RunningPeer>;
};

export type PeerServer = { readonly pid: number; readonly port: number; stop(): Promise<void> };

/** What a server is started on; the second port is for those who will not do with one. */
export type Place = { readonly port: number; readonly secondPort: number; readonly data: string };
export type Launch = { readonly command: readonly string[]; readonly env: Readonly<Record<string, string>> };

/** Starts a server and waits until its port takes connections. */
export async function startServer(dataRoot: string, launch: (place: Place) => Launch): Promise<PeerServer> {
  const data = makeDirectory(dataRoot);
  const port = await freePort();
  const { command, env } = launch({ port, secondPort: await freePort(), data });
  const output = Bun.file(join(data, "output"));
  const child = keepChild(
    Bun.spawn([...command], {
      cwd: data,
      env: { ...process.env, ...env },
      stdin: "ignore",
      stdout: output,
      stderr: output,
    }),
  );
  const stop = async (): Promise<void> => {
    await stopChild(child);
    removeDirectory(data);
  };
  for (let waitedMs = 0; !(await listens(port)); waitedMs += RETRY_MS) {
    if (child.exitCode !== null || waitedMs > START_LIMIT_MS) {
      const said = (await output.text()).trim().split("\n").at(-1) ?? "";
      await stop();
      throw new Error(`${command[0]} does not listen: ${said}`);
    }
    await Bun.sleep(RETRY_MS);
  }
  return { pid: child.pid, port, stop };
}

async function listens(port: number): Promise<boolean> {
  try {
    (await Connection.open(port)).close();
    return true;
  } catch {
    return false;
  }
}

/**
 * A port that is free now: these servers cannot let the system choose. Below those that the system gives to clients, or
 * a connection that asks whether the server listens might be given the server's own port.
 */
async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST_PORT + Math.floor(Math.random() * PORTS);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.on("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
