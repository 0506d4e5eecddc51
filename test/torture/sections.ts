/** Every section of `bun run torture`, in the order in which they run. */
import { redisSection } from "./redis.ts";
import type { Section } from "./section.ts";

export const SECTIONS: readonly Section[] = [redisSection];
