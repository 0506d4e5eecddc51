/**
 * The hubs that have the data of this one, of which one accepts writes. Clients learn them from the responses to
 * node/register and node/heartbeat.
 */
import type { VariantName } from "../domain/model.ts";

export type Copies = {
  /** Their base URLs for this variant, the one that accepts writes first; none while there is no copy. */
  readonly hubs: (variant: VariantName) => readonly string[];
};

export const NO_COPIES: Copies = { hubs: () => [] };
