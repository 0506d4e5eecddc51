// Facts on which the numbers depend: the machine, its disk, and the kernel's counters of a process. On Linux they
// come from /proc; elsewhere an unknown one is null, never a guess.
import { closeSync, fdatasyncSync, openSync, readFileSync, realpathSync, writeSync } from "node:fs";
import { availableParallelism, cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { makeDirectory, removeDirectory } from "./children.ts";
import { median } from "./median.ts";

const SYNCS = 50;
/** The unit of /proc/PID/stat: 100 a second on every Linux that runs Bun. */
const TICK_MS = 10;

export type Machine = {
  cores: number;
  cpu: string;
  memoryGib: number;
  system: string;
  bun: string;
  date: string;
  /** The file system of the hub's data, and the median of one appended page made durable. */
  fileSystem: string | null;
  syncMs: number;
};

/** Describes the machine; measures its disk under `dataRoot`. */
export function describeMachine(dataRoot: string): Machine {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model ?? "unknown",
    memoryGib: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${release()} ${process.arch}`,
    bun: Bun.version,
    date: new Date().toISOString().slice(0, 10),
    fileSystem: fileSystemOf(dataRoot),
    syncMs: measureSync(dataRoot),
  };
}

export type Memory = { rssKib: number; pssKib: number };

export function readMemory(pid: number): Memory | null {
  const rss = readNumber(`/proc/${pid}/status`, /^VmRSS:\s+(\d+) kB$/m);
  const pss = readNumber(`/proc/${pid}/smaps_rollup`, /^Pss:\s+(\d+) kB$/m);
  return rss === null || pss === null ? null : { rssKib: rss, pssKib: pss };
}

/** Processor time a process has used so far, all its threads; null where the kernel does not tell. */
export function readCpuMs(pid: number): number | null {
  const text = readText(`/proc/${pid}/stat`);
  // The command's name may hold blanks: count from the bracket after it. utime and stime are fields 14 and 15.
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ");
  return fields === undefined ? null : (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

function readNumber(path: string, pattern: RegExp): number | null {
  const match = pattern.exec(readText(path) ?? "");
  return match === null ? null : Number(match[1]);
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

function fileSystemOf(path: string): string | null {
  const mounts = readText("/proc/mounts")?.trim().split("\n") ?? [];
  const real = `${realpathSync(path)}/`;
  let best: { point: string; type: string } | null = null;
  for (const line of mounts) {
    const [, point, type] = line.split(" ");
    if (point === undefined || type === undefined) continue;
    const prefix = point === "/" ? "/" : `${point}/`;
    if (real.startsWith(prefix) && prefix.length >= (best?.point.length ?? 0)) best = { point: prefix, type };
  }
  return best?.type ?? null;
}

function measureSync(root: string): number {
  const directory = makeDirectory(root);
  const file = openSync(join(directory, "sync"), "a");
  const page = Buffer.alloc(4_096, 1);
  const tookMs: number[] = [];
  for (let count = 0; count < SYNCS; count++) {
    const startMs = performance.now();
    writeSync(file, page);
    fdatasyncSync(file);
    tookMs.push(performance.now() - startMs);
  }
  closeSync(file);
  removeDirectory(directory);
  return median(tookMs);
}
