/**
 * Takes what a caller still sends of a body that has been refused, before the answer goes out and the connection closes:
 * to close over bytes that nobody has read resets the connection, and a reset may overtake the answer (RFC 9112 9.6). A
 * client that sends on would then see a broken connection, and a proxy would answer 502 in the hub's place.
 */

/** As long as a caller sends without a pause. */
const LONGEST_MS = 5_000;
/** Past it nothing more is on its way; who is slower than that reads the answer before sending on. */
const PAUSE_MS = 100;

type BodyReader = Pick<ReadableStreamDefaultReader<Uint8Array>, "read">;

/** Reads and forgets: to the body's end, a pause, or for so long. Never rejects. */
export async function linger(reader: BodyReader): Promise<void> {
  let isLate = false;
  const end = setTimeout(() => (isLate = true), LONGEST_MS);
  while (!isLate) {
    const { promise: paused, resolve } = Promise.withResolvers<null>();
    // In two halves: if it was this process that stood still, there is time to look at the socket in the second.
    let pause = setTimeout(() => (pause = setTimeout(resolve, PAUSE_MS / 2, null)), PAUSE_MS / 2);
    const read = await Promise.race([reader.read(), paused]).catch(() => null);
    clearTimeout(pause);
    if (read === null || read.done) break;
  }
  clearTimeout(end);
}
