/** To which addresses the hub sends requests: every form of an address that must not be called. */
import { describe, expect, test } from "bun:test";
import { addressCheck, parseAllowed } from "../../src/lib/address-policy.ts";
import { blockListOf, parseNetwork } from "../../src/lib/ip.ts";
import { must } from "../../src/lib/assert.ts";

/** This machine's, beside loopback. */
const OWN = blockListOf([must(parseNetwork("8.8.4.4"), "an address")]);

/** Checks an address at port 80. */
function refusal(address: string, ...allowed: readonly string[]): string | null {
  const networks = allowed.map((text) => must(parseAllowed(text), "the networks of the tests are valid"));
  return addressCheck("--webhook-allow", networks, () => OWN)(address, 80);
}

/** All addresses there are. */
const ALL = ["0.0.0.0/0", "::/0"];

const NEVER: readonly string[] = [
  "0.0.0.0",
  "0.1.2.3",
  "169.254.0.1",
  "169.254.169.254",
  "169.254.170.2",
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
  "224.0.0.1",
  "239.255.255.250",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "::ffff:169.254.169.254",
  "::127.0.0.1",
  "::ffff:0:127.0.0.1",
  "64:ff9b::a9fe:a9fe",
  "64:ff9b::",
  "64:ff9b:1::7f00:1",
  "2002:7f00:1::",
  "2002:c0a8:101::1",
  "2001:0:53aa:64c::1",
  "fe80::1",
  "fe80::1%eth0",
  "febf::1",
  "fec0::1",
  "ff02::1",
  "100::1",
  "fd00:ec2::254",
  "fd20:ce::254",
  "example.org",
  "",
];

const LOOPBACK: readonly string[] = [
  "127.0.0.1",
  "127.255.255.254",
  "::1",
  "0:0:0:0:0:0:0:1",
  "::ffff:127.0.0.1",
  "::ffff:7f00:1",
  "64:ff9b::127.0.0.1",
];

const PRIVATE: readonly string[] = [
  "10.0.0.1",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "100.64.0.1",
  "198.18.0.1",
  "192.0.2.1",
  "198.51.100.1",
  "203.0.113.1",
  "::ffff:192.168.1.1",
  "64:ff9b::10.0.0.1",
  "fc00::1",
  "fd12:3456::1",
  "2001:db8::1",
  "2001:2::1",
  "2001:10::1",
  "3fff::1",
  "4000::1",
];

const PUBLIC: readonly string[] = [
  "1.1.1.1",
  "8.8.8.8",
  "172.15.255.255",
  "172.32.0.1",
  "192.169.0.1",
  "100.63.255.255",
  "100.128.0.1",
  "223.255.255.255",
  "2606:4700:4700::1111",
  "2a00:1450::1",
  "::ffff:8.8.8.8",
  "64:ff9b::8.8.8.8",
];

describe("an address", () => {
  for (const address of NEVER)
    test(`${JSON.stringify(address)} is never called, whatever is allowed`, () => {
      expect(refusal(address)).not.toBeNull();
      expect(refusal(address, ...ALL)).not.toBeNull();
    });

  for (const address of LOOPBACK)
    test(`${address} is called only if loopback is allowed as such`, () => {
      expect(refusal(address)).toContain("--webhook-allow");
      expect(refusal(address, ...ALL, "64.0.0.0/2")).toContain("--webhook-allow");
      expect(refusal(address, "127.0.0.0/8", "::1")).toBeNull();
    });

  for (const address of PRIVATE)
    test(`${address} is called only if its network is allowed`, () => {
      expect(refusal(address)).toContain("--webhook-allow");
      expect(refusal(address, ...ALL)).toBeNull();
      expect(refusal(address, "198.51.100.7")).not.toBeNull();
    });

  for (const address of PUBLIC) test(`${address} is called`, () => expect(refusal(address)).toBeNull());

  test("of this machine is called only if it is named, or its network", () => {
    for (const address of ["8.8.4.4", "::ffff:8.8.4.4", "64:ff9b::8.8.4.4"]) {
      expect(refusal(address)).toContain("this machine");
      expect(refusal(address, ...ALL, "127.0.0.0/8")).toContain("this machine");
      expect(refusal(address, "8.8.4.0/24")).toBeNull();
    }
  });

  test("is called only at the port that is allowed with it", () => {
    for (const [address, allowed] of [
      ["10.1.2.3", "10.1.2.3"],
      ["127.0.0.1", "127.0.0.1"],
      ["8.8.4.4", "8.8.4.4"],
      ["fd00::1", "[fd00::1]"],
    ] as const) {
      expect(refusal(address, `${allowed}:80`)).toBeNull();
      expect(refusal(address, `${allowed}:81`)).not.toBeNull();
    }
  });
});

test("a setting cannot allow what is never called", () => {
  for (const text of [
    "169.254.0.0/16",
    "0.0.0.0",
    "fe80::/10",
    "::ffff:169.254.169.254",
    "10.0.0.1:0",
    "10.0.0.1:65536",
    "10.0.0.0/8:80",
    "::1:80:",
    "localhost",
  ])
    expect([text, parseAllowed(text)]).toEqual([text, null]);
  for (const text of [
    "10.0.0.0/8",
    "192.168.1.7",
    "fd00::/8",
    "0.0.0.0/0",
    "::/0",
    "127.0.0.1:9000",
    "[::1]:80",
  ])
    expect([text, parseAllowed(text)]).not.toEqual([text, null]);
});
