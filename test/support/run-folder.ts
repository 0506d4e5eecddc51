/**
 * One folder for everything that a run of the suite writes, in memory where the system has that much. When the run has
 * ended, however it ended, a process of its own kills the programs that still use the folder and removes it.
 */
import { accessSync, constants, mkdirSync, readFileSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";

/** The process whose end is the end of the run: for a test worker its runner, which starts one worker after another. */
export const OWNER = process.env["BUN_TEST_WORKER_ID"] === undefined ? process.pid : process.ppid;

/** Databases with files of 256 MiB, their logs, and files that are sent through hubs. */
const WANTED_BYTES = 2 * 2 ** 30;
const NAME = `luxhub-run-${OWNER}`;

/**
 * Waits for the end of $1. Then kills what still uses the folder $2 (in its arguments, its environment or as working
 * directory) and runs the executable $3, one in the folder, or Redis; servers of keeper.ts end by themselves. Removes the
 * folder when nobody uses it any more. Without /proc it only removes the folder.
 */
const REAPER = `
  (
    while kill -s 0 $1; do sleep 1; done
    tries=0
    while [ $tries -lt 300 ]; do
      left=0
      named=$(grep -slF "$2" /proc/[0-9]*/cmdline /proc/[0-9]*/environ | cut -d / -f 3)
      inside=$(ls -l /proc/[0-9]*/cwd | grep -F -- "-> $2" | sed 's|.* /proc/\\([0-9]*\\)/cwd.*|\\1|')
      for pid in $named $inside; do
        case $(readlink /proc/$pid/exe) in
          "$3" | "$2"/* | */redis-* | */valkey-*) kill -s KILL $pid ;;
          "" | */grep | */sh | */dash | */bash | */busybox) continue ;; # over by now, or a reaper
        esac
        left=1
      done
      [ $left = 0 ] && break
      tries=$((tries + 1))
      sleep 0.1
    done
    rm -rf "$2"
  ) &`;

let made: string | null = null;

/** The folder; the first call of the run makes it. */
export function runFolder(): string {
  if (made !== null) return made;
  // Another file of this process may have put it into TMPDIR already.
  const place = basename(tmpdir()) === NAME ? dirname(tmpdir()) : swiftPlace();
  made = join(place, NAME);
  try {
    mkdirSync(made, { mode: 0o711 }); // PostgreSQL runs as a user of its own
  } catch {
    return made; // another worker was first
  }
  const cmd = ["sh", "-c", REAPER, "sh", String(OWNER), made, process.execPath];
  Bun.spawnSync({
    cmd,
    cwd: "/",
    env: { PATH: process.env["PATH"] },
    detached: true,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  });
  return made;
}

/**
 * In memory where the system offers so much of that (a container may have 64 MiB) and lets programs start there, else
 * where temporary files go.
 */
function swiftPlace(): string {
  const memory = "/dev/shm";
  if (process.env["TMPDIR"] !== undefined) return tmpdir();
  try {
    accessSync(memory, constants.W_OK);
    if (/^\S+ \/dev\/shm \S+ \S*\bnoexec\b/m.test(readFileSync("/proc/mounts", "utf8"))) return tmpdir();
    const { blocks, bsize } = statfsSync(memory); // its size: what is free now differs from one worker to the next
    return blocks * bsize >= WANTED_BYTES ? memory : tmpdir();
  } catch {
    return tmpdir();
  }
}
