/**
 * IP addresses by node:net, and the two things it lacks: one text for one address, and the name that a caller is counted
 * by. IPv4 and the IPv6 address that it is mapped to (::ffff:a.b.c.d, RFC 4291 2.5.5.2) are one address: a listener on
 * `::` and one on `0.0.0.0` then see the same caller.
 */
import { BlockList, isIP } from "node:net";

/** The addresses whose first `prefix` bits are those of `address` (CIDR). */
export type Network = { readonly address: string; readonly prefix: number };

/** The one text of an address (RFC 5952), without its zone (`%eth0`); null for what is no IPv4 or IPv6 address. */
export function canonicalIp(text: string): string | null {
  const version = isIP(text);
  if (version !== 6) return version === 4 ? text : null;
  const v6 = URL.parse(`http://[${text.replace(/%.*$/, "")}]`)?.hostname.slice(1, -1) ?? null;
  const [, high, low] = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(v6 ?? "") ?? [];
  if (high === undefined || low === undefined) return v6;
  const bits = Number.parseInt(high, 16) * 2 ** 16 + Number.parseInt(low, 16);
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 0xff).join(".");
}

/** `ADDRESS` or `ADDRESS/BITS` (CIDR); null for what is neither. */
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

/** `ip` as canonicalIp() answers it. */
export function isListed(ip: string, list: BlockList): boolean {
  return list.check(ip, familyOf(ip));
}

/** The key by which a caller is counted: an IPv4 address, or the /64 network of an IPv6 customer. */
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
