/**
 * What is wrong with a certificate and its key that a listener does not take. Asked only then: Bun says in OpenSSL's words
 * that something is wrong, and not with which of the two.
 */

/** `of` says which of them, and `what` how it is: the end of a sentence that begins with its name. */
export type CertificateFault = { readonly of: "cert" | "key" | "both"; readonly what: string };

/** @param pair both in PEM; null when each is well and they belong together */
export async function faultOfPair(pair: {
  readonly cert: string;
  readonly key: string;
}): Promise<CertificateFault | null> {
  const { X509Certificate, createPrivateKey } = await import("node:crypto"); // takes 5 MiB, which no other start needs
  const certificate = made(() => new X509Certificate(pair.cert));
  if (certificate === null)
    return { of: "cert", what: "it is no certificate in PEM form, or not a whole one" };
  const key = made(() => createPrivateKey(pair.key));
  if (key === null && /ENCRYPTED/.test(pair.key))
    return { of: "key", what: "it is encrypted; the hub takes a key without a passphrase" };
  if (key === null) return { of: "key", what: "it is no private key in PEM form, or not a whole one" };
  return certificate.checkPrivateKey(key) ? null : { of: "both", what: "the key is not the certificate's" };
}

function made<T>(make: () => T): T | null {
  try {
    return make();
  } catch {
    return null;
  }
}
