/** Every section of `bun run torture`, in the order in which they run. */
import { FUZZ } from "./fuzz.ts";
import { MODEL } from "./model.ts";
import type { Section } from "./section.ts";
import { TIME } from "./time.ts";

export const SECTIONS: readonly Section[] = [FUZZ, MODEL, TIME];
