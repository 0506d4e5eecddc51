/** `/healthz`, `/readyz` and `/metrics`: outside /api/v1, the same on both variants. */
import { UNCACHED } from "../http/exchange.ts";
import { Problem } from "../http/problem.ts";
import type { Readiness } from "../service/readiness.ts";
import { type Copies, isCopied } from "../service/copies.ts";
import type { JsonAnswer } from "./answer.ts";
import { encodeOpenCopy } from "./copies.ts";
import { type Endpoint, rawEndpoint } from "./endpoint.ts";
import { problemOf } from "./error-table.ts";

export function monitoringEndpoints(
  readiness: Readiness,
  metrics: () => Promise<string>,
  copies: Copies,
): readonly Endpoint[] {
  const copyOf = (): { readonly copy?: JsonAnswer } => {
    const report = copies.report();
    return report !== null && isCopied(report) ? { copy: encodeOpenCopy(report) } : {};
  };
  return [
    rawEndpoint({
      path: "/healthz",
      auth: "open",
      summary: "Whether the process responds; never reads the store",
      handle: async () => Response.json({ success: true, status: "ok" }, { headers: UNCACHED }),
    }),
    rawEndpoint({
      path: "/readyz",
      auth: "open",
      summary: "Whether the hub serves and its store can be written",
      handle: async () => {
        const problem = problemOfVerdict(await readiness.check(), copyOf());
        if (problem !== null) throw problem;
        return Response.json({ success: true, status: "ready", ...copyOf() }, { headers: UNCACHED });
      },
    }),
    rawEndpoint({
      path: "/metrics",
      auth: "secret",
      summary: "The metrics of the hub, for Prometheus",
      handle: async () => new Response(await metrics(), { headers: METRICS_HEADERS }),
    }),
  ];
}

const METRICS_HEADERS = { ...UNCACHED, "Content-Type": "text/plain; version=0.0.4; charset=utf-8" };

const RETRY = { headers: { "Retry-After": "1" } };

/** 503 with the code of the fault: a probe reads the status, a person the code. */
function problemOfVerdict(
  verdict: Awaited<ReturnType<Readiness["check"]>>,
  members: Readonly<Record<string, unknown>>,
): Problem | null {
  switch (verdict.state) {
    case "ready":
      return null;
    case "starting":
      return new Problem(503, "starting", "Starting", "The hub is starting. Try again in a second.", RETRY);
    case "draining":
      return new Problem(503, "draining", "Draining", "The hub is shutting down. Call another hub.", RETRY);
    case "failing": {
      const known = problemOf(verdict.fault);
      const detail = known?.message ?? "The database rejected a write. The log of the hub has the reason.";
      return new Problem(
        503,
        known?.code ?? "internal_error",
        known?.title ?? "Internal server error",
        detail,
        { ...RETRY, members },
      );
    }
  }
}
