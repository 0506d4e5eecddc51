/**
 * Runs a worker's command in a process group of its own, with its input and a bounded output. Processes that it leaves
 * running in its group end with it. Must not: know what a task is.
 *
 * Windows has neither process groups nor SIGTERM: there a command is killed with its descendants, and processes that it
 * leaves running go on.
 */
import type { Environment } from "../config.ts";
import { must } from "../lib/assert.ts";
import { systemClock } from "../lib/clock.ts";
import type { MaskedStream, SecretMask } from "./secret-mask.ts";
import { allPids, readIfThere } from "./worker-lock.ts";

export type RunOptions = {
  /** Null: the current directory. */
  readonly cwd: string | null;
  readonly env: Environment;
  readonly input: string;
  /** Its reason says which time is over. */
  readonly timeout: AbortSignal;
  /** The time from SIGTERM to SIGKILL. */
  readonly graceMs: number;
  readonly signal: AbortSignal;
  readonly onOutput?: ((bytes: Uint8Array) => void) | undefined;
  readonly onErrorLine: (line: string) => void;
  readonly onActivity?: () => void;
  /** Gets what the command prints, in the order in which it arrives. */
  readonly onText: ((text: string) => void) | null;
  readonly mask: SecretMask;
};

export type Run = {
  /** Null: a signal ended it. */
  readonly exitCode: number | null;
  readonly endedBy: string | null;
  /** Which time was over, when that has ended it. */
  readonly overtime: string | null;
  /** The first OUTPUT_KEPT_BYTES; the rest is only counted. */
  readonly output: Uint8Array<ArrayBuffer>;
  readonly outputBytes: number;
  readonly lastLines: string;
  readonly ms: number;
};

export const OUTPUT_KEPT_BYTES = 16 * 1024 * 1024;
const LINE_MAX_CHARS = 2_000;
const LAST_LINES = 20;
/** The limit on the error of a task, less the text that is put before it. */
const LAST_LINES_MAX_CHARS = 3_800;
/** A process outside of the group may still hold the output open. */
const DRAIN_MS = 1_000;
const POLL_MS = 10;
const POLL_MAX_MS = 200;
const IS_WINDOWS = process.platform === "win32";

/** @throws {Error} when it cannot be started */
export async function runCommand(command: readonly string[], options: RunOptions): Promise<Run> {
  const clock = systemClock();
  const startedAt = clock.steady();
  options.signal.throwIfAborted();
  const child = Bun.spawn([...command], {
    ...(options.cwd !== null && { cwd: options.cwd }),
    env: options.cwd === null ? options.env : movedTo(options.cwd, options.env),
    stdin: new TextEncoder().encode(options.input),
    stdout: "pipe",
    stderr: "pipe",
    detached: true, // a session and a process group of its own
  });
  const group = child.pid;
  const output = new Output();
  const errors = new LastLines(options.onErrorLine);
  const readers = [child.stdout.getReader(), child.stderr.getReader()] as const;
  const read = Promise.all([
    readAll(
      readers[0],
      options.onActivity,
      options.mask.stream(),
      alsoAsText(options.onText, (bytes) => {
        output.add(bytes);
        options.onOutput?.(bytes);
      }),
    ),
    readAll(
      readers[1],
      options.onActivity,
      options.mask.stream(),
      alsoAsText(options.onText, (bytes) => errors.add(bytes)),
    ),
  ]);

  let ending: Promise<void> | null = null;
  const end = (): Promise<void> =>
    (ending ??= IS_WINDOWS ? killTree(child) : endGroup(group, options.graceMs));
  let overtime: string | null = null;
  const onTimeout = (): void => {
    overtime = String(options.timeout.reason);
    void end();
  };
  options.timeout.addEventListener("abort", onTimeout);
  const onAbort = (): void => void end();
  options.signal.addEventListener("abort", onAbort);
  await child.exited;
  if (!IS_WINDOWS || ending !== null) await end();
  options.signal.removeEventListener("abort", onAbort);
  options.timeout.removeEventListener("abort", onTimeout);
  const drained = setTimeout(() => readers.forEach((reader) => void reader.cancel()), DRAIN_MS);
  await read;
  clearTimeout(drained);
  return {
    exitCode: child.signalCode === null ? child.exitCode : null,
    endedBy: child.signalCode === null ? null : String(child.signalCode),
    overtime,
    output: output.bytes(),
    outputBytes: output.total,
    lastLines: errors.text(),
    ms: clock.steady() - startedAt,
  };
}

/** They lead programs to the directory in which the worker was started: shells, npm and its like, git. */
const OF_STARTER = [
  ...["OLDPWD", "INIT_CWD", "PROJECT_CWD", "npm_config_local_prefix", "npm_package_json"],
  ...["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"],
];

/** Some programs believe PWD rather than the system. */
function movedTo(cwd: string, env: Environment): Environment {
  return { ...env, ...Object.fromEntries(OF_STARTER.map((name) => [name, undefined])), PWD: cwd };
}

/** Kills a process of Windows and its descendants; without taskkill, which Windows brings along, the process alone. */
async function killTree(child: Bun.Subprocess): Promise<void> {
  const command = ["taskkill", "/F", "/T", "/PID", String(child.pid)];
  try {
    await Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "ignore" }).exited;
  } catch {
    child.kill();
  }
}

/** Kills what has not ended after the grace. */
async function endGroup(group: number, graceMs: number): Promise<void> {
  const clock = systemClock();
  const startedAt = clock.steady();
  killGroup(group, "SIGTERM");
  for (let pause = POLL_MS; isGroupRunning(group); pause = Math.min(2 * pause, POLL_MAX_MS)) {
    const leftMs = startedAt + graceMs - clock.steady();
    if (leftMs <= 0) {
      killGroup(group, "SIGKILL");
      return;
    }
    await Bun.sleep(Math.min(pause, leftMs));
  }
}

/** 0 only checks whether the group exists. False: it does not. */
function killGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal);
  } catch {
    return false;
  }
}

/** Zombies do not count: where no process reaps orphans, as in many containers, they stay in the group. */
function isGroupRunning(group: number): boolean {
  if (!killGroup(group, 0)) return false;
  const pids = allPids();
  return (
    pids.length === 0 ||
    pids.some((pid) => {
      const stat = readIfThere(`/proc/${pid}/stat`);
      // proc_pid_stat(5): after the bracket that ends the command's name.
      const [state, , pgrp] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return pgrp === String(group) && state !== "Z";
    })
  );
}

type Reader = { read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }> };

/** To the end, or to the first error. Never rejects. */
async function readAll(
  reader: Reader,
  onActivity: (() => void) | undefined,
  masked: MaskedStream,
  take: (bytes: Uint8Array) => void,
): Promise<void> {
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || !value) break;
      onActivity?.();
      take(masked.add(value));
    }
  } catch {
    // What has arrived counts.
  }
  take(masked.end());
}

/** Also to `onText`, each stream by itself, so that no character is mixed with another's. */
function alsoAsText(
  onText: ((text: string) => void) | null,
  take: (bytes: Uint8Array) => void,
): (bytes: Uint8Array) => void {
  if (onText === null) return take;
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return (bytes) => {
    take(bytes);
    onText(decoder.decode(bytes, { stream: true }));
  };
}

class Output {
  readonly #pieces: Uint8Array[] = [];
  total = 0;

  add(piece: Uint8Array): void {
    const room = OUTPUT_KEPT_BYTES - this.total;
    if (room > 0) this.#pieces.push(piece.length <= room ? piece : piece.slice(0, room));
    this.total += piece.length;
  }

  bytes(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(Buffer.concat(this.#pieces));
  }
}

export function lastLinesOf(output: Uint8Array): string {
  const lines = new LastLines(() => {});
  lines.add(output.subarray(-LAST_LINES * LINE_MAX_CHARS));
  return lines.text();
}

/** Passes lines on, and keeps the last ones. */
class LastLines {
  readonly #decoder = new TextDecoder();
  readonly #onLine: (line: string) => void;
  readonly #last: string[] = [];
  /** The beginning of an unfinished line. */
  #rest = "";

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  add(bytes: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split(/\r\n|[\r\n]/);
    this.#rest = must(lines.pop(), "a split text has a last part");
    for (const line of lines) this.#take(line);
    if (this.#rest.length > LINE_MAX_CHARS) {
      this.#take(this.#rest);
      this.#rest = "";
    }
  }

  #take(line: string): void {
    const shown = line.length > LINE_MAX_CHARS ? `${line.slice(0, LINE_MAX_CHARS)}…` : line;
    if (shown.trim() === "") return;
    this.#last.push(shown);
    if (this.#last.length > LAST_LINES) this.#last.shift();
    this.#onLine(shown);
  }

  text(): string {
    this.#take(this.#rest);
    this.#rest = "";
    return this.#last.join("\n").slice(-LAST_LINES_MAX_CHARS);
  }
}
