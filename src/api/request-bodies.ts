/**
 * Bounds the bytes of JSON request bodies that are still arriving, because Bun buffers a body of up to some 2 MiB whether
 * or not anybody reads it. A body beyond the bound is refused at once: to let it wait would be to hold it.
 *
 * Three budgets, so that one kind of caller cannot use up the memory of another: keys that act for any node, keys that are
 * bound to a node (each key has a share), and callers without a key (each address has a share).
 */
import * as limit from "../domain/limits.ts";
import type { Exchange } from "../http/exchange.ts";
import type { BodyRoom } from "../http/json-body.ts";
import { closing } from "../http/problem.ts";
import { type Acquirable, Semaphore, SemaphoreShares } from "../lib/semaphore.ts";
import type { Caller } from "./auth.ts";
import { overloaded } from "./error-table.ts";

export class RequestBodies {
  readonly #addressOf: (exchange: Exchange) => string;
  readonly #unbound = new Semaphore(limit.BODIES_HELD_MAX_BYTES);
  readonly #bound = new SemaphoreShares(
    limit.NODE_KEY_BODIES_HELD_MAX_BYTES,
    limit.BODIES_HELD_PER_NODE_KEY_MAX_BYTES,
  );
  readonly #anonymous = new SemaphoreShares(
    limit.ANONYMOUS_BODIES_HELD_MAX_BYTES,
    limit.BODIES_HELD_PER_ADDRESS_MAX_BYTES,
  );

  /** @param addressOf returns the key under which a client's address is counted */
  constructor(addressOf: (exchange: Exchange) => string) {
    this.#addressOf = addressOf;
  }

  /** The room of a caller. */
  roomOf(exchange: Exchange, { shownKey }: Pick<Caller, "shownKey">): BodyRoom {
    const room = this.#budgetOf(exchange, shownKey);
    return {
      take: (bytes) => {
        if (!room.tryAcquire(bytes)) throw closing(overloaded("Too many request bodies are in transit."));
      },
      give: (bytes) => room.release(bytes),
    };
  }

  #budgetOf(exchange: Exchange, key: Caller["shownKey"]): Acquirable {
    if (key === null) return this.#anonymous.of(this.#addressOf(exchange));
    return key.nodeId === null ? this.#unbound : this.#bound.of(key.keyId);
  }
}
