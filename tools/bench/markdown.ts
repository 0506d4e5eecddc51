// The layout of the bench's reports.
import type { Machine } from "./machine.ts";

export function renderMachine(machine: Machine): string {
  const { cores, cpu, memoryGib, system, bun, date, fileSystem, syncMs } = machine;
  return [
    `Measured ${date} on ${cores} cores (${cpu}), ${memoryGib} GiB, ${system}, Bun ${bun};`,
    `hub data on ${fileSystem ?? "an unknown file system"}, ${syncMs.toFixed(2)} ms to flush one page to disk.`,
  ].join("\n");
}

/** A table; the first `textColumns` hold text, the others numbers. */
export function renderTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  textColumns = 1,
): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const rule = header.map((_, column) => (column < textColumns ? "---" : "--:"));
  return [line(header), line(rule), ...rows.map(line)].join("\n");
}

export function renderTroubles(
  missing: readonly string[],
  rows: readonly { readonly name: string; readonly failures: number; readonly failure: string | null }[],
): readonly string[] {
  const failed = rows.filter((row) => row.failures > 0);
  return [
    ...missing.map((line) => `Not measured: ${line}`),
    ...failed.map(({ name, failures, failure }) => `**${failures} failures** of ${name}: ${failure}`),
  ];
}

export function whole(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
