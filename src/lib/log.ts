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
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Writes out what is gathered. */
  flush(): void;
}

const GATHER_MS = 100;
const GATHER_MAX_LINES = 1_000;

/** A log that hands its lines to `write`; each call of it gets whole lines. */
export function openLog(format: LogFormat, now: () => number, write: (text: string) => void): Log {
  let lines: string[] = [];
  let timer: Timer | null = null;
  const flush = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (lines.length === 0) return;
    const text = `${lines.join("\n")}\n`;
    lines = [];
    write(text);
  };
  const line = format === "json" ? jsonLine : prettyLine;
  const add = (level: string, message: string, fields: LogFields): void => {
    lines.push(line(isoTime(now()), level, message, fields));
    if (lines.length >= GATHER_MAX_LINES) flush();
    else timer ??= setTimeout(flush, GATHER_MS).unref();
  };
  return {
    info: (message, fields = {}) => add("info", message, fields),
    warn: (message, fields = {}) => add("warn", message, fields),
    error: (message, fields = {}) => add("error", message, fields),
    flush,
  };
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
