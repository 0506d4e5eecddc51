/**
 * The periodic work of several hubs on one database: each piece is done by the one whose turn it is. A hub that takes the
 * turn after nobody had it first lets all leases start anew.
 */
import { type ChoreParts, renewLeases } from "./periodic-work.ts";
import type { Chore } from "./scheduler.ts";

export class Turns {
  readonly #parts: ChoreParts;
  /** Nobody had the turn before us, and the leases have not been renewed yet. */
  #afterGap = false;

  constructor(parts: ChoreParts) {
    this.#parts = parts;
  }

  /** Whether the periodic work is this hub's now; if it is, everything is ready for it. */
  async isOurs(): Promise<boolean> {
    const turn = await this.#parts.store.turn();
    if (turn === "another's") return false;
    this.#afterGap ||= turn === "ours after a gap"; // told once, and kept until it is dealt with
    if (this.#afterGap) {
      await renewLeases(this.#parts);
      this.#afterGap = false;
    }
    return true;
  }

  /** The chores, each skipped while the turn is another's. */
  share(chores: readonly Chore[]): readonly Chore[] {
    return chores.map((chore) =>
      chore.ofEveryHub
        ? chore
        : {
            ...chore,
            run: async (signal, lateMs) => ((await this.isOurs()) ? chore.run(signal, lateMs) : undefined),
          },
    );
  }
}
