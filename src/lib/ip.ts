/**
 * IP addresses: canonical texts, block lists, and the key under which a caller's requests are counted. An IPv4 address
 * and its IPv4-mapped IPv6 address (RFC 4291 2.5.5.2) are one, so that listeners on `::` and `0.0.0.0` see the same
 * caller.
 *
 * Must not: import node:net, which loads all of Node's streams: 1 MiB more in an idle hub.
 */
import { must } from "./assert.ts";

/** The addresses whose first `prefix` bits are those of `address` (CIDR). */
export type Network = { readonly address: string; readonly prefix: number };

/** The groups of an address (groupsOf()), of which the first `bits` count. */
export type BlockList = readonly { readonly groups: readonly number[]; readonly bits: number }[];

const OCTET = String.raw`(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`;
const IPV4 = new RegExp(String.raw`^${OCTET}(?:\.${OCTET}){3}$`);

/** 0: no IP address. A zone (`%eth0`) is allowed. */
export function isIP(text: string): 0 | 4 | 6 {
  return IPV4.test(text) ? 4 : parseIpv6(text) === null ? 0 : 6;
}

const GROUPS = 8;
const GROUP_BITS = 16;

/** RFC 4291 2.2; null if the text is none. */
function parseIpv6(text: string): readonly number[] | null {
  if (!text.includes(":")) return null;
  const [head = "", tail, ...furtherParts] = text.replace(/%[\da-z.:-]+$/i, "").split("::");
  const groups = parseGroups(head, tail === undefined);
  const lastGroups = parseGroups(tail ?? "", true);
  if (groups === null || lastGroups === null || furtherParts.length > 0) return null;
  const missing = GROUPS - groups.length - lastGroups.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return null;
  for (let i = 0; i < missing; i++) groups.push(0);
  groups.push(...lastGroups);
  return groups;
}

/** Null if one is invalid. The last may be an IPv4 address if `isEnd`. */
function parseGroups(text: string, isEnd: boolean): number[] | null {
  if (text === "") return [];
  const groups: number[] = [];
  const parts = text.split(":");
  for (const [i, part] of parts.entries()) {
    if (/^[\da-f]{1,4}$/i.test(part)) groups.push(Number.parseInt(part, 16));
    else if (isEnd && i === parts.length - 1 && IPV4.test(part)) groups.push(...ipv4Groups(part));
    else return null;
  }
  return groups;
}

function ipv4Groups(text: string): readonly number[] {
  const [a = 0, b = 0, c = 0, d = 0] = text.split(".").map(Number);
  return [a * 256 + b, c * 256 + d];
}

function hexOf(group: number): string {
  return group.toString(16);
}

/** RFC 5952, without its zone (`%eth0`); null if the text is no IP address. */
export function canonicalIp(text: string): string | null {
  if (IPV4.test(text)) return text;
  const groups = parseIpv6(text);
  if (groups === null) return null;
  const [high = 0, low = 0] = groups.slice(6);
  if (groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0))
    return [high >>> 8, high & 0xff, low >>> 8, low & 0xff].join(".");
  return URL.parse(`http://[${groups.map(hexOf).join(":")}]`)?.hostname.slice(1, -1) ?? null;
}

/** `ADDRESS` or `ADDRESS/BITS` (CIDR); null for any other text. */
export function parseNetwork(text: string): Network | null {
  const [, address = "", bits] = /^([^/%]+)(?:%[\w.-]+)?(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  const prefix = bits === undefined ? most : Number(bits);
  return most < 0 || prefix > most ? null : { address, prefix };
}

export function blockListOf(networks: readonly Network[]): BlockList {
  return networks.map(({ address, prefix }) => ({
    groups: groupsOf(address),
    bits: IPV4.test(address) ? MAPPED_BITS + prefix : prefix,
  }));
}

export function isListed(ip: string, list: BlockList): boolean {
  if (list.length === 0) return false;
  const address = groupsOf(ip);
  return list.some(({ groups, bits }) =>
    groups.every((group, i) => {
      const uncounted = Math.min(Math.max((i + 1) * GROUP_BITS - bits, 0), GROUP_BITS);
      return group >>> uncounted === must(address[i], "an address has eight groups") >>> uncounted;
    }),
  );
}

/** Its IPv4 address, or the /64 network of its IPv6 address. */
export function callerKey(ip: string): string {
  const groups = parseIpv6(ip);
  return groups === null ? ip : `${groups.slice(0, 4).map(hexOf).join(":")}::/64`;
}

/** In front of an IPv4 address that is mapped to IPv6. */
const MAPPED_BITS = 96;

export function ipBytes(ip: string): Uint8Array {
  const groups = parseIpv6(ip) ?? ipv4Groups(ip);
  return Uint8Array.from(groups.flatMap((group) => [group >>> 8, group & 0xff]));
}

/** Those of an IPv4 address as mapped to IPv6. */
function groupsOf(ip: string): readonly number[] {
  return parseIpv6(ip) ?? [0, 0, 0, 0, 0, 0xffff, ...ipv4Groups(ip)];
}
