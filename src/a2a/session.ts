/** The types of one call of A2A, and the addresses that it goes to. */
import type { ConcurrencyLimit } from "../api/concurrency-limit.ts";
import type { Call } from "../api/endpoint.ts";
import type { EventStreams } from "../api/stream.ts";
import type { VariantName } from "../domain/model.ts";

/** What all calls share. */
export type Shared = {
  /** What links begin with. */
  readonly publicUrl: () => string;
  readonly maxFileBytes: number;
  /** Bounds the uploads that run at once, together with file/upload. */
  readonly uploads: ConcurrencyLimit;
  readonly openStream: EventStreams["open"];
  /** Whether every read needs the secret, on A too. */
  readonly isPrivate: boolean;
  /** The card of the hub that was sent last, by variant: its ETag, and when it was first sent. */
  readonly sentCards: Map<VariantName, { readonly etag: string; readonly at: number }>;
};

export type Session = {
  readonly call: Call;
  readonly shared: Shared;
  /** The node whose card it goes to; null: the hub's. */
  readonly nodeId: string | null;
};

/** The addresses of the hub and of a node. */
export const HUB_PATH = "/a2a";

/** Below an address, and of the hub at the root too. */
export const CARD_PATH = "/.well-known/agent-card.json";

export function nodePath(nodeId: string): string {
  return `${HUB_PATH}/nodes/${encodeURIComponent(nodeId)}`;
}
