/** The use cases of pauses and limits (domain/limit.ts). */
import {
  type HoldRequest,
  deleteLimit,
  hold,
  holdOwn,
  isOver,
  pause,
  resume,
  setLimit,
} from "../domain/limit.ts";
import type { Limit, LimitState, Pause, PauseKey } from "../domain/model.ts";
import { gateOn, hasTaskOfKey } from "../store/sql/gate.ts";
import type { Committed, Transact } from "../store/store.ts";
import { type Page, type PageRequest, pageOfAll } from "./list-pages.ts";
import { UseCases } from "./use-cases.ts";

export class Limits extends UseCases {
  async pauses(request: PageRequest): Promise<Page<Pause>> {
    return pageOfAll(request, (await this.store.read(this.gate())).pauses);
  }

  async list(request: PageRequest): Promise<Page<LimitState>> {
    const now = this.clock.now();
    const { limits } = await this.store.read(gateOn(now));
    return pageOfAll(
      request,
      limits.filter((limit) => !isOver(limit, now)),
    );
  }

  pause(
    transact: Transact<Pause>,
    asked: PauseKey & { readonly reason: string | null },
  ): Promise<Committed<Pause>> {
    return transact({ gate: this.gate() }, ({ gate }) => pause(gate, asked, this.clock.now()));
  }

  resume(transact: Transact<Pause>, key: PauseKey): Promise<Committed<Pause>> {
    return transact({ gate: this.gate() }, ({ gate }) => resume(gate, key, this.clock.now()));
  }

  set(transact: Transact<LimitState>, asked: Omit<Limit, "hold">): Promise<Committed<LimitState>> {
    return transact({ gate: this.gate() }, ({ gate }) => setLimit(gate, asked, this.clock.now()));
  }

  delete(transact: Transact<LimitState>, key: string): Promise<Committed<LimitState>> {
    return transact({ gate: this.gate() }, ({ gate }) => deleteLimit(gate, key, this.clock.now()));
  }

  hold(
    transact: Transact<LimitState>,
    asked: HoldRequest,
    boundTo: string | null,
  ): Promise<Committed<LimitState>> {
    if (boundTo === null)
      return transact({ gate: this.gate() }, ({ gate }) => hold(gate, asked, this.clock.now()));
    const load = { gate: this.gate(), hasTask: hasTaskOfKey(boundTo, asked.key) };
    return transact(load, ({ gate, hasTask }) => holdOwn(gate, hasTask, asked, this.clock.now()));
  }
}
