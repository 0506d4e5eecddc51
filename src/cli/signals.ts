/** The signals that ask the program to end. */
import { readFileSync } from "node:fs";

type EndingSignal = "SIGTERM" | "SIGINT" | "SIGHUP";

/** SIGHUP among them, for a terminal that is closed; but not under nohup, whose wish a handler of ours would undo. */
export function endingSignals(): readonly EndingSignal[] {
  return isHangupIgnored() ? ["SIGTERM", "SIGINT"] : ["SIGTERM", "SIGINT", "SIGHUP"];
}

/** SIGHUP is the first bit of the mask. Where the system does not tell, it is left as it is. */
function isHangupIgnored(): boolean {
  try {
    const [, mask] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
    return mask === undefined || (Number.parseInt(mask.slice(-1), 16) & 1) === 1;
  } catch {
    return true;
  }
}
