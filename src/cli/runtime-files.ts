/**
 * Warns about files of the current directory that Bun reads before the program begins, when it runs from source in
 * another directory than the checkout: `bunfig.toml` can name code to run first, and `.env` can set the secrets. The
 * executable and the npm package read neither. Must not: read the files.
 */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

const CHECKOUT = resolve(import.meta.dir, "../..");
/** The files of Bun 1.4.5, and the flag that makes it ignore them. */
const FILES: readonly (readonly [flag: string, names: readonly string[]])[] = [
  ["--config=", ["bunfig.toml"]],
  ["--no-env-file", [".env", ".env.local", ".env.development", ".env.production", ".env.test"]],
];

export function warnOfRuntimeFiles(): void {
  const dir = process.cwd();
  if (Bun.main !== join(CHECKOUT, "src", "main.ts") || dir === CHECKOUT) return;
  const read = FILES.filter(([flag]) => !process.execArgv.some((given) => given.startsWith(flag)))
    .flatMap(([, names]) => names)
    .filter((name) => existsSync(join(dir, name)));
  if (read.length === 0) return;
  console.error(
    `luxhub: Bun reads ${read.join(" and ")} of this directory, which can run code and set secrets; to prevent it, start luxhub as bun --no-env-file --config=/dev/null ${Bun.main}`,
  );
}
