/**
 * The access log: a line a request, with its request id. It is on the path of every request, so its lines are put
 * together by hand: no object, no pattern.
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

/** In milliseconds with one decimal. Put together of whole numbers: to word a fraction takes several times as long. */
function elapsed(startedMs: number): string {
  const tenths = Math.round((performance.now() - startedMs) * 10);
  return `${Math.trunc(tenths / 10)}.${tenths % 10}`;
}
