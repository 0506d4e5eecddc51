/**
 * The endpoints of invitations: invitation/*, and join. The hub shows a token once, and never sees the secret of the
 * key that joining makes: it gets its hash.
 */
import * as z from "zod/mini";
import { INVITATION_STATES, type Joined, stateOfInvitation } from "../domain/invitation.ts";
import { INVITATION_DEFAULT_SECONDS, PER_PAGE_DEFAULT } from "../domain/limits.ts";
import type { Invitation, Moment } from "../domain/model.ts";
import { SECOND_MS, isoTime } from "../lib/clock.ts";
import type { NewInvitation } from "../service/invitations.ts";
import type { Variant } from "../variant/variant.ts";
import type { JsonAnswer } from "./answer.ts";
import { type Endpoint, readEndpoint, writeEndpoint } from "./endpoint.ts";
import { keyBoundElsewhere } from "./error-table.ts";
import * as field from "./request-fields.ts";
import { maybeTime, time } from "./response-schemas.ts";
import { about, maybeString, nullable, optional, string } from "./about.ts";

export type JoinPlace = {
  readonly url: string;
  readonly otherUrls: readonly string[];
  readonly pin: string | null;
};

/** `named`: the URL that the operator has named. */
export type PlaceFor = (named: string | null) => JoinPlace;

/** What `luxhub join` takes: a URL whose fragment no browser sends. */
export function joinLine({ url, pin }: Pick<JoinPlace, "url" | "pin">, token: string): string {
  return `${url}/#join.${token}${pin === null ? "" : `.${pin}`}`;
}

export const invitationSchema = () =>
  z.strictObject({
    invitation_id: z.string(),
    node_id: string("The node for which the machine that joins gets a key."),
    state: about(z.enum(INVITATION_STATES), "Whether the invitation is `open`, `used` or `expired`."),
    created_at: about(time(), "When the invitation was made."),
    expires_at: about(time(), "When the invitation expires, by the hub's clock."),
    used_at: nullable(time(), "When a machine joined with the invitation."),
    key: maybeString("The name of the key that was made from the invitation; null until then."),
  });

function encodeInvitation(invitation: Invitation, { now }: Pick<Moment, "now">): JsonAnswer {
  return {
    invitation_id: invitation.invitationId,
    node_id: invitation.nodeId,
    state: stateOfInvitation(invitation, now),
    created_at: isoTime(invitation.createdAt),
    expires_at: isoTime(invitation.expiresAt),
    used_at: maybeTime(invitation.usedAt),
    key: invitation.keyId,
  };
}

const URL_TEXT =
  "The hub's URL in the line. If a request has no `url`, the hub chooses one of its addresses.";

const create = (placeFor: PlaceFor) =>
  writeEndpoint({
    path: "/api/v1/invitation/create",
    auth: "admin",
    summary: "Creates an invitation: a line with which the machine of a node joins",
    rejections: ["key_bound_to_other_node", "invitations_limit"],
    answersSecret: true,
    input: () =>
      z.object({
        node_id: about(field.newNodeId(), "The node that is invited, which need not be registered."),
        expires_in_s: about(
          z._default(field.invitationLife(), INVITATION_DEFAULT_SECONDS * SECOND_MS),
          "Seconds until the invitation expires, 60 to 604,800; 3,600 if left out.",
        ),
        url: optional(field.hubUrl(), URL_TEXT),
      }),
    actsFor: ({ node_id }) => [node_id],
    answer: () =>
      z.strictObject({
        invitation: about(invitationSchema(), "The invitation."),
        line: string(
          "The argument of `luxhub join`: the URL, the token and the hash. The hub cannot show the line again.",
        ),
        url: string(URL_TEXT),
        other_urls: about(z.array(z.string()), "Other URLs at which the hub may be reached."),
        pin: maybeString(
          "The SHA-256 of the public key of the hub's own authority, in base64url; null: nothing is pinned.",
        ),
      }),
    handle: ({ services, transact }, { node_id: nodeId, expires_in_s: lifeMs, url = null }) =>
      services.invitations.create(transact, { nodeId, lifeMs, at: placeFor(url) }),
    encode: ({ invitation, token, at: place }: NewInvitation<JoinPlace>, _: Variant, at: Moment) => ({
      invitation: encodeInvitation(invitation, at),
      line: joinLine(place, token),
      url: place.url,
      other_urls: place.otherUrls,
      pin: place.pin,
    }),
  });

const list = readEndpoint({
  path: "/api/v1/invitation/list",
  auth: "admin",
  summary: "The invitations, oldest first",
  input: () =>
    z.object({
      cursor: optional(field.id(), "The `next_cursor` of the previous page."),
      per_page: field.paging().per_page,
    }),
  answer: () =>
    z.strictObject({
      invitations: about(z.array(invitationSchema()), "The invitations, oldest first."),
      next_cursor: z.nullable(z.string()),
    }),
  handle: ({ services }, { cursor = "", per_page = PER_PAGE_DEFAULT }) =>
    services.invitations.list(cursor, per_page),
  encode: ({ invitations, next }, _, at) => ({
    invitations: invitations.map((invitation) => encodeInvitation(invitation, at)),
    next_cursor: next,
  }),
});

const remove = writeEndpoint({
  path: "/api/v1/invitation/delete",
  auth: "admin",
  summary: "Deletes an invitation, so that nobody can join with it",
  rejections: ["key_bound_to_other_node", "invitation_not_found"],
  input: () => z.object({ invitation_id: field.id() }),
  answer: () => z.strictObject({ invitation_id: z.string() }),
  handle: ({ services, transact, key }, { invitation_id }) => {
    if (key !== null && key.nodeId !== null) throw keyBoundElsewhere(key.nodeId);
    return services.invitations.withdraw(transact, invitation_id);
  },
  encode: ({ invitationId }: Invitation) => ({ invitation_id: invitationId }),
});

const join = writeEndpoint({
  path: "/api/v1/join",
  auth: "open",
  summary: "Turns an invitation into a key for the invited node",
  rejections: ["invitation_not_found", "invitation_used", "invitation_expired", "key_exists", "keys_limit"],
  answersSecret: true, // nothing is stored for a caller without a key; a repeat is safe without it
  notInBatch: "must be sent alone",
  input: () =>
    z.object({
      token: about(
        field.invitationToken(),
        "The token of the invitation: the part of the line after `#join.`",
      ),
      key_hash: about(
        field.sha256(),
        "The SHA-256, in lower-case hex, of the secret that the caller has made for the new key.",
      ),
    }),
  answer: () =>
    z.strictObject({
      node_id: string("The node that the key is bound to."),
      key: string("The name of the key."),
    }),
  handle: ({ services, transact, countWrongSecret }, { token, key_hash }) =>
    services.invitations.join(transact, { token, keyHash: key_hash }, countWrongSecret),
  encode: ({ nodeId, keyId }: Joined) => ({ node_id: nodeId, key: keyId }),
});

export function invitationEndpoints(placeFor: PlaceFor): readonly Endpoint[] {
  return [create(placeFor), list, remove, join];
}
