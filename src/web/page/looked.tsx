/** What has changed since the user looked at the overview before, on this device. */
import { Fragment, type VNode, h } from "preact";
import { isVisible, now } from "./clock.ts";
import { countOf } from "./format.ts";
import { useEvery } from "./load.ts";
import { timeOf } from "./times.ts";

type Counts = Readonly<Record<string, number>>;
type Look = { readonly at: number; readonly counts: Counts };

const STORED = `luxhub.looked ${location.pathname}`;
const EVERY_MS = 30_000;
/** Who has not looked for so long wants to know what is new. */
const AWAY_MS = 300_000;

function stored(): Look | null {
  const look: unknown = JSON.parse(localStorage.getItem(STORED) ?? "null");
  return isLook(look) ? look : null;
}

function isLook(look: unknown): look is Look {
  return typeof look === "object" && look !== null && "at" in look && "counts" in look;
}

let before: Look | null = null;

function note(counts: Counts): void {
  if (!isVisible.value) return;
  const last = stored();
  if (last !== null && now.value - last.at > AWAY_MS) before = last;
  localStorage.setItem(STORED, JSON.stringify({ at: now.value, counts } satisfies Look));
}

export function SinceLooked({ counts }: { counts: Counts }): VNode | null {
  note(counts);
  useEvery(EVERY_MS, () => note(counts));
  if (before === null) return null;
  const { at, counts: old } = before;
  const changes = Object.entries(counts).flatMap(([state, count]) => {
    const more = count - (old[state] ?? 0);
    return more === 0 ? [] : [`${more > 0 ? "+" : "−"}${countOf(Math.abs(more))} ${state}`];
  });
  return (
    <>
      {" "}
      · since you looked at {timeOf(at)}: {changes.join(", ") || "nothing new"}
    </>
  );
}
