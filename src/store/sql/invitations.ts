/** The reads of invitations, in the SQL that SQLite 3.35+ and PostgreSQL 15+ share. */
import type { Invitation } from "../../domain/model.ts";
import type { Query } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { many, one } from "./query.ts";
import { toInvitation } from "./rows.ts";

/** @param tokenHash in lower-case hex */
export function invitationByToken(tokenHash: string): Query<Invitation | null> {
  return one(`SELECT * FROM invitations WHERE token_hash = $1`, [tokenHash], toInvitation, [
    keyOf.invitation(tokenHash),
  ]);
}

export function allInvitations(): Query<readonly Invitation[]> {
  return many(`SELECT * FROM invitations ORDER BY invitation_id`, [], toInvitation, ["invitations"]);
}

/** Oldest first: those whose id is larger than `after`. */
export function invitationsAfter(after: string, limit: number): Query<readonly Invitation[]> {
  return many(
    `SELECT * FROM invitations WHERE invitation_id > $1 ORDER BY invitation_id LIMIT $2`,
    [after, limit],
    toInvitation,
    ["invitations"],
  );
}
