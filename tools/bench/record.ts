// `bun run bench --record`: keeps the tables of a run in tools/recorded/figures.json, each with its date, commit, machine
// and flush time, in place of the same table of an earlier run. test/e2e/page-facts.test.ts compares the pages with it.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Machine } from "./machine.ts";
import type { Mode } from "./options.ts";

const FILE = join(import.meta.dir, "..", "recorded", "figures.json");

/** Cells by column. A repeated column has its number: "CPU µs 2". */
export type Row = Readonly<Record<string, string>>;

export type Recorded = {
  date: string;
  /** null, as of the figures that are older than this file: unknown. */
  commit: string | null;
  machine: string;
  flushMs: number | null;
  rows: readonly Row[];
};

/** By mode and first column, as "peers: System". */
export type Figures = Readonly<Record<string, Recorded>>;

export function readFigures(): Figures {
  const figures: Figures = JSON.parse(readFileSync(FILE, "utf8"));
  return figures;
}

export function record(mode: Mode, machine: Machine, markdown: string): void {
  const { cores, cpu, memoryGib, system, bun, fileSystem, date, syncMs } = machine;
  const run = {
    date,
    commit: commitOfTree(),
    machine: `${cores} cores (${cpu}), ${memoryGib} GiB, ${system.replace(/-\S+/, "")}, Bun ${bun}, ${fileSystem ?? "?"}`,
    flushMs: Math.round(syncMs * 100) / 100,
  };
  const tables = tablesIn(markdown).map(({ name, rows }) => [`${mode}: ${name}`, { ...run, rows }] as const);
  const figures = { ...readFigures(), ...Object.fromEntries(tables) };
  writeFileSync(FILE, `${JSON.stringify(figures, null, 2)}\n`);
}

/** Each under its first column. */
export function tablesIn(markdown: string): { name: string; rows: Row[] }[] {
  const tables = markdown.match(/^\|.*\n\|[ :|-]+\n(?:\|.*(?:\n|$))+/gm) ?? [];
  return tables.map((table) => {
    const [head = [], , ...rows] = table.trim().split("\n").map(cellsOf);
    const columns = head.map((title, i) => {
      const before = head.slice(0, i).filter((other) => other === title).length;
      return before === 0 ? title : `${title} ${before + 1}`;
    });
    return {
      name: head[0] ?? "",
      rows: rows.map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i] ?? ""]))),
    };
  });
}

function cellsOf(line: string): string[] {
  return line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

function commitOfTree(): string {
  const { stdout } = Bun.spawnSync(["git", "describe", "--always", "--dirty", "--abbrev=12"], {
    cwd: import.meta.dir,
  });
  return stdout.toString().trim();
}
