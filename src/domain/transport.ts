/**
 * The event `transport.changed`: logged once for each change of the transport of messages, however many hubs notice it.
 * The hubs coordinate through the log: a hub whose change is already there logs nothing.
 */
import { type Accepted, accept } from "./decision.ts";
import type { LoggedEvent } from "./event.ts";

type TransportChange = { readonly from: string; readonly to: string; readonly at: number };

/** `newest` null: there is none, or it was deleted after its retention time. */
export function changeTransport(newest: LoggedEvent | null, seen: TransportChange): Accepted<null> {
  const from = newest === null ? seen.from : String(newest.data["to"]);
  const { to, at } = seen;
  if (from === to) return accept(null);
  const event = { kind: "transport.changed", at, nodeId: null, taskId: null, data: { from, to } } as const;
  return accept(null, [{ kind: "event.logged", event }]);
}
