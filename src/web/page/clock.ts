/** The wall clock of the hub: ages are right even if the browser's clock is not. */
import { useEffect, useRef, useState } from "preact/hooks";
import { machineClock } from "../../lib/clock.ts";
import { Shared, drawn, runAfter } from "./shared.ts";

export const clock = machineClock;

let skewMs = 0;
/** The header Date has whole seconds, and a response takes its time. */
const SKEW_MIN_MS = 2_000;

export function noticeDate(date: string | null): void {
  const ahead = Date.parse(date ?? "") - clock.now();
  if (Number.isNaN(ahead) || Math.abs(ahead - skewMs) < SKEW_MIN_MS) return;
  skewMs = Math.abs(ahead) < SKEW_MIN_MS ? 0 : ahead;
}

export const isVisible = drawn(!document.hidden);
document.addEventListener("visibilitychange", () => {
  isVisible.value = !document.hidden;
});

/** The hub's wall clock, in steps of a second while the tab is seen. */
export const now = new Shared(clock.now());

runAfter([isVisible], () => {
  if (!isVisible.value) return;
  const tick = (): number => (now.value = clock.now() + skewMs);
  tick();
  const timer = setInterval(tick, 1_000);
  return () => clearInterval(timer);
});

/** What a component makes of the clock: it is drawn again when that is something else. */
export function useNow<T>(derive: (now: number) => T): T {
  const value = derive(now.value);
  const shown = useRef({ derive, value });
  shown.current = { derive, value };
  const [, draw] = useState(0);
  useEffect(
    () =>
      now.follow(() => {
        const { derive: again, value: old } = shown.current;
        if (again(now.value) !== old) draw((count) => count + 1);
      }),
    [],
  );
  return value;
}
