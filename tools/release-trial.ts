/**
 * Starts an executable of a release where this machine can run it, under an emulator too: the hub must become ready, the
 * same program as worker must do a task of it, and the hub must end in order.
 */
import { closeSync, existsSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type Way = { readonly name: string; readonly words: readonly string[] };

export type Found = { readonly text: string; readonly isFault: boolean };

const READY_SECONDS = 120;
/** Where Debian's packages for other architectures have their libraries (libc6-arm64-cross). */
const ARM64_LIBRARIES = "/usr/aarch64-linux-gnu";
/** The first x64 processor that has SSE4.2. It has no AVX. */
const OLDEST_X64 = "Nehalem";
/** The message of the loader when a library, or under an emulator the loader itself, is not on this machine. */
const NO_LIBRARY =
  /Error loading shared library.*|Could not open '\/lib\/ld-.*|Library \S+\.dll \(which is needed by .*\) not found/;

export async function tryOut(target: string, path: string): Promise<readonly Found[]> {
  const found: Found[] = [];
  if (target.startsWith("linux-arm64")) found.push(checkPageSize(path));
  const ways = waysToRun(target);
  if (typeof ways === "string") return [...found, { text: `not started: ${ways}`, isFault: false }];
  for (const way of ways) found.push(await tryWay(way, target, path));
  return found;
}

export function waysToRun(
  target: string,
  exists = existsSync,
  which: (name: string) => string | null = Bun.which,
): readonly Way[] | string {
  const [system, architecture, library] = target.split("-");
  if (system === "windows") {
    const wine = which("wine");
    return wine === null ? "there is no Wine here" : [{ name: "Wine", words: [wine] }];
  }
  if (system !== process.platform) return `this machine runs ${process.platform}`;
  const arm64 = which("qemu-aarch64-static");
  const x64 = which("qemu-x86_64-static");
  const old = x64 === null ? [] : [{ name: `a ${OLDEST_X64} (qemu)`, words: [x64, "-cpu", OLDEST_X64] }];
  if (architecture === process.arch) {
    // Without its loader the system reports the executable itself as missing.
    const loader = `/lib/ld-musl-${architecture === "arm64" ? "aarch64" : "x86_64"}.so.1`;
    if (library === "musl" && !exists(loader)) return `this machine has no musl loader (${loader})`;
    return [{ name: "this machine", words: [] }, ...(target === "linux-x64" ? old : [])];
  }
  if (architecture === "x64") return x64 === null ? "no qemu-user-static here" : old;
  if (arm64 === null) return "no qemu-user-static here";
  return [
    { name: "arm64 (qemu)", words: exists(ARM64_LIBRARIES) ? [arm64, "-L", ARM64_LIBRARIES] : [arm64] },
  ];
}

async function tryWay({ name, words }: Way, target: string, path: string): Promise<Found> {
  const place = mkdtempSync(join(tmpdir(), "luxhub-trial-"));
  const isWindows = target.startsWith("windows-");
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: place,
    LUXHUB_SECRET: "secret-of-the-trial",
    // Wine makes its files in HOME, and names a library that is missing.
    ...(isWindows && { WINEDEBUG: "-all,err+module", XDG_RUNTIME_DIR: place }),
  };
  const run = (...args: readonly string[]) => tryRun([...words, path, ...args], place, env);
  const faulty = (text: string): Found => ({ text: `on ${name}: ${text}`, isFault: true });
  try {
    const version = run("version");
    if (version.code !== 0) {
      const [missing] = NO_LIBRARY.exec(version.text) ?? [];
      if (missing !== undefined) return { text: `not started on ${name}: ${missing}`, isFault: false };
      return faulty(`version ended with ${version.code}: ${version.text}`);
    }
    await using hub = await startHub([...words, path], place, env);
    if (hub.url === null) return faulty(`serve ended before it was ready: ${hub.log()}`);
    const ready = await fetch(`${hub.url}/readyz`);
    if (!ready.ok) return faulty(`not ready: ${ready.status}`);
    const remote = ["--url", hub.url];
    const added = run("task", "add", "Trial", "--description", "Print a version", ...remote);
    if (added.code !== 0) return faulty(`task add: ${added.text}`);
    const command = [...(isWindows ? [] : words), path, "version"];
    const worked = run("worker", "--node", "trial-1", "--once", ...remote, "--", ...command);
    if (worked.code !== 0) return faulty(`worker: ${worked.text}`);
    // Wine makes Ctrl-C of SIGINT; Windows has no SIGTERM.
    const code = await hub.end(isWindows ? "SIGINT" : "SIGTERM");
    const text = `on ${name}: started, did a task, ended with ${code}`;
    return { text, isFault: code !== 0 };
  } finally {
    rmSync(place, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
}

type Environment = Readonly<Record<string, string>>;

type TrialHub = AsyncDisposable & {
  /** Null: it ended without one. */
  readonly url: string | null;
  log(): string;
  end(signal: NodeJS.Signals): Promise<number>;
};

async function startHub(program: readonly string[], cwd: string, env: Environment): Promise<TrialHub> {
  const child = Bun.spawn([...program, "serve", "--host", "127.0.0.1", "--port", "0", "--log", "json"], {
    cwd,
    env,
    stdout: "pipe",
    stderr: "inherit",
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), READY_SECONDS * 1_000);
  let log = "";
  let url: string | null = null;
  const listening = Promise.withResolvers<void>();
  const reading = (async () => {
    for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
      log += part;
      url ??= /"url":"([^"]+)"/.exec(log)?.[1] ?? null;
      if (url !== null) listening.resolve();
    }
    listening.resolve();
  })();
  await listening.promise;
  return {
    url,
    log: () => log,
    end: async (signal) => {
      child.kill(signal);
      const code = await child.exited;
      await reading;
      return code;
    },
    [Symbol.asyncDispose]: async () => {
      clearTimeout(timer);
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

function tryRun(
  words: readonly string[],
  cwd: string,
  env: Environment,
): { readonly code: number; readonly text: string } {
  try {
    const ended = Bun.spawnSync([...words], { cwd, env, timeout: READY_SECONDS * 1_000 });
    return { code: ended.exitCode, text: `${ended.stderr.toString()}${ended.stdout.toString()}` };
  } catch (error) {
    return { code: 1, text: String(error) };
  }
}

// ---- Memory pages

/** The largest page size of kernels for arm64. A Raspberry Pi 5 has 16 KiB. */
const PAGE_MAX_BYTES = 64 * 1024;
const LOAD = 1;

/** Whether the segments of an executable can be loaded by kernels with large pages. */
function checkPageSize(path: string): Found {
  const alignment = Math.min(...loadAlignments(path));
  const text = `segments are aligned to ${alignment / 1024} KiB`;
  return { text, isFault: alignment < PAGE_MAX_BYTES };
}

export function loadAlignments(path: string): readonly number[] {
  const head = new DataView(new ArrayBuffer(64 * 1024));
  const file = openSync(path, "r");
  try {
    readSync(file, head, 0, head.byteLength, 0);
  } finally {
    closeSync(file);
  }
  const start = Number(head.getBigUint64(32, true));
  const size = head.getUint16(54, true);
  const headers = Array.from({ length: head.getUint16(56, true) }, (_, i) => start + i * size);
  return headers
    .filter((at) => head.getUint32(at, true) === LOAD)
    .map((at) => Number(head.getBigUint64(at + 48, true)));
}
