/**
 * Reads a JSON request body, bounded in size, in values and in time. It needs a deadline of its own: a client that
 * sends a byte now and then keeps resetting the server's idle timer.
 */
import { Deadlines } from "./deadlines.ts";
import { discardRemainingBody } from "./lingering-close.ts";
import { Problem, closing, invalidRequest, tooLarge } from "./problem.ts";

const READ_DEADLINES = new Deadlines();
const UTF8 = new TextDecoder("utf-8", { fatal: true });

export type JsonObject = { readonly [name: string]: unknown };

/**
 * Reads the body as a JSON object.
 * @param emptyAs the value of an empty body; without it, an empty body is refused
 * @param parse parses the text; any error it throws becomes a 400
 * @throws {Problem} 415 for multipart, 413 over `maxBytes`, 408 past the deadline, 400 when the body is not a JSON object
 *   or has more than `maxValues` values
 */
export async function readJsonObject(
  request: Request,
  limits: { maxBytes: number; maxValues: number; deadlineMs: number },
  emptyAs?: JsonObject,
  parse: (text: string) => unknown = JSON.parse,
): Promise<JsonObject> {
  if (request.headers.get("content-type")?.trimStart().toLowerCase().startsWith("multipart/")) {
    throw new Problem(
      415,
      "unsupported_media_type",
      "Unsupported media type",
      "Send the body as application/json.",
    );
  }
  const bytes = await readBytes(request, limits);
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

/**
 * Whether a JSON value is nested deeper than `levels`. Check this before a recursive function walks the value:
 * JSON.parse accepts any depth, the call stack does not.
 */
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
 * Whether a JSON text has more than `most` commas and opening brackets. The cost of parsing and walking a value depends
 * on the number of values in it, not on its bytes. For text that is not JSON the result is undefined.
 */
export function hasMoreValues(json: Uint8Array, most: number): boolean {
  if (json.length <= most) return false;
  let values = 0;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) at = endOfString(json, at);
    else if ((byte === COMMA || byte === OPEN_LIST || byte === OPEN_OBJECT) && ++values > most) return true;
  }
  return false;
}

/** The index of the closing quote of the string that begins at `start`; the text's length if there is none. */
function endOfString(json: Uint8Array, start: number): number {
  const quote = json.indexOf(QUOTE, start + 1);
  if (quote === -1) return json.length;
  if (json[quote - 1] !== BACKSLASH) return quote;
  for (let at = start + 1; at < json.length; at++) {
    if (json[at] === BACKSLASH) at++;
    else if (json[at] === QUOTE) return at;
  }
  return json.length;
}

function parseBytes(bytes: Uint8Array, parse: (text: string) => unknown): unknown {
  try {
    return parse(UTF8.decode(bytes));
  } catch {
    const fault = bytes.byteLength === 0 ? "it is empty" : "this cannot be read as JSON";
    throw notAnObject(`The body must be a JSON object in UTF-8; ${fault}.`);
  }
}

function readBytes(
  request: Request,
  { maxBytes, deadlineMs }: { readonly maxBytes: number; readonly deadlineMs: number },
): Promise<Uint8Array> {
  const length = request.headers.get("content-length");
  if (length === null) return readChunked(request, maxBytes, deadlineMs);
  if (Number(length) > maxBytes) throw closing(tooLarge(maxBytes));
  const body = request.bytes();
  return Bun.peek.status(body) === "fulfilled" ? body : withDeadline(body, deadlineMs); // most are there already
}

/**
 * Reads a chunked body, whose length is unknown, up to the first byte over the limit. Bun 1.4.5 reports the end of the
 * body before it has parsed what follows the last chunk, and answers trailers or anything else there with a bare 400.
 * A request that Bun refuses must have no effect, so the body is accepted only one event-loop tick later, if the
 * connection is still open.
 */
async function readChunked(request: Request, maxBytes: number, deadlineMs: number): Promise<Uint8Array> {
  if (!request.body) return new Uint8Array();
  const reader = request.body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  const readAll = async (): Promise<Uint8Array> => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return Buffer.concat(chunks);
      size += value.length;
      if (size > maxBytes) {
        chunks.length = 0;
        await discardRemainingBody(reader);
        throw closing(tooLarge(maxBytes));
      }
      chunks.push(value);
    }
  };
  try {
    const bytes = await withDeadline(readAll(), deadlineMs);
    await new Promise(setImmediate);
    if (request.signal.aborted) throw truncated();
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
