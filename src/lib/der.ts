/** Writes DER (ITU-T X.690), as far as an X.509 certificate needs it, and PEM (RFC 7468). Must not: parse. */
import { must } from "./assert.ts";

/** As WebCrypto takes them. */
export type Bytes = Uint8Array<ArrayBuffer>;

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectId: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** RFC 5280, 4.1.2.5: dates before 2050 are of the form with a year of two digits. */
const FIRST_LONG_YEAR = 2050;

/** For types without a function here, such as `[0]` of a choice. */
export function tagged(tag: number, ...contents: readonly Uint8Array[]): Bytes {
  const content = joined(contents);
  return joined([Uint8Array.of(tag), lengthOf(content.length), content]);
}

export function sequence(...items: readonly Uint8Array[]): Bytes {
  return tagged(TAG.sequence, ...items);
}

export function set(...items: readonly Uint8Array[]): Bytes {
  return tagged(TAG.set, ...items);
}

/** Not negative; the highest byte first. */
export function integer(bytes: Uint8Array): Bytes {
  const first = bytes.findIndex((byte) => byte !== 0);
  const significant = first < 0 ? Uint8Array.of(0) : bytes.subarray(first);
  const isSigned = must(significant[0], "a number has a byte") >= 0x80; // the highest bit would make it negative
  return tagged(TAG.integer, ...(isSigned ? [Uint8Array.of(0)] : []), significant);
}

export function boolean(value: boolean): Bytes {
  return tagged(TAG.boolean, Uint8Array.of(value ? 0xff : 0));
}

/** The last `unused` bits do not count. */
export function bitString(bytes: Uint8Array, unused = 0): Bytes {
  return tagged(TAG.bitString, Uint8Array.of(unused), bytes);
}

export function octetString(bytes: Uint8Array): Bytes {
  return tagged(TAG.octetString, bytes);
}

export function utf8String(text: string): Bytes {
  return tagged(TAG.utf8String, new TextEncoder().encode(text));
}

/** Written with dots. */
export function objectId(dotted: string): Bytes {
  const [first = 0, second = 0, ...arcs] = dotted.split(".").map(Number);
  return tagged(TAG.objectId, Uint8Array.from([first * 40 + second, ...arcs].flatMap(base128)));
}

export function time(epochMs: number): Bytes {
  const date = new Date(epochMs);
  const digits = `${date.toISOString().replaceAll(/\D/g, "").slice(0, 14)}Z`;
  const isLong = date.getUTCFullYear() >= FIRST_LONG_YEAR;
  const text = new TextEncoder().encode(isLong ? digits : digits.slice(2));
  return tagged(isLong ? TAG.generalizedTime : TAG.utcTime, text);
}

export function pem(label: string, der: Uint8Array): string {
  const lines = must(der.toBase64().match(/.{1,64}/g), "a value of DER has a tag");
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

/** The first of this label; null when none is complete. */
export function unpem(label: string, text: string): Bytes | null {
  const [, body] =
    new RegExp(`-----BEGIN ${label}-----([A-Za-z0-9+/=\\s]+)-----END ${label}-----`).exec(text) ?? [];
  try {
    return body === undefined ? null : Uint8Array.fromBase64(body);
  } catch {
    return null; // not base64
  }
}

export function joined(parts: readonly Uint8Array[]): Bytes {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return bytes;
}

function lengthOf(length: number): Uint8Array {
  if (length < 0x80) return Uint8Array.of(length);
  const bytes: number[] = [];
  for (let remaining = length; remaining > 0; remaining = Math.floor(remaining / 256))
    bytes.unshift(remaining % 256);
  return Uint8Array.of(0x80 + bytes.length, ...bytes);
}

/** Groups of seven bits, the highest first; all but the last have the highest bit set. */
function base128(value: number): number[] {
  const groups = [value % 128];
  for (let remaining = Math.floor(value / 128); remaining > 0; remaining = Math.floor(remaining / 128))
    groups.unshift(0x80 + (remaining % 128));
  return groups;
}
