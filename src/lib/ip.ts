/**
 * IP addresses: a canonical text for each, and the key under which the requests of a caller are counted. An IPv4
 * address and its IPv4-mapped IPv6 address (::ffff:a.b.c.d, RFC 4291 2.5.5.2) are one address, so that listeners on
 * `::` and `0.0.0.0` see the same caller.
 */
import { BlockList, isIP } from "node:net";

/** The addresses whose first `prefix` bits are those of `address` (CIDR). */
export type Network = { readonly address: string; readonly prefix: number };

/**
 * Returns the canonical text of an address (RFC 5952), without its zone (`%eth0`); null if the text is no IP address.
 */
export function canonicalIp(text: string): string | null {
  const version = isIP(text);
  if (version !== 6) return version === 4 ? text : null;
  const v6 = URL.parse(`http://[${text.replace(/%.*$/, "")}]`)?.hostname.slice(1, -1) ?? null;
  const [, high, low] = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(v6 ?? "") ?? [];
  if (high === undefined || low === undefined) return v6;
  const bits = Number.parseInt(high, 16) * 2 ** 16 + Number.parseInt(low, 16);
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 0xff).join(".");
}

/** Parses `ADDRESS` or `ADDRESS/BITS` (CIDR); null for any other text. */
export function parseNetwork(text: string): Network | null {
  const [, address = "", bits] = /^([^/%]+)(?:%[\w.-]+)?(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  const prefix = bits === undefined ? most : Number(bits);
  return most < 0 || prefix > most ? null : { address, prefix };
}

export function blockListOf(networks: readonly Network[]): BlockList {
  const list = new BlockList();
  for (const { address, prefix } of networks) list.addSubnet(address, prefix, familyOf(address));
  return list;
}

/** Whether the list contains an address. `ip` must be canonical (canonicalIp()). */
export function isListed(ip: string, list: BlockList): boolean {
  return list.check(ip, familyOf(ip));
}

/** Returns the key under which a caller is counted: its IPv4 address, or the /64 network of its IPv6 address. */
export function callerKey(ip: string): string {
  if (familyOf(ip) === "ipv4") return ip;
  const [head = [], tail = []] = ip
    .split("::")
    .map((side) => side.split(":").filter((group) => group !== ""));
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => "0");
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(":")}::/64`;
}

function familyOf(ip: string): "ipv4" | "ipv6" {
  return isIP(ip) === 6 ? "ipv6" : "ipv4";
}
