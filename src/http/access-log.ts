/**
 * The access log: one line for each request, with its request id. It runs for every request, so it builds the line from
 * strings, without an object or a pattern.
 */
import type { Log } from "../lib/log.ts";

/** Logs one answered request. `target` is its path and query; `startedMs` is a reading of performance.now(). */
export type AccessLog = (
  method: string,
  target: string,
  status: number,
  startedMs: number,
  requestId: string,
) => void;

export function openAccessLog(log: Log): AccessLog {
  if (log.format === "json") {
    return (method, target, status, startedMs, requestId) => {
      const head = `{"time":"${log.time()}","level":"info","message":"request","method":"${method}"`;
      const rest = `"status":${status},"ms":${elapsed(startedMs)},"request_id":${JSON.stringify(requestId)}}`;
      log.line(`${head},"path":${JSON.stringify(target)},${rest}`);
    };
  }
  return (method, target, status, startedMs, requestId) =>
    log.line(
      `${log.time()} info  ${method} ${target} ${status} ${elapsed(startedMs)}ms request_id=${requestId}`,
    );
}

/** Milliseconds with one decimal. Formatting two whole numbers is several times faster than formatting a fraction. */
function elapsed(startedMs: number): string {
  const tenths = Math.round((performance.now() - startedMs) * 10);
  return `${Math.trunc(tenths / 10)}.${tenths % 10}`;
}
