/**
 * Looks up the names of receivers. A lookup cannot be ended, and the resolver of the system blocks a thread of the pool
 * that files are read and written with. So c-ares does it, which blocks none and knows /etc/hosts. Only names of mDNS
 * (RFC 6762) need the resolver of the system: one at a time.
 *
 * Bounds: one lookup of a name at a time; a name that has failed is not looked up again for NAME_FAILED_MS.
 */
import { type Clock, MINUTE_MS } from "../lib/clock.ts";

export const NAME_FAILED_MS = 1 * MINUTE_MS;
/** Names that are remembered, because they are being looked up or have failed. */
const NAMES_MAX = 1_000;

/** Resolves a name to its addresses. */
export type Resolve = (name: string) => Promise<readonly string[]>;

type Backend = "c-ares" | "system";
type Lookup = (
  name: string,
  options: { backend: Backend },
) => Promise<readonly { readonly address: string }[]>;

export function nameResolver(clock: Pick<Clock, "steady">, lookup: Lookup = Bun.dns.lookup): Resolve {
  type Known = { readonly addresses: Promise<readonly string[]>; failedAt: number | null };
  const known = new Map<string, Known>();
  let lastLocal: Promise<unknown> = Promise.resolve();

  const lookUp = async (name: string): Promise<readonly string[]> => {
    const isLocal = /\.local\.?$/i.test(name);
    const before = lastLocal;
    const found = isLocal
      ? before.then(() => lookup(name, { backend: "system" }))
      : lookup(name, { backend: "c-ares" });
    if (isLocal) lastLocal = found.catch(() => {});
    return (await found).map(({ address }) => address);
  };

  return (name) => {
    const before = known.get(name);
    if (before && (before.failedAt === null || clock.steady() - before.failedAt < NAME_FAILED_MS))
      return before.addresses;
    const [oldest] = known.keys();
    if (known.size >= NAMES_MAX && oldest !== undefined) known.delete(oldest);
    known.delete(name); // so that it becomes the newest
    const lookedUp: Known = { addresses: lookUp(name), failedAt: null };
    known.set(name, lookedUp);
    lookedUp.addresses.then(
      () => known.get(name) === lookedUp && known.delete(name),
      () => (lookedUp.failedAt = clock.steady()),
    );
    return lookedUp.addresses;
  };
}
