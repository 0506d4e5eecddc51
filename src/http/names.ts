/**
 * Looks up the names of receivers. A lookup cannot be ended, and the resolver of the system blocks a thread of the pool
 * that files are read and written with. So c-ares does it, which blocks none and knows /etc/hosts. Only names of mDNS
 * (RFC 6762) need the resolver of the system: one at a time. Those of administrators wait for one another; a client of A2A
 * is refused meanwhile, so that its names keep nobody waiting for longer than one lookup.
 *
 * Bounds: one lookup of a name at a time; a name that has failed is not looked up again for NAME_FAILED_MS.
 */
import { type Clock, MINUTE_MS } from "../lib/clock.ts";

export const NAME_FAILED_MS = 1 * MINUTE_MS;
/** Names that are being looked up, or have failed. */
const NAMES_MAX = 1_000;

/** `webhook`: an administrator's URL; `push`: that of any client of A2A. */
export type Sender = "webhook" | "push";

/** @throws {Error} with the code NAMES_BUSY: another name of mDNS is looked up */
export type Resolve = (name: string, sender: Sender) => Promise<readonly string[]>;

export const NAMES_BUSY = "NAMES_BUSY";

type Backend = "c-ares" | "system";
type Lookup = (
  name: string,
  options: { backend: Backend },
) => Promise<readonly { readonly address: string }[]>;

export function nameResolver(clock: Pick<Clock, "steady">, lookup: Lookup = Bun.dns.lookup): Resolve {
  type Known = { readonly addresses: Promise<readonly string[]>; failedAt: number | null };
  const known = new Map<string, Known>();
  let lastLocal: Promise<unknown> | null = null;

  const lookUp = async (name: string): Promise<readonly string[]> => {
    const answer = isLocal(name)
      ? (lastLocal ?? Promise.resolve()).then(() => lookup(name, { backend: "system" }))
      : lookup(name, { backend: "c-ares" });
    if (isLocal(name)) {
      const ended = answer.then(end, end);
      lastLocal = ended;
      function end(): void {
        if (lastLocal === ended) lastLocal = null;
      }
    }
    return (await answer).map(({ address }) => address);
  };

  return (name, sender) => {
    const before = known.get(name);
    if (before && (before.failedAt === null || clock.steady() - before.failedAt < NAME_FAILED_MS))
      return before.addresses;
    if (sender === "push" && lastLocal !== null && isLocal(name))
      return Promise.reject(Object.assign(new Error("Names of mDNS are looked up."), { code: NAMES_BUSY }));
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

function isLocal(name: string): boolean {
  return /\.local\.?$/i.test(name);
}
