/** The use case of GET usage: what work has cost, summed by node, creator, type, model, group or day. */
import type { Spending, SumScope } from "../domain/model.ts";
import {
  type Days,
  type SummedRow,
  daysSummed,
  namesSummed,
  spentBy,
  sumsByDay,
  sumsByName,
} from "../store/sql/spending.ts";
import type { Store } from "../store/store.ts";
import { type Page, type PageRequest, Rows, pageOf } from "./list-pages.ts";

/** What usage is summed by. */
export type SummedBy = Exclude<SumScope, "hub"> | "day";

/** A page of sums, and the sum of all of them. */
export type SpendingPage = { readonly page: Page<SummedRow>; readonly all: Spending };

export class SpendingService {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  summedBy(by: SummedBy, days: Days, asked: PageRequest): Promise<SpendingPage> {
    const { page, perPage } = asked;
    const offset = (page - 1) * perPage;
    return this.#store.readTogether(async (read) => {
      const total = await read(by === "day" ? daysSummed(days) : namesSummed(by, days));
      const rows = by === "day" ? sumsByDay(days, perPage, offset) : sumsByName(by, days, perPage, offset);
      const found = offset < total ? await read(rows) : [];
      return { page: pageOf(asked, total, new Rows(found)), all: await read(spentBy("hub", "", days)) };
    });
  }
}
