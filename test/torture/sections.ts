/** Every section of `bun run torture`, in the order in which they run. */
import { backupSection } from "./backup.ts";
import { damageSection } from "./damage.ts";
import type { Section } from "./section.ts";

export const SECTIONS: readonly Section[] = [damageSection, backupSection];
