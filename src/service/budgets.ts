/** The use cases of budgets (domain/budget.ts): set, list, delete. */
import { deleteBudget, setBudget } from "../domain/budget.ts";
import type { Budget, BudgetKey, BudgetState } from "../domain/model.ts";
import { periodOf } from "../domain/budget.ts";
import { dayOf } from "../domain/task/facet/spending.ts";
import { spentBy } from "../store/sql/spending.ts";
import type { Committed, Transact } from "../store/store.ts";
import { type Page, type PageRequest, pageOfAll } from "./list-pages.ts";
import { UseCases } from "./use-cases.ts";

export type DatedBudget = { readonly budget: BudgetState; readonly day: number };

export class Budgets extends UseCases {
  async list(request: PageRequest): Promise<Page<DatedBudget>> {
    const { budgets, day } = await this.store.read(this.gate());
    return pageOfAll(
      request,
      budgets.map((budget) => ({ budget, day })),
    );
  }

  set(
    transact: Transact<DatedBudget>,
    asked: Omit<Budget, "warnedIn" | "exceededIn">,
  ): Promise<Committed<DatedBudget>> {
    const day = this.#today();
    const { scope, value, per } = asked;
    const load = {
      gate: this.gate(),
      spent: spentBy(scope, value, { since: periodOf(per, day), until: day }),
    };
    return transact(load, ({ gate, spent }) => dated(day, setBudget(gate, asked, spent, this.clock.now())));
  }

  delete(transact: Transact<DatedBudget>, key: BudgetKey): Promise<Committed<DatedBudget>> {
    const day = this.#today();
    return transact({ gate: this.gate() }, ({ gate }) =>
      dated(day, deleteBudget(gate, key, this.clock.now())),
    );
  }

  #today(): number {
    return dayOf(this.clock.now());
  }
}

function dated(day: number, decision: ReturnType<typeof setBudget>) {
  return decision.kind === "rejected" ? decision : { ...decision, answer: { budget: decision.answer, day } };
}
