/**
 * The certificate of a hub with `--tls auto`. Its authority is in the data directory: a private key, which the first
 * start makes, and the authority's certificate, which other programs may be given. The listeners' own key and certificate
 * are made at each start and again every month, and are only in memory.
 */
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { type Config, ConfigError } from "../config.ts";
import type { DataDir } from "../data-dir.ts";
import { makeAuthorityKey, makeServerCertificate, openAuthority } from "./own-certificate.ts";
import type { Clock } from "../lib/clock.ts";
import { isIP } from "../lib/ip.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import { refuseWorldWritable } from "../permissions.ts";
import { readTextFileIfThere } from "../text-file.ts";
import { isEverywhere, ownAddresses } from "./addresses.ts";

export type Tls = {
  readonly cert: string;
  readonly key: string;
  readonly names: Readonly<Record<"cert" | "key" | "both", string>>;
  /** Null for a certificate of the operator. */
  readonly pin: string | null;
  /** Null for a certificate of the operator. */
  readonly renew: (() => Promise<{ readonly cert: string; readonly key: string }>) | null;
} | null;

const FILE_MODE = 0o600;

/** @throws {ConfigError} for a key that the hub has not made; {Error} one line, when a file cannot be read or written */
export async function openOwnTls(config: Config, dir: DataDir, clock: Clock): Promise<Tls> {
  const { authorityKeyFile: keyFile, authorityFile: certFile } = dir;
  refuseWorldWritable(keyFile, "the key of --tls auto");
  const stored = readTextFileIfThere(keyFile);
  const key = stored ?? (await makeAuthorityKey());
  if (stored === null) write(keyFile, key);
  const storedCert = readTextFileIfThere(certFile);
  const authority = await openAuthority(key, storedCert, clock.now());
  if (authority === null)
    throw new ConfigError(
      `${keyFile} is no key that luxhub has made: restore it from a backup, or delete it; then every machine must join again`,
    );
  if (authority.cert !== storedCert) {
    rmSync(certFile, { force: true });
    write(certFile, authority.cert);
  }
  const renew = () => makeServerCertificate(authority, namesOf(config), clock.now());
  const name = "the certificate of --tls auto";
  return { ...(await renew()), names: { cert: name, key: name, both: name }, pin: authority.pin, renew };
}

/** By which programs without the pin may call the hub, such as browsers. */
function namesOf({ listen, publicUrl, allowedHosts }: Config): readonly string[] {
  const given = [
    ...listen.filter(({ host }) => !isEverywhere(host)).map(({ host }) => host),
    ...allowedHosts,
    ...(publicUrl === null ? [] : [new URL(publicUrl).hostname.replaceAll(/[[\]]/g, "")]),
  ];
  const names = ["localhost", hostname(), "127.0.0.1", "::1", ...ownAddresses(), ...given];
  return [...new Set(names.filter((name) => isIP(name) !== 0 || /^[\w-]+(?:\.[\w-]+)*$/.test(name)))];
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text, { mode: FILE_MODE, flag: "wx", flush: true });
    chmodSync(file, FILE_MODE);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") rmSync(file, { force: true }); // a part of a key would stop the next start
    throw new Error(`cannot write ${file}: ${reasonOf(error)}`, { cause: error });
  }
}
