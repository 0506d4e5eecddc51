/** A budget that many draw on: who asks for more than is left waits, in the order of asking. */
export class Budget {
  readonly #most: number;
  #taken = 0;
  readonly #waiting = new Set<Waiting>();
  #isDrained = false;

  constructor(most: number) {
    this.#most = most;
  }

  /** Resolves when the amount is there and has been taken. More than there is at all is given to one alone. */
  take(amount: number): Promise<void> {
    if (this.takeNow(amount)) return Promise.resolve();
    return new Promise((grant) => this.#waiting.add({ amount, grant, refuse: () => {} }));
  }

  /** Takes the amount if it is there and nobody waits for it. */
  takeNow(amount: number): boolean {
    if (this.#waiting.size > 0 || !this.#fits(amount)) return false;
    this.#taken += amount;
    return true;
  }

  /** As take(), but not for ever. @throws {BudgetSpent} when it was not there within `ms`; then nothing is taken */
  takeWithin(amount: number, ms: number): Promise<void> {
    if (this.takeNow(amount)) return Promise.resolve();
    if (this.#isDrained) return Promise.reject(new BudgetSpent());
    return new Promise((resolve, reject) => {
      const refuse = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(waiting);
        reject(new BudgetSpent());
      };
      const waiting = { amount, grant: () => (clearTimeout(timer), resolve()), refuse };
      const timer = setTimeout(() => {
        refuse();
        this.give(0); // who asked for less may have waited behind this one
      }, ms);
      this.#waiting.add(waiting);
    });
  }

  /** From now on nobody waits by takeWithin(): who does already is refused. */
  drain(): void {
    this.#isDrained = true;
    for (const { refuse } of [...this.#waiting]) refuse();
    this.give(0); // who waits by take() may have waited behind one of these
  }

  /** Gives back what was taken, or, below 0, takes more without waiting: what is there already cannot wait. */
  give(amount: number): void {
    this.#taken -= amount;
    for (const next of this.#waiting) {
      if (!this.#fits(next.amount)) return;
      this.#waiting.delete(next);
      this.#taken += next.amount;
      next.grant();
    }
  }

  /** Whether somebody waits for it. */
  get isScarce(): boolean {
    return this.#waiting.size > 0;
  }

  get taken(): number {
    return this.#taken;
  }

  #fits(amount: number): boolean {
    return this.#taken === 0 || this.#taken + amount <= this.#most;
  }
}

type Waiting = { readonly amount: number; readonly grant: () => void; readonly refuse: () => void };

/** What was asked for has not come back in time. */
export class BudgetSpent extends Error {
  override readonly name = "BudgetSpent";
}
