/** The wall clock of the hub, as far as the page knows it: ages are right even if the browser's clock is not. */
import { effect, signal } from "@preact/signals";
import { systemClock } from "../../lib/clock.ts";

export const clock = systemClock();

/** How much the hub's clock is ahead of the browser's, in milliseconds. */
const skewMs = signal(0);
/** The header Date has whole seconds, and a response takes its time. */
const SKEW_MIN_MS = 2_000;

/** @param date the header Date of a response of the hub */
export function noticeDate(date: string | null): void {
  const ahead = Date.parse(date ?? "") - clock.now();
  if (Number.isNaN(ahead) || Math.abs(ahead - skewMs.value) < SKEW_MIN_MS) return;
  skewMs.value = Math.abs(ahead) < SKEW_MIN_MS ? 0 : ahead;
}

export const isVisible = signal(!document.hidden);
document.addEventListener("visibilitychange", () => {
  isVisible.value = !document.hidden;
});

/** The hub's wall clock, in steps of a second while the tab is seen. */
export const now = signal(clock.now());

effect(() => {
  if (!isVisible.value) return;
  const tick = (): number => (now.value = clock.now() + skewMs.value);
  tick();
  const timer = setInterval(tick, 1_000);
  return () => clearInterval(timer);
});
