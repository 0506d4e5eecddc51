/** The use cases of advisory leases (domain/lease.ts). */
import { accept } from "../domain/decision.ts";
import { type AcquireRequest, type HolderOfLease, acquire, release, renew } from "../domain/lease.ts";
import { PRUNE_EVERY_MS } from "../domain/limits.ts";
import type { Lease } from "../domain/model.ts";
import {
  firstDeadline,
  lastFencing,
  leaseTotals,
  leasesAfter,
  leasesNear,
  leasesOf,
} from "../store/sql/leases.ts";
import { nodeById } from "../store/sql/nodes.ts";
import { NO_ROW } from "../store/sql/query.ts";
import { taskById } from "../store/sql/tasks.ts";
import type { Committed, Transact } from "../store/store.ts";
import { pageOfFound } from "./scan.ts";
import { UseCases } from "./use-cases.ts";

type LeasePage = { readonly leases: readonly Lease[]; readonly next: number | null };

export type Released = { readonly released: number };

export class LeaseService extends UseCases {
  /** Steady clock: as far as this hub knows no lease ends before this time. */
  #leasesHoldUntil = 0;

  /** @throws {Rejection} lease_conflict, leases_limit, or why the node does not hold the task */
  async acquire(transact: Transact<Lease>, asked: AcquireRequest): Promise<Committed<Lease>> {
    const { nodeId, taskId, name } = asked;
    const load = {
      node: nodeById(nodeId),
      task: taskId === null ? NO_ROW : taskById(taskId),
      others: leasesNear(name),
      totals: leaseTotals(nodeId, this.clock.steady()),
      lastFencing: lastFencing(),
    };
    const lease = await transact(load, (rows) => acquire(rows, asked, this.at()));
    this.#leasesHoldUntil = Math.min(this.#leasesHoldUntil, lease.leaseUntil);
    return lease;
  }

  /** @throws {Rejection} lease_lost */
  async renew(
    transact: Transact<Lease>,
    asked: HolderOfLease & { readonly ttlMs: number | null },
  ): Promise<Committed<Lease>> {
    const load = { held: leasesOf(asked.nodeId, asked.name) };
    const lease = await transact(load, ({ held }) => renew(held, asked, this.at()));
    this.#leasesHoldUntil = Math.min(this.#leasesHoldUntil, lease.leaseUntil);
    return lease;
  }

  release(transact: Transact<Released>, asked: HolderOfLease): Promise<Committed<Released>> {
    const load = { held: leasesOf(asked.nodeId, asked.name) };
    return transact(load, ({ held }) => {
      const decision = release(held, asked, this.at());
      return decision.kind === "rejected" ? decision : { ...decision, answer: { released: decision.answer } };
    });
  }

  /** Those that count. */
  async list(
    filter: { readonly nodeId: string | null; readonly taskId: string | null },
    after: number,
    limit: number,
  ): Promise<LeasePage> {
    const found = await this.store.read(leasesAfter(filter, this.clock.steady(), after, limit + 1));
    const { rows: leases, next } = pageOfFound(found, limit, ({ fencing }) => fencing);
    return { leases, next };
  }

  /**
   * They count for nothing. It reads only when one may have passed, and every PRUNE_EVERY_MS for those that other hubs
   * have granted.
   */
  async prune(): Promise<void> {
    const steady = this.clock.steady();
    if (steady < this.#leasesHoldUntil) return;
    const next = await this.store.read(firstDeadline());
    if (next !== null && next <= steady)
      await this.store.transact({}, () => accept(null, [{ kind: "leases.pruned", steady }]));
    else this.#leasesHoldUntil = Math.min(next ?? Number.POSITIVE_INFINITY, steady + PRUNE_EVERY_MS);
  }
}
