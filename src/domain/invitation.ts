/**
 * Rules of invitations: an administrator invites a node, and whoever shows the invitation's token gives the hub the hash
 * of a secret that it has made; from then on that secret is a key that is bound to the node.
 *
 *   (none) --invite--> open --join--> used
 *   open --its time, withdraw, deletion of its node--> (none, or expired)
 *
 * The hub stores the hash of the token, and neither secret.
 */
import type { Change } from "./change.ts";
import { type Decision, accept, reject } from "./decision.ts";
import { WITH_SESSIONS, addKey } from "./key.ts";
import { INVITATION_KEPT_MS } from "./limits.ts";
import type { Invitation, KeyRecord } from "./model.ts";
import { HUB_LIMITS, refusesMore } from "./shares.ts";

export const INVITATION_STATES = ["open", "used", "expired"] as const;

type InvitationState = (typeof INVITATION_STATES)[number];

export function stateOfInvitation({ usedAt, expiresAt }: Invitation, now: number): InvitationState {
  if (usedAt !== null) return "used";
  return expiresAt > now ? "open" : "expired";
}

/** Those that ended long ago go with it. */
export function invite(
  invitation: Invitation,
  invitations: readonly Invitation[],
  now: number,
): Decision<Invitation> {
  const before = now - INVITATION_KEPT_MS;
  const kept = invitations.filter(({ usedAt, expiresAt }) => (usedAt ?? expiresAt) > before);
  const full = refusesMore(HUB_LIMITS.invitations, { all: kept.length, ofNode: 0 }, null);
  if (full) return full;
  const changes: Change[] = kept.length < invitations.length ? [{ kind: "invitations.pruned", before }] : [];
  changes.push({ kind: "invitation.saved", invitation });
  return accept(invitation, changes);
}

/** Only the joining machine knows the key's secret. */
export type Joined = { readonly nodeId: string; readonly keyId: string };

/**
 * A repeat with the same secret returns the same. @param keyHash the lower-case hex SHA-256 of the secret that the
 * joining machine has made @param keys every key of the hub
 */
export function join(
  rows: { readonly invitation: Invitation | null; readonly keys: readonly KeyRecord[] },
  keyHash: string,
  now: number,
): Decision<Joined> {
  const { invitation, keys } = rows;
  if (!invitation) return noInvitation();
  const { nodeId } = invitation;
  if (invitation.usedAt !== null) {
    const used = keys.find((key) => key.keyId === invitation.keyId);
    if (used?.hash === keyHash) return accept({ nodeId, keyId: used.keyId });
    return reject(
      "invitation_used",
      `This invitation of ${nodeId} was used already. Ask for a new one; if it was not you who used it, have the key ${invitation.keyId} revoked.`,
    );
  }
  if (stateOfInvitation(invitation, now) === "expired")
    return reject("invitation_expired", `This invitation of ${nodeId} has expired. Ask for a new one.`);
  const keyId = keyNameOf(invitation);
  const added = addKey(
    {
      keyId,
      role: "full",
      hash: keyHash,
      variant: null,
      mintMicro: null,
      nodeId: `${nodeId}${WITH_SESSIONS}`,
      createdAt: now,
      expiresAt: null,
      revokedAt: null,
    },
    keys,
  );
  if (added.kind === "rejected") return added;
  return accept({ nodeId, keyId }, [
    ...added.changes,
    { kind: "invitation.saved", invitation: { ...invitation, usedAt: now, keyId } },
    {
      kind: "event.logged",
      event: { kind: "node.joined", at: now, nodeId, taskId: null, data: { key: keyId } },
    },
  ]);
}

/** Whatever its state. */
export function withdraw(invitationId: string, invitations: readonly Invitation[]): Decision<Invitation> {
  const invitation = invitations.find((known) => known.invitationId === invitationId);
  return invitation ? accept(invitation, [{ kind: "invitation.deleted", invitation }]) : noInvitation();
}

/** For wrong tokens too. */
export function noInvitation(): ReturnType<typeof reject> {
  return reject(
    "invitation_not_found",
    "There is no such invitation: it is mistyped, was deleted, its node was deleted, or it ended more than 7 days ago. Ask for a new one.",
  );
}

const NODE_CHARS = 50;
const ID_CHARS = 8;

/** Of its node, and unique, because names of keys are never used again. */
function keyNameOf({ nodeId, invitationId }: Invitation): string {
  return `${nodeId.replaceAll(/[^A-Za-z0-9._-]/g, "-").slice(0, NODE_CHARS)}-${invitationId.slice(-ID_CHARS)}`;
}
