/** Stores as older versions of luxhub left them, with rows, as SQL: test/contract/stores/. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dir, "../contract/stores");

export function oldStore(name: "0.1.0.sqlite" | "56.sqlite" | "53.postgresql"): string {
  return readFileSync(join(FOLDER, `${name}.sql`), "utf8");
}
