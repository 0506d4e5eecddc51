/** Every section of `bun run torture`, in the order in which they run. */
import { backupSection } from "./backup.ts";
import { crashSection } from "./crash.ts";
import { damageSection } from "./damage.ts";
import { diskSection } from "./disk.ts";
import type { Section } from "./section.ts";

export const SECTIONS: readonly Section[] = [crashSection, diskSection, damageSection, backupSection];
