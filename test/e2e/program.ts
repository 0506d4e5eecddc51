/**
 * The real program as a child process, for the tests of e2e: reads its output, awaits its exit, and kills it at the
 * latest when the test's process ends. Must not use the hub's internals: everything goes through the command line,
 * signals and HTTP.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PROGRAM } from "../support/executable.ts";
import { HANG_MS } from "../support/hang.ts";

export const SECRET = "e2e-secret-of-the-suite";
export const ADMIN_KEY = "e2e-admin-key-of-the-suite";

const alive = new Set<Bun.Subprocess>();
process.on("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});

/** A directory that is removed at the end of its `using` block. */
export class TempDir implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "luxhub-e2e-"));

  join(...names: readonly string[]): string {
    return join(this.path, ...names);
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export type ProgramOptions = {
  /** The program without its arguments; the executable if not given. */
  readonly command?: readonly string[];
  readonly cwd?: string;
  /** The whole environment but for PATH and HOME, which are there unless they are given. */
  readonly env?: Readonly<Record<string, string>>;
};

/** One run of the program. */
export class Program implements AsyncDisposable {
  readonly child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  readonly startedMs = performance.now();
  stdout = "";
  stderr = "";
  /** The exit code, when all output has been read; null if a signal ended it. */
  readonly ended: Promise<number | null>;
  readonly #onOutput = new Set<() => void>();

  constructor(args: readonly string[], options: ProgramOptions = {}) {
    const { PATH = "", HOME = "" } = process.env;
    const child = Bun.spawn([...(options.command ?? PROGRAM), ...args], {
      cwd: options.cwd ?? tmpdir(),
      env: { PATH, HOME, ...options.env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    this.child = child;
    alive.add(child);
    const out = this.#read(child.stdout, (text) => (this.stdout += text));
    const err = this.#read(child.stderr, (text) => (this.stderr += text));
    this.ended = Promise.all([child.exited, out, err]).then(() => {
      alive.delete(child);
      this.#told();
      return child.signalCode === null ? child.exitCode : null;
    });
  }

  /** What matched in the standard output, as soon as it is there. */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    const found = Promise.withResolvers<RegExpExecArray>();
    const look = (): void => {
      const match = pattern.exec(this.stdout);
      if (match) found.resolve(match);
      else if (!alive.has(this.child)) found.reject(new Error(`ended without ${pattern}: ${this.stderr}`));
    };
    const timer = setTimeout(() => found.reject(new Error(`no ${pattern} in: ${this.stdout}`)), HANG_MS);
    this.#onOutput.add(look);
    look();
    try {
      return await found.promise;
    } finally {
      clearTimeout(timer);
      this.#onOutput.delete(look);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill("SIGKILL");
    await this.ended;
  }

  async #read(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      take(decoder.decode(chunk, { stream: true }));
      this.#told();
    }
  }

  #told(): void {
    for (const look of this.#onOutput) look();
  }
}

export type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

/** Standard error without the progress that long work reports every five seconds: on a slow machine short work does too. */
export function withoutProgress(stderr: string): string {
  return stderr.replaceAll(/^[a-z]+ing:? [^\n]+\n/gm, "");
}

/** Runs the program to its end; one that does not end is killed. */
export async function run(args: readonly string[], options: ProgramOptions = {}): Promise<Ended> {
  await using program = new Program(args, options);
  const timer = setTimeout(() => program.child.kill("SIGKILL"), HANG_MS);
  const code = await program.ended;
  clearTimeout(timer);
  return { code, stdout: program.stdout, stderr: program.stderr };
}

/** One address that a hub has said it listens on. */
export type Listening = { readonly url: string; readonly port: number; readonly variant: string };

export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
};

export type HubOptions = ProgramOptions & {
  /** The data directory; without it, none is named. */
  readonly data?: string;
  readonly args?: readonly string[];
  /** The address that it listens on and is called at; 127.0.0.1 if not given. */
  readonly host?: string;
  /** Whether the secrets are those of this file, by the environment. */
  readonly ownSecrets?: boolean;
};

/** A running hub. */
export class Hub implements AsyncDisposable {
  readonly program: Program;
  readonly host: string;
  readonly listeners: readonly Listening[];
  /** From the start of the process to its page, with its addresses, in milliseconds. */
  readonly readyMs: number;
  secret: string;

  private constructor(program: Program, host: string, listeners: readonly Listening[], readyMs: number) {
    this.program = program;
    this.host = host;
    this.listeners = listeners;
    this.readyMs = readyMs;
    const [, secretFile] = /Secret {6}in (.+); the/.exec(program.stdout) ?? [];
    // The file as the program sees it: a test may have given it a mount of its own.
    const root = `/proc/${program.child.pid}/root`;
    this.secret =
      secretFile === undefined
        ? SECRET
        : readFileSync(existsSync(root) ? `${root}${secretFile}` : secretFile, "utf8").trim();
  }

  /**
   * Starts one on a port of the system's choice and waits for its page. One that starts again on the port that it had
   * needs OWN_HOST as its host: elsewhere somebody else may have taken the port, even for a connection to a server.
   */
  static async start(hub: HubOptions = {}): Promise<Hub> {
    const { data, args = [], host = "127.0.0.1", ownSecrets = true, ...options } = hub;
    const secrets = ownSecrets ? { LUXHUB_SECRET: SECRET, LUXHUB_ADMIN_KEY: ADMIN_KEY } : {};
    const env = { LUXHUB_PORT: "0", LUXHUB_HOST: host, ...secrets, ...options.env };
    const words = ["serve", ...(data === undefined ? [] : ["--data", data]), ...args];
    const program = new Program(words, { ...options, env });
    await program.printed(/^ {2}Listens(?:.*\n)+?\n/m);
    const readyMs = performance.now() - program.startedMs;
    const lines = program.stdout.matchAll(/(https?:\/\/\S+:(\d+)) {2}variant (.)/g);
    const listeners = [...lines].map(([, url = "", port, variant = ""]) => ({
      url,
      port: Number(port),
      variant,
    }));
    return new Hub(program, host, listeners, readyMs);
  }

  get pid(): number {
    return this.program.child.pid;
  }

  get port(): number {
    return this.listeners[0]?.port ?? 0;
  }

  /** The API of the first listener. */
  get api(): string {
    return `http://${this.host}:${this.port}/api/v1`;
  }

  async call(method: string, path: string, init: RequestInit = {}): Promise<Answer> {
    const headers = new Headers({ "X-Matrix-Secret": this.secret });
    for (const [name, value] of new Headers(init.headers)) headers.set(name, value);
    const response = await fetch(`${this.api}${path}`, { ...init, method, headers, keepalive: false });
    return { status: response.status, headers: response.headers, body: objectOf(await response.text()) };
  }

  get(path: string, init: RequestInit = {}): Promise<Answer> {
    return this.call("GET", path, init);
  }

  post(path: string, body: object, init: RequestInit = {}): Promise<Answer> {
    return this.call("POST", path, { ...init, body: JSON.stringify(body) });
  }

  /** A POST with the administrator key. */
  admin(path: string, body: object): Promise<Answer> {
    return this.post(path, body, { headers: { "X-Admin-Key": ADMIN_KEY } });
  }

  /** Registers a node; throws if that does not work. */
  async register(nodeId: string): Promise<void> {
    const answer = await this.post("/node/register", { node_id: nodeId, name: nodeId });
    if (answer.status !== 200) throw new Error(`register ${nodeId}: ${JSON.stringify(answer.body)}`);
  }

  /** Sends SIGTERM and waits for the end. */
  async stop(): Promise<{ code: number | null }> {
    this.program.child.kill("SIGTERM");
    return { code: await this.program.ended };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.program[Symbol.asyncDispose]();
  }
}

/** A JSON object, or an empty one for what is none. */
export function objectOf(text: string): Readonly<Record<string, unknown>> {
  if (!text.startsWith("{")) return {};
  const value: Readonly<Record<string, unknown>> = JSON.parse(text);
  return value;
}

/** The objects in a list of an answer. */
export function listOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value : [];
}

/** Polls until a condition outside of this process holds; fails after `withinMs`. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  withinMs = HANG_MS,
  everyMs = 10,
): Promise<void> {
  const startedMs = performance.now();
  while (!(await holds())) {
    if (performance.now() - startedMs > withinMs) throw new Error(`not within ${withinMs} ms: ${holds}`);
    await Bun.sleep(everyMs);
  }
}

/** Processor time that a process has used so far, in milliseconds. Linux only. */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The command's name may hold blanks: count from the bracket after it. utime and stime are fields 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Grows by what a process works; where the system does not tell, by what the clock says, which a busy machine adds to. */
export function workedMs(pid: number): number {
  return process.platform === "linux" ? cpuMs(pid) : performance.now();
}

/** A memory reading of a process in MiB: VmRSS is now, VmHWM the most so far. Linux only. */
export function memoryMib(pid: number, field: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) / 1024;
}
