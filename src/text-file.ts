/** Reads whole text files: strictly as UTF-8 (lib/utf8.ts), with errors of one line that name the file. */
import { readFileSync } from "node:fs";
import { ConfigError } from "./config.ts";
import { codeOf, reasonOf } from "./lib/reason.ts";
import { decodeUtf8 } from "./lib/utf8.ts";

/** @throws {ConfigError} when the file is not UTF-8; {Error} one line, when it cannot be read */
export function readTextFile(path: string): string {
  try {
    return strictText(readFileSync(path), path);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new Error(`cannot read ${path}: ${reasonOf(error)}`, { cause: error });
  }
}

/** The same; null when there is no file. */
export function readTextFileIfThere(path: string): string | null {
  try {
    return readTextFile(path);
  } catch (error) {
    if (error instanceof Error && codeOf(error.cause) === "ENOENT") return null;
    throw error;
  }
}

/** @throws {ConfigError} when they are not UTF-8 */
export function strictText(bytes: Uint8Array, what: string): string {
  try {
    return decodeUtf8(bytes);
  } catch {
    throw new ConfigError(`${what} is not text in UTF-8: convert it first, for example with iconv`);
  }
}
