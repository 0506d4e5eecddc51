// Starts and stops the measured servers: the hub and the bare server, each a process of its own on a free port of
// 127.0.0.1. Invariant: a server is returned only after it has printed its address, and its output is always read,
// because a full pipe would block it.
import { join } from "node:path";
import { keepChild, makeDirectory, removeDirectory, stopChild } from "./children.ts";

const START_LIMIT_MS = 15_000;
const KEPT_OUTPUT = 4_096;
export const PROJECT = join(import.meta.dir, "../..");
export const ECHO_SOURCE = join(import.meta.dir, "echo.ts");
export const SECRET = "bench-secret-0123456789abcdef";
export const ADMIN_KEY = `${SECRET}-admin`;

export type RunningServer = { port: number; pid: number; stop(): Promise<void> };

export function startEcho(command = [process.execPath, ECHO_SOURCE]): Promise<RunningServer> {
  return start(command, {}, () => {});
}

/** Starts a hub on an empty data directory under `dataRoot`, which goes when it stops. `command`: without `serve`. */
export function startHub(
  command: readonly string[],
  dataRoot: string,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningServer> {
  return startHubOn(command, makeDirectory(dataRoot), env);
}

/** Starts a hub on this data directory (of `makeDirectory`), which goes when it stops. */
export function startHubOn(
  command: readonly string[],
  data: string,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningServer> {
  const serve = [...command, "serve", "--host", "127.0.0.1", "--port", "0", "--data", data];
  const secrets = { LUXHUB_SECRET: SECRET, LUXHUB_ADMIN_KEY: ADMIN_KEY };
  return start(serve, { ...secrets, ...env }, () => removeDirectory(data));
}

/** The port in what a server has printed so far, null as long as there is none. The one place that knows the ready line. */
export function findPort(output: string): number | null {
  const match = /http:\/\/127\.0\.0\.1:(\d+)\b.*\n/.exec(output);
  return match === null ? null : Number(match[1]);
}

async function start(
  command: readonly string[],
  env: Record<string, string>,
  onStopped: () => void,
): Promise<RunningServer> {
  const child = keepChild(
    Bun.spawn([...command], {
      cwd: PROJECT,
      env: { ...process.env, ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    }),
  );
  const ready = Promise.withResolvers<number>();
  let output = "";
  let isReady = false;
  const take = (text: string): void => {
    output = (output + text).slice(-KEPT_OUTPUT);
    const port = isReady ? null : findPort(output);
    if (port === null) return;
    isReady = true;
    ready.resolve(port);
  };
  const streams = Promise.all([readOn(child.stdout, take), readOn(child.stderr, take)]);
  const fail = (why: string) => ready.reject(new Error(`${command.join(" ")}: ${why}\n${output}`));
  void child.exited.then(async (code) => {
    await streams;
    fail(`ended with ${code} before it listened`);
  });
  const timer = setTimeout(() => fail(`not listening after ${START_LIMIT_MS} ms`), START_LIMIT_MS);
  const stop = async (): Promise<void> => {
    if (isReady && child.exitCode !== null) console.error(`${command[0]} ended by itself:\n${output}`);
    await stopChild(child);
    onStopped();
  };
  try {
    return { port: await ready.promise, pid: child.pid, stop };
  } catch (error) {
    await stop();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function readOn(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) take(decoder.decode(chunk, { stream: true }));
}
