/**
 * The client's address, for rate limits and the access log. Anyone can send X-Forwarded-For, but each proxy appends the
 * address of its peer at the right. So this reads the header from the right, and only while the addresses are trusted
 * proxies; it never reaches what the client itself wrote.
 */
import { type BlockList, callerKey, canonicalIp, isListed } from "../lib/ip.ts";

/** An address of X-Forwarded-For, which some proxies send with a port, in brackets or in quotes. */
const FORWARDED = /^"?(?:\[([^\]]+)\](?::\d+)?|(\d+(?:\.\d+){3}):\d+|([^"]*))"?$/;

/**
 * Returns the client's address: `peer`, the other end of the connection, or, if that is a trusted proxy, the first
 * address from the right in X-Forwarded-For that is not a trusted proxy's. Text that is not an address ends the search;
 * the last address found before it is returned.
 */
export function clientIp(peer: string, headers: Headers, trusted: BlockList): string {
  let address = canonicalIp(peer);
  if (address === null) return peer;
  let forwarded: string[] | undefined;
  while (isListed(address, trusted)) {
    forwarded ??= (headers.get("x-forwarded-for") ?? "").split(/[ \t]*,[ \t]*/).filter(Boolean);
    const [, bracketed, withPort, plain] = FORWARDED.exec(forwarded.pop() ?? "") ?? [];
    const before = canonicalIp(bracketed ?? withPort ?? plain ?? "");
    if (before === null) break;
    address = before;
  }
  return address;
}

/** Returns the key under which a client is counted: its IPv4 address, or the /64 network of its IPv6 address. */
export function clientAddress(peer: string, headers: Headers, trusted: BlockList): string {
  return callerKey(clientIp(peer, headers, trusted));
}
