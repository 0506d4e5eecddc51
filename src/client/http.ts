/**
 * HTTP client of the typed client: one request with its retries (exponential backoff with jitter, Retry-After), its
 * deadline and its errors, at the one of several hubs that accepts writes. Uses only what Bun, Node and browsers share.
 * Must not: know an endpoint.
 */
import { Hubs } from "./hubs.ts";
import type { ErrorCode } from "./types.ts";

/** An invalid field of a request: its dotted path, and what to send instead. */
export type FieldError = { readonly path: string; readonly message: string };

type Refusal = Pick<LuxHubError, "status" | "code" | "detail"> &
  Partial<Pick<LuxHubError, "errors" | "problem" | "requestId" | "retryAfterMs">>;

/** The hub, or a proxy before it, refused the request. */
export class LuxHubError extends Error {
  override readonly name = "LuxHubError";
  declare readonly status: number;
  /** A stable code; `http_STATUS` when the response did not come from a hub. */
  declare readonly code: ErrorCode | (string & {});
  /** A sentence that says what to do. */
  declare readonly detail: string;
  /** The invalid fields of a 400. */
  declare readonly errors: readonly FieldError[];
  /** All members of the problem, such as `holders` of `lease_conflict`; empty if the response did not come from a hub. */
  declare readonly problem: Readonly<Record<string, unknown>>;
  /** The hub's log has the request under this id. */
  declare readonly requestId: string | null;
  /** The hub's Retry-After in milliseconds; null without one. */
  declare readonly retryAfterMs: number | null;

  constructor(refusal: Refusal) {
    super(`${refusal.status} ${refusal.code}: ${refusal.detail}`);
    const { errors = [], problem = {}, requestId = null, retryAfterMs = null } = refusal;
    Object.assign(this, { ...refusal, errors, problem, requestId, retryAfterMs });
  }

  /** Whether something between the client and the hub has answered, such as a proxy. */
  get isForeign(): boolean {
    return this.code === NOT_A_HUB || this.code.startsWith(PLAIN_STATUS);
  }
}

const NOT_A_HUB = "not_a_hub";
const PLAIN_STATUS = "http_";

/** A network fault (`cause`): no response arrived, or only a part of it. The hub may have carried out the request. */
export class HubUnreachable extends Error {
  override readonly name = "HubUnreachable";
}

/**
 * How long a call is retried after a network fault or a temporary refusal (408, 429, 502, 503, 504), and with which
 * pauses. When the client has reached the hub before, any response that is not from a hub is a fault of the network.
 */
export type RetryPolicy = {
  /** How long to retry, in milliseconds from the first fault; 0: never, Infinity: until the signal. */
  readonly forMs: number;
  /** The first pause in milliseconds. Each further one is twice as long, with jitter. */
  readonly firstPauseMs: number;
  readonly maxPauseMs: number;
};

const RETRY: RetryPolicy = { forMs: 60_000, firstPauseMs: 200, maxPauseMs: 10_000 };

/** How long an attempt may take, in addition to the wait that the request asks for. */
const ATTEMPT_MS = 30_000;
/** How long a hub may take to show that it is there, when there is another one. */
const PROBE_MS = 3_000;
const PROBE = "/healthz";
/** How often a hub at which calls wait is probed, when there is another one, and how often in a row it may not respond. */
export const WATCH_EVERY_MS = 5_000;
const SILENT_PROBES_MAX = 2;
/** A copy says in it how old its data is. */
const COPY_HEADER = "LuxHub-Lag";
/** The codes with which a hub turns writes away that another hub accepts. */
export const ELSEWHERE: readonly string[] = ["standby", "superseded"];
/** The codes of Bun and Node for a connection that nobody has accepted. */
const NOT_SENT: readonly string[] = ["ConnectionRefused", "ECONNREFUSED"];

export type HttpOptions = {
  /**
   * The URL of the hub, for example `http://127.0.0.1:19104`, or those of the hub and of its copies, separated by commas:
   * the calls go to the one that accepts writes.
   */
  readonly url: string;
  /** The secret of a key. Without it only the public reads of variant A succeed. */
  readonly secret?: string | undefined;
  /** The administrator key, for the endpoints that need it. */
  readonly adminKey?: string | undefined;
  /** Replaces the platform's fetch, which connects directly, whatever proxies the environment names. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  readonly retry?: Partial<RetryPolicy> | undefined;
  /** Replaces JSON.parse, which rounds numbers of more than 15 digits, for what the hub sends. */
  readonly parseJson?: ((text: string) => unknown) | undefined;
  /** Called before each retry, for a log. */
  readonly onRetry?: ((fault: Error, pauseMs: number) => void) | undefined;
  /** Called when the hub responds after retries. */
  readonly onRecovery?: (() => void) | undefined;
  /**
   * False: only the given URLs are called, whatever hubs the responses name: a page must stay with its own. Where that one
   * accepts no writes, they fail at once.
   */
  readonly followsHubs?: boolean | undefined;
  /** Called when the known URLs of the hub and of its copies change, or their order: the first is the one in use. */
  readonly onHubs?: ((urls: readonly string[]) => void) | undefined;
};

/** The options of every call. */
export type CallOptions = {
  /** Ends the call, even in a pause: it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Overrides the client's policy for this call. */
  readonly retry?: Partial<RetryPolicy> | undefined;
  /** By default a new one for each call. Give one to be able to repeat a call after a restart of your program. */
  readonly idempotencyKey?: string | undefined;
};

export type HttpRequest = {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Makes the body for each attempt. */
  readonly body?: () => NonNullable<RequestInit["body"]>;
  /** Whether the request may be sent again after a fault. */
  readonly isRepeatable: boolean;
  /** The wait that the request asks the hub for; Infinity: the attempt has no deadline. */
  readonly waitMs?: number;
  /**
   * The caller reads the body of the response after send() has returned. The deadline ends then; the signal stays in
   * force.
   */
  readonly isStreamed?: boolean;
};

export class Http {
  readonly #hubs: Hubs;
  readonly #followsHubs: boolean;
  /** As onHubs has them. */
  #toldHubs: string;
  /** The hubs that have responded since they last did not. */
  readonly #reached = new Set<string>();
  /** What waits for a response that the hub may take long to send, with its URL. */
  readonly #waiting = new Map<AbortController, string>();
  /** Aborts when no call waits any more; null: none does. */
  #watch: AbortController | null = null;
  readonly #onHubs: HttpOptions["onHubs"];
  readonly #headers: Headers;
  readonly #fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly #retry: RetryPolicy;
  readonly #onRetry: HttpOptions["onRetry"];
  readonly #onRecovery: HttpOptions["onRecovery"];
  /** A hub has responded. From then on, a foreign response hides the hub, for example while a proxy restarts. */
  #isHubKnown = false;
  /** A call was retried, and none has succeeded since. */
  #isAway = false;
  /** Parses what the hub has sent. @throws {SyntaxError} */
  readonly parse: (text: string) => unknown;

  constructor(options: HttpOptions) {
    const {
      url,
      secret,
      adminKey,
      fetch: given,
      parseJson,
      retry,
      followsHubs = true,
      ...listeners
    } = options;
    this.#followsHubs = followsHubs;
    this.#hubs = new Hubs(url, followsHubs);
    this.#toldHubs = this.#hubs.urls.join();
    this.#headers = new Headers();
    if (secret !== undefined) this.#headers.set("X-Matrix-Secret", secret);
    if (adminKey !== undefined) this.#headers.set("X-Admin-Key", adminKey);
    this.#fetch = given ?? directFetch;
    this.parse = parseJson ?? JSON.parse;
    this.#retry = { ...RETRY, ...retry };
    this.#onRetry = listeners.onRetry;
    this.#onRecovery = listeners.onRecovery;
    this.#onHubs = listeners.onHubs;
  }

  /** The URL of the hub to which the calls go. */
  get url(): string {
    return this.#hubs.current;
  }

  /** Learns the hubs that a response names. */
  learnHubs(urls: readonly unknown[]): void {
    this.#hubs.learn(urls);
    this.#tellHubs();
  }

  /**
   * Sends a request until there is a response, and reads the response. A hub that turns the request away, or cannot be
   * reached, sends it on to the next one that is known, without a pause; after the last there is one.
   * @throws {LuxHubError}; {HubUnreachable}; the signal's reason when it aborts
   */
  async send<T>(
    request: HttpRequest,
    read: (response: Response) => Promise<T>,
    { signal, retry }: CallOptions = {},
  ): Promise<T> {
    const policy = { ...this.#retry, ...retry };
    const tried = new Set<string>();
    const ofCopies: { readonly give: () => T; readonly url: string }[] = [];
    let giveUpAt: number | null = null;
    for (let pauses = 0; ;) {
      const { current: url } = this.#hubs;
      tried.add(url);
      let isCopy = false;
      const onResponse = ({ headers }: Response): void => void (isCopy = headers.has(COPY_HEADER));
      /** A copy may lack what another hub has: its response counts only if no other hub responds. */
      const isDeferred = (give: () => T): boolean => {
        if (!isCopy || request.isStreamed === true || this.#hubs.leave(url, tried) === null) return false;
        ofCopies.push({ give, url });
        return true;
      };
      try {
        const answer = await this.#attempt(url, request, read, signal, onResponse);
        if (isDeferred(() => answer)) continue;
        this.#recover();
        if (!isCopy) this.#settle(url);
        return answer;
      } catch (error) {
        const mayPass = isTemporary(error, this.#isHubKnown) && (this.#followsHubs || !isElsewhere(error));
        if (mayPass && isAway(error)) {
          const next = this.#hubs.leave(url, tried, pointedBy(error));
          const mayRepeat = (request.isRepeatable && policy.forMs > 0) || isNotTaken(error);
          if (next !== null && mayRepeat) continue;
          const [ofCopy] = ofCopies;
          if (ofCopy) {
            this.#recover();
            this.#hubs.stay(ofCopy.url);
            return ofCopy.give();
          }
        } else if (isDeferred(() => thrown(error))) continue;
        if (error instanceof LuxHubError && !isTemporary(error)) this.#recover();
        const pause = pauseAfter(error, ++pauses, policy);
        giveUpAt ??= now() + policy.forMs;
        if (!request.isRepeatable || !mayPass || now() + pause > giveUpAt) throw error;
        this.#isAway = true;
        this.#onRetry?.(error, pause);
        await sleep(pause, signal);
        tried.clear();
      }
    }
  }

  #recover(): void {
    this.#isHubKnown = true;
    if (this.#isAway) this.#onRecovery?.();
    this.#isAway = false;
  }

  /** The hub has done what it was asked, and no other call has left it meanwhile. */
  #settle(url: string): void {
    if (this.#hubs.current !== url) return;
    this.#tellHubs();
    // A machine that has died does not end its connections.
    for (const [abort, waitsAt] of this.#waiting)
      if (waitsAt !== url) abort.abort(new Error(`the hub at ${url} has responded instead`));
  }

  /** A machine that has died, or is cut off, does not end the calls that wait at it. */
  #startWatch(): void {
    if (this.#watch !== null) return;
    this.#watch = new AbortController();
    void this.#watchWaiting(this.#watch.signal);
  }

  #endWatch(): void {
    this.#watch?.abort();
    this.#watch = null;
  }

  async #watchWaiting(signal: AbortSignal): Promise<void> {
    const silent = new Map<string, number>();
    while (await sleepUnlessAborted(WATCH_EVERY_MS, signal))
      for (const url of new Set(this.#waiting.values())) {
        const fault = await probe(url, this.#fetch, signal).then(
          () => null,
          (error: unknown) => error,
        );
        if (signal.aborted) return;
        const times = fault === null ? 0 : (silent.get(url) ?? 0) + 1;
        silent.set(url, times);
        if (times < SILENT_PROBES_MAX) continue;
        for (const [abort, waitsAt] of this.#waiting) if (waitsAt === url) abort.abort(fault);
      }
  }

  #tellHubs(): void {
    const { urls } = this.#hubs;
    if (urls.join() === this.#toldHubs) return;
    this.#toldHubs = urls.join();
    this.#onHubs?.(urls);
  }

  /** Reads a response with a JSON object. @throws {LuxHubError} when it has none of a hub */
  readonly readJson = async (response: Response): Promise<object> => {
    const value = parseObject(await response.text(), this.parse);
    if (value !== null && (("success" in value && value.success === true) || "openapi" in value))
      return value;
    throw notAHub(response, "is not a JSON object of a hub");
  };

  async #attempt<T>(
    url: string,
    { method, path, headers = {}, body, isRepeatable, waitMs = 0, isStreamed = false }: HttpRequest,
    read: (response: Response) => Promise<T>,
    signal: AbortSignal | undefined,
    onResponse: (response: Response) => void,
  ): Promise<T> {
    signal?.throwIfAborted();
    if (this.#hubs.urls.length > 1 && !this.#reached.has(url)) await probe(url, this.#fetch, signal);
    const content = body?.();
    const sent = new Headers(this.#headers);
    for (const [name, value] of Object.entries(headers)) sent.set(name, value);
    const abort = linkedController(signal);
    const deadlineMs = ATTEMPT_MS + waitMs;
    const deadline = Number.isFinite(deadlineMs)
      ? setTimeout(() => abort.abort(new Error(`no response within ${deadlineMs} ms`)), deadlineMs)
      : undefined;
    if (waitMs > 0 && isRepeatable) this.#waiting.set(abort, url);
    if (this.#waiting.size > 0 && this.#hubs.urls.length > 1) this.#startWatch();
    let isRead = true;
    try {
      const response = await this.#fetch(url + path, {
        method,
        headers: sent,
        redirect: "manual", // another host must not get the secret
        signal: abort.signal,
        ...(content !== undefined && { body: content, duplex: "half" }), // Node requires it for a body that is a stream
      });
      this.#reached.add(url);
      onResponse(response);
      if (!response.ok) throw await refusalOf(response, this.parse);
      const answer = await read(response);
      isRead = !isStreamed;
      return answer;
    } catch (error) {
      if (error instanceof LuxHubError) throw error;
      signal?.throwIfAborted();
      const reason: unknown = abort.signal.aborted ? abort.signal.reason : error;
      this.#reached.delete(url);
      throw new HubUnreachable(`${method} ${url}${path}: ${messageOf(reason)}`, { cause: reason });
    } finally {
      clearTimeout(deadline);
      this.#waiting.delete(abort);
      if (this.#waiting.size === 0) this.#endWatch();
      if (isRead) abort.abort();
    }
  }
}

/** Any response will do. @throws {HubUnreachable} soon, also when the machine of the hub is off */
export async function probe(
  url: string,
  send: (url: string, init: RequestInit) => Promise<Response>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const abort = linkedController(signal);
  const deadline = setTimeout(() => abort.abort(new Error(`no response within ${PROBE_MS} ms`)), PROBE_MS);
  try {
    await (await send(url + PROBE, { redirect: "manual", signal: abort.signal })).body?.cancel();
  } catch (error) {
    signal?.throwIfAborted();
    const reason: unknown = abort.signal.aborted ? abort.signal.reason : error;
    throw new HubUnreachable(`GET ${url}${PROBE}: ${messageOf(reason)}`, { cause: reason });
  } finally {
    clearTimeout(deadline);
    abort.abort();
  }
}

/** Bun's fetch would obey the proxy variables of the environment; other platforms ignore the option. */
const DIRECT = { proxy: false } as const;

/** The platform's fetch without a proxy, which would see the secret. */
export function directFetch(url: string, init: RequestInit): Promise<Response> {
  return fetch(url, { ...init, ...DIRECT });
}

/** The error of a success that a hub does not return. */
export function notAHub({ status }: Response, fault: string): LuxHubError {
  const detail = `The response ${fault}: check that the URL is that of a hub.`;
  return new LuxHubError({ status, code: NOT_A_HUB, detail });
}

async function refusalOf(response: Response, parse: Http["parse"]): Promise<LuxHubError> {
  const problem = parseObject(await response.text(), parse);
  const body: Problem = problem ?? {};
  const isOfHub = body.success === false && typeof body.error === "string";
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const plain = `The response was ${response.status} ${response.statusText}`.trimEnd();
  return new LuxHubError({
    status: response.status,
    code: isOfHub ? String(body.error) : `${PLAIN_STATUS}${response.status}`,
    detail: isOfHub && typeof body.detail === "string" ? body.detail : `${plain}, and not from a hub.`,
    errors: Array.isArray(body.errors) ? body.errors.filter(isFieldError) : [],
    problem: { ...problem },
    requestId: response.headers.get("x-request-id"),
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1_000 : null,
  });
}

type Problem = {
  readonly success?: unknown;
  readonly error?: unknown;
  readonly detail?: unknown;
  readonly errors?: unknown;
};

function isFieldError(value: unknown): value is FieldError {
  return typeof value === "object" && value !== null && "path" in value && "message" in value;
}

export function parseObject(text: string, parse: Http["parse"]): object | null {
  try {
    const value = parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/**
 * Whether the same request may succeed later. After `outcome_unknown` a repeat returns the outcome. When the URL is
 * known to be a hub's, a foreign response hides the hub for a moment.
 */
export function isTemporary(error: unknown, isHubKnown = true): error is HubUnreachable | LuxHubError {
  if (!(error instanceof LuxHubError)) return error instanceof HubUnreachable;
  if ([408, 429, 502, 503, 504].includes(error.status) || error.code === "outcome_unknown") return true;
  return error.isForeign && isHubKnown;
}

function thrown(error: unknown): never {
  throw error;
}

/** Whether another hub may do what this one did not: it is not there, something answers in its place, or it is a copy. */
function isAway(error: HubUnreachable | LuxHubError): boolean {
  if (error instanceof HubUnreachable) return true;
  return error.isForeign || error.status === 502 || error.status === 504 || isElsewhere(error);
}

/** Whether the hub turns away what another one accepts. */
function isElsewhere(error: unknown): error is LuxHubError {
  return error instanceof LuxHubError && ELSEWHERE.includes(error.code);
}

/** Whether the hub has certainly not carried the request out. */
function isNotTaken(error: HubUnreachable | LuxHubError): boolean {
  if (error instanceof LuxHubError) return isElsewhere(error);
  const { cause } = error;
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause; // of Node's fetch
  return inner instanceof Error && "code" in inner && NOT_SENT.includes(String(inner.code));
}

/** The URL of the hub that accepts writes, if this one has named it. */
function pointedBy(error: HubUnreachable | LuxHubError): unknown {
  return isElsewhere(error) ? error.problem["hub"] : undefined;
}

/**
 * The pause before the next attempt: exponential backoff with jitter, so that clients spread, after
 * Retry-After.
 */
function pauseAfter(error: unknown, attempt: number, { firstPauseMs, maxPauseMs }: RetryPolicy): number {
  const backoff = Math.min(maxPauseMs, firstPauseMs * 2 ** (attempt - 1));
  const retryAfterMs = error instanceof LuxHubError ? (error.retryAfterMs ?? 0) : 0;
  return retryAfterMs + backoff * (0.5 + Math.random() / 2);
}

/** Returns a controller that aborts with the signal. Abort it at the end, to remove the listener. */
export function linkedController(signal: AbortSignal | undefined): AbortController {
  const controller = new AbortController();
  const follow = (): void => controller.abort(signal?.reason);
  if (signal?.aborted) follow();
  signal?.addEventListener("abort", follow, { once: true, signal: controller.signal });
  return controller;
}

export function sleep(ms: number, signal?: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

export async function sleepUnlessAborted(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(ms, signal);
    return true;
  } catch {
    return false;
  }
}

export function now(): number {
  return performance.now();
}

/** The time of day then, as 09:15 in UTC. */
export function timeOfDayAfter(ms: number): string {
  return new Date(Date.now() + ms).toISOString().slice(11, 16);
}

/** Returns 128 random bits as hex. crypto.randomUUID() is missing on pages loaded over plain HTTP. */
export function newIdempotencyKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

/** The messages of an error and of its causes: "fetch failed" alone says nothing. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${messageOf(error.cause)}`;
}

export type Fields = Record<string, unknown>;

export function withQuery(path: string, fields: Fields): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined && value !== null) query.append(name, String(value));
  if (query.size === 0) return path;
  return `${path}${path.includes("?") ? "&" : "?"}${query}`;
}
