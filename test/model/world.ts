/** The state of a sequence of commands (the model, and the ids that the hub has made), and the parts of a command. */
import fc from "fast-check";
import type { Model, VariantName } from "./model.ts";
import type { Real } from "./real.ts";

/** What fast-check runs: `ids` are those that the hub has made, gone ones too. */
export type Command = fc.AsyncCommand<World, Real>;

export class World {
  readonly model: Model;
  readonly taskIds: string[] = [];
  readonly messageIds: string[] = [];
  readonly fileIds: string[] = [];
  daysPassed = 0;

  constructor(model: Model) {
    this.model = model;
  }

  /** One of the newest of a kind, so that commands meet; an id that there is not, while there is none. */
  task(n: number): string {
    return this.taskIds.at(-1 - n) ?? "no-task";
  }

  message(n: number): string {
    return this.messageIds.at(-1 - n) ?? "no-message";
  }

  file(n: number): string {
    return this.fileIds.at(-1 - n) ?? "no-file";
  }
}

export const NODES = ["n0", "n1", "n2", "n3"] as const;
/** Sends but is not registered. */
export const OPERATOR = "operator";

export const variant = fc.constantFrom<VariantName>("A", "B");
export const node = fc.constantFrom(...NODES);
export const recent = fc.nat({ max: 4 });

export function commandsOf<State extends object>() {
  return <A>(
    name: string,
    args: fc.Arbitrary<A>,
    run: (state: State, real: Real, args: A) => Promise<void>,
    check: (state: State) => boolean = () => true,
  ): fc.Arbitrary<fc.AsyncCommand<State, Real>> =>
    args.map((given) => ({
      check,
      run: (state, real) => run(state, real, given),
      toString: () => `${name}(${JSON.stringify(given)})`,
    }));
}

export const command = commandsOf<World>();
