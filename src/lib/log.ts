/**
 * The log: lines on a stream, for people (pretty) or for a collector (json).
 *
 * Lines are gathered and written together, so that a request does not pay for a system call of its own.
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
  /** Adds a line that is in the log's format already. */
  line(text: string): void;
  /** The time as it stands at the head of a line. */
  time(): string;
  /** Writes out what is gathered. */
  flush(): void;
}

const GATHER_MS = 100;
const GATHER_MAX_CHARS = 1024 * 1024;

/** A log that hands its lines to `write`; each call of it gets whole lines. */
export function openLog(format: LogFormat, now: () => number, write: (text: string) => void): Log {
  let gathered = "";
  let timer: Timer | null = null;
  const flush = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (gathered === "") return;
    const text = gathered;
    gathered = "";
    write(text);
  };
  const line = (text: string): void => {
    gathered += `${text}\n`;
    if (gathered.length >= GATHER_MAX_CHARS) flush();
    else timer ??= setTimeout(flush, GATHER_MS).unref();
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

/** An error with all that caused it, for the log; it is never a caller's to see. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : ` <- ${causeOf(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}
