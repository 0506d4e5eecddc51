/**
 * IP addresses as numbers, so that "is it within this network" is arithmetic. IPv4 is held as what IPv6 maps it to
 * (::ffff:a.b.c.d, RFC 4291 2.5.5.2): a listener on `::` and one on `0.0.0.0` then see the same caller.
 */

/** 128 bits. */
export type Ip = bigint;

/** All addresses whose first bits are those of `base`. */
export type Network = { readonly base: Ip; readonly bits: number };

const ALL_BITS = 128;
const V4_BITS = 32;
const V4_PREFIX = 0xffffn;
const V6_CUSTOMER_BITS = 64;
const GROUPS = 8;

/** Null for what is no IPv4 or IPv6 address in its usual text form; a zone (`%eth0`) is left out. */
export function parseIp(text: string): Ip | null {
  const v4 = parseV4(text);
  if (v4 !== null) return (V4_PREFIX << BigInt(V4_BITS)) | v4;
  return text.includes(":") ? parseV6(text.replace(/%[\w.-]+$/, "")) : null;
}

/** `ADDRESS` or `ADDRESS/BITS` (CIDR); null for what is neither. */
export function parseNetwork(text: string): Network | null {
  const [, address = "", length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const base = parseIp(address);
  if (base === null) return null;
  const most = address.includes(":") ? ALL_BITS : V4_BITS;
  const own = length === undefined ? most : Number(length);
  return own > most ? null : { base, bits: ALL_BITS - most + own };
}

export function isWithin(ip: Ip, { base, bits }: Network): boolean {
  return firstBits(ip, bits) === firstBits(base, bits);
}

/** One for each caller that may be told apart: an IPv4 address, or the /64 that one IPv6 customer has to himself. */
export function callerKey(ip: Ip): string {
  const isV4 = ip >> BigInt(V4_BITS) === V4_PREFIX;
  return isV4 ? `4:${ip.toString(16)}` : `6:${firstBits(ip, V6_CUSTOMER_BITS).toString(16)}`;
}

function firstBits(ip: Ip, bits: number): bigint {
  return ip >> BigInt(ALL_BITS - bits);
}

function parseV4(text: string): bigint | null {
  if (!/^\d{1,3}(?:\.\d{1,3}){3}$/.test(text)) return null;
  let value = 0n;
  for (const part of text.split(".")) {
    // A leading zero is octal to some readers: what two readers may take for two addresses is none.
    if (Number(part) > 255 || (part.length > 1 && part.startsWith("0"))) return null;
    value = (value << 8n) | BigInt(part);
  }
  return value;
}

function parseV6(text: string): bigint | null {
  const [head = "", tail, more] = text.split("::");
  if (more !== undefined) return null;
  const before = groupsOf(head, tail === undefined);
  const after = groupsOf(tail ?? "", true);
  if (before === null || after === null) return null;
  const missing = GROUPS - before.length - after.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return null;
  const groups = [...before, ...Array.from({ length: missing }, () => 0), ...after];
  return groups.reduce((value, group) => (value << 16n) | BigInt(group), 0n);
}

/** The 16-bit groups on one side of `::`; those at the very end may stand as IPv4. Null for what is none. */
function groupsOf(text: string, isEnd: boolean): readonly number[] | null {
  if (text === "") return [];
  const groups: number[] = [];
  const words = text.split(":");
  for (const [i, word] of words.entries()) {
    const v4 = isEnd && i === words.length - 1 ? parseV4(word) : null;
    if (v4 !== null) groups.push(Number(v4 >> 16n), Number(v4 & 0xffffn));
    else if (/^[0-9a-fA-F]{1,4}$/.test(word)) groups.push(Number.parseInt(word, 16));
    else return null;
  }
  return groups;
}
