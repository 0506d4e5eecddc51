/** What has changed since the user looked at the overview before, on this device. */
import { Fragment, type VNode, h } from "preact";
import { isVisible, now } from "./clock.ts";
import { countOf } from "./format.ts";
import { useEvery } from "./load.ts";
import { Link } from "./parts.tsx";
import { to } from "./route.ts";
import { LOOKED } from "./session.ts";
import { timeOf } from "./times.ts";

type Counts = Readonly<Record<string, number>>;

const EVERY_MS = 30_000;
/** Who has not looked for so long wants to know what is new. */
const AWAY_MS = 300_000;

/** The counts of the look before, as pairs, and its time. */
let before: ReadonlyMap<string, number> = new Map();

function note(counts: Counts): void {
  if (!isVisible.value) return;
  const last = new URLSearchParams(localStorage.getItem(LOOKED) ?? "");
  if (now.value - Number(last.get("at") ?? Infinity) > AWAY_MS)
    before = new Map([...last].map(([name, count]) => [name, Number(count)]));
  const look = Object.entries({ ...counts, at: now.value }).map(([name, count]) => [name, String(count)]);
  localStorage.setItem(LOOKED, new URLSearchParams(look).toString());
}

export function SinceLooked({ counts }: { counts: Counts }): VNode | null {
  note(counts);
  useEvery(EVERY_MS, () => note(counts));
  const at = before.get("at");
  if (at === undefined) return null;
  const changes = Object.entries(counts).flatMap(([state, count]) => {
    const more = count - (before.get(state) ?? 0);
    return more === 0 ? [] : [`${more > 0 ? "+" : "−"}${countOf(Math.abs(more))} ${state}`];
  });
  return (
    <>
      {" "}
      ·{" "}
      <Link
        href={to("events", "", { since: new Date(at).toISOString() })}
        text={`since you looked at ${timeOf(at)}`}
      />
      : {changes.join(", ") || "nothing new"}
    </>
  );
}
