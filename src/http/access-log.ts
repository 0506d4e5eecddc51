/**
 * The access log. At level `debug` it has each request, at others only 429 and 5xx, as warnings: a bounded number each
 * second, because a caller can cause them.
 *
 * On the path of every request: each line is concatenated from its parts, without an object or a pattern.
 */
import type { Log } from "../lib/log.ts";

export type Request = {
  readonly method: string;
  /** Possible secrets are redacted. */
  readonly target: string;
  readonly status: number;
  /** A reading of performance.now(). */
  readonly startedMs: number;
  readonly requestId: string;
  readonly from: string;
};

export interface AccessLog {
  wants(status: number): boolean;
  write(request: Request): void;
}

export type AccessLogLimits = {
  readonly targetMaxChars: number;
  readonly warningsPerSecond: number;
};

const SECOND_MS = 1_000;

export function openAccessLog(log: Log, limits: AccessLogLimits): AccessLog {
  const isVerbose = log.has("debug");
  const warnings = log.has("warn");
  const isJson = log.format === "json";
  let secondEndsMs = 0;
  let written = 0;
  let unwritten = 0;
  const startSecond = (nowMs: number): void => {
    if (unwritten > 0) log.warn("more requests got 429 or 5xx", { requests: unwritten });
    secondEndsMs = nowMs + SECOND_MS;
    written = 0;
    unwritten = 0;
  };
  return {
    wants(status) {
      if (isVerbose) return true;
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

/** What is not printable ASCII is replaced: a caller can send anything. */
function bounded(target: string, maxChars: number): string {
  const cut = target.length <= maxChars ? target : `${target.slice(0, maxChars - 3)}...`;
  return /[^\x21-\x7e]/.test(cut) ? cut.replaceAll(/[^\x21-\x7e]/g, "?") : cut;
}

/** Formatting two whole numbers is several times faster than a fraction. */
function elapsed(startedMs: number): string {
  const tenths = Math.round((performance.now() - startedMs) * 10);
  return `${Math.trunc(tenths / 10)}.${tenths % 10}`;
}
