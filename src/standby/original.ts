/** The first hub as its standby calls it over HTTP, with what `luxhub join` has written into standby.json. */
import * as z from "zod/mini";
import { directFetch } from "../client/http.ts";
import { pinnedFetch } from "../client/joined.ts";
import { BASE_BEGIN_MAX_MS, HUB_URLS_MAX, STANDBY_IDLE_MS } from "../domain/limits.ts";
import { standbyLine } from "../api/copies.ts";
import { must } from "../lib/assert.ts";
import { codeOf } from "../lib/reason.ts";
import { type HubUrls, LISTENER_KINDS, type Piece, shownUrl } from "../service/copies.ts";
import { BaseNeeded, type Original, OriginalRefuses, isOutdone } from "../service/following.ts";

export const standbySchema = z.object({
  /** Of the first hub, and of others that may be it after a promotion. */
  urls: z.array(z.string()),
  secret: z.string(),
  /** The first hub's own authority: its certificate in PEM, and the hash of its public key. */
  ca: z.nullable(z.string()),
  pin: z.nullable(z.string()),
  server_name: z.nullable(z.string()),
  /** It was promoted: the next start makes it a first. */
  promoted: z.boolean(),
});

export type StandbyFile = z.infer<typeof standbySchema>;

const pieceSchema = z.object({
  entries: z.array(z.object({ n: z.int(), at: z.int(), body: z.string() })),
  n: z.int(),
  term: z.int(),
  hubs: z.array(z.partialRecord(z.enum(LISTENER_KINDS), z.string())),
});

const statusSchema = z.object({ copy: z.optional(z.object({ term: z.int() })) });

export class HttpOriginal implements Original {
  readonly #file: StandbyFile;
  readonly #fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly #ownUrls: Set<string> = new Set();
  readonly #remember: (urls: readonly string[]) => void;
  #urls: readonly string[];
  /** As the hub that answered last names itself. */
  #named: HubUrls = {};

  /** @param remember called when another hub has answered, or the first hub names others */
  constructor(file: StandbyFile, remember: (urls: readonly string[]) => void = () => {}) {
    this.#file = file;
    this.#fetch = pinnedFetch(file) ?? directFetch;
    this.#urls = file.urls;
    this.#remember = remember;
  }

  get urls(): HubUrls {
    const [first = ""] = this.#urls;
    const isNamed = Object.values(this.#named).includes(first);
    return isNamed ? this.#named : { ...this.#named, [first.startsWith("https:") ? "A_tls" : "A"]: first };
  }

  async entriesAfter(
    { after, at, term, urls }: Parameters<Original["entriesAfter"]>[0],
    signal: AbortSignal,
  ): Promise<Piece> {
    const query = new URLSearchParams({ after: `${after}`, at: `${at}`, term: `${term}` });
    for (const [name, url] of Object.entries(urls)) {
      query.set(`url_${name.toLowerCase()}`, url);
      this.#ownUrls.add(url);
    }
    const text = await this.#ask(`copy/changes?${query}`, { signal }, wholeText);
    const { entries, hubs, ...standing } = pieceSchema.parse(JSON.parse(text));
    this.#learn(hubs);
    this.#named = hubs[0] ?? {};
    return { ...standing, at: null, entries, hubs };
  }

  file(
    fileId: string,
    take: (bytes: AsyncIterable<Uint8Array>) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    return this.#ask(`file/download/${fileId}`, { signal }, (response, touch) =>
      take(chunksOf(response, touch)),
    ).catch((error: unknown) => {
      if (!(error instanceof Refusal && NO_BYTES.has(error.code))) throw error;
    });
  }

  readonly promoted = async (term: number, urls: HubUrls, signal: AbortSignal): Promise<number> => {
    const url = must(shownUrl(urls), "a hub that listens has a URL");
    const line = standbyLine({ url, pin: this.#file.pin }, this.#file.secret);
    const body = JSON.stringify({ term, urls, line });
    const headers = { "Content-Type": "application/json" };
    const text = await this.#ask("copy/promoted", { method: "POST", body, headers, signal }, wholeText);
    return z.object({ n: z.int() }).parse(JSON.parse(text)).n;
  };

  /** The archive of a base. */
  base<T>(take: (bytes: ReadableStream<Uint8Array>) => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#ask(
      "copy/base",
      { signal },
      (response, touch) =>
        take(must(new Response(chunksOf(response, touch)).body, "a response of chunks has a body")),
      BASE_BEGIN_MAX_MS,
    );
  }

  /** The term of the hub; 1 of one that has no second copy. */
  async term(signal: AbortSignal): Promise<number> {
    const { copy } = statusSchema.parse(JSON.parse(await this.#ask("status", { signal }, wholeText)));
    return copy?.term ?? 1;
  }

  /** The secret goes to no plain HTTP once it went by TLS. */
  #learn(hubs: readonly HubUrls[]): void {
    const isSecure = this.#urls[0]?.startsWith("https:") ?? false;
    const others = hubs
      .flatMap((urls) => Object.values(urls))
      .filter((url) => url.startsWith("https:") || !isSecure)
      .filter((url) => !this.#ownUrls.has(url) && !this.#urls.includes(url));
    if (others.length > 0) this.#setUrls([...this.#urls, ...others].slice(0, HUB_URLS_MAX));
  }

  /** The first one is that of the hub that answered last. */
  #setUrls(urls: readonly string[]): void {
    this.#urls = urls;
    this.#remember(urls);
  }

  /** Of the hubs, the first that accepts; that one is asked first from then on. @throws the last refusal */
  async #ask<T>(
    path: string,
    init: RequestInit & { readonly signal: AbortSignal },
    read: (response: Response, touch: () => void) => Promise<T>,
    firstMs = STANDBY_IDLE_MS,
  ): Promise<T> {
    let failure: unknown;
    for (const url of this.#urls) {
      init.signal.throwIfAborted();
      // A link may be slow, and an entry large: what counts is that bytes arrive.
      const idle = new AbortController();
      const within = (ms: number) => setTimeout(() => idle.abort(new Error(`${url} does not answer`)), ms);
      let timer = within(firstMs);
      const touch = (): void => {
        clearTimeout(timer);
        timer = within(STANDBY_IDLE_MS);
      };
      try {
        const signal = AbortSignal.any([init.signal, idle.signal]);
        const headers = { ...init.headers, Authorization: `Bearer ${this.#file.secret}` };
        const response = await this.#fetch(`${url}/api/v1/${path}`, { ...init, headers, signal });
        if (!response.ok) throw await refusalOf(url, response);
        const result = await read(response, touch);
        if (url !== this.#urls[0]) this.#setUrls([url, ...this.#urls.filter((other) => other !== url)]);
        return result;
      } catch (error) {
        if (error instanceof BaseNeeded) throw error;
        if (isOutdone(failure)) continue; // of all answers this one decides
        failure = idle.signal.aborted ? idle.signal.reason : unlessUnreachable(url, error);
      } finally {
        clearTimeout(timer);
      }
    }
    throw failure;
  }
}

/** The file has been deleted meanwhile, or the first hub has lost its bytes. */
const NO_BYTES: ReadonlySet<string> = new Set(["file_not_found", "content_missing"]);

class Refusal extends Error {
  readonly code: string;

  constructor(code: string, words: string) {
    super(words);
    this.code = code;
  }
}

/** Bun's messages about connections name none. */
function unlessUnreachable(url: string, error: unknown): unknown {
  const code = codeOf(error);
  const isConnection = /^(?:Connection|E(?:CONN|HOST|NET|TIMEDOUT|PIPE|NOTFOUND|AI_))|CERT|SIGNATURE/.test(
    code,
  );
  return isConnection ? new Error(`${url} cannot be reached: ${code}`, { cause: error }) : error;
}

async function wholeText(response: Response, touch: () => void): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const chunk of chunksOf(response, touch)) pieces.push(chunk);
  return Buffer.concat(pieces).toString();
}

async function* chunksOf(response: Response, touch: () => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of response.body ?? []) {
    touch();
    yield chunk;
  }
}

async function refusalOf(url: string, response: Response): Promise<Error> {
  const problem: unknown = await response.json().catch(() => null);
  const { error, detail } = z
    .object({ error: z.catch(z.string(), ""), detail: z.catch(z.string(), "") })
    .parse(problem ?? {});
  if (error === "entries_missing") return new BaseNeeded(detail);
  const refusal = `${url} answers ${response.status} ${error}: ${detail}`;
  // A proxy, or a hub that starts, may answer as another hub later.
  return /^(?:stale_term|standby|unauthorized)$/.test(error)
    ? new OriginalRefuses(error, refusal)
    : new Refusal(error, refusal);
}
