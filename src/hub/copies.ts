/** Opens the hub's part in a pair: a first, a standby, or a first that was superseded. */
import type { Blobs } from "../blobs/blobs.ts";
import type { Config } from "../config.ts";
import { accept } from "../domain/decision.ts";
import { STANDBY_RETRY_MS } from "../domain/limits.ts";
import { SECOND_MS, type Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import {
  type Copies,
  First,
  type HubUrls,
  type KnownStandbys,
  LISTENER_KINDS,
  NO_COPIES,
  type Superseder,
} from "../service/copies.ts";
import { Following, type Original, OriginalRefuses, type Turn, isOutdone } from "../service/following.ts";
import type { KeyRing } from "../service/keys.ts";
import type { Store } from "../store/store.ts";
import { isLoopback, joinPlaceOf } from "./addresses.ts";
import type { OpenListener } from "./listeners.ts";

export type CopyParts =
  | {
      readonly role: "first";
      /** The standbys that the hub knew when it last ran. */
      readonly known: KnownStandbys;
      readonly remember: (known: KnownStandbys) => void;
      readonly rememberSuperseder: (by: Superseder) => void;
      /** It was promoted: the new term begins before it serves. */
      readonly isPromoted: boolean;
      /** It was promoted while this one, its first, did not answer. */
      readonly predecessor: Original | null;
      readonly forgetPredecessor: () => void;
    }
  | {
      readonly role: "superseded";
      readonly by: Superseder;
      readonly rememberSuperseder: (by: Superseder) => void;
    }
  | { readonly role: "standby"; readonly original: Original };

export type OpenCopies = {
  readonly port: Copies;
  /** False: another hub writes, and this one runs no chore that would. */
  readonly isWriting: boolean;
  readonly lagSeconds: () => number | null;
  start(): void;
  check(): void;
  archived(entry: number): void;
  drain(): void;
  stop(): Promise<void>;
};

type Parts = {
  readonly config: Config;
  readonly log: Log;
  readonly copies?: CopyParts;
  readonly onTurn?: (turn: Turn | "superseded") => void;
};

type Core = {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly keys: KeyRing;
  readonly listeners: readonly OpenListener[];
};

const ALONE: CopyParts = {
  role: "first",
  known: {},
  remember: () => {},
  rememberSuperseder: () => {},
  isPromoted: false,
  predecessor: null,
  forgetPredecessor: () => {},
};

export function openCopies(
  { config, log, copies = ALONE, onTurn = () => {} }: Parts,
  { store, blobs, clock, keys, listeners }: Core,
): OpenCopies {
  const { changes } = store;
  const nothing = {
    isWriting: true,
    lagSeconds: () => null,
    start: () => {},
    check: () => {},
    archived: () => {},
    drain: () => {},
    stop: async () => {},
  };
  if (changes === null) return { ...nothing, port: NO_COPIES };
  const urls = (): HubUrls => urlsOf(config, listeners);
  if (copies.role === "standby") {
    const standby = new Following({
      changes,
      blobs,
      clock,
      log,
      original: copies.original,
      urls,
      onTurn,
    });
    return {
      ...nothing,
      port: standby,
      isWriting: false,
      lagSeconds: () => standby.lagMs / SECOND_MS,
      start: () => standby.start(),
      stop: () => standby.stop(),
    };
  }
  if (copies.role === "first" && copies.isPromoted) changes.promote(clock.now());
  const isSuperseded = copies.role === "superseded";
  const openedAt = clock.steady();
  const first = new First({
    changes,
    clock,
    log,
    urls,
    keys: () => keys.all,
    sync: config.sync,
    isArchived: config.backupChangesMs !== null,
    known: isSuperseded ? {} : copies.known,
    remember: isSuperseded ? () => {} : copies.remember,
    supersededBy: isSuperseded ? copies.by : null,
    rememberSuperseder: copies.rememberSuperseder,
    onSuperseded: () => onTurn("superseded"),
    report: (kind, standby, lagEntries) => {
      const data = { standby, lag_entries: lagEntries };
      const event = { kind, at: clock.now(), nodeId: null, taskId: null, data } as const;
      // The log has it too: while no standby follows, --sync=strict refuses this write as any other.
      store.transact({}, () => accept(null, [{ kind: "event.logged", event }])).catch(() => {});
    },
  });
  store.onCommit(() => first.noteCommit());
  const telling = new AbortController();
  const tell = async ({ promoted }: Original, forget: () => void): Promise<void> => {
    while (!telling.signal.aborted) {
      try {
        await promoted(changes.standing().term, urls(), telling.signal);
        log.info("the former first hub knows now that this one was promoted");
        return forget();
      } catch (error) {
        if (isOutdone(error))
          log.error("another standby of the former first hub was promoted too: only one may accept writes", {
            cause: error.message,
          });
        if (error instanceof OriginalRefuses) return forget(); // it knows: it follows this hub, or a later one
        await Bun.sleep(STANDBY_RETRY_MS); // it is down, or cut off: until it can be told
      }
    }
  };
  return {
    ...nothing,
    port: first,
    isWriting: !isSuperseded,
    lagSeconds: () => (isSuperseded ? (clock.steady() - openedAt) / SECOND_MS : null),
    start: () => {
      if (copies.role === "first" && copies.predecessor)
        void tell(copies.predecessor, copies.forgetPredecessor);
    },
    check: () => first.check(),
    archived: (entry) => first.archived(entry),
    drain: () => first.drain(),
    stop: async () => telling.abort(),
  };
}

/** For each kind of listener the URL that other machines reach best; those of this machine alone if there is no other. */
function urlsOf(config: Config, listeners: readonly OpenListener[]): HubUrls {
  const urls = LISTENER_KINDS.flatMap((kind) => {
    const own = listeners.filter(({ spec, tls }) => kind === (tls ? `${spec.variant}_tls` : spec.variant));
    return own.length === 0 ? [] : [[kind, joinPlaceOf(config, own, null, null).url] as const];
  });
  const reachable = urls.filter(([, url]) => !isLoopback(new URL(url).hostname.replaceAll(/[[\]]/g, "")));
  return Object.fromEntries(reachable.length > 0 ? reachable : urls);
}
