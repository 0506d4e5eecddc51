/**
 * The event `transport.changed`: logged once for each change of the transport of messages, however many hubs notice it.
 * The hubs coordinate through the log: a hub whose change is already there logs nothing.
 */
import { type Accepted, accept } from "./decision.ts";
import type { LoggedEvent } from "./event.ts";

/** A change as one hub sees it. */
type TransportChange = { readonly from: string; readonly to: string; readonly at: number };

/** Logs a change, unless the newest one in the log (null: none, or deleted after its retention time) led there already. */
export function changeTransport(newest: LoggedEvent | null, seen: TransportChange): Accepted<null> {
  const from = newest === null ? seen.from : String(newest.data["to"]);
  const { to, at } = seen;
  if (from === to) return accept(null);
  const event = { kind: "transport.changed", at, nodeId: null, taskId: null, data: { from, to } } as const;
  return accept(null, [{ kind: "event.logged", event }]);
}
