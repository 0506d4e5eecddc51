/**
 * What carries messages, as the event log tells it: `transport.changed` at each change, once, however many hubs notice it.
 * The log itself is what they share: who finds there what it came to say keeps quiet.
 */
import { type Accepted, accept } from "./decision.ts";
import type { LoggedEvent } from "./event.ts";

/** A change as one hub sees it. */
export type TransportChange = { readonly from: string; readonly to: string; readonly at: number };

/** Logs a change, unless the newest one in the log (null: none, or past its time) has led there already. */
export function changeTransport(newest: LoggedEvent | null, seen: TransportChange): Accepted<null> {
  const from = newest === null ? seen.from : String(newest.data["to"]);
  const { to, at } = seen;
  if (from === to) return accept(null);
  const event = { kind: "transport.changed", at, nodeId: null, taskId: null, data: { from, to } } as const;
  return accept(null, [{ kind: "event.logged", event }]);
}
