/**
 * Decides to which addresses the hub sends requests of its own, against server-side request forgery (SSRF): somebody
 * names a URL, and the hub, which may reach more than they do, calls it.
 *
 * - Never: its link, the metadata services of clouds, and what is no address of one receiver.
 * - This machine and private networks: only what the operator names (--webhook-allow, --push-allow). A network in which
 *   this machine is names its address there, but loopback must be named as such.
 * - An address that has an IPv4 address in it and is translated (NAT64) counts as that one. Other such forms (6to4, Teredo,
 *   IPv4-compatible) are refused, because no receiver has one that it needs.
 */
import { must } from "./assert.ts";
import {
  type BlockList,
  type Network,
  blockListOf,
  canonicalIp,
  isIP,
  isListed,
  parseNetwork,
} from "./ip.ts";

/** `port` null: all ports. */
export type AllowedNetwork = Network & { readonly port: number | null };

/** As the end of a sentence; null: it may. */
export type AddressCheck = (address: string, port: number) => string | null;

type Class = { readonly networks: readonly string[]; readonly what: string };

const NEVER: readonly Class[] = [
  { what: "is no address of a receiver", networks: ["0.0.0.0/8", "::"] },
  {
    what: "belongs to the metadata service of a cloud",
    networks: [
      "169.254.169.254",
      "169.254.170.0/24",
      "100.100.100.200",
      "168.63.129.16",
      "192.0.0.0/24",
      "fd00:ec2::/32",
      "fd20:ce::/32",
    ],
  },
  { what: "is a link-local address", networks: ["169.254.0.0/16", "fe80::/10", "fec0::/10"] },
  { what: "is a multicast or broadcast address", networks: ["224.0.0.0/4", "ff00::/8", "255.255.255.255"] },
  { what: "is a reserved address", networks: ["240.0.0.0/4", "100::/64"] },
  {
    what: "has an IPv4 address in it",
    networks: ["::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "2002::/16", "2001::/32"],
  },
];

/** And those for tests and documentation, and what is not assigned. */
const PRIVATE = [
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "100.64.0.0/10",
  "198.18.0.0/15",
  "192.0.2.0/24",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "fc00::/7",
  "2001:db8::/32",
  "3fff::/20",
  "2001::/23",
];
const LOOPBACK = ["127.0.0.0/8", "::1"];
/** Other IPv6 addresses are of no receiver on the internet. */
const GLOBAL_V6 = "2000::/3";
const NAT64 = "64:ff9b::/96";

const listOf = (networks: readonly string[]): BlockList =>
  blockListOf(networks.map((text) => must(parseNetwork(text), "the networks of the policy are valid")));

const NEVER_LISTS = NEVER.map(({ what, networks }) => ({ what, list: listOf(networks) }));
const PRIVATE_LIST = listOf(PRIVATE);
const GLOBAL_V6_LIST = listOf([GLOBAL_V6]);
const NAT64_LIST = listOf([NAT64]);
const LOOPBACK_LIST = listOf(LOOPBACK);

/** @param flag the setting that `allowed` is from  @param ownAddresses the addresses of this machine, beside loopback */
export function addressCheck(
  flag: string,
  allowed: readonly AllowedNetwork[],
  ownAddresses: () => BlockList,
): AddressCheck {
  const allowances = allowed.map((network) => ({
    ...network,
    list: blockListOf([network]),
    isLoopback: isLoopback(network.address),
  }));
  const check: AddressCheck = (address, port) => {
    const ip = canonicalIp(address);
    if (ip === null || address.includes("%")) return "is no address";
    if (isListed(ip, NAT64_LIST)) return check(translated(ip), port);
    const toSelf = isLoopback(ip) || isListed(ip, ownAddresses());
    const never = isLoopback(ip) ? null : neverCalled(ip);
    if (never !== null) return never;
    if (!toSelf && !isPrivate(ip)) return null;
    const isAllowed = allowances.some(
      (allowance) =>
        isListed(ip, allowance.list) &&
        (allowance.port === null || allowance.port === port) &&
        // All private networks (0.0.0.0/0, ::/0) are not this machine.
        (!toSelf || allowance.prefix > 0) &&
        (!isLoopback(ip) || allowance.isLoopback),
    );
    if (isAllowed) return null;
    return toSelf
      ? `is an address of this machine, which ${flag} does not name`
      : `is in a private network that ${flag} does not name`;
  };
  return check;
}

/** Of an address, a network or ADDRESS:PORT; null for any other text, and for what is never called. */
export function parseAllowed(text: string): AllowedNetwork | null {
  const [, v6, v4, digits] = /^(?:\[([\da-f:.]+)\]|([\d.]+)):(\d{1,5})$/i.exec(text) ?? [];
  const port = digits === undefined ? null : Number(digits);
  const network = parseNetwork(port === null ? text : (v6 ?? v4 ?? ""));
  if (network === null || port === 0 || (port ?? 0) > 65_535) return null;
  const ip = canonicalIp(network.address);
  const isNever = network.prefix > 0 && (ip === null || (!isLoopback(ip) && neverCalled(ip) !== null));
  return isNever ? null : { ...network, port };
}

function isLoopback(address: string): boolean {
  return isListed(canonicalIp(address) ?? "::", LOOPBACK_LIST);
}

function neverCalled(ip: string): string | null {
  return NEVER_LISTS.find(({ list }) => isListed(ip, list))?.what ?? null;
}

function isPrivate(ip: string): boolean {
  return isListed(ip, PRIVATE_LIST) || (isIP(ip) === 6 && !isListed(ip, GLOBAL_V6_LIST));
}

function translated(ip: string): string {
  const [high = 0, low = 0] = ip
    .replace(/^.*?:(?=[\da-f]*:[\da-f]*$)/i, "")
    .split(":")
    .map((group) => Number.parseInt(group || "0", 16));
  return [high >>> 8, high & 0xff, low >>> 8, low & 0xff].join(".");
}
