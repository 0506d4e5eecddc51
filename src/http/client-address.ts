/**
 * The client's address, for rate limits and the access log. Anyone can send X-Forwarded-For, but each proxy appends the
 * address of its peer at the right: so this reads it from the right, only while the addresses are trusted proxies.
 */
import { type BlockList, callerKey, canonicalIp, isListed } from "../lib/ip.ts";

/** Some proxies send it with a port, in brackets or in quotes. */
const FORWARDED = /^"?(?:\[([^\]]+)\](?::\d+)?|(\d+(?:\.\d+){3}):\d+|([^"]*))"?$/;

/**
 * `peer` or, if that is a trusted proxy, the first address from the right that is not. Text that is not an address ends
 * the search; the last address found before it is returned.
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

/** IPv4 address, or the /64 network of the IPv6 address. */
export function clientAddress(peer: string, headers: Headers, trusted: BlockList): string {
  return callerKey(clientIp(peer, headers, trusted));
}
