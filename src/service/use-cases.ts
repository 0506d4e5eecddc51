/** What the use cases of every resource work with. */
import type { Gate, Moment } from "../domain/model.ts";
import type { Clock } from "../lib/clock.ts";
import { gateOn } from "../store/sql/gate.ts";
import type { Query, Store } from "../store/store.ts";

export class UseCases {
  protected readonly store: Store;
  protected readonly clock: Clock;

  constructor(store: Store, clock: Clock) {
    this.store = store;
    this.clock = clock;
  }

  /** Read when a transaction is decided: on PostgreSQL it may have waited long for the write lock. */
  protected at(): Moment {
    return { now: this.clock.now(), steady: this.clock.steady() };
  }

  /** Every transaction that hands out a task, or stores usage, loads it. */
  protected gate(): Query<Gate> {
    return gateOn(this.clock.now());
  }
}
