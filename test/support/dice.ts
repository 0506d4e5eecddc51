/** A pseudo-random number generator with a seed: the same numbers in every run. */

export type Dice = (sides: number) => number;

export function dice(seed: number): Dice {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % sides;
  };
}
