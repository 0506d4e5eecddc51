/**
 * Finds the fault in a TLS certificate and its key, and notices when these files change. Bun reports only OpenSSL's
 * error, which does not say which of the two is wrong.
 */
import { readFile } from "node:fs/promises";
import type { Clock } from "../lib/clock.ts";
import { type Log, causeOf } from "../lib/log.ts";
import { reasonOf } from "../lib/reason.ts";

/** `what`: a phrase that follows the name of the file. */
export type CertificateFault = { readonly of: "cert" | "key" | "both"; readonly what: string };

/** Null: both, in PEM, are valid and belong together. */
export async function findCertificateFault(pair: {
  readonly cert: string;
  readonly key: string;
}): Promise<CertificateFault | null> {
  const { X509Certificate, createPrivateKey } = await import("node:crypto"); // 5 MiB: only when needed
  const certificate = nullIfThrows(() => new X509Certificate(pair.cert));
  if (certificate === null) return { of: "cert", what: "it is not a complete certificate in PEM form" };
  const key = nullIfThrows(() => createPrivateKey(pair.key));
  if (key === null && /ENCRYPTED/.test(pair.key))
    return { of: "key", what: "it is encrypted; the hub needs a key without a passphrase" };
  if (key === null) return { of: "key", what: "it is not a complete private key in PEM form" };
  return certificate.checkPrivateKey(key)
    ? null
    : { of: "both", what: "the key does not belong to the certificate" };
}

function nullIfThrows<T>(make: () => T): T | null {
  try {
    return make();
  } catch {
    return null;
  }
}

type Pair = { readonly cert: string; readonly key: string };

export type WatchedCertificate = {
  readonly certPath: string;
  readonly keyPath: string;
  readonly inUse: Pair;
  readonly onChange: (pair: Pair) => void;
};

/**
 * A changed pair is used once both are valid and belong together: the files are replaced one after the other. A fault
 * that two checks find is logged once.
 */
export class CertificateWatch {
  readonly #watched: WatchedCertificate;
  readonly #log: Log;
  #inUse: Pair;
  #fault: string | null = null;
  #isLogged = false;
  #timer: Timer | null = null;
  #checking: Promise<void> | null = null;

  constructor(watched: WatchedCertificate, log: Log) {
    this.#watched = watched;
    this.#log = log;
    this.#inUse = watched.inUse;
  }

  start(everyMs: number): void {
    this.#timer = setInterval(() => {
      this.#checking ??= this.#check().finally(() => (this.#checking = null));
    }, everyMs).unref();
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#checking;
  }

  async #check(): Promise<void> {
    const fault = await this.#applyChange();
    if (fault !== null && fault === this.#fault && !this.#isLogged) {
      this.#log.warn("the changed TLS certificate cannot be used; the old one stays in use", {
        cause: fault,
      });
      this.#isLogged = true;
    }
    if (fault !== this.#fault) this.#isLogged = false;
    this.#fault = fault;
  }

  /** Null when there is none, or no change. */
  async #applyChange(): Promise<string | null> {
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

export type RenewedCertificate = {
  readonly make: () => Promise<Pair>;
  readonly onChange: (pair: Pair) => void;
  readonly afterMs: number;
};

/** By the wall clock: also after it has jumped, as on a machine that starts without the time. */
export class Renewal {
  readonly #make: () => Promise<Pair>;
  readonly #onChange: (pair: Pair) => void;
  readonly #clock: Clock;
  readonly #log: Log;
  #madeAt: number;
  #timer: Timer | null = null;
  #making: Promise<void> | null = null;

  readonly #afterMs: number;

  constructor({ make, onChange, afterMs }: RenewedCertificate, clock: Clock, log: Log) {
    this.#make = make;
    this.#onChange = onChange;
    this.#afterMs = afterMs;
    this.#clock = clock;
    this.#log = log;
    this.#madeAt = clock.now();
  }

  start(everyMs: number): void {
    this.#timer = setInterval(() => {
      this.#making ??= this.check().finally(() => (this.#making = null));
    }, everyMs).unref();
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#making;
  }

  async check(): Promise<void> {
    const now = this.#clock.now();
    if (Math.abs(now - this.#madeAt) < this.#afterMs) return;
    try {
      this.#onChange(await this.#make());
      this.#madeAt = now;
      this.#log.info("the hub's own TLS certificate was renewed");
    } catch (error) {
      this.#log.error("the hub's own TLS certificate could not be renewed", { cause: causeOf(error) });
    }
  }
}

const NAMES = { cert: "--tls-cert", key: "--tls-key", both: "--tls-cert with --tls-key" } as const;
