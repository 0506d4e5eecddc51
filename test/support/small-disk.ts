/**
 * A disk of 16 MiB that can be filled and emptied: a tmpfs in a mount namespace of its own, which needs neither root nor
 * cleaning up where the system lets users have namespaces. The namespace lives as long as a `cat` in it, which ends with
 * the pipe to this process. `command` starts programs inside; `inside()` is the path of a file from outside.
 */
import { closeSync, fstatSync, ftruncateSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

const SIZE_MIB = 16;
export const SMALL_DISK_BYTES = SIZE_MIB * 2 ** 20;
const BALLAST = "ballast";

type Namespace = {
  readonly unshare: readonly string[];
  readonly nsenter: readonly string[];
};

/** As a user of one's own, mapped to root; and for a root who may not have users of its own. */
const NAMESPACES: readonly Namespace[] = [
  { unshare: ["-r", "-m"], nsenter: ["-U", "--preserve-credentials", "-m"] },
  { unshare: ["-m"], nsenter: ["-m"] },
];

export class SmallDisk implements AsyncDisposable {
  readonly path: string;
  readonly #holder: Bun.Subprocess<"pipe", "pipe", "pipe">;
  readonly #nsenter: readonly string[];

  private constructor(
    path: string,
    holder: Bun.Subprocess<"pipe", "pipe", "pipe">,
    nsenter: readonly string[],
  ) {
    this.path = path;
    this.#holder = holder;
    this.#nsenter = nsenter;
  }

  /** Mounts one at a directory, made if need be. @throws {Error} with the reason where that is not possible */
  static async mount(path: string): Promise<SmallDisk> {
    mkdirSync(path, { recursive: true });
    const reasons: string[] = [];
    for (const { unshare, nsenter } of NAMESPACES) {
      const script = `mount -t tmpfs -o size=${SIZE_MIB}m,mode=700 tmpfs "$0" && echo mounted && exec cat`;
      const command = ["unshare", ...unshare, "sh", "-c", script, path];
      if (!Bun.which("unshare") || !Bun.which("nsenter"))
        throw new Error("there is no unshare or nsenter here");
      const holder = Bun.spawn(command, { stdin: "pipe", stdout: "pipe", stderr: "pipe" });
      const reader = holder.stdout.getReader();
      const { value } = await reader.read();
      reader.releaseLock();
      if (value) return new SmallDisk(path, holder, ["nsenter", "-t", String(holder.pid), ...nsenter, "--"]);
      reasons.push((await new Response(holder.stderr).text()).trim());
    }
    throw new Error(`no tmpfs can be mounted here: ${reasons.join("; ")}`);
  }

  /** A program's command line, to be run where the disk is. */
  command(words: readonly string[]): readonly string[] {
    return [...this.#nsenter, ...words];
  }

  inside(path: string): string {
    return `/proc/${this.#holder.pid}/root${path}`;
  }

  fill(leaving = 0): void {
    const path = this.inside(join(this.path, BALLAST));
    const file = openSync(path, "a");
    try {
      for (const bytes of [1024 * 1024, 4_096, 1]) while (appends(file, bytes));
      if (leaving > 0) ftruncateSync(file, fstatSync(file).size - leaving);
    } finally {
      closeSync(file);
    }
  }

  free(): void {
    rmSync(this.inside(join(this.path, BALLAST)), { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#holder.kill("SIGKILL");
    await this.#holder.exited;
  }
}

function appends(file: number, bytes: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(bytes, 1)) === bytes;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOSPC") return false;
    throw error;
  }
}

/** Why there can be no small disk here, or null. */
export async function whyNoSmallDisk(path: string): Promise<string | null> {
  try {
    await using _disk = await SmallDisk.mount(path);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
