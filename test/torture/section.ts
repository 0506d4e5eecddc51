/**
 * What one section of `bun run torture` is. Its short form is a test of the suite that calls the same code at a smaller
 * scale; the long form is run by torture/main.ts. Everything is bounded in count and time and stays on loopback.
 */

/** One measured or counted line of the table. */
export type Figure = {
  /** What was counted or measured, with its unit. */
  readonly what: string;
  readonly value: string;
  /** What it has to be, in words; "" where it is only told. */
  readonly goal: string;
  readonly held: boolean;
};

export type Section = {
  /** One word for `--only`. */
  readonly name: string;
  readonly title: string;
  /** Longest time the section may take. */
  readonly limitMs: number;
  /**
   * @param scale 1 is the whole of it; a smaller number is that part of its counts
   * @param seed of everything random in it
   * @param progress takes a line now and then
   */
  readonly run: (scale: number, seed: number, progress: (line: string) => void) => Promise<readonly Figure[]>;
};
