/** The certificate of `--tls auto`: its authority in the data directory, its names and times, and its renewal. */
import { expect, test } from "bun:test";
import { X509Certificate, createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { type Config, readConfig } from "../../src/config.ts";
import { dataDirAt, makeDataDir } from "../../src/data-dir.ts";
import {
  CERTIFICATE_BACKDATE_MS,
  CERTIFICATE_MS,
  CERTIFICATE_RENEWED_AFTER_MS,
} from "../../src/domain/limits.ts";
import { Renewal } from "../../src/http/certificate.ts";
import { joinPlaceOf } from "../../src/hub/addresses.ts";
import { SERVER_NAME } from "../../src/hub/own-certificate.ts";
import { openOwnTls } from "../../src/hub/own-tls.ts";
import { must } from "../../src/lib/assert.ts";
import { openLog } from "../../src/lib/log.ts";
import { TempDir } from "../e2e/program.ts";
import { TestClock } from "../support/hub.ts";

function configOf(...words: readonly string[]): Config {
  const flags: Record<string, string[]> = { tls: ["auto"] };
  for (let i = 0; i < words.length; i += 2)
    (flags[must(words[i], "a flag")] ??= []).push(must(words[i + 1], "a value"));
  return readConfig({ flags, env: {}, file: null });
}

const pinOf = (pem: string): string =>
  createHash("sha256")
    .update(new X509Certificate(pem).publicKey.export({ type: "spki", format: "der" }))
    .digest("base64url");

test("the certificate is the authority's, for a year, with every name of the hub", async () => {
  using dir = new TempDir();
  const place = makeDataDir(dir.join("data"));
  const clock = new TestClock();
  const config = configOf("listen", "A+tls:hub.example.org:19443", "public-url", "https://[fd00::7]:8443/x");
  const tls = must(await openOwnTls(config, place, clock), "TLS");
  const [leaf, authority] = [
    new X509Certificate(tls.cert),
    new X509Certificate(readFileSync(place.authorityFile)),
  ];
  expect([authority.ca, authority.verify(authority.publicKey), leaf.ca]).toEqual([true, true, false]);
  expect([leaf.checkIssued(authority), leaf.verify(authority.publicKey)]).toEqual([true, true]);
  expect(tls.pin).toBe(pinOf(readFileSync(place.authorityFile, "utf8")));
  for (const name of [SERVER_NAME, "localhost", "hub.example.org"]) expect(leaf.checkHost(name)).toBe(name);
  for (const ip of ["127.0.0.1", "::1", "fd00::7"]) expect(leaf.checkIP(ip)).toBe(ip);
  const now = Math.floor(clock.now() / 1_000) * 1_000;
  expect(Date.parse(leaf.validFrom)).toBe(now - CERTIFICATE_BACKDATE_MS);
  expect(Date.parse(leaf.validTo)).toBe(now + CERTIFICATE_MS);
  expect(authority.validTo).toBe("Dec 31 23:59:59 9999 GMT");
});

test("the authority's key is the pin: its certificate can be made again, and old trust still verifies new certificates", async () => {
  using dir = new TempDir();
  const place = makeDataDir(dir.join("data"));
  const clock = new TestClock();
  const first = must(await openOwnTls(configOf(), place, clock), "TLS");
  const trusted = new X509Certificate(readFileSync(place.authorityFile));
  const again = must(await openOwnTls(configOf(), place, clock), "TLS");
  expect([again.pin, again.cert === first.cert]).toEqual([first.pin, false]);
  rmSync(place.authorityFile);
  const third = must(await openOwnTls(configOf(), place, clock), "TLS");
  const remade = new X509Certificate(readFileSync(place.authorityFile));
  expect([third.pin, remade.serialNumber === trusted.serialNumber]).toEqual([first.pin, false]);
  const leaf = new X509Certificate(third.cert);
  expect([leaf.checkIssued(trusted), leaf.verify(trusted.publicKey)]).toEqual([true, true]);
  rmSync(dataDirAt(place.path).authorityKeyFile);
  const other = must(await openOwnTls(configOf(), place, clock), "TLS");
  expect(other.pin).not.toBe(first.pin);
  expect(pinOf(readFileSync(place.authorityFile, "utf8"))).toBe(must(other.pin, "a pin"));
});

test("it is renewed every 30 days, and after a jump of the clock", async () => {
  const clock = new TestClock();
  const log = openLog(
    { format: "json", level: "error", colour: false },
    () => clock.now(),
    () => {},
  );
  const made: { cert: string; key: string }[] = [];
  let serial = 0;
  const make = async () => ({ cert: `${++serial}`, key: "k" });
  const renewed = {
    make,
    onChange: (pair: { cert: string; key: string }) => made.push(pair),
    afterMs: CERTIFICATE_RENEWED_AFTER_MS,
  };
  const renewal = new Renewal(renewed, clock, log);
  clock.pass(CERTIFICATE_RENEWED_AFTER_MS - 3_600_000);
  await renewal.check();
  expect(made).toEqual([]);
  clock.pass(3_600_000);
  await renewal.check();
  await renewal.check();
  expect(made.map(({ cert }) => cert)).toEqual(["1"]);
  clock.jump(-10 * 365 * 86_400_000);
  await renewal.check();
  expect(made.map(({ cert }) => cert)).toEqual(["1", "2"]);
});

test("a line has the best URL of the hub, and a pin only for its own certificate", () => {
  const plain = { host: "10.0.0.5", port: 19104, tls: false };
  const secured = { host: "10.0.0.5", port: 19443, tls: true };
  const local = { host: "127.0.0.1", port: 19104, tls: false };
  const at = (
    listeners: readonly (typeof plain)[],
    publicUrl: string | null,
    pin: string | null,
    named: string | null = null,
  ) => {
    const { url, pin: pinned } = joinPlaceOf({ publicUrl }, listeners, pin, named);
    return [url, pinned];
  };
  expect(at([plain, secured], null, "P")).toEqual(["https://10.0.0.5:19443", "P"]);
  expect(at([plain, secured], null, null)).toEqual(["https://10.0.0.5:19443", null]);
  expect(at([plain], null, null)).toEqual(["http://10.0.0.5:19104", null]);
  expect(at([local], null, null)).toEqual(["http://127.0.0.1:19104", null]);
  expect(at([local, secured], null, "P")).toEqual(["https://10.0.0.5:19443", "P"]);
  // A name for the hub's own listener is better than its address; a proxy has another certificate.
  expect(at([plain, secured], "https://hub.lan:19443", "P")).toEqual(["https://hub.lan:19443", "P"]);
  expect(at([plain], "https://hub.example.org", null)).toEqual(["https://hub.example.org", null]);
  expect(at([plain, secured], "https://hub.example.org", "P", "https://hub.example.org")).toEqual([
    "https://hub.example.org",
    null,
  ]);
  expect(at([plain, secured], null, "P", "https://router.example:443")).toEqual([
    "https://router.example:443",
    "P",
  ]);
  expect(at([plain, secured], null, "P", "http://10.0.0.5:19104")).toEqual(["http://10.0.0.5:19104", null]);
});
