/** The use cases of LUX: the daily sign-in and the ledger. */
import { type SignIn, signIn, signinHorizon } from "../domain/lux.ts";
import {
  LUX_TOP_NODES_MAX,
  LUX_TOP_PART,
  LUX_TOP_SCANNED_MAX,
  MICRO_PER_LUX,
  SIGNIN_LUX,
} from "../domain/limits.ts";
import type { LedgerHead } from "../domain/model.ts";
import type { Clock } from "../lib/clock.ts";
import type { NewId } from "../lib/ids.ts";
import { TickQueue } from "../lib/semaphore.ts";
import {
  type ChainedEntry,
  type LedgerPart,
  earnedBefore,
  entriesAfter,
  lastSigninAt,
  ledgerHead,
  ledgerPage,
} from "../store/sql/lux.ts";
import { nodeById } from "../store/sql/nodes.ts";
import type { Committed, Store, Transact } from "../store/store.ts";
import { getNodeOrDeleted } from "./known-node.ts";
import type { LuxPolicy } from "./mints.ts";
import { type Page, type PageRequest, Rows, pageOf } from "./list-pages.ts";
import { UseCases } from "./use-cases.ts";

type Bonus = Pick<LuxPolicy, "signinMicro" | "signinBound">;

const DEFAULT_BONUS: Bonus = { signinMicro: SIGNIN_LUX * MICRO_PER_LUX, signinBound: false };

export type Earner = { readonly nodeId: string; readonly amountMicro: bigint; readonly entries: number };

export class LuxService extends UseCases {
  /** One part of the ledger in each tick. */
  readonly #steps = new TickQueue();
  readonly #newId: NewId;
  readonly #bonus: Bonus;

  constructor(store: Store, clock: Clock, newId: NewId, bonus: Bonus = DEFAULT_BONUS) {
    super(store, clock);
    this.#bonus = bonus;
    this.#newId = newId;
  }

  signIn(transact: Transact<SignIn>, nodeId: string): Promise<Committed<SignIn>> {
    const entryId = this.#newId();
    const amountMicro = this.#bonus.signinMicro;
    const signedInAt = lastSigninAt(nodeId, signinHorizon(this.clock.now()));
    const load = { node: nodeById(nodeId), signedInAt, head: ledgerHead() };
    return transact(load, ({ node, signedInAt, head }) =>
      signIn(node, signedInAt, { nodeId, entryId, head, amountMicro }, this.clock.now()),
    );
  }

  /** Newest first. @throws {Rejection} node_not_found */
  async ledger(nodeId: string, page: PageRequest): Promise<Page<ChainedEntry>> {
    const { entries: total } = await getNodeOrDeleted(this.store, nodeId);
    const newest = total - (page.page - 1) * page.perPage;
    const oldest = Math.max(newest - page.perPage, 0) + 1;
    const entries = newest < 1 ? [] : await this.store.read(ledgerPage(nodeId, oldest, newest));
    return pageOf(page, total, new Rows(entries)); // entries are small
  }

  get signinBound(): boolean {
    return this.#bonus.signinBound;
  }

  /**
   * The newest LUX_TOP_SCANNED_MAX entries are examined, in parts between which others are served; `isExact` false:
   * there are more.
   */
  async top(since: number): Promise<{ readonly nodes: readonly Earner[]; readonly isExact: boolean }> {
    const sums = new Map<string, Earner>();
    let isExact = false;
    let before: number | null = Number.MAX_SAFE_INTEGER;
    for (
      let looked = 0;
      before !== null && !isExact && looked < LUX_TOP_SCANNED_MAX;
      looked += LUX_TOP_PART
    ) {
      await this.#steps.next();
      const part: LedgerPart = await this.store.read(earnedBefore(before, since, LUX_TOP_PART));
      for (const { nodeId, amountMicro, entries } of part.earned) {
        const sum = sums.get(nodeId);
        sums.set(nodeId, {
          nodeId,
          amountMicro: amountMicro + (sum?.amountMicro ?? 0n),
          entries: entries + (sum?.entries ?? 0),
        });
      }
      before = part.next;
      isExact = before === null || (part.oldestAt !== null && part.oldestAt < since);
    }
    const byAmount = (a: Earner, b: Earner): number =>
      a.amountMicro === b.amountMicro
        ? a.nodeId < b.nodeId
          ? -1
          : 1
        : a.amountMicro > b.amountMicro
          ? -1
          : 1;
    return { nodes: [...sums.values()].toSorted(byAmount).slice(0, LUX_TOP_NODES_MAX), isExact };
  }

  head(): Promise<LedgerHead> {
    return this.store.read(ledgerHead());
  }

  /** After number `after`, oldest first, with the newest entry. */
  entries(after: number, limit: number): Promise<{ entries: readonly ChainedEntry[]; head: LedgerHead }> {
    return this.store.readTogether(async (read) => ({
      entries: await read(entriesAfter(after, limit)),
      head: await read(ledgerHead()),
    }));
  }
}
