/**
 * A TLS certificate and key in files: finds the fault in a pair, and notices a changed one. Bun reports only OpenSSL's
 * error, which does not say which of the two is wrong.
 */
import { readFile } from "node:fs/promises";
import { type Log, causeOf } from "../lib/log.ts";
import { reasonOf } from "../lib/reason.ts";

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

/** Both in PEM. */
type Pair = { readonly cert: string; readonly key: string };

export type WatchedPair = {
  readonly certPath: string;
  readonly keyPath: string;
  /** As the listeners have it now. */
  readonly inUse: Pair;
  /** Gets a changed pair that is well. */
  readonly onChange: (pair: Pair) => void;
};

/**
 * Looks at the two files again and again. A changed pair is used when both are well and belong together: until then the
 * old one stays, because they are replaced one after the other. What stays wrong for two looks is logged once.
 */
export class CertificateWatch {
  readonly #watched: WatchedPair;
  readonly #log: Log;
  #inUse: Pair;
  /** What was wrong at the last look. */
  #fault: string | null = null;
  #isLogged = false;
  #timer: Timer | null = null;
  #looking: Promise<void> | null = null;

  constructor(watched: WatchedPair, log: Log) {
    this.#watched = watched;
    this.#log = log;
    this.#inUse = watched.inUse;
  }

  start(everyMs: number): void {
    this.#timer = setInterval(() => {
      this.#looking ??= this.#look().finally(() => (this.#looking = null));
    }, everyMs).unref();
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#looking;
  }

  async #look(): Promise<void> {
    const fault = await this.#takeChange();
    if (fault !== null && fault === this.#fault && !this.#isLogged) {
      this.#log.warn("the changed TLS certificate cannot be used; the one before it stays", { cause: fault });
      this.#isLogged = true;
    }
    if (fault !== this.#fault) this.#isLogged = false;
    this.#fault = fault;
  }

  /** What keeps a change from being used; null when it is in use, or there is none. */
  async #takeChange(): Promise<string | null> {
    const { certPath, keyPath, onChange } = this.#watched;
    try {
      const [cert, key] = await Promise.all([readFile(certPath, "utf8"), readFile(keyPath, "utf8")]);
      if (cert === this.#inUse.cert && key === this.#inUse.key) return null;
      const fault = await findCertificateFault({ cert, key });
      if (fault !== null) return `${NAMES[fault.of]}: ${fault.what}`;
      onChange({ cert, key });
      this.#inUse = { cert, key };
      const { X509Certificate } = await import("node:crypto");
      const { validTo } = new X509Certificate(cert);
      this.#log.info("the TLS certificate was changed", { file: certPath, valid_to: validTo });
      return null;
    } catch (error) {
      return error instanceof Error && "path" in error ? reasonOf(error) : causeOf(error);
    }
  }
}

const NAMES = { cert: "--tls-cert", key: "--tls-key", both: "--tls-cert with --tls-key" } as const;
