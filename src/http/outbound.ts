/**
 * Requests of the hub to others: one POST to a URL that somebody named.
 *
 * The name is resolved once, the address is checked (address-policy.ts), and exactly that address is connected to,
 * against DNS rebinding. Redirects are not followed, no proxy of the environment is used, and connections are not kept.
 * A plain socket, not fetch: fetch reads responses with status 1xx for as long as the receiver sends them.
 *
 * Must not: read more of a response than its status and headers, up to RESPONSE_HEAD_MAX_BYTES; throw for what the
 * receiver does.
 */
import type { AddressCheck } from "../lib/address-policy.ts";
import { isHeaderValue } from "../lib/header-value.ts";
import { isIP } from "../lib/ip.ts";
import { codeOf } from "../lib/reason.ts";
import { NAMES_BUSY, type Resolve, type Sender } from "./names.ts";

export type Outgoing = {
  readonly sender: Sender;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
};

/** One line says why there is no response, without the URL. */
export type Posted =
  | { readonly status: number; readonly retryAfter: string | null }
  | { readonly status: null; readonly error: string };

export type Post = (request: Outgoing) => Promise<Posted>;

export type AddressChecks = Readonly<Record<Sender, AddressCheck>>;

export function outbound(checks: AddressChecks, resolve: Resolve): Post {
  return async ({ sender, url, headers, body, signal }) => {
    const target = new URL(url);
    const unsound = Object.keys(headers).find((name) => !isHeaderValue(headers[name] ?? ""));
    if (unsound !== undefined)
      return { status: null, error: `the value of ${unsound} is not printable ASCII` };
    try {
      const check = (address: string): string | null => checks[sender](address, portOf(target));
      const lookUp = (name: string): ReturnType<Resolve> => resolve(name, sender);
      const checked = await checkedAddress(target.hostname, check, lookUp, signal);
      if ("refused" in checked) return { status: null, error: checked.refused };
      return await exchange(checked.address, target, headers, body, signal);
    } catch (error) {
      return { status: null, error: signal.aborted ? "no response in time" : faultOf(error) };
    }
  };
}

/** Responses with 1xx included. */
const RESPONSE_HEAD_MAX_BYTES = 64 * 1024;

async function exchange(
  address: string,
  target: URL,
  headers: Outgoing["headers"],
  body: string,
  signal: AbortSignal,
): Promise<Posted> {
  signal.throwIfAborted();
  const { protocol, host, hostname, pathname, search } = target;
  const isTls = protocol === "https:";
  const head = { ...headers, Host: host, "Content-Length": Buffer.byteLength(body), Connection: "close" };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  let unsent: Uint8Array = Buffer.from(`POST ${pathname}${search} HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
  const received = new ResponseHead();
  const { promise, resolve, reject } = Promise.withResolvers<Posted>();
  const abort = (): void => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  const send = (socket: Bun.Socket): void => {
    unsent = unsent.subarray(Math.max(0, socket.write(unsent)));
  };
  const connecting = Bun.connect({
    hostname: address,
    port: portOf(target),
    ...(isTls ? { tls: { serverName: hostOf(hostname) } } : {}),
    socket: {
      open: (socket) => void (isTls || send(socket)),
      handshake: (socket, isTrusted, error) => (isTrusted ? send(socket) : reject(error)),
      drain: (socket) => void (unsent.length > 0 && send(socket)),
      data: (_, bytes) => {
        const posted = received.add(bytes.toString("latin1"));
        if (posted) resolve(posted);
      },
      close: () => resolve({ status: null, error: "connection closed without a response" }),
      error: (_, error) => reject(error),
    },
  });
  connecting.catch(reject);
  try {
    return await promise;
  } finally {
    signal.removeEventListener("abort", abort);
    connecting.then(
      (socket) => socket.terminate(),
      () => {},
    );
  }
}

/** A head with 1xx is read once, however small the pieces after it. */
class ResponseHead {
  #unread = "";
  #chars = 0;

  /** Null: the headers have not ended. */
  add(text: string): Posted | null {
    this.#unread += text;
    this.#chars += text.length;
    for (let end = this.#unread.indexOf(END); end !== -1; end = this.#unread.indexOf(END)) {
      const head = this.#unread.slice(0, end);
      const status = /^HTTP\/1\.[01] (\d{3})(?: |\r|$)/.exec(head)?.[1];
      if (status === undefined) return { status: null, error: "the response is not HTTP" };
      if (!status.startsWith("1") || status === "101") {
        const retryAfter = /\r\nretry-after:[ \t]*([^\r\n]*)/i.exec(head)?.[1]?.trim() ?? null;
        return { status: Number(status), retryAfter };
      }
      this.#unread = this.#unread.slice(end + END.length);
    }
    if (this.#chars <= RESPONSE_HEAD_MAX_BYTES) return null;
    return { status: null, error: "the headers of the response are too large" };
  }
}

const END = "\r\n\r\n";

/** As far as its host shows: an address, or a name of loopback; null: it may be. */
export function urlRefusal(url: string, check: AddressCheck): string | null {
  const parsed = new URL(url);
  const host = hostOf(parsed.hostname);
  // RFC 6761 6.3: such a name is never another machine's.
  const isLocalhost = /(?:^|\.)localhost\.?$/i.test(host);
  if (isIP(host) === 0 && !isLocalhost) return null;
  const addresses = isLocalhost ? ["127.0.0.1", "::1"] : [host];
  const refusals = addresses.map((address) => check(address, portOf(parsed)));
  return refusals.includes(null) ? null : `${host} ${refusals[0]}`;
}

function portOf({ port, protocol }: URL): number {
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}

type Found = { readonly address: string } | { readonly refused: string };

async function checkedAddress(
  hostname: string,
  check: (address: string) => string | null,
  lookUp: (name: string) => ReturnType<Resolve>,
  signal: AbortSignal,
): Promise<Found> {
  const host = hostOf(hostname);
  const addresses = isIP(host) === 0 ? await inTime(lookUp(host), signal) : [host];
  let refused = "the host has no address";
  for (const address of addresses) {
    const refusal = check(address);
    if (refusal === null) return { address };
    refused = `refused: ${address} ${refusal}`;
  }
  return { refused };
}

/** A lookup cannot be ended. */
async function inTime<T>(lookup: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([lookup, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

const FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset",
  ConnectionClosed: "connection closed without a response",
  DNS_ENOTFOUND: "the name of the host is not found",
  DNS_ENODATA: "the host has no address",
  DNS_ETIMEOUT: "the name server does not answer",
  ENOTFOUND: "the name of the host is not found",
  [NAMES_BUSY]: "another name of the local network is being looked up",
  ERR_TLS_CERT_ALTNAME_INVALID: "the certificate is for another host",
  CERT_HAS_EXPIRED: "the certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the certificate is self-signed",
};

/** The message of an error may have the URL. */
function faultOf(error: unknown): string {
  const code = codeOf(error);
  return FAULTS[code] ?? (/^[\w-]{1,60}$/.test(code) ? `the request failed (${code})` : "the request failed");
}

/** Without the brackets of an IPv6 address. */
function hostOf(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}
