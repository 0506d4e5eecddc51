/**
 * The access log: a line a request, with its request id. It is on the path of every request, so its lines are put
 * together by hand: no object, no pattern.
 */
import type { Log } from "../lib/log.ts";

/** Logs one answered request. `startedMs` is a reading of performance.now(). */
export type AccessLog = (request: Request, status: number, startedMs: number, requestId: string) => void;

export function openAccessLog(log: Log): AccessLog {
  if (log.format === "json") {
    return (request, status, startedMs, requestId) => {
      const head = `{"time":"${log.time()}","level":"info","message":"request","method":"${request.method}"`;
      const rest = `"status":${status},"ms":${elapsed(startedMs)},"request_id":${JSON.stringify(requestId)}}`;
      log.line(`${head},"path":${JSON.stringify(pathOf(request))},${rest}`);
    };
  }
  return (request, status, startedMs, requestId) => {
    const what = `${request.method} ${pathOf(request)} ${status} ${elapsed(startedMs)}ms`;
    log.line(`${log.time()} info  ${what} request_id=${requestId}`);
  };
}

/** Path and query, never the host: that is the caller's word. Secrets travel in headers only, so none is in here. */
function pathOf({ url }: Request): string {
  return url.startsWith("/") ? url : url.slice(url.indexOf("/", url.indexOf("//") + 2));
}

function elapsed(startedMs: number): number {
  return Math.round((performance.now() - startedMs) * 10) / 10;
}
