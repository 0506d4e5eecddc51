/**
 * Prints on standard output: tables and records for people, JSON for programs. Control characters in texts from others
 * are replaced, in JSON escaped, because a terminal would obey them.
 */
import { must } from "../lib/assert.ts";
import { isoTime, systemClock } from "../lib/clock.ts";
import { instantMs } from "../lib/duration.ts";
import { isRawNumber } from "../lib/exact-json.ts";
import { printable, printableJson } from "../lib/printable.ts";
import { isBrokenPipe, writeText } from "./standard-output.ts";

export class BrokenPipe extends Error {
  override readonly name = "BrokenPipe";
}

export function print(text: string): void {
  printText(`${text}\n`);
}

export function printText(text: string): void {
  try {
    writeText(text);
  } catch (error) {
    if (isBrokenPipe(error)) throw new BrokenPipe();
    throw error;
  }
}

const INDENT = 2;

export function printJson(value: unknown): void {
  print(printableJson(value, INDENT));
}

export function printJsonLine(value: unknown): void {
  print(printableJson(value));
}

export async function printJsonList(rows: AsyncIterable<unknown>): Promise<void> {
  let isFirst = true;
  for await (const row of rows) {
    print(`${isFirst ? "[\n" : ","}${printableJson(row)}`);
    isFirst = false;
  }
  print(isFirst ? "[]" : "]");
}

const A_CELL = "a row has a cell for each column";

export type Cell = string | number | null | undefined;

export function printTable(head: readonly string[], rows: readonly (readonly Cell[])[]): void {
  print(tableOf(head, rows).join("\n"));
}

/** Without a column LUX while nothing has any. */
export function tableOf(head: readonly string[], rows: readonly (readonly Cell[])[]): readonly string[] {
  const lux = head.indexOf("LUX");
  if (lux >= 0 && rows.every((row) => !row[lux]))
    return tableOf(
      head.toSpliced(lux, 1),
      rows.map((row) => row.toSpliced(lux, 1)),
    );
  const cells = [head, ...rows.map((row) => row.map(cellOf))];
  const widths = head.map((_, column) =>
    Math.max(...cells.map((row) => Bun.stringWidth(must(row[column], A_CELL)))),
  );
  const lines = cells.map((row) =>
    truncateToTerminal(
      row
        .map((cell, i) => cell + " ".repeat(must(widths[i], A_CELL) - Bun.stringWidth(cell)))
        .join("  ")
        .trimEnd(),
    ),
  );
  const [first, ...others] = lines;
  return [bold(must(first, "a table has a head")), ...others];
}

/** A value of several lines goes below its name. What says nothing is left out: --json has every field. */
export function printRecord(record: object): void {
  const rows = Object.entries(record)
    .filter(([name, value]) => name === "priority" || saysMore(value))
    .map(([name, value]) => [name, wordOf(value)] as const);
  const width = Math.max(0, ...rows.map(([name]) => name.length)) + 2;
  print(
    rows
      .map(([name, text]) =>
        text.includes("\n")
          ? `${bold(name)}\n${text.replaceAll(/^/gm, "  ")}`
          : `${bold(name.padEnd(width))}${text}`,
      )
      .join("\n"),
  );
}

/** No value, no number of anything, not so. */
function saysMore(value: unknown): boolean {
  if (isNothing(value) || value === 0 || value === false) return false;
  return typeof value !== "object" || isRawNumber(value) || Object.values(value).some(saysMore);
}

export function plain(text: string): string {
  return printable(text, "\n\t");
}

export function bold(text: string): string {
  return hasColour() && text !== "" ? `\x1b[1m${text}\x1b[22m` : text;
}

function timeOf(time: string): number {
  const ms = instantMs(time);
  if (ms !== null) return ms;
  throw new Error(`the response has ${JSON.stringify(time)} as a time: is this a hub?`);
}

export function ageOf(time: string): string {
  return durationText(systemClock().now() - timeOf(time));
}

export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [d, h, m, s] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3_600) % 24,
    Math.floor(seconds / 60) % 60,
    seconds % 60,
  ];
  if (d > 0) return `${d}d${h > 0 ? `${h}h` : ""}`;
  if (h > 0) return `${h}h${m > 0 ? `${m}m` : ""}`;
  return m > 0 ? `${m}m` : `${s}s`;
}

export function timeText(time: string): string {
  const ms = timeOf(time);
  const local = isoTime(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return `${local.slice(0, 10)} ${local.slice(11, 19)}`;
}

function hasColour(): boolean {
  return process.stdout.isTTY === true && !process.env["NO_COLOR"] && process.env["TERM"] !== "dumb";
}

const NO_VALUE = "-";

function cellOf(value: Cell): string {
  if (value === null || value === undefined || value === "") return NO_VALUE;
  return plain(String(value)).replaceAll(/\s+/g, " ");
}

const isNothing = (value: unknown): value is null | undefined | "" =>
  value === null || value === undefined || value === "";

function wordOf(value: unknown): string {
  if (isNothing(value)) return NO_VALUE;
  if (Array.isArray(value)) return value.length === 0 ? NO_VALUE : value.map(wordOf).join(", ");
  if (typeof value !== "object" || isRawNumber(value))
    return plain(isRawNumber(value) ? JSON.stringify(value) : String(value));
  return plain(
    Object.entries(value)
      .filter(([, inner]) => !isNothing(inner))
      .map(([name, inner]) => {
        const text = wordOf(inner);
        return text.includes("\n") ? `\n${name}:\n${text.replaceAll(/^/gm, "  ")}` : `\n${name}: ${text}`;
      })
      .join("")
      .slice(1),
  );
}

export function truncateToTerminal(line: string): string {
  const width = process.stdout.isTTY === true ? process.stdout.columns : 0;
  return !width || Bun.stringWidth(line) <= width ? line : Bun.sliceAnsi(line, 0, width, { ellipsis: "…" });
}
