/** The use cases of LUX: the daily sign-in and the ledger. */
import { type LedgerEntry, type SignIn, signIn, signinHorizon } from "../domain/lux.ts";
import type { Clock } from "../lib/clock.ts";
import type { NewId } from "../lib/ids.ts";
import { lastEntry, lastSigninAt, ledgerPage, nodeById } from "../store/queries.ts";
import type { Store, Transact } from "../store/store.ts";
import { knownNode } from "./known-node.ts";
import { type Page, type PageRequest, pageOf } from "./pages.ts";

export class LuxService {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #newId: NewId;

  constructor(store: Store, clock: Clock, newId: NewId) {
    this.#store = store;
    this.#clock = clock;
    this.#newId = newId;
  }

  signIn(transact: Transact, nodeId: string): Promise<SignIn> {
    const now = this.#clock.now();
    const entryId = this.#newId();
    const signedInAt = lastSigninAt(nodeId, signinHorizon(now));
    const load = { node: nodeById(nodeId), last: lastEntry(nodeId), signedInAt };
    return transact(load, ({ node, last, signedInAt }) =>
      signIn(node, last, signedInAt, { nodeId, entryId }, now),
    );
  }

  /** A node's ledger, newest first. @throws {Rejection} node_not_found */
  async ledger(nodeId: string, page: PageRequest): Promise<Page<LedgerEntry>> {
    await knownNode(this.#store, nodeId);
    const last = await this.#store.read(lastEntry(nodeId));
    return pageOf(page, last?.n ?? 0, (slice) => this.#store.read(ledgerPage(nodeId, slice)));
  }
}
