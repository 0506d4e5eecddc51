/**
 * `luxhub mcp`: a bridge from the stdio transport of MCP to a hub, for clients that only start a program. Each line of
 * standard input, a JSON-RPC message, is a POST of /mcp; each message that the hub sends is a line of standard output.
 *
 * A request is sent again while the hub is unreachable, also to its copies, which is safe because every tool of luxhub may
 * be repeated. The bridge ends with standard input. Each bridge for NODE.* is a node of its own (session-names.ts). Must not: know a tool,
 * or write anything else to standard output.
 */
import { ELSEWHERE, WATCH_EVERY_MS, parseObject, probe, sleep } from "../client/http.ts";
import { Hubs } from "../client/hubs.ts";
import { WITH_SESSIONS } from "../domain/key.ts";
import { SESSIONS_MAX } from "../domain/limits.ts";
import { systemClock } from "../lib/clock.ts";
import { isRawNumber, parseExact } from "../lib/exact-json.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import { decodeUtf8 } from "../lib/utf8.ts";
import { UsageError } from "./arguments.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, type ClientRuns, printError } from "./remote.ts";
import { type SessionName, takeSessionName } from "./session-names.ts";
import { isBrokenPipe, writeLine } from "./standard-output.ts";

/** A longer line is refused. The hub takes 1 MiB. */
const LINE_MAX_BYTES = 4 * 1024 * 1024;
/** How long a request is repeated while the hub is unreachable. Clients give up by themselves, most after a minute. */
const RETRY_MS = 300_000;
const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 3_000;
/** A hub that says nothing for so long is gone: the longest wait of a tool is 300 s. */
const ATTEMPT_MS = 360_000;
/** At the end of standard input: how long the requests that run may take. */
const END_MS = 10_000;

const PARSE_ERROR = -32_700;
const SERVER_ERROR = -32_000;

const PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion";
/** The parameter that the header Mcp-Name repeats, by method (revision 2026-07-28). */
const NAMED_BY: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
};

type Json = Readonly<Record<string, unknown>>;

/** After it a message may be sent again; `isAway`: at once to another hub, such as the one that the hub has pointed to. */
type Fault = { readonly error: Error; readonly isAway: boolean; readonly pointed?: unknown };

export const RUNS: ClientRuns = { mcp: (remote) => new Bridge(remote).run() };

class Bridge {
  readonly #hubs: Hubs;
  /** The hubs that have responded since they last did not. */
  readonly #reached = new Set<string>();
  readonly #headers: Headers;
  readonly #fetch: Remote["fetch"];
  readonly #clock = systemClock();
  /** The requests without a response, by their id as JSON. */
  readonly #running = new Map<string, AbortController>();
  readonly #work = new Set<Promise<void>>();
  readonly #end = new AbortController();
  /** The revision that `initialize` has agreed on; null: none, or one in which every request names its own. */
  #revision: string | null = null;
  /** The node, whose sessions have names; null: no session of it has. */
  readonly #base: string | null;
  /** Held until the bridge ends. */
  readonly #session: SessionName | null;
  #isAway = false;

  constructor({ url, urls, secret, values, nodeId, env, fetch: send }: Remote) {
    this.#fetch = send;
    this.#hubs = new Hubs(urls);
    const given = values.text("node") ?? (nodeId && `${nodeId}${WITH_SESSIONS}`);
    this.#base = given?.endsWith(WITH_SESSIONS) ? given.slice(0, -WITH_SESSIONS.length) : null;
    this.#session = this.#base === null ? null : takeSessionName(url, this.#base, env);
    if (this.#base !== null && this.#session === null)
      throw new UsageError(`${SESSIONS_MAX} processes of luxhub mcp run for ${this.#base}: end some`, "mcp");
    const node = this.#session?.name ?? given;
    const task = values.text("task");
    this.#headers = new Headers({
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      ...(secret !== undefined && { Authorization: `Bearer ${secret}` }),
      ...(node !== undefined && { "X-Node-Id": node }),
      ...(task !== undefined && { "X-Luxhub-Attempt": task }),
    });
  }

  async run(): Promise<number> {
    const lines = new Lines((line) => this.#start(line));
    const stop = (): void => this.#end.abort();
    const reader = Bun.stdin.stream().getReader();
    this.#end.signal.addEventListener("abort", () => void reader.cancel());
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      lines.add(value);
    }
    lines.end();
    const timer = setTimeout(stop, END_MS);
    await Promise.all(this.#work);
    clearTimeout(timer);
    this.#session?.release();
    return EXIT.OK;
  }

  #start(line: string | null): void {
    if (line === null)
      return this.#refuse(null, PARSE_ERROR, `a line has more than ${LINE_MAX_BYTES} bytes, or is not UTF-8`);
    if (line.trim() === "") return;
    const work: Promise<void> = this.#take(line).finally(() => this.#work.delete(work));
    this.#work.add(work);
  }

  async #take(line: string): Promise<void> {
    const message = objectIn(line);
    if (message === null) return this.#refuse(null, PARSE_ERROR, "a line is not a JSON object");
    const { id, method, params } = message;
    if (method === "notifications/cancelled") {
      this.#running.get(JSON.stringify(fieldsOf(params)["requestId"]))?.abort();
      return;
    }
    if (typeof method !== "string") return; // the hub asks for nothing, so this answers nothing
    const isRequest = typeof id === "string" || typeof id === "number" || isRawNumber(id);
    const key = JSON.stringify(id);
    const cancel = new AbortController();
    if (isRequest) this.#running.set(key, cancel);
    try {
      await this.#deliver(line, message, AbortSignal.any([cancel.signal, this.#end.signal]));
    } catch (error) {
      const reason = this.#end.signal.aborted ? "luxhub mcp has ended" : reasonOf(error);
      if (!cancel.signal.aborted && isRequest) this.#refuse(id, SERVER_ERROR, reason);
    } finally {
      if (this.#running.get(key) === cancel) this.#running.delete(key);
    }
  }

  /** Sends a message until the hub has answered it. @throws {Error} when it does not; the signal's reason */
  async #deliver(line: string, message: Json, signal: AbortSignal): Promise<void> {
    const giveUpAt = this.#clock.steady() + RETRY_MS;
    const tried = new Set<string>();
    for (let pause = FIRST_PAUSE_MS; ;) {
      const { current: url } = this.#hubs;
      tried.add(url);
      const fault = await this.#attempt(url, line, message, signal);
      if (fault === null) break;
      signal.throwIfAborted();
      if (fault.isAway && this.#hubs.leave(url, tried, fault.pointed) !== null) continue;
      if (this.#clock.steady() + pause > giveUpAt) throw fault.error;
      if (!this.#isAway) printError(`${fault.error.message}; trying again`);
      this.#isAway = true;
      await sleep(pause, signal);
      pause = Math.min(2 * pause, MAX_PAUSE_MS);
      tried.clear();
    }
    if (this.#isAway) printError("the hub answers again");
    this.#isAway = false;
  }

  /** Null when the message is answered. */
  async #attempt(url: string, line: string, message: Json, signal: AbortSignal): Promise<Fault | null> {
    const gone = new AbortController(); // a machine that has died does not end the connection
    const deadline = AbortSignal.any([signal, gone.signal, AbortSignal.timeout(ATTEMPT_MS)]);
    const watch = (): Promise<void> =>
      probe(url, this.#fetch, deadline).catch((fault: unknown) => gone.abort(fault));
    const hasOthers = this.#hubs.urls.length > 1;
    const watching = hasOthers ? setInterval(() => void watch(), WATCH_EVERY_MS) : undefined;
    try {
      if (hasOthers && !this.#reached.has(url)) await probe(url, this.#fetch, signal);
      const init: BunFetchRequestInit = {
        method: "POST",
        headers: this.#headersOf(message),
        body: line,
        signal: deadline,
        timeout: false,
      };
      const response = await this.#fetch(`${url}/mcp`, init);
      this.#reached.add(url);
      if (response.status === 403 && this.#base !== null && this.#headers.get("X-Node-Id") !== this.#base) {
        // The key may be bound to the node without its sessions.
        this.#headers.set("X-Node-Id", this.#base);
        this.#session?.release();
        return await this.#attempt(url, line, message, signal);
      }
      if (TEMPORARY.has(response.status)) {
        const { error: code, hub: pointed } = fieldsOf(objectIn(await response.text()));
        const isAway = code === undefined || (typeof code === "string" && ELSEWHERE.includes(code));
        const error = new Error(`the hub at ${url}/mcp returned ${response.status}`);
        return { error, isAway, ...(isAway && { pointed }) };
      }
      if (await this.#pass(response, message)) return null;
      return { error: new Error(`the hub at ${url}/mcp cut its response`), isAway: true };
    } catch (cause) {
      if (isBrokenPipe(cause)) this.#end.abort();
      this.#reached.delete(url);
      const reason = codeOf(cause) || reasonOf(cause);
      const error = new Error(`the hub at ${url}/mcp cannot be reached: ${reason}`, { cause });
      return { error, isAway: true };
    } finally {
      clearInterval(watching);
    }
  }

  #headersOf({ method, params }: Json): Headers {
    const headers = new Headers(this.#headers);
    const given = fieldsOf(fieldsOf(params)["_meta"])[PROTOCOL_VERSION];
    if (typeof given === "string") {
      headers.set("MCP-Protocol-Version", given);
      headers.set("Mcp-Method", String(method));
      const name = fieldsOf(params)[NAMED_BY[String(method)] ?? ""];
      if (typeof name === "string") headers.set("Mcp-Name", headerValue(name));
    } else if (this.#revision !== null) headers.set("MCP-Protocol-Version", this.#revision);
    return headers;
  }

  /** Passes the messages of a response on. Returns false when the response to the request is not among them. */
  async #pass(response: Response, { id, method }: Json): Promise<boolean> {
    let isAnswered = id === undefined || id === null;
    const tell = (text: string): void => {
      const told = objectIn(text);
      if (told === null) return;
      if (method === "initialize") this.#learn(told);
      const isResponse = "result" in told || "error" in told;
      if (isResponse && isAnswered) return; // of a notification, or a second one
      isAnswered ||= isResponse;
      // An error that was found before the id was read has none.
      if (isResponse && JSON.stringify(told["id"]) !== JSON.stringify(id))
        writeLine(JSON.stringify({ ...told, id }));
      else writeLine(text.replaceAll(/[\r\n]+/g, " "));
    };
    if (response.headers.get("content-type")?.startsWith("text/event-stream") && response.body !== null) {
      const events = new EventData(tell);
      for await (const bytes of response.body) events.add(bytes);
    } else {
      const text = await response.text();
      if (objectIn(text)?.["jsonrpc"] === "2.0") tell(text);
      else if (!isAnswered) {
        this.#refuse(id, SERVER_ERROR, refusalIn(response.status, text));
        isAnswered = true;
      }
    }
    return isAnswered;
  }

  #learn({ result }: Json): void {
    const { protocolVersion } = fieldsOf(result);
    if (typeof protocolVersion === "string") this.#revision = protocolVersion;
  }

  #refuse(id: unknown, code: number, message: string): void {
    try {
      writeLine(JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } }));
    } catch (error) {
      if (!isBrokenPipe(error)) throw error;
      this.#end.abort();
    }
  }
}

/** The hub is overloaded, or a proxy before it has no hub. */
const TEMPORARY: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

/** What the hub's own error says, which is a problem (RFC 9457). */
function refusalIn(status: number, text: string): string {
  const { detail } = objectIn(text) ?? {};
  const advice = status === 401 ? " Give luxhub mcp a valid secret with --secret-file." : "";
  return typeof detail === "string" ? `${detail}${advice}` : `the hub returned ${status}.${advice}`;
}

function objectIn(text: string): Json | null {
  const object = parseObject(text, parseExact);
  return object && { ...object };
}

function fieldsOf(value: unknown): Json {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** A header has visible ASCII; other text is in base64, between marks that the protocol defines. */
function headerValue(text: string): string {
  const isPlain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/i.test(text);
  return isPlain ? text : `=?base64?${Buffer.from(text).toString("base64")}?=`;
}

const LINE_FEED = 0x0a;

/** Splits bytes into lines. A line that is too long, or is not UTF-8, is null. */
class Lines {
  readonly #take: (line: string | null) => void;
  #parts: Uint8Array[] = [];
  #bytes = 0;

  constructor(take: (line: string | null) => void) {
    this.#take = take;
  }

  add(bytes: Uint8Array): void {
    let unread = bytes;
    for (let end = unread.indexOf(LINE_FEED); end !== -1; end = unread.indexOf(LINE_FEED)) {
      this.#keep(unread.subarray(0, end));
      this.end();
      unread = unread.subarray(end + 1);
    }
    this.#keep(unread);
  }

  end(): void {
    const line = this.#bytes > LINE_MAX_BYTES ? null : textIn(Buffer.concat(this.#parts));
    this.#parts = [];
    this.#bytes = 0;
    this.#take(line);
  }

  #keep(part: Uint8Array): void {
    this.#bytes += part.length;
    if (this.#bytes > LINE_MAX_BYTES) this.#parts = [];
    else this.#parts.push(part);
  }
}

function textIn(bytes: Uint8Array): string | null {
  try {
    return decodeUtf8(bytes).replace(/\r$/, "");
  } catch {
    return null;
  }
}

class EventData {
  readonly #lines: Lines;
  #data: string[] = [];

  constructor(tell: (data: string) => void) {
    this.#lines = new Lines((line) => {
      if (line?.startsWith("data:")) this.#data.push(line.slice("data:".length).trimStart());
      if (line !== "" || this.#data.length === 0) return;
      tell(this.#data.join("\n"));
      this.#data = [];
    });
  }

  add(bytes: Uint8Array): void {
    this.#lines.add(bytes);
  }
}
