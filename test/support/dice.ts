/** Numbers that look random and are the same at every run. */

/** A whole number from 0 to below `sides`. */
export type Dice = (sides: number) => number;

export function dice(seed: number): Dice {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % sides;
  };
}
