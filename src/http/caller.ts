/**
 * Who a caller is, for those who count by address. X-Forwarded-For is the word of whoever wrote it: each proxy adds the
 * address that it was called from at the right, so it is believed from the right, for as long as it is a trusted
 * proxy's word. What a caller writes into it himself stands further left and is never reached.
 */
import type { BlockList } from "node:net";
import { callerKey, canonicalIp, isListed } from "../lib/ip.ts";

/**
 * One name for each caller: of `peer`, the other end of the connection, or, if that is a trusted proxy, of the first
 * address in X-Forwarded-For from the right that is none. What is no address ends the walk at the last one known.
 */
export function callerOf(peer: string, headers: Headers, trusted: BlockList): string {
  let caller = canonicalIp(peer);
  if (caller === null) return peer;
  let forwarded: string[] | undefined;
  while (isListed(caller, trusted)) {
    forwarded ??= headers.get("x-forwarded-for")?.split(",") ?? [];
    const before = canonicalIp(forwarded.pop()?.trim() ?? "");
    if (before === null) break;
    caller = before;
  }
  return callerKey(caller);
}
