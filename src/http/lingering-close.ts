/**
 * Lingering close (RFC 9112 9.6): reads and discards the rest of a refused body before the answer goes out and the
 * connection closes. A close over unread bytes resets the connection, and the reset can overtake the answer: a client
 * that is still sending would see a broken connection, and a proxy would answer 502 instead of the hub's answer.
 */

/** How long at most to read from a client that sends without a pause. */
const TOTAL_MAX_MS = 5_000;
/** After a pause of this length nothing is in transit: a slower client reads the answer before it sends more. */
const PAUSE_MS = 100;

type BodyReader = Pick<ReadableStreamDefaultReader<Uint8Array>, "read">;

/** Reads until the body's end, a pause, or TOTAL_MAX_MS. Never rejects. */
export async function discardRemainingBody(reader: BodyReader): Promise<void> {
  let isExpired = false;
  const deadline = setTimeout(() => (isExpired = true), TOTAL_MAX_MS);
  while (!isExpired) {
    const { promise: paused, resolve } = Promise.withResolvers<null>();
    // Two timers of half the pause: if this process itself was blocked for the first, it still reads the socket before
    // the second ends.
    let pause = setTimeout(() => (pause = setTimeout(resolve, PAUSE_MS / 2, null)), PAUSE_MS / 2);
    const read = await Promise.race([reader.read(), paused]).catch(() => null);
    clearTimeout(pause);
    if (read === null || read.done) break;
  }
  clearTimeout(deadline);
}
