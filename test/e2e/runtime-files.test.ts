/** What Bun reads in the directory where the program is started from source, before the program begins. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROJECT } from "../support/executable.ts";
import { Program, TempDir } from "./program.ts";

const MAIN = join(PROJECT, "src", "main.ts");

async function versionIn(
  cwd: string,
  ...flags: readonly string[]
): Promise<Pick<Program, "stdout" | "stderr">> {
  await using program = new Program([], { command: [process.execPath, ...flags, MAIN, "version"], cwd });
  expect(await program.ended).toBe(0);
  return { stdout: program.stdout, stderr: program.stderr };
}

test("luxhub warns of them, and the flags of Bun that it names prevent it", async () => {
  using dir = new TempDir();
  expect((await versionIn(dir.path)).stderr).toBe("");
  writeFileSync(dir.join("bunfig.toml"), 'preload = ["./first.ts"]');
  writeFileSync(dir.join("first.ts"), 'console.log("ran first")');
  writeFileSync(dir.join(".env"), "LUXHUB_SECRET=of-the-directory");
  const read = await versionIn(dir.path);
  expect(read.stdout).toStartWith("ran first\n");
  expect(read.stderr).toStartWith("luxhub: Bun reads bunfig.toml and .env of this directory");
  const [, command = ""] = /start luxhub as (.+)\n/.exec(read.stderr) ?? [];
  expect(command).toEndWith(` ${MAIN}`);
  const ignored = await versionIn(dir.path, ...command.split(" ").slice(1, -1));
  expect(ignored.stdout).toStartWith("luxhub");
  expect(ignored.stderr).toBe("");
  expect((await versionIn(dir.path, "--no-env-file")).stderr).toStartWith("luxhub: Bun reads bunfig.toml of");
});
