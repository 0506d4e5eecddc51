/** The reads, writes and facts of invitations. */
import { WITH_SESSIONS } from "../../domain/key.ts";
import type { Invitation } from "../../domain/model.ts";
import { soundInvitation } from "../../domain/sound.ts";
import type { Query } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { many, one } from "./query.ts";
import type { ConflictKey } from "./conflict-keys.ts";
import { INVITATIONS } from "./tables.ts";
import type { Of, Writes } from "./write.ts";
import { customStatement, remove, save, text, whole } from "./write-statement.ts";
import { type Fact, SHOWN } from "./fact.ts";

const toInvitation = INVITATIONS.reader().to(soundInvitation);

/** @param tokenHash in lower-case hex */
export function invitationByToken(tokenHash: string): Query<Invitation | null> {
  return one(`SELECT * FROM invitations WHERE token_hash = $1`, [tokenHash], toInvitation, [
    keyOf.invitation(tokenHash),
  ]);
}

export function allInvitations(): Query<readonly Invitation[]> {
  return many(`SELECT * FROM invitations ORDER BY invitation_id`, [], toInvitation, ["invitations"]);
}

/** Oldest first. */
export function invitationsAfter(after: string, limit: number): Query<readonly Invitation[]> {
  return many(
    `SELECT * FROM invitations WHERE invitation_id > $1 ORDER BY invitation_id LIMIT $2`,
    [after, limit],
    toInvitation,
    ["invitations"],
  );
}

const ofInvitation = ({ invitation }: Pick<Of<"invitation.saved">, "invitation">): ConflictKey =>
  keyOf.invitation(invitation.tokenHash);

export const INVITATION_WRITES = {
  "invitation.saved": {
    row: ofInvitation,
    statement: save(INVITATIONS, ({ invitation }) => invitation, [
      "invitation_id",
      "node_id",
      "created_at",
      "expires_at",
    ]),
  },
  "invitation.deleted": {
    frees: true,
    row: ofInvitation,
    statement: remove(
      "invitations",
      INVITATIONS.set(({ invitation }) => invitation, "token_hash"),
    ),
  },
  "invitations.dropped": {
    isSweep: true,
    frees: true,
    statement: customStatement(
      "invitations",
      `DELETE FROM invitations WHERE node_id = $1 AND used_at IS NULL`,
      [text(({ nodeId }) => nodeId)],
    ),
  },
  "invitations.pruned": {
    isSweep: true,
    frees: true,
    statement: customStatement(
      "invitations",
      `DELETE FROM invitations WHERE coalesce(used_at, expires_at) <= $1`,
      [whole(({ before }) => before)],
    ),
  },
} satisfies Partial<Writes>;

export const INVITATION_FACTS: readonly Fact[] = [
  {
    name: "invitations",
    holds: "an invitation that was used has made a key for its node, and no other has",
    sql: `
      SELECT 'invitation ' || i.invitation_id || ' of ' || i.node_id FROM invitations i
      LEFT JOIN keys k ON k.key_id = i.key_id AND k.node_id IN (i.node_id, i.node_id || '${WITH_SESSIONS}')
      WHERE (i.used_at IS NULL) <> (i.key_id IS NULL) OR (i.used_at IS NOT NULL AND k.key_id IS NULL)
      LIMIT ${SHOWN}`,
  },
];
