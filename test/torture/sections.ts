/** Every section of `bun run torture`, in the order in which they run. */
import { OVERLOAD } from "./overload.ts";
import type { Section } from "./section.ts";

export const SECTIONS: readonly Section[] = [OVERLOAD];
