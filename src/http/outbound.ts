/**
 * Requests of the hub to others: one POST to a URL that somebody named.
 *
 * The name is resolved once, the address is checked (address-policy.ts), and exactly that address is connected to, with
 * the name in `Host` and, with TLS, in the certificate: a name that resolves to another address a moment later (DNS
 * rebinding) changes nothing. Redirects are not followed, no proxy of the environment is used, and connections are not
 * kept.
 *
 * Must not: read more of a response than its status and headers; throw for what the receiver does.
 */
import type { AddressCheck } from "../lib/address-policy.ts";
import { isIP } from "../lib/ip.ts";
import { codeOf } from "../lib/reason.ts";
import type { Resolve } from "./names.ts";

export type Outgoing = {
  readonly sender: Sender;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Ends the request: at its deadline, or when the hub stops. */
  readonly signal: AbortSignal;
};

/** What came of a request: a response, or one line that says why there is none. The line has no URL. */
export type Posted =
  | { readonly status: number; readonly retryAfter: string | null }
  | { readonly status: null; readonly error: string };

export type Post = (request: Outgoing) => Promise<Posted>;

/** `webhook`: an administrator has named the URL; `push`: any client of A2A. */
export type Sender = "webhook" | "push";

/** Which addresses each of them may have called. */
export type AddressChecks = Readonly<Record<Sender, AddressCheck>>;

export function outbound(checks: AddressChecks, resolve: Resolve): Post {
  return async ({ sender, url, headers, body, signal }) => {
    const { protocol, host, hostname, port, pathname, search } = new URL(url);
    try {
      const check = (address: string): string | null => checks[sender](address, portOf(new URL(url)));
      const found = await checkedAddress(hostname, check, resolve, signal);
      if ("refused" in found) return { status: null, error: found.refused };
      const at = isIP(found.address) === 6 ? `[${found.address}]` : found.address;
      const isNamed = isIP(hostOf(hostname)) === 0;
      const response = await fetch(`${protocol}//${at}${port === "" ? "" : `:${port}`}${pathname}${search}`, {
        method: "POST",
        headers: { ...headers, Host: host },
        body,
        signal,
        redirect: "manual",
        keepalive: false,
        decompress: false,
        proxy: false,
        ...(protocol === "https:" && isNamed ? { tls: { serverName: hostname } } : {}),
      });
      void response.body?.cancel().catch(() => {});
      return { status: response.status, retryAfter: response.headers.get("retry-after") };
    } catch (error) {
      return { status: null, error: signal.aborted ? "no response in time" : faultOf(error) };
    }
  };
}

/** Why a URL cannot be called at all, as far as its host shows: an address, or a name of loopback; null: it may be. */
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

/** The first address of a host that may be called. */
async function checkedAddress(
  hostname: string,
  check: (address: string) => string | null,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<Found> {
  const host = hostOf(hostname);
  const addresses = isIP(host) === 0 ? await inTime(resolve(host), signal) : [host];
  let refused = "the host has no address";
  for (const address of addresses) {
    const refusal = check(address);
    if (refusal === null) return { address };
    refused = `refused: ${address} ${refusal}`;
  }
  return { refused };
}

/** A lookup cannot be ended. */
async function inTime<T>(found: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([found, aborted.promise]);
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
  ERR_TLS_CERT_ALTNAME_INVALID: "the certificate is for another host",
  CERT_HAS_EXPIRED: "the certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the certificate is self-signed",
};

/** By its code: the message of an error may have the URL. */
function faultOf(error: unknown): string {
  const code = codeOf(error);
  return FAULTS[code] ?? (/^[\w-]{1,60}$/.test(code) ? `the request failed (${code})` : "the request failed");
}

/** Without the brackets of an IPv6 address. */
function hostOf(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}
