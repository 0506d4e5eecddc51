/** The use cases of invitations (domain/invitation.ts). */
import { type Joined, invite, join, noInvitation, withdraw } from "../domain/invitation.ts";
import { Rejection } from "../domain/decision.ts";
import type { Invitation } from "../domain/model.ts";
import type { Clock } from "../lib/clock.ts";
import { type NewId, makeSecret } from "../lib/ids.ts";
import { allInvitations, invitationByToken, invitationsAfter } from "../store/sql/invitations.ts";
import { allKeys } from "../store/sql/keys.ts";
import type { Committed, Store, Transact } from "../store/store.ts";
import { type KeyRing, hashSecret } from "./keys.ts";
import { pageOfFound } from "./scan.ts";
import { UseCases } from "./use-cases.ts";

/** In plain text, and not kept. `at`: where the node joins. */
export type NewInvitation<At> = { readonly invitation: Invitation; readonly token: string; readonly at: At };

type InvitationPage = { readonly invitations: readonly Invitation[]; readonly next: string | null };

export class InvitationService extends UseCases {
  readonly #newId: NewId;
  readonly #keys: KeyRing;

  constructor(store: Store, clock: Clock, newId: NewId, keys: KeyRing) {
    super(store, clock);
    this.#newId = newId;
    this.#keys = keys;
  }

  /** @throws {Rejection} invitations_limit */
  create<At>(
    transact: Transact<NewInvitation<At>>,
    { nodeId, lifeMs, at }: { readonly nodeId: string; readonly lifeMs: number; readonly at: At },
  ): Promise<Committed<NewInvitation<At>>> {
    const token = makeSecret();
    const now = this.clock.now();
    const invitation: Invitation = {
      invitationId: this.#newId(),
      tokenHash: hashSecret(token),
      nodeId,
      createdAt: now,
      expiresAt: now + lifeMs,
      usedAt: null,
      keyId: null,
    };
    return transact({ all: allInvitations() }, ({ all }) => {
      const invited = invite(invitation, all, now);
      return invited.kind === "accepted" ? { ...invited, answer: { invitation, token, at } } : invited;
    });
  }

  /**
   * @param onWrongToken called for a token that no invitation has; may throw
   * @throws {Rejection} invitation_not_found, invitation_used, invitation_expired, keys_limit
   */
  async join(
    transact: Transact<Joined>,
    { token, keyHash }: { readonly token: string; readonly keyHash: string },
    onWrongToken: () => void,
  ): Promise<Committed<Joined>> {
    const found = invitationByToken(hashSecret(token));
    // A guess costs a read, and no place among the writes.
    if ((await this.store.read(found)) === null) {
      onWrongToken();
      throw new Rejection(noInvitation());
    }
    return transact({ invitation: found, stored: allKeys() }, ({ invitation, stored }) =>
      join({ invitation, keys: this.#keys.with(stored) }, keyHash, this.clock.now()),
    );
  }

  async list(after: string, limit: number): Promise<InvitationPage> {
    const found = await this.store.read(invitationsAfter(after, limit + 1));
    const { rows: invitations, next } = pageOfFound(found, limit, ({ invitationId }) => invitationId);
    return { invitations, next };
  }

  /** @throws {Rejection} invitation_not_found */
  withdraw(transact: Transact<Invitation>, invitationId: string): Promise<Committed<Invitation>> {
    return transact({ all: allInvitations() }, ({ all }) => withdraw(invitationId, all));
  }
}
