/**
 * Lingering close (RFC 9112 9.6): discards the rest of a refused body before the response goes out and the connection
 * closes. A close over unread bytes resets the connection, and the reset can overtake the response: the client would see
 * a broken connection, a proxy return 502.
 *
 * Invariant: at most LINGERING_MAX bodies are discarded at once, at most LINGERING_PER_ADDRESS_MAX for one address.
 * Beyond these bounds the connection closes at once. A place is free again PAUSE_MS after its body, which bounds the
 * processor time for a flood of bodies that are there at once.
 */
import { SemaphoreShares } from "../lib/semaphore.ts";

/** From a client that sends without a pause. */
const TOTAL_MAX_MS = 5_000;
/** After it nothing is in transit: a slower client reads the response before it sends more. */
const PAUSE_MS = 100;
const LINGERING_MAX = 128;
const LINGERING_PER_ADDRESS_MAX = 32;

const AUTHENTICATED = "authenticated";

const LINGERING = new SemaphoreShares(LINGERING_MAX);

export type BodyReader = Pick<ReadableStreamDefaultReader<Uint8Array>, "read" | "cancel">;

/** Unless too many others linger, of this address or in all. Never rejects. */
export async function lingerOver(request: Request, address: string): Promise<void> {
  // Without lingering `body` is not read: reading it makes a stream, memory that only a garbage collection returns.
  await linger(address, () => request.body?.getReader());
}

export async function lingerOverRest(reader: BodyReader): Promise<void> {
  await linger(AUTHENTICATED, () => reader);
}

async function linger(name: string, open: () => BodyReader | undefined): Promise<void> {
  const share = LINGERING.of(name, LINGERING_PER_ADDRESS_MAX);
  if (!share.tryAcquire(1)) return;
  const reader = open();
  if (reader) await discardRemainingBody(reader);
  setTimeout(() => share.release(1), PAUSE_MS);
}

/** Until the body's end, a pause, or TOTAL_MAX_MS. Never rejects. */
async function discardRemainingBody(reader: BodyReader): Promise<void> {
  let isExpired = false;
  const deadline = setTimeout(() => (isExpired = true), TOTAL_MAX_MS);
  while (!isExpired) {
    const { promise: paused, resolve } = Promise.withResolvers<null>();
    // Two timers of half the pause: a process that was blocked for the first still reads the socket before the second
    // ends.
    let pause = setTimeout(() => (pause = setTimeout(resolve, PAUSE_MS / 2, null)), PAUSE_MS / 2);
    const read = await Promise.race([reader.read(), paused]).catch(() => null);
    clearTimeout(pause);
    if (read === null || read.done) break;
  }
  clearTimeout(deadline);
}
