/** The signals that ask the program to end. */
import { readFileSync } from "node:fs";

type EndingSignal = "SIGTERM" | "SIGINT" | "SIGHUP";

/** SIGHUP is one of them, for a terminal that is closed; but not under nohup, which ignores it and must be left to. */
export function endingSignals(): readonly EndingSignal[] {
  return isHangupIgnored() ? ["SIGTERM", "SIGINT"] : ["SIGTERM", "SIGINT", "SIGHUP"];
}

/** SIGHUP is the first bit of the mask. On a system that does not show it, we leave SIGHUP alone. */
function isHangupIgnored(): boolean {
  try {
    const [, mask] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
    return mask === undefined || (Number.parseInt(mask.slice(-1), 16) & 1) === 1;
  } catch {
    return true;
  }
}
