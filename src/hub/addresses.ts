/** The URLs of a hub's listeners. */
import { networkInterfaces } from "node:os";
import type { Config } from "../config.ts";
import type { JoinPlace } from "../api/invitations.ts";
import { type Clock, MINUTE_MS } from "../lib/clock.ts";
import { type BlockList, blockListOf, canonicalIp, parseNetwork } from "../lib/ip.ts";

type At = { readonly host: string; readonly port: number; readonly tls: boolean };

export function urlOf({ host, port, tls }: At): string {
  return urlAt(isEverywhere(host) ? "127.0.0.1" : host, port, tls);
}

function urlAt(host: string, port: number, tls: boolean): string {
  return `${tls ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** A host of containers has many addresses. */
const SHOWN_ADDRESSES = 4;

/** None for a listener on the loopback. */
export function urlsElsewhere({ host, port, tls }: At): string[] {
  if (!isEverywhere(host)) return isLoopback(host) ? [] : [urlAt(host, port, tls)];
  return ownAddresses()
    .filter((address) => !address.includes(":") || canonicalIp(host) === "::")
    .slice(0, SHOWN_ADDRESSES)
    .map((address) => urlAt(address, port, tls));
}

export function ownAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => {
      const isLinkLocal = /^(?:169\.254\.|fe[89ab])/i.test(address); // works only together with the name of an interface
      return !internal && !isLinkLocal;
    })
    .toSorted((a, b) => Number(a.family !== "IPv4") - Number(b.family !== "IPv4"))
    .map(({ address }) => address);
}

/** However it is written: 0.0.0.0, ::, 0:0:0:0:0:0:0:0. */
export function isEverywhere(host: string): boolean {
  return ["0.0.0.0", "::"].includes(canonicalIp(host) ?? "");
}

export function isLoopback(host: string): boolean {
  const ip = canonicalIp(host);
  return ip === null ? /^(?:.*\.)?localhost$/i.test(host) : ip === "::1" || ip.startsWith("127.");
}

/**
 * Prefers, in this order: the URL that the operator names, the listener whose authority can be pinned, --public-url,
 * other listeners with TLS, and the rest; on this machine alone if nothing else is open.
 * @param pin of the hub's own authority; null without `--tls auto`
 */
export function joinPlaceOf(
  { publicUrl }: Pick<Config, "publicUrl">,
  listeners: readonly At[],
  pin: string | null,
  named: string | null,
): JoinPlace {
  const secured = listeners.filter(({ tls }) => tls);
  const byTrust = [...secured, ...listeners.filter(({ tls }) => !tls)];
  const elsewhere = byTrust.flatMap(urlsElsewhere);
  const pinned = pin === null ? [] : secured.flatMap(urlsElsewhere);
  const [first = ""] = byTrust.map(urlOf);
  const isOwnPublic = publicUrl !== null && secured.some(({ port }) => port === portOf(publicUrl));
  const ordered = [named, isOwnPublic ? publicUrl : null, ...pinned, publicUrl, ...elsewhere, first].filter(
    (url) => url !== null,
  );
  const [url = "", ...others] = new Set(ordered);
  // A proxy at --public-url has a certificate of its own.
  const isProxy = url === publicUrl && !isOwnPublic;
  return {
    url,
    otherUrls: others.filter((candidate) => candidate !== first || elsewhere.length === 0),
    pin: url.startsWith("https:") && !isProxy ? pin : null,
  };
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return Number(port || (protocol === "https:" ? 443 : 80));
}

const MACHINE_ADDRESSES_KEPT_MS = 1 * MINUTE_MS;

/** Read again each minute: they may change. */
export function machineAddresses(clock: Pick<Clock, "steady">): () => BlockList {
  let read: { readonly at: number; readonly list: BlockList } | null = null;
  return () => {
    const now = clock.steady();
    if (read === null || now - read.at >= MACHINE_ADDRESSES_KEPT_MS) {
      const addresses = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
      const networks = addresses.flatMap(({ address }) => parseNetwork(address) ?? []);
      read = { at: now, list: blockListOf(networks) };
    }
    return read.list;
  };
}
