/**
 * Reading a JSON body: bounded in size and in time.
 * A body that drips resets the server's idle timer, so it has a deadline of its own.
 */
import { Deadlines } from "./deadlines.ts";
import { linger } from "./linger.ts";
import { Problem, closing, invalidRequest, tooLarge } from "./problem.ts";

const DEADLINES = new Deadlines();
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** A JSON object and nothing else. */
export type JsonObject = { readonly [name: string]: unknown };

/**
 * The body as a JSON object.
 * @param emptyAs what an empty body stands for; without it, an empty body is bad
 * @throws {Problem} 415 for multipart, 413 over `maxBytes`, 408 past the deadline, 400 for what is no JSON object or
 *   holds more than `maxValues`
 */
export async function readJsonObject(
  request: Request,
  limits: { maxBytes: number; maxValues: number; deadlineMs: number },
  emptyAs?: JsonObject,
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
  if (holdsMoreValues(bytes, limits.maxValues)) {
    throw notAnObject(`The body must hold at most ${limits.maxValues} values, lists and objects.`);
  }
  const value = parse(bytes);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw notAnObject("The body must be a JSON object.");
  }
  return value as JsonObject; // checked on the line before
}

/**
 * Whether a JSON value has more than `levels` levels. What walks through a value level by level asks first: JSON.parse
 * takes any depth, the stack of a walk does not.
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
 * Whether a JSON text has more than `most` commas and opening brackets: what a value costs to parse and to walk through
 * is counted by its parts, not by its bytes. Of what is no JSON it may answer either.
 */
export function holdsMoreValues(json: Uint8Array, most: number): boolean {
  if (json.length <= most) return false;
  let values = 0;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) at = endOfString(json, at);
    else if ((byte === COMMA || byte === OPEN_LIST || byte === OPEN_OBJECT) && ++values > most) return true;
  }
  return false;
}

/** Where the string that begins at `start` has its closing quote; the text's end if it has none. */
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

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(UTF8.decode(bytes));
  } catch {
    const found = bytes.byteLength === 0 ? "it is empty" : "this cannot be read as JSON";
    throw notAnObject(`The body must be a JSON object in UTF-8; ${found}.`);
  }
}

function readBytes(
  request: Request,
  { maxBytes, deadlineMs }: { readonly maxBytes: number; readonly deadlineMs: number },
): Promise<Uint8Array> {
  const length = request.headers.get("content-length");
  if (length === null) return readChunked(request, maxBytes, deadlineMs);
  if (Number(length) > maxBytes) throw closing(tooLarge(maxBytes));
  return inTime(request.bytes(), deadlineMs);
}

/**
 * A body of unknown length is counted as it comes, and left at the first byte too many. It is told to be whole before
 * the parser has seen what follows its last chunk, so it counts a turn later, if the connection still stands: Bun 1.4.5
 * answers trailers, and whatever else follows there, with a bare 400, and what is refused must not be done.
 */
async function readChunked(request: Request, maxBytes: number, deadlineMs: number): Promise<Uint8Array> {
  if (!request.body) return new Uint8Array();
  const reader = request.body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  const gather = async (): Promise<Uint8Array> => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return Buffer.concat(chunks);
      size += value.length;
      if (size > maxBytes) {
        chunks.length = 0;
        await linger(reader);
        throw closing(tooLarge(maxBytes));
      }
      chunks.push(value);
    }
  };
  try {
    const bytes = await inTime(gather(), deadlineMs);
    await new Promise(setImmediate);
    if (request.signal.aborted) throw brokenOff();
    return bytes;
  } finally {
    reader.cancel().catch(() => {}); // of a body read to its end there is nothing left to cancel
  }
}

function inTime(body: Promise<Uint8Array>, deadlineMs: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const late = DEADLINES.add(deadlineMs, () => {
      const detail = "The body did not arrive in time. Send it again, faster.";
      reject(closing(new Problem(408, "request_timeout", "Request timeout", detail)));
    });
    body.then(
      (bytes) => {
        DEADLINES.delete(late);
        resolve(bytes);
      },
      (error: unknown) => {
        DEADLINES.delete(late);
        // A caller who hangs up in the middle of a body is a bad request, not a fault of ours.
        reject(error instanceof Problem ? error : brokenOff());
      },
    );
  });
}

function brokenOff(): Problem {
  return closing(notAnObject("The body broke off. Send it whole."));
}

function notAnObject(message: string): Problem {
  return invalidRequest([{ path: "", message }]);
}
