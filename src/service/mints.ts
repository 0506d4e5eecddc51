/**
 * The limits of what keys may promise as rewards (domain/mint.ts), checked in the commit of the task.
 *
 * Must not: cost anything for a key without a limit.
 */
import { mint, mintLimitOf } from "../domain/mint.ts";
import type { KeyRecord } from "../domain/model.ts";
import { dayOf } from "../domain/task/facet/spending.ts";
import type { Clock } from "../lib/clock.ts";
import { mintedBy } from "../store/sql/mints.ts";
import { type Around, around } from "../store/store.ts";
import type { KeyRing } from "./keys.ts";

/** The names of the use case's queries have no space. */
const MINTED = "minted today";

export type LuxPolicy = {
  readonly paysOwn: boolean;
  /** 0: there is none. */
  readonly signinMicro: number;
  readonly signinBound: boolean;
  readonly isStrict: boolean;
};

export class MintService {
  readonly #keys: Pick<KeyRing, "recordOf">;
  readonly #clock: Clock;
  readonly #policy: LuxPolicy;

  constructor(keys: Pick<KeyRing, "recordOf">, clock: Clock, policy: LuxPolicy) {
    this.#keys = keys;
    this.#clock = clock;
    this.#policy = policy;
  }

  /** Null: nothing depends on it. */
  creatorKeyOf(key: KeyRecord | null): string | null {
    if (key === null) return null;
    const { isStrict, paysOwn } = this.#policy;
    return !paysOwn || mintLimitOf(key, isStrict) !== null ? key.keyId : null;
  }

  /** Also by a schedule that was put with the key; null: it may promise any reward. */
  limiting(keyId: string | null): Around | null {
    const key = keyId === null ? null : this.#keys.recordOf(keyId);
    const limitMicro = key && mintLimitOf(key, this.#policy.isStrict);
    if (key === null || limitMicro === null) return null;
    return around(
      () => ({ [MINTED]: mintedBy(key.keyId, dayOf(this.#clock.now())) }),
      (decision, rows) => mint(decision, rows[MINTED], limitMicro),
    );
  }
}
