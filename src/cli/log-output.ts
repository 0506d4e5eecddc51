/**
 * Writes the log to standard output or standard error.
 *
 * Invariant: the hub never waits for the reader, and buffers a bounded amount. Lines that cannot be written are
 * dropped and counted.
 */
import { LOG_BACKLOG_MAX_CHARS, LOG_END_MS } from "../domain/limits.ts";
import { codeOf } from "../lib/reason.ts";

export type LogOutput = {
  write(text: string): void;
  /** False: some lines are not written, and would keep the process running. */
  end(): Promise<boolean>;
};

export function openLogOutput(onGap: (lines: number) => void, stream = Bun.stdout): LogOutput {
  let sink: ReturnType<typeof stream.writer> | undefined; // opened for the first line: it costs memory
  let bufferedChars = 0;
  let lostLines = 0;
  let failing = false;
  const put = async (text: string): Promise<void> => {
    bufferedChars += text.length;
    try {
      sink ??= stream.writer();
      await Promise.all([sink.write(text), sink.flush()]); // either may fail
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
      bufferedChars -= text.length;
    }
  };
  return {
    write: (text) => {
      // A text larger than the whole buffer is let through when nothing else waits.
      if (bufferedChars === 0 || bufferedChars + text.length <= LOG_BACKLOG_MAX_CHARS) void put(text);
      else lostLines += linesIn(text);
    },
    end: async () => {
      const late = Promise.withResolvers<boolean>();
      const timer = setTimeout(late.resolve, LOG_END_MS, false);
      const ended = (async () => sink?.end())().then(
        () => true,
        () => true, // nobody reads it
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
