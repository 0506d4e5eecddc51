/** The client's address: the forms of IP addresses, networks, X-Forwarded-For behind trusted proxies; the rate limiter. */
import { describe, expect, test } from "bun:test";
import * as net from "node:net";
import fc from "fast-check";
import { clientAddress } from "../../src/http/client-address.ts";
import { RateLimiter } from "../../src/http/rate-limiter.ts";
import { type Network, blockListOf, canonicalIp, isIP, isListed, parseNetwork } from "../../src/lib/ip.ts";
import { costRatio, cpuOf } from "../support/cost.ts";

const network = (text: string): Network => {
  const parsed = parseNetwork(text);
  if (!parsed) throw new Error(`no network: ${text}`);
  return parsed;
};

describe("an address", () => {
  const same: readonly (readonly [string, string])[] = [
    ["1.2.3.4", "::ffff:1.2.3.4"],
    ["255.255.255.255", "::ffff:ffff:ffff"],
    ["0.0.0.0", "0:0:0:0:0:ffff:0:0"],
    ["2001:db8::1", "2001:0DB8:0:0:0:0:0:1"],
    ["::", "0:0:0:0:0:0:0:0"],
    ["::1", "0::1"],
    ["1::", "1:0:0:0:0:0:0:0"],
    ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
    ["64:ff9b::10.0.0.1", "64:ff9b::a00:1"],
    ["fe80::1%eth0", "fe80::1"],
  ];
  for (const [a, b] of same)
    test(`${a} is ${b}`, () => {
      expect(canonicalIp(a)).not.toBeNull();
      expect(canonicalIp(a)).toBe(canonicalIp(b));
    });

  const none = [
    ..."|1|1.2.3|1.2.3.4.5|1.2.3.256|01.2.3.4|1.2.3.4:80|1.2.3.-4|0x1.2.3.4|1.2.3.4 |unknown|_hidden".split(
      "|",
    ),
    ..."[::1]|:|:::|1::2::3|1:2:3:4:5:6:7|1:2:3:4:5:6:7:8:9|1:2:3:4:5:6:7:8::|12345::|g::|::1.2.3|1.2.3.4::".split(
      "|",
    ),
  ];
  for (const text of none)
    test(`${JSON.stringify(text)} is none`, () => expect(canonicalIp(text)).toBeNull());
});

describe("a network", () => {
  const rows: readonly (readonly [network: string, within: readonly string[], without: readonly string[]])[] =
    [
      [
        "10.0.0.0/8",
        ["10.0.0.0", "10.255.255.255", "::ffff:10.1.1.1"],
        ["11.0.0.0", "9.255.255.255", "::a00:1"],
      ],
      ["10.1.2.3/8", ["10.9.9.9"], ["11.1.2.3"]],
      ["192.168.7.9", ["192.168.7.9"], ["192.168.7.8", "::1"]],
      ["0.0.0.0/0", ["1.2.3.4"], ["::1", "2001:db8::1"]],
      ["::/0", ["::1", "1.2.3.4"], []],
      ["::ffff:10.0.0.0/104", ["10.9.9.9"], ["11.9.9.9"]],
      ["fe80::1%eth0", ["fe80::1", "fe80::1%eth1"], ["fe80::2"]],
      ["fd00::/8", ["fd12:3456::1"], ["fc00::1", "fe80::1"]],
      ["2001:db8::/33", ["2001:db8:7fff::"], ["2001:db8:8000::"]],
    ];
  for (const [text, within, without] of rows)
    test(text, () => {
      const list = blockListOf([network(text)]);
      for (const ip of within) expect([ip, isListed(canonicalIp(ip) ?? "", list)]).toEqual([ip, true]);
      for (const ip of without) expect([ip, isListed(canonicalIp(ip) ?? "", list)]).toEqual([ip, false]);
    });
  for (const text of ["", "/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "::/129", "10.0.0.0/8/8", "host"])
    test(`${JSON.stringify(text)} is none`, () => expect(parseNetwork(text)).toBeNull());
});

describe("an address, a network and a block list are what node:net takes them for", () => {
  /** Addresses, and texts that nearly are some. */
  const texts = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.string({ unit: fc.constantFrom(..."0123456789abcdefF:.%/[] -_g"), maxLength: 24 }),
    fc
      .array(fc.constantFrom("0", "1", "00", "ff", "10000", "1.2.3.4", "01.2.3.4", "256.1.1.1", "", ""), {
        minLength: 2,
        maxLength: 10,
      })
      .map((groups) => groups.join(":")),
    fc
      .tuple(fc.ipV6(), fc.constantFrom("%", "%eth0", "%25", "%a%b", "%a b", "%a:b.c-d", "%_"))
      .map(([ip, zone]) => ip + zone),
    fc
      .array(fc.constantFrom("0", "00", "1", "09", "10", "99", "199", "255", "256", "1000", ""), {
        minLength: 3,
        maxLength: 5,
      })
      .map((octets) => octets.join(".")),
  );

  test("isIP", () => {
    fc.assert(
      fc.property(texts, (text) => expect([text, isIP(text)]).toEqual([text, net.isIP(text) as 0 | 4 | 6])),
      { numRuns: 3_000 },
    );
  });

  test("isListed", () => {
    const familyOf = (ip: string): "ipv4" | "ipv6" => (net.isIP(ip) === 6 ? "ipv6" : "ipv4");
    const near = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.constantFrom("10.1.2.3", "10.1.2.4", "::ffff:10.1.2.3", "fe80::1", "::"),
    );
    fc.assert(
      fc.property(near, near, fc.nat(128), (address, other, bits) => {
        const prefix = Math.min(bits, net.isIP(address) === 4 ? 32 : 128);
        const theirs = new net.BlockList();
        theirs.addSubnet(address, prefix, familyOf(address));
        const ip = canonicalIp(other) ?? "";
        const isTheirs = theirs.check(ip, familyOf(ip));
        expect([address, prefix, ip, isListed(ip, blockListOf([{ address, prefix }]))]).toEqual([
          address,
          prefix,
          ip,
          isTheirs,
        ]);
      }),
      { numRuns: 3_000 },
    );
  });
});

describe("X-Forwarded-For", () => {
  const TRUSTED = blockListOf(["127.0.0.1", "10.0.0.0/8", "fd00::/8"].map(network));
  const NOBODY = blockListOf([]);
  /** `is`: the address that is counted. */
  const rows: readonly { peer: string; header: string | null; is: string; why: string }[] = [
    { peer: "203.0.113.9", header: null, is: "203.0.113.9", why: "no header, no proxy" },
    {
      peer: "203.0.113.9",
      header: "198.51.100.1",
      is: "203.0.113.9",
      why: "the header of an untrusted peer does not count",
    },
    { peer: "127.0.0.1", header: null, is: "127.0.0.1", why: "the proxy itself" },
    { peer: "127.0.0.1", header: "", is: "127.0.0.1", why: "an empty header" },
    { peer: "127.0.0.1", header: "198.51.100.1:5678", is: "198.51.100.1", why: "an address with a port" },
    { peer: "127.0.0.1", header: "[2001:db8::1]:443", is: "2001:db8::1", why: "brackets and a port" },
    { peer: "127.0.0.1", header: '"[2001:db8::1]"', is: "2001:db8::1", why: "quotes and brackets" },
    { peer: "127.0.0.1", header: "198.51.100.1:x", is: "127.0.0.1", why: "no port" },
    {
      peer: "127.0.0.1",
      header: "198.51.100.1",
      is: "198.51.100.1",
      why: "the address that the proxy has added",
    },
    {
      peer: "::ffff:127.0.0.1",
      header: "198.51.100.1",
      is: "198.51.100.1",
      why: "a proxy with an IPv4-mapped address",
    },
    {
      peer: "127.0.0.1",
      header: "1.1.1.1, 198.51.100.1",
      is: "198.51.100.1",
      why: "addresses further left come from the client",
    },
    {
      peer: "127.0.0.1",
      header: "198.51.100.1, 10.0.0.3,10.0.0.2",
      is: "198.51.100.1",
      why: "a chain of proxies",
    },
    {
      peer: "127.0.0.1",
      header: "10.0.0.3, 10.0.0.2",
      is: "10.0.0.3",
      why: "only proxies: the farthest",
    },
    {
      peer: "127.0.0.1",
      header: "198.51.100.1, unknown, 10.0.0.2",
      is: "10.0.0.2",
      why: "an invalid address ends the search",
    },
    {
      peer: "127.0.0.1",
      header: "198.51.100.1, ",
      is: "198.51.100.1",
      why: "an empty element is no element",
    },
    { peer: "127.0.0.1", header: "fd00::7, 2001:db8::5", is: "2001:db8::9", why: "IPv6 counts by its /64" },
    {
      peer: "fd00::1",
      header: "2001:db8:0:1::5",
      is: "2001:db8:0:1:ffff::",
      why: "IPv6 counts by its /64 behind an IPv6 proxy",
    },
  ];
  for (const { peer, header, is, why } of rows)
    test(`${why}: ${peer}, ${header}`, () => {
      const headers = new Headers(header === null ? {} : { "X-Forwarded-For": header });
      expect(clientAddress(peer, headers, TRUSTED)).toBe(clientAddress(is, new Headers(), NOBODY));
    });

  test("different callers stay distinct", () => {
    const peers = ["1.2.3.4", "1.2.3.5", "2001:db8::1", "2001:db8:0:1::1", "::1.2.3.4", "unix"];
    expect(new Set(peers.map((peer) => clientAddress(peer, new Headers(), NOBODY))).size).toBe(peers.length);
  });

  test("the time to walk a header grows with its length, not with the square of it", async () => {
    const walk = (addresses: number): Promise<number> => {
      const headers = new Headers({
        "X-Forwarded-For": Array.from({ length: addresses }, () => "10.0.0.1").join(","),
      });
      return cpuOf(async () => {
        expect(clientAddress("127.0.0.1", headers, TRUSTED)).toBe(clientAddress("10.0.0.1", headers, NOBODY));
      });
    };
    await walk(40_000); // compile
    const ratio = await costRatio(
      () => walk(2_000),
      () => walk(40_000),
      7,
    );
    expect(ratio).toBeLessThan(160); // linear: 20; quadratic: 400
  });
});

describe("the rate limiter", () => {
  test("keeps at most its limit of addresses and forgets the oldest", () => {
    const limiter = new RateLimiter(2, 1_000, 3);
    for (const address of ["a", "b", "c"]) expect(limiter.recordFailure(address, 0)).toBe(0);
    expect(limiter.recordFailure("a", 1)).toBe(999);
    for (let i = 0; i < 10_000; i++) limiter.recordFailure(`stranger ${i}`, 2);
    expect(limiter.size).toBe(3);
    expect(limiter.recordFailure("a", 3)).toBe(0);
  });

  test("an address that starts a new window is no longer the oldest", () => {
    const limiter = new RateLimiter(2, 1_000, 2);
    limiter.recordFailure("a", 0);
    limiter.recordFailure("b", 500);
    limiter.recordFailure("a", 1_000);
    limiter.recordFailure("c", 1_001);
    expect(limiter.recordFailure("a", 1_002)).toBeGreaterThan(0);
  });
});
