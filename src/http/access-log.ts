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

/**
 * A parameter of a query that may be a secret. Secrets travel in headers only and are not looked at here, but who cannot
 * set a header tries it so.
 */
const SECRET_PARAMETER = /([?&][^=&]*(?:secret|key|token|passw)[^=&]*=)[^&]*/gi;

/** Path and query, never the host: that is the caller's word. */
function pathOf({ url }: Request): string {
  const path = url.startsWith("/") ? url : url.slice(url.indexOf("/", url.indexOf("//") + 2));
  return path.includes("?") ? path.replace(SECRET_PARAMETER, "$1*") : path;
}

function elapsed(startedMs: number): number {
  return Math.round((performance.now() - startedMs) * 10) / 10;
}
