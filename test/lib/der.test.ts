/** DER and PEM: encodings that the X.690 standard, or openssl, gives. */
import { expect, test } from "bun:test";
import * as der from "../../src/lib/der.ts";

const hex = (bytes: Uint8Array): string => bytes.toHex();

test.each([
  ["a small number", der.integer(Uint8Array.of(0x7f)), "02017f"],
  ["a number whose highest bit is set", der.integer(Uint8Array.of(0x80)), "02020080"],
  ["a number with zeros before it", der.integer(Uint8Array.of(0, 0, 1, 2)), "02020102"],
  ["zero", der.integer(Uint8Array.of(0, 0)), "020100"],
  ["true", der.boolean(true), "0101ff"],
  ["an object identifier with a long arc", der.objectId("1.2.840.10045.2.1"), "06072a8648ce3d0201"],
  ["bits, of which three do not count", der.bitString(Uint8Array.of(0xf8), 3), "030203f8"],
  ["a sequence in a set", der.set(der.sequence(der.boolean(false))), "31053003010100"],
  [
    "a date before 2050",
    der.time(Date.UTC(2049, 11, 31, 23, 59, 59, 999)),
    `170d${Buffer.from("491231235959Z").toString("hex")}`,
  ],
  [
    "a date from 2050 on",
    der.time(Date.UTC(2050, 0, 1)),
    `180f${Buffer.from("20500101000000Z").toString("hex")}`,
  ],
  ["a length of one more byte", der.octetString(new Uint8Array(200)).subarray(0, 3), "0481c8"],
  ["a length of two more bytes", der.octetString(new Uint8Array(300)).subarray(0, 4), "0482012c"],
])("%s", (_, encoded, expected) => {
  expect(hex(encoded)).toBe(expected);
});

test("PEM is read as it is written, and what is none is null", () => {
  const bytes = Uint8Array.from({ length: 100 }, (_, i) => i);
  const text = der.pem("THING", bytes);
  expect(text.split("\n").every((line) => line.length <= 64)).toBe(true);
  expect(der.unpem("THING", `before\n${text}after`)).toEqual(bytes);
  for (const bad of ["", text.slice(0, 40), "-----BEGIN THING-----\n=A=\n-----END THING-----\n"])
    expect(der.unpem("THING", bad)).toBeNull();
  expect(der.unpem("OTHER", text)).toBeNull();
});
