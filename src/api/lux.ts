/** The endpoints of LUX, the reward units: signin, and the ledger of a node and of all. */
import * as z from "zod/mini";
import * as limit from "../domain/limits.ts";
import { type SignIn, toLux } from "../domain/lux.ts";
import type { LedgerHead } from "../domain/model.ts";
import { isoTime } from "../lib/clock.ts";
import { keyNotOwn } from "./error-table.ts";
import { type Endpoint, BY_NODE, readEndpoint, writeEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import {
  encodeEntry,
  encodePage,
  entrySchema,
  ledgerHeadSchema,
  pageSchema,
  time,
} from "./response-schemas.ts";
import { about, flag, number, optional, whole } from "./about.ts";

const signin = writeEndpoint({
  ...BY_NODE,
  path: "/api/v1/signin",
  summary: "Pays a node its daily bonus, once per UTC day",
  rejections: ["node_not_found", "lux_balance_limit"],
  input: () => z.object({ node_id: field.nodeId() }),
  answer: () =>
    z.strictObject({
      lux_earned: number("LUX that this call paid."),
      already_signed_in: flag("Whether the node had already signed in on this day (UTC)."),
      lux_balance: z.number(),
      next_signin_at: about(time(), "The next midnight in UTC."),
    }),
  handle: ({ services, transact, key }, { node_id }) => {
    if (services.lux.signinBound && key?.nodeId !== node_id) throw keyNotOwn(node_id);
    return services.lux.signIn(transact, node_id);
  },
  encode: ({ luxEarnedMicro, already, balanceMicro, nextSigninAt }: SignIn) => ({
    lux_earned: toLux(luxEarnedMicro),
    already_signed_in: already,
    lux_balance: toLux(balanceMicro),
    next_signin_at: isoTime(nextSigninAt),
  }),
});

const ledger = readEndpoint({
  path: "/api/v1/lux/ledger",
  readsMany: true,
  auth: "secret",
  summary: "The ledger entries of a node, newest first",
  rejections: ["node_not_found"],
  input: () => z.object({ node_id: field.nodeId(), ...field.paging() }),
  actsFor: (input) => [input.node_id],
  answer: () => z.strictObject({ entries: z.array(entrySchema()), ...pageSchema() }),
  handle: ({ services, variant }, { node_id, ...paging }) =>
    services.lux.ledger(node_id, field.pageRequest(paging, variant.unpaged)),
  encode: (page) => encodePage("entries", page, encodeEntry),
});

const top = readEndpoint({
  path: "/api/v1/lux/top",
  readsMany: true,
  auth: "secret",
  summary: "The nodes that earned the most LUX since a time",
  input: () => z.object({ since: about(field.date(), "Only LUX that was earned from this time on.") }),
  answer: () =>
    z.strictObject({
      nodes: about(
        z.array(
          z.strictObject({
            node_id: z.string(),
            lux_earned: number("The LUX that the node has earned since then, including daily bonuses."),
            entries: whole("How many ledger entries the node has since then."),
          }),
        ),
        "The 50 nodes that earned the most, the most first.",
      ),
      exact: flag("False: there are more entries, because one call examines the newest 200,000."),
    }),
  handle: ({ services }, { since }) => services.lux.top(since),
  encode: ({ nodes, isExact }) => ({
    nodes: nodes.map(({ nodeId, amountMicro, entries }) => ({
      node_id: nodeId,
      lux_earned: toLux(amountMicro),
      entries,
    })),
    exact: isExact,
  }),
});

function encodeHead({ seq, hash }: LedgerHead) {
  return { seq, hash };
}

const entries = readEndpoint({
  path: "/api/v1/lux/entries",
  readsMany: true,
  auth: "secret",
  summary: "The whole ledger after an entry, oldest first, with the hash chain",
  input: () =>
    z.object({
      since: optional(field.eventCursor(), "The `seq` of the last entry read; 0 if left out."),
      limit: z.optional(field.queryCount(limit.ENTRIES_MAX)),
    }),
  answer: () => z.strictObject({ entries: z.array(entrySchema()), head: ledgerHeadSchema() }),
  handle: ({ services }, { since = 0, limit: most = limit.ENTRIES_DEFAULT }) =>
    services.lux.entries(since, most),
  encode: ({ entries, head }) => ({ entries: entries.map(encodeEntry), head: encodeHead(head) }),
});

const head = readEndpoint({
  path: "/api/v1/lux/head",
  auth: "secret",
  summary: "The newest entry of the whole ledger: its number and its hash",
  input: () => z.object({}),
  answer: () => z.strictObject({ head: ledgerHeadSchema() }),
  handle: ({ services }) => services.lux.head(),
  encode: (head) => ({ head: encodeHead(head) }),
});

export const LUX_ENDPOINTS: readonly Endpoint[] = [signin, ledger, top, entries, head];
