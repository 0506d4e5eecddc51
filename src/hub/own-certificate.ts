/**
 * The certificate authority of a hub with `--tls auto`, and the certificate that it signs for the hub's listeners: ECDSA
 * with P-256, X.509 version 3 (RFC 5280).
 *
 * Clients pin the authority: the line of an invitation has the SHA-256 of its public key, and a client that has joined
 * trusts its certificate and no other. Every certificate has the name SERVER_NAME, which clients ask for, because a hub
 * is reached at addresses that it does not know.
 *
 * Must not: read or write files; import node:crypto, which loads all of Node's streams.
 */
import { AUTHORITY_ENDS_AT, CERTIFICATE_BACKDATE_MS, CERTIFICATE_MS } from "../domain/limits.ts";
import { must } from "../lib/assert.ts";
import * as der from "../lib/der.ts";
import { ipBytes, isIP } from "../lib/ip.ts";

/** `.internal` is reserved for private use. */
export const SERVER_NAME = "hub.luxhub.internal";

const P256 = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNING = { name: "ECDSA", hash: "SHA-256" } as const;
const SERIAL_BYTES = 16;
const COORDINATE_BYTES = 32;
/** RFC 7093, method 1. */
const KEY_ID_BYTES = 20;
const PIN_SHOWN_CHARS = 8;

const OID = {
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  commonName: "2.5.4.3",
  subjectKeyId: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyId: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
} as const;

/** Bits of the key usage (RFC 5280, 4.2.1.3), from the highest. */
const DIGITAL_SIGNATURE = 0x80;
const CERTIFICATE_SIGN = 0x04;
const CRL_SIGN = 0x02;

/** `cert` in PEM; `pin`: the SHA-256 of the public key, in base64url. */
export type Authority = {
  readonly privateKey: CryptoKey;
  readonly publicKey: PublicKey;
  readonly cert: string;
  readonly pin: string;
};

/** `info`: the SubjectPublicKeyInfo in DER. `id`: identifies the key in certificates. */
type PublicKey = { readonly info: der.Bytes; readonly id: der.Bytes; readonly hash: der.Bytes };

export async function makeAuthorityKey(): Promise<string> {
  const { privateKey } = await crypto.subtle.generateKey(P256, true, ["sign", "verify"]);
  return der.pem("PRIVATE KEY", new Uint8Array(await crypto.subtle.exportKey("pkcs8", privateKey)));
}

/**
 * `cert`: its certificate, if there is one: another for the same key is as good for those who pinned it. Null when
 * makeAuthorityKey() has not made the key.
 */
export async function openAuthority(
  key: string,
  cert: string | null,
  now: number,
): Promise<Authority | null> {
  const pkcs8 = der.unpem("PRIVATE KEY", key);
  if (pkcs8 === null) return null;
  let privateKey: CryptoKey;
  try {
    privateKey = await crypto.subtle.importKey("pkcs8", pkcs8, P256, true, ["sign"]);
  } catch {
    return null; // of another kind, or damaged
  }
  const publicKey = await publicKeyOf(await publicHalf(privateKey));
  const authority = { privateKey, publicKey, pin: publicKey.hash.toBase64(BASE64URL) };
  const kept = cert === null ? null : der.unpem("CERTIFICATE", cert);
  if (cert !== null && kept !== null && Buffer.from(kept).includes(publicKey.info))
    return { ...authority, cert };
  return { ...authority, cert: await makeAuthorityCertificate(privateKey, publicKey, now) };
}

const BASE64URL = { alphabet: "base64url", omitPadding: true } as const;

function makeAuthorityCertificate(privateKey: CryptoKey, publicKey: PublicKey, now: number): Promise<string> {
  const name = authorityName(publicKey);
  return makeCertificate(privateKey, {
    issuer: name,
    subject: name,
    publicKey,
    from: now - CERTIFICATE_BACKDATE_MS,
    until: AUTHORITY_ENDS_AT,
    extensions: [
      extension(OID.basicConstraints, der.sequence(der.boolean(true), der.integer(Uint8Array.of(0))), true),
      extension(OID.keyUsage, bits(CERTIFICATE_SIGN | CRL_SIGN), true),
      extension(OID.subjectKeyId, der.octetString(publicKey.id)),
    ],
  });
}

/**
 * Signed by the authority. `names`: host names and addresses by which the hub may be called. In PEM; `cert` is followed
 * by the authority's.
 */
export async function makeServerCertificate(
  authority: Authority,
  names: readonly string[],
  now: number,
): Promise<{ readonly cert: string; readonly key: string }> {
  const { privateKey, publicKey: publicHalf } = await crypto.subtle.generateKey(P256, true, [
    "sign",
    "verify",
  ]);
  const publicKey = await publicKeyOf(publicHalf);
  const certificate = await makeCertificate(authority.privateKey, {
    issuer: authorityName(authority.publicKey),
    subject: commonName("luxhub"),
    publicKey,
    from: now - CERTIFICATE_BACKDATE_MS,
    until: now + CERTIFICATE_MS,
    extensions: [
      extension(OID.basicConstraints, der.sequence(), true),
      extension(OID.keyUsage, bits(DIGITAL_SIGNATURE), true),
      extension(OID.extendedKeyUsage, der.sequence(der.objectId(OID.serverAuth))),
      extension(OID.subjectAltName, der.sequence(...[SERVER_NAME, ...names].map(alternativeName))),
      extension(OID.subjectKeyId, der.octetString(publicKey.id)),
      extension(OID.authorityKeyId, der.sequence(der.tagged(CONTEXT, authority.publicKey.id))),
    ],
  });
  const pkcs8 = new Uint8Array(await crypto.subtle.exportKey("pkcs8", privateKey));
  return { cert: certificate + authority.cert, key: der.pem("PRIVATE KEY", pkcs8) };
}

type Fields = {
  readonly issuer: der.Bytes;
  readonly subject: der.Bytes;
  readonly publicKey: PublicKey;
  readonly from: number;
  readonly until: number;
  readonly extensions: readonly der.Bytes[];
};

/** Tags of choices and of optional fields: `[N]`, or with CONSTRUCTED around another value. */
const CONTEXT = 0x80;
const CONSTRUCTED = 0x20;
const VERSION = CONTEXT | CONSTRUCTED;
const EXTENSIONS = CONTEXT | CONSTRUCTED | 3;
const DNS_NAME = CONTEXT | 2;
const IP_ADDRESS = CONTEXT | 7;
const VERSION_3 = 2;

async function makeCertificate(signer: CryptoKey, fields: Fields): Promise<string> {
  const algorithm = der.sequence(der.objectId(OID.ecdsaWithSha256));
  const serial = crypto.getRandomValues(new Uint8Array(SERIAL_BYTES));
  const toSign = der.sequence(
    der.tagged(VERSION, der.integer(Uint8Array.of(VERSION_3))),
    der.integer(serial),
    algorithm,
    fields.issuer,
    der.sequence(der.time(fields.from), der.time(fields.until)),
    fields.subject,
    fields.publicKey.info,
    der.tagged(EXTENSIONS, der.sequence(...fields.extensions)),
  );
  const signature = new Uint8Array(await crypto.subtle.sign(SIGNING, signer, toSign));
  const [r, s] = [signature.subarray(0, COORDINATE_BYTES), signature.subarray(COORDINATE_BYTES)];
  const signed = der.bitString(der.sequence(der.integer(r), der.integer(s)));
  return der.pem("CERTIFICATE", der.sequence(toSign, algorithm, signed));
}

function authorityName({ hash }: PublicKey): der.Bytes {
  return commonName(`luxhub ${hash.toBase64(BASE64URL).slice(0, PIN_SHOWN_CHARS)}`);
}

function commonName(text: string): der.Bytes {
  return der.sequence(der.set(der.sequence(der.objectId(OID.commonName), der.utf8String(text))));
}

function extension(oid: string, value: Uint8Array, isCritical = false): der.Bytes {
  return der.sequence(der.objectId(oid), ...(isCritical ? [der.boolean(true)] : []), der.octetString(value));
}

/** Without the zeros at its end, as DER wants it. */
function bits(flags: number): der.Bytes {
  const unused = 31 - Math.clz32(flags & -flags);
  return der.bitString(Uint8Array.of(flags), unused);
}

function alternativeName(name: string): der.Bytes {
  return isIP(name) === 0
    ? der.tagged(DNS_NAME, new TextEncoder().encode(name))
    : der.tagged(IP_ADDRESS, ipBytes(name));
}

const WHOLE = "a key of WebCrypto has all its parts";

/** WebCrypto exports the public half of a private key only as JSON. */
async function publicHalf(privateKey: CryptoKey): Promise<CryptoKey> {
  const { kty, crv, x, y } = await crypto.subtle.exportKey("jwk", privateKey);
  const half = { kty: must(kty, WHOLE), crv: must(crv, WHOLE), x: must(x, WHOLE), y: must(y, WHOLE) };
  return crypto.subtle.importKey("jwk", half, P256, true, ["verify"]);
}

async function publicKeyOf(key: CryptoKey): Promise<PublicKey> {
  const info = new Uint8Array(await crypto.subtle.exportKey("spki", key));
  const hash = await sha256(info);
  return { info, hash, id: hash.slice(0, KEY_ID_BYTES) };
}

async function sha256(bytes: Uint8Array): Promise<der.Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new Uint8Array(bytes)));
}
