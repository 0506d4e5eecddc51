/** The walk over the output directory of a command, while another process changes it. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { outputFilesIn } from "../../src/cli/output-files.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "luxhub-output-"));
  for (const name of ["out", "out/sub", "foreign"]) mkdirSync(join(dir, name));
  for (const name of ["out/sub/a", "out/sub/b", "out/z"]) writeFileSync(join(dir, name), "own");
  for (const name of ["a", "b", "c"]) writeFileSync(join(dir, "foreign", name), "foreign");
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** Walks `out`, and calls `change` before it reads its first file. */
async function walk(change: () => void): Promise<{ found: readonly string[]; skipped: readonly string[] }> {
  const found: string[] = [];
  const skipped: string[] = [];
  for await (const { path, content } of outputFilesIn(join(dir, "out"), (other) => skipped.push(other))) {
    if (found.length === 0) change();
    const text = await new Response(content()).text();
    found.push(`${path} ${text}`);
    expect(await new Response(content()).text()).toBe(text); // a repeated upload starts again
  }
  return { found, skipped };
}

const missing =
  process.platform === "linux" ? "" : " (skipped: only Linux opens paths below an open directory)";

test.skipIf(missing !== "")(
  `a directory that is replaced by a link is read on, and the link is not${missing}`,
  async () => {
    const replace = (): void => {
      renameSync(join(dir, "out/sub"), join(dir, "moved"));
      symlinkSync(join(dir, "foreign"), join(dir, "out/sub"));
    };
    expect(await walk(replace)).toEqual({ found: ["sub/a own", "sub/b own", "z own"], skipped: [] });
  },
);

test("a file that is replaced by a link is skipped, and one that vanishes too", async () => {
  const replace = (): void => {
    rmSync(join(dir, "out/sub/b"));
    symlinkSync(join(dir, "foreign/b"), join(dir, "out/sub/b"));
    rmSync(join(dir, "out/z"));
  };
  expect(await walk(replace)).toEqual({ found: ["sub/a own"], skipped: ["sub/b", "z"] });
});
