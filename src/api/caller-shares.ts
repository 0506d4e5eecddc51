/**
 * Fair shares: bounds what one caller has at once of each resource for which callers compete (waits, streams, unread
 * bytes, running reads, uploads).
 *
 * A caller is the valid key that it showed, else its address. A bound key or a viewer has a small share; any other key
 * has three quarters of the whole, because a whole fleet may use it.
 */
import type { ShareSizes } from "../domain/limits.ts";
import type { KeyRecord } from "../domain/model.ts";
import { type Acquirable, SemaphoreShares } from "../lib/semaphore.ts";

export type Share = {
  readonly kind: "fullKey" | "limitedKey" | "address";
  /** The id of the key, or the address as rate limits count it. */
  readonly name: string;
};

export function shareOfKey({ keyId, nodeId, role }: Pick<KeyRecord, "keyId" | "nodeId" | "role">): Share {
  return { kind: nodeId !== null || role === "viewer" ? "limitedKey" : "fullKey", name: keyId };
}

export function shareOfAddress(address: string): Share {
  return { kind: "address", name: address };
}

/** A weighted semaphore of which each caller has a share: a caller that has used up its own waits for itself. */
export class SharedSemaphore {
  readonly #sizes: ShareSizes;
  readonly #keys: SemaphoreShares;
  readonly #addresses: SemaphoreShares;

  constructor(sizes: ShareSizes) {
    this.#sizes = sizes;
    this.#keys = new SemaphoreShares(sizes.keys);
    this.#addresses = new SemaphoreShares(sizes.addresses);
  }

  of({ kind, name }: Share): Acquirable {
    return (kind === "address" ? this.#addresses : this.#keys).of(name, this.#sizes[kind]);
  }

  close(): void {
    this.#keys.close();
    this.#addresses.close();
  }
}
