/**
 * Reads a JSON request body, bounded in size, in values and in time: a client that sends a byte now and then keeps
 * resetting the server's idle timer. Bodies that are still arriving share a bound in memory, the room.
 */
import { endOfTick } from "../lib/event-loop.ts";
import { parsePlain } from "../lib/exact-json.ts";
import { TickQueue } from "../lib/semaphore.ts";
import { decodeUtf8 } from "../lib/utf8.ts";
import { Deadlines } from "./deadlines.ts";
import { type BodyReader, lingerOverRest } from "./lingering-close.ts";
import { Problem, closing, invalidRequest, tooLarge } from "./problem.ts";

const READ_DEADLINES = new Deadlines();

export type JsonObject = { readonly [name: string]: unknown };

export type BodyRoom = {
  /** @throws {Problem} if there is none; never waits, because the body arrives meanwhile */
  readonly take: (bytes: number) => void;
  readonly give: (bytes: number) => void;
};

/** A larger body takes room before it is read, a smaller one only if it is not there yet. */
const SMALL_BYTES = 64 * 1024;

/**
 * One in a tick of the event loop: it may take some 20 ms to parse and validate. A body keeps its room until its turn.
 */
export const LARGE_REQUESTS = new TickQueue();

/**
 * @param roomOf called once if the body needs room
 * @param emptyAs the value of an empty body; without it, an empty body is refused
 * @param parse any error it throws becomes a 400
 * @throws {Problem} 415 for multipart and for a coded body, 413 over `maxBytes`, 408 past the deadline, what the room
 * throws, 400 when the body is not a JSON object or has more than `maxValues` values
 */
export async function readJsonObject(
  request: Request,
  limits: { maxBytes: number; maxValues: number; deadlineMs: number },
  roomOf: () => BodyRoom,
  emptyAs?: JsonObject,
  parse: (text: string) => unknown = parsePlain,
): Promise<JsonObject> {
  const { headers } = request;
  if (headers.get("content-type")?.trimStart().toLowerCase().startsWith("multipart/")) {
    throw unsupported("Send the body as application/json.");
  }
  if ((headers.get("content-encoding") ?? "identity").trim().toLowerCase() !== "identity") {
    throw unsupported("Send the body without a Content-Encoding.", { "Accept-Encoding": "identity" });
  }
  const bytes = await readBytes(request, limits, roomOf);
  if (bytes.length === 0 && emptyAs) return emptyAs;
  if (hasMoreValues(bytes, limits.maxValues)) {
    throw notAnObject(`The body must hold at most ${limits.maxValues} values, lists and objects.`);
  }
  const value = parseBytes(bytes, parse);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw notAnObject("The body must be a JSON object.");
  }
  return value as JsonObject; // checked on the line before
}

function unsupported(detail: string, headers: Readonly<Record<string, string>> = {}): Problem {
  return new Problem(415, "unsupported_media_type", "Unsupported media type", detail, { headers });
}

/** Check this before a recursive function walks the value: JSON.parse accepts any depth, the call stack does not. */
export function isNestedDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isNestedDeeper(inner, levels - 1));
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const OPEN_OBJECT = 0x7b;

/**
 * Counts commas and opening brackets: parsing costs by the number of values, not by bytes. For text that is not JSON the
 * result is undefined.
 */
export function hasMoreValues(json: Uint8Array, most: number): boolean {
  if (json.length <= most) return false;
  let values = 0;
  for (let index = 0; index < json.length; index++) {
    const byte = json[index];
    if (byte === QUOTE) index = endOfString(json, index);
    else if ((byte === COMMA || byte === OPEN_LIST || byte === OPEN_OBJECT) && ++values > most) return true;
  }
  return false;
}

/** The text's length if there is no closing quote. */
function endOfString(json: Uint8Array, start: number): number {
  const quote = json.indexOf(QUOTE, start + 1);
  if (quote === -1) return json.length;
  if (json[quote - 1] !== BACKSLASH) return quote;
  for (let index = start + 1; index < json.length; index++) {
    if (json[index] === BACKSLASH) index++;
    else if (json[index] === QUOTE) return index;
  }
  return json.length;
}

function parseBytes(bytes: Uint8Array, parse: (text: string) => unknown): unknown {
  try {
    return parse(decodeUtf8(bytes));
  } catch {
    const fault = bytes.byteLength === 0 ? "it is empty" : "this cannot be read as JSON";
    throw notAnObject(`The body must be a JSON object in UTF-8; ${fault}.`);
  }
}

type Limits = { readonly maxBytes: number; readonly deadlineMs: number };

async function readBytes(request: Request, limits: Limits, roomOf: () => BodyRoom): Promise<Uint8Array> {
  const length = request.headers.get("content-length");
  if (length === null) return readChunked(request, limits, roomOf);
  const size = Number(length);
  if (size > limits.maxBytes) throw closing(tooLarge(limits.maxBytes));
  if (size > SMALL_BYTES) {
    const room = roomOf();
    room.take(size);
    return within(room, size, inTurn(withDeadline(request.bytes(), limits.deadlineMs)));
  }
  // Requests that arrived together run together, and most bodies are there by then. Who is not authenticated must not
  // make them wait.
  await endOfTick();
  const body = request.bytes();
  if (Bun.peek.status(body) === "fulfilled") return body; // as most are
  const arriving = withDeadline(body, limits.deadlineMs);
  const room = roomOf();
  try {
    room.take(size);
  } catch (error) {
    arriving.catch(() => {}); // nobody waits for it any more
    throw error;
  }
  return within(room, size, arriving);
}

async function inTurn(body: Promise<Uint8Array>): Promise<Uint8Array> {
  const bytes = await body;
  await LARGE_REQUESTS.next();
  return bytes;
}

/** Also when the body will not arrive. */
async function within(room: BodyRoom, size: number, body: Promise<Uint8Array>): Promise<Uint8Array> {
  try {
    return await body;
  } finally {
    room.give(size);
  }
}

/** As the body grows: its length is unknown. */
async function readChunked(request: Request, limits: Limits, roomOf: () => BodyRoom): Promise<Uint8Array> {
  const room = roomOf();
  // Before `body` is read: that makes a stream, whose memory only a garbage collection returns.
  let taken = request.headers.has("transfer-encoding") ? SMALL_BYTES : 0;
  room.take(taken);
  const grow = (size: number): void => {
    if (size <= taken) return;
    room.take(size - taken);
    taken = size;
  };
  try {
    await endOfTick();
    if (!request.body) return new Uint8Array();
    const bytes = await readChunks(request, request.body.getReader(), limits, grow);
    if (bytes.length > SMALL_BYTES) await LARGE_REQUESTS.next();
    return bytes;
  } finally {
    room.give(taken);
  }
}

/**
 * Bun 1.4.5 reports the end of the body before it has parsed what follows the last chunk, and answers trailers or
 * anything else there with a bare 400. Such a request must have no effect: the body is accepted only one event-loop tick
 * later, if the connection is still open. @param onGrowth called with the new size before a chunk is kept
 */
async function readChunks(
  { signal }: Request,
  reader: BodyReader,
  { maxBytes, deadlineMs }: Limits,
  onGrowth: (size: number) => void,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const readAll = async (): Promise<Uint8Array> => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return Buffer.concat(chunks);
      size += value.length;
      try {
        if (size > maxBytes) throw closing(tooLarge(maxBytes));
        onGrowth(2 * size); // the chunks, and the whole that they become
      } catch (error) {
        chunks.length = 0;
        await lingerOverRest(reader);
        throw error;
      }
      chunks.push(value);
    }
  };
  try {
    const bytes = await withDeadline(readAll(), deadlineMs);
    await new Promise(setImmediate);
    if (signal.aborted) throw truncated();
    return bytes;
  } finally {
    reader.cancel().catch(() => {}); // rejects after a complete body: nothing is left to cancel
  }
}

function withDeadline(body: Promise<Uint8Array>, deadlineMs: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const deadline = READ_DEADLINES.add(deadlineMs, () => {
      const detail = "The body did not arrive in time. Send it again over a faster connection.";
      reject(closing(new Problem(408, "request_timeout", "Request timeout", detail)));
    });
    body.then(
      (bytes) => {
        READ_DEADLINES.delete(deadline);
        resolve(bytes);
      },
      (error: unknown) => {
        READ_DEADLINES.delete(deadline);
        // When the client hangs up within a body, the request is bad (400); the hub has not failed (500).
        reject(error instanceof Problem ? error : truncated());
      },
    );
  });
}

function truncated(): Problem {
  return closing(notAnObject("The body broke off. Send it whole."));
}

function notAnObject(message: string): Problem {
  return invalidRequest([{ path: "", message }]);
}
