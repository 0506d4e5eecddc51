/** The use cases of usage: sums, and voiding. */
import { voidWithin } from "../domain/gate.ts";
import type { Spending, SumScope } from "../domain/model.ts";
import { type VoidRequest, type Voided, dayOf } from "../domain/task/facet/spending.ts";
import { gateOn } from "../store/sql/gate.ts";
import {
  type Days,
  type SummedRow,
  daysSummed,
  namesSummed,
  nodeSumsOf,
  spentBy,
  sumsByDay,
  sumsByName,
} from "../store/sql/spending.ts";
import type { Committed, Transact } from "../store/store.ts";
import { type Page, type PageRequest, Rows, pageOf } from "./list-pages.ts";
import { UseCases } from "./use-cases.ts";

export type SummedBy = Exclude<SumScope, "hub" | "voided"> | "day";

export type SpendingPage = { readonly page: Page<SummedRow>; readonly all: Spending };

export class SpendingService extends UseCases {
  /** `day` null: today. @throws {Rejection} usage_not_found */
  void(
    transact: Transact<Voided>,
    { nodeId, day: asked, reason }: Omit<VoidRequest, "day"> & { readonly day: number | null },
  ): Promise<Committed<Voided>> {
    const now = this.clock.now();
    const day = asked ?? dayOf(now);
    const load = { sums: nodeSumsOf(nodeId, day), gate: gateOn(now) };
    return transact(load, ({ sums, gate }) =>
      voidWithin(sums, { nodeId, day, reason }, gate, this.clock.now()),
    );
  }

  summedBy(by: SummedBy, days: Days, asked: PageRequest): Promise<SpendingPage> {
    const { page, perPage } = asked;
    const offset = (page - 1) * perPage;
    return this.store.readTogether(async (read) => {
      const total = await read(by === "day" ? daysSummed(days) : namesSummed(by, days));
      const rows = by === "day" ? sumsByDay(days, perPage, offset) : sumsByName(by, days, perPage, offset);
      const found = offset < total ? await read(rows) : [];
      return { page: pageOf(asked, total, new Rows(found)), all: await read(spentBy("hub", "", days)) };
    });
  }
}
