/** The signals that ask the program to end, and their substitute under npx and the launcher of the npm package. */
import { existsSync, readFileSync } from "node:fs";

type EndingSignal = "SIGTERM" | "SIGINT" | "SIGHUP";

/** SIGHUP, which a closed terminal sends, is included unless it is ignored, as under nohup. */
export function endingSignals(): readonly EndingSignal[] {
  return isHangupIgnored() ? ["SIGTERM", "SIGINT"] : ["SIGTERM", "SIGINT", "SIGHUP"];
}

/** SIGHUP is the first bit of the mask. On a system that does not show the mask, we leave SIGHUP alone. */
function isHangupIgnored(): boolean {
  try {
    const [, mask] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "latin1")) ?? [];
    return mask === undefined || (Number.parseInt(mask.slice(-1), 16) & 1) === 1;
  } catch {
    return true;
  }
}

const STARTER_CHECK_MS = 1_000;

/** Where the launcher of the npm package (node-launcher.ts) puts its process id. */
const LAUNCHER = "LUXHUB_LAUNCHER";

/**
 * Calls `end` once, when what started this program ends: npx, or the launcher of the npm package. npx starts a program
 * as the child of a shell that dies of SIGTERM without passing it on, so we watch that too; and who is killed (SIGKILL)
 * passes nothing on. Linux only, by /proc.
 */
export function onStarterExit(end: () => void): void {
  const launcher = process.env[LAUNCHER];
  const watched = [...npxAndItsShell(), ...(launcher === undefined ? [] : [launcher])];
  if (watched.length === 0) return;
  const timer = setInterval(() => {
    if (watched.every((pid) => existsSync(`/proc/${pid}`))) return;
    clearInterval(timer);
    end();
  }, STARTER_CHECK_MS);
  timer.unref();
}

/** The process ids of npx and of the shell below it, if they are our ancestors. `bun start` may run in between. */
function npxAndItsShell(): readonly string[] {
  try {
    let below = "self";
    for (let i = 0; i < 3; i++) {
      const [, pid = ""] = /^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${below}/status`, "latin1")) ?? [];
      if (readFileSync(`/proc/${pid}/cmdline`, "latin1").startsWith("npm exec")) return [pid, below];
      below = pid;
    }
  } catch {
    // There is no /proc, or no more process above.
  }
  return [];
}
