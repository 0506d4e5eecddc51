/**
 * The executable as `bun run build` makes it: the first test of a run that needs the program builds it, all others share
 * it. It starts in a fraction of the time that the program takes from source.
 */
import { chmodSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json";
import { sharedAddress } from "./keeper.ts";

export const PROJECT = join(import.meta.dir, "../..");

/** The program from source, without its arguments; for tests that load something before it. */
export const FROM_SOURCE: readonly string[] = [process.execPath, join(PROJECT, "src/main.ts")];

/** LUXHUB_TEST_EXECUTABLE names one that is there already. */
export const EXECUTABLE = process.env["LUXHUB_TEST_EXECUTABLE"] ?? (await sharedAddress("executable", build));

export const PROGRAM: readonly string[] = [EXECUTABLE];

async function build(folder: string): Promise<string> {
  const place = mkdtempSync(join(folder, "luxhub-build-"));
  chmodSync(place, 0o755); // other users start it too
  const path = join(place, "luxhub");
  const command = packageJson.scripts.build.split(" && ").at(-1) ?? "";
  const [bun = "", ...words] = command.replace("dist/luxhub", path).split(" ");
  if (bun !== "bun" || !words.includes(path)) throw new Error(`not a build that tests can run: ${command}`);
  const child = Bun.spawn([process.execPath, ...words], { cwd: PROJECT, stdout: "ignore", stderr: "pipe" });
  const [err, code] = await Promise.all([child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`bun build: ${err}`);
  return path;
}
