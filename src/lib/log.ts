/**
 * The log: lines on a stream, for people (pretty) or for a collector (json).
 *
 * Lines are buffered and written together, so that not every request costs a system call.
 * Invariant: no text that is logged can control a terminal.
 * Must not be given a secret, the content of a message, or a body.
 */
import { isoTime } from "./clock.ts";
import { printable, printableJson } from "./printable.ts";

export type LogFormat = "pretty" | "json";

/** The most serious first; a log also writes the levels before its own. */
export const LOG_LEVELS = ["error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Log {
  readonly format: LogFormat;
  has(level: LogLevel): boolean;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** `atMs`: epoch milliseconds. */
  write(level: LogLevel, message: string, fields: LogFields, atMs: number): void;
  /** In the log's format already, whatever its level. */
  line(text: string): void;
  head(level: LogLevel): string;
  flush(): void;
}

export type LogOptions = {
  readonly format: LogFormat;
  readonly level: LogLevel;
  readonly colour?: boolean;
};

const BUFFER_MS = 100;
const BUFFER_MAX_CHARS = 1024 * 1024;

/** SGR (ECMA-48): red, yellow, none, faint. */
const COLOURS: Readonly<Record<LogLevel, string>> = {
  error: "\x1b[31m",
  warn: "\x1b[33m",
  info: "",
  debug: "\x1b[2m",
};
const NO_COLOUR = "\x1b[0m";

export function openLog(options: LogOptions, now: () => number, write: (text: string) => void): Log {
  const { format, colour = false } = options;
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
  const headAt = (level: LogLevel, atMs: number): string => {
    const time = isoTime(atMs);
    if (format === "json") return `{"time":"${time}","level":"${level}",`;
    const shown = level.padEnd(5);
    return `${time} ${colour && COLOURS[level] !== "" ? `${COLOURS[level]}${shown}${NO_COLOUR}` : shown} `;
  };
  const written = LOG_LEVELS.slice(0, LOG_LEVELS.indexOf(options.level) + 1);
  const has = (level: LogLevel): boolean => written.includes(level);
  const textOf = format === "json" ? jsonRest : prettyRest;
  const writeAt = (level: LogLevel, message: string, fields: LogFields, atMs: number): void => {
    if (has(level)) line(headAt(level, atMs) + textOf(message, fields));
  };
  const writerOf =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}): void =>
      writeAt(level, message, fields, now());
  return {
    format,
    has,
    debug: writerOf("debug"),
    info: writerOf("info"),
    warn: writerOf("warn"),
    error: writerOf("error"),
    write: writeAt,
    line,
    head: (level) => headAt(level, now()),
    flush,
  };
}

function jsonRest(message: string, fields: LogFields): string {
  return printableJson({ message, ...fields }).slice(1);
}

function prettyRest(message: string, fields: LogFields): string {
  let text = printable(message);
  for (const key in fields) {
    const value = fields[key];
    if (value === undefined) continue;
    text += ` ${key}=${typeof value === "string" && /[^\x21-\x7e]|"/.test(value) ? printable(JSON.stringify(value)) : value}`;
  }
  return text;
}

/** And of its causes. Never put it into an answer: it shows paths. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : ` <- ${causeOf(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}
