/**
 * Finds the fault in a TLS certificate and key that a listener has refused. Bun reports only OpenSSL's error, which does
 * not say which of the two is wrong.
 */

/** `of`: which of the two. `what`: a phrase that follows the name of the file in a sentence. */
export type CertificateFault = { readonly of: "cert" | "key" | "both"; readonly what: string };

/** @param pair both in PEM. Returns null when both are valid and belong together. */
export async function findCertificateFault(pair: {
  readonly cert: string;
  readonly key: string;
}): Promise<CertificateFault | null> {
  const { X509Certificate, createPrivateKey } = await import("node:crypto"); // takes 5 MiB, so only after a refusal
  const certificate = nullIfThrows(() => new X509Certificate(pair.cert));
  if (certificate === null)
    return { of: "cert", what: "it is no certificate in PEM form, or not a whole one" };
  const key = nullIfThrows(() => createPrivateKey(pair.key));
  if (key === null && /ENCRYPTED/.test(pair.key))
    return { of: "key", what: "it is encrypted; the hub takes a key without a passphrase" };
  if (key === null) return { of: "key", what: "it is no private key in PEM form, or not a whole one" };
  return certificate.checkPrivateKey(key) ? null : { of: "both", what: "the key is not the certificate's" };
}

function nullIfThrows<T>(make: () => T): T | null {
  try {
    return make();
  } catch {
    return null;
  }
}
