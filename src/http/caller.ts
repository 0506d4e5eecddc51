/**
 * Who a caller is, for those who count by address. X-Forwarded-For is the word of whoever wrote it: each proxy adds the
 * address that it was called from at the right, so it is believed from the right, for as long as it is a trusted
 * proxy's word. What a caller writes into it himself stands further left and is never reached.
 */
import { type BlockList, isIP } from "node:net";
import { callerKey, canonicalIp, isListed } from "../lib/ip.ts";

/**
 * The address of a caller: `peer`, the other end of the connection, or, if that is a trusted proxy, the first address in
 * X-Forwarded-For from the right that is none. What is no address ends the walk at the last one known.
 */
export function addressOf(peer: string, headers: Headers, trusted: BlockList): string {
  let caller = canonicalIp(peer);
  if (caller === null) return peer;
  let forwarded: string[] | undefined;
  while (isListed(caller, trusted)) {
    forwarded ??= headers.get("x-forwarded-for")?.split(",") ?? [];
    const before = canonicalIp(forwarded.pop()?.trim() ?? "");
    if (before === null) break;
    caller = before;
  }
  return caller;
}

/** One name for each caller: its address, or its network where one customer has a whole one. */
export function callerOf(peer: string, headers: Headers, trusted: BlockList): string {
  const address = addressOf(peer, headers, trusted);
  return isIP(address) === 0 ? address : callerKey(address);
}
