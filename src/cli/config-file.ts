/** luxhub.toml in the current directory, as far as it is there. What its keys mean is config.ts's business. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { ConfigError, readConfig } from "../config.ts";
import { type DataDir, dataDirAt } from "../data-dir.ts";
import type { Arguments } from "./usage.ts";

const PATH = "luxhub.toml";

/** Its keys and values; null when there is none. @throws {ConfigError} when it cannot be read */
export function readConfigFile(): Record<string, unknown> | null {
  let text: string;
  try {
    text = readFileSync(PATH, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw new ConfigError(`cannot read ${PATH}: ${error instanceof Error ? error.message : error}`);
  }
  try {
    return { ...Bun.TOML.parse(text) };
  } catch (error) {
    throw new ConfigError(`${PATH} is not TOML: ${error instanceof Error ? error.message : error}`);
  }
}

/** The data directory of the hub that a command is for: by --data, LUXHUB_DATA or `data` in luxhub.toml. */
export function findDataDir(
  { flags }: Arguments,
  env: Readonly<Record<string, string | undefined>>,
): DataDir {
  const { dataDir } = readConfig({ flags: { data: flags["data"] }, env, file: readConfigFile() });
  return dataDirAt(resolve(dataDir));
}
