/**
 * `bun run torture`: the long forms of tests of the suite, and the figures for docs/fault-injection.md. Each section has a
 * time limit of its own. Exit 1: a section failed, or one that was named cannot run here.
 */
import { tmpdir } from "node:os";
import { parseArgs } from "node:util";
import { describeMachine } from "../bench/machine.ts";
import { type Figure, type Row, type Section, exitCodeOf } from "./section.ts";
import { SECTIONS } from "./sections.ts";

const USAGE = `bun run torture [flags]   injects faults into hubs on this machine, and prints what was found

  --only NAME,NAME   of ${SECTIONS.map(({ name }) => name).join(", ")} (default all)
                     a section whose programs this machine lacks is skipped; if it is named here, the exit code is 1
  --scale N          part of the counts, as 0.01 (default 1)
  --seed N           of everything random (default: from the clock; printed)`;

type Options = {
  readonly sections: readonly Section[];
  /** Those that were asked for by name. */
  readonly named: readonly string[];
  readonly scale: number;
  readonly seed: number;
};

function parseOptions(argv: string[]): Options {
  const { values } = parseArgs({
    args: argv,
    options: {
      only: { type: "string" },
      scale: { type: "string", default: "1" },
      seed: { type: "string", default: String(Date.now() % 2 ** 31) },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  const scale = Number(values.scale);
  const seed = Number(values.seed);
  if (!(scale > 0 && scale <= 1)) throw new Error(`--scale takes more than 0 and at most 1`);
  if (!Number.isInteger(seed)) throw new Error("--seed takes a whole number");
  const only = values.only?.split(",");
  const unknown = only?.find((name) => !SECTIONS.some((section) => section.name === name));
  if (unknown !== undefined) throw new Error(`--only does not know "${unknown}"`);
  const sections = SECTIONS.filter(({ name }) => only?.includes(name) ?? true);
  return { sections, named: only ?? [], scale, seed };
}

async function runSection(section: Section, scale: number, seed: number): Promise<readonly Figure[]> {
  console.error(`${section.name}: at most ${Math.ceil(section.limitMs / 60_000)} min, seed ${seed}`);
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error("took too long")), section.limitMs);
  try {
    return await Promise.race([
      section.run(scale, seed, (line) => console.error(`${section.name}: ${line}`)),
      late.promise,
    ]);
  } catch (error) {
    console.error(`${section.name}:`, error);
    const value = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    return [{ what: "Run to the end", value, goal: "yes", held: false }];
  } finally {
    clearTimeout(timer);
  }
}

/** A Markdown table; what did not hold stands out. */
function renderTable(rows: readonly Row[]): string {
  const lines = rows.map(
    ({ section, what, value, goal, held }) =>
      `| ${titleOf(section)} | ${what} | ${held ? value : `**${value}**`} | ${goal} |`,
  );
  return ["| Section | What | Found | Goal |", "| --- | --- | --- | --- |", ...lines].join("\n");
}

function titleOf(name: string): string {
  return SECTIONS.find((section) => section.name === name)?.title ?? name;
}

async function main(): Promise<void> {
  const { sections, named, scale, seed } = parseOptions(process.argv.slice(2));
  const { cores, cpu, memoryGib, system, bun, date } = describeMachine(tmpdir());
  const rows: Row[] = [];
  for (const section of sections) {
    for (const figure of await runSection(section, scale, seed)) {
      rows.push({ ...figure, section: section.name });
    }
  }
  console.log(`${date}, ${cores} cores (${cpu}), ${memoryGib} GiB, ${system}, Bun ${bun}; seed ${seed}\n`);
  console.log(renderTable(rows));
  for (const { section, what, notRun } of rows) {
    if (notRun !== undefined) console.log(`\nNot run: ${section}, ${what}: ${notRun}`);
  }
  process.exit(exitCodeOf(rows, named));
}

try {
  await main();
} catch (error) {
  console.error(`torture: ${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  process.exit(2);
}
