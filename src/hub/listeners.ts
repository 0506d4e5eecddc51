/** Opens the configured listeners of a hub, and stops them. Each fault is one line for the operator. */
import { readFileSync } from "node:fs";
import { problemOf } from "../api/error-table.ts";
import { type Config, ConfigError, type ListenSpec } from "../config.ts";
import type { DataDir } from "../data-dir.ts";
import {
  CERTIFICATE_RENEWED_AFTER_MS,
  DRAIN_MS,
  LOG_PATH_MAX_CHARS,
  LOG_WARNINGS_PER_SECOND,
} from "../domain/limits.ts";
import { openAccessLog } from "../http/access-log.ts";
import { CertificateWatch, Renewal, findCertificateFault } from "../http/certificate.ts";
import type { CrossOrigin } from "../http/cross-origin.ts";
import { type Listener, openListener } from "../http/listener.ts";
import type { RequestMetrics } from "../http/request-metrics.ts";
import type { Tls } from "./own-tls.ts";
import type { Clock } from "../lib/clock.ts";
import { blockListOf, isIP } from "../lib/ip.ts";
import { countingIds } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";

export type OpenListener = Listener & { readonly spec: ListenSpec };

type ListenParts = { readonly config: Config; readonly clock: Clock; readonly log: Log };

/** Never from the Host of a request, which its caller can choose. */
export function publicUrlOf({ publicUrl }: Config, [first]: readonly OpenListener[]): string {
  if (publicUrl !== null || first === undefined) return publicUrl ?? "";
  const isAny = first.host === "0.0.0.0" || first.host === "::";
  const host = isAny ? "127.0.0.1" : first.host.includes(":") ? `[${first.host}]` : first.host;
  return `${first.tls ? "https" : "http"}://${host}:${first.port}`;
}

export type TlsWatch = { start(everyMs: number): void; stop(): Promise<void> };

/** Or a new certificate of the hub's own; null if there is none to watch. */
export function watchCertificate(
  { config, clock, log }: ListenParts,
  inUse: Tls,
  listeners: readonly Listener[],
): TlsWatch | null {
  const { tlsCert: certPath, tlsKey: keyPath } = config;
  const secured = listeners.filter(({ tls }) => tls);
  if (inUse === null || secured.length === 0) return null;
  const onChange: Listener["renewTls"] = (tls) => secured.forEach((listener) => listener.renewTls(tls));
  if (inUse.renew)
    return new Renewal({ make: inUse.renew, onChange, afterMs: CERTIFICATE_RENEWED_AFTER_MS }, clock, log);
  if (certPath === null || keyPath === null) return null;
  return new CertificateWatch({ certPath, keyPath, inUse, onChange }, log);
}

/** If one fails, the caller closes those already in `listeners`. */
export async function listen(
  { config, log }: ListenParts,
  tls: Tls,
  {
    routesOf,
    ...shared
  }: {
    routesOf: (variant: ListenSpec["variant"]) => Common["routes"];
    metrics: RequestMetrics;
    crossOrigin: CrossOrigin;
    lagSeconds: () => number | null;
  },
  listeners: OpenListener[],
): Promise<void> {
  const accessLog = openAccessLog(log, {
    targetMaxChars: LOG_PATH_MAX_CHARS,
    warningsPerSecond: LOG_WARNINGS_PER_SECOND,
  });
  const trustedProxies = blockListOf(config.trustProxy);
  const common = {
    problemOf,
    newRequestId: countingIds(),
    log,
    accessLog,
    trustedProxies,
    ...shared,
  };
  for (const spec of config.listen) {
    const listener = await openSpec(spec, tls, { ...common, routes: routesOf(spec.variant) });
    listeners.push({ ...listener, spec });
  }
}

export async function openTls({ config, dir, clock }: TlsParts): Promise<Tls> {
  const { tlsAuto, tlsCert, tlsKey } = config;
  if (tlsAuto) {
    const { openOwnTls } = await import("./own-tls.ts"); // only for --tls auto
    return openOwnTls(config, dir, clock);
  }
  if (tlsCert === null || tlsKey === null) return null;
  const cert = `${tlsCert} (--tls-cert)`;
  const key = `${tlsKey} (--tls-key)`;
  const names = { cert, key, both: `${cert} with ${key}` };
  return { cert: readPem(tlsCert, cert), key: readPem(tlsKey, key), names, pin: null, renew: null };
}

type TlsParts = { readonly config: Config; readonly dir: DataDir; readonly clock: Clock };

function readPem(path: string, name: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new Error(`cannot read ${name}: ${reasonOf(error)}`, { cause: error });
  }
}

type Common = Omit<Parameters<typeof openListener>[0], "address">;

async function openSpec(spec: ListenSpec, tls: Tls, common: Common): Promise<Listener> {
  const { host, port } = spec;
  const where = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  // Resolves a host name first: for an unknown name, the socket would report a port in use. (Bun 1.4.5's own resolver
  // would keep the process alive for a second.)
  if (isIP(host) === 0)
    await Bun.dns.lookup(host, { backend: "system" }).catch(() => {
      throw new ListenError(`cannot listen on ${where}: there is no such address`);
    });
  try {
    return await openListener({ ...common, address: { host, port, tls: spec.tls ? tls : null } });
  } catch (error) {
    const fault = spec.tls && tls !== null ? await findCertificateFault(tls) : null;
    if (fault !== null) throw new ConfigError(`cannot use ${tls?.names[fault.of]}: ${fault.what}`);
    const reason = LISTEN_REASONS[codeOf(error)] ?? reasonOf(error);
    throw new ListenError(`cannot listen on ${where}: ${reason}`, { cause: error });
  }
}

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use; choose another with --port or --listen",
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES: "permission denied; a port below 1024 needs root or the capability CAP_NET_BIND_SERVICE",
};

export class ListenError extends Error {
  override readonly name = "ListenError";
}

/** At most DRAIN_MS. */
export async function stopListeners(listeners: readonly Listener[]): Promise<void> {
  let timer: Timer | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), DRAIN_MS);
  });
  const stopped = Promise.all(listeners.map((listener) => listener.stop(false)));
  const outcome = await Promise.race([stopped, late]);
  clearTimeout(timer);
  if (outcome === "late") await Promise.all(listeners.map((listener) => listener.stop(true)));
}
