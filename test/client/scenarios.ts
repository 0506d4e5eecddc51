/**
 * What every worker does with a task: the command-line worker, the TypeScript library and the Python library. The
 * description of a task is what its handler does, a list of steps for each run; the calls around it are a transcript.
 */

/** What a handler does, one after the other; what the last step gives is its result. */
export type Step = {
  /** Writes so many lines of output. */
  readonly prints?: number;
  readonly note?: string;
  readonly checkpoint?: unknown;
  readonly usage?: {
    readonly model: string;
    readonly input_tokens: number;
    readonly output_tokens: number;
    readonly cost_usd?: number;
  };
  /** Asks a question, and waits for the answer, or gives the task back until there is one. */
  readonly ask?: string;
  readonly park?: boolean;
  readonly sleepMs?: number;
  /** Works until it is stopped. */
  readonly hang?: true;
  readonly fail?: string;
  readonly fatal?: string;
  readonly gives?: unknown;
  /** Gives a text of so many characters of two bytes. */
  readonly large?: number;
  /** Gives what it knows of the task: inputs, checkpoint, failures, answers, lessons. */
  readonly see?: true;
};

/** The steps of this run; the last list is that of all later ones. */
export function stepsOf(task: {
  readonly description: string;
  readonly attempts: number;
  readonly restarts: number;
}): readonly Step[] {
  const runs: readonly (readonly Step[])[] = JSON.parse(task.description);
  return runs[Math.min(task.attempts + task.restarts, runs.length - 1)] ?? [];
}

export function large(characters: number): string {
  return "é".repeat(characters);
}

export function lines(count: number): string {
  return Array.from({ length: count }, (_, i) => `line ${i} ✓\n`).join("");
}
