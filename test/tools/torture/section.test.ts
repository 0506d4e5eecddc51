/** `bun run torture` and sections that cannot run here: it says so, and fails if one of them was named. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { EXECUTABLE } from "../../support/executable.ts";
import { type Row, exitCodeOf, notRun } from "../../../tools/torture/section.ts";

const held: Row = { section: "crash", what: "Missing", value: "0", goal: "0", held: true };
const unheld: Row = { ...held, value: "1", held: false };
const skipped: Row = { section: "redis", ...notRun("Redis cut", "no redis-server here") };

describe("the exit code", () => {
  const rows: readonly (readonly [
    name: string,
    rows: readonly Row[],
    named: readonly string[],
    code: 0 | 1,
  ])[] = [
    ["all held", [held], [], 0],
    ["one did not hold", [held, unheld], [], 1],
    ["one could not be run", [held, skipped], [], 0],
    ["one could not be run, and another was named", [held, skipped], ["crash"], 0],
    ["one that was named could not be run", [held, skipped], ["crash", "redis"], 1],
  ];
  for (const [name, figures, named, code] of rows)
    test(name, () => {
      expect(exitCodeOf(figures, named)).toBe(code);
    });
});

test("a section that was named and cannot be run is in the table, below it, and exit code 1", async () => {
  const main = join(import.meta.dir, "../../../tools/torture/main.ts");
  const env = { PATH: "/nonexistent", LUXHUB_TEST_REDIS: "", LUXHUB_TEST_EXECUTABLE: EXECUTABLE };
  const run = Bun.spawn([process.execPath, main, "--only", "redis"], { env, stdout: "pipe", stderr: "pipe" });
  const [out, code] = await Promise.all([run.stdout.text(), run.exited]);
  expect(code).toBe(1);
  expect(out).toContain(
    "| Redis failing under load | Redis failing under load | not run: no redis-server here |  |\n",
  );
  expect(out).toEndWith("\nNot run: redis, Redis failing under load: no redis-server here\n");
});
