/** The long form of the model test: ten thousand random sequences of commands against the model of the hub. */
import { playLanes } from "../../test/model/lanes.ts";
import { playMints } from "../../test/model/mints.ts";
import { playSequences } from "../../test/model/run.ts";
import type { Section } from "./section.ts";

const SEQUENCES = 10_000;
/** Played at a time, for a word of how it goes. */
const PART = 500;
/** Of so many sequences, one more is of lanes, and one of mints. */
const OTHERS_EVERY = 10;

export const MODEL: Section = {
  name: "model",
  title: "Model",
  limitMs: 20 * 60_000,
  async run(scale, seed, progress) {
    const goal = Math.ceil(SEQUENCES * scale);
    let [sequences, commands] = [0, 0];
    while (sequences < goal) {
      const played = await playSequences(Math.min(PART, goal - sequences), seed + sequences); // throws at a divergence
      const others = Math.ceil(played.sequences / OTHERS_EVERY);
      await playLanes(others, seed + sequences);
      await playMints(others, seed + sequences);
      sequences += played.sequences;
      commands += played.commands;
      progress(`${sequences} sequences, ${commands} commands`);
    }
    const what = `Sequences of commands against the model (${commands.toLocaleString("en")} commands)`;
    const value = `${sequences.toLocaleString("en")}, no divergence`;
    return [{ what, value, goal: `${goal.toLocaleString("en")}, none`, held: true }];
  },
};
