/** The endpoints of a second copy of the hub: standby/invite, copy/* for the standby, and promote (docs/second-copy.md). */
import * as z from "zod/mini";
import { STANDBY_WAIT_SECONDS } from "../domain/limits.ts";
import { disableIdleTimeout } from "../http/exchange.ts";
import { must } from "../lib/assert.ts";
import { SECOND_MS, isoTime } from "../lib/clock.ts";
import {
  type CopyReport,
  type HubUrls,
  LISTENER_KINDS,
  type Piece,
  type Promoted,
  shownUrl,
} from "../service/copies.ts";
import type { NewKey } from "../service/keys.ts";
import { uncommitted } from "../store/store.ts";
import type { JsonAnswer } from "./answer.ts";
import { type Endpoint, rawEndpoint, readEndpoint, writeEndpoint } from "./endpoint.ts";
import { keyBoundElsewhere } from "./error-table.ts";
import { type JoinPlace, type PlaceFor } from "./invitations.ts";
import * as field from "./request-fields.ts";
import { time } from "./response-schemas.ts";
import { about, flag, maybeString, maybeWhole, nullable, number, optional, string, whole } from "./about.ts";

export const copySchema = () =>
  z.strictObject({
    role: about(
      z.enum(["first", "standby", "superseded"]),
      "`first`: it accepts writes; `standby`: a copy, which answers reads; `superseded`: its standby was promoted.",
    ),
    term: whole("One more than the promotions so far."),
    entry: maybeWhole("The number of the last entry of the change log; null while none is kept."),
    hub: maybeString("The hub that accepts writes, if it is another one."),
    standbys: about(
      z.array(
        z.strictObject({
          name: string("The name of the standby."),
          url: maybeString("Where it listens; null: it has not said so."),
          following: flag("Whether it follows."),
          lag_entries: whole("How many entries it lacks."),
          lag_s: number("The age of the oldest entry that it lacks, in seconds: what may be lost."),
          since: nullable(time(), "Since when it follows, or does not; null: it never did."),
          fault: maybeString("Why it does not follow, as far as this hub knows."),
        }),
      ),
      "The copies that follow this hub; of a standby, the standby itself.",
    ),
  });

/** Without what tells strangers how to reach the hubs. */
export function encodeOpenCopy(report: CopyReport): JsonAnswer {
  const { role, term, entry, copies } = report;
  const standbys = copies.map(({ isFollowing, lagEntries, lagMs }) => ({
    following: isFollowing,
    lag_entries: lagEntries,
    lag_s: lagMs / SECOND_MS,
  }));
  return { role, term, entry, standbys };
}

export function encodeCopy({ role, term, entry, hub, copies }: CopyReport): JsonAnswer {
  return {
    role,
    term,
    entry,
    hub: hub && shownUrl(hub),
    standbys: copies.map((copy) => ({
      name: copy.name,
      url: copy.url,
      following: copy.isFollowing,
      lag_entries: copy.lagEntries,
      lag_s: copy.lagMs / SECOND_MS,
      since: copy.since === null ? null : isoTime(copy.since),
      fault: copy.fault,
    })),
  };
}

const invite = (placeFor: PlaceFor) =>
  writeEndpoint({
    path: "/api/v1/standby/invite",
    auth: "admin",
    summary: "Makes a key for a standby, and the line with which its machine joins",
    rejections: ["key_exists", "keys_limit", "entries_missing", "key_bound_to_other_node"],
    answersSecret: true,
    input: () =>
      z.object({
        name: about(field.keyName(), "The name of the standby, and of its key."),
        url: optional(
          field.hubUrl(),
          "The hub's URL in the line; if left out, the hub chooses one of its addresses.",
        ),
      }),
    answer: () =>
      z.strictObject({
        name: string("The name of the standby, and of its key."),
        line: string(
          "The argument of `luxhub join`: the URL, the secret and the hash. It is shown only here.",
        ),
        url: string("The hub's URL in the line."),
        other_urls: about(z.array(z.string()), "Other URLs at which the hub may be reached."),
        pin: maybeString(
          "The SHA-256 of the public key of the hub's own authority; null: nothing is pinned.",
        ),
      }),
    handle: async ({ services, transact, key: caller }, { name, url = null }) => {
      if (caller !== null && caller.nodeId !== null) throw keyBoundElsewhere(caller.nodeId);
      services.copies.prepare();
      const key = {
        keyId: name,
        role: "standby",
        variant: null,
        nodeId: null,
        mintMicro: null,
        expiresAt: null,
      } as const;
      return services.keys.add(transact, key, { at: placeFor(url) });
    },
    encode: ({ key, secret, at }: NewKey & { readonly at: JoinPlace }) => ({
      name: key.keyId,
      line: standbyLine(at, secret),
      url: at.url,
      other_urls: at.otherUrls,
      pin: at.pin,
    }),
  });

/** What `luxhub join` takes on the machine of a standby. */
export function standbyLine({ url, pin }: Pick<JoinPlace, "url" | "pin">, secret: string): string {
  return `${url}/#standby.${secret}${pin === null ? "" : `.${pin}`}`;
}

const hubUrls = () =>
  z.object({
    A: optional(field.hubUrl(), "The base URL for variant A."),
    A_tls: optional(field.hubUrl(), "The same, with TLS."),
    B: optional(field.hubUrl(), "The base URL for variant B."),
    B_tls: optional(field.hubUrl(), "The same, with TLS."),
  });

/** Without what is undefined. */
function presentUrls(urls: { readonly [kind in keyof HubUrls]: string | undefined }): HubUrls {
  return Object.fromEntries(
    LISTENER_KINDS.flatMap((kind) => (urls[kind] === undefined ? [] : [[kind, urls[kind]]])),
  );
}

const changes = readEndpoint({
  path: "/api/v1/copy/changes",
  auth: "standby",
  summary: "For a standby: waits for the entries after the last one that it has on its disk",
  once: true,
  input: () =>
    z.object({
      after: about(field.eventCursor(), "The last entry that the standby has on its disk."),
      at: about(field.eventCursor(), "When that entry was committed, epoch milliseconds."),
      term: about(field.eventCursor(), "The term of the standby."),
      url_a: optional(field.hubUrl(), "Where the standby listens for variant A."),
      url_a_tls: optional(field.hubUrl(), "The same, with TLS."),
      url_b: optional(field.hubUrl(), "Where the standby listens for variant B."),
      url_b_tls: optional(field.hubUrl(), "The same, with TLS."),
    }),
  answer: () =>
    z.strictObject({
      entries: about(
        z.array(
          z.strictObject({
            n: whole("The number of the entry."),
            at: whole("When it was committed, epoch milliseconds."),
            body: string("Its statements and their parameters, as JSON."),
          }),
        ),
        "The next entries, oldest first; none: there was none in time.",
      ),
      n: whole("The last entry that there is."),
      term: whole("The term of this hub."),
      hubs: about(z.array(hubUrls()), "This hub, then its standbys, one of which may be promoted."),
    }),
  handle: (call, { after, at, term, url_a: A, url_a_tls: A_tls, url_b: B, url_b_tls: B_tls }) =>
    call.hold((signal) =>
      call.services.copies.entriesAfter(
        {
          name: must(call.key, "the endpoint needs a key").keyId,
          after,
          at,
          term,
          urls: presentUrls({ A, A_tls, B, B_tls }),
        },
        STANDBY_WAIT_SECONDS * SECOND_MS,
        signal,
      ),
    ),
  encode: ({ entries, n, term, hubs }: Piece) => ({
    entries: entries.map((entry) => ({ n: entry.n, at: entry.at, body: entry.body })),
    n: n ?? 0,
    term,
    hubs: hubs.map((urls) => ({ ...urls })),
  }),
});

const promoted = writeEndpoint({
  path: "/api/v1/copy/promoted",
  auth: "standby",
  summary: "From a standby that is promoted: this hub accepts no writes any more",
  rejections: ["stale_term"],
  notInBatch: "must be sent alone",
  input: () =>
    z.object({
      term: about(z.int().check(z.positive()), "The new term."),
      urls: about(hubUrls(), "Where the promoted hub listens, by variant."),
      line: about(
        z.string().check(z.maxLength(1_000)),
        "What makes this hub its standby: the argument of `luxhub join`.",
      ),
    }),
  answer: () => z.strictObject({ n: whole("The last entry of this hub.") }),
  handle: async ({ services, key }, { term, urls, line }) => {
    const by = { name: key?.keyId ?? "", term, urls: presentUrls(urls), line };
    return uncommitted({ n: await services.copies.supersede(by) });
  },
  encode: ({ n }: { readonly n: number }) => ({ n }),
});

const promote = writeEndpoint({
  path: "/api/v1/promote",
  auth: "admin",
  summary: "Makes this standby the hub that accepts writes",
  rejections: ["not_a_standby", "stale_term"],
  notInBatch: "must be sent alone",
  emptyBody: true,
  input: () => z.object({}),
  answer: () =>
    z.strictObject({
      entry: whole("The last entry that this hub has."),
      at: about(time(), "When that entry was written, by the clock of the first hub."),
      missing: maybeWhole(
        "How many entries of the first hub it lacks, as far as it knows; null: the first hub did not answer.",
      ),
      lag_s: number("How far behind it was when it last heard of the first hub, in seconds."),
    }),
  handle: async ({ services }) => uncommitted(await services.copies.promote()),
  encode: ({ entry, at, missing, lagMs }: Promoted) => ({
    entry,
    at: isoTime(at),
    missing,
    lag_s: lagMs / SECOND_MS,
  }),
});

/** @param openBase the archive of a backup, as it is made */
export function copyEndpoints(
  placeFor: PlaceFor,
  openBase: (signal: AbortSignal) => Promise<ReadableStream<Uint8Array>>,
): readonly Endpoint[] {
  /** By key. A standby that asks again has lost the one before, though its connection may seem to be open for long. */
  const taken = new Map<string, AbortController>();
  const base = rawEndpoint({
    path: "/api/v1/copy/base",
    auth: "standby",
    summary: "For a standby: a backup of the hub with its secrets, at which its copy begins",
    rejections: ["entries_missing"],
    handle: async ({ exchange, services, key }) => {
      const { keyId } = must(key, "the endpoint needs a key");
      services.copies.prepare(keyId);
      disableIdleTimeout(exchange);
      taken.get(keyId)?.abort();
      const again = new AbortController();
      taken.set(keyId, again);
      return new Response(await openBase(AbortSignal.any([exchange.request.signal, again.signal])), {
        headers: { "Content-Type": "application/x-tar", "Cache-Control": "no-store" },
      });
    },
  });
  return [invite(placeFor), base, changes, promoted, promote];
}
