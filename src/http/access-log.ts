/**
 * The access log: a line for each request, from the level `debug` on. At any other level only what an operator should
 * know of: 429 and 5xx, as warnings, and of those a bounded number each second, because a caller can cause them.
 *
 * It is on the path of every request, so its lines are put together by hand: no object, no pattern.
 */
import type { Log } from "../lib/log.ts";

export type Request = {
  readonly method: string;
  /** Path and query, without what may be a secret. */
  readonly target: string;
  readonly status: number;
  /** A reading of performance.now(). */
  readonly startedMs: number;
  readonly requestId: string;
  /** The address of the caller. */
  readonly from: string;
};

export interface AccessLog {
  /** Whether an answer with this status is logged; one that is not may be counted. */
  wants(status: number): boolean;
  write(request: Request): void;
}

export type AccessLogLimits = {
  readonly targetMaxChars: number;
  /** How many warnings a second; what is beyond is counted. */
  readonly warningsPerSecond: number;
};

const SECOND_MS = 1_000;

export function openAccessLog(log: Log, limits: AccessLogLimits): AccessLog {
  const all = log.has("debug");
  const warnings = log.has("warn");
  const isJson = log.format === "json";
  let secondEndsMs = 0;
  let written = 0;
  let unwritten = 0;
  const startSecond = (nowMs: number): void => {
    if (unwritten > 0) log.warn("more requests were answered with 429 or 5xx", { requests: unwritten });
    secondEndsMs = nowMs + SECOND_MS;
    written = 0;
    unwritten = 0;
  };
  return {
    wants(status) {
      if (all) return true;
      if (!warnings || !isWarning(status)) return false;
      const nowMs = performance.now();
      if (nowMs >= secondEndsMs) startSecond(nowMs);
      if (++written <= limits.warningsPerSecond) return true;
      if (unwritten++ === 0) {
        const report = (): void => startSecond(performance.now());
        setTimeout(() => unwritten > 0 && report(), SECOND_MS).unref();
      }
      return false;
    },
    write({ method, target, status, startedMs, requestId, from }) {
      const head = log.head(isWarning(status) ? "warn" : "debug");
      const path = bounded(target, limits.targetMaxChars);
      const ms = elapsed(startedMs);
      log.line(
        isJson
          ? `${head}"message":"request","method":"${method}","path":${JSON.stringify(path)},"status":${status},"ms":${ms},"from":"${from}","request_id":${JSON.stringify(requestId)}}`
          : `${head}${method} ${path} ${status} ${ms}ms from=${from} request_id=${requestId}`,
      );
    },
  };
}

function isWarning(status: number): boolean {
  return status === 429 || status >= 500;
}

/** At most so many characters, each of one byte: a caller chooses what stands in a path. */
function bounded(target: string, maxChars: number): string {
  const cut = target.length <= maxChars ? target : `${target.slice(0, maxChars - 3)}...`;
  return /[^\x21-\x7e]/.test(cut) ? cut.replaceAll(/[^\x21-\x7e]/g, "?") : cut;
}

/** Milliseconds with one decimal. Formatting two whole numbers is several times faster than formatting a fraction. */
function elapsed(startedMs: number): string {
  const tenths = Math.round((performance.now() - startedMs) * 10);
  return `${Math.trunc(tenths / 10)}.${tenths % 10}`;
}
