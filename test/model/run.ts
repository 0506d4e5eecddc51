/**
 * Random sequences of commands against a hub and the model. A sequence has a hub of its own, so that it repeats and
 * shrinks.
 */
import fc from "fast-check";
import { Model } from "./model.ts";
import { compareAll, mixes } from "./commands.ts";
import { Real } from "./real.ts";
import { anchor } from "./task-commands.ts";
import { type Command, World } from "./world.ts";

const COMMANDS_MAX = 60;
const START = Date.UTC(2027, 4, 1, 12);

export type Played = { sequences: number; commands: number };

/** Throws with seed, path and the shortest failing sequence. */
export async function playSequences(count: number, seed: number): Promise<Played> {
  const played: Played = { sequences: 0, commands: 0 };
  const sequence = fc.oneof(
    ...mixes.map((mix) => fc.commands([...mix], { maxCommands: COMMANDS_MAX, size: "max" })),
  );
  const property = fc.asyncProperty(sequence, async (chosen) => {
    played.sequences++;
    await using real = await Real.start(START);
    const world = new World(new Model(START));
    await anchor(world, real);
    await fc.asyncModelRun(() => ({ model: world, real }), counted(chosen, played));
    await compareAll(world, real);
  });
  await fc.assert(property, { seed, numRuns: count });
  return played;
}

function* counted(chosen: Iterable<Command>, played: Played): Generator<Command> {
  for (const command of chosen) {
    played.commands++;
    yield command;
  }
}
