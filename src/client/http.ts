/**
 * HTTP client of the typed client: one request with its retries (exponential backoff with jitter, Retry-After), its
 * deadline and its errors. Uses only what Bun, Node and browsers share. Must not: know an endpoint.
 */
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

export type HttpOptions = {
  /** The URL of the hub, for example `http://127.0.0.1:19104`. */
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
  readonly #base: string;
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

  constructor({ url, secret, adminKey, fetch: given, parseJson, retry, onRetry, onRecovery }: HttpOptions) {
    this.#base = new URL(url).href.replace(/\/+$/, "");
    this.#headers = new Headers();
    if (secret !== undefined) this.#headers.set("X-Matrix-Secret", secret);
    if (adminKey !== undefined) this.#headers.set("X-Admin-Key", adminKey);
    this.#fetch = given ?? directFetch;
    this.parse = parseJson ?? JSON.parse;
    this.#retry = { ...RETRY, ...retry };
    this.#onRetry = onRetry;
    this.#onRecovery = onRecovery;
  }

  /**
   * Sends a request until there is a response, and reads the response.
   * @throws {LuxHubError}; {HubUnreachable}; the signal's reason when it aborts
   */
  async send<T>(
    request: HttpRequest,
    read: (response: Response) => Promise<T>,
    { signal, retry }: CallOptions = {},
  ): Promise<T> {
    const policy = { ...this.#retry, ...retry };
    let giveUpAt: number | null = null;
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await this.#attempt(request, read, signal);
        this.#recover();
        return answer;
      } catch (error) {
        if (error instanceof LuxHubError && !isTemporary(error)) this.#recover();
        const pause = pauseAfter(error, attempt, policy);
        giveUpAt ??= now() + policy.forMs;
        const mayPass = isTemporary(error, this.#isHubKnown);
        if (!request.isRepeatable || !mayPass || now() + pause > giveUpAt) throw error;
        this.#isAway = true;
        this.#onRetry?.(error, pause);
        await sleep(pause, signal);
      }
    }
  }

  #recover(): void {
    this.#isHubKnown = true;
    if (this.#isAway) this.#onRecovery?.();
    this.#isAway = false;
  }

  /** Reads a response with a JSON object. @throws {LuxHubError} when it has none of a hub */
  readonly readJson = async (response: Response): Promise<object> => {
    const value = parseObject(await response.text(), this.parse);
    if (value !== null && (("success" in value && value.success === true) || "openapi" in value))
      return value;
    throw notAHub(response, "is not a JSON object of a hub");
  };

  async #attempt<T>(
    { method, path, headers = {}, body, waitMs = 0, isStreamed = false }: HttpRequest,
    read: (response: Response) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    signal?.throwIfAborted();
    const content = body?.();
    const sent = new Headers(this.#headers);
    for (const [name, value] of Object.entries(headers)) sent.set(name, value);
    const abort = linkedController(signal);
    const deadlineMs = ATTEMPT_MS + waitMs;
    const deadline = Number.isFinite(deadlineMs)
      ? setTimeout(() => abort.abort(new Error(`no response within ${deadlineMs} ms`)), deadlineMs)
      : undefined;
    let isRead = true;
    try {
      const response = await this.#fetch(this.#base + path, {
        method,
        headers: sent,
        redirect: "manual", // another host must not get the secret
        signal: abort.signal,
        ...(content !== undefined && { body: content, duplex: "half" }), // Node requires it for a body that is a stream
      });
      if (!response.ok) throw await refusalOf(response, this.parse);
      const answer = await read(response);
      isRead = !isStreamed;
      return answer;
    } catch (error) {
      if (error instanceof LuxHubError) throw error;
      signal?.throwIfAborted();
      const reason: unknown = abort.signal.aborted ? abort.signal.reason : error;
      throw new HubUnreachable(`${method} ${this.#base}${path}: ${messageOf(reason)}`, { cause: reason });
    } finally {
      clearTimeout(deadline);
      if (isRead) abort.abort();
    }
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
