/**
 * Bounds the bytes of JSON bodies that are still arriving, because Bun buffers up to some 2 MiB whether or not anybody
 * reads them. A body beyond its caller's share is refused at once: to let it wait would be to hold it.
 */
import { BODY_BYTES_SHARES } from "../domain/limits.ts";
import type { BodyRoom } from "../http/json-body.ts";
import { closing } from "../http/problem.ts";
import { type Share, SharedSemaphore } from "./caller-shares.ts";
import { overloaded } from "./error-table.ts";

export class RequestBodies {
  readonly #held = new SharedSemaphore(BODY_BYTES_SHARES);

  roomOf(share: Share): BodyRoom {
    const room = this.#held.of(share);
    return {
      take: (bytes) => {
        if (!room.tryAcquire(bytes)) throw closing(overloaded("Too many request bodies are in transit."));
      },
      give: (bytes) => room.release(bytes),
    };
  }
}
