/**
 * Standard output as the place of the log.
 *
 * Invariant: the hub never waits for whoever reads it, and holds a bounded amount of what is not read. What cannot be
 * written is lost and counted, and the log goes on as soon as it can: a disk that was full has room again.
 */
import { LOG_BACKLOG_MAX_CHARS, LOG_END_MS } from "../domain/limits.ts";
import { codeOf } from "../lib/reason.ts";

export type LogOutput = {
  /** Takes whole lines; returns at once. */
  write(text: string): void;
  /** Waits for a bounded time until all is written; false when it is not, and then it holds the process up. */
  end(): Promise<boolean>;
};

/** `onGap` is told, once lines can be written again, how many before them were lost. */
export function openLogOutput(onGap: (lines: number) => void): LogOutput {
  let sink: ReturnType<typeof Bun.stdout.writer> | undefined; // opened with the first line: it costs memory
  let waitingChars = 0;
  let lostLines = 0;
  let failing = false;
  const put = async (text: string): Promise<void> => {
    waitingChars += text.length;
    try {
      sink ??= Bun.stdout.writer();
      await Promise.all([sink.write(text), sink.flush()]); // either of them may be what fails
      failing = false;
      const lines = lostLines;
      lostLines = 0;
      if (lines > 0) onGap(lines);
    } catch (error) {
      lostLines += linesIn(text);
      const reason = codeOf(error) || error;
      if (!failing) console.error(`luxhub: the log cannot be written: ${reason}`);
      failing = true;
    } finally {
      waitingChars -= text.length;
    }
  };
  return {
    write: (text) => {
      // One text that is larger than all that may wait is let through alone.
      if (waitingChars === 0 || waitingChars + text.length <= LOG_BACKLOG_MAX_CHARS) void put(text);
      else lostLines += linesIn(text);
    },
    end: async () => {
      const late = Promise.withResolvers<boolean>();
      const timer = setTimeout(late.resolve, LOG_END_MS, false);
      const ended = (async () => sink?.end())().then(
        () => true,
        () => true, // nobody is there to read it
      );
      const inTime = await Promise.race([ended, late.promise]);
      clearTimeout(timer);
      return inTime;
    },
  };
}

function linesIn(text: string): number {
  return text.split("\n").length - 1;
}
