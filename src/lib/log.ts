/**
 * The log: lines on a stream, for people (pretty) or for a collector (json).
 *
 * Lines are buffered and written together, so that not every request costs a system call.
 * Must not be given a secret, the content of a message, or a body.
 */
import { isoTime } from "./clock.ts";

export type LogFormat = "pretty" | "json";
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Log {
  readonly format: LogFormat;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Adds a line that already has the log's format. */
  line(text: string): void;
  /** The current time as a line begins with it. */
  time(): string;
  /** Writes the buffered lines. */
  flush(): void;
}

const BUFFER_MS = 100;
const BUFFER_MAX_CHARS = 1024 * 1024;

/** A log that passes whole lines to `write`. */
export function openLog(format: LogFormat, now: () => number, write: (text: string) => void): Log {
  let buffered = "";
  let timer: Timer | null = null;
  const flush = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (buffered === "") return;
    const text = buffered;
    buffered = "";
    write(text);
  };
  const line = (text: string): void => {
    buffered += `${text}\n`;
    if (buffered.length >= BUFFER_MAX_CHARS) flush();
    else timer ??= setTimeout(flush, BUFFER_MS).unref();
  };
  const time = (): string => isoTime(now());
  const toLine = format === "json" ? jsonLine : prettyLine;
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}): void =>
      line(toLine(time(), level, message, fields));
  return { format, info: at("info"), warn: at("warn"), error: at("error"), line, time, flush };
}

function jsonLine(time: string, level: string, message: string, fields: LogFields): string {
  return JSON.stringify({ time, level, message, ...fields });
}

function prettyLine(time: string, level: string, message: string, fields: LogFields): string {
  let text = `${time} ${level.padEnd(5)} ${message}`;
  for (const key in fields) {
    const value = fields[key];
    if (value === undefined) continue;
    text += ` ${key}=${typeof value === "string" && /[^\x21-\x7e]|"/.test(value) ? JSON.stringify(value) : value}`;
  }
  return text;
}

/** An error with its chain of causes, for the log. Never part of an answer: it has paths and stacks. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : ` <- ${causeOf(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}
