/**
 * Standard output for the log. Who reads it may be slow, stand still, or be gone; the hub goes on.
 *
 * Invariant: what has not been taken is bounded; past it, text is dropped and its lines are counted.
 */
import { LOG_HELD_MAX_CHARS } from "../domain/limits.ts";

export type Output = {
  /** Takes whole lines. */
  write(text: string): void;
  /** Resolves when all is taken; false when it is not in time. Then the process has to be ended: it waits for that. */
  end(): Promise<boolean>;
};

const END_MAX_MS = 1_000;

/** `onDropped` hears how many lines were dropped, once what was held has been taken. */
export function openOutput(onDropped: (lines: number) => void): Output {
  let sink: ReturnType<typeof Bun.stdout.writer> | undefined; // opened with the first line: it costs memory
  let broken = false;
  let heldChars = 0;
  let dropped = 0;
  const attempt = async (step: () => unknown): Promise<void> => {
    if (broken) return;
    try {
      await step();
    } catch {
      if (!broken) console.error("luxhub: the log cannot be written any more");
      broken = true;
    }
  };
  const take = async (text: string): Promise<void> => {
    heldChars += text.length;
    await attempt(() => {
      sink ??= Bun.stdout.writer();
      sink.write(text);
      return sink.flush();
    });
    heldChars -= text.length;
    if (dropped === 0 || heldChars > 0) return;
    const lines = dropped;
    dropped = 0;
    onDropped(lines);
  };
  return {
    write: (text) => {
      // One that is larger than all that may be held is let through alone.
      if (heldChars === 0 || heldChars + text.length <= LOG_HELD_MAX_CHARS) void take(text);
      else dropped += text.split("\n").length - 1;
    },
    end: async () => {
      const late = Promise.withResolvers<boolean>();
      const timer = setTimeout(late.resolve, END_MAX_MS, false);
      const ended = attempt(() => sink?.end()).then(() => true);
      return Promise.race([ended, late.promise]).finally(() => clearTimeout(timer));
    },
  };
}
