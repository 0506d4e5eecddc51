/**
 * The type of a section of `bun run torture`. Its short form is a test of the suite that calls the same code at a smaller
 * scale; main.ts runs the long form. Everything is bounded in count and time and stays on loopback.
 */

/** One measured or counted line of the table. */
export type Figure = {
  /** What was counted or measured, with its unit. */
  readonly what: string;
  readonly value: string;
  /** What it has to be, in words; "" where it is only told. */
  readonly goal: string;
  readonly held: boolean;
  /** Why it could not be looked at on this machine. */
  readonly notRun?: string;
};

/** The line of what cannot be run here: the table and the last words of the run say so. */
export function notRun(what: string, reason: string): Figure {
  return { what, value: `not run: ${reason}`, goal: "", held: true, notRun: reason };
}

/** A figure of the section with this name. */
export type Row = Figure & { readonly section: string };

/** 1: something did not hold, or a section that was asked for by name was not run. */
export function exitCodeOf(rows: readonly Row[], named: readonly string[]): 0 | 1 {
  const isBad = ({ held, notRun, section }: Row): boolean =>
    !held || (notRun !== undefined && named.includes(section));
  return rows.some(isBad) ? 1 : 0;
}

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
