/** The use cases of LUX: the daily sign-in and the ledger. */
import { type SignIn, signIn, signinHorizon } from "../domain/lux.ts";
import type { LedgerHead } from "../domain/model.ts";
import type { Clock } from "../lib/clock.ts";
import type { NewId } from "../lib/ids.ts";
import { type ChainedEntry, entriesAfter, lastSigninAt, ledgerHead, ledgerPage } from "../store/sql/lux.ts";
import { nodeById } from "../store/sql/nodes.ts";
import type { Committed, Store, Transact } from "../store/store.ts";
import { getNodeOrDeleted } from "./known-node.ts";
import { type Page, type PageRequest, Rows, pageOf } from "./list-pages.ts";

export class LuxService {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #newId: NewId;

  constructor(store: Store, clock: Clock, newId: NewId) {
    this.#store = store;
    this.#clock = clock;
    this.#newId = newId;
  }

  signIn(transact: Transact<SignIn>, nodeId: string): Promise<Committed<SignIn>> {
    const entryId = this.#newId();
    const signedInAt = lastSigninAt(nodeId, signinHorizon(this.#clock.now()));
    const load = { node: nodeById(nodeId), signedInAt, head: ledgerHead() };
    return transact(load, ({ node, signedInAt, head }) =>
      signIn(node, signedInAt, { nodeId, entryId, head }, this.#clock.now()),
    );
  }

  /** A node's ledger, newest first. @throws {Rejection} node_not_found */
  async ledger(nodeId: string, page: PageRequest): Promise<Page<ChainedEntry>> {
    const { entries: total } = await getNodeOrDeleted(this.#store, nodeId);
    const newest = total - (page.page - 1) * page.perPage;
    const oldest = Math.max(newest - page.perPage, 0) + 1;
    const entries = newest < 1 ? [] : await this.#store.read(ledgerPage(nodeId, oldest, newest));
    return pageOf(page, total, new Rows(entries)); // entries are small
  }

  /** The newest entry of the whole ledger. */
  head(): Promise<LedgerHead> {
    return this.#store.read(ledgerHead());
  }

  /** The entries of the whole ledger after number `after`, oldest first, and the newest entry. */
  entries(after: number, limit: number): Promise<{ entries: readonly ChainedEntry[]; head: LedgerHead }> {
    return this.#store.readTogether(async (read) => ({
      entries: await read(entriesAfter(after, limit)),
      head: await read(ledgerHead()),
    }));
  }
}
