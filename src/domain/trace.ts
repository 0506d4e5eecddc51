/** W3C Trace Context: the trace to which a task belongs. Both texts become header lines of webhooks. */
import { isHeaderValue } from "../lib/header-value.ts";
import { TRACESTATE_MAX_CHARS } from "./limits.ts";

/** Version 00; ids of zeros alone are none. */
export const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

type Trace = { readonly traceparent?: string; readonly tracestate?: string };

/** From the headers of a request or the environment of a program: what is none is ignored, as the standard demands. */
export function traceOf(traceparent = "", tracestate = ""): Trace {
  if (!TRACEPARENT.test(traceparent)) return {};
  const isKept = tracestate !== "" && tracestate.length <= TRACESTATE_MAX_CHARS && isHeaderValue(tracestate);
  return { traceparent, ...(isKept ? { tracestate } : {}) };
}
