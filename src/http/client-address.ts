/**
 * The client's address, for rate limits. Anyone can send X-Forwarded-For. Each proxy appends the address of its peer at
 * the right, so this reads the header from the right and only as far as each address is that of a trusted proxy. What
 * the client itself wrote stands further left and is never reached.
 */
import { type Network, callerKey, isWithin, parseIp } from "../lib/ip.ts";

/**
 * One key for each client: that of `peer`, the other end of the connection, or, if that is a trusted proxy, of the first
 * address from the right in X-Forwarded-For that is not one. Text that is not an address ends the search: the last
 * address before it counts.
 */
export function clientAddress(peer: string, headers: Headers, trusted: readonly Network[]): string {
  let address = parseIp(peer);
  if (address === null) return peer;
  const forwarded = trusted.length === 0 ? [] : (headers.get("x-forwarded-for")?.split(",") ?? []);
  while (trusted.some((network) => address !== null && isWithin(address, network))) {
    const before = parseIp(forwarded.pop()?.trim() ?? "");
    if (before === null) break;
    address = before;
  }
  return callerKey(address);
}
